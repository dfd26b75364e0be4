/**
 * Finds identifiers for the rows of a query, by which a subscriber recognises a row whose values
 * have changed. Identifiers are the primary keys of joined tables, the columns of GROUP BY, or the
 * expressions of DISTINCT.
 *
 * Invariant: no two rows of a result have the same values in all identifiers, compared as GROUP BY
 * compares them. If a query has no identifiers, its rows are identified by all of their values.
 */
import type { BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import type { Expr, SelectFromStatement } from "../parse/ast/ast.ts";
import { isSelectNode } from "../parse/ast/query_nodes.ts";
import { keyedOutputOf, outputOf } from "./sort_keys.ts";

export interface RowIdentifier {
  readonly value: BoundExpression;
  /**
   * Returns the identifier as an item for the select list; undefined if it cannot be written in
   * the select list.
   */
  readonly written: (node: SelectFromStatement) => Expr | undefined;
}

/**
 * Returns the identifiers of a query's rows. The list is empty if the result has at most one row.
 * Returns undefined if the rows have no identifiers.
 */
export function rowIdentifiersOf(select: BoundSelect): readonly RowIdentifier[] | undefined {
  const { distinct, from, groupBy, groupingSets, isAggregated, outputs } = select;
  if (select.expansions.length > 0) return undefined;
  if (isAggregated && groupBy.length === 0 && groupingSets === undefined) return [];
  if (distinct === "all") {
    return outputs
      .filter((_, index) => keyedOutputOf(select, index) < 0)
      .map(({ expression }) => ({ value: expression, written: () => undefined }));
  }
  if (typeof distinct === "object") {
    return distinct.on.map((value, index) => ({
      value,
      written: (node) => (Array.isArray(node.distinct) ? itemOf(node.distinct[index]) : undefined),
    }));
  }
  if (groupingSets !== undefined) return undefined;
  if (isAggregated) {
    return groupBy.map(({ column }, index) => ({
      value: columnValue(column),
      written: ({ groupBy: items = [] }) =>
        items.length === groupBy.length ? itemOf(items[index]) : undefined,
    }));
  }
  return from === undefined ? [] : identifiersIn(from);
}

/**
 * Returns an expression of the query as an item for the select list; undefined if the expression
 * would have a different meaning in the select list.
 */
function itemOf(item: object | undefined): Expr | undefined {
  if (item === undefined || !("type" in item)) return undefined;
  const expression = item as Expr;
  // An expression that is a number or a list refers to items of the select list, which are already
  // outputs.
  const isIndirect = expression.type === "integer" || expression.type === "list";
  return isIndirect || isSelectNode(expression) ? undefined : expression;
}

function identifiersIn(from: BoundFrom): readonly RowIdentifier[] | undefined {
  if (from.kind === "relation") return identifiersOfRelation(from.relation);
  const left = identifiersIn(from.left);
  const right = identifiersIn(from.right);
  return left === undefined || right === undefined ? undefined : [...left, ...right];
}

function identifiersOfRelation(relation: BoundRelation): readonly RowIdentifier[] | undefined {
  switch (relation.kind) {
    case "table":
      return keyOf(relation);
    case "query":
      return identifiersThrough(relation.query, relation);
    case "cte":
      return identifiersThrough(relation.cte.query, relation);
    case "set":
      // A set operation without ALL yields no duplicate rows.
      return relation.isAll ? undefined : identifiersOfSet(relation);
    case "system":
    case "values":
    case "function":
    case "recursive":
    case "changes":
    case "working":
      return undefined;
  }
}

function identifiersOfSet({
  columns,
  left,
  right,
}: Extract<BoundRelation, { kind: "set" }>): readonly RowIdentifier[] {
  const isKey = (index: number): boolean => {
    const keyed = keyedOutputOf(left, index);
    return keyed >= 0 && keyed === keyedOutputOf(right, index);
  };
  return columns.filter((_, index) => !isKey(index)).map((column) => columnOf(column));
}

function columnOf(column: Parameters<typeof columnValue>[0]): RowIdentifier {
  return { value: columnValue(column), written: () => undefined };
}

function keyOf({
  alias,
  columns,
  table,
}: Extract<BoundRelation, { kind: "table" }>): readonly RowIdentifier[] | undefined {
  if (table.primaryKey.length === 0) return undefined;
  const identifiers = table.primaryKey.flatMap((columnId): RowIdentifier[] => {
    const column = columns.find(({ origin }) => origin?.columnId === columnId);
    if (column === undefined) return [];
    const { name } = column;
    const written: RowIdentifier["written"] = ({ _location }) => {
      return { _location, type: "ref", table: { _location, name: alias }, name };
    };
    return [{ value: columnValue(column), written }];
  });
  return identifiers.length === table.primaryKey.length ? identifiers : undefined;
}

/**
 * Finds the identifiers of a derived table's query among the columns of the derived table. Returns
 * undefined if the derived table lacks some of them.
 */
function identifiersThrough(
  query: BoundSelect,
  { columns }: Pick<BoundRelation, "columns">,
): readonly RowIdentifier[] | undefined {
  const { limit, withTies } = query;
  // A derived table with LIMIT 1 contributes at most one row to each row with which it is joined,
  // so it needs no identifiers.
  if (limit?.kind === "constant" && Number(limit.value) === 1 && !withTies) return [];
  const identifiers = rowIdentifiersOf(query);
  if (identifiers === undefined) return undefined;
  const found = identifiers.flatMap(({ value }) => {
    const column = columns[outputOf(query, value)];
    return column === undefined ? [] : [columnOf(column)];
  });
  return found.length === identifiers.length ? found : undefined;
}
