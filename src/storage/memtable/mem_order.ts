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
import { isNullAt, slice, take, type Vector } from "../../types/mod.ts";
import { areTextsShort, type ColumnOrder, orderOf } from "../segment/column_order.ts";
import type { MemPartition, Memtable } from "./memtable.ts";

/** Rows `start` to `end` of a partition's list; those of the order are counted from `start`. */
export interface MemPart {
  readonly start: number;
  readonly end: number;
  /** Made when somebody comes to it: of a long memtable all would take more than a turn should. */
  order: ColumnOrder | undefined;
}

/** By parts; "none" once a row has been found that has no place in an order. */
export type MemOrders = MemPart[] | "none";

/** A part is made anew once those behind it have this share of its rows. */
const GROWTH_SHARE = 8;

/** The parts of all rows of a partition, or undefined where some have no order. */
export function memPartsOf(
  memtable: Memtable,
  partition: MemPartition,
  columnId: number,
): readonly MemPart[] | undefined {
  const parts = partition.orders.get(columnId) ?? [];
  if (parts === "none") return undefined;
  if ((parts.at(-1)?.end ?? 0) < partition.count) {
    const vector = memtable.vector(columnId);
    let start = startOfNew(parts, partition.count);
    const newRows = partition.rows.subarray(start, partition.count);
    if (vector === undefined || hasNull(vector, newRows)) {
      partition.orders.set(columnId, "none");
      return undefined;
    }
    while (start < partition.count) {
      const end = Math.min(partition.count, start + ROW_GROUP_ROWS_MAX);
      parts.push({ start, end, order: undefined });
      start = end;
    }
    partition.orders.set(columnId, parts);
  }
  return parts;
}

/** The order of a part; undefined where its rows have none. */
export function orderOfPart(
  { memtable, part, partition }: PlacedPart,
  columnId: number,
): ColumnOrder | undefined {
  if (part.order !== undefined) return part.order;
  const vector = memtable.vector(columnId);
  // Rows that were taken back since are no longer in the list.
  const end = Math.min(part.end, partition.count);
  if (vector === undefined || end <= part.start) return undefined;
  const rows = rowsOf(vector, partition.rows.subarray(part.start, end));
  part.order = areTextsShort(rows) ? orderOf(rows) : undefined;
  if (part.order === undefined) partition.orders.set(columnId, "none");
  return part.order;
}

interface PlacedPart {
  readonly memtable: Memtable;
  readonly partition: MemPartition;
  readonly part: MemPart;
}

/** Where parts that are to be made begin; takes away those that are made anew. */
function startOfNew(parts: MemPart[], count: number): number {
  for (;;) {
    const last = parts.at(-1);
    if (last === undefined) return 0;
    const lastRows = last.end - last.start;
    const newRows = count - last.end;
    if (lastRows === ROW_GROUP_ROWS_MAX || lastRows > GROWTH_SHARE * newRows) return last.end;
    parts.pop();
  }
}

function hasNull(vector: Vector, rows: Uint32Array): boolean {
  const mayHave = vector.kind === "any" || vector.kind === "const" || vector.nulls !== undefined;
  return mayHave && rows.some((row) => isNullAt(vector, row));
}

function rowsOf(vector: Vector, rows: Uint32Array): Vector {
  const first = rows[0] ?? 0;
  const last = rows.at(-1) ?? 0;
  if (last - first === rows.length - 1) return slice(vector, first, last + 1);
  return take(vector, { rows, count: rows.length });
}
