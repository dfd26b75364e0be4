/** A subscription to a materialised query. */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { isExpected, stackOf } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type {
  BatchControl,
  ErrorMessage,
  SortCollation,
  SortTerm,
  SubscriptionAck,
  SubscriptionSpec,
} from "../../protocol/mod.ts";
import type { LiveRow, ResultSort } from "../../sql/mod.ts";
import type { IcuRules } from "../../types/mod.ts";
import type { LiveSubscription, SubscriptionState } from "../contract/live.ts";
import { endingFor } from "../contract/live_errors.ts";
import type { ConnectionBackpressure } from "../delivery/connection_backpressure.ts";
import { ackMessage, changeMessage, shared, sharedBatch } from "../delivery/messages.ts";
import { ChangeTally } from "../measures/change_tally.ts";
import type { Advancing } from "../scheduler/scheduler.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import type { BatchStep, LoadReader } from "../subscription/load_reader.ts";
import type { Loading } from "../subscription/loading.ts";
import type { SubscriptionHost } from "../subscription/subscription.ts";
import {
  countSent,
  lagMsOf,
  liveIdOf,
  liveRowOf,
  loadingBy,
} from "../subscription/subscription_parts.ts";
import type { ResultGroup, ResultMember, ResultStep } from "./result_group.ts";
import { newestState } from "./result_reader.ts";
import { type ResultState, schemaOf } from "./result_state.ts";

/** The interface through which a subscription uses the live engine. */
export interface ResultSubscriptionHost
  extends Pick<
    SubscriptionHost,
    "clock" | "enqueue" | "loadingTimeoutMs" | "log" | "onBug" | "store" | "times"
  > {
  run(subscription: Advancing): void;
  forget(subscription: ResultSubscription): void;
}

export interface ResultSubscriptionOptions {
  readonly host: ResultSubscriptionHost;
  /** The number of the subscription within its live id. */
  readonly number: number;
  readonly spec: SubscriptionSpec;
  readonly principal: Principal;
  readonly backpressure: ConnectionBackpressure;
  readonly group: ResultGroup;
  /** The newest visible seq when the subscription begins. */
  readonly boundary: Seq;
}

/**
 * The maximum number of changes sent at once. The messages of a larger step are spread over
 * several ticks, so that other subscriptions can be served in between.
 */
const CHANGES_AT_ONCE_MAX = 256;

/** The cost of encoding a message with the maximum number of changes. */
const UNITS_PER_MESSAGE = 1024;

/** The messages of the step being sent. */
interface SendingStep extends ResultStep {
  sentCount: number;
}

export class ResultSubscription implements LiveSubscription, ResultMember, Advancing {
  readonly id: string;
  readonly principal: Principal;
  readonly backpressure: ConnectionBackpressure;
  readonly group: ResultGroup;
  readonly #host: ResultSubscriptionHost;
  readonly #number: number;
  readonly #options: SubscriptionSpec["options"];
  /** The newest visible seq when the subscription began. */
  readonly #boundary: Seq;
  readonly #createdMs: number;
  #state: SubscriptionState = "loading";
  #loading: Loading | undefined;
  /**
   * The state that the client has, or will have once it has loaded; undefined while the client has
   * the newest state of the group.
   */
  #delivered: ResultState | undefined;
  #sending: SendingStep | undefined;
  #tally: ChangeTally | undefined;

  constructor(options: ResultSubscriptionOptions) {
    this.#host = options.host;
    this.#number = options.number;
    this.#options = options.spec.options;
    this.#boundary = options.boundary;
    this.id = options.spec.id;
    this.principal = options.principal;
    this.backpressure = options.backpressure;
    this.group = options.group;
    this.#createdMs = options.host.clock.monotonicMs();
    this.group.join(this);
  }

