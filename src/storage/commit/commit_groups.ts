/**
 * Settles commits in groups, in the order in which the log writes them, and then responds to their
 * writers.
 *
 *     applied ──group durable─► visible
 *        ├─────no room────────► rolled back: rows, keys and replacements are as before
 *        └─────log failed─────► unknown: never visible in this process
 *
 * - `visibleSeq` <= `appliedSeq`. Neither seq ever decreases, except that `appliedSeq` falls back
 *   to `visibleSeq` when groups are rolled back.
 * - First the visible seq advances, then `onVisible` is called, and only then are the writers
 *   answered.
 */
import { assert, defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { CommitLogEvents } from "../contract/commit_log.ts";
import type { ChangedPartition, OnVisible } from "../contract/store.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";

/** The maximum number of failed seq ranges that are remembered for later calls to `durable`. */
const FAILURES_MAX = 1024;

const DONE: Promise<void> = Promise.resolve();

/** The changes that a group of commits made to a memtable, in the form that a rollback needs. */
export interface Touch {
  readonly table: StoredTable;
  readonly memtable: Memtable;
  /** The memtable's row count before the changes. */
  readonly rowCount: number;
  liveDelta: number;
}

/** Commits that become durable together. */
export interface CommitGroup {
  readonly number: number;
  lastSeq: Seq;
  readonly touches: Map<Memtable, Touch>;
  readonly changed: ChangedPartition[];
  waiting: PromiseWithResolvers<void> | undefined;
}

interface Failure {
  readonly after: number;
  readonly upTo: number;
  readonly error: DatabaseError;
}

export interface CommitGroupsOptions {
  readonly tables: ReadonlyMap<number, StoredTable>;
  readonly space: SpaceGuard;
  /** The highest durable seq. */
  readonly visibleSeq: Seq;
  readonly onFatal: (cause: unknown) => void;
}

export class CommitGroups implements CommitLogEvents {
  onVisible: OnVisible = () => {};
  readonly #options: CommitGroupsOptions;
  #visibleSeq: Seq;
  #appliedSeq: Seq;
  /** Groups of commits that have not settled yet, oldest first. */
  #groups: CommitGroup[] = [];
  #failures: Failure[] = [];
  #fatal: DatabaseError | undefined;
  #takenBackCount = 0;

  constructor(options: CommitGroupsOptions) {
    this.#options = options;
    this.#visibleSeq = options.visibleSeq;
    this.#appliedSeq = options.visibleSeq;
  }

  get visibleSeq(): Seq {
    return this.#visibleSeq;
  }

  get appliedSeq(): Seq {
    return this.#appliedSeq;
  }

  /** How many times groups of commits have been rolled back since startup. */
  get takenBackCount(): number {
    return this.#takenBackCount;
  }

  /**
   * Checks that the log accepts commits.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE once the log has failed.
   */
  requireLog(): void {
    if (this.#fatal !== undefined) throw this.#fatal;
  }

  /**
   * Records an applied commit that ends at `lastSeq`. Returns the commit's group, which may be a
   * new group.
   */
  applied(groupNumber: number, lastSeq: Seq): CommitGroup {
    const group = this.#groupOf(groupNumber);
    group.lastSeq = lastSeq;
    this.#appliedSeq = lastSeq;
    return group;
  }

  /**
   * Marks a partition as changed by a group of commits. `onVisible` reports the partition when the
   * group becomes visible.
   */
  noteChanged(group: CommitGroup, tableId: number, owner: number): void {
    const partition = this.#options.tables.get(tableId)?.active.partitions.get(owner);
    if (partition === undefined || partition.changedInGroup === group.number) return;
    partition.changedInGroup = group.number;
    group.changed.push({ tableId, owner });
  }

  /** Returns the error with which the commit ending at `seq` was rolled back. */
  failureOf(seq: Seq): DatabaseError {
    return defined(this.#failure(seq), "commit groups: commit was not rolled back").error;
  }

  #failure(seq: Seq): Failure | undefined {
    return this.#failures.find(({ after, upTo }) => seq > after && seq <= upTo);
  }

  /** Implements `Store.durable`. */
  durable(seq: Seq): Promise<void> {
    if (this.#failures.length > 0) {
      const failure = this.#failure(seq);
      if (failure !== undefined) return Promise.reject(failure.error);
    }
    if (seq <= this.#visibleSeq) return DONE;
    for (const group of this.#groups) {
      if (seq <= group.lastSeq) {
        group.waiting ??= Promise.withResolvers();
        return group.waiting.promise;
      }
    }
    return this.#fatal === undefined ? DONE : Promise.reject(this.#fatal);
  }

  onSettled(groupNumber: number): void {
    for (;;) {
      const group = this.#groups[0];
      if (group === undefined || group.number > groupNumber) return;
      this.#groups.shift();
      assert(group.lastSeq > this.#visibleSeq, "commit groups: visible seq would move backwards");
      this.#visibleSeq = group.lastSeq;
      for (const { table, liveDelta } of group.touches.values()) {
        if (table.liveRows !== undefined) table.liveRows += liveDelta;
      }
      this.onVisible(group.changed, this.#visibleSeq);
      group.waiting?.resolve();
    }
  }

  onTakenBack(groupNumber: number, cause: unknown): void {
    // A DatabaseError means that the catalog refused a commit's definitions, not that the log is
    // out of space.
    const error = cause instanceof DatabaseError ? cause : this.#options.space.noteRefused(cause);
    const failed = this.#groups.filter(({ number }) => number >= groupNumber);
    this.#groups = this.#groups.filter(({ number }) => number < groupNumber);
    // The newest group is rolled back first, because a row's replacement must be undone before the
    // row itself.
    for (const { touches } of failed.toReversed()) {
      for (const { table, memtable, rowCount } of [...touches.values()].toReversed()) {
        // A table dropped in the meantime no longer has rows or files.
        if (!table.isDropped) table.takeBack(memtable, rowCount);
      }
    }
    this.#noteFailure(error);
    this.#appliedSeq = this.#groups.at(-1)?.lastSeq ?? this.#visibleSeq;
    this.#takenBackCount += 1;
    for (const { waiting } of failed) waiting?.reject(error);
  }

  onFatal(cause: unknown): void {
    const failed = this.#groups;
    this.#groups = [];
    this.#fatal = new DatabaseError(
      "STORAGE_UNAVAILABLE",
      "Cannot write: the log has failed; restart the server",
      { cause },
    );
    const error = new DatabaseError(
      "COMMIT_UNKNOWN",
      "Cannot tell whether the commit is durable: the log failed while the commit was being " +
        "written",
      {
        hint: "after the server has restarted, read the rows to check whether they were written",
        cause,
      },
    );
    this.#noteFailure(error);
    this.#options.onFatal(cause);
    for (const { waiting } of failed) waiting?.reject(error);
  }

  #groupOf(number: number): CommitGroup {
    const last = this.#groups.at(-1);
    if (last?.number === number) return last;
    assert(
      last === undefined || last.number < number,
      "commit groups: group numbers are not in ascending order",
    );
    const group: CommitGroup = {
      number,
      lastSeq: SEQ_ZERO,
      touches: new Map(),
      changed: [],
      waiting: undefined,
    };
    this.#groups.push(group);
    return group;
  }

  #noteFailure(error: DatabaseError): void {
    const after = this.#groups.at(-1)?.lastSeq ?? this.#visibleSeq;
    // After a fatal failure, no commit becomes durable any more, so every later commit has failed.
    const upTo = this.#fatal === undefined ? this.#appliedSeq : Infinity;
    const last = this.#failures.at(-1);
    if (last?.after === after) this.#failures.pop();
    this.#failures.push({ after, upTo, error });
    if (this.#failures.length > FAILURES_MAX) this.#failures.shift();
  }
}
