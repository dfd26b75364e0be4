/**
 * Prepares a large commit over many ticks, and then makes it in one short tick.
 *
 *     add, add, add …    look up the keys, or the versions with known seqs; put the rows into a
 *                        separate memtable and into log frames
 *        └──► settle     repeat until all commits by others since these lookups are examined
 *               └──► commit, in the same tick: seqs, replaced versions, memtable, frames
 *
 * - Before `commit`, no staged row is visible or in the log. A caller abandons a staged commit by
 *   dropping its reference to it.
 * - Nothing is locked. `settle` detects changes that other commits have made to a key since its
 *   lookup. It examines memtables and, if a flush came in between, looks the keys up again. It
 *   also finds versions that a flush or a merge has moved.
 *
 * During preparation, the seqs of the staged rows are not yet known: see `staged_table.ts`.
 */
import { assert } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import { collectSoon } from "../../base/garbage.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { CommitLog, PreparedCommit } from "../contract/commit_log.ts";
import { keyOfRow, keysOfColumns } from "../contract/key.ts";
import { type Commit, rowCountOf, type StagedCommit, type TableWrite } from "../contract/writes.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";
import { ascendingKeys, rowOfColumns } from "./batch_insert.ts";
import {
  type ConflictCheck,
  changedMeanwhile,
  duplicateKey,
  mayBeBuried,
  requireInsertable,
  requireKeyless,
  requireReplaceable,
} from "./conflicts.ts";
import { newerInMemtables, newerInSegment, StagedTable } from "./staged_table.ts";

/**
 * The row count from which a garbage collection is worthwhile: it frees arrays that have been
 * replaced by larger arrays.
 */
const OUTGROWN_ROWS_MIN = 131_072;

/** The parts of the committer that staged commits use. */
export interface StagingGround {
  readonly commitLog: Pick<CommitLog, "prepare">;
  /** Returns an existing table. @throws {DatabaseError} TABLE_NOT_FOUND */
  table(tableId: number): StoredTable;
  readonly appliedSeq: Seq;
  /**
   * The number of rollbacks so far. A rollback may have removed versions that were looked up
   * before it.
   */
  readonly takenBackCount: number;
  expiredSeq(table: StoredTable): number;
  offsetOf(index: number): number;
  commit(staged: LocalStagedCommit): Commit;
}

export class LocalStagedCommit implements StagedCommit {
  readonly #ground: StagingGround;
  readonly #snapshotSeq: Seq | undefined;
  readonly #startSeq: Seq;
  readonly #takenBackCount: number;
  readonly #staged = new Map<number, StagedTable>();
  readonly prepared: PreparedCommit;
  readonly wantsSeqs: boolean;
  /** Whether the commit only deletes rows. Such a commit is allowed on a full disk. */
  areDeletes = true;
  #rowCount = 0;
  /**
   * The row count at which arrays that have been replaced by larger arrays take up about as much
   * memory as the arrays in use.
   */
  #collectedAt = OUTGROWN_ROWS_MIN;
  /** The search for conflicts; undefined until `settle` starts it. */
  #search: Generator<void, void> | undefined;

