/**
 * Reads changes: every version of one owner above a seq, in ascending seq order, together with the
 * version that it replaced. Subscriptions read new changes through such scans, and a subscription
 * that resumes reads the changes that it missed.
 *
 * If a key is inserted again after its tombstone has moved to history, the new version does not
 * refer to the tombstone, because INSERT does not search history. This scan finds such tombstones
 * on request.
 */

import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import type { ChangeBatch, ChangeScan, ChangesOptions } from "../contract/changes.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { gathered } from "../memtable/memtable_segment.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import { buriedTombstone } from "../table/past_versions.ts";
import type { StoredTable } from "../table/table.ts";
import { memtableCell, memtableColumn } from "./memtable_scan.ts";
import { oldVersions } from "./old_versions.ts";
import { columnTypeOf, GroupColumns, rowsAtOnce } from "./segment_scan.ts";
import { SeqMerge } from "./seq_merge.ts";

/** Versions from one memtable or segment, before the versions that they replaced are looked up. */
type Versions = Omit<ChangeBatch, "hasOld" | "oldColumns">;

interface VersionSource {
  next(limit: number): Versions | undefined;
}

export class StoreChangeScan implements ChangeScan {
  readonly #table: StoredTable;
  readonly #options: ChangesOptions;
  readonly #batchRows: number;
  readonly #pinned: readonly OpenSegment[];
  readonly #sources: VersionSource[] = [];
  #index = 0;
  #isOpen = true;

  constructor(table: StoredTable, options: ChangesOptions) {
    this.#table = table;
    this.#options = options;
    this.#batchRows = options.batchRows ?? BATCH_ROWS_MAX;
    const { after, upTo } = options;
    this.#pinned = table.allSegments.filter(
      ({ entry }) => entry.minSeq <= upTo && entry.maxSeq > after,
    );
    for (const segment of this.#pinned) segment.pin();
    const stored = this.#pinned.map((segment) => new SegmentVersions(table, segment, options));
    if (this.#pinned.some(({ isHistory }) => isHistory)) {
      this.#sources.push(new MergedVersions(table, stored, options));
    } else this.#sources.push(...stored);
    for (const memtable of table.memtables()) {
      const partition = memtable.partitions.get(options.owner);
      if (partition === undefined) continue;
      this.#sources.push(new MemtableVersions(table, memtable, { partition, options }));
    }
  }

