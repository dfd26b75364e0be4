/**
 * Parses FROM: tables, subqueries, table functions and joins.
 *
 * The result is a flat list, as the syntax tree requires: each joined item says how it is joined
 * with all items before it. Only a join that is itself an operand of another join (`a JOIN (b JOIN
 * c ON …) ON …`) becomes a group.
 */
import { defined } from "../../base/assert.ts";
import type {
  ColumnDefinition,
  Expr,
  From,
  FromCall,
  FromRows,
  FromStatement,
  FromTable,
  JoinClause,
  Name,
  QName,
  SelectStatement,
  TableAliasName,
  TableSample,
} from "./ast/ast.ts";
import { countSource, requireListed } from "./bounds.ts";
import { parseCall } from "./calls.ts";
import { parseCollatedType } from "./collations.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { startsQuery } from "./primary.ts";
import { Token } from "./text/lexer.ts";
import { parseXmlTable } from "./xml.ts";

/** Parses the comma-separated items of FROM into one list. */
export function parseFromList(cursor: Cursor): From[] {
  return withOwnCount(cursor, () => {
    const items = parseFrom(cursor);
    while (cursor.accept(",")) items.push(...parseFrom(cursor));
    return items;
  });
}

/** Parses one FROM item with its joins, up to the next comma. */
export function parseFromItem(cursor: Cursor): From[] {
  return withOwnCount(cursor, () => parseFrom(cursor));
}

/** Parses a FROM whose tables are counted separately from those of the enclosing FROM. */
function withOwnCount(cursor: Cursor, parse: () => From[]): From[] {
  const { counts } = cursor;
  const around = counts.sources;
  counts.sources = 0;
  const items = parse();
  counts.sources = around;
  return items;
}

function parseFrom(cursor: Cursor): From[] {
  const items = parseSource(cursor);
  while (isJoin(cursor)) items.push(parseJoin(cursor));
  return items;
}

function isJoin(cursor: Cursor): boolean {
  if (cursor.isExplaining) cursor.couldBe("join", "left", "right", "inner", "cross", "full");
  switch (cursor.word) {
    case "join":
    case "inner":
    case "left":
    case "right":
    case "full":
    case "cross":
    case "natural":
      return true;
    default:
      return false;
  }
}

function parseJoin(cursor: Cursor): From {
  const start = cursor.token;
  if (cursor.accept("cross")) {
    cursor.expect("join");
    const item = grouped(cursor, parseSource(cursor));
    return joined(item, { type: "CROSS JOIN", _location: cursor.since(start) });
  }
  const natural = cursor.accept("natural") ? true : undefined;
  const type = parseJoinKind(cursor);
  if (natural) {
    const item = grouped(cursor, parseSource(cursor));
    return joined(item, { type, natural, _location: cursor.since(start) });
  }
  const outer = cursor.enter();
  const item = grouped(cursor, parseFrom(cursor));
  cursor.leave(outer);
  if (cursor.accept("using")) {
    const using = cursor.nameList("a column");
    // The alias of USING requires AS, because a bare name would begin a different clause.
    const usingAlias = cursor.accept("as") ? cursor.name("an alias") : undefined;
    return joined(item, { type, using, usingAlias, _location: cursor.since(start) });
  }
  cursor.expect("on");
  const on = cursor.grammar.expression(cursor);
  return joined(item, { type, on, _location: cursor.since(start) });
}

function parseJoinKind(cursor: Cursor): JoinClause["type"] {
  const kind = cursor.acceptOneOf("inner", "left", "right", "full");
  if (kind !== undefined && kind !== "inner") cursor.accept("outer");
  cursor.expect("join");
  switch (kind) {
    case "left":
      return "LEFT JOIN";
    case "right":
      return "RIGHT JOIN";
    case "full":
      return "FULL JOIN";
    default:
      return "INNER JOIN";
  }
}

function joined(item: Mutable<From>, join: JoinClause): From {
  item.join = join;
  return item;
}

// Combines several FROM items into a single operand of a join.
function grouped(cursor: Cursor, items: readonly From[]): From {
  const first = defined(items[0], "parser: FROM clause has no items, but no error was raised");
  if (items.length === 1) return first;
  const _location = { start: first._location.start, end: cursor.end };
  return { type: "from group", from: items, join: undefined, _location };
}

function parseSource(cursor: Cursor): From[] {
  const start = cursor.token;
  if (cursor.accept("lateral")) {
    const item = cursor.is("(")
      ? parseSubquery(cursor, start)
      : isRowsFrom(cursor)
        ? parseRowsFrom(cursor, start)
        : parseTableFunction(cursor, start);
    item.lateral = true;
    return [item];
  }
  if (cursor.is("(")) return parseParenthesisedSource(cursor);
  if (isRowsFrom(cursor)) return [parseRowsFrom(cursor, start)];
  const dot = cursor.isAhead(1, ".") ? 2 : 0;
  if (cursor.isAhead(dot + 1, "(") && cursor.isFunctionName()) {
    return [parseTableFunction(cursor, start)];
  }
  return [parseTable(cursor)];
}

