/**
 * Divides the event loop's time between messages on sockets and all other work.
 *
 * A message is served in the tick in which it arrives, provided that messages have used no more
 * than a fixed share of the time. Beyond that share, messages wait, and each later tick serves
 * some of them, one message per connection in rotation. Thus, clients that flood the server,
 * however many there are, cannot delay an ordinary request by more than a tick.
 *
 * Invariant: a connection is in this queue while it has waiting messages and its socket has space
 * for the responses.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { ClientFrame } from "./intake.ts";

/**
 * The length of the window within which messages may use a share of the time, in milliseconds:
 * about one tick of a busy server.
 */
const WINDOW_MS = 16;
const SHARE_MS = 8;

export interface MessageServer {
  /** Serves a message immediately. */
  serveNow(frame: ClientFrame): void;
  /** Serves the message that has waited longest. Returns whether another message can be served. */
  serveWaiting(): boolean;
  /** Ends the connection after a bug in serving one of its messages. */
  failed(): void;
}

export class MessageTimeSlices {
  readonly #clock: Clock;
  readonly #onBug: OnBug;
  readonly #waiting = new Set<MessageServer>();
  #windowStartMs: number;
  #spentMs = 0;
  #isScheduled = false;

  /**
   * Creates the scheduler for client messages.
   * @param onBug Called after a bug in serving a waiting message. The other connections continue.
   */
  constructor(clock: Clock, onBug: OnBug) {
    this.#clock = clock;
    this.#onBug = onBug;
    this.#windowStartMs = clock.monotonicMs();
  }

  /** Whether a message arriving now may be served immediately. */
  get hasTime(): boolean {
    if (this.#waiting.size > 0) return false;
    if (this.#spentMs < SHARE_MS) return true;
    return this.#clock.monotonicMs() - this.#windowStartMs >= WINDOW_MS;
  }

  /** Serves a message immediately. The caller must have checked that `hasTime` is true. */
  serve(connection: MessageServer, frame: ClientFrame): void {
    const startMs = this.#clock.monotonicMs();
    if (startMs - this.#windowStartMs >= WINDOW_MS) {
      this.#windowStartMs = startMs;
      this.#spentMs = 0;
    }
    connection.serveNow(frame);
    const endMs = this.#clock.monotonicMs();
    this.#spentMs += endMs - startMs;
    // If the work took longer than a window, it also uses up the next window.
    if (this.#spentMs >= SHARE_MS) this.#windowStartMs = endMs;
  }

  /** Queues a connection that has waiting messages and space in its socket. */
  enqueue(connection: MessageServer): void {
    this.#waiting.add(connection);
    this.#schedule();
  }

  forget(connection: MessageServer): void {
    this.#waiting.delete(connection);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    void this.#clock.yield().then(() => this.#tick());
  }

  #tick(): void {
    this.#isScheduled = false;
    const startMs = this.#clock.monotonicMs();
    for (const connection of this.#waiting) {
      this.#waiting.delete(connection);
      if (this.#serveWaiting(connection)) this.#waiting.add(connection);
      if (this.#clock.monotonicMs() - startMs >= SHARE_MS) break;
    }
    this.#windowStartMs = this.#clock.monotonicMs();
    this.#spentMs = SHARE_MS;
    if (this.#waiting.size > 0) this.#schedule();
  }

  #serveWaiting(connection: MessageServer): boolean {
    try {
      return connection.serveWaiting();
    } catch (error) {
      this.#onBug(error, "a connection");
      connection.failed();
      return false;
    }
  }
}
