/**
 * Limits the messages from a client: their rate, the number of invalid messages, and the number of
 * messages that wait because the client is not reading or the server is serving other clients.
 *
 * All state is allocated on first use, so that ten thousand idle connections need none.
 */
import { TokenBucket } from "../admission/rate_limit.ts";

/** If a client sends this many invalid messages within the window, its connection is closed. */
const INVALID_MESSAGES_MAX = 10;
const INVALID_WINDOW_MS = 60_000;

/**
 * The maximum number of client messages waiting until the socket drains or other clients have been
 * served.
 */
const WAITING_COUNT_MAX = 1024;

/** How long it takes an unused bucket to become full again, in milliseconds. */
const BUCKET_FILL_MS = 1000;

export type ClientFrame = string | Uint8Array;

export interface IntakeLimits {
  readonly max_message_size: number;
  /** The maximum number of messages per second; 0 means no limit. */
  readonly messages_per_sec: number;
}

export class Intake {
  readonly #limits: IntakeLimits;
  #bucket: TokenBucket | undefined;
  #waiting: ClientFrame[] | undefined;
  #waitingBytes = 0;
  #invalidAtMs: number[] | undefined;

  constructor(limits: IntakeLimits) {
    this.#limits = limits;
  }

  get hasWaiting(): boolean {
    return this.#waiting !== undefined;
  }

  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /**
   * Returns whether this object has no state left, so that a new object would behave in the same
   * way.
   */
  isIdle(nowMs: number): boolean {
    const isFull = this.#bucket === undefined || nowMs - this.#bucket.updatedMs >= BUCKET_FILL_MS;
    const oldest = this.#invalidAtMs?.at(-1);
    const isForgiven = oldest === undefined || nowMs - oldest >= INVALID_WINDOW_MS;
    return isFull && isForgiven && this.#waiting === undefined;
  }

  /**
   * Charges a message to the rate limit. Returns how many milliseconds the client has to wait; 0
   * if it need not wait.
   */
  rateWaitMs(nowMs: number): number {
    const { messages_per_sec: perSecond } = this.#limits;
    if (perSecond === 0) return 0;
    this.#bucket ??= new TokenBucket({ perSecond, nowMs });
    return this.#bucket.take(perSecond, nowMs);
  }

  /** Counts an invalid message. Returns whether the limit is exceeded. */
  countInvalid(nowMs: number): boolean {
    this.#invalidAtMs ??= [];
    this.#invalidAtMs.push(nowMs);
    if (this.#invalidAtMs.length < INVALID_MESSAGES_MAX) return false;
    const oldest = this.#invalidAtMs.shift() ?? nowMs;
    return nowMs - oldest < INVALID_WINDOW_MS;
  }

  /** Stores a frame for later. Returns false, without storing the frame, if the queue is full. */
  wait(frame: ClientFrame): boolean {
    const bytes = this.#waitingBytes + frame.length;
    const count = this.#waiting?.length ?? 0;
    if (count >= WAITING_COUNT_MAX || bytes > 4 * this.#limits.max_message_size) return false;
    this.#waiting ??= [];
    this.#waiting.push(frame);
    this.#waitingBytes = bytes;
    return true;
  }

  /** Returns the frame that has waited longest; undefined if none is waiting. */
  next(): ClientFrame | undefined {
    const frame = this.#waiting?.shift();
    if (frame !== undefined) this.#waitingBytes -= frame.length;
    if (this.#waiting?.length === 0) this.#waiting = undefined;
    return frame;
  }

  dropWaiting(): void {
    this.#waiting = undefined;
    this.#waitingBytes = 0;
  }
}
