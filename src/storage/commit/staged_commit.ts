/**
 * A large commit that is prepared over many turns of the event loop, and made in a short one.
 *
 *     add, add, add …    keys are looked up, or the versions whose seqs are known; rows go into a
 *                        memtable of their own and into frames
 *        └──► settle     again and again, until what others committed meanwhile has been looked at
 *               └──► commit, in the same turn: seqs, replaced versions, memtable, frames
 *
 * - Before `commit` nobody can see anything of it, and nothing of it is in the log: to give it up
 *   is to forget it.
 * - Nothing is locked. What another commit did to a key after it was looked up is met by `settle`,
 *   in memtables or, where a flush came in between, by looking the keys up again; and so are
 *   flushes and merges that moved a version which is to be replaced.
 *
 * Seqs of its rows are not known while it is prepared: see `staged_table.ts`.
 */
import { assert } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import { collectSoon } from "../../base/garbage.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { CommitDraft, CommitLog } from "../contract/commit_log.ts";
import { keyOfRow, keysOfColumns } from "../contract/key.ts";
import { type Commit, rowCountOf, type StagedCommit, type TableWrite } from "../contract/store.ts";
import type { MemPartition } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";
import { ascendingKeys, rowOfColumns } from "./batch_insert.ts";
import {
  type ConflictCheck,
  changedMeanwhile,
  duplicateKey,
  requireInsertable,
  requireKeyless,
  requireReplaceable,
} from "./conflicts.ts";
import { newerInMemtables, newerInSegment, StagedTable } from "./staged_table.ts";

/** From so many rows on, arrays that are outgrown are worth a collection. */
const OUTGROWN_ROWS_MIN = 131_072;

/** What the committer offers to the commits that are being prepared. */
export interface StagingGround {
  readonly commitLog: Pick<CommitLog, "draft">;
  /** @throws {DatabaseError} TABLE_NOT_FOUND */
  table(tableId: number): StoredTable;
  readonly appliedSeq: Seq;
  /** How often commits were taken back: what was looked up before may be gone. */
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
  readonly draft: CommitDraft;
  readonly wantsSeqs: boolean;
  /** Whether it only deletes, which a full disk allows. */
  areDeletes = true;
  #rowCount = 0;
  /** At this number of rows arrays that were doubled have left as much behind as is held. */
  #collectedAt = OUTGROWN_ROWS_MIN;
  /** What `settle` is at. */
  #search: Generator<void, void> | undefined;

  constructor(
    ground: StagingGround,
    { snapshotSeq, wantsSeqs }: { snapshotSeq?: Seq | undefined; wantsSeqs: boolean },
  ) {
    this.#ground = ground;
    this.#snapshotSeq = snapshotSeq;
    this.#startSeq = ground.appliedSeq;
    this.#takenBackCount = ground.takenBackCount;
    this.draft = ground.commitLog.draft((index) => ground.offsetOf(index));
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
    const staged = this.#stagedTable(write.tableId);
    if (staged.table.keyPositions.length === 0) requireKeyless(write, staged.definition.name);
    if (operation !== "delete") this.areDeletes = false;
    staged.memtable.reserve(rowCount);
    this.draft.beginWrite(write, staged.definition.columns);
    if (batch === undefined) this.#addRows(staged, write);
    else this.#addBatch(staged, write, batch);
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
      this.draft.addRow(row, this.#rowCount, newest?.seq ?? 0);
      const at = this.#push(staged, partition, operation, newest);
      if (isKeyed) partition.setRow(key, at);
      index += 1;
    }
    memtable.appendValues(rows, rows.length);
  }

