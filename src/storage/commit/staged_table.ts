/**
 * The rows of one table in a staged commit, and the locations of the versions that they replace.
 *
 * During preparation, the seqs of these rows are not yet known. The staged memtable stores each
 * row's offset from the first seq, plus 1, and replacements are recorded under the same offsets.
 */
import { BATCH_ROWS_MAX, ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import { keyOfRow, keyOfValues } from "../contract/key.ts";
import type { TableDefinition } from "../contract/table_definition.ts";
import { PreparedReplacements } from "../deletions/prepared_replacements.ts";
import { newGrowth } from "../memtable/mem_column.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import { Memtable } from "../memtable/memtable.ts";
import { Overlaps } from "../read/overlaps.ts";
import { rowsToCompare } from "../table/new_keys.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { holderOf, memIndexOf, type TableIndex } from "../table/table_index.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { changedMeanwhile } from "./conflicts.ts";
import { duplicateIn, overlapIn, type TakenKey, takenIn } from "./unique_keys.ts";

/**
 * The maximum number of staged rows that the commit's tick copies to the active memtable, unless
 * that memtable is empty. A larger number of rows keeps its own memtable, which is large enough to
 * become a segment by itself.
 */
const ADDED_ROWS_MAX: number = ROW_GROUP_ROWS_MAX / 2;

/**
 * The maximum total size in bytes of rows copied to the active memtable. Long rows take longer to
 * copy.
 */
const ADDED_BYTES_MAX: number = 16 * 1024 * 1024;

/** The memtable or segment that contains a row version. */
type StagedPlace = Memtable | OpenSegment;

/**
 * A memtable or segment that contains replaced versions, with the replacements prepared for them.
 * `place` is undefined if its versions have moved.
 */
interface ReplacedPlace {
  readonly place: StagedPlace | undefined;
  readonly replaced: PreparedReplacements;
}

const NO_PLACE: ReplacedPlace = { place: undefined, replaced: new PreparedReplacements() };

/** A unique key that already belongs to another row. */
interface HeldKey extends TakenKey {
  readonly index: TableIndex;
  readonly owner: number;
  /**
   * The primary key of the row that holds the unique key; undefined if the table has no primary
   * key.
   */
  readonly holderKey: Row | undefined;
}

/** The rows that a commit has staged for a single table. */
export class StagedTable {
  readonly table: StoredTable;
  readonly definition: TableDefinition;
  readonly memtable: Memtable;
  liveDelta = 0;
  /** Finds the versions that the staged rows replace, by their seqs. */
  readonly follower: VersionFollower;
  /** The seq up to which the versions written by other commits have been examined. */
  checkedSeq: number;
  readonly #places: ReplacedPlace[] = [];
  /** The unique keys that belonged to other rows when they were last examined. */
  #heldKeys: HeldKey[] = [];
  /**
   * For each staged row, the index in `#places` of the memtable or segment that contains the
   * replaced version, plus 1; 0 if the row replaces no version.
   */
  #placeNumbers: Uint32Array = new Uint32Array(BATCH_ROWS_MAX);
  readonly #placeGrowth = newGrowth<Uint32Array>((capacity) => new Uint32Array(capacity));
  /**
   * The index in `#places` that was recorded for the previous row. It usually holds for the next
   * row as well.
   */
  #lastPlace = -1;

  constructor(table: StoredTable, checkedSeq: number) {
    this.table = table;
    this.definition = table.definition;
    this.memtable = new Memtable(table.definition.columns);
    this.checkedSeq = checkedSeq;
    this.follower = new VersionFollower(table);
  }

  /**
   * Records the location of the version that a staged row replaces. Calls must be in ascending
   * order of rows.
   */
  notePlace(row: number, place: StagedPlace, placeRow: number): void {
    this.#placeNumbers = this.#placeGrowth.arrayFor(this.#placeNumbers, row, row + 1);
    const isSame = this.#places[this.#lastPlace]?.place === place;
    if (!isSame) this.#lastPlace = this.#places.findLastIndex((known) => known.place === place);
    if (this.#lastPlace === -1) {
      const replaced = new PreparedReplacements();
      this.#lastPlace = this.#places.push({ place, replaced }) - 1;
      // Reads the deletion vector now: once the log has the commit, no step of the commit's tick
      // may fail.
      if (!(place instanceof Memtable)) void place.deletions;
    }
    this.#placeNumbers[row] = this.#lastPlace + 1;
    this.#places[this.#lastPlace]?.replaced.note(placeRow, (this.memtable.seqs[row] ?? 0) - 1);
  }

  /**
   * Examines the unique keys of the rows from `firstRow` on. A key that belongs to another row is
   * examined again later, because this commit may yet replace that row.
   *
   * @throws {DatabaseError} DUPLICATE_KEY
   */
  noteKeys(firstRow: number, expiredSeq: number): void {
    const { memtable, table } = this;
    for (const index of table.enforcedIndexes) {
      if (index.stored.isExclusion === true) {
        this.#noteRanges(index, firstRow, expiredSeq);
        continue;
      }
      const rows = memIndexOf(memtable, index);
      rows.catchUp();
      for (const row of rowsToCompare(table, index, { memtable, firstRow })) {
        if (memtable.deleted[row] === 1) continue;
        const values = rows.valuesAt(row);
        if (!index.order.canRecur(values)) continue;
        const taken = { values, isNew: memtable.prevs[row] === 0 };
        if (rows.olderOf(row) !== -1) throw duplicateIn(table, index, taken);
        const owner = memtable.owners[row] ?? 0;
        const written = { owner, key: keyOfValues(values), values };
        const holder = holderOf(table, index, { written, expiredSeq });
        if (holder === undefined) continue;
        const holderKey = table.keyPositions.length === 0 ? undefined : table.keyAt(holder);
        this.#heldKeys.push({ index, owner, holderKey, ...taken });
      }
    }
  }

  /**
   * Examines the ranges of the rows from `firstRow` on for an exclusion constraint.
   *
   * @throws {DatabaseError} EXCLUSION_VIOLATION
   */
  #noteRanges(index: TableIndex, firstRow: number, expiredSeq: number): void {
    const { memtable, table } = this;
    const overlaps = new Overlaps(index);
    const keys = memIndexOf(memtable, index);
    const rows: number[] = [];
    for (let row = firstRow; row < memtable.rowCount; row += 1) {
      if (memtable.deleted[row] === 1) continue;
      rows.push(row);
      const values = keys.valuesAt(row);
      if (!overlaps.canOverlap(values)) continue;
      const taken = { values, isNew: memtable.prevs[row] === 0 };
      const owner = memtable.owners[row] ?? 0;
      const search = { owner, expiredSeq };
      for (const _ of overlaps.rowsIn(memtable, values, { owner, expiredSeq: 0, end: firstRow })) {
        throw overlapIn(table, index, taken);
      }
      for (const holder of overlaps.rowsOf(table, values, search)) {
        const holderKey = table.keyPositions.length === 0 ? undefined : table.keyAt(holder);
        this.#heldKeys.push({ index, owner, holderKey, ...taken });
      }
    }
    const values = overlaps.keyAmong(memtable, rows);
    if (values !== undefined) throw overlapIn(table, index, { values, isNew: true });
  }

  /**
   * Checks that this commit replaces every row that held one of its unique keys, a few rows per
   * step.
   *
   * @throws {DatabaseError} DUPLICATE_KEY, EXCLUSION_VIOLATION
   */
  *requireKeysFree(): Generator<void, void> {
    let looked = 0;
    for (const { holderKey, index, owner, ...taken } of this.#heldKeys) {
      const partition = this.memtable.partitions.get(owner);
      const isReplaced =
        holderKey !== undefined && partition?.rowOf(keyOfValues(holderKey)) !== undefined;
      if (!isReplaced) throw takenIn(this.table, index, taken);
      looked += 1;
      if (looked % BATCH_ROWS_MAX === 0) yield;
    }
    this.#heldKeys = [];
  }

  /** Whether the memtable with the staged rows becomes its table's active memtable. */
  get isAdopted(): boolean {
    const { bytes, rowCount } = this.memtable;
    return this.table.active.rowCount === 0 || rowCount > ADDED_ROWS_MAX || bytes > ADDED_BYTES_MAX;
  }

  /**
   * Returns the numbers of the memtables and segments with replaced versions that no longer belong
   * to the table.
   */
  lostPlaces(): Set<number> {
    const known = new Set<StagedPlace>([...this.table.segments, ...this.table.memtables()]);
    const lost = new Set<number>();
    for (const [index, { place }] of this.#places.entries()) {
      if (place !== undefined && !known.has(place)) lost.add(index + 1);
    }
    return lost;
  }

  /**
   * For the staged rows `from` to `to`, looks up the replaced versions again if they were in one
   * of the `lost` memtables or segments.
   */
  findAgain(lost: ReadonlySet<number>, from: number, to: number): void {
    const { owners, prevs } = this.memtable;
    this.follower.leave();
    for (let row = from; row < to; row += 1) {
      if (!lost.has(this.#placeNumbers[row] ?? 0)) continue;
      const found = this.follower.find(owners[row] ?? 0, prevs[row] ?? 0);
      this.#placeNumbers[row] = 0;
      this.#placeGrowth.noteChanged(row, 0);
      if (found === undefined) continue;
      if (!found.isSettled) this.notePlace(row, found.place, found.row);
      // The key of a deleted row is being inserted again. The tombstone stays in history
      // unchanged.
      else if (!found.isDeleted) throw changedMeanwhile(this.definition.name);
    }
  }

  /** Clears the entries of memtables and segments to which no staged row refers any longer. */
  dropPlaces(lost: ReadonlySet<number>): void {
    // Placeholders keep the numbers of the remaining entries unchanged.
    for (const number of lost) this.#places[number - 1] = NO_PLACE;
  }

  /** Once the commit's seqs are known, assigns them to the rows and records the replacements. */
  begin(firstSeq: Seq): void {
    this.memtable.moveSeqs(firstSeq - 1);
    for (const { place, replaced } of this.#places) {
      if (place === undefined) continue;
      replaced.begin(firstSeq);
      place.replaceAll(replaced);
    }
  }

  /**
   * Checks that no other commit has replaced the versions that this commit replaces.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if another commit has.
   */
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

/**
 * Examines versions in memtables that other commits have written under the keys of a staged table.
 */
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
 * Examines versions in a segment that other commits have written under the keys of a staged table.
 * Ends early if the segment is dropped in the meantime, since its file may no longer exist.
 */
export function* newerInSegment(staged: StagedTable, segment: OpenSegment): Generator<void, void> {
  const cursor = new VersionCursor();
  let looked = 0;
  for (const own of staged.memtable.partitions.values()) {
    if (segment.isDropped) return;
    const span = segment.reader.ownerRange(own.owner);
    if (span === undefined) continue;
    let row = segment.guard(() => segment.reader.firstRowAtOrAbove(span, staged.checkedSeq + 1));
    for (; row < span.end; row += 1) {
      cursor.standInSegment(segment, row);
      requireUntouched(staged, own, cursor);
      looked += 1;
      if (looked % BATCH_ROWS_MAX > 0) continue;
      yield;
      if (segment.isDropped) return;
    }
  }
}

/**
 * Checks that another commit's version has either been examined already or has an unrelated key.
 */
function requireUntouched(
  { memtable: own, table }: StagedTable,
  partition: MemPartition,
  version: VersionCursor,
): void {
  const { columns, keyColumnIds } = table.definition;
  const values: Row = columns.map(({ columnId }) =>
    keyColumnIds.includes(columnId) ? table.valueAt(version, columnId) : null,
  );
  const mine =
    keyColumnIds.length === 0 ? undefined : partition.rowOf(keyOfRow(values, table.keyPositions));
  if (mine !== undefined && (own.prevs[mine] ?? 0) >= version.seq) return;
  if (mine !== undefined || takesKey(own, partition.owner, { table, version })) {
    throw changedMeanwhile(table.definition.name);
  }
}

/** Whether another commit's version holds a unique key that this commit needs. */
function takesKey(
  own: Memtable,
  owner: number,
  { table, version }: { table: StoredTable; version: VersionCursor },
): boolean {
  if (version.isDeleted) return false;
  return table.enforcedIndexes.some((index) => {
    const values = index.order.columns.map((column) => table.keyValueAt(version, column));
    if (index.stored.isExclusion === true) {
      const overlaps = new Overlaps(index);
      if (!overlaps.canOverlap(values)) return false;
      return overlaps.rowsIn(own, values, { owner, expiredSeq: 0 }).next().done !== true;
    }
    if (!index.order.canRecur(values)) return false;
    return memIndexOf(own, index).newestOf(owner, keyOfValues(index.order.formOf(values))) !== -1;
  });
}

/**
 * The maximum number of rows that a search skips one by one. Over a greater distance, a full
 * search is as fast.
 */
const PASSED_MAX = 16;

/**
 * Finds a table's versions by seq. A statement usually replaces versions in the order in which
 * they are stored, so each search starts right after the previous version.
 *
 * Within one memtable or segment, the seqs of an owner ascend.
 */
class VersionFollower {
  readonly #table: StoredTable;
  readonly #cursor = new VersionCursor();
  #isStanding = false;

  constructor(table: StoredTable) {
    this.#table = table;
  }

  /**
   * Forgets the position of the version found last. Called at the start of another tick, when the
   * position may no longer exist.
   */
  leave(): void {
    this.#isStanding = false;
  }

  /**
   * Moves the cursor to the owner's version with exactly this seq. The result is valid until the
   * next search.
   */
  find(owner: number, seq: number): VersionCursor | undefined {
    const cursor = this.#cursor;
    for (let passed = 0; this.#isStanding && passed < PASSED_MAX; passed += 1) {
      if (!cursor.advance()) break;
      const found = cursor.seq;
      if (found === seq) return cursor;
      if (found > seq) break;
    }
    const found = this.#table.findSeq(owner, seq);
    this.#isStanding = found !== undefined;
    if (found === undefined) return undefined;
    const { place, row } = found;
    if (place instanceof Memtable) cursor.standInMemtable(place, row);
    else cursor.standInSegment(place, row);
    return cursor;
  }
}
