/**
 * Reads the changes of all owners of a table in ascending seq order, which lets topics count their
 * messages.
 *
 *     segments and history segments ──window by window──► memtables, oldest first
 *     sorted by owner, then seq                           in the order of seqs
 *
 * A segment is sorted by owner, so rows with consecutive seqs may be anywhere in it. The changes
 * are therefore read in windows. A window consists of the next {@linkcode WINDOW_ROWS} versions by
 * seq from all segments: one pass over the segments' seqs finds these versions, and their values
 * are then read one by one. A pass skips row groups by their zone maps, so it is short if few
 * segments have versions within the range. If all rows of a table have the same owner, the scan
 * for a single owner is used instead, which reads whole columns.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Value, vectorFromValues } from "../../types/mod.ts";
import type {
  AllChangesOptions,
  ChangeScan,
  OwnedChangeBatch,
  OwnedChangeScan,
} from "../contract/changes.ts";
import { SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import { SHARED_OWNER } from "../contract/table_definition.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { StoreChangeScan } from "./change_scan.ts";
import { memtableColumn } from "./memtable_scan.ts";
import { foundUnlessLost, oldVersions } from "./old_versions.ts";
import { columnTypeOf } from "./segment_scan.ts";

/** The maximum number of versions in a window. Each version takes 20 bytes. */
const WINDOW_ROWS = 262_144;

/** The number of row groups that one step of a pass examines, which takes a few milliseconds. */
const GROUPS_PER_STEP = 4;

/**
 * The maximum number of rows in a batch. It is small because values in segments are read one by
 * one.
 */
const BATCH_ROWS = 1024;

/** Opens the scan that is fastest for the table. */
export function openAllChanges(
  table: StoredTable,
  options: AllChangesOptions,
  windowRows: number = WINDOW_ROWS,
): OwnedChangeScan {
  const owner = onlyOwnerOf(table, options);
  if (owner === undefined) return new AllChangeScan(table, options, windowRows);
  return new OneOwnerScan(new StoreChangeScan(table, { ...options, owner }), owner);
}

/**
 * Returns the only owner with changes in the range; undefined if there may be several owners, or
 * if damage makes it impossible to tell.
 */
function onlyOwnerOf(table: StoredTable, range: AllChangesOptions): number | undefined {
  if (table.allSegments.some(({ entry }) => entry.quarantined)) return undefined;
  const owners = new Set<number>();
  for (const { partitions } of table.memtables()) {
    if (partitions.size > 1) return undefined;
    for (const owner of partitions.keys()) owners.add(owner);
  }
  for (const { reader } of segmentsWithin(table, range)) {
    if (reader.ownerCount > 1) return undefined;
    owners.add(reader.ownerAt(0).owner);
  }
  if (owners.size > 1) return undefined;
  const [only = SHARED_OWNER] = owners;
  return only;
}

/**
 * Returns the segments that may contain changes within a range. Permanently damaged segments are
 * left out, since their rows are lost.
 */
function segmentsWithin(
  table: StoredTable,
  { after, upTo }: AllChangesOptions,
): readonly OpenSegment[] {
  return table.allSegments.filter(
    ({ entry, listedEntry }) =>
      entry.minSeq <= upTo && entry.maxSeq > after && !listedEntry.quarantined,
  );
}

class OneOwnerScan implements OwnedChangeScan {
  readonly #scan: ChangeScan;
  readonly #owner: number;

  constructor(scan: ChangeScan, owner: number) {
    this.#scan = scan;
    this.#owner = owner;
  }

