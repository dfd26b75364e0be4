/**
 * Parses queries: WITH, blocks, VALUES, TABLE, set operations, ORDER BY and LIMIT.
 */
import {
  type CycleClause,
  type Expr,
  type LimitStatement,
  LiteralCell,
  type LockStrength,
  type Name,
  type QName,
  type QueryStatement,
  type SearchClause,
  type SelectFromStatement,
  type SelectFromUnion,
  type SelectStatement,
  type Statement,
  type ValuesStatement,
  type WithBinding,
  type WithStatement,
} from "./ast/ast.ts";
import { isQueryNode } from "./ast/query_nodes.ts";
import { countQuery, requireListed } from "./bounds.ts";
import { parseOrderBy } from "./calls.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { startsQuery } from "./primary.ts";
import { emptySelect, parseSelect } from "./select_block.ts";
import { SetChain } from "./set_chain.ts";
import { Token } from "./text/lexer.ts";
import { valuesOfLiterals } from "./text/literal_nodes.ts";

/** Parses `[WITH …] body [ORDER BY …] [LIMIT …]`. */
export function parseQuery(cursor: Cursor): SelectStatement {
  const start = cursor.token;
  if (!cursor.is("with")) return parseUnprefixedQuery(cursor);
  const { type, bind } = parseWith(cursor);
  const inner = parseUnprefixedQuery(cursor);
  return { type, bind, in: inner, _location: cursor.since(start) };
}

/** Parses a query without WITH. */
export function parseUnprefixedQuery(cursor: Cursor): SelectStatement {
  const start = cursor.token;
  return parseQueryRest(cursor, parseBlock(cursor), start);
}

/** Parses the part of a query that follows its first block. */
export function parseQueryRest(
  cursor: Cursor,
  first: SelectStatement,
  start: number,
): SelectStatement {
  const chain = new SetChain(cursor, parseIntersections(cursor, first, start), start);
  for (;;) {
    const word = cursor.acceptOneOf("union", "except");
    if (word === undefined) break;
    const isAll = parseAll(cursor);
    const token = cursor.token;
    const right = parseIntersections(cursor, parseBlock(cursor), token);
    chain.add(isAll ? `${word} all` : word, right, token);
  }
  return parseTail(cursor, chain.query(), start);
}

function parseIntersections(
  cursor: Cursor,
  first: SelectStatement,
  start: number,
): SelectStatement {
  const chain = new SetChain(cursor, first, start);
  while (cursor.accept("intersect")) {
    const isAll = parseAll(cursor);
    const token = cursor.token;
    chain.add(isAll ? "intersect all" : "intersect", parseBlock(cursor), token);
  }
  return chain.query();
}

function parseAll(cursor: Cursor): boolean {
  return cursor.acceptOneOf("all", "distinct") === "all";
}

/** Parses `SELECT … [FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE …]` as a statement. */
export function parseLockable(cursor: Cursor, start: number): Statement {
  cursor.lockableStart = start;
  const query = parseUnprefixedQuery(cursor);
  cursor.lockableStart = undefined;
  if (!cursor.is("for")) return query;
  const isLocking = LOCKING_CLAUSES.some(([word]) => cursor.isAhead(1, word));
  if (!isLocking) return query;
  const clause = cursor.start;
  cursor.expect("for");
  const strength = parseStrength(cursor);
  const of = cursor.accept("of") ? cursor.names("a table") : [];
  const wait = cursor.accept("nowait")
    ? "nowait"
    : cursor.acceptAll("skip", "locked")
      ? "skip locked"
      : undefined;
  const isPlain =
    query.type === "select" &&
    (query.distinct === undefined || query.distinct === "all") &&
    [query.groupBy, query.having, query.windows].every((part) => part === undefined);
  if (!isPlain) {
    cursor.fail(
      "FOR UPDATE, FOR SHARE and similar clauses are allowed only in a SELECT without " +
        "DISTINCT, GROUP BY and UNION",
      clause,
    );
  }
  if (cursor.is("for")) cursor.refuse("a second locking clause", "list all tables in a single OF");
  return { type: "select for", query, strength, of, wait, _location: cursor.since(start) };
}

function parseStrength(cursor: Cursor): LockStrength {
  switch (cursor.expectOneOf("update", "no", "share", "key")) {
    case "update":
      return "update";
    case "share":
      return "share";
    case "no":
      cursor.expectAll("key", "update");
      return "no key update";
    case "key":
      cursor.expect("share");
      return "key share";
  }
}

// Rejects a locking clause where it is not allowed. If FOR is followed by any other word, the
// parser reports that word at the end of the statement.
function refuseLocking(cursor: Cursor): void {
  const found = LOCKING_CLAUSES.find(([word]) => cursor.isAhead(1, word));
  if (found === undefined) return;
  cursor.refuse(`${found[1]} here`, "only the outermost SELECT in a statement can lock rows");
}

const LOCKING_CLAUSES = [
  ["update", "FOR UPDATE"],
  ["no", "FOR NO KEY UPDATE"],
  ["share", "FOR SHARE"],
  ["key", "FOR KEY SHARE"],
] as const;

