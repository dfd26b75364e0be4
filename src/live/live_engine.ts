/**
 * The live engine: opens, counts and ends subscriptions, and wakes them when the store moves.
 *
 *     LocalLiveEngine ── Feed (one a partition, and one a slow query) ── Group (one a query)
 *                    │                                                       └── Subscription
 *                    └── Pump (when)
 *
 * Invariants: a feed exists while it has groups, a group while it has members; every open
 * subscription is counted once for its user, once for its outlet, and is in one group.
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
import type { LiveMatch, LivePlan, LiveRow, SqlEngine } from "../sql/mod.ts";
import type { ChangedPartition, Store } from "../storage/mod.ts";
import { Budget } from "./budget.ts";
import { DefinitionReview } from "./definition_review.ts";
import { type DeliveryReport, DeliveryTimes } from "./delivery_times.ts";
import { Feed, type SlowGroup } from "./feed.ts";
import { Feeds, type Partition } from "./feeds.ts";
import type { Group } from "./groups.ts";
import { type LiveEngine, type LiveSubscription, SubscriptionError } from "./live.ts";
import { ending, endingFor, resumeExpired } from "./live_errors.ts";
import type { LoadReader } from "./load_reader.ts";
import { Outlet } from "./outlet.ts";
import { PACE, type Pace, Pump, type Turns, turnsOf } from "./pump.ts";
import { planKeyOf, RecentPlans } from "./recent_plans.ts";
import { RecentReplays } from "./recent_replays.ts";
import { ReplayReader } from "./replay_reader.ts";
import { type DefinitionHistory, type Resume, requireSameMeaning } from "./resume_meaning.ts";
import { SnapshotReader } from "./snapshot_reader.ts";
import {
  invalidResume,
  parametersFromSpec,
  type Start,
  type Wanted,
  wantedFromSpec,
} from "./subscribe_options.ts";
import { Subscription, type SubscriptionHost } from "./subscription.ts";

/** Bounds of the live engine: the keys of `limits` and `websocket` that concern it. */
export interface LiveLimits {
  /** 0 for no bound. */
  readonly subscriptionsPerUser: number;
  readonly subscriptionsPerConnection: number;
  readonly batchSizeDefault: number;
  readonly batchSizeMax: number;
  readonly frameBytesMax: number;
  /** How long a loading subscription may ask for nothing. */
  readonly loadingTimeoutMs: number;
  /** `change` messages after which a replay closes its loading phase. */
  readonly replayChangesMax: number;
}

interface LocalLiveEngineOptions {
  /** Its `onVisible` is taken. */
  readonly store: Store;
  readonly sql: Pick<SqlEngine, "planLive">;
  readonly definitions: DefinitionHistory;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onBug: OnBug;
  readonly limits: LiveLimits;
  /** How much is done in one turn; a few milliseconds' worth unless given. */
  readonly pace?: Pace;
  /** When it is done; the turns of the event loop unless given. */
  readonly turns?: Turns;
}

/** Of the number behind a live id: the most that a number holds, read by the byte. */
const NUMBER_BYTES = 6;

type LocalFeed = Feed<Subscription>;

type Asking = Parameters<LiveEngine["subscribe"]>[0];

