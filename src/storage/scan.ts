/**
 * Scans: the rows of one owner that are current at a seq, as vectors, in ascending seq.
 *
 * The sources are fixed when the scan opens: segments, which it pins, then memtables. What is
 * written later has a higher seq than the bound, and a flush that happens meanwhile leaves the old
 * memtable to the scans that read it.
 */
import { assert } from "../base/assert.ts";
import { BATCH_ROWS_MAX, ROW_GROUP_ROWS_MAX } from "../base/limits.ts";
import { SEQ_ZERO } from "../base/seq.ts";
import { MemtableScan } from "./memtable_scan.ts";
import { SegmentScan } from "./segment_scan.ts";
import type { ColumnRange, Scan, ScanBatch, ScanOptions } from "./store.ts";
import type { StoredTable } from "./table.ts";

/** Which rows are read; the options with every default filled in. */
export interface RowFilter {
  readonly owner: number;
  readonly upTo: number;
  readonly after: number;
  readonly columnIds: readonly number[];
  readonly ranges: readonly ColumnRange[];
  readonly withTombstones: boolean;
}

/** Rows of one place, in ascending seq. */
export interface RowSource {
  /** 1 to `limit` rows, or undefined at the end. */
  next(limit: number): ScanBatch | undefined;
  close(): void;
  readonly groupsRead: number;
  readonly groupsPruned: number;
}

export class StoreScan implements Scan {
  readonly #sources: RowSource[];
  readonly #batchRows: number;
  #index = 0;

  constructor(table: StoredTable, options: ScanOptions) {
    const { batchRows = BATCH_ROWS_MAX } = options;
    assert(batchRows >= 1, "a batch has a row");
    assert(batchRows <= ROW_GROUP_ROWS_MAX, "a batch fits a row group");
    this.#batchRows = batchRows;
    const filter: RowFilter = {
      owner: options.owner,
      upTo: options.upTo,
      after: options.after ?? SEQ_ZERO,
      columnIds: options.columnIds,
      ranges: options.ranges ?? [],
      withTombstones: options.withTombstones ?? false,
    };
    this.#sources = [
      ...table.segments
        .filter(({ entry }) => entry.minSeq <= filter.upTo && entry.maxSeq > filter.after)
        .map((segment) => new SegmentScan(table, segment, filter)),
      ...table.memtables().map((memtable) => new MemtableScan(table, memtable, filter)),
    ];
  }

  get groupsRead(): number {
    return this.#sources.reduce((sum, { groupsRead }) => sum + groupsRead, 0);
  }

  get groupsPruned(): number {
    return this.#sources.reduce((sum, { groupsPruned }) => sum + groupsPruned, 0);
  }

  next(): ScanBatch | undefined {
    for (;;) {
      const source = this.#sources[this.#index];
      if (source === undefined) return undefined;
      const batch = source.next(this.#batchRows);
      if (batch !== undefined) return batch;
      source.close();
      this.#index += 1;
    }
  }

  close(): void {
    for (const source of this.#sources) source.close();
    this.#index = this.#sources.length;
  }
}