function parseTable(cursor: Cursor): FromTable {
  const start = cursor.token;
  countSource(cursor);
  const { name, only, schema } = parseTableName(cursor);
  let systemTime: FromTable["systemTime"];
  if (cursor.is("for") && cursor.isAhead(1, "system_time")) {
    cursor.expectAll("for", "system_time", "as", "of");
    systemTime = cursor.grammar.expression(cursor);
  }
  const alias = parseAlias(cursor);
  const columnNames = alias === undefined ? undefined : parseColumnAliases(cursor);
  const sample = acceptSample(cursor);
  const _location = cursor.since(start);
  return {
    type: "table",
    name: { name, schema, only, alias: alias?.name, columnNames, _location },
    join: undefined,
    systemTime,
    ...(sample === undefined ? {} : { sample }),
    _location,
  };
}

/** Parses `TABLESAMPLE method ( percentage ) [REPEATABLE ( seed )]`. */
function acceptSample(cursor: Cursor): TableSample | undefined {
  const start = cursor.token;
  if (!cursor.accept("tablesample")) return undefined;
  const method = parseSampleMethod(cursor);
  const percentage = parseParenthesised(cursor);
  const seed = cursor.accept("repeatable") ? parseParenthesised(cursor) : undefined;
  return { method, percentage, seed, _location: cursor.since(start) };
}

function parseSampleMethod(cursor: Cursor): TableSample["method"] {
  if (cursor.isName()) {
    const { name } = cursor.takeName();
    if (name === "bernoulli" || name === "system") return name;
    cursor.token -= 1;
  }
  return cursor.unexpected("BERNOULLI or SYSTEM");
}

