/**
 * Follows the table changes for all results of a maintained query. Results that differ only in
 * values, such as the value of `$1` in `user_id = $1`, share a feed, and a change reaches only the
 * results that it concerns.
 *
 *     commit ──► due ──► changes up to the newest seq, once ──by partition──► groups
 *
 * Invariants: every group in a feed has the result as of the feed's seq. A group leaves the feed
 * before it is evaluated, and rejoins it with its new rows. While the feed follows many changes,
 * it lets other work run, and some groups already have the result as of a later seq. Before a
 * group joins, the feed finishes following these changes.
 *
 * All outstanding commits are one step if the rows contain the seqs of their last changes and no
 * condition begins to permit rows. Otherwise, each commit is a separate step, so that the seq of a
 * step is also the seq of its change. Only a feed that is far behind then follows several commits
 * in each step.
 */
import type { Clock } from "../../base/clock.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { runToCompletion } from "../../base/steps.ts";
import type { JoinChangeSource, JoinChanges, ResultTable } from "../../sql/mod.ts";
import type { Store } from "../../storage/mod.ts";
import type { Evaluated, Evaluations } from "./evaluations.ts";
import type { StateBudget } from "./state_budget.ts";

/** The interface through which a result feed uses its group. */
export interface FedGroup {
  /**
   * Applies the changes that lead to the feed's seq. If `changes` is undefined, following them
   * would take too long, so the group is evaluated instead.
   */
  follow(changes: JoinChanges | undefined): void;
  /**
   * Computes, in steps, the data that the group needs to follow the changes, if computing it takes
   * time.
   */
  computeAhead(changes: JoinChanges): Generator<undefined, void> | undefined;
  /** Makes the group leave the feed so that its query can be evaluated again. */
  beginAnew(): void;
  /** Makes the group leave the feed for good. It is then evaluated again after each change. */
  stopFollowing(): void;
  /** Notifies the group's waiting subscriptions that the feed has reached a new seq. */
  notifyWaiting(): void;
  fail(error: unknown): void;
}

/**
 * The maximum number of steps for all outstanding commits. Steps are limited because a single step
 * for hundreds of commits might contain more changes than can be followed.
 */
const STEPS_MAX = 32;

/**
 * How many groups and changes are followed before other work may run. Each takes some 20 µs, and
 * every pause takes one iteration of the event loop.
 */
const WORK_PER_PART = 64;

/**
 * The length of the first time slice, in milliseconds. A change that concerns 25 groups takes one
 * millisecond, so its subscribers usually need not wait for other work.
 */
const FIRST_SLICE_MS = 2;

export interface ResultFeedOptions {
  readonly source: JoinChangeSource;
  /** Whether each row contains the seq of its last change. */
  readonly hasChangeSeqs: boolean;
  readonly tables: readonly ResultTable[];
  readonly store: Pick<Store, "visibleSeq">;
  readonly budget: StateBudget;
  readonly clock: Clock;
  /** Schedules the feeds' work, without waiting for long evaluations. */
  readonly evaluations: Evaluations<Evaluated>;
  /** Called when the last group has left the feed. */
  readonly onEmpty: (feed: ResultFeed) => void;
}

type Step = Pick<JoinChanges, "after" | "upTo">;

export class ResultFeed implements Evaluated {
  readonly #options: ResultFeedOptions;
  /**
   * The groups of each partition. Most partitions have a single group, which is stored without a
   * set.
   */
  readonly #groups = new Map<string, FedGroup | Set<FedGroup>>();
  /** The groups whose subscriptions are waiting for a later seq. */
  readonly #waiting = new Set<FedGroup>();
  #seq: Seq = SEQ_ZERO;
  /** Whether the groups may lack some changes up to the visible seq. */
  #isDue = false;
  /** Whether a commit has changed a table since the feed last began to catch up. */
  #isNoted = false;
  /** The unfinished work of following changes; undefined if there is none. */
  #work: Generator<undefined, void> | undefined;
  /**
   * Whether a group is about to join. If so, the feed continues even if all other groups leave.
   */
  #isJoined = false;

  constructor(options: ResultFeedOptions) {
    this.#options = options;
    for (const index of options.source.kept) options.budget.hold(index);
  }

  get tables(): readonly ResultTable[] {
    return this.#options.tables;
  }

  /** The seq up to which the feed has processed changes. */
  get followedSeq(): Seq {
    return this.#seq;
  }

  /** The seq whose result all groups have: the visible seq, unless changes are pending. */
  get seq(): Seq {
    return this.#isDue ? this.#seq : this.#options.store.visibleSeq;
  }

  reads(tableId: number, owner: number): boolean {
    return this.tables.some((table) => table.tableId === tableId && table.owner === owner);
  }

  /** Records that a commit has changed a table that the feed follows. */
  noteChange(): void {
    this.#isDue = true;
    this.#isNoted = true;
    this.#options.evaluations.request(this);
  }

  /** Registers a group to be notified once the feed has reached the newest seq. */
  await(group: FedGroup): void {
    this.#waiting.add(group);
  }

