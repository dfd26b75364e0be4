/**
 * The changes of one partition (the rows of one table that belong to one owner), read once for all
 * groups that follow it.
 *
 * Invariants:
 * - Every follower has been sent everything up to the position of its group and nothing above it.
 *   That is the feed's own, but for groups that are further in a batch which did not fit its turn:
 *   the batch is read again for the others.
 * - Once a definition has changed, nothing is read for anyone until each group has had its review:
 *   no row is sent that was written after the change to somebody whom the change ends.
 * - While the feed is not marked, nothing of its partition lies between `position` and the visible
 *   seq, so `position` may be moved there.
 */
import { AssertionError, assert } from "../base/assert.ts";
import { inDoubt } from "../base/bugs.ts";
import type { Seq } from "../base/seq.ts";
import type { LiveMatch, LivePlan } from "../sql/mod.ts";
import type { ChangeBatch, Store } from "../storage/mod.ts";
import { BatchReach } from "./batch_reach.ts";
import type { Budget } from "./budget.ts";
import { FeedBatchSize } from "./feed_batch_size.ts";
import { FollowedGroups } from "./followed_groups.ts";
import { type Asked, Group, type GroupFeed, type GroupMember } from "./groups.ts";
import { resumeExpired } from "./live_errors.ts";
import { LiveProgram } from "./live_program.ts";
import { replacedBytesOf, rowBytesOf, spendBytes } from "./read_size.ts";

/**
 * A visit whose evaluation takes so much of a turn is slow; so many in a row are the doing of the
 * query.
 */
const SLOW_UNITS = 1024;
const SLOW_VISITS = 3;

/** A message that is made once and put into the queues of many sockets is a part of a unit. */
const MESSAGES_PER_UNIT = 4;

/** Finds out what a changed definition means to each member of a group, and ends who has to. */
export interface Review {
  /** @returns Whether it is known of all; otherwise the budget was used up first. */
  advance(budget: Budget): boolean;
  /** The plan of those who go on; undefined when nobody does. */
  readonly plan: LivePlan | undefined;
}

/** A group that kept the others of its feed waiting, on its way to a feed of its own. */
export interface SlowGroup<Member extends GroupMember> {
  readonly group: Group<Member>;
  /** Its followers have been sent everything up to here. */
  readonly position: Seq;
  /** Those of its members that waited for the feed. */
  readonly waiting: readonly Member[];
}

export interface FeedOptions<Member extends GroupMember> {
  readonly store: Store;
  readonly tableId: number;
  readonly owner: number;
  readonly frameBytesMax: number;
  readonly reviewOf: (group: Group<Member>) => Review;
  /** Is given a slow group of several, which is to get a feed of its own; absent: all stay. */
  readonly onSlow?: (slow: SlowGroup<Member>) => void;
}

export class Feed<Member extends GroupMember> implements GroupFeed<Member> {
  readonly tableId: number;
  readonly owner: number;
  readonly #store: Store;
  readonly #frameBytesMax: number;
  readonly #reviewOf: (group: Group<Member>) => Review;
  readonly #onSlow: FeedOptions<Member>["onSlow"];
  /** It was made for a group that was slow in another. */
  #isSlow = false;
  readonly #byFingerprint = new Map<string, Group<Member>>();
  readonly #groups = new Set<Group<Member>>();
  readonly #batchSize = new FeedBatchSize();
  readonly #followed = new FollowedGroups<Member>();
  /** Of those groups that are further than `#position`. */
  readonly #reached = new BatchReach<Group<Member>>();
  #position: Seq;
  #isMarked = false;
  /** A batch is being delivered: its columns must stay where they are. */
  #isReading = false;
  #followerCount = 0;
  /** Members that go on once the feed has come as far as anyone can be. */
  #waiting: Set<Member> | undefined;
  /** What the visit under way has spent on filters and projections alone. */
  #evaluationUnits = 0;
  /** Groups whose review is to come or under way. */
  #suspended: Set<Group<Member>> | undefined;
  #review: { readonly group: Group<Member>; readonly review: Review } | undefined;

  constructor(options: FeedOptions<Member>) {
    const { store, tableId, owner, frameBytesMax, reviewOf } = options;
    this.#onSlow = options.onSlow;
    this.tableId = tableId;
    this.owner = owner;
    this.#store = store;
    this.#frameBytesMax = frameBytesMax;
    this.#reviewOf = reviewOf;
    this.#position = store.visibleSeq;
  }

