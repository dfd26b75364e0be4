/**
 * Splits a full join into two left joins, whose changes can be followed:
 *
 *     a FULL JOIN b ON c  =  a LEFT JOIN b ON c
 *                            UNION ALL
 *                            b LEFT JOIN a ON c WHERE a.key IS NULL
 *
 * A column merged by USING becomes an expression that takes its value from either side.
 */

import { BOOLEAN } from "../../types/mod.ts";
import type { BoundFrom, BoundJoin, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { isPlainSelect } from "../bind/query/query_walk.ts";
import { conjunctionOf, conjunctsOf, mapChildren } from "../bind/walk.ts";
import { NotMaintained } from "./not_maintained.ts";

/** Whether all rows of a query come from a single full join, without grouping. */
export function isFullJoin(select: BoundSelect): boolean {
  const { from } = select;
  const isPlain = isPlainSelect({ ...select, limit: undefined, offset: undefined });
  return isPlain && from?.kind === "join" && from.join === "full";
}

/**
 * Returns two blocks that together yield the rows of a full join; undefined if the query is not a
 * full join.
 */
export function blocksOfFullJoin(select: BoundSelect): readonly BoundSelect[] | undefined {
  const { from, where } = select;
  if (from?.kind !== "join" || from.join !== "full") return undefined;
  const { left, right } = from;
  const withSides = sidesOfMerged(from);
  const outputs = select.outputs.map((output) => {
    return { ...output, expression: withSides(output.expression) };
  });
  const conditions = conjunctsOf(where).map(withSides);
  const isMissing: BoundExpression = {
    kind: "is",
    type: BOOLEAN,
    test: "null",
    negated: false,
    operand: keyOf(left),
  };
  const join = { ...from, join: "left", merged: undefined } as const;
  return [
    { ...select, outputs, from: join, where: conjunctionOf(conditions) },
    {
      ...select,
      outputs,
      from: { ...join, left: right, right: left },
      where: conjunctionOf([...conditions, isMissing]),
    },
  ];
}

/**
 * Returns a function that replaces each column merged by USING with an expression over the columns
 * of both sides of the join.
 */
function sidesOfMerged({ merged = [] }: BoundJoin): (given: BoundExpression) => BoundExpression {
  const expressionOf = new Map(merged.map(({ column, expression }) => [column.id, expression]));
  const replaced = (given: BoundExpression): BoundExpression => {
    const merging = given.kind === "column" ? expressionOf.get(given.column.id) : undefined;
    return merging ?? mapChildren(given, replaced);
  };
  return replaced;
}

/**
 * Returns a column that is NULL only in result rows for which this side of the join has no row.
 * @throws {NotMaintained}
 */
function keyOf(from: BoundFrom): BoundExpression {
  const table = firstTable(from);
  const [keyId] = table?.table.primaryKey ?? [];
  const column = table?.columns.find(({ origin }) => origin?.columnId === keyId);
  if (keyId === undefined || column === undefined) {
    throw new NotMaintained("the query has a full join with something other than tables");
  }
  return columnValue(column);
}

/** Returns a table that contributes to every row of this side of the join. */
function firstTable(from: BoundFrom): Extract<BoundRelation, { kind: "table" }> | undefined {
  if (from.kind === "join") return from.join === "full" ? undefined : firstTable(from.left);
  return from.relation.kind === "table" ? from.relation : undefined;
}