// Parses ORDER BY and LIMIT, which belong to the whole query. As in PostgreSQL, they are added to
// a parenthesised query before them: `(SELECT … LIMIT 1) ORDER BY a` sorts before it applies the
// LIMIT.
function parseTail(cursor: Cursor, query: SelectStatement, start: number): SelectStatement {
  const at = cursor.start;
  const orderBy = cursor.is("order") ? parseOrderBy(cursor) : undefined;
  const limit = parseLimit(cursor);
  if (cursor.is("for") && start !== cursor.lockableStart) refuseLocking(cursor);
  if (orderBy === undefined && limit === undefined) return query;
  const target = tailOwner(query);
  if (orderBy !== undefined) {
    if (target.orderBy !== undefined) cursor.fail("the query has two ORDER BY clauses", at);
    target.orderBy = orderBy;
  }
  if (limit !== undefined) {
    if (target.limit !== undefined) cursor.fail("the query has two LIMIT clauses", at);
    target.limit = limit;
  }
  if (target === query) target._location = cursor.since(start);
  return query;
}

type TailOwner = SelectFromStatement | SelectFromUnion | ValuesStatement;

// Returns the part of a query to which its ORDER BY and LIMIT belong. Inside a WITH, this part is
// never a change.
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
      cursor.fail(
        `found a second ${word.toUpperCase()}, but the number of rows can be limited only once`,
        at,
      );
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

/** Parses `WITH [RECURSIVE] a AS (…), …`. */
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
  const alias = cursor.name("the name of a CTE");
  const columnNames = cursor.is("(") ? cursor.nameList("a column") : undefined;
  cursor.expect("as");
  const isNot = cursor.accept("not");
  let materialized: boolean | undefined;
  if (isNot) cursor.expect("materialized");
  if (isNot || cursor.accept("materialized")) materialized = !isNot;
  const outer = cursor.enter();
  cursor.expect("(");
  const statement = parseEntry(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  const search = cursor.is("search") ? parseSearch(cursor) : undefined;
  const cycle = cursor.is("cycle") ? parseCycle(cursor) : undefined;
  const _location = cursor.since(start);
  return { alias, columnNames, materialized, statement, search, cycle, _location };
}

function parseSearch(cursor: Cursor): SearchClause {
  const start = cursor.token;
  cursor.expect("search");
  const order = cursor.expectOneOf<SearchClause["order"]>("depth", "breadth");
  cursor.expectAll("first", "by");
  const by = cursor.names("a column");
  cursor.expect("set");
  return { order, by, set: cursor.name("a column"), _location: cursor.since(start) };
}

function parseCycle(cursor: Cursor): CycleClause {
  const start = cursor.token;
  cursor.expect("cycle");
  const columns = cursor.names("a column");
  cursor.expect("set");
  const mark = cursor.name("a column");
  const hasValues = cursor.accept("to");
  const value = hasValues ? cursor.grammar.expression(cursor) : undefined;
  if (hasValues) cursor.expect("default");
  const otherwise = hasValues ? cursor.grammar.expression(cursor) : undefined;
  cursor.expect("using");
  const path = cursor.name("a column");
  return { columns, mark, value, otherwise, path, _location: cursor.since(start) };
}

/**
 * Parses a query or a statement that changes rows, as an entry of WITH. The binder decides whether
 * a change is allowed in this place.
 */
function parseEntry(cursor: Cursor): QueryStatement {
  if (!cursor.beginsChange && !cursor.is("with")) return parseQuery(cursor);
  const statement = cursor.grammar.statement(cursor);
  return isQueryNode(statement) ? statement : cursor.unexpected("a query");
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

// Parses `VALUES (…), …`.
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
  // The rows of VALUES are bound step by step, so only the expressions of a single row count
  // towards the limit.
  const { parts } = cursor.counts;
  do {
    cursor.counts.parts = parts;
    cursor.expect("(");
    const row = [cursor.grammar.expression(cursor)];
    while (cursor.accept(",")) {
      row.push(cursor.grammar.expression(cursor));
      requireListed(cursor, row.length, "values in a single row");
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
  const node = allRowsOf({ name, schema, _location: cursor.since(token) });
  node._location = cursor.since(start);
  return node;
}

/** Returns the query `SELECT * FROM name`. */
function allRowsOf({ _location, name, schema }: QName): Mutable<SelectFromStatement> {
  const node = emptySelect();
  node.columns = [{ expr: { type: "ref", name: "*", star: true, _location }, _location }];
  node.from = [{ type: "table", name: { name, schema, _location }, join: undefined, _location }];
  node._location = _location;
  return node;
}

/** Returns the query `WITH RECURSIVE name (columnNames) AS (statement) SELECT * FROM name`. */
export function recursiveQuery(
  { _location, name }: Name,
  columnNames: readonly Name[],
  statement: SelectStatement,
): WithStatement {
  const bind = [{ alias: { name, _location }, columnNames, statement, _location }];
  return { type: "with recursive", bind, in: allRowsOf({ name, _location }), _location };
}

/** Whether the next token begins a query, with or without parentheses. */
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
