/**
 * Parses INSERT, UPDATE and DELETE. A long VALUES list of plain literals is a single token, which
 * becomes a single compact node.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type DeleteStatement,
  type Expr,
  type InsertStatement,
  type OnConflictAction,
  type PartStep,
  type QName,
  type QNameAliased,
  type SelectedColumn,
  type SetColumn,
  type SetStatement,
  type TargetColumn,
  type TruncateStatement,
  type UpdateStatement,
} from "./ast/ast.ts";
import { isSelectNode } from "./ast/query_nodes.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor, Word } from "./cursor.ts";
import { parseFromList, parseTableName, parseTargetAlias } from "./from.ts";
import { parseParenthesised, parseSubscript } from "./primary.ts";
import { beginsQuery, parseQuery } from "./select.ts";
import { parseItems } from "./select_block.ts";
import { Token } from "./text/lexer.ts";

/** The keywords after a VALUES list that make the list part of a longer query. */
const QUERY_CONTINUATIONS: readonly Word[] = [
  "union",
  "intersect",
  "except",
  "order",
  "limit",
  "offset",
  "fetch",
];

/** Parses `INSERT INTO …`, after WITH if there is one. */
export function parseInsert(cursor: Cursor): InsertStatement {
  const start = cursor.token;
  cursor.expectAll("insert", "into");
  const { name, schema, _location } = cursor.qname("a table");
  const alias = cursor.accept("as") ? cursor.name("an alias").name : undefined;
  const into: QNameAliased = { name, schema, alias, _location };
  if (cursor.is("(") && isArgument(cursor.kindAhead(1))) refuseFunction(cursor, into);
  const columns = cursor.is("(") && !beginsQuery(cursor) ? parseTargetColumns(cursor) : undefined;
  const overriding = cursor.accept("overriding") ? cursor.expectOneOf("system", "user") : undefined;
  if (overriding !== undefined) cursor.expect("value");
  const insert = parseSourceOfInsert(cursor);
  const onConflict = cursor.is("on") ? parseConflict(cursor) : undefined;
  const returning = parseReturning(cursor);
  return {
    type: "insert",
    into,
    columns,
    insert,
    overriding,
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
  const list = isPartOfQuery(cursor) ? undefined : cursor.takeLiteralList("values");
  if (list !== undefined) {
    return { type: "literal values", ...list, _location: cursor.since(start) };
  }
  if (!beginsQuery(cursor)) {
    cursor.couldBe("values", "select", "default", "with", "table");
    cursor.unexpected("VALUES or a query");
  }
  return parseQuery(cursor);
}

/**
 * Whether the query continues after a VALUES list that the lexer has turned into a single token.
 */
function isPartOfQuery(cursor: Cursor): boolean {
  return QUERY_CONTINUATIONS.some((word) => cursor.isAhead(2, word));
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
  if (!cursor.accept("(")) return undefined;
  const exprs: Expr[] = [];
  do {
    exprs.push(cursor.grammar.expression(cursor));
    requireListed(cursor, exprs.length, "parts of a single key");
  } while (cursor.accept(","));
  cursor.expect(")");
  const where = cursor.accept("where") ? cursor.grammar.expression(cursor) : undefined;
  return { type: "on expr", exprs, where, _location: cursor.since(start) };
}

/** Parses the assignments of a SET clause: `c = e, (a, b) = (…)`. */
export function parseSets(cursor: Cursor): SetStatement[] {
  const sets: SetStatement[] = [];
  do {
    if (cursor.is("(")) sets.push(...parseSetColumns(cursor));
    else {
      const start = cursor.token;
      const column = parseTargetColumn(cursor);
      cursor.expect("=");
      const value = cursor.grammar.expression(cursor);
      sets.push({ type: "set", column, value, _location: cursor.since(start) });
    }
    requireListed(cursor, sets.length, "columns in a single SET");
  } while (cursor.accept(","));
  return sets;
}

/** Parses a parenthesised list of target columns: `(c, c[1], c.field)`. */
export function parseTargetColumns(cursor: Cursor): TargetColumn[] {
  cursor.expect("(");
  const columns: TargetColumn[] = [];
  do {
    columns.push(parseTargetColumn(cursor));
    requireListed(cursor, columns.length, "names in one list");
  } while (cursor.accept(","));
  cursor.expect(")");
  return columns;
}

/** Parses a target column, or a part of a column: `c`, `c[1]`, `c.field`, `c[1].field[2:3]`. */
function parseTargetColumn(cursor: Cursor): TargetColumn {
  const column = cursor.name("a column");
  const part: PartStep[] = [];
  for (;;) {
    const start = cursor.token;
    if (cursor.is("[")) part.push(parseSubscript(cursor));
    else if (cursor.accept(".")) {
      const { name } = cursor.label("a field");
      part.push({ type: "field step", name, _location: cursor.since(start) });
    } else return part.length === 0 ? column : { ...column, part };
    requireListed(cursor, part.length, "subscripts and fields in a single assignment target");
  }
}

function parseSetColumns(cursor: Cursor): SetStatement[] {
  const start = cursor.token;
  const columns = parseTargetColumns(cursor);
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
      `found ${expressions.length} values for ${columns.length} columns, but the two numbers ` +
        "must be equal",
      at,
    );
  }
  return columns.flatMap((column, index): SetColumn[] => {
    const value = expressions[index];
    return value === undefined ? [] : [{ type: "set", column, value, _location }];
  });
}