  next(): OwnedChangeBatch | undefined {
    const batch = this.#scan.next();
    if (batch === undefined) return undefined;
    return { ...batch, owners: new Float64Array(batch.rowCount).fill(this.#owner) };
  }

  close(): void {
    this.#scan.close();
  }
}

class AllChangeScan implements OwnedChangeScan {
  readonly #table: StoredTable;
  readonly #options: AllChangesOptions;
  readonly #segments: readonly OpenSegment[];
  readonly #windows: SegmentWindows;
  readonly #memtables: readonly Memtable[];
  readonly #cursor = new VersionCursor();
  #window: Window | undefined;
  #windowAt = 0;
  #memtableIndex = -1;
  #memtableRow = 0;
  #isOpen = true;

  constructor(table: StoredTable, options: AllChangesOptions, windowRows: number) {
    this.#table = table;
    this.#options = options;
    const { after, upTo } = options;
    this.#segments = segmentsWithin(table, options);
    for (const segment of this.#segments) segment.pin();
    this.#windows = new SegmentWindows(this.#segments, { after, upTo, windowRows });
    this.#memtables = table.memtables();
  }

  next(): OwnedChangeBatch | undefined {
    if (!this.#isOpen) return undefined;
    if (this.#table.isDropped) {
      throw new DatabaseError(
        "TABLE_NOT_FOUND",
        `Cannot read the changes to ${this.#table.definition.name}: the table has been dropped`,
      );
    }
    return this.#nextStored() ?? this.#nextInMemory();
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const segment of this.#segments) segment.unpin();
  }

  #nextStored(): OwnedChangeBatch | undefined {
    if (this.#windows.isAtEnd && this.#window === undefined) return undefined;
    if (this.#window === undefined) {
      this.#window = this.#windows.step();
      this.#windowAt = 0;
      return emptyBatch(this.#options.columnIds.length);
    }
    const end = Math.min(this.#windowAt + this.#batchRows, this.#window.seqs.length);
    const batch = this.#storedBatch(this.#window, this.#windowAt, end);
    this.#windowAt = end;
    if (end === this.#window.seqs.length) this.#window = undefined;
    return batch;
  }

  get #batchRows(): number {
    return this.#options.batchRows ?? BATCH_ROWS;
  }

  #storedBatch({ places, rows, seqs }: Window, from: number, to: number): OwnedChangeBatch {
    const rowCount = to - from;
    const owners = new Float64Array(rowCount);
    const commitSeqs = new Float64Array(rowCount);
    const prevs = new Float64Array(rowCount);
    const deleted = new Uint8Array(rowCount);
    const { columnIds } = this.#options;
    const values = columnIds.map((): Value[] => []);
    for (let index = 0; index < rowCount; index += 1) {
      const segment = this.#segments[places[from + index] ?? 0];
      const row = rows[from + index] ?? 0;
      assert(segment !== undefined, "change scan: row version in the window belongs to no segment");
      this.#cursor.standInSegment(segment, row);
      owners[index] = ownerOf(segment, row);
      commitSeqs[index] = segment.guard(() => segment.reader.commitSeqAt(row));
      prevs[index] = this.#cursor.prev;
      deleted[index] = this.#cursor.isDeleted ? 1 : 0;
      for (let column = 0; column < columnIds.length; column += 1) {
        values[column]?.push(this.#table.valueAt(this.#cursor, columnIds[column] ?? SEQ_COLUMN_ID));
      }
    }
    const columns = columnIds.map((columnId, index) =>
      vectorFromValues(columnTypeOf(this.#table, columnId), values[index] ?? []),
    );
    const find = foundUnlessLost;
    const old = oldVersions(this.#table, prevs, { columnIds, owner: owners, find });
    const batch = { rowCount, owners, commitSeqs, prevs, deleted, columns };
    return { ...batch, seqs: seqs.slice(from, to), ...old };
  }

  #nextInMemory(): OwnedChangeBatch | undefined {
    const { after, columnIds, upTo } = this.#options;
    for (;;) {
      const memtable = this.#memtables[this.#memtableIndex];
      if (memtable !== undefined) {
        const end = firstRowAbove(memtable, upTo);
        const from = this.#memtableRow;
        const to = Math.min(from + this.#batchRows, end);
        this.#memtableRow = to;
        if (from < to) return memoryBatch(this.#table, memtable, { from, to, columnIds });
      }
      this.#memtableIndex += 1;
      const next = this.#memtables[this.#memtableIndex];
      if (next === undefined) return undefined;
      this.#memtableRow = firstRowAbove(next, after);
    }
  }
}

function memoryBatch(
  table: StoredTable,
  memtable: Memtable,
  { columnIds, from, to }: { from: number; to: number; columnIds: readonly number[] },
): OwnedChangeBatch {
  const rows = new Uint32Array(to - from);
  for (let index = 0; index < rows.length; index += 1) rows[index] = from + index;
  const owners = memtable.owners.slice(from, to);
  const prevs = memtable.prevs.slice(from, to);
  return {
    rowCount: to - from,
    seqs: memtable.seqs.slice(from, to),
    owners,
    commitSeqs: memtable.commitSeqs.slice(from, to),
    prevs,
    deleted: memtable.deleted.slice(from, to),
    columns: columnIds.map((columnId) => memtableColumn(table, memtable, { columnId, rows })),
    ...oldVersions(table, prevs, { columnIds, owner: owners, find: foundUnlessLost }),
  };
}

/** Returns the number of the first row in a memtable with a seq above `seq`. */
function firstRowAbove({ rowCount, seqs }: Memtable, seq: number): number {
  let low = 0;
  let high = rowCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((seqs[middle] ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the owner of a row, found by bisecting the segment's list of owners. */
function ownerOf(segment: OpenSegment, row: number): number {
  return segment.guard(() => {
    const { reader } = segment;
    let low = 0;
    let high = reader.ownerCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (reader.ownerAt(middle).start <= row) low = middle;
      else high = middle - 1;
    }
    return reader.ownerAt(low).owner;
  });
}

function emptyBatch(columnCount: number): OwnedChangeBatch {
  const none = new Float64Array(0);
  const flags = new Uint8Array(0);
  const columns = Array.from({ length: columnCount }, () => vectorFromValues({ kind: "text" }, []));
  return {
    rowCount: 0,
    seqs: none,
    owners: none,
    commitSeqs: none,
    prevs: none,
    deleted: flags,
    hasOld: flags,
    columns,
    oldColumns: columns,
  };
}

/** Consecutive versions in ascending seq order, each with its segment and row. */
interface Window {
  readonly seqs: Float64Array;
  readonly places: Uint32Array;
  readonly rows: Uint32Array;
}

interface WindowOptions {
  readonly after: number;
  readonly upTo: number;
  readonly windowRows: number;
}

/**
 * Collects consecutive versions by seq from several segments, in passes that consist of many short
 * steps.
 */
class SegmentWindows {
  readonly #segments: readonly OpenSegment[];
  readonly #upTo: number;
  readonly #windowRows: number;
  /** The seq up to which all versions have been in earlier windows. */
  #after: number;
  /** An upper bound on the seqs of the current window. */
  #bound: number;
  #segmentIndex = 0;
  #group = 0;
  #count = 0;
  readonly #seqs: Float64Array;
  readonly #places: Uint32Array;
  readonly #rows: Uint32Array;

  constructor(segments: readonly OpenSegment[], { after, upTo, windowRows }: WindowOptions) {
    this.#segments = segments;
    this.#after = after;
    this.#upTo = upTo;
    this.#bound = upTo;
    this.#windowRows = windowRows;
    const versions = segments.reduce((count, { entry }) => count + entry.rowCount, 0);
    const room = Math.min(2 * windowRows, versions);
    this.#seqs = new Float64Array(room);
    this.#places = new Uint32Array(room);
    this.#rows = new Uint32Array(room);
  }

  get isAtEnd(): boolean {
    return this.#after >= this.#upTo || this.#segments.length === 0;
  }

  /**
   * Continues the pass over the segments' seqs. Returns the window of versions once it is complete
   * and has at least one version.
   */
  step(): Window | undefined {
    assert(!this.isAtEnd, "change scan: pass continued after its end");
    for (let count = 0; count < GROUPS_PER_STEP; count += 1) {
      const segment = this.#segments[this.#segmentIndex];
      if (segment === undefined) return this.#finished();
      segment.guard(() => this.#collect(segment));
    }
    return undefined;
  }

  /** Collects the versions in the current row group, and moves on to the next row group. */
  #collect(segment: OpenSegment): void {
    const { reader } = segment;
    const group = this.#group;
    const isLast = group + 1 >= reader.groupCount;
    const place = this.#segmentIndex;
    this.#group = isLast ? 0 : group + 1;
    if (isLast) this.#segmentIndex += 1;
    const zone = reader.zone(SEQ_COLUMN_ID, group);
    if (zone !== undefined && (zone.max <= this.#after || zone.min > this.#bound)) return;
    const seqs = reader.seqs(group);
    const start = reader.groupStart(group);
    for (let index = 0; index < seqs.length; index += 1) {
      const seq = seqs[index] ?? 0;
      if (seq <= this.#after || seq > this.#bound) continue;
      if (this.#count === this.#seqs.length) this.#cut();
      if (seq > this.#bound) continue;
      this.#seqs[this.#count] = seq;
      this.#places[this.#count] = place;
      this.#rows[this.#count] = start + index;
      this.#count += 1;
    }
  }

  /**
   * Keeps the half of the versions with the lower seqs, and lowers the bound of the window to the
   * highest of them.
   */
  #cut(): void {
    const sorted = this.#seqs.subarray(0, this.#count).toSorted();
    this.#bound = sorted[this.#windowRows - 1] ?? this.#bound;
    let kept = 0;
    for (let index = 0; index < this.#count; index += 1) {
      const seq = this.#seqs[index] ?? 0;
      if (seq > this.#bound) continue;
      this.#seqs[kept] = seq;
      this.#places[kept] = this.#places[index] ?? 0;
      this.#rows[kept] = this.#rows[index] ?? 0;
      kept += 1;
    }
    assert(kept < this.#count, "change scan: lowering the bound removed no row version");
    this.#count = kept;
  }

  /**
   * Ends the pass over the segments, and prepares the next pass. Returns the window of versions;
   * undefined if it is empty.
   */
  #finished(): Window | undefined {
    if (this.#count > this.#windowRows) this.#cut();
    const count = this.#count;
    const seqs = this.#seqs.subarray(0, count).toSorted();
    const places = new Uint32Array(count);
    const rows = new Uint32Array(count);
    for (let index = 0; index < count; index += 1) {
      const rank = rankOf(seqs, this.#seqs[index] ?? 0);
      places[rank] = this.#places[index] ?? 0;
      rows[rank] = this.#rows[index] ?? 0;
    }
    this.#after = this.#bound;
    this.#bound = this.#upTo;
    this.#segmentIndex = 0;
    this.#group = 0;
    this.#count = 0;
    return count === 0 ? undefined : { seqs, places, rows };
  }
}

/** Returns the index of `seq` in a sorted array that contains it. */
function rankOf(seqs: Float64Array, seq: number): number {
  let low = 0;
  let high = seqs.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((seqs[middle] ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}
