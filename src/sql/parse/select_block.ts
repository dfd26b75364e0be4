/**
 * Parses a SELECT block: its clauses from DISTINCT to WINDOW. ORDER BY, LIMIT and set operations
 * belong to the enclosing query.
 */
import type {
  GroupItem,
  GroupingSetsNode,
  QName,
  SelectedColumn,
  SelectFromStatement,
  TablePersistence,
  WindowDefinition,
} from "./ast/ast.ts";
import { countQuery, requireListed } from "./bounds.ts";
import { parseWindow } from "./calls.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { parseFromList } from "./from.ts";
import { acceptPersistence } from "./persistence.ts";
import { Token } from "./text/lexer.ts";

/** Returns an empty block. */
export function emptySelect(): Mutable<SelectFromStatement> {
  return {
    type: "select",
    distinct: undefined,
    columns: undefined,
    into: undefined,
    from: undefined,
    where: undefined,
    groupBy: undefined,
    groupDistinct: undefined,
    having: undefined,
    windows: undefined,
    orderBy: undefined,
    limit: undefined,
    _location: { start: 0, end: 0 },
  };
}

/** Parses `SELECT …` up to and including WINDOW. */
export function parseSelect(cursor: Cursor): SelectFromStatement {
  const start = cursor.token;
  cursor.expect("select");
  countQuery(cursor);
  const node = emptySelect();
  node.distinct = parseDistinct(cursor);
  if (!endsSelectList(cursor)) node.columns = parseItems(cursor);
  if (cursor.accept("into")) node.into = parseInto(cursor);
  if (cursor.accept("from")) node.from = parseFromList(cursor);
  if (cursor.accept("where")) node.where = cursor.grammar.expression(cursor);
  if (cursor.acceptAll("group", "by")) {
    if (cursor.acceptOneOf("all", "distinct") === "distinct") node.groupDistinct = true;
    node.groupBy = parseGroupItems(cursor);
  }
  if (cursor.accept("having")) node.having = cursor.grammar.expression(cursor);
  if (cursor.accept("window")) node.windows = parseWindows(cursor);
  if (cursor.is("qualify")) {
    cursor.refuse("QUALIFY", "filter the result of the window function in an outer query");
  }
  node._location = cursor.since(start);
  return node;
}

/** Parses the rest of `SELECT … INTO`. */
function parseInto(cursor: Cursor): QName & TablePersistence {
  const isName = cursor.isAhead(1, "from") || cursor.isAhead(1, ".");
  const persistence = isName ? {} : acceptPersistence(cursor);
  cursor.accept("table");
  return { ...cursor.qname("a table"), ...persistence };
}

function parseDistinct(cursor: Cursor): SelectFromStatement["distinct"] {
  if (cursor.accept("all")) return "all";
  if (!cursor.accept("distinct")) return undefined;
  if (!cursor.accept("on")) return "distinct";
  cursor.expect("(");
  const expressions = [cursor.grammar.expression(cursor)];
  while (cursor.accept(",")) {
    expressions.push(cursor.grammar.expression(cursor));
    requireListed(cursor, expressions.length, "expressions in a single DISTINCT ON");
  }
  cursor.expect(")");
  return expressions;
}

// Whether the select list ends before its first item. It may be empty, as in `SELECT FROM t`,
// because EXISTS needs no columns. A token that can neither begin an expression nor end the list
// is treated as the start of an expression, so that the error is reported there.
function endsSelectList(cursor: Cursor): boolean {
  return cursor.kind === Token.end || LIST_ENDS.has(cursor.word);
}

/** Reserved words and symbols that may follow a select list. */
const LIST_ENDS: ReadonlySet<string> = new Set(
  "from where into group having window order limit offset fetch for union intersect except ) ;".split(
    " ",
  ),
);

/** Parses the `item, …` of SELECT or RETURNING. @throws {DatabaseError} LIMIT_EXCEEDED */
export function parseItems(cursor: Cursor): SelectedColumn[] {
  const items = [parseItem(cursor)];
  while (cursor.accept(",")) {
    items.push(parseItem(cursor));
    requireListed(cursor, items.length, "expressions in a single list");
  }
  return items;
}

function parseItem(cursor: Cursor): SelectedColumn {
  const start = cursor.token;
  if (cursor.accept("*")) {
    const _location = cursor.since(start);
    return { expr: { type: "ref", name: "*", star: true, _location }, alias: undefined, _location };
  }
  const expr = cursor.grammar.expression(cursor);
  let alias: SelectedColumn["alias"];
  if (cursor.accept("as")) {
    alias = cursor.label("an alias");
  } else if (cursor.isName()) {
    cursor.noteAlias();
    alias = cursor.takeName();
  }
  return { expr, alias, _location: cursor.since(start) };
}

function parseGroupItems(cursor: Cursor): GroupItem[] {
  const items = [parseGroupItem(cursor)];
  while (cursor.accept(",")) {
    items.push(parseGroupItem(cursor));
    requireListed(cursor, items.length, "items in a single GROUP BY");
  }
  return items;
}

function parseGroupItem(cursor: Cursor): GroupItem {
  const start = cursor.token;
  if (cursor.acceptAll("(", ")")) {
    return { type: "list", expressions: [], _location: cursor.since(start) };
  }
  if (cursor.is("grouping") && cursor.isAhead(1, "sets")) {
    cursor.token += 2;
    return parseGroupingSets(cursor, start, "grouping sets");
  }
  if (!cursor.isAhead(1, "(")) return cursor.grammar.expression(cursor);
  const word = cursor.acceptOneOf("rollup", "cube");
  return word === undefined
    ? cursor.grammar.expression(cursor)
    : parseGroupingSets(cursor, start, word);
}

function parseGroupingSets(
  cursor: Cursor,
  start: number,
  type: GroupingSetsNode["type"],
): GroupingSetsNode {
  const outer = cursor.enter();
  cursor.expect("(");
  const groups = parseGroupItems(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return { type, groups, _location: cursor.since(start) };
}

function parseWindows(cursor: Cursor): WindowDefinition[] {
  const windows: WindowDefinition[] = [];
  do {
    const start = cursor.token;
    const name = cursor.name("a window");
    cursor.expect("as");
    windows.push({ name, window: parseWindow(cursor), _location: cursor.since(start) });
    requireListed(cursor, windows.length, "windows in a single WINDOW clause");
  } while (cursor.accept(","));
  return windows;
}
