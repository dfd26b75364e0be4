/**
 * One subscription: a cursor over `_seq` that first catches up and then follows.
 *
 *     (none) ──start──► loading ──last batch──► behind ──nothing left──► following
 *         │              ▲   │                   ▲  ▲                        │
 *         │              └───┘ nextBatch         │  └──── outlet full ───────┘
 *         └─────────────── live only ────────────┘
 *
 *     any ──unsubscribe, kill, failure──► ended
 *
 * "behind" and "following" are both "ready" to the client. Behind, it reads the changes above its
 * own cursor; following, its feed reads for the whole group. There is no buffer for changes that
 * arrive while the snapshot is read or while the socket is full: the snapshot is the part of the
 * versions up to the boundary and the changes are the part after it, so none can be missed or sent
 * twice, and a slow client costs a cursor, not a queue.
 */

import type { Principal } from "../auth/mod.ts";
import { assert } from "../base/assert.ts";
import type { OnBug } from "../base/bugs.ts";
import { type Clock, wallMsAt } from "../base/clock.ts";
import { isExpected, stackOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Seq } from "../base/seq.ts";
import type { BatchControl, ErrorMessage, SubscriptionSpec } from "../protocol/mod.ts";
import type { LiveRow } from "../sql/mod.ts";
import type { Store } from "../storage/mod.ts";
import { type Budget, READ_ROWS_MAX } from "./budget.ts";
import { ChangeTally } from "./change_tally.ts";
import type { DeliveryTimes } from "./delivery_times.ts";
import type { Group, GroupFeed, GroupMember, Reach } from "./groups.ts";
import type { LiveSubscription, SharedMessage, SubscriptionState } from "./live.ts";
import { ending, endingFor, resumeExpired } from "./live_errors.ts";
import type { LiveChange } from "./live_program.ts";
import type { BatchStep, LoadReader } from "./load_reader.ts";
import { Loading } from "./loading.ts";
import { ackMessage, changeMessage, draftFrom, shared, sharedBatch } from "./messages.ts";
import type { Outlet } from "./outlet.ts";

/** What a subscription needs of the engine. */
export interface SubscriptionHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly onBug: OnBug;
  readonly frameBytesMax: number;
  readonly loadingTimeoutMs: number;
  readonly times: DeliveryTimes;
  /** Calls `advance` in this turn, and again in later ones as long as it asks for it. */
  run(subscription: Subscription): void;
  /** Calls `advance` soon. */
  enqueue(subscription: Subscription): void;
  /** It is over. */
  forget(subscription: Subscription): void;
}

export interface SubscriptionOptions {
  readonly host: SubscriptionHost;
  /** What operators know it by; kept as a number, which costs nothing. */
  readonly number: number;
  readonly spec: SubscriptionSpec;
  readonly principal: Principal;
  readonly outlet: Outlet<Subscription>;
  readonly group: Group<Subscription>;
  /** What it may be told at once: the resume position, or the boundary when live only. */
  readonly position: Seq | undefined;
}

/** Fields cost every idle subscription memory: what only some need lies in objects of their own. */
export class Subscription implements LiveSubscription, GroupMember {
  readonly id: string;
  readonly principal: Principal;
  readonly outlet: Outlet<Subscription>;
  readonly group: Group<Subscription>;
  readonly #host: SubscriptionHost;
  readonly #number: number;
  readonly #options: SubscriptionSpec["options"];
  /** On the monotonic clock, as are the times of the tally: the one on the wall may be set. */
  readonly #createdMs: number;
  #state: SubscriptionState = "loading";
  #loading: Loading | undefined;
  /** Everything up to here has been sent; while following, the group's position says it. */
  #cursor: Seq | undefined;
  /** Made with the first change: most that are open at a time are idle. */
  #tally: ChangeTally | undefined;

  constructor(options: SubscriptionOptions) {
    this.#number = options.number;
    this.id = options.spec.id;
    this.#options = options.spec.options;
    this.principal = options.principal;
    this.outlet = options.outlet;
    this.group = options.group;
    this.#host = options.host;
    this.#createdMs = options.host.clock.monotonicMs();
    this.#cursor = options.position;
    this.group.join(this);
  }