  next(): ChangeBatch | undefined {
    if (!this.#isOpen) return undefined;
    if (this.#table.isDropped) {
      throw new DatabaseError(
        "TABLE_NOT_FOUND",
        `Cannot read the changes to ${this.#table.definition.name}: the table has been dropped`,
      );
    }
    for (;;) {
      const source = this.#sources[this.#index];
      if (source === undefined) return undefined;
      const versions = source.next(this.#batchRows);
      if (versions !== undefined) return this.#withOld(versions);
      this.#index += 1;
    }
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const segment of this.#pinned) segment.unpin();
  }

  #withOld(versions: Versions): ChangeBatch {
    const { columnIds, owner } = this.#options;
    const prevs = this.#prevsOf(versions);
    return { ...versions, prevs, ...oldVersions(this.#table, prevs, { columnIds, owner }) };
  }

  /**
   * Returns the seqs of the replaced versions. They include tombstones that had moved to history
   * before their keys were inserted again.
   */
  #prevsOf({ deleted, prevs, rowCount, seqs }: Versions): Float64Array {
    const { owner, prevsAfter = Infinity } = this.#options;
    const { history, keyPositions } = this.#table;
    const mayBeBuried =
      keyPositions.length > 0 && history.some(({ entry }) => entry.maxSeq > prevsAfter);
    if (!mayBeBuried) return prevs;
    const exact = prevs.slice();
    for (let row = 0; row < rowCount; row += 1) {
      if (exact[row] !== 0 || deleted[row] === 1) continue;
      exact[row] = buriedTombstone(this.#table, { owner, seq: seqs[row] ?? 0 }, prevsAfter);
    }
    return exact;
  }
}

/** Merges the versions in segments and history segments, whose seqs overlap. */
class MergedVersions implements VersionSource {
  readonly #table: StoredTable;
  readonly #columnIds: readonly number[];
  readonly #merge: SeqMerge<Versions>;

  constructor(
    table: StoredTable,
    sources: readonly SegmentVersions[],
    { columnIds }: ChangesOptions,
  ) {
    this.#table = table;
    this.#columnIds = columnIds;
    this.#merge = new SeqMerge(sources, ({ seqs }) => seqs);
  }

  next(limit: number): Versions | undefined {
    const merged = this.#merge.next(limit);
    if (merged === undefined) return undefined;
    return {
      rowCount: merged.rowCount,
      seqs: merged.floats(({ seqs }) => seqs),
      commitSeqs: merged.floats(({ commitSeqs }) => commitSeqs),
      prevs: merged.floats(({ prevs }) => prevs),
      deleted: merged.flags(({ deleted }) => deleted),
      columns: this.#columnIds.map((columnId, index) => {
        const type = columnTypeOf(this.#table, columnId);
        return merged.column(type, ({ columns }) =>
          defined(columns[index], "change scan: row version lacks a requested column"),
        );
      }),
    };
  }
}

class MemtableVersions implements VersionSource {
  readonly #table: StoredTable;
  readonly #memtable: Memtable;
  readonly #partition: MemPartition;
  readonly #columnIds: readonly number[];
  #index: number;
  readonly #end: number;

  constructor(
    table: StoredTable,
    memtable: Memtable,
    { options, partition }: { partition: MemPartition; options: ChangesOptions },
  ) {
    this.#table = table;
    this.#memtable = memtable;
    this.#columnIds = options.columnIds;
    this.#partition = partition;
    this.#index = memtable.indexAfter(partition, options.after);
    this.#end = memtable.indexAfter(partition, options.upTo);
  }

  next(limit: number): Versions | undefined {
    const start = this.#index;
    if (start >= this.#end) return undefined;
    const end = Math.min(start + limit, this.#end);
    this.#index = end;
    if (end === start + 1) return this.#one(this.#partition.rows[start] ?? 0);
    const memtable = this.#memtable;
    const rows = this.#partition.rows.subarray(start, end);
    return {
      rowCount: rows.length,
      seqs: gathered(memtable.seqs, new Float64Array(rows.length), rows),
      commitSeqs: gathered(memtable.commitSeqs, new Float64Array(rows.length), rows),
      prevs: gathered(memtable.prevs, new Float64Array(rows.length), rows),
      deleted: gathered(memtable.deleted, new Uint8Array(rows.length), rows),
      columns: this.#columnIds.map((columnId) =>
        memtableColumn(this.#table, memtable, { columnId, rows }),
      ),
    };
  }

  /**
   * When the live layer wakes up, there is usually a single version to read. Reading its values
   * costs less than creating views of the columns.
   */
  #one(row: number): Versions {
    const memtable = this.#memtable;
    return {
      rowCount: 1,
      seqs: onlyFloat(memtable.seqs[row] ?? 0),
      commitSeqs: onlyFloat(memtable.commitSeqs[row] ?? 0),
      prevs: onlyFloat(memtable.prevs[row] ?? 0),
      deleted: onlyByte(memtable.deleted[row] ?? 0),
      columns: this.#columnIds.map((columnId) =>
        memtableCell(this.#table, memtable, { columnId, row }),
      ),
    };
  }
}

function onlyFloat(value: number): Float64Array {
  const values = new Float64Array(1);
  values[0] = value;
  return values;
}

function onlyByte(value: number): Uint8Array {
  const values = new Uint8Array(1);
  values[0] = value;
  return values;
}

class SegmentVersions implements VersionSource {
  readonly minSeq: number;
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #options: ChangesOptions;
  #row = -1;
  #end = -1;
  #group = -1;
  #columns: GroupColumns | undefined;
  /** The maximum number of rows that may be read at a time in the current row group. */
  #rowsMax = Infinity;

  constructor(table: StoredTable, segment: OpenSegment, options: ChangesOptions) {
    this.minSeq = segment.entry.minSeq;
    this.#table = table;
    this.#segment = segment;
    this.#options = options;
  }

  next(limit: number): Versions | undefined {
    return this.#segment.guard(() => this.#next(limit));
  }

  #next(limit: number): Versions | undefined {
    const { reader } = this.#segment;
    if (this.#row === -1) this.#start();
    if (this.#row >= this.#end) return undefined;
    const group = reader.groupOf(this.#row);
    const groupStart = reader.groupStart(group);
    const groupEnd = Math.min(this.#end, groupStart + reader.groupRows(group));
    if (group !== this.#group || this.#columns === undefined) {
      this.#group = group;
      this.#columns = new GroupColumns(this.#table, this.#segment, {
        group,
        start: this.#row - groupStart,
        end: groupEnd - groupStart,
      });
      this.#rowsMax = rowsAtOnce(reader, group, this.#options.columnIds);
    }
    const columns = this.#columns;
    const from = this.#row - groupStart;
    const to = Math.min(this.#row + limit, this.#row + this.#rowsMax, groupEnd) - groupStart;
    this.#row = groupStart + to;
    return {
      rowCount: to - from,
      seqs: reader.seqs(group).subarray(from, to),
      commitSeqs: reader.commitSeqs(group).subarray(from, to),
      prevs: reader.prevs(group).subarray(from, to),
      deleted: reader.deleted(group).subarray(from, to),
      columns: this.#options.columnIds.map((columnId) => columns.rows(columnId, from, to)),
    };
  }

  #start(): void {
    const { reader } = this.#segment;
    const { owner, after, upTo } = this.#options;
    const range = reader.ownerRange(owner) ?? { start: 0, end: 0 };
    this.#row = reader.firstRowAtOrAbove(range, after + 1);
    this.#end = reader.firstRowAtOrAbove(range, upTo + 1);
  }
}
