/** Parses MERGE. */
import type { Expr, MergeAction, MergeClause, MergeInsert, MergeStatement } from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import { parseReturning, parseSets, parseTarget, parseTargetColumns } from "./dml.ts";
import { parseFromItem } from "./from.ts";
import { literalValuesToRows } from "./text/literal_nodes.ts";

/** Parses `MERGE INTO t USING source ON condition WHEN … THEN …`, after WITH if there is one. */
export function parseMerge(cursor: Cursor): MergeStatement {
  const start = cursor.token;
  cursor.expectAll("merge", "into");
  const into = parseTarget(cursor, false);
  cursor.expect("using");
  const source = parseFromItem(cursor);
  cursor.expect("on");
  const on = cursor.grammar.expression(cursor);
  const clauses: MergeClause[] = [];
  do {
    clauses.push(parseClause(cursor));
    requireListed(cursor, clauses.length, "clauses of a single MERGE");
  } while (cursor.is("when"));
  const returning = parseReturning(cursor);
  return { type: "merge", into, source, on, clauses, returning, _location: cursor.since(start) };
}

function parseClause(cursor: Cursor): MergeClause {
  const start = cursor.token;
  cursor.expect("when");
  const isMatched = !cursor.accept("not");
  cursor.expect("matched");
  if (cursor.is("by")) {
    cursor.refuse("WHEN NOT MATCHED BY", "change the unmatched rows in a separate statement");
  }
  const condition = cursor.accept("and") ? cursor.grammar.expression(cursor) : undefined;
  cursor.expect("then");
  const action = parseAction(cursor, isMatched);
  return { isMatched, condition, action, _location: cursor.since(start) };
}

function parseAction(cursor: Cursor, isMatched: boolean): MergeAction {
  if (cursor.accept("do")) {
    cursor.expect("nothing");
    return { type: "nothing" };
  }
  if (!isMatched) return parseInsertAction(cursor);
  if (cursor.expectOneOf("update", "delete") === "delete") return { type: "delete" };
  cursor.expect("set");
  return { type: "update", sets: parseSets(cursor) };
}

function parseInsertAction(cursor: Cursor): MergeInsert {
  const start = cursor.token;
  cursor.expect("insert");
  const columns = cursor.is("(") ? parseTargetColumns(cursor) : undefined;
  const overriding = cursor.accept("overriding") ? cursor.expectOneOf("system", "user") : undefined;
  if (overriding !== undefined) cursor.expect("value");
  if (columns === undefined && cursor.acceptAll("default", "values")) {
    return { type: "insert", columns: [], overriding, values: [], _location: cursor.since(start) };
  }
  const values = parseValues(cursor);
  return { type: "insert", columns, overriding, values, _location: cursor.since(start) };
}

/** Parses `VALUES (…)` with a single row, which the lexer may have turned into a single token. */
function parseValues(cursor: Cursor): readonly Expr[] {
  const at = cursor.start;
  const start = cursor.token;
  const list = cursor.takeLiteralList("values");
  if (list !== undefined) {
    const _location = cursor.since(start);
    const rows = literalValuesToRows({ type: "literal values", ...list, _location }).values;
    const [row] = rows;
    if (row === undefined || rows.length > 1)
      cursor.fail("found several rows in VALUES, but MERGE inserts one row at a time", at);
    return row;
  }
  cursor.expect("values");
  cursor.expect("(");
  const values: Expr[] = [];
  do values.push(cursor.grammar.expression(cursor));
  while (cursor.accept(","));
  cursor.expect(")");
  return values;
}
