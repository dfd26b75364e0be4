/**
 * The rows of one owner in a memtable. A run of rows of which none is hidden and that lie side by
 * side is handed out without copying; other rows are gathered.
 */
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { constVector, slice, take, type Vector } from "../../types/mod.ts";
import { type ScanBatch } from "../contract/store.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { MemPartition, Memtable } from "../memtable/memtable.ts";
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
  /** Up to where the rows are known to be read here. */
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
      const start = this.#index;
      const end = Math.min(start + limit, this.#claimedEnd);
      this.#index = end;
      const rows = partition.rows.subarray(start, end);
      const kept = this.#current(rows);
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
   * Goes on to rows that are read here, as many as a row group has. Returns whether there are any.
   */
  #claimRows(): boolean {
    while (this.#index < this.#end) {
      this.#claimedEnd = Math.min(this.#index + ROW_GROUP_ROWS_MAX, this.#end);
      if (this.#filter.share?.claimsNext() !== false) return true;
      this.#index = this.#claimedEnd;
    }
    return false;
  }

  /** Those of the rows that are current; the same array when all are. */
  #current(rows: Uint32Array): Uint32Array {
    const { hiddenCount, replacedBy, deleted } = this.#memtable;
    if (hiddenCount === 0) return rows;
    const { upTo, withTombstones } = this.#filter;
    const kept = new Uint32Array(rows.length);
    let count = 0;
    for (const row of rows) {
      const replacement = replacedBy[row] ?? 0;
      const isCurrent = replacement === 0 || replacement > upTo;
      if (isCurrent && (deleted[row] === 0 || withTombstones)) {
        kept[count] = row;
        count += 1;
      }
    }
    return count === rows.length ? rows : kept.subarray(0, count);
  }

  #batch(rows: Uint32Array): ScanBatch {
    const columns = this.#filter.columnIds.map((columnId) =>
      memtableColumn(this.#table, this.#memtable, { columnId, rows }),
    );
    return { rowCount: rows.length, columns };
  }
}

/** Some rows of a column, or of a system column; aliases the memtable where the rows allow it. */
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
  return take(vector, { rows, count: rows.length });
}

/** One row of a column, or of a system column: its value, which costs less than a view of it. */
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