  positionOf(group: Group<Member>): Seq {
    if (!this.#isMarked) this.#position = this.#store.visibleSeq;
    return this.#reached.of(group) ?? this.#position;
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  get groups(): ReadonlySet<Group<Member>> {
    return this.#groups;
  }

  /**
   * The partition has changed above `before`, the visible seq of until now. Returns whether there
   * is anyone to tell.
   */
  mark(before: Seq): boolean {
    if (this.#followerCount === 0) return false;
    // Of a partition that was quiet for longer than history is kept, nothing is missing.
    if (!this.#isMarked && before > this.#position) this.#position = before;
    this.#isMarked = true;
    return true;
  }

  /** Finds or makes the group of a plan. */
  groupFor(plan: LivePlan, { sql, params, namespace_id }: Asked): Group<Member> {
    assert(plan.tableId === this.tableId, "a group is of the feed's table");
    assert(plan.owner === this.owner, "a group is of the feed's owner");
    let group = this.#byFingerprint.get(plan.fingerprint);
    if (group === undefined) {
      const namespace = namespace_id === undefined ? {} : { namespace_id };
      group = new Group(this, new LiveProgram(plan), {
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
    assert(this.isEmpty, "a slow group has a feed of its own");
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

  /** Whether a plan is the one that a group of this feed goes by now. */
  hasPlan(plan: LivePlan): boolean {
    return this.#byFingerprint.get(plan.fingerprint)?.program.plan === plan;
  }

  /** The groups that follow, and whether the plan's own is among them. */
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

  /** Gives a group a new plan that makes the same rows. */
  replan(group: Group<Member>, plan: LivePlan): void {
    const isFollowing = group.followerCount > 0;
    if (isFollowing) this.#followed.remove(group);
    this.#forgetFingerprint(group);
    group.program = new LiveProgram(plan);
    if (!this.#byFingerprint.has(plan.fingerprint)) {
      this.#byFingerprint.set(plan.fingerprint, group);
    }
    if (isFollowing) this.#followed.add(group);
  }

  isSuspended(group: Group<Member>): boolean {
    return this.#suspended?.has(group) === true;
  }

  /** A definition has changed: each group waits for its review, and whoever comes joins another. */
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

  /** Returns whether no group is suspended any more; otherwise the budget was used up first. */
  review(budget: Budget): boolean {
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

  followed(group: Group<Member>): void {
    assert(!this.#isReading, "nobody joins in the middle of a batch");
    if (group.followerCount === 1) this.#followed.add(group);
    this.#followerCount += 1;
  }

  unfollowed(group: Group<Member>): void {
    this.#followerCount -= 1;
    if (group.followerCount === 0) {
      this.#reached.forget(group);
      this.#followed.remove(group);
      if (!this.#isReading) this.#followed.compactColumns(() => this.#followedGroups());
    }
    if (this.#followerCount === 0) this.#isMarked = false;
  }

  left(group: Group<Member>, member: Member): void {
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

  /** Those that waited, once the feed has come as far as anyone can be. */
  takeWaiting(): Iterable<Member> {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    return waiting;
  }

  /**
   * Reads on and delivers. Returns whether the feed has come to the visible seq; otherwise the
   * budget was used up first.
   */
  advance(budget: Budget): boolean {
    assert(this.#suspended === undefined, "a feed is reviewed before it is read");
    const upTo = this.#store.visibleSeq;
    if (this.#isMarked && this.#position < upTo) {
      try {
        if (!this.#read(upTo, budget)) return false;
      } catch (error) {
        // Nobody who follows can be told what could not be read; the writer goes on.
        for (const group of this.#followedGroups()) failAll(group, error);
      }
    }
    this.#position = upTo;
    this.#reached.clear();
    this.#isMarked = false;
    return true;
  }

  #read(upTo: Seq, budget: Budget): boolean {
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
        requireOrder(lastSeq > this.#position, "changes ascend by seq");
        requireOrder(lastSeq <= upTo, "nothing above the visible seq is delivered");
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

  /** Returns whether all groups have the batch; otherwise the budget was used up first. */
  #deliver(batch: ChangeBatch, budget: Budget): boolean {
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
      // One group is paid for by the rows.
      if (evaluatedCount > 0) budget.spendScanned(part.rowCount);
      evaluatedCount += 1;
      if (this.#deliverTo(group, part, budget)) continue;
      this.#noteReached(batch, group);
      return false;
    }
    return true;
  }

  /** The turn ends before `next`: the groups before it have all of the batch. */
  #noteReached(batch: ChangeBatch, next: Group<Member>): void {
    const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
    for (const [group] of this.#followed.due(batch)) {
      if (group === next) return;
      this.#reached.noteAtLeast(group, lastSeq);
    }
  }

  /**
   * Delivers to one group.
   *
   * @returns Whether the others may go on: it has all rows, or a feed of its own by now; otherwise
   * the budget was used up first.
   */
  #deliverTo(group: Group<Member>, part: ChangeBatch, budget: Budget): boolean {
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

  /** Lets go of a group in the middle of a batch. */
  #released(group: Group<Member>, position: Seq): SlowGroup<Member> {
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
   * What fails ends this group and no other.
   *
   * @returns Whether it has all rows; otherwise the budget was used up first.
   */
  #deliverRows(group: Group<Member>, part: ChangeBatch, budget: Budget): boolean {
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

  #followedGroups(): Group<Member>[] {
    return [...this.#groups].filter((group) => group.followerCount > 0);
  }

  #forgetFingerprint(group: Group<Member>): void {
    const { fingerprint } = group.program.plan;
    if (this.#byFingerprint.get(fingerprint) === group) this.#byFingerprint.delete(fingerprint);
  }
}

/** @throws {StateInDoubtError} If commits arrive out of order: the process must not continue. */
function requireOrder(condition: boolean, message: string): void {
  if (!condition) throw inDoubt(new AssertionError(message));
}

function failAll<Member extends GroupMember>(group: Group<Member>, error: unknown): void {
  for (const follower of group.followers()) follower.fail(error);
}
