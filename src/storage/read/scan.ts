/**
 * Scans: the rows of one owner that are current at a seq, as vectors, in ascending seq.
 *
 * The sources are fixed when the scan opens: segments, which it pins, then memtables. What is
 * written later has a higher seq than the bound, and a flush that happens meanwhile leaves the old
 * memtable to the scans that read it. ALTER TABLE may come in between, too: a scan that reads a
 * column whose values look different now, or that is gone, ends with an error.
 */
import { assert } from "../../base/assert.ts";
import { BATCH_ROWS_MAX, ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { SEQ_ZERO } from "../../base/seq.ts";
import type { KeySpans, Scan, ScanBatch, ScanOptions } from "../contract/store.ts";
import { areOrdersKept } from "../segment/column_orders.ts";
import type { StoredTable } from "../table/table.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import { MemtableScan } from "./memtable_scan.ts";
import type { RowFilter, RowSource } from "./row_source.ts";
import { SegmentScan } from "./segment_scan.ts";

export class StoreScan implements Scan {
  readonly #watch: DefinitionWatch;
  readonly #sources: RowSource[];
  readonly #batchRows: number;
  #index = 0;

  constructor(table: StoredTable, options: ScanOptions) {
    const { batchRows = BATCH_ROWS_MAX } = options;
    assert(batchRows >= 1, "a batch has a row");
    assert(batchRows <= ROW_GROUP_ROWS_MAX, "a batch fits a row group");
    this.#batchRows = batchRows;
    this.#watch = new DefinitionWatch(table, options.columnIds);
    const filter: RowFilter = {
      owner: options.owner,
      upTo: options.upTo,
      after: options.after ?? SEQ_ZERO,
      seqMax: Math.min(options.seqMax ?? options.upTo, options.upTo),
      columnIds: options.columnIds,
      ranges: options.ranges ?? [],
      keySpans: wantedSpans(table, options.keySpans),
      withTombstones: options.withTombstones ?? false,
      reusesMemory: options.reusesMemory ?? false,
      defersNumbers: options.defersNumbers ?? false,
      mayBeEmpty: options.mayBeEmpty ?? false,
      share: options.share,
    };
    this.#sources = [
      ...table.segments
        .filter(({ entry }) => entry.minSeq <= filter.seqMax && entry.maxSeq > filter.after)
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

  /** @throws {DatabaseError} SERIALIZATION_FAILURE when a column was altered meanwhile. */
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

/** To find rows by their order is worth it once somebody wanted that before, and if it is kept. */
function wantedSpans(table: StoredTable, keySpans: KeySpans | undefined): KeySpans | undefined {
  if (keySpans === undefined || !table.isOrderWanted(keySpans.columnId)) return undefined;
  const rowCount = table.segments.reduce((sum, { entry }) => sum + entry.rowCount, 0);
  return areOrdersKept(rowCount) ? keySpans : undefined;
}
