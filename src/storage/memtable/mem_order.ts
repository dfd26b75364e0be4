/**
 * The rows of one owner in a memtable in the order of a column: parts of the partition's list, each in
 * order by itself. Rows that came since are a part of their own, until they are worth making the parts
 * before them anew:
 *
 *     ┌───────────────┬───────────────┬──────────┬─────┬───┐
 *     │ 65,536 rows   │ 65,536 rows   │ 9,000    │ 700 │ 2 │
 *     └───────────────┴───────────────┴──────────┴─────┴───┘
 */
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { slice, take, type Vector } from "../../types/mod.ts";
import { areTextsShort, type ColumnOrder, orderOf } from "../segment/column_order.ts";
import type { MemPartition, Memtable } from "./memtable.ts";

/** Rows `start` to `end` of a partition's list; those of the order are counted from `start`. */
export interface MemOrder {
  readonly start: number;
  readonly end: number;
  readonly order: ColumnOrder;
}

/** A part is made anew once those behind it have this share of its rows. */
const GROWTH_SHARE = 8;

/** The orders of all rows of a partition, or undefined where some have none. */
export function memOrdersOf(
  memtable: Memtable,
  partition: MemPartition,
  columnId: number,
): readonly MemOrder[] | undefined {
  const parts = partition.orders.get(columnId) ?? [];
  let start = parts.at(-1)?.end ?? 0;
  if (start < partition.count) {
    const vector = memtable.vector(columnId);
    if (vector === undefined) return undefined;
    start = startOfNew(parts, partition.count);
    while (start < partition.count) {
      const end = Math.min(partition.count, start + ROW_GROUP_ROWS_MAX);
      const rows = rowsOf(vector, partition.rows.subarray(start, end));
      const order = areTextsShort(rows) ? orderOf(rows) : undefined;
      if (order === undefined) return undefined;
      parts.push({ start, end, order });
      start = end;
    }
    partition.orders.set(columnId, parts);
  }
  return parts;
}

/** Where parts that are to be made begin; takes away those that are made anew. */
function startOfNew(parts: MemOrder[], count: number): number {
  for (;;) {
    const last = parts.at(-1);
    if (last === undefined) return 0;
    const lastRows = last.end - last.start;
    const newRows = count - last.end;
    if (lastRows === ROW_GROUP_ROWS_MAX || lastRows > GROWTH_SHARE * newRows) return last.end;
    parts.pop();
  }
}

function rowsOf(vector: Vector, rows: Uint32Array): Vector {
  const first = rows[0] ?? 0;
  const last = rows.at(-1) ?? 0;
  if (last - first === rows.length - 1) return slice(vector, first, last + 1);
  return take(vector, { rows, count: rows.length });
}
