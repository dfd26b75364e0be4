/**
 * One table: its definition and, from oldest to newest, where its row versions lie.
 *
 *     segments (ascending, disjoint seq ranges) → frozen memtable, while it is flushed → memtables
 *     that wait for that, because a large commit came with one of its own → active
 *
 * Readers see them as one ascending stream per owner.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError, DiskError, isDamage, withDetails } from "../../base/errors.ts";
import type { Seq, SeqGenerator } from "../../base/seq.ts";
import { WorkLine } from "../../base/work_line.ts";
import { type Row, type Value, type Vector, valueAt } from "../../types/mod.ts";
import { type Key, keyOfRow, keyOfValues } from "../contract/key.ts";
import type { TableState } from "../contract/manifest.ts";
import { type LookupOptions, type StoredColumn, type TableDefinition } from "../contract/store.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { unavailable } from "../directory/storage_directory.ts";
import { converted, convertMemColumn, formOf } from "../memtable/convert.ts";
import { type MemPartition, Memtable } from "../memtable/memtable.ts";
import type { LowWater } from "./history.ts";
import type { MissedReplacement, OpenSegment } from "./open_segment.ts";
import type { StorageFaults } from "./segment_files.ts";
import { VersionCursor } from "./version_cursor.ts";

/** What the manifest knows of a table. */
export interface TableProgress {
  readonly flushedSeq: number;
  readonly lowWater: LowWater;
  readonly lastFlushedAtMs: number | undefined;
}

/** The progress of a table as the manifest keeps it. */
export function tableStateOf(
  tableId: number,
  { flushedSeq, lastFlushedAtMs, lowWater }: TableProgress,
): TableState {
  const ownerLowWaters = lowWater.entries();
  return {
    tableId,
    flushedSeq: flushedSeq as Seq,
    lowWaterSeq: lowWater.floor as Seq,
    lastFlushedAtMs: lastFlushedAtMs ?? 0,
    ...(ownerLowWaters.length === 0 ? {} : { ownerLowWaters }),
  };
}

export class StoredTable {
  active: Memtable;
  frozen: Memtable | undefined;
  /** Older than the active one, oldest first; nothing is added to them. */
  #waiting: Memtable[] = [];
  /** Ascending by seq. */
  segments: OpenSegment[];
  progress: TableProgress;
  isDropped = false;
  /** Why nobody reads or writes it: a storage of its segments is not available. */
  fault: DatabaseError | undefined;
  /** Why its storage did not take the rows of the last flush. */
  storageFailure: DatabaseError | DiskError | undefined;
  /** What was replaced up to here goes before its time, since history takes too much room. */
  sizeHorizonSeq = 0;
  /** A flush and a merge may run at a time, but not the parts in which they change the segments. */
  readonly publishing: WorkLine = new WorkLine();
  /** Live rows of all owners at the visible seq; undefined until somebody asked. */
  liveRows: number | undefined;
  #definition: TableDefinition;
  #keyPositions: readonly number[] = [];
  readonly #cursor = new VersionCursor();
  /** Columns in whose order somebody wanted rows; false for those that are too large for it. */
  readonly #orderedColumns = new Map<number, boolean>();
  /** The key under search, so that a search allocates nothing. */
  readonly #keyValues: Value[] = [];

  constructor(
    definition: TableDefinition,
    { segments, progress }: { segments: OpenSegment[]; progress: TableProgress },
  ) {
    this.#definition = definition;
    this.#keyPositions = keyPositionsOf(definition);
    this.active = new Memtable(definition.columns);
    this.segments = segments;
    this.progress = progress;
  }

  get tableId(): number {
    return this.#definition.tableId;
  }

  get definition(): TableDefinition {
    return this.#definition;
  }

