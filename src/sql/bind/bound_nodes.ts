/**
 * Builds common nodes of a bound tree: column values, and simple queries without grouping or order
 * that the binder itself adds.
 */
import type { StatementBinding } from "./binding.ts";
import type { BoundOutput, BoundRelation, BoundSelect } from "./bound.ts";
import type { BoundColumn, BoundExpression } from "./bound_expressions.ts";

export function columnValue(column: BoundColumn): BoundExpression {
  return { kind: "column", type: column.type, column };
}

/** Returns an output that shows a column under its own name. */
export function columnOutput(column: BoundColumn): BoundOutput {
  return { name: column.name, expression: columnValue(column) };
}

/** Returns a query that has only the given clauses. */
export function plainSelect({
  from,
  outputs,
  where,
}: Pick<BoundSelect, "from" | "outputs"> & Partial<Pick<BoundSelect, "where">>): BoundSelect {
  return {
    from,
    where,
    groupBy: [],
    groupingSets: undefined,
    aggregates: [],
    isAggregated: false,
    having: undefined,
    windows: [],
    expansions: [],
    outputs,
    distinct: "none",
    orderBy: [],
    limit: undefined,
    offset: undefined,
    withTies: false,
  };
}

/** Returns a query over a single relation, without further clauses. */
export function selectFrom(relation: BoundRelation, outputs: BoundSelect["outputs"]): BoundSelect {
  return plainSelect({ from: { kind: "relation", relation }, outputs });
}

/** Wraps a query in an outer block: `SELECT * FROM (query)`. */
export function selectFromQuery(query: BoundSelect, statement: StatementBinding): BoundSelect {
  const columns = query.outputs.map(({ expression, name }) =>
    statement.newColumn({ name, type: expression.type }),
  );
  return selectFrom({ kind: "query", query, alias: "", columns }, columns.map(columnOutput));
}
