/**
 * Whether rows come, or can be read, in the order of a sort: where its first key is a column of a
 * table, and nothing between the two does more than drop rows and compute columns.
 *
 * Rows of a table come in the order of `_seq`; those that a transaction staged have none yet, and
 * come last. By another column they can be read in order unless the column has a NULL or texts that
 * begin alike in many lengths, or a transaction staged rows.
 */
import { SEQ_COLUMN_ID } from "../../storage/mod.ts";
import type { BoundColumn, BoundExpression, BoundSort } from "../bind/bound_expressions.ts";
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

/** Whether rows come in the order of some sort keys as they are read. */
export function areInOrder(input: PlanNode, keys: readonly BoundSort[]): boolean {
  const [key] = keys;
  // Rows without a seq are equal in the first key, and may differ in further ones.
  if (key === undefined || keys.length > 1 || key.isDescending || key.nullsFirst) return false;
  let node = input;
  let read: BoundExpression | undefined = key.expression;
  while (node.kind === "filter" || node.kind === "project") {
    if (read?.kind !== "column") return false;
    const { id }: BoundColumn = read.column;
    if (node.kind === "project") {
      read = node.expressions[node.columns.findIndex((column) => column.id === id)];
    }
    node = node.input;
  }
  if (node.kind !== "scan" || isByKey(node) || read?.kind !== "column") return false;
  return read.column.origin?.columnId === SEQ_COLUMN_ID;
}

/** Whether few rows are expected, which a scan finds by the first column of the key. */
function isNarrow({ ranges, table, textRanges = [] }: ScanNode): boolean {
  return [...ranges, ...textRanges].some(({ columnId, like, max, min }) => {
    const isEqual = min !== undefined && min === max;
    return columnId === table.primaryKey[0] && (isEqual || like !== undefined);
  });
}
