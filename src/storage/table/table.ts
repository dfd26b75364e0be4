/**
 * Represents one table: its definition, and the memtables and segments that contain its row
 * versions, from oldest to newest.
 *
 *     segments (ascending, disjoint seq ranges) → frozen memtable, while it is flushed → memtables that
 *     wait for a flush, because a large commit brought its own memtable → active memtable
 *
 * Readers see the memtables and segments as one ascending stream per owner. History segments are
 * separate: they contain versions replaced at or below the flushed seq, and tombstones up to that
 * seq. Only reads of past states need them. Every version is in exactly one place.
 */
import { assert, defined } from "../../base/assert.ts";
import { DatabaseError, DiskError, isDamage, withDetails } from "../../base/errors.ts";
import type { Seq, SeqGenerator } from "../../base/seq.ts";
import { WorkLine } from "../../base/work_line.ts";
import {
  hasKeyForm,
  keyFormOf,
  type Row,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import { type Key, keyOfRow, keyOfValues } from "../contract/key.ts";
import { computedKey, type IndexColumn } from "../contract/key_expressions.ts";
import type { SegmentEntry, TableState } from "../contract/manifest.ts";
import type { LookupOptions } from "../contract/scans.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { StoredColumn, TableDefinition } from "../contract/table_definition.ts";
import { unavailable } from "../directory/storage_directory.ts";
import { converted, convertMemColumn, formOf } from "../memtable/convert.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import { Memtable } from "../memtable/memtable.ts";
import type { LowWatermark } from "./history.ts";
import type { MissedReplacement, OpenSegment } from "./open_segment.ts";
import type { StorageFaults } from "./segment_files.ts";
import { isEnforced, type TableIndex, tableIndexesOf } from "./table_index.ts";
import { VersionCursor } from "./version_cursor.ts";

/** The part of a table's state that is recorded in the manifest. */
export interface TableProgress {
  readonly flushedSeq: number;
  readonly lowWatermark: LowWatermark;
  readonly lastFlushedAtMs: number | undefined;
}

/** Converts a table's state to its manifest form. */
export function tableStateOf(
  tableId: number,
  { flushedSeq, lastFlushedAtMs, lowWatermark }: TableProgress,
): TableState {
  const ownerLowWaters = lowWatermark.entries();
  return {
    tableId,
    flushedSeq: flushedSeq as Seq,
    lowWaterSeq: lowWatermark.floor as Seq,
    lastFlushedAtMs: lastFlushedAtMs ?? 0,
    ...(ownerLowWaters.length === 0 ? {} : { ownerLowWaters }),
  };
}

export class StoredTable {
  active: Memtable;
  frozen: Memtable | undefined;
  /**
   * The memtables between the frozen and the active memtable, oldest first. No rows are added to
   * them.
   */
  #waiting: Memtable[] = [];
  /** The segments with current versions, in ascending order. Their seqs do not overlap. */
  segments: OpenSegment[];
  /**
   * History segments, in ascending order of their lowest seq. Their seqs may overlap with the seqs
   * of any other segment.
   */
  history: OpenSegment[];
  progress: TableProgress;
  isDropped = false;
  /**
   * The error for reads and writes of the table while the storage of some of its segments is
   * unavailable; undefined if the table is available.
   */
  fault: DatabaseError | undefined;
  /**
   * The error with which the table's storage refused the rows of the last flush; undefined if the
   * storage accepted them.
   */
  storageFailure: DatabaseError | DiskError | undefined;
  /**
   * The seq up to which replaced versions are discarded early because history takes up too much
   * space.
   */
  sizeFloorSeq = 0;
  /** The seq above which replaced versions are kept, regardless of their age and size. */
  heldAfterSeq: number = Infinity;
  /**
   * Serialises the parts of flushes and merges that change the list of segments. Their other parts
   * may run at the same time.
   */
  readonly publishing: WorkLine = new WorkLine();
  /** The number of live rows over all owners at the visible seq; undefined until requested. */
  liveRows: number | undefined;
  #definition: TableDefinition;
  #keyPositions: readonly number[] = [];
  #indexes: readonly TableIndex[] = [];
  #enforcedIndexes: readonly TableIndex[] = [];
  readonly #cursor = new VersionCursor();
  /**
   * The columns for which sorted rows have been requested. The value is false if the sort orders
   * of a column would be too large.
   */
  readonly #orderedColumns = new Map<number, boolean>();
  /**
   * The key values for which the current search looks. The array is reused, so a search allocates
   * nothing.
   */
  readonly #keyValues: Value[] = [];

  constructor(
    definition: TableDefinition,
    {
      history = [],
      progress,
      segments,
    }: { segments: OpenSegment[]; history?: OpenSegment[]; progress: TableProgress },
  ) {
    this.#definition = definition;
    this.#keyPositions = keyPositionsOf(definition);
    this.#setIndexes(definition);
    this.active = new Memtable(definition.columns);
    this.segments = segments;
    this.history = history;
    this.progress = progress;
  }

  /** The segments with current versions, followed by the history segments. */
  get allSegments(): readonly OpenSegment[] {
    return this.history.length === 0 ? this.segments : [...this.segments, ...this.history];
  }

  get tableId(): number {
    return this.#definition.tableId;
  }

  get definition(): TableDefinition {
    return this.#definition;
  }

  set definition(definition: TableDefinition) {
    assert(
      definition.tableId === this.tableId,
      "table: new definition belongs to a different table",
    );
    this.#definition = definition;
    this.#keyPositions = keyPositionsOf(definition);
    this.active.redefine(definition.columns, convertMemColumn);
    for (const memtable of this.#older()) memtable.redefine(definition.columns, convertMemColumn);
    this.#setIndexes(definition);
    const indexIds = new Set(definition.indexes?.map(({ indexId }) => indexId));
    for (const memtable of this.memtables()) memtable.keepIndexes(indexIds);
  }

  #setIndexes(definition: TableDefinition): void {
    this.#indexes = tableIndexesOf(definition);
    this.#enforcedIndexes = this.#indexes.filter(isEnforced);
  }

  /** The secondary indexes of the table. */
  get indexes(): readonly TableIndex[] {
    return this.#indexes;
  }

  /** The table's indexes that currently refuse duplicates. */
  get enforcedIndexes(): readonly TableIndex[] {
    return this.#enforcedIndexes;
  }

  /** Returns an index if it may be read; undefined if it is not ready. */
  readyIndex(indexId: number): TableIndex | undefined {
    const index = this.#indexes.find(
      ({ stored }) => stored.indexId === indexId && stored.state === "ready",
    );
    if (index?.stored.isOptional !== true) return index;
    const isWhole = this.segments.every(({ entry }) => entry.indexIds?.includes(indexId) === true);
    return isWhole ? index : undefined;
  }

  /**
   * Records a fault in a storage that the table needs. From then on, the table's segments are left
   * alone.
   */
  noteFaults(storages: Pick<StorageFaults, "faultOf">): void {
    const { home, name } = this.#definition;
    for (const each of [home, ...this.allSegments.map(({ entry }) => entry.home)]) {
      const what = each === undefined ? undefined : storages.faultOf(each.storageId);
      if (each === undefined || what === undefined) continue;
      this.fault ??= unavailable(`use table ${name} in`, each, what);
    }
    if (this.fault === undefined) return;
    for (const segment of this.allSegments) {
      if (!segment.entry.quarantined) segment.quarantine({ isForGood: false });
    }
  }

  /** Returns the table itself if it is available. @throws {DatabaseError} STORAGE_UNAVAILABLE */
  requireAvailable(): StoredTable {
    const { fault } = this;
    if (fault !== undefined) throw withDetails(fault, {});
    return this;
  }

  /**
   * Checks that the table's storage accepts more rows. Must be called before rows are added, since
   * rows that cannot be flushed would stay in memory and in the log.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  requireStorageSpace(): void {
    const { storageFailure: failure } = this;
    const { home, name } = this.#definition;
    if (failure === undefined || home === undefined) return;
    if (failure instanceof DiskError && failure.code === "ENOSPC") {
      throw new DatabaseError(
        "DISK_FULL",
        `Cannot write to ${name}: the disk with storage ${home.storageId} is full`,
        { hint: `free up space in ${home.root}; in the meantime, rows can be deleted` },
      );
    }
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot write to ${name}: storage ${home.storageId} does not accept its rows: ${failure.message}`,
      {
        hint:
          `to see the state of the storage, run STORAGE CHECK ${home.storageId}; the server ` +
          "tries again every few seconds",
      },
    );
  }

  /** The positions of the key columns within a row; empty if the table has no key. */
  get keyPositions(): readonly number[] {
    return this.#keyPositions;
  }

  /**
   * Records a request for rows sorted by a column. Returns whether such rows were requested
   * before.
   */
  isOrderWanted(columnId: number): boolean {
    const isWanted = this.#orderedColumns.get(columnId);
    if (isWanted === undefined) this.#orderedColumns.set(columnId, true);
    return isWanted ?? false;
  }

  /**
   * Records that reads in the order of a column do not pay off. Later reads do not attempt them.
   */
  refuseOrder(columnId: number): void {
    this.#orderedColumns.set(columnId, false);
  }

  column(columnId: number): StoredColumn | undefined {
    for (const column of this.#definition.columns) {
      if (column.columnId === columnId) return column;
    }
    return undefined;
  }

  /**
   * Returns the seq at or below which row versions have expired; 0 if none has.
   *
   * This seq never decreases, even if the wall clock is set back. Expired rows stay invisible,
   * because another row may have been inserted with the same key since. There is one exception: if
   * nothing was written while the clock was ahead, and the server is then restarted, rows that had
   * expired reappear until they expire by the corrected clock.
   */
  expiredSeq(ids: Pick<SeqGenerator, "agedSeq">): number {
    const { expiredSeq = 0, ttlMs } = this.#definition;
    // Versions at or below `agedSeq(ttlMs)` have reached their TTL.
    return ttlMs === undefined ? 0 : Math.max(expiredSeq, ids.agedSeq(ttlMs));
  }

  /**
   * Returns the seq at or below which expired row versions may be discarded; 0 if there are none.
   */
  discardableSeq(ids: Pick<SeqGenerator, "agedSeq" | "lastSeqUpTo" | "msOf">): number {
    const expiredSeq = this.expiredSeq(ids);
    const { heldAfterSeq } = this;
    if (expiredSeq === 0 || heldAfterSeq === Infinity) return expiredSeq;
    if (heldAfterSeq === 0) return 0;
    // A version that had already expired when the hold on history began was not replaced after
    // that.
    const aliveFromMs = ids.msOf(heldAfterSeq) - (this.#definition.ttlMs ?? 0);
    return Math.max(0, Math.min(expiredSeq, ids.lastSeqUpTo(aliveFromMs)));
  }

  /**
   * Freezes the oldest memtable for a flush. If it is the active memtable, an empty memtable takes
   * its place.
   */
  freeze(): Memtable {
    assert(this.frozen === undefined, "table: a frozen memtable is still being flushed");
    this.frozen = this.#waiting.shift();
    if (this.frozen !== undefined) return this.frozen;
    this.frozen = this.active;
    this.frozen.releaseGrowth();
    this.active = new Memtable(this.#definition.columns);
    return this.frozen;
  }

  /**
   * Makes the given memtable, which already contains rows, the active memtable. Its rows must be
   * newer than all other rows.
   */
  adopt(memtable: Memtable): void {
    const isAbove = memtable.rowCount === 0 || (memtable.seqs[0] ?? 0) > this.active.lastSeq;
    assert(isAbove, "table: memtables are not in ascending order of seq");
    if (this.active.rowCount > 0) {
      this.active.releaseGrowth();
      this.#waiting.push(this.active);
    }
    this.active = memtable;
  }

  /** Starts an empty active memtable unless the current active memtable is empty. */
  beginMemtable(): void {
    if (this.active.rowCount > 0) this.adopt(new Memtable(this.#definition.columns));
  }

  /** Whether a memtable between the frozen and the active memtable is waiting to be flushed. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /**
   * The first log file with rows that are in this table's memtables; undefined if the memtables
   * are empty.
   */
  get firstLogFile(): number | undefined {
    let first: number | undefined;
    for (const memtable of this.#older()) first = earlierFile(first, memtable);
    return earlierFile(first, this.active);
  }

  /** Returns all memtables of the table, oldest first. */
  memtables(): Memtable[] {
    return [...this.#older(), this.active];
  }

  /** Returns all memtables except the active memtable, oldest first. */
  #older(): Memtable[] {
    return this.frozen === undefined ? this.#waiting : [this.frozen, ...this.#waiting];
  }

  /**
   * Moves the cursor to the newest version under a row's key, which may be a tombstone. Finds
   * nothing if that version has moved to history. The cursor is valid until the next search.
   * `partition` is the owner's partition in the active memtable.
   */
  findNewest(partition: MemPartition, key: Key, row: Row): VersionCursor | undefined {
    const activeRow = partition.rowOf(key);
    if (activeRow !== undefined) {
      this.#cursor.standInMemtable(this.active, activeRow);
      return this.#cursor;
    }
    if (this.#standOnOlderKey(partition.owner, key)) return this.#cursor;
    return this.#findStored(partition.owner, row);
  }

  /**
   * Finds a version as {@linkcode findNewest} does, for an owner who may not have a partition yet.
   */
  findNewestOf(owner: number, key: Key, row: Row): VersionCursor | undefined {
    if (this.#standOnKey(this.active, owner, key)) return this.#cursor;
    if (this.#standOnOlderKey(owner, key)) return this.#cursor;
    return this.#findStored(owner, row);
  }

  #findStored(owner: number, row: Row): VersionCursor | undefined {
    if (this.segments.length === 0) return undefined;
    const values = this.#keyValues;
    values.length = 0;
    for (const position of this.#keyPositions) values.push(row[position] ?? null);
    return this.#findNewestStored(owner, values);
  }

  /**
   * If the newest version in the segments has been replaced, the version that replaced it has
   * moved to history, and no live row has the key.
   */
  #findNewestStored(owner: number, key: Row): VersionCursor | undefined {
    const found = this.#findInSegments(owner, key, Infinity);
    return found?.isReplaced === true ? undefined : found;
  }

  /** Finds a version as {@linkcode findNewestOf} does, for one row of a batch with all columns. */
  findNewestAt(
    owner: number,
    key: Key,
    { columns, row }: { columns: readonly Vector[]; row: number },
  ): VersionCursor | undefined {
    if (this.#standOnKey(this.active, owner, key)) return this.#cursor;
    if (this.#standOnOlderKey(owner, key)) return this.#cursor;
    if (this.segments.length === 0) return undefined;
    const values = this.#keyValues;
    values.length = 0;
    const only = this.#keyPositions.length === 1 ? columns[this.#keyPositions[0] ?? 0] : undefined;
    // A key that is a single string is the value itself, which saves decoding the string again.
    if (only?.kind === "utf8") values.push(key);
    else {
      for (const position of this.#keyPositions) {
        const column = columns[position];
        values.push(column === undefined ? null : valueAt(column, row));
      }
    }
    return this.#findNewestStored(owner, values);
  }

  /**
   * Returns an upper bound on an owner's keys that consist of a single number. Rows with ascending
   * keys above this bound need not be looked up. If `since` is passed, history segments count only
   * if they have versions above that seq.
   */
  highestKey(owner: number, since: number = Infinity): number {
    let highest = this.active.partitions.get(owner)?.highestKey ?? Number.NEGATIVE_INFINITY;
    for (const memtable of this.#older()) {
      const older = memtable.partitions.get(owner);
      if (older !== undefined) highest = Math.max(highest, older.highestKey);
    }
    for (const segment of this.segments) highest = Math.max(highest, segment.highestKey);
    for (const segment of this.history) {
      if (segment.entry.maxSeq > since) highest = Math.max(highest, segment.highestKey);
    }
    return highest;
  }

  /** Moves the cursor to the version of a key that is current at `upTo`, possibly a tombstone. */
  findCurrent(owner: number, key: Row, upTo: number): VersionCursor | undefined {
    const recent = this.findInMemory(owner, key, upTo);
    if (recent !== undefined) return recent;
    const stored = this.#findInSegments(owner, key, upTo);
    if (stored !== undefined && isCurrent(stored, upTo)) return stored;
    for (const segment of this.historyAt(upTo)) {
      const row = segment.findKey(owner, key, upTo);
      if (row === -1) continue;
      this.#cursor.standInSegment(segment, row);
      if (isCurrent(this.#cursor, upTo)) return this.#cursor;
    }
    return undefined;
  }

  /** Returns the key of the version at the cursor, in the order of the key columns. */
  keyAt(cursor: VersionCursor): Row {
    return this.#definition.keyColumnIds.map((columnId) => this.valueAt(cursor, columnId));
  }

  /** Returns the history segments that contain versions current at `upTo`. */
  historyAt(upTo: number): readonly OpenSegment[] {
    return this.history.filter(({ entry }) => isHistoryAt(entry, upTo));
  }

  /**
   * Moves the cursor to a key's newest version at or below `upTo` if a memtable contains that
   * version or the version that replaced it.
   */
  findInMemory(owner: number, values: Row, upTo: number): VersionCursor | undefined {
    const key = keyOfValues(values);
    let cursor =
      this.#standOnKey(this.active, owner, key) || this.#standOnOlderKey(owner, key)
        ? this.#cursor
        : undefined;
    while (cursor !== undefined && cursor.seq > upTo) {
      const { prev } = cursor;
      cursor = prev === 0 ? undefined : this.findSeq(owner, prev);
    }
    return cursor;
  }

  #standOnOlderKey(owner: number, key: Key): boolean {
    for (let index = this.#waiting.length - 1; index >= 0; index -= 1) {
      const memtable = this.#waiting[index];
      if (memtable !== undefined && this.#standOnKey(memtable, owner, key)) return true;
    }
    return this.frozen !== undefined && this.#standOnKey(this.frozen, owner, key);
  }

  #standOnKey(memtable: Memtable, owner: number, key: Key): boolean {
    const row = memtable.partitions.get(owner)?.rowOf(key);
    if (row === undefined) return false;
    this.#cursor.standInMemtable(memtable, row);
    return true;
  }

  /**
   * Returns the row that is live under a key at a seq. Rows with a seq of at most `expiredSeq`
   * have expired.
   */
  lookup({ owner, key, upTo, columnIds }: LookupOptions, expiredSeq: number): Row | undefined {
    const cursor = this.findCurrent(owner, this.#keyFormOf(key), upTo);
    if (cursor === undefined || cursor.isDeleted || cursor.seq <= expiredSeq) return undefined;
    const row: Value[] = [];
    for (const columnId of columnIds) row.push(this.valueAt(cursor, columnId));
    return row;
  }

  /** Converts the values of a primary key in a search to the form in which rows contain them. */
  #keyFormOf(key: Row): Row {
    const { columns } = this.#definition;
    const isKept = this.#keyPositions.every((at) => {
      const type = columns[at]?.type;
      return type === undefined || !hasKeyForm(type);
    });
    if (isKept) return key;
    return key.map((value, at) => {
      const column = defined(
        columns[this.#keyPositions[at] ?? -1],
        "table: primary key column is missing from the table definition",
      );
      return keyFormOf(column.type, value);
    });
  }

  /**
   * Moves the cursor to an owner's version with exactly this seq. The cursor is valid until the
   * next search.
   */
  findSeq(owner: number, seq: number): VersionCursor | undefined {
    if (this.#standOnSeq(this.active, owner, seq)) return this.#cursor;
    for (let index = this.#waiting.length - 1; index >= 0; index -= 1) {
      const memtable = this.#waiting[index];
      if (memtable !== undefined && this.#standOnSeq(memtable, owner, seq)) return this.#cursor;
    }
    const { frozen } = this;
    if (frozen !== undefined && this.#standOnSeq(frozen, owner, seq)) return this.#cursor;
    for (let index = this.segments.length - 1; index >= 0; index -= 1) {
      const segment = this.segments[index];
      const row = segment?.rowOfSeq(owner, seq) ?? -1;
      if (segment !== undefined && row !== -1) {
        this.#cursor.standInSegment(segment, row);
        return this.#cursor;
      }
    }
    for (const segment of this.history) {
      const row = segment.rowOfSeq(owner, seq);
      if (row === -1) continue;
      this.#cursor.standInSegment(segment, row);
      return this.#cursor;
    }
    return undefined;
  }

  #standOnSeq(memtable: Memtable, owner: number, seq: number): boolean {
    const row = memtable.rowOfSeq(owner, seq);
    if (row === -1) return false;
    this.#cursor.standInMemtable(memtable, row);
    return true;
  }

  /** Returns a version's value in a column, even if the version is older than the column. */
  valueAt(cursor: VersionCursor, columnId: number): Value {
    if (columnId === SEQ_COLUMN_ID) return cursor.seq;
    if (columnId === DELETED_COLUMN_ID) return cursor.isDeleted;
    const column = this.column(columnId);
    const value = cursor.valueOf(columnId);
    if (value === undefined) return column?.missing ?? null;
    const storedType = cursor.typeOf(columnId);
    if (column === undefined || storedType === undefined) return value;
    return converted(value, formOf(storedType), column.type);
  }

  /** Returns a version's value for one key part of an index. */
  keyValueAt(cursor: VersionCursor, { columnId, expression }: IndexColumn): Value {
    if (expression === undefined) return this.valueAt(cursor, columnId);
    return computedKey(
      expression,
      expression.reads.map((each) => this.valueAt(cursor, each.columnId)),
    );
  }

  /** Keeps a replacement that could not be recorded in the replaced version's segment. */
  noteMissed(replacement: MissedReplacement): void {
    const { seq } = replacement;
    const segment = this.segments.find(({ entry }) => entry.minSeq <= seq && seq <= entry.maxSeq);
    segment?.noteMissed(replacement);
  }

  /**
   * Rolls back the newest rows of a memtable, including their keys and replacements, until
   * `rowCount` rows are left.
   */
  takeBack(memtable: Memtable, rowCount: number): void {
    while (memtable.rowCount > rowCount) {
      const row = memtable.rowCount - 1;
      const owner = memtable.owners[row] ?? 0;
      const prev = memtable.prevs[row] ?? 0;
      const partition = memtable.partition(owner);
      if (this.#keyPositions.length > 0) this.#restoreKey(memtable, partition, row);
      if (prev !== 0 && !unlessDamaged(() => this.findSeq(owner, prev)?.revert())) {
        for (const segment of this.segments) if (segment.entry.quarantined) segment.noteUntrue();
      }
      memtable.pop();
    }
  }

  #restoreKey(memtable: Memtable, partition: MemPartition, row: number): void {
    const values = memtable.columns.map((column) => column.valueAt(row));
    const key = keyOfRow(values, this.#keyPositions);
    if (partition.rowOf(key) !== row) return;
    const prev = memtable.prevs[row] ?? 0;
    const before = prev === 0 ? -1 : memtable.rowOfSeq(partition.owner, prev);
    if (before === -1) partition.forgetKey(key);
    else partition.setRow(key, before);
  }

  /** Moves the cursor to a key's newest version at or below `upTo` among the segments. */
  #findInSegments(owner: number, key: Row, upTo: number): VersionCursor | undefined {
    for (let index = this.segments.length - 1; index >= 0; index -= 1) {
      const segment = this.segments[index];
      const row = segment?.findKey(owner, key, upTo) ?? -1;
      if (segment !== undefined && row !== -1) {
        this.#cursor.standInSegment(segment, row);
        return this.#cursor;
      }
    }
    return undefined;
  }
}

/** Whether a history segment contains versions current at `upTo`. */
export function isHistoryAt({ history, minSeq }: SegmentEntry, upTo: number): boolean {
  return history !== undefined && minSeq <= upTo && history.highestReplacingSeq > upTo;
}

/** Whether a version has not been replaced at or below `upTo`. */
function isCurrent({ replacedBy }: VersionCursor, upTo: number): boolean {
  return replacedBy === 0 || replacedBy > upTo;
}

/** Runs an action on a segment. Returns false if the segment is damaged. */
export function unlessDamaged(note: () => void): boolean {
  try {
    note();
    return true;
  } catch (error) {
    // Ignoring the damage is safe: the segment has been quarantined, so later reads of it fail.
    if (!isDamage(error)) throw error;
    return false;
  }
}

function earlierFile(first: number | undefined, memtable: Memtable): number | undefined {
  const { firstLogFile, rowCount } = memtable;
  if (rowCount === 0 || firstLogFile === undefined) return first;
  return Math.min(first ?? firstLogFile, firstLogFile);
}

function keyPositionsOf(definition: TableDefinition): readonly number[] {
  return definition.keyColumnIds.map((columnId) => {
    const position = definition.columns.findIndex((column) => column.columnId === columnId);
    assert(position !== -1, "table: primary key column is missing from the table definition");
    return position;
  });
}
