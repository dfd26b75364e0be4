/**
 * Which rows a merge takes next: for each owner, ascending, the rows of each source, oldest first,
 * without what history need not keep. Since the seqs of neighbours do not overlap, that is ascending
 * (owner, seq).
 *
 * Rows are taken in portions of at most a row group, which end early where text and bytes are many.
 * What lies side by side in a source is read at once, however many owners it is of: a portion names
 * such stretches, and where in them each of its rows is.
 */
import { assert, defined } from "../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../base/limits.ts";
import { constVector, physicalKind, type RowNumbers } from "../types/mod.ts";
import { DISCARDED, type History } from "./history.ts";
import { BLOCKS, codeBytes, DICTIONARY, TEXT } from "./segment/encodings.ts";
import type { ChunkEntry } from "./segment/format.ts";
import { bytesWithin, GROUP_BYTES_MAX } from "./segment/group_size.ts";
import type { SegmentReader } from "./segment/reader.ts";
import type { StoredColumn } from "./store.ts";

/** So many rows that are not kept are read with the others rather than begin another stretch. */
const GAP_ROWS_MAX = 16;

export interface MergeSource {
  /** Oldest first. */
  readonly readers: readonly SegmentReader[];
  readonly columns: readonly StoredColumn[];
  readonly history: History;
  /** For each reader, filled in: where each of its rows is in the output, or `DISCARDED`. */
  readonly newRows: readonly Uint32Array[];
}

/** Rows that lie side by side in one row group of one source, counted from the group's start. */
export interface Stretch {
  readonly source: number;
  readonly group: number;
  readonly start: number;
  readonly end: number;
}

/** The next rows of the output. Valid until the next portion. */
export interface Portion {
  readonly rowCount: number;
  readonly owners: Float64Array;
  readonly stretches: readonly Stretch[];
  /** Where each row is in the stretches, one behind the other; undefined: those are the rows. */
  readonly places: RowNumbers | undefined;
}

/** All portions in the order of the output. @throws {CorruptionError} */
export function* portions(source: MergeSource): Generator<Portion, void> {
  const heads = source.readers.map((reader, index) => new Head(source, reader, index));
  for (const newRows of source.newRows) newRows.fill(DISCARDED);
  const gathering = new Gathering();
  let rowCount = 0;
  for (;;) {
    gathering.begin(rowCount);
    while (!gathering.isFull) {
      const owner = lowestOwner(heads);
      if (owner === Infinity) break;
      for (const head of heads) if (head.owner === owner) head.giveRows(gathering);
    }
    if (gathering.rowCount === 0) return;
    rowCount += gathering.rowCount;
    yield gathering.portion();
  }
}

function lowestOwner(heads: readonly Head[]): number {
  let lowest = Infinity;
  for (const { owner } of heads) if (owner < lowest) lowest = owner;
  return lowest;
}

/** Where a merge is in one of its sources: before a row of an owner. */
class Head {
  /** Infinity at the end. */
  owner = Infinity;
  readonly #merge: MergeSource;
  readonly #reader: SegmentReader;
  readonly #source: number;
  readonly #newRows: Uint32Array;
  #ownerIndex = -1;
  #row = 0;
  #ownerEnd = 0;
  /** Of the row group that holds the row. */
  #group = -1;
  #groupStart = 0;
  #groupEnd = 0;
  #bytesPerRow = 0;
  #keepsAll = true;

  constructor(merge: MergeSource, reader: SegmentReader, source: number) {
    this.#merge = merge;
    this.#reader = reader;
    this.#source = source;
    this.#newRows = defined(merge.newRows[source], "every source has its rows noted");
    this.#toNextOwner();
  }