  /** The same by columns: no row is made of them. */
  #addBatch(staged: StagedTable, write: TableWrite, batch: Batch): void {
    const { memtable, table } = staged;
    const { rowCount } = batch;
    const { operation, owner, replacedSeqs } = write;
    const firstIndex = this.#rowCount;
    const first = memtable.rowCount;
    const isNew = operation === "insert" && this.#pushNewKeys(staged, owner, batch);
    // A key whose row has expired may have another row, which does not replace the expired one.
    const isKnown = replacedSeqs !== undefined && table.definition.ttlMs === undefined;
    if (isKnown) this.#replaceBatch(staged, write, replacedSeqs, batch);
    else if (!isNew) this.#pushBatch(staged, write, batch);
    this.draft.addBatch(batch, firstIndex, memtable.prevs.subarray(first, first + rowCount));
    memtable.appendBatch(batch, rowCount);
  }

  /** Adds rows of keys that ascend from above all others, or without keys. Returns whether so. */
  #pushNewKeys({ memtable, table }: StagedTable, owner: number, batch: Batch): boolean {
    const { keyPositions } = table;
    const partition = memtable.partition(owner);
    const highestKey = Math.max(table.highestKey(owner), partition.highestKey);
    const keys = ascendingKeys(batch.columns, keyPositions, highestKey);
    if (keys === undefined && keyPositions.length > 0) return false;
    const first = memtable.pushNew(partition, this.#distances(batch.rowCount));
    if (keys !== undefined) partition.setNewRows(keys, first);
    this.#rowCount += batch.rowCount;
    return true;
  }

  /**
   * Adds rows that replace versions with known seqs: who finds them there, and not replaced, need
   * not look their keys up.
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

  /** Looks the keys of a batch up, one by one. */
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
    return { table, write, snapshotSeq: this.#snapshotSeq, firstSeq: SEQ_ZERO };
  }

  /** The seqs of the next rows, from the seq before the first of the commit. */
  #distances(rowCount: number): Float64Array {
    const distances = new Float64Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) {
      distances[row] = this.#ground.offsetOf(this.#rowCount + row) + 1;
    }
    return distances;
  }

  /** Adds a row but for its values; returns its number. */
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
      // What came meanwhile is looked at in this turn, if it is little.
      this.#search = this.#searched();
      if (this.#search.next().done === true) break;
    }
    this.#search = undefined;
    return true;
  }

  commit(): Commit {
    try {
      assert(this.settle(), "a staged commit has settled in this turn");
      assert(this.#rowCount > 0, "a commit has a row");
      this.draft.end();
      for (const staged of this.#staged.values()) {
        if (staged.table.keyPositions.length === 0) staged.requireUnreplaced();
      }
      return this.#ground.commit(this);
    } catch (error) {
      throw inDoubt(error);
    }
  }

  /**
   * Rows of a memtable that were taken back have their places given to others, which the places
   * noted here would name.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE
   */
  #requireGround(): void {
    if (this.#ground.takenBackCount === this.#takenBackCount) return;
    throw changedMeanwhile("the tables that it reads");
  }

  #stagedTable(tableId: number): StagedTable {
    let staged = this.#staged.get(tableId);
    if (staged === undefined) {
      staged = new StagedTable(this.#ground.table(tableId), this.#startSeq);
      this.#staged.set(tableId, staged);
    }
    // Rows are looked up by the definition that they were made for.
    requireUnaltered(staged);
    return staged;
  }

  /** Looks at what others did since the last time; a step at most is a batch of rows. */
  *#searched(): Generator<void, void> {
    this.#requireGround();
    for (const staged of this.#staged.values()) {
      requireUnaltered(staged);
      yield* this.#newerVersions(staged);
      yield* this.#movedVersions(staged);
    }
  }

  /** Versions may have gone from a memtable to a segment since, so both are looked through. */
  *#newerVersions(staged: StagedTable): Generator<void, void> {
    const { table } = staged;
    const upTo = this.#ground.appliedSeq;
    if (upTo === staged.checkedSeq) return;
    if (table.keyPositions.length > 0) {
      // Lists of one turn: no version is between them.
      const memtables = table.memtables();
      const segments = table.segments.filter(({ entry }) => entry.maxSeq > staged.checkedSeq);
      yield* newerInMemtables(staged, memtables, upTo);
      for (const segment of segments) yield* newerInSegment(staged, segment);
      // Those that are no longer listed may not have been read to their end.
      if (segments.some((segment) => !table.segments.includes(segment))) return;
    }
    staged.checkedSeq = upTo;
  }

  /** A flush or a merge has put versions elsewhere. */
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

/** @throws {DatabaseError} SERIALIZATION_FAILURE */
function requireUnaltered({ definition, table }: StagedTable): void {
  if (table.definition === definition && !table.isDropped) return;
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot write to ${definition.name}: it was altered or dropped meanwhile`,
    { hint: "run the statement again" },
  );
}

/** @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE */
function requireWritable(check: ConflictCheck, newest: VersionCursor | undefined, row: Row): void {
  if (check.write.operation === "insert") requireInsertable(check, newest, row);
  else if (newest === undefined) throw changedMeanwhile(check.table.definition.name);
  else requireReplaceable(check, newest, row);
}

/** What a delete in a table without a key names; an insert names nothing. */
export function deletedVersion(
  table: StoredTable,
  { replacedSeqs, owner }: TableWrite,
  index: number,
): VersionCursor | undefined {
  const seq = replacedSeqs?.[index];
  return seq === undefined ? undefined : table.findSeq(owner, seq);
}

/** Whether {@linkcode requireWritable} lets a row pass, which it seldom does not. */
function isWritable(
  { snapshotSeq, write }: ConflictCheck,
  newest: VersionCursor | undefined,
): boolean {
  if (newest === undefined) return write.operation === "insert";
  if (write.operation === "insert" || newest.isDeleted) return false;
  return snapshotSeq === undefined || newest.seq <= snapshotSeq;
}

/** One statement, and one transaction, leaves one version of a key. */
function twice({ table, write }: ConflictCheck, row: Row): DatabaseError {
  assert(write.operation === "insert", "a key is updated or deleted once");
  return duplicateKey(table, row);
}
