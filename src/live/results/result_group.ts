/**
 * The subscriptions to a result, which share its evaluations and its rows in memory.
 *
 *     commit ──► due ──► evaluated at the newest seq ──► new state ──► messages ──► members
 *
 * Invariants: a state sent to members is the result of the query at one seq, across all of its
 * tables. An evaluation that began before a definition changed is never sent: the query is planned
 * again first. While the group is not due, its state is also the result at every later seq.
 */
import type { Principal } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { FewItems } from "../../base/few_items.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type { EndCode, ErrorMessage, SubscriptionSpec } from "../../protocol/mod.ts";
import type {
  FollowedPlan,
  JoinChangeSource,
  JoinChanges,
  LiveRow,
  ResultEvaluation,
  ResultMaintainer,
  ResultMatch,
  ResultPlan,
} from "../../sql/mod.ts";
import type { Store } from "../../storage/mod.ts";
import { type LiveSubscription, SubscriptionError } from "../contract/live.ts";
import { codeAfterRefusal, ending } from "../contract/live_errors.ts";
import type { Evaluated, Evaluations } from "./evaluations.ts";
import type { FedGroup, ResultFeed } from "./result_feed.ts";
import { StepMessages, withReasons } from "./result_messages.ts";
import {
  ChangedKeys,
  changedState,
  changesBetween,
  type NewState,
  newState,
  type ResultShape,
  type ResultState,
  shapeOf,
} from "./result_state.ts";
import type { StateBudget } from "./state_budget.ts";

/** The interface through which a group and the lists of all subscriptions use a subscription. */
export interface ResultMember extends Pick<LiveSubscription, "id" | "state"> {
  readonly liveId: string;
  readonly lagMs: number | undefined;
  readonly principal: Principal;
  readonly spec: SubscriptionSpec;
  /**
   * The older state that the member has; undefined once the member has received the newest state.
   */
  readonly heldState: ResultState | undefined;
  /**
   * Receives the change from one state to the next. For the first state, `before` is undefined.
   */
  take(step: ResultStep): void;
  /** Resumes a member that is waiting for a later state. */
  wake(): void;
  end(message: ErrorMessage): void;
  fail(error: unknown): void;
  row(): LiveRow;
}

export interface ResultStep {
  readonly before: ResultState | undefined;
  readonly after: ResultState;
  readonly messages: StepMessages;
}

/** The interface through which result groups use the live engine. */
export interface ResultHost {
  readonly store: Pick<Store, "commitMs" | "visibleSeq">;
  readonly clock: Clock;
  readonly onBug: OnBug;
  readonly frameBytesMax: number;
  readonly budget: StateBudget;
  readonly evaluations: Evaluations<ResultGroup>;
  /** Plans the query of a subscription again. @throws {SubscriptionError} */
  plan(principal: Principal, spec: SubscriptionSpec): FollowedPlan;
  /** Removes a result group whose last subscription has left. */
  forget(group: ResultGroup): void;
  /** Starts notifying a group of commits that change its tables. */
  watch(group: ResultGroup): void;
  /** Stops the notifications started by {@linkcode watch}. */
  unwatch(group: ResultGroup): void;
  /** Returns the feed of the results that follow the same changes. */
  feedOf(source: JoinChangeSource, plan: ResultPlan): ResultFeed;
}

/**
 * The interval between evaluations of a query whose rows change over time even without a commit,
 * in milliseconds.
 */
const REFRESH_MS = 1000;

/** The delay, in milliseconds, before an evaluation is retried because all readers were busy. */
const RETRY_MS = 250;