function parseParenthesised(cursor: Cursor): Expr {
  const outer = cursor.enter();
  cursor.expect("(");
  const expression = cursor.grammar.expression(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return expression;
}

/** Parses `[ONLY] t [*]`. The `*` has no effect, because there is no table inheritance. */
export function parseTableName(cursor: Cursor): QName {
  const isOnly = cursor.accept("only");
  const isEnclosed = isOnly && cursor.accept("(");
  const name = cursor.qname("a table");
  if (isEnclosed) cursor.expect(")");
  else if (!isOnly) cursor.accept("*");
  return isOnly ? { ...name, only: true } : name;
}

/** Parses `[AS] name` after a table or subquery. */
function parseAlias(cursor: Cursor): Name | undefined {
  if (cursor.accept("as")) return cursor.name("an alias");
  if (!cursor.isName() || !isAliasWord(cursor)) return undefined;
  cursor.noteAlias();
  return cursor.takeName();
}

// Whether the next word, which can be a name, is an alias here rather than the start of a clause.
function isAliasWord(cursor: Cursor): boolean {
  switch (cursor.word) {
    case "qualify":
      return false;
    case "options":
      return !(cursor.optionsEndQuery && cursor.isAhead(1, "("));
    default:
      return true;
  }
}

/** Parses `[AS] name` after the target of UPDATE and DELETE. */
export function parseTargetAlias(cursor: Cursor): string | undefined {
  return parseAlias(cursor)?.name;
}

function parseColumnAliases(cursor: Cursor): Name[] | undefined {
  return cursor.is("(") ? cursor.nameList("a column alias") : undefined;
}

function parseSubquery(cursor: Cursor, start: number): Mutable<FromStatement> {
  const outer = cursor.enter();
  cursor.expect("(");
  const query = cursor.grammar.query(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return finishSubquery(cursor, start, query);
}

function finishSubquery(
  cursor: Cursor,
  start: number,
  statement: SelectStatement,
): Mutable<FromStatement> {
  countSource(cursor);
  const alias = parseAlias(cursor);
  const columnNames = alias === undefined ? undefined : parseColumnAliases(cursor);
  return {
    type: "statement",
    statement,
    alias: alias?.name,
    columnNames,
    lateral: undefined,
    join: undefined,
    _location: cursor.since(start),
  };
}

// Parses `( query ) alias`, or a parenthesised join.
function parseParenthesisedSource(cursor: Cursor): From[] {
  const start = cursor.token;
  const content = parseSourceContent(cursor);
  if (!Array.isArray(content)) return [finishSubquery(cursor, start, content)];
  return finishJoin(cursor, start, content);
}

// Parses the text after a parenthesised join. With an alias, the join becomes a single item.
function finishJoin(cursor: Cursor, start: number, from: From[]): From[] {
  const alias = parseAlias(cursor)?.name;
  if (alias === undefined) return from;
  const columnNames = parseColumnAliases(cursor);
  const _location = cursor.since(start);
  return [{ type: "from group", from, alias, columnNames, join: undefined, _location }];
}

// Parses the contents of parentheses in FROM: a query, or the items of a join.
function parseSourceContent(cursor: Cursor): SelectStatement | From[] {
  const outer = cursor.enter();
  cursor.expect("(");
  const content = startsQuery(cursor)
    ? cursor.grammar.query(cursor)
    : cursor.is("(")
      ? parseNestedContent(cursor)
      : parseFrom(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return content;
}

// Parses nested parentheses in FROM. `((SELECT …) UNION …)`, `((SELECT …) a JOIN …)` and `((a JOIN
// …) JOIN …)` all begin with two opening parentheses.
function parseNestedContent(cursor: Cursor): SelectStatement | From[] {
  const start = cursor.token;
  const content = parseSourceContent(cursor);
  let items: From[];
  if (Array.isArray(content)) {
    items = finishJoin(cursor, start, content);
  } else {
    if (cursor.is(")")) return content;
    const rest = cursor.grammar.queryRest(cursor, content, start);
    if (rest !== content || cursor.is(")")) return rest;
    items = [finishSubquery(cursor, start, content)];
  }
  while (isJoin(cursor)) items.push(parseJoin(cursor));
  return items;
}

function parseFunctionName(cursor: Cursor): QName {
  const start = cursor.token;
  if (!cursor.isFunctionName()) cursor.unexpected("a function");
  const first = cursor.takeName();
  if (!cursor.accept(".")) return first;
  const second = cursor.label("a function");
  return { name: second.name, schema: first.name, _location: cursor.since(start) };
}

function isRowsFrom(cursor: Cursor): boolean {
  return cursor.isAhead(0, "rows") && cursor.isAhead(1, "from") && cursor.isAhead(2, "(");
}

// Parses `ROWS FROM ( f(…) [AS (a INT, …)], … ) [WITH ORDINALITY] [[AS] alias [( columns )]]`.
function parseRowsFrom(cursor: Cursor, start: number): Mutable<FromRows> {
  const outer = cursor.enter();
  cursor.token += 3;
  const calls: FromCall[] = [];
  do {
    const call = parseCall(cursor, cursor.token, parseFunctionName(cursor));
    const columnDefinitions = cursor.accept("as") ? parseColumnDefinitions(cursor) : undefined;
    calls.push({ ...call, columnDefinitions });
    countSource(cursor);
  } while (cursor.accept(","));
  cursor.expect(")");
  cursor.leave(outer);
  const withOrdinality = acceptOrdinality(cursor);
  const token = cursor.token;
  const alias = parseAlias(cursor);
  const columns = alias === undefined ? undefined : parseColumnAliases(cursor);
  const _location = cursor.since(token);
  return {
    type: "rows from",
    calls,
    alias: alias === undefined ? undefined : { name: alias.name, columns, _location },
    withOrdinality,
    lateral: undefined,
    join: undefined,
    _location: cursor.since(start),
  };
}

function acceptOrdinality(cursor: Cursor): true | undefined {
  return cursor.acceptAll("with", "ordinality") ? true : undefined;
}

function parseTableFunction(cursor: Cursor, start: number): Mutable<FromCall> {
  countSource(cursor);
  const call = parseXmlTable(cursor) ?? parseCall(cursor, start, parseFunctionName(cursor));
  const withOrdinality = acceptOrdinality(cursor);
  const aliasStart = cursor.token;
  const hasAs = cursor.accept("as");
  const isBare = hasAs && cursor.is("(");
  if (hasAs && !isBare && !cursor.isName()) cursor.unexpected("an alias");
  const alias = isBare || !cursor.isName() || !isAliasWord(cursor) ? undefined : cursor.takeName();
  const item: Mutable<FromCall> = {
    ...call,
    alias: undefined,
    withOrdinality,
    lateral: undefined,
    join: undefined,
    columnDefinitions: undefined,
  };
  let columns: Name[] | undefined;
  if ((alias !== undefined || hasAs) && cursor.is("(")) {
    if (isColumnDefinition(cursor)) item.columnDefinitions = parseColumnDefinitions(cursor);
    else if (alias === undefined) cursor.unexpected("an alias");
    else columns = cursor.nameList("a column alias");
  }
  if (alias !== undefined) {
    const named: TableAliasName = {
      name: alias.name,
      columns,
      _location: cursor.since(hasAs ? aliasStart + 1 : aliasStart),
    };
    item.alias = named;
  }
  item._location = cursor.since(start);
  return item;
}

// Whether a column definition list, `( name type …`, comes next. In a list of column aliases, a
// comma or closing parenthesis would follow the name.
function isColumnDefinition(cursor: Cursor): boolean {
  const kind = cursor.kindAhead(2);
  return cursor.isNameAhead(1) && (kind === Token.word || kind === Token.quoted);
}

function parseColumnDefinitions(cursor: Cursor): ColumnDefinition[] {
  cursor.expect("(");
  const definitions: ColumnDefinition[] = [];
  do {
    const start = cursor.token;
    const name = cursor.name("a column");
    const dataType = parseCollatedType(cursor);
    definitions.push({ name, dataType, _location: cursor.since(start) });
    requireListed(cursor, definitions.length, "columns in a single column definition list");
  } while (cursor.accept(","));
  cursor.expect(")");
  return definitions;
}
