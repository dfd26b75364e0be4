/**
 * A large commit that is prepared over many turns of the event loop, and made in a short one.
 *
 *     add, add, add …    keys are looked up; rows go into a memtable of their own and into frames
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
import type { Row } from "../../types/mod.ts";
import type { CommitDraft, CommitLog } from "../contract/commit_log.ts";
import { type Key, keyOfRow } from "../contract/key.ts";
import type { Commit, StagedCommit, TableWrite } from "../contract/store.ts";
import type { MemPartition } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";
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
    const { operation, owner, rows } = write;
    assert(write.batch === undefined, "a staged write is given by rows");
    if (rows.length === 0) return;
    this.#requireGround();
    const staged = this.#stagedTable(write.tableId);
    const { memtable, table } = staged;
    const { keyPositions } = table;
    const isKeyed = keyPositions.length > 0;
    if (!isKeyed) requireKeyless(write, staged.definition.name);
    if (operation !== "delete") this.areDeletes = false;
    const isDeleted = operation === "delete";
    const expiredSeq = operation === "insert" ? this.#ground.expiredSeq(table) : 0;
    const partition = memtable.partition(owner);
    const check = { table, write, snapshotSeq: this.#snapshotSeq, firstSeq: SEQ_ZERO };
    memtable.reserve(rows.length);
    this.draft.beginWrite(write, staged.definition.columns);
    let pushed = 0;
    for (const row of rows) {
      const key = isKeyed ? keyOfRow(row, keyPositions) : "";
      if (isKeyed) requireOnce(partition, key, check, row);
      const found = isKeyed
        ? table.findNewestOf(owner, key, row)
        : deletedVersion(table, write, pushed);
      const newest = found === undefined || found.seq <= expiredSeq ? undefined : found;
      requireWritable(check, newest, row);
      const prev = newest?.seq ?? 0;
      this.draft.addRow(row, this.#rowCount, prev);
      const seq = this.#ground.offsetOf(this.#rowCount) + 1;
      const at = memtable.push(partition, { seq, prev, isDeleted });
      if (newest !== undefined) staged.notePlace(at, newest.place, newest.row);
      if (isKeyed) partition.setRow(key, at);
      this.#rowCount += 1;
      pushed += 1;
    }
    memtable.appendValues(rows, pushed);
    if (this.#rowCount >= this.#collectedAt) {
      collectSoon();
      this.#collectedAt = 2 * this.#rowCount;
    }
    if (operation !== "update") staged.liveDelta += isDeleted ? -pushed : pushed;
    this.#search = undefined;
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
  { deletedSeqs, owner }: TableWrite,
  index: number,
): VersionCursor | undefined {
  const seq = deletedSeqs?.[index];
  return seq === undefined ? undefined : table.findSeq(owner, seq);
}

/** One statement, and one transaction, leaves one version of a key. */
function requireOnce(partition: MemPartition, key: Key, check: ConflictCheck, row: Row): void {
  if (partition.rowOf(key) === undefined) return;
  assert(check.write.operation === "insert", "a key is updated or deleted once");
  throw duplicateKey(check.table, row);
}
