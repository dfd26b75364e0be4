/**
 * Opens, counts and ends subscriptions, and wakes them when new commits become visible.
 *
 *     LocalLiveEngine ── Feed (per partition or slow query) ── Group (per query)
 *                    │                                                └── Subscription
 *                    └── Scheduler (when)
 *
 * Invariants: a feed exists while it has groups, and a group while it has members. Every open
 * subscription is counted once for its user and once for its connection, and belongs to exactly
 * one group.
 */

import type { Principal } from "../auth/mod.ts";
import { Arrivals } from "../base/arrivals.ts";
import type { OnBug } from "../base/bugs.ts";
import type { Clock } from "../base/clock.ts";
import { DatabaseError, isExpected, stackOf } from "../base/errors.ts";
import type { Log, LogFields } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Seq } from "../base/seq.ts";
import type { SubscriptionSpec } from "../protocol/mod.ts";
import type {
  FollowedPlan,
  LiveMatch,
  LivePlan,
  LiveRequest,
  LiveRow,
  ResultMatch,
  ResultPlan,
  SqlEngine,
} from "../sql/mod.ts";
import type { ChangedPartition, Store } from "../storage/mod.ts";
import { ChangeFeed, type SlowGroup } from "./change_feed/change_feed.ts";
import { ChangeFeeds, type PartitionKey } from "./change_feed/change_feeds.ts";
import { type LiveEngine, type LiveSubscription, SubscriptionError } from "./contract/live.ts";
import { ending, endingFor, resumeExpired } from "./contract/live_errors.ts";
import { DefinitionReview } from "./definition_review.ts";
import { ConnectionBackpressure } from "./delivery/connection_backpressure.ts";
import type { SubscriptionGroup } from "./delivery/groups.ts";
import { type DeliveryReport, DeliveryTimes } from "./measures/delivery_times.ts";
import { planKeyOf, RecentPlans } from "./recent_plans.ts";
import { RecentReplays } from "./replay/recent_replays.ts";
import { ReplayReader } from "./replay/replay_reader.ts";
import {
  type DefinitionHistory,
  type ResultResume,
  type Resume,
  requireSameMeaning,
  requireSameResult,
} from "./replay/resume_meaning.ts";
import type { ResultMember } from "./results/result_group.ts";
import type { ResultSubscription, ResultSubscriptionHost } from "./results/result_subscription.ts";
import { FollowedResults } from "./results/results.ts";
import { PACE, type Pace, Scheduler, type Ticks, ticksOf } from "./scheduler/scheduler.ts";
import { TickBudget } from "./scheduler/tick_budget.ts";
import { SnapshotReader } from "./snapshot/snapshot_reader.ts";
import type { LoadReader } from "./subscription/load_reader.ts";
import {
  invalidResume,
  parametersFromSpec,
  type Start,
  type SubscriptionStart,
  startFromSpec,
  wayFromSpec,
} from "./subscription/subscribe_options.ts";
import { Subscription, type SubscriptionHost } from "./subscription/subscription.ts";

/** The limits of the live engine, from the configuration sections `limits` and `websocket`. */
export interface LiveLimits {
  /** The maximum number of subscriptions per user; 0 means no limit. */
  readonly subscriptionsPerUser: number;
  readonly subscriptionsPerConnection: number;
  readonly batchSizeDefault: number;
  readonly batchSizeMax: number;
  readonly frameBytesMax: number;
  /** How long a loading subscription may go without requesting a batch before it ends. */
  readonly loadingTimeoutMs: number;
  /** How many `change` messages a replay may send before its loading phase ends. */
  readonly replayChangesMax: number;
  /** The maximum memory for the rows of materialised queries, in bytes. */
  readonly stateBytesMax: number;
}

interface LocalLiveEngineOptions {
  /** The store of rows. The engine sets its `onVisible` callback. */
  readonly store: Store;
  readonly sql: Pick<SqlEngine, "planFollowed" | "planLive">;
  readonly definitions: DefinitionHistory;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onBug: OnBug;
  readonly limits: LiveLimits;
  /** The maximum amount of work per tick; defaults to a few milliseconds' worth. */
  readonly pace?: Pace;
  /** The scheduler of the work; defaults to the event loop. */
  readonly ticks?: Ticks;
}