  set definition(definition: TableDefinition) {
    assert(definition.tableId === this.tableId, "a table keeps its id");
    this.#definition = definition;
    this.#keyPositions = keyPositionsOf(definition);
    this.active.redefine(definition.columns, convertMemColumn);
    for (const memtable of this.#older()) memtable.redefine(definition.columns, convertMemColumn);
  }

  /** Keeps a fault of the storages that it needs, and leaves its segments alone from then on. */
  noteFaults(storages: Pick<StorageFaults, "faultOf">): void {
    const { home, name } = this.#definition;
    for (const each of [home, ...this.segments.map(({ entry }) => entry.home)]) {
      const what = each === undefined ? undefined : storages.faultOf(each.storageId);
      if (each === undefined || what === undefined) continue;
      this.fault ??= unavailable(`use table ${name} in`, each, what);
    }
    if (this.fault === undefined) return;
    for (const segment of this.segments) {
      if (!segment.entry.quarantined) segment.quarantine({ isForGood: false });
    }
  }

  /** The table itself. @throws {DatabaseError} STORAGE_UNAVAILABLE */
  requireAvailable(): StoredTable {
    const { fault } = this;
    if (fault !== undefined) throw withDetails(fault, {});
    return this;
  }

  /**
   * For who is about to add rows: those that no flush can write stay in memory, and in the log.
   *
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  requireStorageRoom(): void {
    const { storageFailure: failure } = this;
    const { home, name } = this.#definition;
    if (failure === undefined || home === undefined) return;
    if (failure instanceof DiskError && failure.code === "ENOSPC") {
      throw new DatabaseError(
        "DISK_FULL",
        `Cannot write to ${name}: the disk of storage ${home.storageId} is full`,
        { hint: `make room in ${home.root}; rows can be deleted meanwhile` },
      );
    }
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot write to ${name}: storage ${home.storageId} does not take its rows: ${failure.message}`,
      {
        hint: `STORAGE CHECK ${home.storageId} says how it is; the server tries again every few seconds`,
      },
    );
  }

  /** Places of the key columns in a row; none when the table has no key. */
  get keyPositions(): readonly number[] {
    return this.#keyPositions;
  }

  /** Whether rows were wanted in the order of a column before; they are wanted now. */
  isOrderWanted(columnId: number): boolean {
    const isWanted = this.#orderedColumns.get(columnId);
    if (isWanted === undefined) this.#orderedColumns.set(columnId, true);
    return isWanted ?? false;
  }

  /** Nobody is given rows in the order of a column any more. */
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
   * Row versions at or below this are past their time to live; 0 where there is none.
   *
   * It never falls, whatever happens to the wall clock: expired rows stay away, because another row
   * may have taken the key of one since. The one exception: if nothing was written while the clock
   * was ahead and the server was then restarted, rows that expired meanwhile reappear until their
   * time comes.
   */
  expiredSeq(ids: Pick<SeqGenerator, "agedSeq">): number {
    const { expiredSeq = 0, ttlMs } = this.#definition;
    // A version of the millisecond before has lived as long as it may.
    return ttlMs === undefined ? 0 : Math.max(expiredSeq, ids.agedSeq(ttlMs));
  }

  /** Freezes the oldest memtable, to be flushed; goes on with an empty one if that was active. */
  freeze(): Memtable {
    assert(this.frozen === undefined, "one memtable is flushed at a time");
    this.frozen = this.#waiting.shift();
    if (this.frozen !== undefined) return this.frozen;
    this.frozen = this.active;
    this.active = new Memtable(this.#definition.columns);
    return this.frozen;
  }

  /** Goes on with a memtable that has rows already, newer than all that are here. */
  adopt(memtable: Memtable): void {
    const isAbove = memtable.rowCount === 0 || (memtable.seqs[0] ?? 0) > this.active.lastSeq;
    assert(isAbove, "memtables ascend by seq");
    if (this.active.rowCount > 0) this.#waiting.push(this.active);
    this.active = memtable;
  }

  /** Goes on with an empty memtable, where the active one has rows. */
  beginMemtable(): void {
    if (this.active.rowCount > 0) this.adopt(new Memtable(this.#definition.columns));
  }

  /** Whether memtables wait to be flushed. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The first file of the log that has rows of its memtables; undefined when they have none. */
  get firstLogFile(): number | undefined {
    let first: number | undefined;
    for (const memtable of this.#older()) first = earlierFile(first, memtable);
    return earlierFile(first, this.active);
  }

  /** Memtables, oldest first. */
  memtables(): Memtable[] {
    return [...this.#older(), this.active];
  }

  /** All but the active one, oldest first. */
  #older(): Memtable[] {
    return this.frozen === undefined ? this.#waiting : [this.frozen, ...this.#waiting];
  }

  /**
   * Stands on the newest version of the key of a row, tombstones included. Valid until the next
   * search. `partition` is the owner's in the active memtable.
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

  /** The same, for an owner who may have no partition yet. */
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
    return this.#findInSegments(owner, values);
  }

  /** As {@linkcode findNewestOf}, for a row of a batch that has every column. */
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
    // Such a key is its value, which is made of bytes once.
    if (only?.kind === "utf8") values.push(key);
    else {
      for (const position of this.#keyPositions) {
        const column = columns[position];
        values.push(column === undefined ? null : valueAt(column, row));
      }
    }
    return this.#findInSegments(owner, values);
  }

  /**
   * A bound above which no key of an owner is found that is a single number: rows whose keys ascend
   * need not be looked for one by one.
   */
  highestKey(owner: number): number {
    let highest = this.active.partitions.get(owner)?.highestKey ?? Number.NEGATIVE_INFINITY;
    for (const memtable of this.#older()) {
      const older = memtable.partitions.get(owner);
      if (older !== undefined) highest = Math.max(highest, older.highestKey);
    }
    for (const segment of this.segments) highest = Math.max(highest, segment.highestKey);
    return highest;
  }

  /** Stands on the newest version of a key, tombstones included. Valid until the next search. */
  findKey(owner: number, values: Row): VersionCursor | undefined {
    const key = keyOfValues(values);
    if (this.#standOnKey(this.active, owner, key)) return this.#cursor;
    if (this.#standOnOlderKey(owner, key)) return this.#cursor;
    return this.#findInSegments(owner, values);
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

  /** The live row of a key at a seq; what is not above `expiredSeq` has vanished. */
  lookup({ owner, key, upTo, columnIds }: LookupOptions, expiredSeq: number): Row | undefined {
    let cursor = this.findKey(owner, key);
    while (cursor !== undefined && cursor.seq > upTo) {
      const { prev } = cursor;
      cursor = prev === 0 ? undefined : this.findSeq(owner, prev);
    }
    if (cursor === undefined || cursor.isDeleted || cursor.seq <= expiredSeq) return undefined;
    const row: Value[] = [];
    for (const columnId of columnIds) row.push(this.valueAt(cursor, columnId));
    return row;
  }

  /** Stands on the version of an owner with exactly this seq. Valid until the next search. */
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
    return undefined;
  }

  #standOnSeq(memtable: Memtable, owner: number, seq: number): boolean {
    const row = memtable.rowOfSeq(owner, seq);
    if (row === -1) return false;
    this.#cursor.standInMemtable(memtable, row);
    return true;
  }

  /** The value of a column at a version; what versions before the column read, too. */
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

  /** Keeps for later what could not be noted in the segment that has the replaced version. */
  noteMissed(replacement: MissedReplacement): void {
    const { seq } = replacement;
    const segment = this.segments.find(({ entry }) => entry.minSeq <= seq && seq <= entry.maxSeq);
    segment?.noteMissed(replacement);
  }

  /**
   * Takes back the newest rows of a memtable, down to `rowCount`: keys and replacements are again
   * as if the rows had never been.
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

  #findInSegments(owner: number, key: Row): VersionCursor | undefined {
    for (let index = this.segments.length - 1; index >= 0; index -= 1) {
      const segment = this.segments[index];
      const row = segment?.findKey(owner, key) ?? -1;
      if (segment !== undefined && row !== -1) {
        this.#cursor.standInSegment(segment, row);
        return this.#cursor;
      }
    }
    return undefined;
  }
}

/**
 * Notes something at a version that was replaced, if the segment that holds it can be read. Returns
 * whether it could.
 */
export function unlessDamaged(note: () => void): boolean {
  try {
    note();
    return true;
  } catch (error) {
    // Safe: the segment is quarantined by now, and whoever reads it hears of it.
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
    assert(position !== -1, "a key column is a column");
    return position;
  });
}
