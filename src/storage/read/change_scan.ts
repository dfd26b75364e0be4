/**
 * Changes: every version of one owner above a position, in ascending seq, each beside the version
 * that it replaced. This is what a subscription follows and what a resume replays.
 */

import { DatabaseError } from "../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { constVector, type Value, type Vector, vectorFromValues } from "../../types/mod.ts";
import { type ChangeBatch, type ChangeScan, type ChangesOptions } from "../contract/store.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { MemPartition, Memtable } from "../memtable/memtable.ts";
import { gathered } from "../memtable/memtable_segment.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { memtableCell, memtableColumn } from "./memtable_scan.ts";
import { GroupColumns, rowsAtOnce } from "./segment_scan.ts";

/** Versions of one place, before the versions that they replaced are looked up. */
type Versions = Omit<ChangeBatch, "hasOld" | "oldColumns">;

interface VersionSource {
  next(limit: number): Versions | undefined;
}

export class StoreChangeScan implements ChangeScan {
  readonly #table: StoredTable;
  readonly #options: ChangesOptions;
  readonly #batchRows: number;
  readonly #pinned: readonly OpenSegment[];
  readonly #sources: VersionSource[];
  #index = 0;
  #isOpen = true;

  constructor(table: StoredTable, options: ChangesOptions) {
    this.#table = table;
    this.#options = options;
    this.#batchRows = options.batchRows ?? BATCH_ROWS_MAX;
    // All of them: a replaced version may lie in any older segment.
    this.#pinned = [...table.segments];
    for (const segment of this.#pinned) segment.pin();
    const { after, upTo } = options;
    this.#sources = [];
    for (const segment of this.#pinned) {
      const { maxSeq, minSeq } = segment.entry;
      if (minSeq <= upTo && maxSeq > after) {
        this.#sources.push(new SegmentVersions(table, segment, options));
      }
    }
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
        `Cannot read changes of ${this.#table.definition.name}: the table was dropped`,
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
    const { rowCount, prevs } = versions;
    const { columnIds, owner } = this.#options;
    const hasOld = new Uint8Array(rowCount);
    if (areZero(prevs)) {
      const nothing = constVector(null, rowCount);
      const oldColumns = columnIds.map(() => nothing);
      return { ...versions, hasOld, oldColumns };
    }
    const oldValues = columnIds.map((): Value[] => Array.from({ length: rowCount }, () => null));
    for (let row = 0; row < rowCount; row += 1) {
      const prev = prevs[row] ?? 0;
      const old = prev === 0 ? undefined : this.#table.findSeq(owner, prev);
      if (old === undefined || old.isDeleted) continue;
      hasOld[row] = 1;
      for (const [index, columnId] of columnIds.entries()) {
        const values = oldValues[index];
        if (values !== undefined) values[row] = this.#table.valueAt(old, columnId);
      }
    }
    const oldColumns = columnIds.map((columnId, index) =>
      this.#oldColumn(columnId, oldValues[index] ?? []),
    );
    return { ...versions, hasOld, oldColumns };
  }

  #oldColumn(columnId: number, values: readonly Value[]): Vector {
    if (columnId === SEQ_COLUMN_ID) return vectorFromValues({ kind: "bigint" }, values);
    if (columnId === DELETED_COLUMN_ID) return vectorFromValues({ kind: "boolean" }, values);
    return vectorFromValues(this.#table.column(columnId)?.type ?? { kind: "text" }, values);
  }
}

/** A loop and no call for each: it is asked of every single change. */
function areZero(values: Float64Array): boolean {
  for (let index = 0; index < values.length; index += 1) if (values[index] !== 0) return false;
  return true;
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

  /** Most wakes of the live layer read one version: its values cost less than views of them. */
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
  readonly #table: StoredTable;
  readonly #segment: OpenSegment;
  readonly #options: ChangesOptions;
  #row = -1;
  #end = -1;
  #group = -1;
  #columns: GroupColumns | undefined;
  /** Rows that are read at a time in the current group. */
  #rowsMax = Infinity;

  constructor(table: StoredTable, segment: OpenSegment, options: ChangesOptions) {
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
