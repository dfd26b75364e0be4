/**
 * What one client may send: how often, how much that is invalid, and how much that waits while it
 * does not read or the server has others to serve.
 *
 * Nothing is allocated before it is needed: of ten thousand idle connections none has a list here.
 */
import { TokenBucket } from "../common/rate_limit.ts";

/** This many invalid messages within the window close the connection. */
const INVALID_MESSAGES_MAX = 10;
const INVALID_WINDOW_MS = 60_000;

/** Client messages that wait for the socket to drain, or for their turn. */
const WAITING_COUNT_MAX = 1024;

/** A bucket that was not asked for so long is full again. */
const BUCKET_FILL_MS = 1000;

export type ClientFrame = string | Uint8Array;

export interface IntakeLimits {
  readonly max_message_size: number;
  /** 0 is no limit. */
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

  /** Nothing that matters is remembered any more: a new one would do the same. */
  isIdle(nowMs: number): boolean {
    const isFull = this.#bucket === undefined || nowMs - this.#bucket.updatedMs >= BUCKET_FILL_MS;
    const oldest = this.#invalidAtMs?.at(-1);
    const isForgiven = oldest === undefined || nowMs - oldest >= INVALID_WINDOW_MS;
    return isFull && isForgiven && this.#waiting === undefined;
  }

  /**
   * Takes one message from the rate. Returns after how many milliseconds to try again, 0 for now.
   */
  rateWaitMs(nowMs: number): number {
    const { messages_per_sec: perSecond } = this.#limits;
    if (perSecond === 0) return 0;
    this.#bucket ??= new TokenBucket({ perSecond, nowMs });
    return this.#bucket.take(perSecond, nowMs);
  }

  /** Counts an invalid message. Returns whether that is one too many. */
  countInvalid(nowMs: number): boolean {
    this.#invalidAtMs ??= [];
    this.#invalidAtMs.push(nowMs);
    if (this.#invalidAtMs.length < INVALID_MESSAGES_MAX) return false;
    const oldest = this.#invalidAtMs.shift() ?? nowMs;
    return nowMs - oldest < INVALID_WINDOW_MS;
  }

  /** Keeps a frame for later. Returns false, and does not keep it, when as many wait as may. */
  wait(frame: ClientFrame): boolean {
    const bytes = this.#waitingBytes + frame.length;
    const count = this.#waiting?.length ?? 0;
    if (count >= WAITING_COUNT_MAX || bytes > 4 * this.#limits.max_message_size) return false;
    this.#waiting ??= [];
    this.#waiting.push(frame);
    this.#waitingBytes = bytes;
    return true;
  }

  /** The frame that has waited longest; undefined when none does. */
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
