/**
 * Reads the changes in one partition (the rows of one table that belong to one owner). The feed
 * reads each change once, for all groups that follow the partition.
 *
 * Invariants:
 * - Every follower has been sent all changes up to the position of its group, and none above it. A
 *   group's position equals the feed's position, except for groups that are ahead within a batch
 *   that did not fit into one tick; that batch is read again for the other groups.
 * - After a definition has changed, the feed reads nothing until every group has been reviewed. If
 *   the new definition ends a subscription, its subscriber receives no row written after the
 *   definition changed.
 * - While the feed is not marked, its partition has no change between `position` and the visible
 *   seq, so `position` may be moved to the visible seq.
 */
import { AssertionError, assert } from "../../base/assert.ts";
import { inDoubt } from "../../base/bugs.ts";
import type { Seq } from "../../base/seq.ts";
import type { LiveMatch, LivePlan } from "../../sql/mod.ts";
import type { ChangeBatch, Store } from "../../storage/mod.ts";
import { resumeExpired } from "../contract/live_errors.ts";
import {
  type GroupChangeFeed,
  type GroupMember,
  type QuerySpec,
  SubscriptionGroup,
} from "../delivery/groups.ts";
import { LiveProgram } from "../program/live_program.ts";
import { replacedBytesOf, rowBytesOf, spendBytes } from "../program/read_size.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import { BatchReach } from "./batch_reach.ts";
import { FeedBatchSize } from "./feed_batch_size.ts";
import { FollowedGroups } from "./followed_groups.ts";

/**
 * A visit to a group counts as slow if evaluation alone takes this many budget units. Only several
 * slow visits in a row show that the query is slow.
 */
const SLOW_UNITS = 1024;
const SLOW_VISITS = 3;

/** The number of sockets to which a finished message can be queued at the cost of one unit. */
const MESSAGES_PER_UNIT = 4;

/**
 * Determines how a changed definition affects each member of a group, and ends subscriptions that
 * cannot continue.
 */
export interface Review {
  /** @returns Whether the review is complete; false if the budget was used up first. */
  advance(budget: TickBudget): boolean;
  /**
   * The new plan of the members whose subscriptions continue; undefined if no subscription
   * continues.
   */
  readonly plan: LivePlan | undefined;
}

/** A slow group that moves to a feed of its own because it kept the other groups waiting. */
export interface SlowGroup<Member extends GroupMember> {
  readonly group: SubscriptionGroup<Member>;
  /** The seq up to which the group's followers have been sent everything. */
  readonly position: Seq;
  /** The members of the group that were waiting for the feed. */
  readonly waiting: readonly Member[];
}

export interface ChangeFeedOptions<Member extends GroupMember> {
  readonly store: Store;
  readonly tableId: number;
  readonly owner: number;
  readonly frameBytesMax: number;
  readonly reviewOf: (group: SubscriptionGroup<Member>) => Review;
  /**
   * Called with a slow group that shares the feed with others, so that it gets a feed of its own.
   * Without this callback, slow groups stay in the shared feed.
   */
  readonly onSlow?: (slow: SlowGroup<Member>) => void;
}

export class ChangeFeed<Member extends GroupMember> implements GroupChangeFeed<Member> {
  readonly tableId: number;
  readonly owner: number;
  readonly #store: Store;
  readonly #frameBytesMax: number;
  readonly #reviewOf: (group: SubscriptionGroup<Member>) => Review;
  readonly #onSlow: ChangeFeedOptions<Member>["onSlow"];
  /** Whether the feed was created for a group that was slow in another feed. */
  #isSlow = false;
  readonly #byFingerprint = new Map<string, SubscriptionGroup<Member>>();
  readonly #groups = new Set<SubscriptionGroup<Member>>();
  readonly #batchSize = new FeedBatchSize();
  readonly #followed = new FollowedGroups<Member>();
  /** The groups that have received more of a batch than `#position` indicates. */
  readonly #reached = new BatchReach<SubscriptionGroup<Member>>();
  #position: Seq;
  #isMarked = false;
  /**
   * Whether a batch is being delivered. The order of the columns must not change during delivery.
   */
  #isReading = false;
  #followerCount = 0;
  /** The members waiting until the feed has reached the highest position among them. */
  #waiting: Set<Member> | undefined;
  /** How many units the current visit has spent on filters and projections. */
  #evaluationUnits = 0;
  /** The groups whose review is pending or in progress. */
  #suspended: Set<SubscriptionGroup<Member>> | undefined;
  #review: { readonly group: SubscriptionGroup<Member>; readonly review: Review } | undefined;