export class LocalLiveEngine implements LiveEngine {
  readonly #store: Store;
  readonly #sql: Pick<SqlEngine, "planLive">;
  readonly #definitions: DefinitionHistory;
  readonly #random: Random;
  readonly #limits: LiveLimits;
  readonly #pace: Pace;
  readonly #pump: Pump<Subscription>;
  readonly #host: SubscriptionHost;
  readonly #feeds = new Feeds<LocalFeed>();
  readonly #times = new DeliveryTimes();
  readonly #recentPlans = new RecentPlans();
  readonly #recentReplays: RecentReplays;
  readonly #countByUser = new Map<string, number>();
  readonly #arrivals = new Arrivals();
  /** One for all feeds, of which there may be as many as users. */
  readonly #reviewOf = (group: Group<Subscription>): DefinitionReview =>
    new DefinitionReview(group, (principal, spec) => this.#plan(principal, spec));
  /** Likewise: a slow query gets a feed of its own. */
  readonly #onSlow = (slow: SlowGroup<Subscription>): void => {
    const feed = this.#newFeed(slow.group.feed);
    feed.adopt(slow);
    this.#feeds.addSlow(feed, slow.group.program.plan.fingerprint);
    this.#pump.mark(feed);
  };
  /** The visible seq that was heard of last. */
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
    this.#pump = new Pump(options.turns ?? turnsOf(clock), this.#pace, options.onBug);
    this.#host = {
      store,
      clock,
      log,
      onBug: options.onBug,
      frameBytesMax: limits.frameBytesMax,
      loadingTimeoutMs: limits.loadingTimeoutMs,
      times: this.#times,
      run: (subscription) => this.#pump.run(subscription),
      enqueue: (subscription) => this.#pump.enqueue(subscription),
      forget: (subscription) => this.#forget(subscription),
    };
    this.#seenSeq = store.visibleSeq;
    store.onVisible = (changed, visibleSeq) => this.#wake(changed, visibleSeq);
  }

  subscribe(options: Asking): LiveSubscription {
    try {
      return this.#subscribe(options);
    } catch (error) {
      if (error instanceof SubscriptionError) throw error;
      const { principal, spec } = options;
      this.#noteFailure(error, { user: principal.userId, sql: spec.sql });
      throw new SubscriptionError(endingFor(spec.id, error, "planning"));
    }
  }

  #subscribe({ principal, spec, sink }: Asking): LiveSubscription {
    if (this.#isShutDown) throw refusal(spec.id, "SHUTTING_DOWN", "The server is shutting down");
    const wanted = wantedFromSpec(spec, this.#limits);
    const outlet = sink.outlet instanceof Outlet ? sink.outlet : new Outlet<Subscription>(sink);
    this.#checkLimits(spec.id, principal.userId, outlet);
    const plan = this.#recentPlan(principal, spec);
    const start = this.#effectiveStart(wanted.start, { id: spec.id, principal, plan });
    const boundary = this.#store.visibleSeq;
    const subscription = new Subscription({
      host: this.#host,
      number: this.#newNumber(),
      spec,
      principal,
      outlet,
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

  /** How many subscriptions a user has, over all connections. */
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
   * A table was altered or dropped, or who may read it changed: ends the subscriptions that do not
   * survive it, and plans the others anew, the first of many in this turn and the rest in later
   * ones. Call it after the catalog and the store have changed.
   */
  tableChanged(tableId: number): void {
    const feeds = this.#feeds.ofTable(tableId);
    for (const feed of feeds) feed.suspend();
    const budget = new Budget(this.#pace.turnUnits);
    for (const feed of feeds) if (!feed.review(budget)) this.#pump.review(feed);
  }

  /** Found through their groups: a set of its own would cost each that is idle one more entry. */
  #all(): Subscription[] {
    const all: Subscription[] = [];
    for (const feed of this.#feeds.all()) {
      for (const group of feed.groups) for (const member of group.members()) all.push(member);
    }
    return all;
  }

  #wake(changed: readonly ChangedPartition[], visibleSeq: Seq): void {
    const before = this.#seenSeq;
    this.#seenSeq = visibleSeq;
    if (this.#feeds.isEmpty) return;
    for (const partition of changed) {
      const shared = this.#feeds.shared(partition);
      if (shared?.mark(before) === true) this.#pump.mark(shared);
      for (const slow of this.#feeds.slow(partition)) {
        if (slow.mark(before)) this.#pump.mark(slow);
      }
    }
  }

  #checkLimits(id: string, userId: string, outlet: Outlet<Subscription>): void {
    const { subscriptionsPerUser, subscriptionsPerConnection } = this.#limits;
    const code = "SUBSCRIPTION_LIMIT_EXCEEDED";
    if (subscriptionsPerUser > 0 && this.countOfUser(userId) >= subscriptionsPerUser) {
      const what = `a user may have ${subscriptionsPerUser} subscriptions`;
      throw refusal(id, code, `Cannot subscribe "${id}": ${what}`);
    }
    if (outlet.subscriptionCount >= subscriptionsPerConnection) {
      const what = `a connection may have ${subscriptionsPerConnection} subscriptions`;
      throw refusal(id, code, `Cannot subscribe "${id}": ${what}`);
    }
  }

  /** The plan of an open group that was made for the same request, else a new one. */
  #recentPlan(principal: Principal, spec: SubscriptionSpec): LivePlan {
    const key = planKeyOf(principal, spec);
    const known = this.#recentPlans.find(key, (plan) => {
      return this.#knownFeed(plan)?.hasPlan(plan) === true;
    });
    if (known !== undefined) return known;
    const plan = this.#plan(principal, spec);
    this.#recentPlans.remember(key, plan);
    return plan;
  }

  /** @throws {SubscriptionError} */
  #plan(principal: Principal, spec: SubscriptionSpec): LivePlan {
    try {
      return this.#sql.planLive(principal, {
        sql: spec.sql,
        params: parametersFromSpec(spec.params),
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
   * Checks a position against history; a client that holds nothing may get a snapshot instead.
   *
   * @throws {SubscriptionError} INVALID_RESUME, RESUME_EXPIRED, SCHEMA_CHANGED
   */
  #effectiveStart(start: Start, asked: Omit<Resume, "position">): Start {
    if (start.kind !== "resume") return start;
    const { id, plan } = asked;
    // Rows from before the table was opened to more people may have been deleted for that. What is
    // visible may lie before it still: who has that has all there was.
    const openedSeq = this.#definitions.tableOpenedSeq(plan.tableId);
    const earliestSeq = Math.max(
      this.#store.earliestSeq(plan.tableId, plan.owner),
      Math.min(openedSeq, this.#store.visibleSeq),
    );
    if (start.position === 0) {
      return earliestSeq === 0 ? start : { kind: "snapshot", lastRows: undefined };
    }
    const { position } = start;
    if (position > this.#store.visibleSeq || this.#store.wasLost(position)) throw invalidResume(id);
    if (position < earliestSeq) {
      throw new SubscriptionError(endingFor(id, resumeExpired(earliestSeq), "planning"));
    }
    requireSameMeaning(this.#definitions, { ...asked, position });
    return start;
  }

  #readerFor(
    start: Start,
    options: { wanted: Wanted; boundary: Seq; subscription: Subscription },
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
          onArrived: () => this.#pump.enqueue(subscription),
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

  /** The feed that a query belongs to. */
  #knownFeed(plan: LivePlan): LocalFeed | undefined {
    return this.#feeds.ofSlow(plan, plan.fingerprint) ?? this.#feeds.shared(plan);
  }

  #feedFor(plan: LivePlan): LocalFeed {
    const known = this.#knownFeed(plan);
    if (known !== undefined) return known;
    const feed = this.#newFeed(plan);
    this.#feeds.addShared(feed);
    return feed;
  }

  #newFeed({ tableId, owner }: Partition): LocalFeed {
    return new Feed({
      store: this.#store,
      tableId,
      owner,
      frameBytesMax: this.#limits.frameBytesMax,
      reviewOf: this.#reviewOf,
      onSlow: this.#onSlow,
    });
  }

  #remember(subscription: Subscription): void {
    const { outlet, principal } = subscription;
    this.#countByUser.set(principal.userId, this.countOfUser(principal.userId) + 1);
    outlet.subscriptionCount += 1;
    outlet.sink.outlet = outlet;
    this.#arrivals.add();
  }

  #forget(subscription: Subscription): void {
    const { outlet, principal, feed } = subscription;
    this.#pump.forget(subscription);
    const count = this.countOfUser(principal.userId) - 1;
    if (count > 0) this.#countByUser.set(principal.userId, count);
    else this.#countByUser.delete(principal.userId);
    outlet.subscriptionCount -= 1;
    if (outlet.subscriptionCount === 0) outlet.sink.outlet = undefined;
    if (feed.isEmpty) this.#feeds.remove(feed);
  }

  /** By chance, so that ids of an earlier process name none of this one. */
  #newNumber(): number {
    return Buffer.from(this.#random.bytes(8)).readUIntBE(0, NUMBER_BYTES);
  }
}

/** What a subscription may be told to hold before anything was sent. */
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