/**
 * The size of the random number in a live id, in bytes. Six bytes are the most for which a
 * JavaScript number can represent every value exactly.
 */
const NUMBER_BYTES = 6;

/**
 * The number of ordinary subscriptions as which one subscription to an entire result counts when
 * garbage is estimated, because it leaves about 75 KB of garbage. If it counted as one, each of
 * 10,000 such subscriptions would leave 2.0 KB of gaps in the heap; with this weight, each leaves
 * 0.8 KB.
 */
const RESULT_WEIGHT = 12;

type LocalChangeFeed = ChangeFeed<Subscription>;

/** A request for a subscription whose query has not been planned yet. */
interface Asked {
  readonly principal: Principal;
  readonly spec: SubscriptionSpec;
  readonly backpressure: ConnectionBackpressure;
  readonly wanted: SubscriptionStart;
}

type SubscribeRequest = Parameters<LiveEngine["subscribe"]>[0];

export class LocalLiveEngine implements LiveEngine {
  readonly #store: Store;
  readonly #sql: Pick<SqlEngine, "planFollowed" | "planLive">;
  readonly #definitions: DefinitionHistory;
  readonly #random: Random;
  readonly #limits: LiveLimits;
  readonly #pace: Pace;
  readonly #scheduler: Scheduler;
  readonly #host: SubscriptionHost;
  /** Manages all subscriptions to materialised queries. */
  readonly #resultHost: ResultSubscriptionHost;
  readonly #feeds = new ChangeFeeds<LocalChangeFeed>();
  readonly #results: FollowedResults;
  readonly #times = new DeliveryTimes();
  readonly #recentPlans = new RecentPlans();
  readonly #recentReplays: RecentReplays;
  readonly #countByUser = new Map<string, number>();
  readonly #arrivals = new Arrivals();
  /**
   * Starts the review of a group. All feeds share this one function object, because there may be
   * as many feeds as users.
   */
  readonly #reviewOf = (group: SubscriptionGroup<Subscription>): DefinitionReview =>
    new DefinitionReview(group, (principal, spec) => this.#plan(principal, spec));
  /** Moves a slow query to a feed of its own. All feeds share this one function object. */
  readonly #onSlow = (slow: SlowGroup<Subscription>): void => {
    const feed = this.#newFeed(slow.group.feed);
    feed.adopt(slow);
    this.#feeds.addSlow(feed, slow.group.program.plan.fingerprint);
    this.#scheduler.mark(feed);
  };
  /** The visible seq at the last notification from the store. */
  #seenSeq: Seq;
  #isShutDown = false;

