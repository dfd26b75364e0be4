/**
 * Makes each commit within one tick. A row version gets its seq here and nowhere else.
 *
 * `apply` runs without an await. It checks keys, issues seqs, and puts rows into memtables and the
 * log's buffer. If any check fails, it changes nothing. The rows of a large commit are checked and
 * encoded beforehand (`staged_commit.ts`), so a large commit also takes a single tick.
 * `commit_groups.ts` settles the commit once it has been written to the log.
 *
 * Invariant: seqs of rolled-back rows are never issued again.
 */
import { assert } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq, type SeqGenerator } from "../../base/seq.ts";
import type { Batch } from "../../types/mod.ts";
import type { CommitLog } from "../contract/commit_log.ts";
import { keyOfRow } from "../contract/key.ts";
import {
  type Commit,
  type PublishedDefinitions,
  rowCountOf,
  type StagedCommit,
  type StageOptions,
  type TableWrite,
  type WriteBatch,
} from "../contract/writes.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { StoredTable } from "../table/table.ts";
import { pushBatch } from "./batch_insert.ts";
import { type CommitGroup, CommitGroups, type Touch } from "./commit_groups.ts";
import { requireInsertable, requireKeyless, requireReplaceable } from "./conflicts.ts";
import { deletedVersion, LocalStagedCommit, type StagingGround } from "./staged_commit.ts";
import type { StagedTable } from "./staged_table.ts";
import { requireUnique } from "./unique_keys.ts";

export interface CommitterOptions {
  readonly commitLog: CommitLog;
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly seqs: SeqGenerator;
  readonly space: SpaceGuard;
  /** The highest durable seq. */
  readonly visibleSeq: Seq;
  /** The seq of the newest table definition. */
  readonly catalogSeq: number;
}

/**
 * Notifies the store of changes by commits, so that the store can schedule work such as flushes.
 */
export interface CommitterEvents {
  /** Called when a commit has added rows to a table's active memtable. */
  onAppended(table: StoredTable): void;
  onFatal(cause: unknown): void;
}

export class Committer {
  catalogSeq: number;
  /** Settles commits once they are durable or have failed. */
  readonly groups: CommitGroups;
  readonly #commitLog: CommitLog;
  readonly #tables: ReadonlyMap<number, StoredTable>;
  readonly #seqs: SeqGenerator;
  readonly #space: SpaceGuard;
  readonly #events: CommitterEvents;
  /** The owners that may no longer make commits. */
  readonly #retiredOwners = new Set<number>();

  constructor(options: CommitterOptions, events: CommitterEvents) {
    this.#commitLog = options.commitLog;
    this.#tables = options.tables;
    this.#seqs = options.seqs;
    this.#space = options.space;
    this.#events = events;
    this.catalogSeq = options.catalogSeq;
    this.groups = new CommitGroups({
      tables: options.tables,
      space: options.space,
      visibleSeq: options.visibleSeq,
      onFatal: (cause) => events.onFatal(cause),
    });
    this.#commitLog.events = this.groups;
  }

  apply(batch: WriteBatch): Commit {
    try {
      return this.#apply(batch);
    } catch (error) {
      throw inDoubt(error);
    }
  }

