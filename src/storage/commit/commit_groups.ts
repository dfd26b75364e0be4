/**
 * Commits on their way to the disk: they settle in groups, in order, as the log writes them, and
 * their writers are answered then.
 *
 *     applied ──group durable─► visible
 *        ├─────no room────────► taken back: rows, keys and replacements are as before
 *        └─────log failed─────► unknown: never visible in this process
 *
 * - `visibleSeq` <= `appliedSeq`, and both only grow, but that `appliedSeq` falls back to
 *   `visibleSeq` when groups are taken back.
 * - The visible seq moves, then `onVisible` is called, and only then the writers are answered.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { CommitLogEvents } from "../contract/commit_log.ts";
import type { ChangedPartition, OnVisible } from "../contract/store.ts";
import type { SpaceGuard } from "../directory/space.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "../table/table.ts";

/** Failed ranges of seqs that are remembered for late callers of `durable`. */
const FAILURES_MAX = 1024;

const DONE: Promise<void> = Promise.resolve();

/** What commits did to one memtable, so that it can be taken back. */
export interface Touch {
  readonly table: StoredTable;
  readonly memtable: Memtable;
  /** Rows before. */
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
  /** Highest durable seq. */
  readonly visibleSeq: Seq;
  readonly onFatal: (cause: unknown) => void;
}

export class CommitGroups implements CommitLogEvents {
  onVisible: OnVisible = () => {};
  readonly #options: CommitGroupsOptions;
  #visibleSeq: Seq;
  #appliedSeq: Seq;
  /** Oldest first. */
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

  /** How often groups were taken back. */
  get takenBackCount(): number {
    return this.#takenBackCount;
  }

  /** @throws {DatabaseError} STORAGE_UNAVAILABLE once the log has failed. */
  requireLog(): void {
    if (this.#fatal !== undefined) throw this.#fatal;
  }

  /**
   * Notes that a commit up to `lastSeq` was applied; its group is the newest, or comes after it.
   */
  applied(groupNumber: number, lastSeq: Seq): CommitGroup {
    const group = this.#groupOf(groupNumber);
    group.lastSeq = lastSeq;
    this.#appliedSeq = lastSeq;
    return group;
  }

  /** A partition that `onVisible` names when the group is visible. */
  noteChanged(group: CommitGroup, tableId: number, owner: number): void {
    const partition = this.#options.tables.get(tableId)?.active.partitions.get(owner);
    if (partition === undefined || partition.changedInGroup === group.number) return;
    partition.changedInGroup = group.number;
    group.changed.push({ tableId, owner });
  }

  /** As `Store.durable`. */
  durable(seq: Seq): Promise<void> {
    if (this.#failures.length > 0) {
      const failure = this.#failures.find(({ after, upTo }) => seq > after && seq <= upTo);
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
      assert(group.lastSeq > this.#visibleSeq, "the visible seq ascends");
      this.#visibleSeq = group.lastSeq;
      for (const { table, liveDelta } of group.touches.values()) {
        if (table.liveRows !== undefined) table.liveRows += liveDelta;
      }
      this.onVisible(group.changed, this.#visibleSeq);
      group.waiting?.resolve();
    }
  }

  onTakenBack(groupNumber: number, cause: unknown): void {
    const error = this.#options.space.noteRefused(cause);
    const failed = this.#groups.filter(({ number }) => number >= groupNumber);
    this.#groups = this.#groups.filter(({ number }) => number < groupNumber);
    // Newest first: a row's own replacement must be gone before the row is.
    for (const { touches } of failed.toReversed()) {
      for (const { table, memtable, rowCount } of [...touches.values()].toReversed()) {
        // The rows of a table that was dropped meanwhile are gone already, with their files.
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
      "Cannot write: the log failed, and the server must be started again",
      { cause },
    );
    const error = new DatabaseError(
      "COMMIT_UNKNOWN",
      "Cannot say whether the commit is durable: the log failed while it was written",
      { hint: "read the rows again after the server has restarted", cause },
    );
    this.#noteFailure(error);
    this.#options.onFatal(cause);
    for (const { waiting } of failed) waiting?.reject(error);
  }

  #groupOf(number: number): CommitGroup {
    const last = this.#groups.at(-1);
    if (last?.number === number) return last;
    assert(last === undefined || last.number < number, "groups ascend");
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
    // After a fatal failure nothing becomes durable any more.
    const upTo = this.#fatal === undefined ? this.#appliedSeq : Infinity;
    const last = this.#failures.at(-1);
    if (last?.after === after) this.#failures.pop();
    this.#failures.push({ after, upTo, error });
    if (this.#failures.length > FAILURES_MAX) this.#failures.shift();
  }
}