  constructor(options: LocalLiveEngineOptions) {
    const { store, sql, clock, random, log, limits } = options;
    this.#store = store;
    this.#sql = sql;
    this.#definitions = options.definitions;
    this.#random = random;
    this.#limits = limits;
    this.#recentReplays = new RecentReplays(clock);
    this.#pace = options.pace ?? PACE;
    this.#scheduler = new Scheduler(options.ticks ?? ticksOf(clock), this.#pace, options.onBug);
    this.#host = {
      store,
      clock,
      log,
      onBug: options.onBug,
      frameBytesMax: limits.frameBytesMax,
      loadingTimeoutMs: limits.loadingTimeoutMs,
      times: this.#times,
      run: (subscription) => this.#scheduler.run(subscription),
      enqueue: (subscription) => this.#scheduler.enqueue(subscription),
      forget: (subscription) => this.#forget(subscription),
    };
    this.#resultHost = {
      ...this.#host,
      run: (subscription) => this.#scheduler.run(subscription),
      forget: (subscription) => this.#discount(subscription),
    };
    this.#results = new FollowedResults({
      store,
      clock,
      onBug: options.onBug,
      frameBytesMax: limits.frameBytesMax,
      stateBytesMax: limits.stateBytesMax,
      plan: (principal, spec) => this.#planFollowed(principal, spec),
    });
    this.#seenSeq = store.visibleSeq;
    store.onVisible = (changed, visibleSeq) => this.#wake(changed, visibleSeq);
  }

  subscribe(options: SubscribeRequest): LiveSubscription {
    try {
      return this.#subscribe(options);
    } catch (error) {
      if (error instanceof SubscriptionError) throw error;
      const { principal, spec } = options;
      this.#noteFailure(error, { user: principal.userId, sql: spec.sql });
      throw new SubscriptionError(endingFor(spec.id, error, "planning"));
    }
  }

  #subscribe({ principal, spec, sink }: SubscribeRequest): LiveSubscription {
    if (this.#isShutDown) throw refusal(spec.id, "SHUTTING_DOWN", "The server is shutting down");
    const wanted = startFromSpec(spec, this.#limits);
    const backpressure =
      sink.backpressure instanceof ConnectionBackpressure
        ? sink.backpressure
        : new ConnectionBackpressure(sink);
    this.#checkLimits(spec.id, principal.userId, backpressure);
    const asked = { principal, spec, backpressure, wanted };
    const known = this.#recentPlan(principal, spec);
    if (known !== undefined) return this.#followRows(known, asked);
    const followed = this.#planFollowed(principal, spec);
    if (followed.way === "result") {
      if (wanted.start.kind === "snapshot" && wanted.start.lastRows !== undefined) {
        throw refusedLastRows(spec.id, followed.part);
      }
      return this.#followResult(followed.plan, asked);
    }
    this.#recentPlans.remember(planKeyOf(principal, spec), followed.plan);
    return this.#followRows(followed.plan, asked);
  }

  #followRows(plan: LivePlan, { backpressure, principal, spec, wanted }: Asked): LiveSubscription {
    if (wayFromSpec(spec) === "evaluated") {
      const what =
        'the option "way" applies only to materialised queries, but this query is followed ' +
        "row by row";
      const message = `Cannot subscribe "${spec.id}": ${what}`;
      throw new SubscriptionError(ending(spec.id, "INVALID_OPTIONS", message));
    }
    const start = this.#effectiveStart(wanted.start, { id: spec.id, principal, plan });
    const boundary = this.#store.visibleSeq;
    const subscription = new Subscription({
      host: this.#host,
      number: this.#newNumber(),
      spec,
      principal,
      backpressure,
      group: this.#feedFor(plan).groupFor(plan, spec),
      position: firstPosition(start, boundary),
    });
    this.#remember(subscription);
    try {
      subscription.start(this.#readerFor(start, { wanted, boundary, subscription }));
    } catch (error) {
      subscription.close();
      throw error;
    }
    return subscription;
  }

  #followResult(plan: ResultPlan, { backpressure, principal, spec, wanted }: Asked) {
    const { batchSize, start } = wanted;
    const effective = this.#startOfResult(start, { id: spec.id, principal, plan });
    const boundary = this.#store.visibleSeq;
    const subscription = this.#results.open({
      host: this.#resultHost,
      number: this.#newNumber(),
      spec,
      principal,
      backpressure,
      plan,
      boundary,
    });
    this.#remember(subscription);
    this.#results.begin(subscription, { batchSize, boundary, start: effective });
    return subscription;
  }

  /**
   * Returns the start of a subscription to an entire result, after checking its resume position
   * against the history.
   *
   * @throws {SubscriptionError} INVALID_RESUME, RESUME_EXPIRED, SCHEMA_CHANGED
   */
  #startOfResult(start: Start, resume: Omit<ResultResume, "claimsKey" | "position">): Start {
    const { id, plan } = resume;
    if (start.kind !== "resume") return start;
    if (start.position === 0) return { kind: "snapshot", lastRows: undefined };
    const { claimsKey, position } = start;
    const { visibleSeq } = this.#store;
    if (position > visibleSeq || this.#store.wasLost(position)) throw invalidResume(id);
    const earliestSeq = Math.max(
      ...plan.tables.map(({ owner, tableId }) => this.#store.earliestSeq(tableId, owner)),
      plan.changesByTime || plan.readsClock ? visibleSeq + 1 : 0,
    );
    if (position < earliestSeq) {
      throw new SubscriptionError(endingFor(id, resumeExpired(earliestSeq), "planning"));
    }
    requireSameResult(this.#definitions, { ...resume, claimsKey, position });
    return start;
  }

  /** Returns the number of subscriptions that a user has, across all connections. */
  countOfUser(userId: string): number {
    return this.#countByUser.get(userId) ?? 0;
  }

  subscriptions(): readonly LiveRow[] {
    return this.#all().map((subscription) => subscription.row());
  }

  match(plan: LivePlan): LiveMatch {
    const matches = this.#feeds.ofPartition(plan).map((feed) => feed.match(plan));
    const sum = (count: (match: LiveMatch) => number): number =>
      matches.reduce((total, match) => total + count(match), 0);
    const extra = matches.some(({ isFollowed }) => isFollowed) ? 0 : 1;
    const isAlways = plan.equality === undefined;
    return {
      subscriptions: sum(({ subscriptions }) => subscriptions),
      groups: sum(({ groups }) => groups) + extra,
      unindexedGroups: sum(({ unindexedGroups }) => unindexedGroups) + (isAlways ? extra : 0),
      testedGroups: sum(({ testedGroups }) => testedGroups) + extra,
    };
  }

  matchResult(fingerprint: string): ResultMatch | undefined {
    return this.#results.groupOf({ fingerprint })?.match;
  }

  delivery(): DeliveryReport {
    const { changes, counts, sumMs } = this.#times;
    const report = { behind: 0, loading: 0, lagMsMax: 0 };
    for (const subscription of this.#all()) {
      if (subscription.state === "behind") report.behind += 1;
      if (subscription.state === "loading") report.loading += 1;
      report.lagMsMax = Math.max(report.lagMsMax, subscription.lagMs ?? 0);
    }
    return { ...report, changes, counts, sumSeconds: sumMs / 1000 };
  }

  kill(liveId: string): boolean {
    const subscription = this.#all().find((open) => open.liveId === liveId);
    if (subscription === undefined) return false;
    const message = "The subscription was ended by KILL LIVE QUERY";
    subscription.end(ending(subscription.id, "KILLED", message));
    return true;
  }

  shutdown(): void {
    this.#isShutDown = true;
    for (const subscription of this.#all()) {
      subscription.end(ending(subscription.id, "SHUTTING_DOWN", "The server is shutting down"));
    }
  }

  /**
   * Handles a change to a table's definition or to the rights on it. Ends the subscriptions to the
   * table that cannot continue, and plans its other subscriptions again, which may take several
   * ticks. Must be called after the catalog and the store have changed.
   */
  tableChanged(tableId: number): void {
    this.#results.review(tableId);
    const feeds = this.#feeds.ofTable(tableId);
    for (const feed of feeds) feed.suspend();
    const budget = new TickBudget(this.#pace.tickUnits);
    for (const feed of feeds) if (!feed.review(budget)) this.#scheduler.review(feed);
  }

  /**
   * Reviews the subscriptions after a view has been replaced or dropped. Must be called after the
   * catalog has changed.
   */
  viewChanged(): void {
    this.#results.review(undefined);
  }

  /**
   * Collects all subscriptions from their groups. A separate set would take up another entry per
   * idle subscription.
   */
  #all(): (Subscription | ResultMember)[] {
    const all: (Subscription | ResultMember)[] = [...this.#results.subscriptions()];
    for (const feed of this.#feeds.all()) {
      for (const group of feed.groups) for (const member of group.members()) all.push(member);
    }
    return all;
  }

  #wake(changed: readonly ChangedPartition[], visibleSeq: Seq): void {
    const before = this.#seenSeq;
    this.#seenSeq = visibleSeq;
    this.#results.noteChanges(changed);
    if (this.#feeds.isEmpty) return;
    for (const partition of changed) {
      const shared = this.#feeds.shared(partition);
      if (shared?.mark(before) === true) this.#scheduler.mark(shared);
      for (const slow of this.#feeds.slow(partition)) {
        if (slow.mark(before)) this.#scheduler.mark(slow);
      }
    }
  }

  #checkLimits(id: string, userId: string, backpressure: ConnectionBackpressure): void {
    const { subscriptionsPerUser, subscriptionsPerConnection } = this.#limits;
    const code = "SUBSCRIPTION_LIMIT_EXCEEDED";
    if (subscriptionsPerUser > 0 && this.countOfUser(userId) >= subscriptionsPerUser) {
      const what = `a user may have at most ${subscriptionsPerUser} subscriptions`;
      throw refusal(id, code, `Cannot subscribe "${id}": ${what}`);
    }
    if (backpressure.subscriptionCount >= subscriptionsPerConnection) {
      const what = `a connection may have at most ${subscriptionsPerConnection} subscriptions`;
      throw refusal(id, code, `Cannot subscribe "${id}": ${what}`);
    }
  }

  /**
   * Returns the plan of an existing group that was created for an identical request; undefined if
   * there is none.
   */
  #recentPlan(principal: Principal, spec: SubscriptionSpec): LivePlan | undefined {
    return this.#recentPlans.find(planKeyOf(principal, spec), (plan) => {
      return this.#knownFeed(plan)?.hasPlan(plan) === true;
    });
  }

  /** Plans a live query whose rows are delivered one by one. @throws {SubscriptionError} */
  #plan(principal: Principal, spec: SubscriptionSpec): LivePlan {
    return this.#planned(principal, spec, (request) => this.#sql.planLive(principal, request));
  }

  /** Plans a live query that is followed as an entire result. @throws {SubscriptionError} */
  #planFollowed(principal: Principal, spec: SubscriptionSpec): FollowedPlan {
    return this.#planned(principal, spec, (request) => this.#sql.planFollowed(principal, request));
  }

  /**
   * Plans a live query, and turns a refusal into an error for its subscription.
   * @throws {SubscriptionError}
   */
  #planned<Plan>(
    principal: Principal,
    spec: SubscriptionSpec,
    plan: (request: LiveRequest) => Plan,
  ): Plan {
    try {
      return plan({
        sql: spec.sql,
        params: parametersFromSpec(spec.params),
        way: wayFromSpec(spec),
        ...(spec.namespace_id === undefined ? {} : { namespace: spec.namespace_id }),
      });
    } catch (error) {
      const refused = endingFor(spec.id, error, "planning");
      if (refused.code === "SUBSCRIPTION_FAILED") {
        this.#noteFailure(error, { user: principal.userId, sql: spec.sql });
      }
      const isHidden = error instanceof DatabaseError && error.isHidden;
      throw new SubscriptionError(refused, { isHidden });
    }
  }

  #noteFailure(error: unknown, fields: LogFields): void {
    if (isExpected(error)) {
      this.#host.log.error("cannot subscribe", { ...fields, cause: stackOf(error) });
    } else this.#host.onBug(error, "a subscription", fields);
  }

  /**
   * Checks a resume position against the history. A client that has no rows may get a snapshot
   * instead.
   *
   * @throws {SubscriptionError} INVALID_RESUME, RESUME_EXPIRED, SCHEMA_CHANGED
   */
  #effectiveStart(start: Start, asked: Omit<Resume, "claimsKey" | "position">): Start {
    if (start.kind !== "resume") return start;
    const { id, plan } = asked;
    const earliestSeq = this.#store.earliestSeq(plan.tableId, plan.owner);
    if (start.position === 0) {
      // A replay of the entire history suffices only if the user's rights have never changed.
      // Otherwise, rows may have been deleted while the user could not see them.
      const rightsSeq = this.#definitions.rowRightsSeq(plan.tableId, asked.principal.userId);
      const isWhole = earliestSeq === 0 && rightsSeq === 0;
      return isWhole ? start : { kind: "snapshot", lastRows: undefined };
    }
    const { claimsKey, position } = start;
    if (position > this.#store.visibleSeq || this.#store.wasLost(position)) throw invalidResume(id);
    if (position < earliestSeq) {
      throw new SubscriptionError(endingFor(id, resumeExpired(earliestSeq), "planning"));
    }
    requireSameMeaning(this.#definitions, { ...asked, claimsKey, position });
    return start;
  }

  #readerFor(
    start: Start,
    options: { wanted: SubscriptionStart; boundary: Seq; subscription: Subscription },
  ): LoadReader | undefined {
    const { wanted, boundary, subscription } = options;
    const reading = {
      store: this.#store,
      clock: this.#host.clock,
      program: () => subscription.group.program,
      boundary,
      batchSize: wanted.batchSize,
      frameBytesMax: this.#limits.frameBytesMax,
    };
    switch (start.kind) {
      case "live":
        return undefined;
      case "snapshot":
        return new SnapshotReader({
          ...reading,
          lastRows: start.lastRows,
          onArrived: () => this.#scheduler.enqueue(subscription),
        });
      case "resume":
        return new ReplayReader({
          ...reading,
          mode: start.mode,
          position: start.position,
          changesMax: this.#limits.replayChangesMax,
          recent: this.#recentReplays,
        });
    }
  }

  /** Returns the existing feed to which a query belongs; undefined if there is none. */
  #knownFeed(plan: LivePlan): LocalChangeFeed | undefined {
    return this.#feeds.ofSlow(plan, plan.fingerprint) ?? this.#feeds.shared(plan);
  }

  #feedFor(plan: LivePlan): LocalChangeFeed {
    const known = this.#knownFeed(plan);
    if (known !== undefined) return known;
    const feed = this.#newFeed(plan);
    this.#feeds.addShared(feed);
    return feed;
  }

  #newFeed({ tableId, owner }: PartitionKey): LocalChangeFeed {
    return new ChangeFeed({
      store: this.#store,
      tableId,
      owner,
      frameBytesMax: this.#limits.frameBytesMax,
      reviewOf: this.#reviewOf,
      onSlow: this.#onSlow,
    });
  }

  #remember(subscription: Subscription | ResultSubscription): void {
    const { backpressure, principal } = subscription;
    this.#countByUser.set(principal.userId, this.countOfUser(principal.userId) + 1);
    backpressure.subscriptionCount += 1;
    backpressure.sink.backpressure = backpressure;
    this.#arrivals.add(subscription instanceof Subscription ? 1 : RESULT_WEIGHT);
  }

  #forget(subscription: Subscription): void {
    this.#discount(subscription);
    const { feed } = subscription;
    if (feed.isEmpty) this.#feeds.remove(feed);
  }

  #discount(subscription: Subscription | ResultSubscription): void {
    const { backpressure, principal } = subscription;
    this.#scheduler.forget(subscription);
    const count = this.countOfUser(principal.userId) - 1;
    if (count > 0) this.#countByUser.set(principal.userId, count);
    else this.#countByUser.delete(principal.userId);
    backpressure.subscriptionCount -= 1;
    if (backpressure.subscriptionCount === 0) backpressure.sink.backpressure = undefined;
  }

  /** The number is random, so that ids from an earlier process are not valid in this one. */
  #newNumber(): number {
    return Buffer.from(this.#random.bytes(8)).readUIntBE(0, NUMBER_BYTES);
  }
}

/** Returns the position that a subscription may report before any message has been sent. */
function firstPosition(start: Start, boundary: Seq): Seq | undefined {
  if (start.kind === "live") return boundary;
  return start.kind === "resume" ? start.position : undefined;
}

function refusal(
  id: string,
  code: "SHUTTING_DOWN" | "SUBSCRIPTION_LIMIT_EXCEEDED",
  message: string,
): SubscriptionError {
  return new SubscriptionError(ending(id, code, message));
}

/**
 * Creates the error for `last_rows` of a query that is not followed row by row.
 *
 * @param part The construct that prevents it. It may be in a policy, which the client does not
 *   see.
 */
function refusedLastRows(id: string, part: string): SubscriptionError {
  const message =
    `Cannot subscribe "${id}": last_rows applies only to a query that is followed row by row, ` +
    `not to a query with ${part}; use ORDER BY … LIMIT instead`;
  return new SubscriptionError(ending(id, "INVALID_OPTIONS", message));
}
