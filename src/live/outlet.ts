/**
 * The socket of one connection, as its subscriptions share it: when one of them fills its queue,
 * the others wait as well.
 */
import type { LiveSink, SharedMessage } from "./live.ts";

export class Outlet<Waiting> {
  readonly sink: LiveSink;
  /** How many subscriptions it has. */
  subscriptionCount = 0;
  #isFull = false;
  /** Made when someone waits: most connections never fill. */
  #waiting: Set<Waiting> | undefined;

  constructor(sink: LiveSink) {
    this.sink = sink;
  }

  /** Nothing more is to be sent until `drained`. */
  get isFull(): boolean {
    return this.#isFull;
  }

  send(message: SharedMessage): void {
    if (!this.sink.send(message)) this.#isFull = true;
  }

  /** Remembers who has more to send once there is room. */
  addWaiting(subscription: Waiting): void {
    this.#waiting ??= new Set();
    this.#waiting.add(subscription);
  }

  forget(subscription: Waiting): void {
    this.#waiting?.delete(subscription);
  }

  /** There is room again. Returns who waited. */
  drained(): Iterable<Waiting> {
    this.#isFull = false;
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    return waiting;
  }
}
