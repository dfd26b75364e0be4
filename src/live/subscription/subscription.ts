/**
 * A subscription: a cursor over `_seq` that first catches up and then follows.
 *
 *     (none) ──start──► loading ──last batch──► behind ──nothing left──► following
 *         │              ▲   │                   ▲  ▲                        │
 *         │              └───┘ nextBatch         │  └──── queue full ────────┘
 *         └─────────────── live only ────────────┘
 *
 *     any ──unsubscribe, kill, failure──► ended
 *
 * To the client, "behind" and "following" are both "ready". A subscription that is behind reads
 * the changes above its own cursor; if it follows, the feed of its group reads the changes once
 * for all members. Changes that arrive while the snapshot is being read or the socket is full are
 * not buffered. The snapshot covers the versions up to the boundary, and the changes cover the
 * versions after it, so no change can be missed or sent twice, and a slow client costs a cursor,
 * not a queue.
 */

import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { isExpected, stackOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import type { BatchControl, ErrorMessage, SubscriptionSpec } from "../../protocol/mod.ts";
import type { LiveRow } from "../../sql/mod.ts";
import type { Store } from "../../storage/mod.ts";
import type { LiveSubscription, SharedMessage, SubscriptionState } from "../contract/live.ts";
import { endingFor, resumeExpired } from "../contract/live_errors.ts";
import type { ConnectionBackpressure } from "../delivery/connection_backpressure.ts";
import type { GroupChangeFeed, GroupMember, Reach, SubscriptionGroup } from "../delivery/groups.ts";
import {
  ackMessage,
  changeMessage,
  pendingChangeFrom,
  shared,
  sharedBatch,
} from "../delivery/messages.ts";
import { ChangeTally } from "../measures/change_tally.ts";
import type { DeliveryTimes } from "../measures/delivery_times.ts";
import type { LiveChange } from "../program/live_program.ts";
import type { Advancing } from "../scheduler/scheduler.ts";
import { READ_ROWS_MAX, type TickBudget } from "../scheduler/tick_budget.ts";
import type { BatchStep, LoadReader } from "./load_reader.ts";
import type { Loading } from "./loading.ts";
import { countSent, lagMsOf, liveIdOf, liveRowOf, loadingBy } from "./subscription_parts.ts";

/** The interface through which a subscription uses the live engine. */
export interface SubscriptionHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly onBug: OnBug;
  readonly frameBytesMax: number;
  readonly loadingTimeoutMs: number;
  readonly times: DeliveryTimes;
  /**
   * Calls `advance` in this tick, and again in later ticks for as long as the subscription has
   * more to do.
   */
  run(subscription: Subscription): void;
  /** Calls `advance` soon. */
  enqueue(subscription: Advancing): void;
  /** Removes a subscription that has ended. */
  forget(subscription: Subscription): void;
}

export interface SubscriptionOptions {
  readonly host: SubscriptionHost;
  /** The number in the live id. Unlike a string, a number takes up no additional memory. */
  readonly number: number;
  readonly spec: SubscriptionSpec;
  readonly principal: Principal;
  readonly backpressure: ConnectionBackpressure;
  readonly group: SubscriptionGroup<Subscription>;
  /**
   * The position that the subscription may report immediately: the resume position or, if only
   * changes are wanted, the boundary.
   */
  readonly position: Seq | undefined;
}

/**
 * Fields take up memory in every idle subscription, so state that only some subscriptions need is
 * kept in separate objects.
 */
export class Subscription implements LiveSubscription, GroupMember {
  readonly id: string;
  readonly principal: Principal;
  readonly backpressure: ConnectionBackpressure;
  readonly group: SubscriptionGroup<Subscription>;
  readonly #host: SubscriptionHost;
  readonly #number: number;
  readonly #options: SubscriptionSpec["options"];
  /**
   * When the subscription was created, on the monotonic clock, because the wall clock may be
   * changed.
   */
  readonly #createdMs: number;
  #state: SubscriptionState = "loading";
  #loading: Loading | undefined;
  /**
   * The seq up to which everything has been sent. While the subscription is following, its group's
   * position applies instead.
   */
  #cursor: Seq | undefined;
  /**
   * Counts the changes sent. Created with the first change, because most open subscriptions are
   * idle.
   */
  #tally: ChangeTally | undefined;

  constructor(options: SubscriptionOptions) {
    this.#number = options.number;
    this.id = options.spec.id;
    this.#options = options.spec.options;
    this.principal = options.principal;
    this.backpressure = options.backpressure;
    this.group = options.group;
    this.#host = options.host;
    this.#createdMs = options.host.clock.monotonicMs();
    this.#cursor = options.position;
    this.group.join(this);
  }

