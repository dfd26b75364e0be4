/**
 * Schedules the requests on the client's socket. Requests are sent immediately until the server
 * refuses one, and from then on at a pace that the server accepts.
 *
 *     flowing ──refused──► paused ──its time is over──► paced ──nothing left──► flowing
 *                            ▲                            │
 *                            └──────────refused───────────┘
 *
 * A refusal does not say which message was refused. If only one message is unanswered, it must be
 * that one. If several are unanswered, a ping follows them: the server answers in order, so all
 * messages that are still unanswered when the pong arrives were refused. Only these are sent
 * again, because a second `subscribe` would restart the query. After a refusal, a window limits
 * the number of unanswered messages: it grows by one each time a full window has been answered,
 * and each refusal halves it.
 *
 * An `unsubscribe` has no response, so if several messages are unanswered, it is not sent again:
 * the heartbeat shows which queries the server is still following.
 */
import type { ClientMessage } from "../protocol/mod.ts";
import type { ClientEnvironment } from "./environment.ts";

/** A request to send. The id identifies the subscription or, for a ping, the ping itself. */
export interface SentRequest {
  readonly type: "subscribe" | "next_batch" | "unsubscribe" | "ping";
  readonly id: string;
}

export interface OutgoingOptions {
  readonly environment: Pick<ClientEnvironment, "after">;
  /** Returns the message for a request; undefined if the request is no longer needed. */
  readonly messageOf: (asked: SentRequest) => ClientMessage | undefined;
  readonly send: (message: ClientMessage) => void;
}

/** The ping sent after a refusal if several messages are unanswered. */
const SETTLING: SentRequest = { type: "ping", id: "settling" };

export class Outgoing {
  readonly #options: OutgoingOptions;
  /** The requests to send, keyed so that no request is queued twice. */
  #waiting = new Map<string, SentRequest>();
  /**
   * The messages that have been sent but not answered, in the order in which they were sent. An
   * `unsubscribe`, which has no response, is removed once a later message has been answered.
   */
  readonly #sent = new Map<string, SentRequest>();
  #isPaused = false;
  #window = Number.POSITIVE_INFINITY;
  #cancelPause: (() => void) | undefined;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  ask(asked: SentRequest): void {
    this.#waiting.set(keyOf(asked), asked);
    this.#sendMore();
  }

  /** Records that a message has been answered, or that an answer is no longer expected. */
  answered(asked: SentRequest): void {
    const key = keyOf(asked);
    if (!this.#sent.has(key)) return;
    for (const [sentKey, { type }] of this.#sent) {
      if (sentKey === key || type === "unsubscribe") this.#sent.delete(sentKey);
      if (sentKey === key) break;
    }
    if (this.#sent.size > 0 || this.#isPaused) return;
    this.#window += 1;
    this.#sendMore();
  }

  /** Handles a pong, which arrives after the responses to all earlier messages. */
  pong(id: string): void {
    const key = keyOf({ type: "ping", id });
    if (!this.#sent.has(key)) return;
    const refused = new Map<string, SentRequest>();
    for (const [sentKey, asked] of this.#sent) {
      this.#sent.delete(sentKey);
      if (sentKey === key) break;
      const mayBeServed = asked.type === "unsubscribe" || asked.type === "ping";
      if (this.#isPaused && !mayBeServed) refused.set(sentKey, asked);
    }
    this.#waiting = new Map([...refused, ...this.#waiting]);
    if (this.#isPaused && id === SETTLING.id) this.#goOn();
    else this.#sendMore();
  }

  /** Handles a refusal: the server did not process one of the messages. */
  refused(retryAfterMs: number): void {
    if (!this.#isPaused) {
      const isFlowing = this.#window === Number.POSITIVE_INFINITY;
      this.#window = isFlowing ? 1 : Math.max(1, Math.floor(this.#window / 2));
      this.#isPaused = true;
    }
    this.#cancelPause?.();
    this.#cancelPause = this.#options.environment.after(retryAfterMs, () => this.#settle());
  }

  /** Forgets all messages, because the socket has closed. */
  clear(): void {
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    this.#waiting.clear();
    this.#sent.clear();
    this.#isPaused = false;
    this.#window = Number.POSITIVE_INFINITY;
  }

  #settle(): void {
    this.#cancelPause = undefined;
    if (this.#sent.size > 1) {
      this.#sent.delete(keyOf(SETTLING));
      this.#send(SETTLING);
      return;
    }
    this.#waiting = new Map([...this.#sent, ...this.#waiting]);
    this.#sent.clear();
    this.#goOn();
  }

  #goOn(): void {
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    this.#isPaused = false;
    this.#sendMore();
  }

  #sendMore(): void {
    if (this.#isPaused) return;
    for (const [key, asked] of this.#waiting) {
      if (this.#isWindowFull) return;
      this.#waiting.delete(key);
      this.#send(asked);
    }
    if (this.#sent.size === 0) this.#window = Number.POSITIVE_INFINITY;
  }

  #send(asked: SentRequest): void {
    const message = this.#options.messageOf(asked);
    if (message === undefined) return;
    this.#sent.set(keyOf(asked), asked);
    this.#options.send(message);
  }

  get #isWindowFull(): boolean {
    if (this.#window === Number.POSITIVE_INFINITY) return false;
    const awaited = [...this.#sent.values()].filter(({ type }) => type !== "unsubscribe");
    return awaited.length >= this.#window;
  }
}

function keyOf({ id, type }: SentRequest): string {
  return `${type} ${id}`;
}
