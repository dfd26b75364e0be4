/**
 * Where a grouping block reads a column that it may not read, for the position of the error: a
 * bound expression does not know where it stood, so the clauses are searched, and only when one
 * fails.
 */
import { isAggregate } from "../../functions/aggregate/aggregates.ts";
import type { Expr, ExprRef, GroupItem, SelectFromStatement } from "../../parse/ast/ast.ts";
import { directPartsOf, partsOf } from "../../parse/ast/tree_parts.ts";
import { expressionToSql } from "../../parse/print/print_queries.ts";
import type { BoundColumn } from "../bound_expressions.ts";
import type { Scope } from "../scope.ts";

/** The first place outside of aggregates and of what is grouped by; else the first of all. */
export function startOfRead(
  select: SelectFromStatement,
  column: BoundColumn,
  scope: Scope,
): number {
  const { _location, columns, having, orderBy, windows } = select;
  const alias = scope.relations.find((relation) =>
    [...relation.columns, ...relation.systemColumns].some(({ id }) => id === column.id),
  )?.alias;
  const isOf = ({ name, star, table }: ExprRef): boolean =>
    (star === true || name === column.name) && (table === undefined || table.name === alias);
  const grouped = (select.groupBy ?? []).flatMap(membersOf).map((node) => outputOf(node, select));
  const types = new Set(grouped.map(({ type }) => type));
  const texts = new Set(grouped.map(expressionToSql));
  const isSkipped = (node: Expr): boolean =>
    isAggregateCall(node) || (types.has(node.type) && texts.has(expressionToSql(node)));
  const clauses = [columns, having, orderBy, windows];
  return (
    startIn(clauses, { isOf, isSkipped }) ??
    startIn(clauses, { isOf, isSkipped: () => false }) ??
    _location.start
  );
}

interface Search {
  readonly isOf: (ref: ExprRef) => boolean;
  readonly isSkipped: (node: Expr) => boolean;
}

function startIn(clauses: readonly unknown[], { isOf, isSkipped }: Search): number | undefined {
  const insideOf = (part: object): readonly unknown[] =>
    isSkipped(part as Expr) ? [] : readPartsOf(part as Expr);
  for (const part of partsOf(clauses, insideOf)) {
    const node = part as Expr;
    if (node.type === "ref" && isOf(node)) return node._location.start;
  }
  return undefined;
}

/** The star of `count(*)` reads no column. */
function readPartsOf(node: Expr): readonly unknown[] {
  const isOverRows =
    node.type === "call" && node.args.some((arg) => arg.type === "ref" && arg.star === true);
  return isOverRows ? [node.filter, node.over] : directPartsOf(node);
}

function isAggregateCall(node: Expr): boolean {
  return node.type === "call" && node.over === undefined && isAggregate(node.function.name);
}

/** The expressions that an item of GROUP BY groups by. */
function membersOf(item: GroupItem): readonly Expr[] {
  if ("groups" in item) return item.groups.flatMap(membersOf);
  return item.type === "list" ? item.expressions.flatMap(membersOf) : [item];
}

/** What an ordinal of GROUP BY counts. */
function outputOf(node: Expr, { columns = [] }: SelectFromStatement): Expr {
  return node.type === "integer" ? (columns[node.value - 1]?.expr ?? node) : node;
}