  /** Gives the rows of the owner, or as many as there is room for. */
  giveRows(to: Gathering): void {
    const { owner } = this;
    while (this.owner === owner) {
      if (this.#row === this.#groupEnd) this.#toNextGroup();
      const room = to.roomFor(this.#bytesPerRow);
      if (room === 0) return;
      const end = Math.min(this.#ownerEnd, this.#groupEnd, this.#row + room);
      if (this.#keepsAll) this.#give(to, this.#row, end);
      else this.#giveKept(to, end);
      this.#row = end;
      if (end === this.#ownerEnd) this.#toNextOwner();
    }
  }

  /** Rows up to `end` that history keeps. */
  #giveKept(to: Gathering, end: number): void {
    const { history } = this.#merge;
    const reader = this.#reader;
    const seqs = reader.seqs(this.#group);
    const deleted = reader.deleted(this.#group);
    let from = this.#row;
    for (let row = from; row < end; row += 1) {
      const isDiscarded = history.discards({
        owner: this.owner,
        source: this.#source,
        row,
        seq: seqs[row - this.#groupStart] ?? 0,
        isDeleted: deleted[row - this.#groupStart] === 1,
      });
      if (!isDiscarded) continue;
      this.#give(to, from, row);
      from = row + 1;
    }
    this.#give(to, from, end);
  }

  #give(to: Gathering, from: number, end: number): void {
    if (from === end) return;
    const firstRow = to.nextRow;
    for (let row = from; row < end; row += 1) this.#newRows[row] = firstRow + row - from;
    to.add({
      owner: this.owner,
      source: this.#source,
      group: this.#group,
      start: from - this.#groupStart,
      end: end - this.#groupStart,
      bytesPerRow: this.#bytesPerRow,
    });
  }

  #toNextOwner(): void {
    this.#ownerIndex += 1;
    if (this.#ownerIndex === this.#reader.ownerCount) {
      this.owner = Infinity;
      return;
    }
    const { owner, start, end } = this.#reader.ownerAt(this.#ownerIndex);
    assert(start === this.#row, "owners follow each other in their segment");
    this.owner = owner;
    this.#ownerEnd = end;
  }

  #toNextGroup(): void {
    const reader = this.#reader;
    const { columns, history } = this.#merge;
    this.#group += 1;
    this.#groupStart = this.#groupEnd;
    this.#groupEnd += reader.groupRows(this.#group);
    this.#keepsAll = history.keepsAll(this.#source, reader.deleted(this.#group));
    this.#bytesPerRow = meanRowBytes(reader, this.#group, columns);
  }
}

interface GivenRows extends Stretch {
  readonly owner: number;
  readonly bytesPerRow: number;
}

/** A portion that is being put together. */
class Gathering {
  readonly #owners = new Float64Array(ROW_GROUP_ROWS_MAX);
  readonly #stretchOf = new Uint32Array(ROW_GROUP_ROWS_MAX);
  /** Within its stretch. */
  readonly #rowOf = new Uint32Array(ROW_GROUP_ROWS_MAX);
  #stretches: { source: number; group: number; start: number; end: number }[] = [];
  /** For each source: which stretch is its last. */
  #lastStretches: (number | undefined)[] = [];
  #rowCount = 0;
  #bytes = 0;
  #isFull = false;
  #firstRow = 0;

  /** @param firstRow Of the output. */
  begin(firstRow: number): void {
    this.#firstRow = firstRow;
    this.#stretches = [];
    this.#lastStretches = [];
    this.#rowCount = 0;
    this.#bytes = 0;
    this.#isFull = false;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  /** Which row of the output comes next. */
  get nextRow(): number {
    return this.#firstRow + this.#rowCount;
  }

  /** How many rows fit; one that is alone does. It is full when none does. */
  roomFor(bytesPerRow: number): number {
    // Also for narrower rows of a younger source: nothing may come before what did not fit.
    if (this.#isFull) return 0;
    let room = ROW_GROUP_ROWS_MAX - this.#rowCount;
    if (bytesPerRow > 0) {
      room = Math.min(room, Math.floor((GROUP_BYTES_MAX - this.#bytes) / bytesPerRow));
    }
    if (room < 1 && this.#rowCount === 0) room = 1;
    this.#isFull = room < 1;
    return Math.max(0, room);
  }

  /** Rows for which there is room. */
  add({ bytesPerRow, end, group, owner, source, start }: GivenRows): void {
    const last = this.#lastStretches[source];
    const open = last === undefined ? undefined : this.#stretches[last];
    let index = this.#stretches.length;
    let stretchStart = start;
    let readRows = end - start;
    if (last !== undefined && open?.group === group && start - open.end <= GAP_ROWS_MAX) {
      index = last;
      stretchStart = open.start;
      readRows = end - open.end;
      open.end = end;
    } else {
      this.#stretches.push({ source, group, start, end });
      this.#lastStretches[source] = index;
    }
    this.#bytes += readRows * bytesPerRow;
    const at = this.#rowCount - start;
    for (let row = start; row < end; row += 1) {
      this.#owners[at + row] = owner;
      this.#stretchOf[at + row] = index;
      this.#rowOf[at + row] = row - stretchStart;
    }
    this.#rowCount += end - start;
  }

  portion(): Portion {
    const rowCount = this.#rowCount;
    const stretches = this.#stretches;
    const owners = this.#owners.subarray(0, rowCount);
    return { rowCount, owners, stretches, places: this.#places() };
  }

  #places(): RowNumbers | undefined {
    const starts = new Uint32Array(this.#stretches.length + 1);
    for (const [index, { start, end }] of this.#stretches.entries()) {
      starts[index + 1] = (starts[index] ?? 0) + end - start;
    }
    const places = new Uint32Array(this.#rowCount);
    let isInOrder = starts.at(-1) === this.#rowCount;
    for (let row = 0; row < places.length; row += 1) {
      const place = (starts[this.#stretchOf[row] ?? 0] ?? 0) + (this.#rowOf[row] ?? 0);
      places[row] = place;
      if (place !== row) isInOrder = false;
    }
    return isInOrder ? undefined : places;
  }
}

/** About how many bytes a row of a group holds beside numbers. */
function meanRowBytes(
  reader: SegmentReader,
  group: number,
  columns: readonly StoredColumn[],
): number {
  let bytes = 0;
  for (const { columnId, missing, type } of columns) {
    if (physicalKind(type) !== "any") continue;
    const entry = reader.chunkEntry(columnId, group);
    if (entry === undefined) bytes += bytesWithin([constVector(missing, 1)], 0, 1);
    else bytes += meanValueBytes(reader, { columnId, group, entry });
  }
  return bytes;
}

function meanValueBytes(
  reader: SegmentReader,
  { columnId, group, entry }: { columnId: number; group: number; entry: ChunkEntry },
): number {
  const { auxiliary: valueCount, encoding } = entry;
  if (encoding !== TEXT && encoding !== BLOCKS && encoding !== DICTIONARY) return 0;
  const bytes = reader.unpackedBytes(columnId, group) ?? entry.byteCount;
  const rowCount = reader.groupRows(group);
  if (encoding !== DICTIONARY) return bytes / rowCount;
  const textBytes = bytes - codeBytes(valueCount) * rowCount;
  // Its long texts may be rare: together the rows had no more than a group may have.
  return Math.min(textBytes / valueCount, Math.max(bytes, GROUP_BYTES_MAX) / rowCount);
}