  constructor(options: ChangeFeedOptions<Member>) {
    const { store, tableId, owner, frameBytesMax, reviewOf } = options;
    this.#onSlow = options.onSlow;
    this.tableId = tableId;
    this.owner = owner;
    this.#store = store;
    this.#frameBytesMax = frameBytesMax;
    this.#reviewOf = reviewOf;
    this.#position = store.visibleSeq;
  }

  positionOf(group: SubscriptionGroup<Member>): Seq {
    if (!this.#isMarked) this.#position = this.#store.visibleSeq;
    return this.#reached.of(group) ?? this.#position;
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  get groups(): ReadonlySet<SubscriptionGroup<Member>> {
    return this.#groups;
  }

  /**
   * Records that the partition has changed since `before`, the previous visible seq. Returns
   * whether any group follows the feed.
   */
  mark(before: Seq): boolean {
    if (this.#followerCount === 0) return false;
    // An unmarked feed has missed no changes. If its position were not advanced here, it could
    // fall behind the retained history while the partition is idle.
    if (!this.#isMarked && before > this.#position) this.#position = before;
    this.#isMarked = true;
    return true;
  }

  /** Finds or creates the group of a plan. */
  groupFor(plan: LivePlan, { sql, params, namespace_id }: QuerySpec): SubscriptionGroup<Member> {
    assert(
      plan.tableId === this.tableId,
      "change feed: subscription group reads a different table",
    );
    assert(
      plan.owner === this.owner,
      "change feed: subscription group reads the rows of a different owner",
    );
    let group = this.#byFingerprint.get(plan.fingerprint);
    if (group === undefined) {
      const namespace = namespace_id === undefined ? {} : { namespace_id };
      group = new SubscriptionGroup(this, new LiveProgram(plan), {
        sql,
        ...(params === undefined ? {} : { params }),
        ...namespace,
      });
      this.#byFingerprint.set(plan.fingerprint, group);
      this.#groups.add(group);
    }
    return group;
  }

  /** Takes over a group that was slow in another feed of the partition, with all its members. */
  adopt({ group, position, waiting }: SlowGroup<Member>): void {
    assert(this.isEmpty, "change feed: a feed with groups cannot adopt a slow group");
    this.#isSlow = true;
    this.#position = position;
    this.#isMarked = true;
    group.feed = this;
    this.#byFingerprint.set(group.program.plan.fingerprint, group);
    this.#groups.add(group);
    this.#followed.add(group);
    this.#followerCount = group.followerCount;
    for (const member of waiting) this.addWaiting(member);
  }

  get isSlow(): boolean {
    return this.#isSlow;
  }

  /** Returns whether `plan` is the current plan of a group in this feed. */
  hasPlan(plan: LivePlan): boolean {
    return this.#byFingerprint.get(plan.fingerprint)?.program.plan === plan;
  }

  /** Returns how many groups have followers, and whether the group of `plan` is one of them. */
  match(plan: LivePlan): LiveMatch & { readonly isFollowed: boolean } {
    const own = this.#byFingerprint.get(plan.fingerprint);
    const unindexed = this.#followed.unindexedCount;
    return {
      subscriptions: own?.memberCount ?? 0,
      isFollowed: own !== undefined && own.followerCount > 0,
      groups: this.#followedGroups().length,
      unindexedGroups: unindexed,
      testedGroups: unindexed + this.#followed.countOf(plan.equality),
    };
  }

  /** Gives a group a new plan that produces the same rows. */
  replan(group: SubscriptionGroup<Member>, plan: LivePlan): void {
    const isFollowing = group.followerCount > 0;
    if (isFollowing) this.#followed.remove(group);
    this.#forgetFingerprint(group);
    group.program = new LiveProgram(plan);
    if (!this.#byFingerprint.has(plan.fingerprint)) {
      this.#byFingerprint.set(plan.fingerprint, group);
    }
    if (isFollowing) this.#followed.add(group);
  }

  isSuspended(group: SubscriptionGroup<Member>): boolean {
    return this.#suspended?.has(group) === true;
  }

  /**
   * Suspends all groups after a definition has changed. Until the review, new subscribers join
   * separate groups.
   */
  suspend(): void {
    this.#suspended = new Set(this.#groups);
    this.#review = undefined;
    this.#byFingerprint.clear();
  }

  fail(error: unknown): void {
    this.#suspended = undefined;
    this.#review = undefined;
    for (const group of this.#groups) for (const member of group.members()) member.fail(error);
  }

  /** Returns whether all groups have been reviewed; false if the budget was used up first. */
  review(budget: TickBudget): boolean {
    for (const group of this.#suspended ?? []) {
      if (this.#review?.group !== group) this.#review = { group, review: this.#reviewOf(group) };
      const { review } = this.#review;
      if (!review.advance(budget)) return false;
      this.#review = undefined;
      this.#suspended?.delete(group);
      if (review.plan !== undefined && group.memberCount > 0) this.replan(group, review.plan);
    }
    this.#suspended = undefined;
    this.#review = undefined;
    return true;
  }

  followed(group: SubscriptionGroup<Member>): void {
    assert(!this.#isReading, "change feed: a group cannot join while a batch is being read");
    if (group.followerCount === 1) this.#followed.add(group);
    this.#followerCount += 1;
  }

  unfollowed(group: SubscriptionGroup<Member>): void {
    this.#followerCount -= 1;
    if (group.followerCount === 0) {
      this.#reached.forget(group);
      this.#followed.remove(group);
      if (!this.#isReading) this.#followed.compactColumns(() => this.#followedGroups());
    }
    if (this.#followerCount === 0) this.#isMarked = false;
  }

  left(group: SubscriptionGroup<Member>, member: Member): void {
    this.#waiting?.delete(member);
    if (group.memberCount > 0) return;
    this.#groups.delete(group);
    this.#forgetFingerprint(group);
    this.#suspended?.delete(group);
  }

  addWaiting(member: Member): void {
    this.#waiting ??= new Set();
    this.#waiting.add(member);
  }

  /**
   * Removes and returns the waiting members once the feed has reached the highest position among
   * them.
   */
  takeWaiting(): Iterable<Member> {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    return waiting;
  }

  /**
   * Reads and delivers changes. Returns whether the feed has reached the visible seq; false if the
   * budget was used up first.
   */
  advance(budget: TickBudget): boolean {
    assert(
      this.#suspended === undefined,
      "change feed: a suspended feed was read before its review",
    );
    const upTo = this.#store.visibleSeq;
    if (this.#isMarked && this.#position < upTo) {
      try {
        if (!this.#read(upTo, budget)) return false;
      } catch (error) {
        // A read failure ends all followers, because the feed cannot determine which changes they
        // would miss. The writer is not affected.
        for (const group of this.#followedGroups()) failAll(group, error);
      }
    }
    this.#position = upTo;
    this.#reached.clear();
    this.#isMarked = false;
    return true;
  }

  #read(upTo: Seq, budget: TickBudget): boolean {
    const earliestSeq = this.#store.earliestSeq(this.tableId, this.owner);
    if (this.#position < earliestSeq) throw resumeExpired(earliestSeq);
    const scan = this.#store.changes(this.tableId, {
      owner: this.owner,
      after: this.#position,
      upTo,
      columnIds: this.#followed.columnIds,
      batchRows: this.#batchSize.rows(this.#frameBytesMax),
    });
    this.#isReading = true;
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
        requireOrder(
          lastSeq > this.#position,
          "change feed: changes are not in ascending order of seq",
        );
        requireOrder(lastSeq <= upTo, "change feed: change has a seq above the visible seq");
        if (!this.#deliver(batch, budget)) return false;
        const replacedBytes = replacedBytesOf(batch, 0, batch.rowCount);
        spendBytes(budget, replacedBytes);
        this.#batchSize.finished(batch.rowCount, replacedBytes);
        this.#position = lastSeq;
        this.#reached.passed(lastSeq);
        budget.spend(batch.rowCount);
        if (budget.isSpent && lastSeq < upTo) return false;
      }
      return true;
    } finally {
      this.#isReading = false;
      scan.close();
    }
  }

  /**
   * Delivers a batch. Returns whether all groups have received it; false if the budget was used up
   * first.
   */
  #deliver(batch: ChangeBatch, budget: TickBudget): boolean {
    const { only } = this.#followed;
    if (only !== undefined) {
      const part = this.#reached.missingOf(only, batch, undefined);
      return part === undefined || this.#deliverTo(only, part, budget);
    }
    let evaluatedCount = 0;
    for (const [group, due] of this.#followed.due(batch)) {
      if (group.followerCount === 0) continue;
      if (evaluatedCount > 0 && budget.isSpent) {
        this.#noteReached(batch, group);
        return false;
      }
      const part = this.#reached.missingOf(group, batch, due);
      if (part === undefined) continue;
      // For a single group, the budget is charged per evaluated row. For each further group, it is
      // also charged for scanning the batch.
      if (evaluatedCount > 0) budget.spendScanned(part.rowCount);
      evaluatedCount += 1;
      if (this.#deliverTo(group, part, budget)) continue;
      this.#noteReached(batch, group);
      return false;
    }
    return true;
  }

  /**
   * Records that the tick ends before the group `next` is served. All groups before it have
   * received the entire batch.
   */
  #noteReached(batch: ChangeBatch, next: SubscriptionGroup<Member>): void {
    const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
    for (const [group] of this.#followed.due(batch)) {
      if (group === next) return;
      this.#reached.noteAtLeast(group, lastSeq);
    }
  }

  /**
   * Delivers the rows of a batch to one group.
   *
   * @returns True if delivery may continue with the next group, because this group has received
   *   all rows or has moved to a feed of its own; false if the budget was used up first.
   */
  #deliverTo(group: SubscriptionGroup<Member>, part: ChangeBatch, budget: TickBudget): boolean {
    this.#evaluationUnits = 0;
    const isDone = this.#deliverRows(group, part, budget);
    if (group.program.plan.pace === undefined) return isDone;
    const isSlow = this.#evaluationUnits >= SLOW_UNITS;
    group.slowVisits = isSlow ? group.slowVisits + 1 : 0;
    const hasOthers = this.#followerCount > group.followerCount;
    if (group.slowVisits < SLOW_VISITS || !hasOthers || group.followerCount === 0) return isDone;
    if (this.#onSlow === undefined) return isDone;
    const lastSeq = (part.seqs[part.rowCount - 1] ?? 0) as Seq;
    this.#onSlow(this.#released(group, isDone ? lastSeq : this.positionOf(group)));
    return true;
  }

  /** Removes a slow group from the feed in the middle of a batch. */
  #released(group: SubscriptionGroup<Member>, position: Seq): SlowGroup<Member> {
    const waiting = group.members().filter((member) => this.#waiting?.delete(member) === true);
    this.#followerCount -= group.followerCount;
    this.#followed.remove(group);
    this.#groups.delete(group);
    this.#forgetFingerprint(group);
    this.#reached.forget(group);
    group.slowVisits = 0;
    return { group, position, waiting };
  }

  /**
   * Delivers rows to one group. A failure ends only this group.
   *
   * @returns True if the group has received all rows; false if the budget was used up first.
   */
  #deliverRows(group: SubscriptionGroup<Member>, part: ChangeBatch, budget: TickBudget): boolean {
    try {
      for (let start = 0; start < part.rowCount && group.followerCount > 0; ) {
        const { filter, program, sources } = group;
        const before = budget.left;
        const portion = program.changesFrom(part, start, { sources, filter, budget });
        this.#evaluationUnits += before - budget.left;
        start += portion.rowCount;
        const changes = portion.result;
        if (changes.length > 0) {
          const after = this.#reached.of(group) ?? this.#position;
          const sentCount = group.deliver(changes, after, {
            frameBytesMax: this.#frameBytesMax,
            store: this.#store,
          });
          const bytes = rowBytesOf(changes);
          this.#batchSize.sent(sentCount, bytes);
          budget.spend(sentCount / MESSAGES_PER_UNIT);
          spendBytes(budget, bytes);
        }
        if (start === part.rowCount || group.followerCount === 0) return true;
        this.#reached.note(group, (part.seqs[start - 1] ?? 0) as Seq);
        if (budget.isSpent) {
          this.#batchSize.pausedIn(part.rowCount);
          return false;
        }
      }
    } catch (error) {
      failAll(group, error);
    }
    return true;
  }

  #followedGroups(): SubscriptionGroup<Member>[] {
    return [...this.#groups].filter((group) => group.followerCount > 0);
  }

  #forgetFingerprint(group: SubscriptionGroup<Member>): void {
    const { fingerprint } = group.program.plan;
    if (this.#byFingerprint.get(fingerprint) === group) this.#byFingerprint.delete(fingerprint);
  }
}

/**
 * Requires a condition on the order of commits.
 * @throws {StateInDoubtError} If commits arrive out of order. The process must not continue after
 *   this error.
 */
function requireOrder(condition: boolean, message: string): void {
  if (!condition) throw inDoubt(new AssertionError(message));
}

function failAll<Member extends GroupMember>(
  group: SubscriptionGroup<Member>,
  error: unknown,
): void {
  for (const follower of group.followers()) follower.fail(error);
}