export class ResultGroup implements Evaluated, FedGroup {
  /** How many bytes the budget has counted for this group. */
  countedBytes = 0;
  readonly #host: ResultHost;
  readonly #members = new FewItems<ResultMember>();
  #plan: ResultPlan;
  /**
   * Updates the result from the changes to the tables. Undefined until maintenance has been
   * planned, and for queries that must be evaluated again after each change.
   */
  #maintainer: ResultMaintainer | undefined;
  /** The size of the maintainer's memory when it was last measured, in bytes. */
  #maintainerBytes = 0;
  /** Whether the group has already tried to plan incremental maintenance. */
  #isWayKnown = false;
  /** The feed that the group follows; undefined before the first rows and during an evaluation. */
  #feed: ResultFeed | undefined;
  /** How long the last evaluation of the query took, in milliseconds. */
  #costMs: number | undefined;
  #evaluationCount = 0;
  #followedCount = 0;
  /** The keys of changed rows; undefined until the first change after an evaluation. */
  #changedKeys: ChangedKeys | undefined;
  #shape: ResultShape;
  /** The rows of the result at {@linkcode #seq}; undefined before the first evaluation. */
  #rows: ResultState["rows"] | undefined;
  #seq: Seq = SEQ_ZERO;
  #changedSeq: Seq = SEQ_ZERO;
  #isDue = true;
  /** The seq of the evaluation that produced the newest state. */
  #evaluatedSeq: Seq = SEQ_ZERO;
  #past: { readonly seq: Seq; readonly state: Promise<ResultState> } | undefined;
  #isUnderWay = false;
  #needsReview = false;
  /** The number of definition changes so far. Each one invalidates the current evaluation. */
  #version = 0;
  #evaluation: ResultEvaluation | undefined;
  /**
   * The time up to which the newest state remains valid if there is no commit, in Unix
   * milliseconds.
   */
  #untilMs: number | undefined;
  #cancelRefresh: CancelTimer | undefined;
  #isClosed = false;

  constructor(host: ResultHost, plan: ResultPlan) {
    this.#host = host;
    this.#plan = plan;
    this.#shape = shapeOf(plan);
  }

  get plan(): ResultPlan {
    return this.#plan;
  }

  get shape(): ResultShape {
    return this.#shape;
  }

  get memberCount(): number {
    return this.#members.size;
  }

  get members(): Iterable<ResultMember> {
    return this.#members;
  }

