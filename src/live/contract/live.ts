/**
 * Defines the interface through which the server uses live queries. `live_engine.ts` implements
 * it.
 *
 * A subscription is a cursor over `_seq`. There is no buffer of changes, so a slow client costs
 * only a position, not a queue. The engine calls the sink in the same tick in which a message is
 * ready. If a sink reports that it is over its budget, the engine waits for `drained` before it
 * reads further.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Seq } from "../../base/seq.ts";
import type {
  BatchControl,
  DataMessage,
  ErrorMessage,
  SubscriptionSpec,
} from "../../protocol/mod.ts";
import type { LiveMatch, LivePlan, LiveRow, ResultMatch } from "../../sql/mod.ts";
import type { DeliveryReport } from "../measures/delivery_times.ts";
import type { RowPage } from "../rows/row_page.ts";

/**
 * A data message that may be sent on many sockets. Each encoding is produced once, on first use.
 */
export interface SharedMessage {
  readonly message: DataMessage;
  /**
   * The batch in columnar form, until its rows have been turned into objects. Reading `message`
   * creates the objects.
   */
  readonly paged?: PagedBatch;
  /** The encoded forms of the message, indexed by format number. `server/frames` fills them in. */
  readonly encoded: (string | Uint8Array | undefined)[];
}

/** The fields of an `initial_data_batch` message. */
export interface PagedBatch {
  readonly subscriptionId: string;
  readonly rows: RowPage;
  readonly control: BatchControl;
}

/** Receives the messages for a connection. */
export interface LiveSink {
  /**
   * The connection's id as shown to operators. It is computed on demand, so that it need not be
   * stored.
   */
  readonly connectionId: string;
  /**
   * The backpressure state of this connection while it has subscriptions. It is stored here
   * because a separate table would need an entry for each idle connection.
   */
  backpressure?: unknown;
  /**
   * Always accepts the message. Returns false if the socket's queue is then over its budget. In
   * that case, the engine sends nothing more to this sink until `LiveSubscription.drained` is
   * called.
   */
  send(message: SharedMessage): boolean;
  /** The number of bytes waiting for the network. */
  readonly queuedBytes: number;
  /**
   * Called when a subscription has ended. `message` states the reason; the sink always accepts it.
   */
  end(message: ErrorMessage): void;
}

/**
 * The state of a subscription. "behind" means that the subscription still has to catch up with
 * changes; "following" means that it receives each change as it occurs.
 */
export type SubscriptionState = "loading" | "behind" | "following" | "ended";

export interface LiveSubscription {
  readonly id: string;
  readonly state: SubscriptionState;
  /**
   * The seq up to which everything has been sent, and from which the client may therefore resume.
   * Undefined until the first batch is complete, and during a review after a definition has
   * changed: a client that resumed after that point would keep rows that its query no longer
   * returns.
   */
  readonly position: Seq | undefined;
  /** Requests another batch. Requests are counted during loading and ignored afterwards. */
  nextBatch(): void;
  /**
   * Tells the engine that the socket's queue has space again, so that all waiting subscriptions of
   * the sink continue.
   */
  drained(): void;
  /** Ends the subscription without a message. */
  close(): void;
}

/**
 * Thrown to refuse a subscription. The `response` can be sent as it is: its `subscription_id` is
 * set.
 */
export class SubscriptionError extends Error {
  readonly response: ErrorMessage;
  /**
   * Whether the user lacks a right and the error conceals this by claiming that the table
   * does not exist.
   */
  readonly isHidden: boolean;

  constructor(response: ErrorMessage, { isHidden = false }: { isHidden?: boolean } = {}) {
    super(response.message);
    this.name = "SubscriptionError";
    this.response = response;
    this.isHidden = isHidden;
  }
}

export interface LiveEngine {
  /**
   * Opens a live query. The ack is sent in the current tick, as is the first batch, unless the
   * client asked for changes only.
   *
   * @throws {SubscriptionError} If the query cannot be opened.
   */
  subscribe(options: {
    principal: Principal;
    spec: SubscriptionSpec;
    sink: LiveSink;
  }): LiveSubscription;
  /** Returns the rows of `system.live`, one per subscription. */
  subscriptions(): readonly LiveRow[];
  /** Finds the existing group that a new subscription to a query would join. */
  match(plan: LivePlan): LiveMatch;
  /** Finds the group of a materialised query. */
  matchResult(fingerprint: string): ResultMatch | undefined;
  /** Returns the delivery figures for `/metrics`. */
  delivery(): DeliveryReport;
  /** Executes KILL LIVE QUERY. Returns false if no such subscription exists. */
  kill(liveId: string): boolean;
  /** Ends every subscription with SHUTTING_DOWN. */
  shutdown(): void;
}
