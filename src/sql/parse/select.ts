/**
 * Queries: WITH, blocks, VALUES, TABLE, set operations, ORDER BY and LIMIT.
 */
import {
  type Expr,
  type LimitStatement,
  LiteralCell,
  type SelectFromStatement,
  type SelectFromUnion,
  type SelectStatement,
  type ValuesStatement,
  type WithBinding,
} from "./ast/ast.ts";
import { countQuery, requireListed } from "./bounds.ts";
import { parseOrderBy } from "./calls.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { startsQuery } from "./primary.ts";
import { emptySelect, parseSelect } from "./select_block.ts";
import { Token } from "./text/lexer.ts";
import { valuesOfLiterals } from "./text/literal_nodes.ts";

/** `[WITH …] body [ORDER BY …] [LIMIT …]`. */
export function parseQuery(cursor: Cursor): SelectStatement {
  const start = cursor.token;
  if (!cursor.is("with")) return parseUnprefixedQuery(cursor);
  const { type, bind } = parseWith(cursor);
  const inner = parseUnprefixedQuery(cursor);
  return { type, bind, in: inner, _location: cursor.since(start) };
}

/** A query without WITH. */
export function parseUnprefixedQuery(cursor: Cursor): SelectStatement {
  const start = cursor.token;
  return parseQueryRest(cursor, parseBlock(cursor), start);
}

/** What may follow the first block of a query. */
export function parseQueryRest(
  cursor: Cursor,
  first: SelectStatement,
  start: number,
): SelectStatement {
  let left = parseIntersections(cursor, first, start);
  for (;;) {
    const word = cursor.acceptOneOf("union", "except");
    if (word === undefined) break;
    const isAll = parseAll(cursor);
    const token = cursor.token;
    const right = parseIntersections(cursor, parseBlock(cursor), token);
    left = combined(cursor, start, { type: isAll ? `${word} all` : word, left, right });
  }
  return parseTail(cursor, left, start);
}

function parseIntersections(
  cursor: Cursor,
  first: SelectStatement,
  start: number,
): SelectStatement {
  let left = first;
  while (cursor.accept("intersect")) {
    const isAll = parseAll(cursor);
    const right = parseBlock(cursor);
    left = combined(cursor, start, { type: isAll ? "intersect all" : "intersect", left, right });
  }
  return left;
}

function parseAll(cursor: Cursor): boolean {
  return cursor.acceptOneOf("all", "distinct") === "all";
}

function combined(
  cursor: Cursor,
  start: number,
  parts: Pick<SelectFromUnion, "type" | "left" | "right">,
): SelectFromUnion {
  cursor.setDepth(cursor.depthMax + 1);
  return { ...parts, orderBy: undefined, limit: undefined, _location: cursor.since(start) };
}

// Anything else behind FOR is no locking clause, and is found where the statement should end.
function refuseLocking(cursor: Cursor): void {
  const found = LOCKING_CLAUSES.find(([word]) => cursor.isAhead(1, word));
  if (found === undefined) return;
  cursor.refuse(found[1], "a transaction that loses a conflict fails and may be sent again");
}

const LOCKING_CLAUSES = [
  ["update", "FOR UPDATE"],
  ["no", "FOR NO KEY UPDATE"],
  ["share", "FOR SHARE"],
  ["key", "FOR KEY SHARE"],
] as const;

// ORDER BY and LIMIT belong to the whole. Behind parentheses they add to what stands inside, as in
// PostgreSQL: `(SELECT … LIMIT 1) ORDER BY a` sorts first.
function parseTail(cursor: Cursor, query: SelectStatement, start: number): SelectStatement {
  const at = cursor.start;
  const orderBy = cursor.is("order") ? parseOrderBy(cursor) : undefined;
  const limit = parseLimit(cursor);
  if (cursor.is("for")) refuseLocking(cursor);
  if (orderBy === undefined && limit === undefined) return query;
  const target = tailOwner(query);
  if (orderBy !== undefined) {
    if (target.orderBy !== undefined) cursor.fail("a query has two ORDER BY clauses", at);
    target.orderBy = orderBy;
  }
  if (limit !== undefined) {
    if (target.limit !== undefined) cursor.fail("a query has two LIMIT clauses", at);
    target.limit = limit;
  }
  if (target === query) target._location = cursor.since(start);
  return query;
}

type TailOwner = SelectFromStatement | SelectFromUnion | ValuesStatement;

// A query that the parser made in parentheses holds no DML behind its WITH.
function tailOwner(query: SelectStatement): Mutable<TailOwner> {
  return "in" in query ? tailOwner(query.in as SelectStatement) : query;
}

function parseLimit(cursor: Cursor): LimitStatement | undefined {
  const start = cursor.token;
  const made: Mutable<LimitStatement> = {
    limit: undefined,
    offset: undefined,
    withTies: undefined,
    _location: { start: 0, end: 0 },
  };
  let hasLimit = false;
  let hasOffset = false;
  for (;;) {
    const at = cursor.start;
    const word = cursor.acceptOneOf("limit", "offset", "fetch");
    if (word === undefined) break;
    if (word === "offset" ? hasOffset : hasLimit) {
      cursor.fail(`found a second ${word.toUpperCase()}, expected one row limit`, at);
    }
    if (word === "offset") {
      hasOffset = true;
      made.offset = cursor.grammar.expression(cursor);
      cursor.acceptOneOf("row", "rows");
    } else {
      hasLimit = true;
      if (word === "fetch") parseFetch(cursor, made);
      else if (!cursor.accept("all")) made.limit = cursor.grammar.expression(cursor);
    }
  }
  if (!hasLimit && !hasOffset) return undefined;
  made._location = cursor.since(start);
  return made;
}