  get liveId(): string {
    return this.#number.toString(16).padStart(12, "0");
  }

  /** As it was asked for; the query is kept once for the group. */
  get spec(): SubscriptionSpec {
    const options = this.#options;
    return { ...this.group.asked, id: this.id, ...(options === undefined ? {} : { options }) };
  }

  get feed(): GroupFeed<Subscription> {
    return this.group.feed;
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  get position(): Seq | undefined {
    // It moves with what others write, also beyond a change that is about to end this one.
    return this.feed.isSuspended(this.group) ? undefined : this.#reachedSeq;
  }

  get #reachedSeq(): Seq | undefined {
    return this.#state === "following" ? this.feed.positionOf(this.group) : this.#cursor;
  }

  /** How much older its position is than the newest commit; undefined without a position. */
  get lagMs(): number | undefined {
    const position = this.#reachedSeq;
    if (position === undefined) return undefined;
    const { store } = this.#host;
    return Math.max(0, store.commitMs(store.visibleSeq) - store.commitMs(position));
  }

  /** Sends the ack, and the first batch unless it is live only. */
  start(reader: LoadReader | undefined): void {
    assert(this.#state === "loading", "a subscription starts once");
    const control: BatchControl = {
      batch_num: 0,
      has_more: reader !== undefined,
      status: reader === undefined ? "ready" : "loading",
      last_seq_id: this.#cursor ?? null,
    };
    const schema = this.group.program.plan.fields;
    this.outlet.send(shared(ackMessage({ subscriptionId: this.id, control, schema })));
    if (reader === undefined) {
      assert(this.#cursor !== undefined, "a live only subscription begins at the boundary");
      this.#state = "behind";
    } else {
      this.#loading = this.#loadingBy(reader);
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
    for (const subscription of this.outlet.drained()) this.#host.enqueue(subscription);
  }

  close(): void {
    if (this.#state === "ended") return;
    if (this.#state === "following") this.group.unfollow(this);
    this.#state = "ended";
    this.#stopLoading();
    this.outlet.forget(this);
    this.group.leave(this);
    this.#host.forget(this);
  }

  /** Ends it, and tells its client why. */
  end(message: ErrorMessage): void {
    if (this.#state === "ended") return;
    this.close();
    this.outlet.sink.end(message);
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
    assert(this.#state === "following", "a follower takes what its feed reads");
    if (this.outlet.isFull) {
      this.#fallBehind(reach.before);
      return;
    }
    try {
      this.#sendChanges(message, reach.lastSeq, reach.count);
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.outlet.isFull) this.#fallBehind(reach.lastSeq);
  }

  /**
   * Sends what is due, within a budget.
   *
   * @returns Whether nothing is left to do now; otherwise the budget was used up first.
   */
  advance(budget: Budget): boolean {
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
    const { clock } = this.#host;
    const tally = this.#tally;
    return {
      liveId: this.liveId,
      subscriptionId: this.id,
      userId: this.principal.userId,
      tableId: this.feed.tableId,
      query: this.group.asked.sql,
      options: this.#options,
      status: this.#state === "following" ? "ready" : this.#state,
      changes: tally?.count ?? 0,
      lastSeq: tally?.lastSeq,
      createdAtMs: wallMsAt(clock, this.#createdMs),
      lastUpdateMs: tally === undefined ? undefined : wallMsAt(clock, tally.lastMs),
      connectionId: this.outlet.sink.connectionId,
      position: this.#reachedSeq,
      lagMs: this.lagMs,
      queuedBytes: this.outlet.sink.queuedBytes,
      changesPerSecond: tally?.perSecond(clock.monotonicMs()) ?? 0,
    };
  }

  #loadingBy(reader: LoadReader): Loading {
    const { clock, loadingTimeoutMs } = this.#host;
    const onTimeout = (): void => {
      const what = "the client asked for no batch in time";
      this.end(ending(this.id, "SUBSCRIPTION_FAILED", `The subscription ended: ${what}`));
    };
    return new Loading(reader, { clock, timeoutMs: loadingTimeoutMs, onTimeout });
  }

  /** Serves the open requests. Returns whether the budget stopped it. */
  #load(budget: Budget): boolean {
    const loading = this.#loading;
    assert(loading !== undefined, "a loading subscription has a reader");
    while (this.#state === "loading" && loading.isRequested) {
      if (this.outlet.isFull) {
        loading.release();
        this.outlet.addWaiting(this);
        return false;
      }
      const step = loading.next(budget);
      if (step === undefined) return true;
      if (step === "waiting") return false;
      if (step.kind === "batch") this.#sendBatch(loading, step);
      else {
        const { draft } = step;
        this.#sendChanges(shared(changeMessage(draft, this.id)), draft.lastSeq, draft.count);
      }
    }
    if (this.#state === "loading") loading.release();
    return false;
  }

  #sendBatch(loading: Loading, step: BatchStep): void {
    const { rows, lastSeq, isLast, messages } = step;
    const control = loading.count(step);
    this.#cursor = lastSeq;
    if (isLast) {
      this.#state = "behind";
      this.#stopLoading();
    }
    const make = (): SharedMessage => sharedBatch({ subscriptionId: this.id, rows, control });
    this.outlet.send(messages === undefined ? make() : messages.get(this.id, make));
  }

  /** Sends the changes above the cursor, then follows. Returns whether the budget stopped it. */
  #catchUp(budget: Budget): boolean {
    assert(this.#cursor !== undefined, "a ready subscription has a position");
    if (this.outlet.isFull) {
      this.outlet.addWaiting(this);
      return false;
    }
    const upTo = this.feed.positionOf(this.group);
    if (this.#cursor > upTo) {
      this.feed.addWaiting(this);
      return false;
    }
    if (this.#cursor < upTo) {
      const isThere = this.#readChanges(upTo, budget);
      if (!isThere) return !this.outlet.isFull;
    }
    this.#state = "following";
    this.group.follow(this);
    return false;
  }

  /** Returns whether everything up to `upTo` has been sent. */
  #readChanges(upTo: Seq, budget: Budget): boolean {
    const { store, frameBytesMax } = this.#host;
    const { program } = this.group;
    const { tableId, owner } = program.plan;
    const after = this.#cursor;
    assert(after !== undefined, "a ready subscription has a position");
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

  /** Returns whether there was room for all of them. */
  #sendAll(changes: readonly LiveChange[], frameBytesMax: number): boolean {
    for (let start = 0; start < changes.length; ) {
      const draft = draftFrom(changes, start, {
        countMax: changes.length,
        frameBytesMax,
        store: this.#host.store,
      });
      this.#sendChanges(shared(changeMessage(draft, this.id)), draft.lastSeq, draft.count);
      this.#cursor = draft.lastSeq;
      start += draft.count;
      if (this.outlet.isFull) {
        this.outlet.addWaiting(this);
        return false;
      }
    }
    return true;
  }

  #sendChanges(message: SharedMessage, lastSeq: Seq, count: number): void {
    const { clock, store, times } = this.#host;
    const nowMs = clock.monotonicMs();
    this.#tally ??= new ChangeTally();
    this.#tally.add(lastSeq, count, nowMs);
    const ageMs = clock.nowMs() - store.commitMs(lastSeq);
    // The time of a commit is known to the millisecond.
    if (ageMs >= nowMs - this.#createdMs + 1) times.replayed(count);
    else times.delivered(count, ageMs);
    this.outlet.send(message);
  }

  #fallBehind(cursor: Seq): void {
    this.group.unfollow(this);
    this.#state = "behind";
    this.#cursor = cursor;
    this.outlet.addWaiting(this);
  }

  #stopLoading(): void {
    this.#loading?.close();
    this.#loading = undefined;
  }
}
