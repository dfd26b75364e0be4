/**
 * The rows of one owner in a memtable in the order of a column: parts of the partition's list, each
 * in order by itself. Rows that came since are a part of their own, until they are worth making the
 * parts before them anew:
 *
 *     ┌───────────────┬───────────────┬──────────┬─────┬───┐
 *     │ 65,536 rows   │ 65,536 rows   │ 9,000    │ 700 │ 2 │
 *     └───────────────┴───────────────┴──────────┴─────┴───┘
 */
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { isNullAt, slice, take, type Vector } from "../../types/mod.ts";
import { areTextsShort, type ColumnOrder, orderOf } from "../segment/column_order.ts";
import type { MemPartition, Memtable } from "./memtable.ts";
import type { MemPart } from "./part_orders.ts";

/** A part is made anew once those behind it have this share of its rows. */
const GROWTH_SHARE = 8;

/** The parts of all rows of a partition, or undefined where some have no order. */
export function memPartsOf(
  memtable: Memtable,
  partition: MemPartition,
  columnId: number,
): readonly MemPart[] | undefined {
  const { count, orders } = partition;
  const parts = orders.partsOf(columnId);
  if (parts === "none") return undefined;
  if ((parts.at(-1)?.end ?? 0) >= count) return parts;
  const vector = memtable.vector(columnId);
  let start = removeOutgrown(partition, columnId);
  if (vector === undefined || hasNull(vector, partition.rows.subarray(start, count))) {
    orders.refuse(columnId);
    return undefined;
  }
  while (start < count) {
    const end = Math.min(count, start + ROW_GROUP_ROWS_MAX);
    orders.add(columnId, { start, end });
    start = end;
  }
  const made = orders.partsOf(columnId);
  return made === "none" ? undefined : made;
}

/**
 * The order of a part, which is made when somebody comes to it: of a long memtable all would take
 * more than a turn should. Undefined where its rows have none.
 */
export function orderOfPart(
  { memtable, part, partition }: PlacedPart,
  columnId: number,
): ColumnOrder | undefined {
  const { orders } = partition;
  const known = orders.orderOf(part);
  if (known !== undefined) return known;
  const vector = memtable.vector(columnId);
  // Rows that were taken back since are no longer in the list.
  const end = Math.min(part.end, partition.count);
  if (vector === undefined || end <= part.start) return undefined;
  const rows = rowsOf(vector, partition.rows.subarray(part.start, end));
  const order = areTextsShort(rows) ? orderOf(rows) : undefined;
  if (order === undefined) orders.refuse(columnId);
  else orders.keep(part, order);
  return order;
}

interface PlacedPart {
  readonly memtable: Memtable;
  readonly partition: MemPartition;
  readonly part: MemPart;
}

/** Takes away the parts that are made anew; returns where those begin that are to be made. */
function removeOutgrown({ count, orders }: MemPartition, columnId: number): number {
  for (;;) {
    const parts = orders.partsOf(columnId);
    const last = parts === "none" ? undefined : parts.at(-1);
    if (last === undefined) return 0;
    const lastRows = last.end - last.start;
    const newRows = count - last.end;
    if (lastRows === ROW_GROUP_ROWS_MAX || lastRows > GROWTH_SHARE * newRows) return last.end;
    orders.removeLast(columnId);
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
