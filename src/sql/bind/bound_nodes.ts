/**
 * Nodes of a bound tree that are asked for at many places, each written out here only: values of
 * columns, and queries that the binder makes itself, which neither group nor order.
 */
import type { StatementBinding } from "./binding.ts";
import type { BoundOutput, BoundRelation, BoundSelect } from "./bound.ts";
import type { BoundColumn, BoundExpression } from "./bound_expressions.ts";

export function columnValue(column: BoundColumn): BoundExpression {
  return { kind: "column", type: column.type, column };
}

/** A column under its own name. */
export function columnOutput(column: BoundColumn): BoundOutput {
  return { name: column.name, expression: columnValue(column) };
}

/** A query with no more clauses than these. */
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

/** A query that only yields columns of one relation. */
export function selectFrom(relation: BoundRelation, outputs: BoundSelect["outputs"]): BoundSelect {
  return plainSelect({ from: { kind: "relation", relation }, outputs });
}

/** `SELECT * FROM (query)`: a block of its own around it. */
export function selectFromQuery(query: BoundSelect, statement: StatementBinding): BoundSelect {
  const columns = query.outputs.map(({ expression, name }) =>
    statement.newColumn({ name, type: expression.type }),
  );
  return selectFrom({ kind: "query", query, alias: "", columns }, columns.map(columnOutput));
}
