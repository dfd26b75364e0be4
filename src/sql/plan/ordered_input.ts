/**
 * Whether rows can be read in the order of a sort: where its first key is a column of a table, and
 * nothing between the two does more than drop rows and compute columns.
 *
 * A column with a NULL, one of texts that begin alike in many lengths, and rows that a transaction
 * staged, are sorted as ever.
 */
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { isVolatile } from "../bind/walk.ts";
import type { PlanNode, ScanNode } from "./plan.ts";
import { isByKey } from "./plan_walk.ts";

/** The column of the table whose order is that of a key; undefined where there is none. */
export function orderedColumnOf(input: PlanNode, key: BoundExpression): number | undefined {
  let node = input;
  let read = key;
  while (node.kind === "filter" || node.kind === "project") {
    if (read.kind !== "column") return undefined;
    if (node.kind === "filter") {
      if (isVolatile(node.condition)) return undefined;
    } else {
      const { id } = read.column;
      // Rows may be read in order, and again in another.
      if (node.expressions.some(isVolatile)) return undefined;
      const below = node.expressions[node.columns.findIndex((column) => column.id === id)];
      if (below === undefined) return undefined;
      read = below;
    }
    node = node.input;
  }
  if (node.kind !== "scan" || isByKey(node) || node.withTombstones) return undefined;
  if (isNarrow(node)) return undefined;
  const columnId = read.kind === "column" ? read.column.origin?.columnId : undefined;
  // Rows lie in the order of `_seq` anyway.
  return columnId === undefined || columnId < 0 ? undefined : columnId;
}

/** Whether few rows are expected, which a scan finds by the first column of the key. */
function isNarrow({ ranges, table, textRanges = [] }: ScanNode): boolean {
  return [...ranges, ...textRanges].some(({ columnId, like, max, min }) => {
    const isEqual = min !== undefined && min === max;
    return columnId === table.primaryKey[0] && (isEqual || like !== undefined);
  });
}
