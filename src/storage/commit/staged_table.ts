/**
 * The rows of one table in a commit that is being prepared, and where the versions lie that they
 * replace.
 *
 * Seqs of its rows are not known meanwhile: its memtable has their distances from the first one,
 * plus 1, and what they replace is noted with those.
 */
import { BATCH_ROWS_MAX, ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import { keyOfRow } from "../contract/key.ts";
import type { TableDefinition } from "../contract/store.ts";
import { PreparedReplacements } from "../deletions/prepared_replacements.ts";
import { grown, roomFor } from "../memtable/mem_column.ts";
import { type MemPartition, Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { VersionFollower } from "../table/version_follower.ts";
import { changedMeanwhile } from "./conflicts.ts";

/**
 * Up to so many rows are added to the active memtable in the turn of the commit, if that has rows:
 * it takes up to 5 ms. More keep the memtable that they are in: it is worth a segment of its own.
 */
const ADDED_ROWS_MAX: number = ROW_GROUP_ROWS_MAX / 2;

/** The same for rows that are long, which take as long to copy. */
const ADDED_BYTES_MAX: number = 16 * 1024 * 1024;

/** Where a version lies. */
type Place = Memtable | OpenSegment;

/** A place, and what is to be replaced there; without a place when that is elsewhere by now. */
interface ReplacedPlace {
  readonly place: Place | undefined;
  readonly replaced: PreparedReplacements;
}

const NO_PLACE: ReplacedPlace = { place: undefined, replaced: new PreparedReplacements() };

/** The rows of one table. */
export class StagedTable {
  readonly table: StoredTable;
  readonly definition: TableDefinition;
  readonly memtable: Memtable;
  liveDelta = 0;
  /** Finds the versions that its rows replace. */
  readonly follower: VersionFollower;
  /** Versions of others up to here have been looked at. */
  checkedSeq: number;
  readonly #places: ReplacedPlace[] = [];
  /** Of each row whose key has a version: the number of its place from 1. */
  #placeNumbers = new Uint32Array(BATCH_ROWS_MAX);
  /** Index of the place of the last row, which mostly is that of the next. */
  #lastPlace = -1;

  constructor(table: StoredTable, checkedSeq: number) {
    this.table = table;
    this.definition = table.definition;
    this.memtable = new Memtable(table.definition.columns);
    this.checkedSeq = checkedSeq;
    this.follower = new VersionFollower(table);
  }

  /** Notes which version a row replaces; rows come in order. */
  notePlace(row: number, place: Place, placeRow: number): void {
    // At other numbers of rows than the arrays of the memtable.
    this.#placeNumbers = widened(
      this.#placeNumbers,
      roomFor(row + 1, this.#placeNumbers.length, 0.5),
    );
    const isSame = this.#places[this.#lastPlace]?.place === place;
    if (!isSame) this.#lastPlace = this.#places.findLastIndex((known) => known.place === place);
    if (this.#lastPlace === -1) {
      const replaced = new PreparedReplacements();
      this.#lastPlace = this.#places.push({ place, replaced }) - 1;
      // Read now: in the turn of the commit, behind the log, nothing may fail.
      if (!(place instanceof Memtable)) void place.deletions;
    }
    this.#placeNumbers[row] = this.#lastPlace + 1;
    this.#places[this.#lastPlace]?.replaced.note(placeRow, (this.memtable.seqs[row] ?? 0) - 1);
  }

  /** Whether its memtable becomes the active one of the table. */
  get isAdopted(): boolean {
    const { bytes, rowCount } = this.memtable;
    return this.table.active.rowCount === 0 || rowCount > ADDED_ROWS_MAX || bytes > ADDED_BYTES_MAX;
  }

  /** Places that are no longer part of the table, by number. */
  lostPlaces(): Set<number> {
    const known = new Set<Place>([...this.table.segments, ...this.table.memtables()]);
    const lost = new Set<number>();
    for (const [index, { place }] of this.#places.entries()) {
      if (place !== undefined && !known.has(place)) lost.add(index + 1);
    }
    return lost;
  }

  /** Finds the versions again that lay in lost places, among rows `from` to `to`. */
  findAgain(lost: ReadonlySet<number>, from: number, to: number): void {
    const { owners, prevs } = this.memtable;
    this.follower.leave();
    for (let row = from; row < to; row += 1) {
      if (!lost.has(this.#placeNumbers[row] ?? 0)) continue;
      const found = this.follower.find(owners[row] ?? 0, prevs[row] ?? 0);
      this.#placeNumbers[row] = 0;
      if (found !== undefined) this.notePlace(row, found.place, found.row);
    }
  }

  /** Forgets places that no row names any more. */
  dropPlaces(lost: ReadonlySet<number>): void {
    // The numbers of the others stay as they are.
    for (const number of lost) this.#places[number - 1] = NO_PLACE;
  }

  /** The commit has its seqs: rows get theirs, and so do the versions that they replace. */
  begin(firstSeq: Seq): void {
    this.memtable.moveSeqs(firstSeq - 1);
    for (const { place, replaced } of this.#places) {
      if (place === undefined) continue;
      replaced.begin(firstSeq);
      place.replaceAll(replaced);
    }
  }

  /** @throws {DatabaseError} SERIALIZATION_FAILURE if a version was replaced by somebody else. */
  requireUnreplaced(): void {
    for (const { place, replaced } of this.#places) {
      if (place === undefined) continue;
      const seqs = place instanceof Memtable ? place.replacedBy : undefined;
      const deletions = place instanceof Memtable ? undefined : place.deletions;
      const isReplaced = replaced.some(
        (row) => (seqs === undefined ? (deletions?.replacedBy(row) ?? 0) : (seqs[row] ?? 0)) !== 0,
      );
      if (isReplaced) throw changedMeanwhile(this.table.definition.name);
    }
  }
}

/** Looks through what others committed to the keys of a staged table, in memtables. */
export function* newerInMemtables(
  staged: StagedTable,
  memtables: readonly Memtable[],
  upTo: number,
): Generator<void, void> {
  const cursor = new VersionCursor();
  let looked = 0;
  for (const memtable of memtables) {
    for (const own of staged.memtable.partitions.values()) {
      const partition = memtable.partitions.get(own.owner);
      if (partition === undefined) continue;
      let index = memtable.indexAfter(partition, staged.checkedSeq);
      for (; index < partition.count; index += 1) {
        const row = partition.rows[index] ?? 0;
        if ((memtable.seqs[row] ?? 0) > upTo) break;
        cursor.standInMemtable(memtable, row);
        requireUntouched(staged, own, cursor);
        looked += 1;
        if (looked % BATCH_ROWS_MAX === 0) yield;
      }
    }
  }
}

/**
 * Likewise in a segment. Ends early when the segment is no longer part of its table, since its file
 * may be gone then.
 */
export function* newerInSegment(staged: StagedTable, segment: OpenSegment): Generator<void, void> {
  const cursor = new VersionCursor();
  let looked = 0;
  for (const own of staged.memtable.partitions.values()) {
    if (!staged.table.segments.includes(segment)) return;
    const span = segment.reader.ownerRange(own.owner);
    if (span === undefined) continue;
    let row = segment.guard(() => segment.reader.firstRowAtOrAbove(span, staged.checkedSeq + 1));
    for (; row < span.end; row += 1) {
      cursor.standInSegment(segment, row);
      requireUntouched(staged, own, cursor);
      looked += 1;
      if (looked % BATCH_ROWS_MAX > 0) continue;
      yield;
      if (!staged.table.segments.includes(segment)) return;
    }
  }
}

/** A version that somebody committed must be one that was looked at, or of a key not written. */
function requireUntouched(
  { memtable: own, table }: StagedTable,
  partition: MemPartition,
  version: VersionCursor,
): void {
  const { columns, keyColumnIds } = table.definition;
  const values: Row = columns.map(({ columnId }) =>
    keyColumnIds.includes(columnId) ? table.valueAt(version, columnId) : null,
  );
  const mine = partition.rowOf(keyOfRow(values, table.keyPositions));
  if (mine === undefined || (own.prevs[mine] ?? 0) >= version.seq) return;
  throw changedMeanwhile(table.definition.name);
}

function widened(
  from: Uint32Array<ArrayBuffer>,
  room: number | undefined,
): Uint32Array<ArrayBuffer> {
  return room === undefined ? from : grown(from, new Uint32Array(room));
}