export function parseReturning(cursor: Cursor): SelectedColumn[] | undefined {
  return cursor.accept("returning") ? parseItems(cursor) : undefined;
}

/** Parses `UPDATE …`, after WITH if there is one. */
export function parseUpdate(cursor: Cursor): UpdateStatement {
  const start = cursor.token;
  cursor.expect("update");
  const table = parseTarget(cursor, true);
  cursor.expect("set");
  const sets = parseSets(cursor);
  const from = cursor.accept("from") ? parseFromList(cursor) : undefined;
  const where = parseChangeWhere(cursor);
  const returning = parseReturning(cursor);
  return { type: "update", table, sets, from, ...where, returning, _location: cursor.since(start) };
}

/** Parses `WHERE condition` or `WHERE CURRENT OF cursor`. */
function parseChangeWhere(cursor: Cursor): Pick<UpdateStatement, "currentOf" | "where"> {
  if (!cursor.accept("where")) return {};
  if (cursor.acceptAll("current", "of")) return { currentOf: cursor.name("a cursor") };
  return { where: cursor.grammar.expression(cursor) };
}

/** Parses `DELETE FROM …`, after WITH if there is one. */
export function parseDelete(cursor: Cursor): DeleteStatement {
  const start = cursor.token;
  cursor.expectAll("delete", "from");
  const from = parseTarget(cursor, false);
  const using = cursor.accept("using") ? parseFromList(cursor) : undefined;
  const where = parseChangeWhere(cursor);
  const returning = parseReturning(cursor);
  return { type: "delete", from, using, ...where, returning, _location: cursor.since(start) };
}

/** Parses `TRUNCATE [TABLE] [ONLY] t [*], … [RESTART | CONTINUE IDENTITY] [CASCADE | RESTRICT]`. */
export function parseTruncate(cursor: Cursor, start: number): TruncateStatement {
  cursor.expect("truncate");
  cursor.accept("table");
  const tables: QName[] = [];
  do {
    tables.push(parseTableName(cursor));
    requireListed(cursor, tables.length, "tables in a single TRUNCATE");
  } while (cursor.accept(","));
  const identity = cursor.acceptOneOf("restart", "continue");
  if (identity !== undefined) cursor.expect("identity");
  const behaviour = cursor.acceptOneOf("cascade", "restrict");
  return {
    type: "truncate",
    tables,
    restart: identity === "restart" ? true : undefined,
    cascade: behaviour === "cascade" ? true : undefined,
    _location: cursor.since(start),
  };
}

export function parseTarget(cursor: Cursor, isUpdate: boolean): QNameAliased {
  const start = cursor.token;
  const { name, only, schema } = parseTableName(cursor);
  if (cursor.is("(")) refuseFunction(cursor, { name, schema, _location: cursor.since(start) });
  const alias = isUpdate && cursor.is("set") ? undefined : parseTargetAlias(cursor);
  return { name, schema, only, alias, _location: cursor.since(start) };
}

/**
 * Whether a token is a constant or a parameter. A list that contains such a token is not a list of
 * column names.
 */
function isArgument(kind: number): boolean {
  return kind > Token.quoted && kind < Token.symbol;
}

function refuseFunction(cursor: Cursor, { name, _location }: QNameAliased): never {
  throw new DatabaseError(
    "READ_ONLY_OBJECT",
    `Cannot write to ${name}(…): it is a function, not a table`,
    {
      position: _location.start,
      statementIndex: cursor.statementIndex,
    },
  );
}
