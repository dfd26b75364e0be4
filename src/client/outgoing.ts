/**
 * What the client asks of its socket: at once, until the server says that it is too much, and then
 * at the pace that it allows.
 *
 *     flowing ──refused──► paused ──its time is over──► paced ──nothing left──► flowing
 *                            ▲                            │
 *                            └──────────refused───────────┘
 *
 * A refusal does not name its message. Of a single one that has no answer it is known; of several,
 * a ping is sent behind them: whatever the pong finds without an answer was refused, as the server
 * answers in order. Only that is asked again, since a subscription asked for twice would begin
 * anew. Paced, as many messages are under way as a window allows, which grows by one with each that
 * is served whole and is halved by a refusal.
 *
 * An `unsubscribe` has no answer, so that of several it is not asked again: the heartbeat shows
 * what is still followed.
 */
import type { ClientMessage } from "../protocol/mod.ts";
import type { ClientEnvironment } from "./environment.ts";

/** The id names the subscription, or the ping. */
export interface Asked {
  readonly type: "subscribe" | "next_batch" | "unsubscribe" | "ping";
  readonly id: string;
}

export interface OutgoingOptions {
  readonly environment: Pick<ClientEnvironment, "after">;
  /** What is to be sent now; undefined when nobody wants it any more. */
  readonly messageOf: (asked: Asked) => ClientMessage | undefined;
  readonly send: (message: ClientMessage) => void;
}

/** Of the ping behind messages one of which was refused. */
const SETTLING: Asked = { type: "ping", id: "settling" };

export class Outgoing {
  readonly #options: OutgoingOptions;
  /** By key, so that nothing waits twice. */
  #waiting = new Map<string, Asked>();
  /** Sent, in order, and neither answered nor followed by what was. */
  readonly #sent = new Map<string, Asked>();
  #isPaused = false;
  #window = Number.POSITIVE_INFINITY;
  #cancelPause: (() => void) | undefined;

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  ask(asked: Asked): void {
    this.#waiting.set(keyOf(asked), asked);
    this.#sendMore();
  }

  /** The answer to what was asked has come, or will not. */
  answered(asked: Asked): void {
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

  /** The answer to a ping, and so to all that was sent before it. */
  pong(id: string): void {
    const key = keyOf({ type: "ping", id });
    if (!this.#sent.has(key)) return;
    const refused = new Map<string, Asked>();
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

  /** The server did not process one of the messages. */
  refused(retryAfterMs: number): void {
    if (!this.#isPaused) {
      const isFlowing = this.#window === Number.POSITIVE_INFINITY;
      this.#window = isFlowing ? 1 : Math.max(1, Math.floor(this.#window / 2));
      this.#isPaused = true;
    }
    this.#cancelPause?.();
    this.#cancelPause = this.#options.environment.after(retryAfterMs, () => this.#settle());
  }

  /** The socket is gone, and with it all that was asked. */
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

  #send(asked: Asked): void {
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

function keyOf({ id, type }: Asked): string {
  return `${type} ${id}`;
}