  get liveId(): string {
    return liveIdOf(this.#number);
  }

  /**
   * The subscription request. Its query comes from the plan, which stores it once for the entire
   * group.
   */
  get spec(): SubscriptionSpec {
    const options = this.#options;
    const { namespace, params, sql } = this.group.plan;
    const query = { sql, params, namespace_id: namespace };
    return { ...query, id: this.id, ...(options === undefined ? {} : { options }) };
  }

  get state(): SubscriptionState {
    return this.#state;
  }

  get heldState(): ResultState | undefined {
    return this.#delivered;
  }

  get position(): Seq | undefined {
    if (this.group.isSuspended || this.#state === "loading" || this.#state === "ended") {
      return undefined;
    }
    return this.#state === "following" ? this.group.state?.seq : this.#delivered?.seq;
  }

  /**
   * Sends the ack and, unless the subscription asks for changes only, the first batch.
   *
   * @param position The position from which the subscription resumes.
   */
  start(reader: LoadReader | undefined, position?: Seq): void {
    if (reader !== undefined) {
      const lastSeq = position ?? null;
      this.#acknowledge({ has_more: true, status: "loading", last_seq_id: lastSeq });
      const end = (message: ErrorMessage): void => this.end(message);
      this.#loading = loadingBy(reader, { ...this.#host, id: this.id, end });
    }
    this.#host.run(this);
  }

  /** Continues loading after rows have arrived. */
  arrived(): void {
    if (this.#state === "loading") this.#host.enqueue(this);
  }

  nextBatch(): void {
    if (this.#loading === undefined) return;
    this.#loading.request();
    this.#host.run(this);
  }

  drained(): void {
    for (const each of this.backpressure.drained()) this.#host.enqueue(each);
  }

  take({ after, before, messages }: ResultStep): void {
    if (this.#state === "loading" || this.#state === "behind") {
      this.wake();
      return;
    }
    if (this.#state === "ended" || before === undefined || before.rows === after.rows) return;
    this.#delivered = before;
    this.#sending = { before, after, messages, sentCount: 0 };
    this.#state = "behind";
    if (messages.changeCount > CHANGES_AT_ONCE_MAX) this.#host.enqueue(this);
    else this.#guarded(() => void this.#catchUp(undefined));
  }

  wake(): void {
    if (this.#state === "loading" || this.#state === "behind") this.#host.enqueue(this);
  }

  advance(budget: TickBudget): boolean {
    let isDone = true;
    this.#guarded(() => {
      if (this.#state === "loading") isDone = !this.#load(budget);
      if (this.#state === "behind") isDone = !this.#catchUp(budget);
    });
    return isDone;
  }

  close(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#stopLoading();
    this.#sending = undefined;
    this.#delivered = undefined;
    this.backpressure.forget(this);
    this.group.leave(this);
    this.#host.forget(this);
  }

  end(message: ErrorMessage): void {
    if (this.#state === "ended") return;
    this.close();
    this.backpressure.sink.end(message);
  }

  fail(error: unknown): void {
    const message = endingFor(this.id, error, "reading");
    const host = this.#host;
    const { sql } = this.group.plan;
    const fields = { live_id: this.liveId, user: this.principal.userId, sql };
    if (message.code === "SUBSCRIPTION_FAILED") {
      if (isExpected(error))
        host.log.error("a live query has ended", { ...fields, cause: stackOf(error) });
      else host.onBug(error, "a live query", fields);
    }
    this.end(message);
  }

  row(): LiveRow {
    const { plan, stateBytes } = this.group;
    return liveRowOf(this, {
      clock: this.#host.clock,
      createdMs: this.#createdMs,
      tableIds: plan.tables.map(({ tableId }) => tableId),
      query: plan.sql,
      options: this.#options,
      position: this.position,
      stateBytes,
      tally: this.#tally,
    });
  }

  /**
   * Returns the distance between the position and the newest commit, in milliseconds; undefined if
   * there is no position.
   */
  get lagMs(): number | undefined {
    return lagMsOf(this.#host.store, this.position);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.fail(error);
    }
  }

  #acknowledge(control: Omit<BatchControl, "batch_num">): void {
    const { claimsKey, fields, keyFields = [], sort } = this.group.plan;
    const nameOf = (field: number): string => fields[field]?.name ?? "";
    const terms = sort.map((term) => sortTerm(term, nameOf(term.field)));
    const result: Pick<SubscriptionAck, "key_columns" | "sort"> = {
      key_columns: keyFields.map(nameOf),
      ...(terms.length > 0 && { sort: terms }),
    };
    const message = ackMessage({
      subscriptionId: this.id,
      control: { batch_num: 0, ...control },
      schema: schemaOf(fields),
      claimsKey,
      result,
    });
    this.backpressure.send(shared(message));
  }

  /** Records the state that the client will have once it has loaded. */
  noteLoaded(state: ResultState): void {
    this.#delivered = state;
  }

  /** Serves the open requests. Returns whether the budget was used up first. */
  #load(budget: TickBudget): boolean {
    const loading = this.#loading;
    if (loading === undefined) {
      this.#beginLiveOnly();
      return false;
    }
    while (this.#state === "loading" && loading.isRequested) {
      if (this.backpressure.isFull) {
        this.backpressure.addWaiting(this);
        return false;
      }
      const step = loading.next(budget);
      if (step === undefined) return true;
      if (step === "waiting") return false;
      if (step.kind === "batch") this.#sendBatch(loading, step);
      else this.backpressure.send(shared(changeMessage(step.pending, this.id)));
      if (budget.isSpent) return this.#state === "loading";
    }
    return false;
  }

  /** Begins a live-only subscription with the first state that is not older than its boundary. */
  #beginLiveOnly(): void {
    const state = newestState(this.group, this.#boundary);
    if (state === undefined) return;
    this.#acknowledge({ has_more: false, status: "ready", last_seq_id: state.seq });
    this.#delivered = state;
    this.#state = "behind";
  }

  #sendBatch(loading: Loading, step: BatchStep): void {
    const { isLast, rows } = step;
    const control = loading.count(step);
    if (isLast) {
      this.#state = "behind";
      this.#stopLoading();
    }
    this.backpressure.send(sharedBatch({ subscriptionId: this.id, rows, control }));
  }

  /**
   * Sends steps until the client has the newest state or its queue is full. Returns whether the
   * budget was used up first.
   */
  #catchUp(budget: TickBudget | undefined): boolean {
    while (this.#state === "behind") {
      if (this.#sending !== undefined && !this.#send(this.#sending, budget)) {
        if (!this.backpressure.isFull) return true;
        this.backpressure.addWaiting(this);
        return false;
      }
      const delivered = this.#delivered;
      assert(delivered !== undefined, "live result: ready subscription has no delivered state");
      // Once the review is complete, the group is evaluated again and calls `take`.
      if (this.group.isSuspended) return false;
      if (this.group.state?.rows === delivered.rows) {
        this.#state = "following";
        this.#delivered = undefined;
        return false;
      }
      const step = this.group.stepFrom(delivered);
      if (step !== undefined) this.#sending = { ...step, sentCount: 0 };
    }
    return false;
  }

  /**
   * Sends the remaining messages of a step. Returns false if the queue was full or the budget was
   * used up first.
   */
  #send(sending: SendingStep, budget: TickBudget | undefined): boolean {
    const { after, before, messages } = sending;
    for (;;) {
      if (this.backpressure.isFull || budget?.isSpent === true) return false;
      const message = messages.message(sending.sentCount, this.id);
      if (message === undefined) break;
      this.backpressure.send(message);
      sending.sentCount += 1;
      budget?.spend(UNITS_PER_MESSAGE);
    }
    this.#sending = undefined;
    this.#delivered = after;
    const isByTime = before?.seq === after.seq;
    if (messages.changeCount > 0) this.#count(messages, isByTime);
    return true;
  }

  #count({ changeCount, seq }: ResultStep["messages"], isByTime: boolean): void {
    this.#tally ??= new ChangeTally();
    const sent = { count: changeCount, lastSeq: seq, createdMs: this.#createdMs, isByTime };
    countSent(this.#tally, sent, this.#host);
  }

  #stopLoading(): void {
    this.#loading?.close();
    this.#loading = undefined;
  }
}

function sortTerm(
  { areNullsFirst, collation, isDescending }: ResultSort,
  column: string,
): SortTerm {
  const direction = isDescending ? "desc" : "asc";
  const nulls = areNullsFirst ? "first" : "last";
  if (collation === undefined) return { column, direction, nulls };
  return { column, direction, nulls, collation: sortCollation(collation) };
}

function sortCollation(rules: IcuRules): SortCollation {
  const { ignoresPunctuation, isDeterministic, locale, sensitivity } = rules;
  return {
    locale,
    sensitivity,
    ignore_punctuation: ignoresPunctuation === true,
    deterministic: isDeterministic,
  };
}