function parseFetch(cursor: Cursor, made: Mutable<LimitStatement>): void {
  cursor.expectOneOf("first", "next");
  const token = cursor.token;
  if (cursor.is("row") || cursor.is("rows")) {
    const { start } = cursor;
    made.limit = { type: "integer", value: 1, text: "1", _location: { start, end: start } };
  } else {
    made.limit = cursor.grammar.expression(cursor);
  }
  if (cursor.token === token) cursor.couldBe("row", "rows");
  cursor.expectOneOf("row", "rows");
  if (cursor.accept("only")) return;
  cursor.expectAll("with", "ties");
  made.withTies = true;
}

/** `WITH [RECURSIVE] a AS (…), …`. */
export function parseWith(cursor: Cursor): {
  readonly type: "with" | "with recursive";
  readonly bind: readonly WithBinding[];
} {
  cursor.expect("with");
  const type = cursor.accept("recursive") ? "with recursive" : "with";
  const bind = [parseBinding(cursor)];
  while (cursor.accept(",")) bind.push(parseBinding(cursor));
  return { type, bind };
}

function parseBinding(cursor: Cursor): WithBinding {
  const start = cursor.token;
  const alias = cursor.name("a name of a CTE");
  const columnNames = cursor.is("(") ? cursor.nameList("a column") : undefined;
  cursor.expect("as");
  const isNot = cursor.accept("not");
  let materialized: boolean | undefined;
  if (isNot) cursor.expect("materialized");
  if (isNot || cursor.accept("materialized")) materialized = !isNot;
  const outer = cursor.enter();
  cursor.expect("(");
  if (cursor.is("insert") || cursor.is("update") || cursor.is("delete")) {
    cursor.refuse(`${cursor.word.toUpperCase()} in a CTE`, "send it as a statement of its own");
  }
  const statement = parseQuery(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  if (cursor.is("search") || cursor.is("cycle")) {
    cursor.refuse(`${cursor.word.toUpperCase()} of a recursive CTE`);
  }
  return { alias, columnNames, materialized, statement, _location: cursor.since(start) };
}

function parseBlock(cursor: Cursor): SelectStatement {
  switch (cursor.word) {
    case "select":
      return parseSelect(cursor);
    case "values":
      return parseValues(cursor);
    case "table":
      return parseTableQuery(cursor);
    case "(": {
      const outer = cursor.enter();
      cursor.expect("(");
      const query = parseQuery(cursor);
      cursor.expect(")");
      cursor.leave(outer);
      return query;
    }
    default:
      cursor.couldBe("select", "values", "table", "with");
      return cursor.unexpected("SELECT, VALUES or another query");
  }
}

// `VALUES (…), …`.
function parseValues(cursor: Cursor): ValuesStatement {
  const start = cursor.token;
  countQuery(cursor);
  const literals = cursor.takeLiteralList("values");
  if (literals !== undefined) {
    if (literals.kinds.includes(LiteralCell.default)) cursor.unexpected("an expression");
    cursor.setDepth(1);
    return valuesOfLiterals(literals, cursor.since(start));
  }
  cursor.expect("values");
  const values: Expr[][] = [];
  // Rows are bound in steps, so only the parts of one row count.
  const { parts } = cursor.counts;
  do {
    cursor.counts.parts = parts;
    cursor.expect("(");
    const row = [cursor.grammar.expression(cursor)];
    while (cursor.accept(",")) {
      row.push(cursor.grammar.expression(cursor));
      requireListed(cursor, row.length, "values in one row");
    }
    cursor.expect(")");
    values.push(row);
  } while (cursor.accept(","));
  return {
    type: "values",
    values,
    orderBy: undefined,
    limit: undefined,
    _location: cursor.since(start),
  };
}

function parseTableQuery(cursor: Cursor): SelectFromStatement {
  const start = cursor.token;
  cursor.expect("table");
  const token = cursor.token;
  const { name, schema } = cursor.qname("a table");
  const _location = cursor.since(token);
  const node = emptySelect();
  node.columns = [{ expr: { type: "ref", name: "*", star: true, _location }, _location }];
  node.from = [{ type: "table", name: { name, schema, _location }, join: undefined, _location }];
  node._location = cursor.since(start);
  return node;
}

/** Whether a query begins here, in parentheses or not. */
export function beginsQuery(cursor: Cursor): boolean {
  let count = 0;
  while (cursor.isAhead(count, "(")) count += 1;
  if (count === 0) return startsQuery(cursor);
  const word = cursor.wordAhead(count);
  if (word === "values") {
    return cursor.isAhead(count + 1, "(") || cursor.kindAhead(count + 1) === Token.literalList;
  }
  return word === "select" || word === "with" || word === "table";
}
