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
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import type { LiveMatch, LivePlan } from "../sql/mod.ts";
import type { ChangeBatch, Store } from "../storage/mod.ts";
import type { Budget } from "./budget.ts";
import { FeedColumns } from "./feed_columns.ts";
import { type Asked, Group, type GroupFeed, type GroupMember } from "./groups.ts";
import { resumeExpired } from "./live_errors.ts";
import { LiveProgram, sliceChanges, takeChanges } from "./live_program.ts";
import { PredicateIndex } from "./predicate_index.ts";
import { ReadSize, replacedBytesOf, rowBytesOf, spendBytes } from "./read_size.ts";

/** Versions of one batch at most, and how many messages a batch should make. */
const FEED_ROWS_MAX = 512;
const BATCH_MESSAGES_WANTED = 8192;

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
  readonly #index = new PredicateIndex<Group<Member>>();
  readonly #columns = new FeedColumns();
  #position: Seq;
  /** How far those groups are that are further than `#position`; made when there are any. */
  #reached: Map<Group<Member>, Seq> | undefined;
  #isMarked = false;
  /** A batch is being delivered: its columns must stay where they are. */
  #isReading = false;
  #followerCount = 0;
  /** The group that follows, while no other does and every change concerns it. */
  #only: Group<Member> | undefined;
  /** Members that go on once the feed has come as far as anyone can be. */
  #waiting: Set<Member> | undefined;
  /** Messages that one version has made of late. */
  #messagesPerVersion = 1;
  /** Messages that the batch under way has made, and bytes of the rows in them. */
  #messageCount = 0;
  #messageBytes = 0;
  /** What the visit under way has spent on filters and projections alone. */
  #evaluationUnits = 0;
  /** Made with the first change. */
  #readSize: ReadSize | undefined;
  /** Groups whose review is to come or under way. */
  #suspended: Set<Group<Member>> | undefined;
  #review: { readonly group: Group<Member>; readonly review: Review } | undefined;
  /** Fewer versions while a group takes several turns for a batch: each turn reads it again. */
  #rowsMax = FEED_ROWS_MAX;

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
    return this.#reached?.get(group) ?? this.#position;
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
    this.#startReading(group);
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
    const unindexed = this.#index.always.size;
    return {
      subscriptions: own?.memberCount ?? 0,
      isFollowed: own !== undefined && own.followerCount > 0,
      groups: this.#followedGroups().length,
      unindexedGroups: unindexed,
      testedGroups: unindexed + this.#index.countOf(plan.equality),
    };
  }

  /** Gives a group a new plan that makes the same rows. */
  replan(group: Group<Member>, plan: LivePlan): void {
    const isFollowing = group.followerCount > 0;
    if (isFollowing) this.#stopReading(group);
    this.#forgetFingerprint(group);
    group.program = new LiveProgram(plan);
    if (!this.#byFingerprint.has(plan.fingerprint)) {
      this.#byFingerprint.set(plan.fingerprint, group);
    }
    if (isFollowing) this.#startReading(group);
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
    if (group.followerCount === 1) this.#startReading(group);
    this.#followerCount += 1;
  }

  unfollowed(group: Group<Member>): void {
    this.#followerCount -= 1;
    if (group.followerCount === 0) {
      this.#reached?.delete(group);
      this.#stopReading(group);
      this.#compactColumns();
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
    this.#reached = undefined;
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
      columnIds: this.#columns.ids,
      batchRows: this.#batchRows(),
    });
    this.#isReading = true;
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
        assert(lastSeq > this.#position, "changes ascend by seq");
        assert(lastSeq <= upTo, "nothing above the visible seq is delivered");
        if (!this.#deliver(batch, budget)) return false;
        const replacedBytes = replacedBytesOf(batch, 0, batch.rowCount);
        spendBytes(budget, replacedBytes);
        this.#readSize?.note(batch.rowCount, replacedBytes + this.#messageBytes);
        this.#finishBatch(batch.rowCount, lastSeq);
        budget.spend(batch.rowCount);
        if (budget.isSpent && lastSeq < upTo) return false;
      }
      return true;
    } finally {
      this.#isReading = false;
      scan.close();
    }
  }

  /** A batch makes about as many messages as a turn may send. */
  #batchRows(): number {
    const wanted = Math.floor(BATCH_MESSAGES_WANTED / Math.max(1, this.#messagesPerVersion));
    this.#readSize ??= new ReadSize();
    const rowsMax = Math.min(this.#rowsMax, Math.max(1, wanted));
    return this.#readSize.rowsOf({ rowsMax, frameBytesMax: this.#frameBytesMax });
  }

  #finishBatch(rowCount: number, lastSeq: Seq): void {
    const perVersion = this.#messageCount / rowCount;
    this.#messagesPerVersion += (perVersion - this.#messagesPerVersion) / 4;
    this.#messageCount = 0;
    this.#messageBytes = 0;
    this.#rowsMax = Math.min(FEED_ROWS_MAX, 2 * this.#rowsMax);
    this.#position = lastSeq;
    for (const [group, seq] of this.#reached ?? []) {
      if (seq <= lastSeq) this.#reached?.delete(group);
    }
    if (this.#reached?.size === 0) this.#reached = undefined;
  }

  /** Returns whether all groups have the batch; otherwise the budget was used up first. */
  #deliver(batch: ChangeBatch, budget: Budget): boolean {
    const only = this.#only;
    if (only !== undefined) {
      const part = this.#missingOf(only, batch, undefined);
      return part === undefined || this.#deliverTo(only, part, budget);
    }
    let evaluatedCount = 0;
    for (const [group, rows] of this.#due(batch)) {
      if (group.followerCount === 0) continue;
      if (evaluatedCount > 0 && budget.isSpent) {
        this.#noteReached(batch, group);
        return false;
      }
      const part = this.#missingOf(group, batch, rows);
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

  /** The groups that a batch may concern, and which rows of it; undefined for all. */
  *#due(batch: ChangeBatch): Generator<readonly [Group<Member>, number[] | undefined]> {
    for (const group of this.#index.always) yield [group, undefined];
    if (this.#index.hasConditions) yield* this.#index.candidates(batch, this.#columns.ids);
  }

  /** The turn ends before `next`: the groups before it have all of the batch. */
  #noteReached(batch: ChangeBatch, next: Group<Member>): void {
    const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
    for (const [group] of this.#due(batch)) {
      if (group === next) return;
      if ((this.#reached?.get(group) ?? 0) < lastSeq) this.#noteReach(group, lastSeq);
    }
  }

  #noteReach(group: Group<Member>, seq: Seq): void {
    this.#reached ??= new Map();
    this.#reached.set(group, seq);
  }

  /** The given rows of a batch, or all, without those that the group has; undefined for none. */
  #missingOf(
    group: Group<Member>,
    batch: ChangeBatch,
    rows: number[] | undefined,
  ): ChangeBatch | undefined {
    const isWhole = rows === undefined || rows.length === batch.rowCount;
    const reachedSeq = this.#reached?.get(group);
    if (reachedSeq === undefined) return isWhole ? batch : takeRows(batch, rows);
    // Asked before anything is copied: in a batch of many turns most groups have all of it.
    const isMissing = (row: number): boolean => (batch.seqs[row] ?? 0) > reachedSeq;
    if (!isMissing(batch.rowCount - 1)) return undefined;
    if (isWhole) {
      const start = batch.seqs.findIndex((seq) => seq > reachedSeq);
      return sliceChanges(batch, start, batch.rowCount);
    }
    const missing = rows.filter(isMissing);
    return missing.length === 0 ? undefined : takeRows(batch, missing);
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
    this.#stopReading(group);
    this.#groups.delete(group);
    this.#forgetFingerprint(group);
    this.#reached?.delete(group);
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
        const { program, sources } = group;
        const before = budget.left;
        const portion = program.changesFrom(part, start, { sources, budget });
        this.#evaluationUnits += before - budget.left;
        if (portion === undefined) return this.#pauseIn(part);
        start += portion.rowCount;
        const changes = portion.result;
        if (changes.length > 0) {
          const after = this.#reached?.get(group) ?? this.#position;
          const sentCount = group.deliver(changes, after, this.#frameBytesMax);
          const bytes = rowBytesOf(changes);
          this.#messageCount += sentCount;
          this.#messageBytes += bytes;
          budget.spend(sentCount / MESSAGES_PER_UNIT);
          spendBytes(budget, bytes);
        }
        if (start === part.rowCount || group.followerCount === 0) return true;
        this.#noteReach(group, (part.seqs[start - 1] ?? 0) as Seq);
        if (budget.isSpent) return this.#pauseIn(part);
      }
    } catch (error) {
      failAll(group, error);
    }
    return true;
  }

  #pauseIn({ rowCount }: ChangeBatch): false {
    this.#rowsMax = Math.max(1, Math.floor(rowCount / 2));
    return false;
  }

  #startReading(group: Group<Member>): void {
    this.#columns.add(group.program.storedColumnIds);
    group.sources = group.program.sourcesIn(this.#columns.ids);
    this.#index.add(group);
    this.#noteOnly();
  }

  #stopReading(group: Group<Member>): void {
    this.#index.remove(group);
    this.#noteOnly();
    this.#columns.remove(group.program.storedColumnIds);
  }

  #noteOnly(): void {
    const { always, hasConditions } = this.#index;
    this.#only = always.size === 1 && !hasConditions ? [...always][0] : undefined;
  }

  /** Where columns have moved, every group finds them again. */
  #compactColumns(): void {
    if (this.#isReading || !this.#columns.compact()) return;
    for (const group of this.#followedGroups())
      group.sources = group.program.sourcesIn(this.#columns.ids);
  }

  #followedGroups(): Group<Member>[] {
    return [...this.#groups].filter((group) => group.followerCount > 0);
  }

  #forgetFingerprint(group: Group<Member>): void {
    const { fingerprint } = group.program.plan;
    if (this.#byFingerprint.get(fingerprint) === group) this.#byFingerprint.delete(fingerprint);
  }
}

function takeRows(batch: ChangeBatch, rows: readonly number[]): ChangeBatch {
  return takeChanges(batch, { rows: Uint32Array.from(rows), count: rows.length });
}

function failAll<Member extends GroupMember>(group: Group<Member>, error: unknown): void {
  for (const follower of group.followers()) follower.fail(error);
}