  constructor(
    ground: StagingGround,
    { snapshotSeq, wantsSeqs }: { snapshotSeq?: Seq | undefined; wantsSeqs: boolean },
  ) {
    this.#ground = ground;
    this.#snapshotSeq = snapshotSeq;
    this.#startSeq = ground.appliedSeq;
    this.#takenBackCount = ground.takenBackCount;
    this.prepared = ground.commitLog.prepare((index) => ground.offsetOf(index));
    this.wantsSeqs = wantsSeqs;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  get tables(): readonly StagedTable[] {
    return [...this.#staged.values()];
  }

  add(write: TableWrite): void {
    const { batch, operation } = write;
    const rowCount = rowCountOf(write);
    if (rowCount === 0) return;
    this.#requireGround();
    const staged = this.#stagedTable(write);
    if (staged.table.keyPositions.length === 0) requireKeyless(write, staged.definition.name);
    if (operation !== "delete") this.areDeletes = false;
    staged.memtable.reserve(rowCount);
    const firstRow = staged.memtable.rowCount;
    this.prepared.beginWrite(write, staged.definition.columns);
    if (batch === undefined) this.#addRows(staged, write);
    else this.#addBatch(staged, write, batch);
    staged.noteKeys(firstRow, this.#ground.expiredSeq(staged.table));
    if (this.#rowCount >= this.#collectedAt) {
      collectSoon();
      this.#collectedAt = 2 * this.#rowCount;
    }
    if (operation !== "update") staged.liveDelta += operation === "delete" ? -rowCount : rowCount;
    this.#search = undefined;
  }

  #addRows(staged: StagedTable, write: TableWrite): void {
    const { memtable, table } = staged;
    const { operation, owner, rows } = write;
    const { keyPositions } = table;
    const isKeyed = keyPositions.length > 0;
    const expiredSeq = operation === "insert" ? this.#ground.expiredSeq(table) : 0;
    const partition = memtable.partition(owner);
    const check = this.#checkOf(table, write);
    let index = 0;
    for (const row of rows) {
      const key = isKeyed ? keyOfRow(row, keyPositions) : "";
      if (isKeyed && partition.rowOf(key) !== undefined) throw twice(check, row);
      const found = isKeyed
        ? table.findNewestOf(owner, key, row)
        : deletedVersion(table, write, index);
      const newest = found === undefined || found.seq <= expiredSeq ? undefined : found;
      requireWritable(check, newest, row);
      this.prepared.addRow(row, this.#rowCount, newest?.seq ?? 0);
      const at = this.#push(staged, partition, operation, newest);
      if (isKeyed) partition.setRow(key, at);
      index += 1;
    }
    memtable.appendValues(rows, rows.length);
  }

  /** Adds a batch of rows in columnar form, without creating an object per row. */
  #addBatch(staged: StagedTable, write: TableWrite, batch: Batch): void {
    const { memtable, table } = staged;
    const { rowCount } = batch;
    const { operation, owner, replacedSeqs } = write;
    const firstIndex = this.#rowCount;
    const first = memtable.rowCount;
    const isNew = operation === "insert" && this.#pushNewKeys(staged, owner, batch);
    // The key of an expired row may have been inserted again. A new row then does not replace the
    // expired row.
    const isKnown = replacedSeqs !== undefined && table.definition.ttlMs === undefined;
    if (isKnown) this.#replaceBatch(staged, write, replacedSeqs, batch);
    else if (!isNew) this.#pushBatch(staged, write, batch);
    this.prepared.addBatch(batch, firstIndex, memtable.prevs.subarray(first, first + rowCount));
    memtable.appendBatch(batch, rowCount);
  }

  /**
   * Adds a batch whose rows have no keys, or keys above all existing keys. Returns false, without
   * adding any row, for any other batch.
   */
  #pushNewKeys({ memtable, table }: StagedTable, owner: number, batch: Batch): boolean {
    const { keyPositions } = table;
    const partition = memtable.partition(owner);
    const highestKey = Math.max(table.highestKey(owner, this.#snapshotSeq), partition.highestKey);
    const keys = ascendingKeys(batch.columns, keyPositions, highestKey);
    if (keys === undefined && keyPositions.length > 0) return false;
    const first = memtable.pushNew(partition, this.#distances(batch.rowCount));
    if (keys !== undefined) partition.setNewRows(keys, first);
    this.#rowCount += batch.rowCount;
    return true;
  }

  /**
   * Adds rows that replace versions with known seqs. If a version is found by its seq and has not
   * been replaced, its key need not be looked up.
   */
  #replaceBatch(
    staged: StagedTable,
    { operation, owner }: TableWrite,
    prevs: ArrayLike<number>,
    batch: Batch,
  ): void {
    const { follower, memtable, table } = staged;
    const { keyPositions } = table;
    const { columns, rowCount } = batch;
    const partition = memtable.partition(owner);
    const seqs = this.#distances(rowCount);
    const isDeleted = operation === "delete";
    const first = memtable.pushReplacing(partition, { seqs, prevs, isDeleted });
    follower.leave();
    for (let row = 0; row < rowCount; row += 1) {
      const found = follower.find(owner, prevs[row] ?? 0);
      if (found === undefined || found.isReplaced) throw changedMeanwhile(table.definition.name);
      staged.notePlace(first + row, found.place, found.row);
    }
    this.#rowCount += rowCount;
    if (keyPositions.length === 0) return;
    const ascending = ascendingKeys(columns, keyPositions, partition.highestKey);
    if (ascending !== undefined) partition.setNewRows(ascending, first);
    else {
      const keys = keysOfColumns(batch, keyPositions);
      for (const [row, key] of keys.entries()) partition.setRow(key, first + row);
    }
  }

  /** Looks up the keys of a batch one by one. */
  #pushBatch(staged: StagedTable, write: TableWrite, batch: Batch): void {
    const { memtable, table } = staged;
    const { columns, rowCount } = batch;
    const { operation, owner } = write;
    const { keyPositions } = table;
    const isKeyed = keyPositions.length > 0;
    const expiredSeq = operation === "insert" ? this.#ground.expiredSeq(table) : 0;
    const partition = memtable.partition(owner);
    const check = this.#checkOf(table, write);
    const keys = isKeyed ? keysOfColumns(batch, keyPositions) : [];
    for (let row = 0; row < rowCount; row += 1) {
      const key = keys[row] ?? "";
      if (isKeyed && partition.rowOf(key) !== undefined) {
        throw twice(check, rowOfColumns(columns, row));
      }
      const found = isKeyed
        ? table.findNewestAt(owner, key, { columns, row })
        : deletedVersion(table, write, row);
      const newest = found === undefined || found.seq <= expiredSeq ? undefined : found;
      if (!isWritable(check, newest)) requireWritable(check, newest, rowOfColumns(columns, row));
      const at = this.#push(staged, partition, operation, newest);
      if (isKeyed) partition.setRow(key, at);
    }
  }

  #checkOf(table: StoredTable, write: TableWrite): ConflictCheck {
    const snapshotSeq = write.isCurrent === true ? undefined : this.#snapshotSeq;
    return { table, write, snapshotSeq, firstSeq: SEQ_ZERO };
  }

  /**
   * Returns, for each of the next rows, how far its seq will be above the seq that precedes the
   * commit.
   */
  #distances(rowCount: number): Float64Array {
    const distances = new Float64Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) {
      distances[row] = this.#ground.offsetOf(this.#rowCount + row) + 1;
    }
    return distances;
  }

  /** Adds a row, without its values, to the staged memtable. Returns its row number. */
  #push(
    staged: StagedTable,
    partition: MemPartition,
    operation: TableWrite["operation"],
    newest: VersionCursor | undefined,
  ): number {
    const seq = this.#ground.offsetOf(this.#rowCount) + 1;
    const prev = newest?.seq ?? 0;
    const at = staged.memtable.push(partition, { seq, prev, isDeleted: operation === "delete" });
    if (newest !== undefined) staged.notePlace(at, newest.place, newest.row);
    this.#rowCount += 1;
    return at;
  }

  settle(): boolean {
    this.#search ??= this.#searched();
    for (;;) {
      if (this.#search.next().done !== true) return false;
      // Examines the few remaining changes by other commits in this tick.
      this.#search = this.#searched();
      if (this.#search.next().done === true) break;
    }
    this.#search = undefined;
    return true;
  }

  commit(): Commit {
    try {
      assert(this.settle(), "staged commit: conflict checks have not finished");
      assert(this.#rowCount > 0, "staged commit: commit has no rows");
      this.prepared.end();
      for (const staged of this.#staged.values()) {
        if (staged.table.keyPositions.length === 0) staged.requireUnreplaced();
      }
      return this.#ground.commit(this);
    } catch (error) {
      throw inDoubt(error);
    }
  }

  /**
   * Refuses the commit if there has been a rollback since the commit began. Positions of
   * rolled-back rows are reused, so the positions recorded by this commit may refer to the wrong
   * rows.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  #requireGround(): void {
    if (this.#ground.takenBackCount === this.#takenBackCount) return;
    throw changedMeanwhile("the tables that it reads");
  }

  #stagedTable({ isCurrent, tableId }: TableWrite): StagedTable {
    let staged = this.#staged.get(tableId);
    if (staged === undefined) {
      const fromSeq = isCurrent === true ? this.#ground.appliedSeq : this.#startSeq;
      staged = new StagedTable(this.#ground.table(tableId), fromSeq);
      this.#staged.set(tableId, staged);
    }
    // Rows may be looked up only under the table definition for which they were created.
    requireUnaltered(staged);
    return staged;
  }

  /**
   * Examines the changes made by other commits since the last call, at most one batch of rows per
   * step.
   */
  *#searched(): Generator<void, void> {
    this.#requireGround();
    for (const staged of this.#staged.values()) {
      requireUnaltered(staged);
      yield* this.#newerVersions(staged);
      yield* this.#movedVersions(staged);
      yield* staged.requireKeysFree();
    }
  }

  /**
   * Searches both memtables and segments, since versions may have moved from memtables to segments
   * in the meantime.
   */
  *#newerVersions(staged: StagedTable): Generator<void, void> {
    const { table } = staged;
    const upTo = this.#ground.appliedSeq;
    if (upTo === staged.checkedSeq) return;
    if (table.keyPositions.length > 0 || table.enforcedIndexes.length > 0) {
      // Both lists are taken in the same tick. Otherwise a version that moves between memtables
      // and segments could be missed.
      const memtables = table.memtables();
      const segments = table.allSegments.filter(({ entry }) => entry.maxSeq > staged.checkedSeq);
      yield* newerInMemtables(staged, memtables, upTo);
      for (const segment of segments) yield* newerInSegment(staged, segment);
      // A segment that has been dropped in the meantime may not have been read completely, so the
      // search has to be repeated.
      if (segments.some(({ isDropped }) => isDropped)) return;
    }
    staged.checkedSeq = upTo;
  }

  /** Looks up versions that a flush or a merge has moved. */
  *#movedVersions(staged: StagedTable): Generator<void, void> {
    for (;;) {
      const lost = staged.lostPlaces();
      if (lost.size === 0) return;
      for (let row = 0; row < staged.memtable.rowCount; row += BATCH_ROWS_MAX) {
        staged.findAgain(lost, row, Math.min(row + BATCH_ROWS_MAX, staged.memtable.rowCount));
        yield;
      }
      staged.dropPlaces(lost);
    }
  }
}

