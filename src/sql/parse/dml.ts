/**
 * INSERT, UPDATE and DELETE. Long VALUES lists of plain literals take a short way from tokens to
 * one compact node.
 */
import {
  type DeleteStatement,
  type InsertStatement,
  LiteralCell,
  type LiteralValuesStatement,
  type OnConflictAction,
  type QNameAliased,
  type SelectedColumn,
  type SetColumn,
  type SetStatement,
  type UpdateStatement,
} from "./ast.ts";
import type { Cursor } from "./cursor.ts";
import { parseFromList, parseTargetAlias } from "./from.ts";
import { Token } from "./lexer.ts";
import { integerText, numericText } from "./literals.ts";
import { LIFTED_LITERALS_MAX } from "./normalize.ts";
import { parseParenthesised } from "./primary.ts";
import { isSelectNode } from "./query_nodes.ts";
import { beginsQuery, parseItems, parseQuery } from "./select.ts";

/** `INSERT INTO …`, without WITH. */
export function parseInsert(cursor: Cursor): InsertStatement {
  const start = cursor.token;
  cursor.expectAll("insert", "into");
  const { name, schema, _location } = cursor.qname("a table");
  const alias = cursor.accept("as") ? cursor.name("an alias").name : undefined;
  const into: QNameAliased = { name, schema, alias, _location };
  const columns = cursor.is("(") && !beginsQuery(cursor) ? cursor.nameList("a column") : undefined;
  const insert = parseSourceOfInsert(cursor);
  const onConflict = cursor.is("on") ? parseConflict(cursor) : undefined;
  const returning = parseReturning(cursor);
  return {
    type: "insert",
    into,
    columns,
    insert,
    onConflict,
    returning,
    _location: cursor.since(start),
  };
}

function parseSourceOfInsert(cursor: Cursor): InsertStatement["insert"] {
  const start = cursor.token;
  if (cursor.acceptAll("default", "values")) {
    return { type: "default values", _location: cursor.since(start) };
  }
  if (cursor.is("values")) {
    const literals = parseLiteralValues(cursor);
    if (literals !== undefined) return literals;
  }
  if (!beginsQuery(cursor)) {
    cursor.couldBe("values", "select", "default", "with", "table");
    cursor.unexpected("VALUES or a query");
  }
  return parseQuery(cursor);
}

// VALUES of plain literals only, if they are too many for slots; else undefined and nothing taken.
function parseLiteralValues(cursor: Cursor): LiteralValuesStatement | undefined {
  const { kinds: tokenKinds, words, starts: tokenStarts } = cursor.tokens;
  if (tokenKinds.length - cursor.token < 2 * LIFTED_LITERALS_MAX || cursor.hasSlots)
    return undefined;
  const kinds: number[] = [];
  const texts: string[] = [];
  const starts: number[] = [];
  let columnCount = 0;
  let rowCount = 0;
  let at = cursor.token;
  do {
    at += 1;
    if (words[at] !== "(") return undefined;
    do {
      at += 1;
      const isNegative = words[at] === "-";
      starts.push(tokenStarts[at] ?? 0);
      if (isNegative) at += 1;
      const kind = cellKind(tokenKinds[at], words[at] ?? "");
      if (kind === -1) return undefined;
      if (isNegative && kind !== LiteralCell.integer && kind !== LiteralCell.numeric) {
        return undefined;
      }
      kinds.push(kind);
      texts.push(cellText(cursor, at, kind, isNegative));
      at += 1;
    } while (words[at] === ",");
    if (words[at] !== ")") return undefined;
    rowCount += 1;
    if (rowCount === 1) columnCount = kinds.length;
    if (kinds.length !== rowCount * columnCount) return undefined;
    at += 1;
  } while (words[at] === ",");
  if (kinds.length <= LIFTED_LITERALS_MAX || !endsValues(words[at], tokenKinds[at])) {
    return undefined;
  }
  const start = cursor.token;
  cursor.token = at;
  return {
    type: "literal values",
    rowCount,
    columnCount,
    kinds: Uint8Array.from(kinds),
    texts,
    starts: Int32Array.from(starts),
    _location: cursor.since(start),
  };
}

function cellKind(kind: number | undefined, word: string): number {
  switch (kind) {
    case Token.integer:
      return LiteralCell.integer;
    case Token.numeric:
      return LiteralCell.numeric;
    case Token.string:
    case Token.encodedString:
      return LiteralCell.string;
    default:
      break;
  }
  switch (word) {
    case "null":
      return LiteralCell.null;
    case "true":
      return LiteralCell.true;
    case "false":
      return LiteralCell.false;
    case "default":
      return LiteralCell.default;
    default:
      return -1;
  }
}

