/**
 * Scans one owner's rows in a memtable, skipping blocks without a live row. Contiguous rows
 * without hidden rows among them are returned without being copied. Other rows are gathered into
 * new arrays.
 */
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { constVector, slice, takeLater, type Vector } from "../../types/mod.ts";
import type { ScanBatch } from "../contract/scans.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import { BLOCK_ROWS, type Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import { HIDDEN_BATCHES_MAX, NO_ROWS, type RowFilter, type RowSource } from "./row_source.ts";

export class MemtableScan implements RowSource {
  readonly groupsRead = 0;
  readonly groupsPruned = 0;
  readonly #table: StoredTable;
  readonly #memtable: Memtable;
  readonly #partition: MemPartition | undefined;
  readonly #filter: RowFilter;
  #index = 0;
  #end = 0;
  /** The end of the rows that this reader has claimed from a divided scan. */
  #claimedEnd = 0;

  constructor(table: StoredTable, memtable: Memtable, filter: RowFilter) {
    this.#table = table;
    this.#memtable = memtable;
    this.#filter = filter;
    this.#partition = memtable.partitions.get(filter.owner);
    if (this.#partition !== undefined) {
      this.#index = memtable.indexAfter(this.#partition, filter.after);
      this.#end = memtable.indexAfter(this.#partition, filter.seqMax);
      this.#claimedEnd = filter.share === undefined ? this.#end : this.#index;
    }
  }

  next(limit: number): ScanBatch | undefined {
    const partition = this.#partition;
    if (partition === undefined) return undefined;
    let hiddenCount = 0;
    while (this.#index < this.#end) {
      if (this.#index === this.#claimedEnd && !this.#claimRows()) return undefined;
      const start = this.#firstAlive(partition);
      const end = Math.min(start + limit, this.#claimedEnd);
      this.#index = end;
      if (start === end) continue;
      const kept = this.#current(partition, start, end);
      if (kept.length > 0) return this.#batch(kept);
      hiddenCount += 1;
      if (this.#filter.mayBeEmpty && hiddenCount >= HIDDEN_BATCHES_MAX) return NO_ROWS;
    }
    return undefined;
  }

  close(): void {
    this.#end = this.#index;
  }

  /**
   * Claims as many rows of a divided scan as a row group has. Returns false if no rows are left.
   */
  #claimRows(): boolean {
    while (this.#index < this.#end) {
      this.#claimedEnd = Math.min(this.#index + ROW_GROUP_ROWS_MAX, this.#end);
      if (this.#filter.share?.claimsNext() !== false) return true;
      this.#index = this.#claimedEnd;
    }
    return false;
  }

  #firstAlive(partition: MemPartition): number {
    const { upTo, withTombstones } = this.#filter;
    const rows = { start: this.#index, end: this.#claimedEnd };
    return withTombstones ? rows.start : this.#memtable.firstAlive(partition, rows, upTo);
  }

  /** Returns the rows from `start` to `end` of the partition's list that are current. */
  #current(partition: MemPartition, start: number, end: number): Uint32Array {
    const memtable = this.#memtable;
    const rows = partition.rows.subarray(start, end);
    if (memtable.hiddenCount === 0) return rows;
    const { upTo, withTombstones } = this.#filter;
    const kept = new Uint32Array(rows.length);
    let count = 0;
    for (let index = start; index < end; ) {
      const stop = Math.min((index | (BLOCK_ROWS - 1)) + 1, end);
      const isBlock = stop - index === BLOCK_ROWS && !withTombstones;
      const live = isBlock ? memtable.liveRowsOf(partition, index / BLOCK_ROWS, upTo) : undefined;
      if (live !== undefined) {
        kept.set(live, count);
        count += live.length;
        index = stop;
      }
      for (; index < stop; index += 1) {
        const row = partition.rows[index] ?? 0;
        kept[count] = row;
        if (this.#isCurrent(row)) count += 1;
      }
    }
    return count === rows.length ? rows : kept.subarray(0, count);
  }

  #isCurrent(row: number): boolean {
    const { deleted, replacedBy } = this.#memtable;
    const { upTo, withTombstones } = this.#filter;
    const replacement = replacedBy[row] ?? 0;
    const isReplaced = replacement !== 0 && replacement <= upTo;
    return !isReplaced && (deleted[row] === 0 || withTombstones);
  }

  #batch(rows: Uint32Array): ScanBatch {
    const columns = this.#filter.columnIds.map((columnId) =>
      memtableColumn(this.#table, this.#memtable, { columnId, rows }),
    );
    return { rowCount: rows.length, columns };
  }
}

/**
 * Returns some rows of a table column or a system column. Where possible, the result shares the
 * memtable's memory.
 */
export function memtableColumn(
  table: StoredTable,
  memtable: Memtable,
  { columnId, rows }: { columnId: number; rows: Uint32Array },
): Vector {
  const vector = wholeColumn(memtable, columnId);
  if (vector === undefined) {
    return constVector(table.column(columnId)?.missing ?? null, rows.length);
  }
  const first = rows[0] ?? 0;
  const last = rows.at(-1) ?? 0;
  if (last - first === rows.length - 1) return slice(vector, first, last + 1);
  return takeLater(vector, { rows, count: rows.length });
}

/**
 * Returns a single value of a table column or a system column. This costs less than creating a
 * view of the column.
 */
export function memtableCell(
  table: StoredTable,
  memtable: Memtable,
  { columnId, row }: { columnId: number; row: number },
): Vector {
  if (columnId === SEQ_COLUMN_ID) return constVector(memtable.seqs[row] ?? 0, 1);
  if (columnId === DELETED_COLUMN_ID) return constVector(memtable.deleted[row] === 1, 1);
  const column = memtable.column(columnId);
  if (column !== undefined) return constVector(column.valueAt(row), 1);
  return constVector(table.column(columnId)?.missing ?? null, 1);
}

function wholeColumn(memtable: Memtable, columnId: number): Vector | undefined {
  const length = memtable.rowCount;
  switch (columnId) {
    case SEQ_COLUMN_ID:
      return { kind: "f64", length, values: memtable.seqs, nulls: undefined };
    case DELETED_COLUMN_ID:
      return { kind: "bool", length, values: memtable.deleted, nulls: undefined };
    default:
      return memtable.vector(columnId);
  }
}
