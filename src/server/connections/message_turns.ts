/**
 * Shares the event loop between what clients send over sockets and everything else.
 *
 * Messages are served as they come, in the turn of their arrival, while they use up no more than a
 * part of the time. Past that they wait, and each later turn serves some of them: one message of
 * each connection in rotation, so that neither a storm of one client nor one of many delays an
 * ordinary request by more than a turn.
 *
 * Invariant: a connection stands here while it has messages waiting that its socket has room to
 * answer.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { ClientFrame } from "./intake.ts";

/** The time of which messages may use up a part, and that part. A turn's worth of a busy server. */
const WINDOW_MS = 16;
const SHARE_MS = 8;

export interface MessageServer {
  /** Serves a message now. */
  serveNow(frame: ClientFrame): void;
  /** Serves the message that has waited longest. Returns whether another can be served. */
  serveWaiting(): boolean;
  /** Serving met a bug: it ends. */
  failed(): void;
}

export class MessageTurns {
  readonly #clock: Clock;
  readonly #onBug: OnBug;
  readonly #waiting = new Set<MessageServer>();
  #windowStartMs: number;
  #spentMs = 0;
  #isScheduled = false;

  /** @param onBug Of a connection whose message waited: the others go on. */
  constructor(clock: Clock, onBug: OnBug) {
    this.#clock = clock;
    this.#onBug = onBug;
    this.#windowStartMs = clock.monotonicMs();
  }

  /** Whether a message that arrives now may be served at once. */
  get hasTime(): boolean {
    if (this.#waiting.size > 0) return false;
    if (this.#spentMs < SHARE_MS) return true;
    return this.#clock.monotonicMs() - this.#windowStartMs >= WINDOW_MS;
  }

  /** Serves a message, which the caller was told there is time for. */
  serve(connection: MessageServer, frame: ClientFrame): void {
    const startMs = this.#clock.monotonicMs();
    if (startMs - this.#windowStartMs >= WINDOW_MS) {
      this.#windowStartMs = startMs;
      this.#spentMs = 0;
    }
    connection.serveNow(frame);
    const endMs = this.#clock.monotonicMs();
    this.#spentMs += endMs - startMs;
    // What took longer than a window has used up the next one, not its own only.
    if (this.#spentMs >= SHARE_MS) this.#windowStartMs = endMs;
  }

  /** Messages of a connection wait, and its socket has room. */
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
    void this.#clock.yield().then(() => this.#turn());
  }

  #turn(): void {
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