function cellText(cursor: Cursor, token: number, kind: number, isNegative: boolean): string {
  const { text, starts, ends, kinds } = cursor.tokens;
  const start = starts[token] ?? 0;
  const end = ends[token] ?? 0;
  switch (kind) {
    case LiteralCell.string:
      return kinds[token] === Token.string
        ? text.slice(start + 1, end - 1)
        : cursor.decode(start, end);
    case LiteralCell.integer:
      return (isNegative ? "-" : "") + integerText(text.slice(start, end));
    case LiteralCell.numeric:
      return (isNegative ? "-" : "") + numericText(text.slice(start, end));
    default:
      return "";
  }
}

// Anything else behind the list (ORDER BY, UNION, …) makes it an ordinary query.
function endsValues(word: string | undefined, kind: number | undefined): boolean {
  return (
    kind === Token.end || word === ";" || word === ")" || word === "on" || word === "returning"
  );
}

function parseConflict(cursor: Cursor): OnConflictAction {
  const start = cursor.token;
  cursor.expectAll("on", "conflict");
  const on = parseConflictTarget(cursor);
  cursor.expect("do");
  if (cursor.accept("nothing")) {
    return { on, do: "do nothing", where: undefined, _location: cursor.since(start) };
  }
  cursor.expectAll("update", "set");
  const sets = parseSets(cursor);
  const where = cursor.accept("where") ? cursor.grammar.expression(cursor) : undefined;
  return { on, do: { sets }, where, _location: cursor.since(start) };
}

function parseConflictTarget(cursor: Cursor): OnConflictAction["on"] {
  const start = cursor.token;
  if (cursor.acceptAll("on", "constraint")) {
    const constraint = cursor.name("a constraint");
    return { type: "on constraint", constraint, _location: cursor.since(start) };
  }
  if (!cursor.is("(")) return undefined;
  const exprs = cursor
    .nameList("a column")
    .map(({ name, _location }) => ({ type: "ref", name, _location }) as const);
  return { type: "on expr", exprs, _location: cursor.since(start) };
}

/** `c = e, (a, b) = (…)`. */
function parseSets(cursor: Cursor): SetStatement[] {
  const sets: SetStatement[] = [];
  do {
    if (cursor.is("(")) sets.push(...parseSetColumns(cursor));
    else {
      const start = cursor.token;
      const column = cursor.name("a column");
      cursor.expect("=");
      const value = cursor.grammar.expression(cursor);
      sets.push({ type: "set", column, value, _location: cursor.since(start) });
    }
  } while (cursor.accept(","));
  return sets;
}

function parseSetColumns(cursor: Cursor): SetStatement[] {
  const start = cursor.token;
  const columns = cursor.nameList("a column");
  cursor.expect("=");
  const at = cursor.start;
  const isRow = cursor.accept("row");
  const { expressions, isQuery } = parseParenthesised(cursor);
  const [first] = expressions;
  const _location = cursor.since(start);
  if (isQuery && !isRow && first !== undefined && isSelectNode(first)) {
    return [{ type: "set columns", columns, select: first, _location }];
  }
  if (expressions.length !== columns.length) {
    cursor.fail(
      `found ${expressions.length} values for ${columns.length} columns, expected as many`,
      at,
    );
  }
  return columns.flatMap((column, index): SetColumn[] => {
    const value = expressions[index];
    return value === undefined ? [] : [{ type: "set", column, value, _location }];
  });
}

function parseReturning(cursor: Cursor): SelectedColumn[] | undefined {
  return cursor.accept("returning") ? parseItems(cursor) : undefined;
}

/** `UPDATE …`, without WITH. */
export function parseUpdate(cursor: Cursor): UpdateStatement {
  const start = cursor.token;
  cursor.expect("update");
  const table = parseTarget(cursor, true);
  cursor.expect("set");
  const sets = parseSets(cursor);
  const from = cursor.accept("from") ? parseFromList(cursor) : undefined;
  const where = cursor.accept("where") ? cursor.grammar.expression(cursor) : undefined;
  const returning = parseReturning(cursor);
  return { type: "update", table, sets, from, where, returning, _location: cursor.since(start) };
}

/** `DELETE FROM …`, without WITH. */
export function parseDelete(cursor: Cursor): DeleteStatement {
  const start = cursor.token;
  cursor.expectAll("delete", "from");
  const from = parseTarget(cursor, false);
  const using = cursor.accept("using") ? parseFromList(cursor) : undefined;
  const where = cursor.accept("where") ? cursor.grammar.expression(cursor) : undefined;
  const returning = parseReturning(cursor);
  return { type: "delete", from, using, where, returning, _location: cursor.since(start) };
}

function parseTarget(cursor: Cursor, isUpdate: boolean): QNameAliased {
  const start = cursor.token;
  const { name, schema } = cursor.qname("a table");
  const alias = isUpdate && cursor.is("set") ? undefined : parseTargetAlias(cursor);
  return { name, schema, alias, _location: cursor.since(start) };
}