  #apply(batch: WriteBatch): Commit {
    this.groups.requireLog();
    for (const { owner } of batch.writes) this.#requireOwner(owner);
    const onlyDeletes = areDeletes(batch.writes);
    this.#space.admit({ usesReserve: onlyDeletes || batch.usesReserve === true });
    if (!onlyDeletes)
      for (const { tableId } of batch.writes) this.#table(tableId).requireStorageSpace();
    const commitLog = this.#commitLog;
    const touches: Touch[] = [];
    const isAlone = batch.writes.length === 1 && !this.#hasUniqueKeys(batch);
    let firstSeq = SEQ_ZERO;
    this.#seqs.settle();
    commitLog.begin(this.catalogSeq);
    try {
      for (const write of batch.writes) {
        if (rowCountOf(write) === 0) continue;
        const touch = this.#touch(touches, write.tableId);
        const seq =
          write.batch === undefined
            ? this.#applyWrite(touch, write, { batch, firstSeq })
            : this.#applyBatch(touch, write, { rows: write.batch, isAlone });
        if (firstSeq === SEQ_ZERO) firstSeq = seq;
      }
      this.#requireUnique(touches, batch.snapshotSeq);
    } catch (error) {
      commitLog.abort();
      for (const { table, memtable, rowCount } of touches) table.takeBack(memtable, rowCount);
      throw error;
    }
    if (firstSeq === SEQ_ZERO) return this.#abortEmpty();
    const lastSeq = this.#seqs.last;
    const group = this.groups.applied(commitLog.end(), lastSeq);
    for (const touch of touches) this.#enlist(group, touch, lastSeq);
    for (const write of batch.writes) {
      if (rowCountOf(write) > 0) this.groups.noteChanged(group, write.tableId, write.owner);
    }
    if (isAlone) this.#appendLate(touches, batch.writes[0]?.batch);
    // The seqs must be computed before `onAppended` can freeze a memtable for a flush.
    const seqs = batch.wantsSeqs === true ? seqsOf(touches) : undefined;
    for (const { table } of touches) this.#events.onAppended(table);
    return withSeqs({ firstSeq, lastSeq }, seqs);
  }

  /** Returns the result of a commit that has changed no rows. */
  #abortEmpty(): Commit {
    this.#commitLog.abort();
    const { appliedSeq } = this.groups;
    return { firstSeq: appliedSeq, lastSeq: appliedSeq };
  }

  /**
   * Checks that no key being written belongs to another row.
   * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE
   */
  #requireUnique(touches: readonly Touch[], snapshotSeq: Seq | undefined): void {
    for (const { memtable, rowCount, table } of touches) {
      if (table.enforcedIndexes.length === 0) continue;
      const expiredSeq = table.expiredSeq(this.#seqs);
      requireUnique(table, { memtable, firstRow: rowCount, expiredSeq, snapshotSeq });
    }
  }

  /**
   * Whether a unique index must read the values from the memtable before the commit can be
   * accepted.
   */
  #hasUniqueKeys({ writes }: WriteBatch): boolean {
    for (const { tableId } of writes) {
      if ((this.#tables.get(tableId)?.enforcedIndexes.length ?? 0) > 0) return true;
    }
    return false;
  }

  /**
   * While the log is paused, combines a commit with a change to the catalog: both become durable,
   * or neither does.
   *
   * @param definitions.seq The seq of the definitions under which the rows are written.
   * @param definitions.publish Changes the catalog, once the rows are in the log.
   * @throws {DatabaseError} The errors of `apply`, of `durable` and of `publish`.
   */
  applyWith(batch: WriteBatch, definitions: PublishedDefinitions): Commit {
    const before = this.catalogSeq;
    this.catalogSeq = definitions.seq;
    try {
      const commit = this.apply(batch);
      definitions.onWriting?.();
      const isSettled = this.#commitLog.writeNow(() => definitions.publish(commit.lastSeq));
      if (!isSettled) throw this.groups.failureOf(commit.lastSeq);
      return commit;
    } catch (error) {
      // Restores the previous seq. Otherwise the rows of later commits would appear to have been
      // written under definitions that never took effect.
      this.catalogSeq = before;
      throw error;
    }
  }

  /** Begins a commit that is completed later by {@linkcode StagedCommit.commit}. */
  stage({ snapshotSeq, wantsSeqs = false }: StageOptions): StagedCommit {
    return new LocalStagedCommit(this.#ground(), { snapshotSeq, wantsSeqs });
  }

  /** Refuses all further commits by an owner, including commits already in preparation. */
  retireOwner(owner: number): void {
    this.#retiredOwners.add(owner);
  }

  /** Checks that an owner may still commit. @throws {DatabaseError} PERMISSION_DENIED */
  #requireOwner(owner: number): void {
    if (!this.#retiredOwners.has(owner)) return;
    throw new DatabaseError(
      "PERMISSION_DENIED",
      "Cannot write: the user who owns these rows has been deleted, and the rows are being erased",
    );
  }

  #ground(): StagingGround {
    const { groups } = this;
    return {
      commitLog: this.#commitLog,
      table: (tableId) => this.#table(tableId),
      get appliedSeq() {
        return groups.appliedSeq;
      },
      get takenBackCount() {
        return groups.takenBackCount;
      },
      expiredSeq: (table) => table.expiredSeq(this.#seqs),
      offsetOf: (index) => this.#seqs.offsetOf(index),
      commit: (staged) => this.#commitStaged(staged),
    };
  }

  #commitStaged({
    areDeletes: onlyDeletes,
    prepared,
    rowCount,
    tables,
    wantsSeqs,
  }: LocalStagedCommit): Commit {
    this.groups.requireLog();
    for (const { memtable } of tables) {
      for (const owner of memtable.partitions.keys()) this.#requireOwner(owner);
    }
    this.#space.admit({ usesReserve: onlyDeletes });
    for (const { table } of tables) {
      table.requireAvailable();
      if (!onlyDeletes) table.requireStorageSpace();
    }
    this.#seqs.settle();
    const firstSeq = this.#seqs.block(rowCount);
    const lastSeq = this.#seqs.last;
    const { catalogSeq } = this;
    const number = this.#commitLog.append(prepared, { catalogSeq, firstSeq });
    const group = this.groups.applied(number, lastSeq);
    const touches = tables.map((staged) => this.#adopt(staged, firstSeq));
    for (const touch of touches) this.#enlist(group, touch, lastSeq);
    for (const { memtable, table } of tables) {
      for (const { owner } of memtable.partitions.values()) {
        this.groups.noteChanged(group, table.tableId, owner);
      }
    }
    const seqs = wantsSeqs ? seqsOf(touches) : undefined;
    for (const { table } of touches) this.#events.onAppended(table);
    return withSeqs({ firstSeq, lastSeq }, seqs);
  }

  /** Adds the rows of a staged commit to their table. */
  #adopt(staged: StagedTable, firstSeq: Seq): Touch {
    const { liveDelta, memtable: own, table } = staged;
    staged.begin(firstSeq);
    if (staged.isAdopted) {
      table.adopt(own);
      return { table, memtable: own, rowCount: 0, liveDelta };
    }
    const memtable = table.active;
    const touch = { table, memtable, rowCount: memtable.rowCount, liveDelta };
    memtable.addAll(own);
    return touch;
  }

  #applyWrite(
    touch: Touch,
    write: TableWrite,
    { batch, firstSeq }: { batch: WriteBatch; firstSeq: Seq },
  ): Seq {
    const { table, memtable } = touch;
    const { rows, owner, operation } = write;
    const { keyPositions, definition } = table;
    const isKeyed = keyPositions.length > 0;
    const isDeleted = operation === "delete";
    const partition = memtable.partition(owner);
    const snapshotSeq = write.isCurrent === true ? undefined : batch.snapshotSeq;
    const conflict = { table, write, snapshotSeq, firstSeq };
    memtable.reserve(rows.length);
    this.#commitLog.beginWrite(write, definition.columns);
    if (!isKeyed) requireKeyless(write, definition.name);
    // An expired row counts as deleted, which frees its key.
    const expiredSeq = operation === "insert" ? table.expiredSeq(this.#seqs) : 0;
    let writeFirst = SEQ_ZERO;
    let pushed = 0;
    try {
      for (const row of rows) {
        const key = isKeyed ? keyOfRow(row, keyPositions) : "";
        const found = isKeyed
          ? table.findNewest(partition, key, row)
          : deletedVersion(table, write, pushed);
        const newest = found === undefined || found.seq <= expiredSeq ? undefined : found;
        if (operation === "insert") requireInsertable(conflict, newest, row);
        else requireReplaceable(conflict, newest, row);
        const seq = this.#seqs.next();
        const prev = newest?.seq ?? 0;
        this.#commitLog.addRow(row, seq, prev);
        newest?.replace(seq);
        const at = memtable.push(partition, { seq, prev, isDeleted });
        if (isKeyed) partition.setRow(key, at);
        if (pushed === 0) {
          writeFirst = seq;
          // The commit's first seq identifies the rows of the commit itself, which never conflict
          // with its snapshot.
          if (conflict.firstSeq === SEQ_ZERO) conflict.firstSeq = seq;
        }
        pushed += 1;
      }
    } finally {
      // The values are appended even if a row was refused, because the rollback reads them.
      memtable.appendValues(rows, pushed);
    }
    if (operation !== "update") touch.liveDelta += isDeleted ? -pushed : pushed;
    return writeFirst;
  }

  /**
   * Inserts rows in columnar form, outside a transaction. If the commit has no other rows,
   * {@linkcode #appendLate} appends the values of the rows later.
   */
  #applyBatch(
    touch: Touch,
    write: TableWrite,
    { rows, isAlone }: { rows: Batch; isAlone: boolean },
  ): Seq {
    assert(write.operation === "insert", "commit: column batches are supported only for INSERT");
    const { table, memtable } = touch;
    const partition = memtable.partition(write.owner);
    const first = memtable.rowCount;
    memtable.reserve(rows.rowCount);
    this.#commitLog.beginWrite(write, table.definition.columns);
    let isLogged = false;
    try {
      pushBatch({ table, memtable, partition, seqs: this.#seqs }, write, rows);
      const { prevs, seqs, rowCount: end } = memtable;
      this.#commitLog.addBatch(rows, seqs.subarray(first, end), prevs.subarray(first, end));
      isLogged = true;
    } finally {
      // The values are appended even if a row was refused, because the rollback reads them.
      if (!isLogged || !isAlone) memtable.appendBatch(rows, memtable.rowCount - first);
    }
    touch.liveDelta += rows.rowCount;
    return memtable.seqs[first] as Seq;
  }

  /**
   * Appends the values of a commit whose rows are all in columnar form, while the disk is writing
   * the log. This is safe because nothing reads the values within this tick.
   */
  #appendLate([touch]: readonly Touch[], rows: Batch | undefined): void {
    if (touch === undefined || rows === undefined) return;
    this.#commitLog.writeEarly();
    touch.memtable.appendBatch(rows, rows.rowCount);
  }

  /** Records the state of a table's active memtable before this commit adds rows to it. */
  #touch(touches: Touch[], tableId: number): Touch {
    for (const touch of touches) if (touch.table.tableId === tableId) return touch;
    const table = this.#table(tableId);
    const memtable = table.active;
    const touch = { table, memtable, rowCount: memtable.rowCount, liveDelta: 0 };
    touches.push(touch);
    return touch;
  }

  #table(tableId: number): StoredTable {
    const table = this.#tables.get(tableId);
    if (table !== undefined) return table.requireAvailable();
    throw new DatabaseError(
      "TABLE_NOT_FOUND",
      `Cannot write to table ${tableId}: there is no such table`,
    );
  }

  /** Adds the rows of a commit to the group of commits that become durable together. */
  #enlist(group: CommitGroup, touch: Touch, lastSeq: Seq): void {
    const { memtable, rowCount, liveDelta } = touch;
    memtable.setCommitSeq(rowCount, lastSeq);
    memtable.firstLogFile ??= this.#commitLog.oldestUnwrittenFile;
    const known = group.touches.get(memtable);
    if (known === undefined) group.touches.set(memtable, touch);
    else known.liveDelta += liveDelta;
  }
}

function withSeqs(commit: Commit, seqs: Float64Array | undefined): Commit {
  return seqs === undefined ? commit : { ...commit, seqs };
}

function areDeletes(writes: readonly TableWrite[]): boolean {
  for (const { operation } of writes) if (operation !== "delete") return false;
  return true;
}

/** Returns the seqs of all appended rows, in the order in which the caller passed them. */
function seqsOf(touches: readonly Touch[]): Float64Array {
  let count = 0;
  for (const { memtable, rowCount } of touches) count += memtable.rowCount - rowCount;
  const seqs = new Float64Array(count);
  let at = 0;
  for (const { memtable, rowCount } of touches) {
    seqs.set(memtable.seqs.subarray(rowCount, memtable.rowCount), at);
    at += memtable.rowCount - rowCount;
  }
  // Seqs ascend within a table, but the seqs of several tables may interleave.
  return touches.length === 1 ? seqs : seqs.toSorted();
}
