/**
 * Scans one owner's rows that are current at a seq, as vectors, in ascending seq order.
 *
 * The sources of rows are fixed when the scan opens: first segments, which the scan pins, and then
 * memtables. History segments are included only if they contain a row for the scan. Later writes
 * have seqs above the scan's bound. After a flush, the old memtable stays available to the scans
 * that are reading it. An ALTER TABLE may occur between two steps. If it drops a column that the
 * scan reads, or changes its stored form, the scan ends with an error.
 */
import { assert, defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX, ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { SEQ_ZERO } from "../../base/seq.ts";
import { type Vector, valuesOf } from "../../types/mod.ts";
import type { KeySpans, Scan, ScanBatch, ScanOptions } from "../contract/scans.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { areOrdersKept } from "../segment/column_orders.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import { HistoryScan, historyFor } from "./history_scan.ts";
import { MemtableScan } from "./memtable_scan.ts";
import { NO_ROWS, type RowFilter, type RowSource } from "./row_source.ts";
import { columnTypeOf, SegmentScan } from "./segment_scan.ts";
import { SeqMerge } from "./seq_merge.ts";

export class StoreScan implements Scan {
  readonly #watch: DefinitionWatch;
  readonly #sources: RowSource[];
  readonly #batchRows: number;
  #index = 0;

  constructor(table: StoredTable, options: ScanOptions) {
    const { batchRows = BATCH_ROWS_MAX } = options;
    assert(batchRows >= 1, "table scan: batch size is zero");
    assert(batchRows <= ROW_GROUP_ROWS_MAX, "table scan: batch size exceeds the row group size");
    this.#batchRows = batchRows;
    this.#watch = new DefinitionWatch(table, options.columnIds);
    const filter: RowFilter = {
      owner: options.owner,
      upTo: options.upTo,
      after: options.after ?? SEQ_ZERO,
      seqMax: Math.min(options.seqMax ?? options.upTo, options.upTo),
      columnIds: options.columnIds,
      ranges: options.ranges ?? [],
      keySpans: wantedSpans(table, options),
      withTombstones: options.withTombstones ?? false,
      reusesMemory: options.reusesMemory ?? false,
      defersNumbers: options.defersNumbers ?? false,
      mayBeEmpty: options.mayBeEmpty ?? false,
      share: options.share,
    };
    this.#sources = [
      ...storedSources(table, filter),
      ...table.memtables().map((memtable) => new MemtableScan(table, memtable, filter)),
    ];
  }

  get groupsRead(): number {
    return this.#sources.reduce((sum, { groupsRead }) => sum + groupsRead, 0);
  }

  get groupsPruned(): number {
    return this.#sources.reduce((sum, { groupsPruned }) => sum + groupsPruned, 0);
  }

  /**
   * Returns the next rows.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if a column was altered in the meantime.
   */
  next(): ScanBatch | undefined {
    this.#watch.check();
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

/**
 * Returns the segments to scan, oldest first. All seqs in segments are below the seqs in
 * memtables.
 */
function storedSources(table: StoredTable, filter: RowFilter): RowSource[] {
  const segments = table.segments.filter(
    ({ entry }) => entry.minSeq <= filter.seqMax && entry.maxSeq > filter.after,
  );
  const history = historyFor(table, filter);
  const all = [...segments, ...history];
  if (history.length > 0 && filter.share === undefined) return [new MergedScan(table, all, filter)];
  return all.map((segment) => sourceOf(table, segment, filter));
}

/**
 * Returns the ranges of values through which rows are selected; undefined if all rows are read.
 * Selecting rows through a sort order pays off only if the order has been requested before and
 * would stay in the cache.
 */
function wantedSpans(table: StoredTable, { keySpans, upTo }: ScanOptions): KeySpans | undefined {
  if (keySpans === undefined || !table.isOrderWanted(keySpans.columnId)) return undefined;
  const rowCount = table.segments.reduce((sum, { entry }) => sum + entry.rowCount, 0);
  if (areOrdersKept(rowCount)) return keySpans;
  const readable = table.segments.filter(({ entry }) => !entry.quarantined);
  const counts = readable.map((segment) =>
    segment.guard(() => segment.livePages.rowsInLivePages(upTo)),
  );
  return areOrdersKept(counts.reduce((sum, count) => sum + count, 0)) ? keySpans : undefined;
}

/**
 * Scans the rows of segments and history segments, whose seqs overlap, in ascending order of seq.
 */
class MergedScan implements RowSource {
  readonly #table: StoredTable;
  readonly #columnIds: readonly number[];
  readonly #sources: readonly RowSource[];
  readonly #merge: SeqMerge<ScanBatch>;

  constructor(table: StoredTable, segments: readonly OpenSegment[], filter: RowFilter) {
    this.#table = table;
    this.#columnIds = filter.columnIds;
    const known = filter.columnIds.indexOf(SEQ_COLUMN_ID);
    const seqAt = known === -1 ? filter.columnIds.length : known;
    const columnIds = known === -1 ? [...filter.columnIds, SEQ_COLUMN_ID] : filter.columnIds;
    // Merging decodes all numbers in any case, so deferring the decoding would gain nothing.
    const withSeq = { ...filter, columnIds, defersNumbers: false };
    const sources = segments.map((segment) => sourceOf(table, segment, withSeq));
    this.#sources = sources;
    this.#merge = new SeqMerge(
      segments.map(({ entry: { minSeq } }, index) => ({
        minSeq,
        next: (limit) => sources[index]?.next(limit),
      })),
      (batch) => seqsOf(columnAt(batch, seqAt)),
    );
  }

  get groupsRead(): number {
    return this.#sources.reduce((sum, { groupsRead }) => sum + groupsRead, 0);
  }

  get groupsPruned(): number {
    return this.#sources.reduce((sum, { groupsPruned }) => sum + groupsPruned, 0);
  }

  next(limit: number): ScanBatch | undefined {
    const merged = this.#merge.next(limit);
    if (merged === undefined) return undefined;
    if (merged.rowCount === 0) return NO_ROWS;
    const columns = this.#columnIds.map((columnId, index) =>
      merged.column(columnTypeOf(this.#table, columnId), (batch) => columnAt(batch, index)),
    );
    return { rowCount: merged.rowCount, columns };
  }

  close(): void {
    for (const source of this.#sources) source.close();
  }
}

function sourceOf(table: StoredTable, segment: OpenSegment, filter: RowFilter): RowSource {
  if (segment.isHistory) return new HistoryScan(table, segment, filter);
  return new SegmentScan(table, segment, filter);
}

function columnAt({ columns }: ScanBatch, index: number): Vector {
  return defined(columns[index], "table scan: requested column is missing from the result");
}

function seqsOf(vector: Vector): Float64Array {
  if (vector.kind === "f64") return vector.values.subarray(0, vector.length);
  return Float64Array.from(valuesOf(vector), Number);
}
