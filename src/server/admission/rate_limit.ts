/**
 * Token buckets that limit how often an address, a user or a connection may send requests.
 *
 * A bucket holds one second's worth of tokens and is refilled continuously. The limiter removes
 * buckets that are full again, so its memory depends only on the number of active keys.
 */
import type { Clock } from "../../base/clock.ts";

/**
 * The number of buckets at which a sweep removes all full buckets. It limits the memory of the
 * limiter and the duration of a sweep.
 */
const BUCKETS_SWEEP_COUNT = 16384;

export class TokenBucket {
  #tokens: number;
  #updatedMs: number;

  constructor({ perSecond, nowMs }: { perSecond: number; nowMs: number }) {
    this.#tokens = perSecond;
    this.#updatedMs = nowMs;
  }

  /** When a token was last requested, on the monotonic clock. */
  get updatedMs(): number {
    return this.#updatedMs;
  }

  /** Takes a token. Returns 0, or the milliseconds until one is available. */
  take(perSecond: number, nowMs: number): number {
    const gained = ((nowMs - this.#updatedMs) * perSecond) / 1000;
    this.#tokens = Math.min(perSecond, this.#tokens + gained);
    this.#updatedMs = nowMs;
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) * 1000) / perSecond);
    this.#tokens -= 1;
    return 0;
  }
}

export class RateLimiter {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, TokenBucket>();
  #sweepAtCount = BUCKETS_SWEEP_COUNT;

  /**
   * Creates a limit on requests per second.
   * @param perSecond Tokens per second; 0 means no limit.
   */
  constructor({ clock, perSecond }: { clock: Clock; perSecond: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Takes a token from a key's bucket. Returns 0, or the milliseconds until one is available. */
  take(key: string): number {
    const perSecond = this.#perSecond;
    if (perSecond === 0) return 0;
    const nowMs = this.#clock.monotonicMs();
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#sweepAtCount) this.#sweep(nowMs);
      bucket = new TokenBucket({ perSecond, nowMs });
      this.#buckets.set(key, bucket);
    }
    return bucket.take(perSecond, nowMs);
  }

  #sweep(nowMs: number): void {
    for (const [key, { updatedMs }] of this.#buckets) {
      if (nowMs - updatedMs >= 1000) this.#buckets.delete(key);
    }
    // The next sweep runs only once the number of remaining buckets has doubled, so that the cost
    // per key stays constant.
    this.#sweepAtCount = Math.max(BUCKETS_SWEEP_COUNT, this.#buckets.size * 2);
  }
}
