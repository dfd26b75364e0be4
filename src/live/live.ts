/**
 * Live queries, as the server sees them. `live_engine.ts` implements this.
 *
 * A subscription is a cursor over `_seq`: there is no buffer of changes, so a slow client costs a
 * position, not a queue. The engine calls the sink in the turn in which a message is ready; a sink
 * that is over its budget says so, and the engine waits for `drained` before it reads on.
 */
import type { Principal } from "../auth/mod.ts";
import type { Seq } from "../base/seq.ts";
import type { BatchControl, DataMessage, ErrorMessage, SubscriptionSpec } from "../protocol/mod.ts";
import type { LiveMatch, LivePlan, LiveRow } from "../sql/mod.ts";
import type { DeliveryReport } from "./delivery_times.ts";
import type { RowPage } from "./row_page.ts";

/** A data message that many sockets may share: each encoding is made once, by whoever needs it. */
export interface SharedMessage {
  readonly message: DataMessage;
  /** The same, of a batch whose rows are still columns: `message` makes objects of them. */
  readonly paged?: PagedBatch;
  /** Encoded forms by number of the format, filled by the server's frames. */
  readonly encoded: (string | Uint8Array | undefined)[];
}

/** An `initial_data_batch` by its parts. */
export interface PagedBatch {
  readonly subscriptionId: string;
  readonly rows: RowPage;
  readonly control: BatchControl;
}

/** Where the messages of one connection go. */
export interface LiveSink {
  /** What operators know the connection by. Asked when it is shown, so that none is kept. */
  readonly connectionId: string;
  /**
   * The engine's own outlet of this connection while it has subscriptions. It lies here because a
   * table of all connections would cost each idle one an entry.
   */
  outlet?: unknown;
  /**
   * Takes a message, always. Returns false when the socket's queue is now over its budget: the
   * engine then sends nothing more to this sink until `LiveSubscription.drained`.
   */
  send(message: SharedMessage): boolean;
  /** Bytes that wait for the network. */
  readonly queuedBytes: number;
  /** The subscription is over; the message says why. Always taken. */
  end(message: ErrorMessage): void;
}

/** Behind, it has changes to catch up with; following, it is sent each as it comes. */
export type SubscriptionState = "loading" | "behind" | "following" | "ended";

export interface LiveSubscription {
  readonly id: string;
  readonly state: SubscriptionState;
  /**
   * Everything up to here has been sent, so that its client may resume from here. Undefined while
   * the first batch is not complete, and while it is not known whether a changed definition ends
   * it: who resumes from above the change keeps rows of before it.
   */
  readonly position: Seq | undefined;
  /** Asks for one more batch; counted while loading, ignored after. */
  nextBatch(): void;
  /** The sink has room again: all of its subscriptions that wait go on. */
  drained(): void;
  /** Ends it without a message. */
  close(): void;
}

/** Refuses a subscription. `message` is ready to be sent; its `subscription_id` is set. */
export class SubscriptionError extends Error {
  readonly response: ErrorMessage;
  /** Whether a right is missing, even though the error says that the table does not exist. */
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
   * Opens a live query: sends the ack and, unless live only, the first batch, in this turn.
   *
   * @throws {SubscriptionError} If it cannot be.
   */
  subscribe(options: {
    principal: Principal;
    spec: SubscriptionSpec;
    sink: LiveSink;
  }): LiveSubscription;
  /** What `system.live` shows, one row a subscription. */
  subscriptions(): readonly LiveRow[];
  /** Where a query would stand among those that are open. */
  match(plan: LivePlan): LiveMatch;
  /** What `/metrics` shows of deliveries. */
  delivery(): DeliveryReport;
  /** KILL LIVE QUERY. Returns false when there is none. */
  kill(liveId: string): boolean;
  /** Ends every subscription with SHUTTING_DOWN. */
  shutdown(): void;
}