/** Checks that the table has not been altered. @throws {DatabaseError} SERIALIZATION_FAILURE */
function requireUnaltered({ definition, table }: StagedTable): void {
  if (table.definition === definition && !table.isDropped) return;
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot write to ${definition.name}: the table was altered or dropped in the meantime`,
    { hint: "run the statement again" },
  );
}

/**
 * Checks that a row may be written, given the current version of its key.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE
 */
function requireWritable(check: ConflictCheck, newest: VersionCursor | undefined, row: Row): void {
  if (check.write.operation === "insert") requireInsertable(check, newest, row);
  else if (newest === undefined) throw changedMeanwhile(check.table.definition.name);
  else requireReplaceable(check, newest, row);
}

/** Returns the version to which a delete without a key refers; undefined for an insert. */
export function deletedVersion(
  table: StoredTable,
  { replacedSeqs, owner }: TableWrite,
  index: number,
): VersionCursor | undefined {
  const seq = replacedSeqs?.[index];
  const found = seq === undefined ? undefined : table.findSeq(owner, seq);
  return found?.isSettled === true ? undefined : found;
}

/** Whether {@linkcode requireWritable} would accept a row. This is nearly always the case. */
function isWritable(check: ConflictCheck, newest: VersionCursor | undefined): boolean {
  const { snapshotSeq, write } = check;
  if (newest === undefined) return write.operation === "insert" && !mayBeBuried(check);
  if (write.operation === "insert" || newest.isDeleted) return false;
  return snapshotSeq === undefined || newest.seq <= snapshotSeq;
}

/** Returns the error for a key written twice in one statement or transaction. */
function twice({ table, write }: ConflictCheck, row: Row): DatabaseError {
  assert(write.operation === "insert", "staged commit: key updated or deleted twice");
  return duplicateKey(table, row);
}