  /** The newest state of the result; undefined before the first evaluation. */
  get state(): ResultState | undefined {
    if (this.#rows === undefined) return undefined;
    const isOld = this.#isDue || this.#isUnderWay || this.#plan.changesByTime;
    const seq = isOld ? this.#seq : (this.#feed?.seq ?? this.#host.store.visibleSeq);
    if (seq > this.#seq) this.#seq = seq;
    return this.#lastState;
  }

  /** The newest rows, as a state at the seq that the group has reached. */
  get #lastState(): ResultState | undefined {
    const rows = this.#rows;
    if (rows === undefined) return undefined;
    return { rows, seq: this.#seq, changedSeq: this.#changedSeq };
  }

  /** Whether the group is waiting for its review after a definition has changed. */
  get isSuspended(): boolean {
    return this.#needsReview;
  }

  /** The memory of all states kept by the group and its members, in bytes. */
  get stateBytes(): number {
    const newest = this.#rows;
    let bytes = (this.#maintainer?.bytes ?? 0) + (newest?.bytes ?? 0);
    let versions: Set<ResultState["rows"]> | undefined;
    for (const { heldState } of this.#members) {
      if (heldState === undefined || heldState.rows === newest) continue;
      versions ??= new Set();
      versions.add(heldState.rows);
    }
    for (const rows of versions ?? []) bytes += rows.bytes;
    return bytes;
  }

  get match(): ResultMatch {
    return {
      subscriptions: this.memberCount,
      stateBytes: this.stateBytes,
      costMs: this.#costMs,
      evaluations: this.#evaluationCount,
      followed: this.#followedCount,
    };
  }

  /** Arranges for the members to be resumed once the state has reached the newest seq. */
  awaitNewest(): void {
    this.#feed?.await(this);
  }

  reads(tableId: number, owner: number): boolean {
    return this.#plan.tables.some((table) => table.tableId === tableId && table.owner === owner);
  }

  join(member: ResultMember): void {
    this.#members.add(member);
    if (this.#rows === undefined || this.#isDue) this.#host.evaluations.request(this);
  }

  leave(member: ResultMember): void {
    this.#members.delete(member);
    if (this.#members.size > 0) {
      // The group's query runs with the rights of one of its users. When that user leaves, the
      // query is planned again.
      if (member.principal.userId === this.#plan.principal.userId) this.#reviewUnlessHeld(member);
      return;
    }
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#version += 1;
    this.#leaveFeed();
    this.#evaluation?.cancel();
    this.#cancelRefresh?.();
    this.#host.evaluations.forget(this);
    this.#host.budget.set(this, 0);
    this.#host.forget(this);
  }

  /** Records that a commit has changed a table that the query reads. */
  noteChange(): void {
    this.#isDue = true;
    this.#host.evaluations.request(this);
  }

  /**
   * Records that a definition has changed. No state is sent until the query has been planned again.
   */
  review(): void {
    this.#needsReview = true;
    this.#version += 1;
    this.#leaveFeed();
    this.#evaluation?.cancel();
    this.#isDue = true;
    this.#host.evaluations.requestNow(this);
  }

  async evaluate(): Promise<boolean> {
    // A commit requested this evaluation while the evaluation before it was being prepared. The
    // feed follows that commit.
    if (this.#feed !== undefined) return false;
    const version = this.#version;
    const startMs = this.#host.clock.monotonicMs();
    const isVoid = (): boolean => this.#version !== version || this.#isClosed;
    try {
      if (this.#needsReview) this.#reviewMembers();
      this.#endWithoutRight();
      if (isVoid()) return true;
      this.#isUnderWay = true;
      await this.#prepareWay();
      if (isVoid()) return true;
      this.#isDue = false;
      this.#evaluation = this.#newEvaluation();
      const rows = await this.#evaluation.result;
      if (isVoid()) return true;
      const before = this.#lastState;
      const pause = pauser(this.#host.clock);
      const check = (bytes: number): void => this.#host.budget.check(this, bytes);
      const made = await newState(rows, { before, shape: this.#shape, pause, check });
      if (isVoid()) return true;
      this.#isUnderWay = false;
      this.#changedKeys = undefined;
      this.#evaluationCount += 1;
      this.#costMs = this.#host.clock.monotonicMs() - startMs;
      this.#untilMs = rows.untilMs;
      this.#become(made);
      this.#joinFeed(made.state.seq);
    } catch (error) {
      if (!isVoid()) this.#failed(error);
    } finally {
      this.#evaluation = undefined;
      this.#isUnderWay = false;
      this.#refreshLater();
    }
    return true;
  }

  /** Plans how changes are followed, and builds the in-memory indexes that this requires. */
  async #prepareWay(): Promise<void> {
    if (!this.#isWayKnown) this.#maintainer = this.#plan.maintainer();
    this.#isWayKnown = true;
    const maintainer = this.#maintainer;
    if (maintainer === undefined || maintainer.source.kept.length === 0) return;
    const { budget } = this.#host;
    const isPrepared = await maintainer.prepare((index, bytes) => {
      return budget.admits(budget.ofIndex(index), bytes);
    });
    if (isPrepared || this.#maintainer !== maintainer) return;
    this.#maintainer = undefined;
    this.#host.watch(this);
  }

  #newEvaluation(): ResultEvaluation {
    // From now on, the feed notifies the group of changes, so the host stops doing so.
    if (this.#maintainer !== undefined) this.#host.unwatch(this);
    return this.#maintainer?.begin() ?? this.#plan.evaluate();
  }

  /** Joins the feed of changes after an evaluation at `seq`. */
  #joinFeed(seq: Seq): void {
    const maintainer = this.#maintainer;
    if (maintainer === undefined || this.#isClosed || this.#needsReview) return;
    const feed = this.#host.feedOf(maintainer.source, this.#plan);
    this.#feed = feed;
    if (feed.join(this, { partition: maintainer.partition, seq })) return;
    this.#feed = undefined;
    this.noteChange();
  }

  #leaveFeed(): void {
    const feed = this.#feed;
    this.#feed = undefined;
    if (this.#maintainer !== undefined) feed?.leave(this, this.#maintainer.partition);
  }

  /**
   * Leaves the feed of changes for good. From now on the query is evaluated again after each
   * change, like a query that cannot be maintained.
   */
  stopFollowing(): void {
    this.#leaveFeed();
    this.#maintainer = undefined;
    this.#host.watch(this);
    this.noteChange();
  }

  computeAhead(joined: JoinChanges): Generator<undefined, void> | undefined {
    const steps = this.#feed && this.#maintainer?.computeAhead(joined);
    return steps && this.#unlessFailed(steps);
  }

  *#unlessFailed(steps: Generator<undefined, void>): Generator<undefined, void> {
    try {
      yield* steps;
    } catch (error) {
      this.#failed(error);
    }
  }

  follow(joined: JoinChanges | undefined): void {
    const before = this.#lastState;
    const feed = this.#feed;
    if (before === undefined || feed === undefined || this.#isClosed) return;
    try {
      const changes = joined && this.#maintainer?.apply(joined);
      if (joined === undefined || changes === undefined) {
        this.beginAnew();
        return;
      }
      if (changes.added.length + changes.removed.length > 0) this.#endWithoutRight();
      if (this.#isClosed) return;
      this.#changedKeys ??= new ChangedKeys(this.#shape, before);
      const keys = this.#changedKeys;
      this.#followedCount += 1;
      this.#become(changedState(changes, { before, keys, seqs: joined, shape: this.#shape }));
    } catch (error) {
      this.#failed(error);
    }
  }

  beginAnew(): void {
    this.#leaveFeed();
    this.noteChange();
  }

  notifyWaiting(): void {
    for (const member of this.#members) member.wake();
  }

  fail(error: unknown): void {
    this.#failed(error);
  }

  /** Adopts a new state, and sends the members its difference from the previous state. */
  #become({ changes, state }: NewState): void {
    const before = this.#lastState;
    const { changedSeq, rows, seq } = state;
    this.#rows = rows;
    this.#seq = seq;
    this.#changedSeq = changedSeq;
    this.#evaluatedSeq = seq;
    const maintainerBytes = this.#maintainer?.bytes ?? 0;
    const isRecounted =
      changes.length > 0 || before === undefined || maintainerBytes !== this.#maintainerBytes;
    this.#maintainerBytes = maintainerBytes;
    // If nothing has changed, no message is sent. The feed then notifies the members that wait for
    // this seq.
    if (changes.length === 0 && this.#feed !== undefined) {
      if (isRecounted) this.#countBytes();
      return;
    }
    const explained =
      before === undefined ? changes : withReasons(changes, this.#plan, { before, after: state });
    const { frameBytesMax, store } = this.#host;
    const messages = new StepMessages(explained, { frameBytesMax, store, seq });
    for (const member of this.#members) member.take({ before, after: state, messages });
    if (isRecounted) this.#countBytes();
  }

  /**
   * Returns the result at an earlier seq, for a client that already has the rows from that seq.
   * Clients that reconnect at the same time tend to have the same position, so a single evaluation
   * serves all clients that request the same position while it runs.
   */
  async stateAt(seq: Seq): Promise<ResultState> {
    const { state } = this;
    // The newest state is also the result at slightly earlier seqs, but only back to the seq up to
    // which changes were last processed, because the changes of several commits may be processed
    // together.
    const fromSeq = Math.max(this.#evaluatedSeq, this.#feed?.followedSeq ?? 0);
    if (state !== undefined && seq >= fromSeq && seq <= state.seq) return state;
    if (this.#past?.seq !== seq) this.#past = { seq, state: this.#evaluatedAt(seq) };
    const past = this.#past;
    try {
      return await past.state;
    } finally {
      if (this.#past === past) this.#past = undefined;
    }
  }

  async #evaluatedAt(seq: Seq): Promise<ResultState> {
    const { budget, clock } = this.#host;
    const rows = await this.#plan.evaluate(seq).result;
    const { state } = await newState(rows, {
      before: this.#lastState,
      shape: this.#shape,
      pause: pauser(clock),
      check: (bytes) => budget.check(this, bytes),
    });
    return state;
  }

  /** Returns the difference between a member's state and the newest state. */
  stepFrom(before: ResultState): ResultStep | undefined {
    const after = this.state;
    if (after === undefined) return undefined;
    const steps = changesBetween(before, after, this.#shape);
    const changes = withReasons(steps, this.#plan, { before, after });
    return {
      before,
      after,
      messages: new StepMessages(changes, { ...this.#host, seq: after.seq }),
    };
  }

  /**
   * Updates the amount of memory counted for this group in the budget.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  #countBytes(): void {
    const { budget } = this.#host;
    let bytes = this.stateBytes;
    // If the memory for maintenance exceeds the budget, it is released: the rows alone may still
    // fit.
    if (this.#maintainer !== undefined && !budget.admits(this, bytes)) {
      this.stopFollowing();
      bytes = this.stateBytes;
    }
    budget.check(this, bytes);
    budget.set(this, bytes);
  }

  #refreshLater(): void {
    this.#cancelRefresh?.();
    this.#cancelRefresh = undefined;
    const { clock } = this.#host;
    const byClock = this.#untilMs === undefined ? Infinity : this.#untilMs - clock.nowMs();
    const delayMs = Math.min(byClock, this.#plan.changesByTime ? REFRESH_MS : Infinity);
    if (this.#isClosed || delayMs === Infinity) return;
    this.#cancelRefresh = clock.after(Math.max(0, delayMs), () => this.noteChange());
  }

  #failed(error: unknown): void {
    const isBusy = error instanceof DatabaseError && error.code === "LIMIT_EXCEEDED";
    if (isBusy && this.#rows !== undefined) {
      this.#host.evaluations.postpone(this, RETRY_MS);
      this.noteChange();
      return;
    }
    for (const member of this.#members) member.fail(error);
  }

  #endWithoutRight(): void {
    for (const member of this.#members) {
      if (!this.#plan.mayRead(member.principal)) this.#end(member, "UNAUTHORIZED");
    }
  }

  #reviewUnlessHeld({ principal: { userId } }: ResultMember): void {
    for (const { principal } of this.#members) if (principal.userId === userId) return;
    this.review();
  }

  /** Plans the query again for each user. */
  #reviewMembers(): void {
    this.#needsReview = false;
    const before = this.#plan;
    const outcomes = new Map<string, ResultPlan | EndCode>();
    for (const member of this.#members) {
      const { principal, spec } = member;
      const key = JSON.stringify([principal.userId, principal.claims]);
      const outcome = outcomes.get(key) ?? this.#outcomeFor(principal, spec, before);
      outcomes.set(key, outcome);
      if (typeof outcome === "string") this.#end(member, outcome);
      else this.#plan = outcome;
    }
    this.#shape = shapeOf(this.#plan);
    this.#maintainer = undefined;
    this.#isWayKnown = false;
    this.#changedKeys = undefined;
    this.#host.watch(this);
  }

  #outcomeFor(
    principal: Principal,
    spec: SubscriptionSpec,
    before: ResultPlan,
  ): ResultPlan | EndCode {
    try {
      const { plan, way } = this.#host.plan(principal, spec);
      return way === "result" && isSameResult(before, plan) ? plan : "SCHEMA_CHANGED";
    } catch (error) {
      if (error instanceof SubscriptionError) return codeAfterRefusal(error);
      throw error;
    }
  }

  #end(member: ResultMember, code: EndCode): void {
    const names = this.#plan.tables.map(({ name }) => name).join(", ");
    member.end(
      ending(
        member.id,
        code,
        WHY[code]?.(names) ??
          `A definition used by the query has changed (${names}); subscribe again`,
      ),
    );
  }
}

const WHY: Partial<Record<EndCode, (names: string) => string>> = {
  NOT_FOUND: (names) =>
    `A table or view that the query reads has been dropped or renamed; the query read ${names}`,
  UNAUTHORIZED: (names) => `You may no longer run the query, which reads ${names}`,
  SCHEMA_CHANGED: (names) =>
    `A definition used by the query has changed; subscribe again (${names})`,
  SUBSCRIPTION_FAILED: () => "The subscription has ended because of an internal error",
};

/**
 * Returns whether two plans of a query produce rows of the same form, identify rows in the same
 * way, and have the same readers: if a view has come to depend on the caller, it returns different
 * rows to different users.
 */
export function isSameResult(before: ResultPlan, after: ResultPlan): boolean {
  return lookOf(before) === lookOf(after);
}

function lookOf({ fields, fingerprint, keyFields, sort, tables }: ResultPlan): string {
  const tableIds = tables.map(({ owner, tableId }) => [tableId, owner]);
  return JSON.stringify({ fields, fingerprint, keyFields, sort, tableIds });
}