  /**
   * Adds a group whose rows are the result at `seq`, and brings the group and the feed to the same
   * seq.
   *
   * @returns false if the group has to be evaluated again.
   */
  join(group: FedGroup, { partition, seq }: { partition: string; seq: Seq }): boolean {
    if (this.#work !== undefined) runToCompletion(this.#work);
    if (this.#groups.size === 0) {
      this.#seq = seq;
    } else if (seq > this.#seq) {
      this.#isJoined = true;
      runToCompletion(this.#followUpTo(seq));
      this.#isJoined = false;
    } else if (seq < this.#seq) {
      const missed = this.#missed(seq, partition);
      if (missed === undefined) return false;
      this.#add(group, partition);
      this.#catchUp(group, missed);
      return true;
    }
    this.#add(group, partition);
    if (this.#seq < this.#options.store.visibleSeq) this.noteChange();
    this.#countKept();
    return true;
  }

  /** Returns a partition's steps from an earlier seq to the feed's seq. */
  #missed(seq: Seq, partition: string): JoinChanges[] | undefined {
    const isWanted = (other: string): boolean => other === partition;
    const missed: JoinChanges[] = [];
    for (const { after, upTo } of this.#stepsBetween(seq, this.#seq)) {
      const found = runToCompletion(this.#options.source.between({ after, upTo, isWanted }));
      const changes = found?.get(partition);
      if (found === undefined || (changes === undefined && found.has(partition))) return undefined;
      missed.push(changes ?? { tuples: [], weights: [], after, upTo });
    }
    return missed;
  }

  /**
   * Brings a group to the feed's seq. While the group is catching up, the feed's `seq` getter
   * returns the group's own seq.
   */
  #catchUp(group: FedGroup, missed: readonly JoinChanges[]): void {
    const [seq, isDue] = [this.#seq, this.#isDue];
    for (const changes of missed) {
      this.#seq = changes.upTo;
      this.#isDue ||= changes.upTo < seq;
      group.follow(changes);
    }
    this.#seq = seq;
    this.#isDue = isDue;
  }

  leave(group: FedGroup, partition: string): void {
    const groups = this.#groups.get(partition);
    this.#waiting.delete(group);
    const isMember = groups instanceof Set ? groups.delete(group) : groups === group;
    if (!isMember) return;
    if (groups === group || (groups instanceof Set && groups.size === 0)) {
      this.#groups.delete(partition);
    }
    if (this.#groups.size > 0 || this.#isJoined) return;
    const { budget, evaluations, onEmpty, source } = this.#options;
    evaluations.forget(this);
    for (const index of source.kept) budget.release(index);
    onEmpty(this);
  }

  async evaluate(): Promise<boolean> {
    const { clock, source, store } = this.#options;
    this.#isNoted = false;
    const work = this.#followUpTo(store.visibleSeq);
    // While the work is paused, the in-memory indexes must keep the rows of earlier seqs.
    const releases = source.kept.map((index) => index.hold());
    this.#work = work;
    const pause = pauser(clock, { firstSliceMs: FIRST_SLICE_MS });
    try {
      while (work.next().done !== true) await pause();
    } finally {
      this.#work = undefined;
      for (const release of releases) release();
    }
    return false;
  }

  #add(group: FedGroup, partition: string): void {
    const groups = this.#groups.get(partition);
    if (groups === undefined) this.#groups.set(partition, group);
    else if (groups instanceof Set) groups.add(group);
    else if (groups !== group) this.#groups.set(partition, new Set([groups, group]));
  }

  /**
   * Counts the memory of the indexes. If the indexes exceed the budget, they are released, and the
   * queries are evaluated instead.
   */
  #countKept(): void {
    const { budget, source } = this.#options;
    for (const index of source.kept) {
      const consumer = budget.ofIndex(index);
      if (!budget.admits(consumer, index.bytes)) {
        for (const group of this.#all()) group.stopFollowing();
        return;
      }
      budget.set(consumer, index.bytes);
    }
  }

  /** Returns the steps that lead from the seq `after` to a later seq. */
  #stepsBetween(after: Seq, upTo: Seq): readonly Step[] {
    const { hasChangeSeqs, source } = this.#options;
    const commits = source.commitsBetween({ after, upTo });
    if (commits === undefined) return [{ after, upTo }];
    const { changeConditions, seqs } = commits;
    const stepsMax = hasChangeSeqs && !changeConditions ? 1 : STEPS_MAX;
    const share = Math.ceil(seqs.length / stepsMax);
    const ends = seqs.filter((_, index) => {
      return (index + 1) % share === 0 || index === seqs.length - 1;
    });
    return ends.map((seq, index) => ({ after: ends[index - 1] ?? after, upTo: seq }));
  }

  *#followUpTo(upTo: Seq): Generator<undefined, void> {
    this.#isDue = true;
    try {
      const isWanted = (partition: string): boolean => this.#groups.has(partition);
      for (const step of this.#stepsBetween(this.#seq, upTo)) {
        const changes = yield* this.#options.source.between({ ...step, isWanted });
        if (changes === undefined) {
          for (const group of this.#all()) group.beginAnew();
          break;
        }
        yield* this.#give(changes);
        this.#seq = step.upTo;
      }
      this.#seq = upTo;
      this.#isDue = this.#isNoted;
    } catch (error) {
      for (const group of this.#all()) group.fail(error);
    }
    for (const group of this.#waiting) group.notifyWaiting();
    this.#waiting.clear();
    if (this.#groups.size > 0) this.#countKept();
  }

  /** Passes the changes of each partition to the groups of the partition. */
  *#give(
    changes: Iterable<readonly [string, JoinChanges | undefined]>,
  ): Generator<undefined, void> {
    let work = 0;
    for (const [partition, found] of changes) {
      const groups = this.#groups.get(partition);
      if (groups === undefined) continue;
      for (const group of groups instanceof Set ? groups : [groups]) {
        const ahead = found && group.computeAhead(found);
        if (ahead !== undefined) yield* ahead;
        group.follow(found);
        work += 1 + (found?.tuples.length ?? 0);
        if (work < WORK_PER_PART) continue;
        work = 0;
        yield;
      }
    }
  }

  *#all(): Generator<FedGroup> {
    for (const groups of this.#groups.values()) {
      if (groups instanceof Set) yield* groups;
      else yield groups;
    }
  }
}
