/**
 * Tracks whether a connection's queue is full. The subscriptions of the connection share its
 * socket: when one of them fills the queue, the others have to wait as well.
 */
import type { LiveSink, SharedMessage } from "../contract/live.ts";
import type { Advancing } from "../scheduler/scheduler.ts";

export class ConnectionBackpressure {
  readonly sink: LiveSink;
  /** The number of subscriptions that the connection has. */
  subscriptionCount = 0;
  #isFull = false;
  /**
   * The waiting subscriptions. The set is created on first use, because most connections never fill
   * their queue.
   */
  #waiting: Set<Advancing> | undefined;

  constructor(sink: LiveSink) {
    this.sink = sink;
  }

  /** Whether the queue is full. If so, nothing more may be sent until `drained` is called. */
  get isFull(): boolean {
    return this.#isFull;
  }

  send(message: SharedMessage): void {
    if (!this.sink.send(message)) this.#isFull = true;
  }

  /** Registers a subscription that has more to send once the queue has space. */
  addWaiting(subscription: Advancing): void {
    this.#waiting ??= new Set();
    this.#waiting.add(subscription);
  }

  forget(subscription: Advancing): void {
    this.#waiting?.delete(subscription);
  }

  /** Records that the queue has space again. Returns the subscriptions that were waiting. */
  drained(): Iterable<Advancing> {
    this.#isFull = false;
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    return waiting;
  }
}