  get liveId(): string {
    return liveIdOf(this.#number);
  }

  /** The request as the client sent it. The query itself is stored only once, in the group. */
  get spec(): SubscriptionSpec {
    const options = this.#options;
    return { ...this.group.asked, id: this.id, ...(options === undefined ? {} : { options }) };
  }

  get feed(): GroupChangeFeed<Subscription> {
    return this.group.feed;
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  get position(): Seq | undefined {
    // During a review, other users' writes may move the position past a definition change that is
    // about to end this subscription.
    return this.feed.isSuspended(this.group) ? undefined : this.#reachedSeq;
  }

  get #reachedSeq(): Seq | undefined {
    return this.#state === "following" ? this.feed.positionOf(this.group) : this.#cursor;
  }

  /**
   * The distance between the subscription's position and the newest commit, in milliseconds;
   * undefined if there is no position.
   */
  get lagMs(): number | undefined {
    return lagMsOf(this.#host.store, this.#reachedSeq);
  }

  /** Sends the ack and, unless the subscription asks for changes only, the first batch. */
  start(reader: LoadReader | undefined): void {
    assert(this.#state === "loading", "subscription: subscription has already been started");
    const control: BatchControl = {
      batch_num: 0,
      has_more: reader !== undefined,
      status: reader === undefined ? "ready" : "loading",
      last_seq_id: this.#cursor ?? null,
    };
    const { claimsKey, fields: schema } = this.group.program.plan;
    const ack = ackMessage({ subscriptionId: this.id, control, schema, claimsKey });
    this.backpressure.send(shared(ack));
    if (reader === undefined) {
      assert(
        this.#cursor !== undefined,
        "subscription: subscription without a snapshot has no start position",
      );
      this.#state = "behind";
    } else {
      const end = (message: ErrorMessage): void => this.end(message);
      this.#loading = loadingBy(reader, { ...this.#host, id: this.id, end });
    }
    this.#host.run(this);
  }

  nextBatch(): void {
    const loading = this.#loading;
    if (loading === undefined) return;
    loading.request();
    this.#host.run(this);
  }

  drained(): void {
    for (const subscription of this.backpressure.drained()) this.#host.enqueue(subscription);
  }

  close(): void {
    if (this.#state === "ended") return;
    if (this.#state === "following") this.group.unfollow(this);
    this.#state = "ended";
    this.#stopLoading();
    this.backpressure.forget(this);
    this.group.leave(this);
    this.#host.forget(this);
  }

  /** Ends the subscription, and sends the client the reason. */
  end(message: ErrorMessage): void {
    if (this.#state === "ended") return;
    this.close();
    this.backpressure.sink.end(message);
  }

  fail(error: unknown): void {
    const message = endingFor(this.id, error, "reading");
    if (message.code === "SUBSCRIPTION_FAILED") {
      const fields = { live_id: this.liveId, user: this.principal.userId };
      if (isExpected(error)) {
        this.#host.log.error("a subscription failed", { ...fields, cause: stackOf(error) });
      } else this.#host.onBug(error, "a subscription", { ...fields, sql: this.group.asked.sql });
    }
    this.end(message);
  }

  take(message: SharedMessage, reach: Reach): void {
    assert(
      this.#state === "following",
      "subscription: feed message delivered to a subscription that does not follow",
    );
    if (this.backpressure.isFull) {
      this.#fallBehind(reach.before);
      return;
    }
    try {
      this.#sendChanges(message, reach.lastSeq, reach.count);
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.backpressure.isFull) this.#fallBehind(reach.lastSeq);
  }

  /**
   * Sends all messages that are due, within a budget.
   *
   * @returns True if nothing is left to do for now; false if the budget was used up first.
   */
  advance(budget: TickBudget): boolean {
    if (this.#state !== "ended" && this.feed.isSuspended(this.group)) {
      this.feed.addWaiting(this);
      return true;
    }
    try {
      if (this.#state === "loading" && this.#load(budget)) return false;
      return this.#state !== "behind" || !this.#catchUp(budget);
    } catch (error) {
      this.fail(error);
      return true;
    }
  }

  row(): LiveRow {
    return liveRowOf(this, {
      clock: this.#host.clock,
      createdMs: this.#createdMs,
      tableIds: [this.feed.tableId],
      query: this.group.asked.sql,
      options: this.#options,
      position: this.#reachedSeq,
      stateBytes: undefined,
      tally: this.#tally,
    });
  }

  /** Serves the open requests. Returns whether the budget was used up first. */
  #load(budget: TickBudget): boolean {
    const loading = this.#loading;
    assert(loading !== undefined, "subscription: loading subscription has no snapshot reader");
    while (this.#state === "loading" && loading.isRequested) {
      if (this.backpressure.isFull) {
        loading.release();
        this.backpressure.addWaiting(this);
        return false;
      }
      const step = loading.next(budget);
      if (step === undefined) return true;
      if (step === "waiting") return false;
      if (step.kind === "batch") this.#sendBatch(loading, step);
      else {
        const { pending } = step;
        this.#sendChanges(shared(changeMessage(pending, this.id)), pending.lastSeq, pending.count);
      }
    }
    if (this.#state === "loading") loading.release();
    return false;
  }

  #sendBatch(loading: Loading, step: BatchStep): void {
    const { rows, lastSeq, isLast, messages } = step;
    const control = loading.count(step);
    assert(lastSeq !== undefined, "subscription: batch of single rows has no end position");
    this.#cursor = lastSeq;
    if (isLast) {
      this.#state = "behind";
      this.#stopLoading();
    }
    const make = (): SharedMessage => sharedBatch({ subscriptionId: this.id, rows, control });
    this.backpressure.send(messages === undefined ? make() : messages.get(this.id, make));
  }

  /**
   * Sends the changes above the cursor, and then lets the subscription follow its group's feed.
   * Returns whether the budget was used up first.
   */
  #catchUp(budget: TickBudget): boolean {
    assert(this.#cursor !== undefined, "subscription: ready subscription has no position");
    if (this.backpressure.isFull) {
      this.backpressure.addWaiting(this);
      return false;
    }
    const upTo = this.feed.positionOf(this.group);
    if (this.#cursor > upTo) {
      this.feed.addWaiting(this);
      return false;
    }
    if (this.#cursor < upTo) {
      const isThere = this.#readChanges(upTo, budget);
      if (!isThere) return !this.backpressure.isFull;
    }
    this.#state = "following";
    this.group.follow(this);
    return false;
  }

  /** Sends the changes up to `upTo`. Returns whether all of them have been sent. */
  #readChanges(upTo: Seq, budget: TickBudget): boolean {
    const { store, frameBytesMax } = this.#host;
    const { program } = this.group;
    const { tableId, owner } = program.plan;
    const after = this.#cursor;
    assert(after !== undefined, "subscription: ready subscription has no position");
    const earliestSeq = store.earliestSeq(tableId, owner);
    if (after < earliestSeq) throw resumeExpired(earliestSeq);
    const { readSize, storedColumnIds: columnIds } = program;
    const rowsMax = program.rowsAtOnce(READ_ROWS_MAX);
    const batchRows = readSize.rowsOf({ rowsMax, frameBytesMax });
    const scan = store.changes(tableId, { owner, after, upTo, columnIds, batchRows });
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        for (let start = 0; start < batch.rowCount; ) {
          const options = { sources: program.ownSources, filter: program.plan.filter, budget };
          const portion = program.changesFrom(batch, start, options);
          const end = start + portion.rowCount;
          readSize.take({ batch, start, end }, portion.result, budget);
          budget.spend(portion.rowCount);
          start = end;
          if (!this.#sendAll(portion.result, frameBytesMax)) return false;
          this.#cursor = (batch.seqs[start - 1] ?? 0) as Seq;
          if (budget.isSpent) return false;
        }
      }
    } finally {
      scan.close();
    }
    this.#cursor = upTo;
    return true;
  }

  /** Sends changes. Returns false if the queue was full before all of them had been sent. */
  #sendAll(changes: readonly LiveChange[], frameBytesMax: number): boolean {
    for (let start = 0; start < changes.length; ) {
      const pending = pendingChangeFrom(changes, start, {
        frameBytesMax,
        store: this.#host.store,
      });
      this.#sendChanges(shared(changeMessage(pending, this.id)), pending.lastSeq, pending.count);
      this.#cursor = pending.lastSeq;
      start += pending.count;
      if (this.backpressure.isFull) {
        this.backpressure.addWaiting(this);
        return false;
      }
    }
    return true;
  }

  #sendChanges(message: SharedMessage, lastSeq: Seq, count: number): void {
    this.#tally ??= new ChangeTally();
    countSent(this.#tally, { count, lastSeq, createdMs: this.#createdMs }, this.#host);
    this.backpressure.send(message);
  }

  #fallBehind(cursor: Seq): void {
    this.group.unfollow(this);
    this.#state = "behind";
    this.#cursor = cursor;
    this.backpressure.addWaiting(this);
  }

  #stopLoading(): void {
    this.#loading?.close();
    this.#loading = undefined;
  }
}
