/**
 * Token buckets by key: how often an address or a user may come.
 *
 * A bucket holds one second's worth and fills continuously. A key that has been quiet long enough
 * for its bucket to be full again is forgotten, so memory follows the keys that are active.
 */
import type { Clock } from "../base/clock.ts";

/** Buckets kept before the full ones are swept: bounds both memory and the time of a sweep. */
const BUCKETS_SWEEP_COUNT = 16384;

interface Bucket {
  tokens: number;
  updatedMs: number;
}

export class RateLimiter {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, Bucket>();
  #sweepAtCount = BUCKETS_SWEEP_COUNT;

  /** `perSecond` 0 limits nothing. */
  constructor({ clock, perSecond }: { clock: Clock; perSecond: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Takes one token. Returns 0, or the milliseconds until there is one. */
  take(key: string): number {
    const perSecond = this.#perSecond;
    if (perSecond === 0) return 0;
    const nowMs = this.#clock.monotonicMs();
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= this.#sweepAtCount) this.#sweep(nowMs);
      this.#buckets.set(key, { tokens: perSecond - 1, updatedMs: nowMs });
      return 0;
    }
    const gained = ((nowMs - bucket.updatedMs) * perSecond) / 1000;
    bucket.tokens = Math.min(perSecond, bucket.tokens + gained);
    bucket.updatedMs = nowMs;
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * 1000) / perSecond);
    bucket.tokens -= 1;
    return 0;
  }

  #sweep(nowMs: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (nowMs - bucket.updatedMs >= 1000) this.#buckets.delete(key);
    }
    // When nothing was quiet the next sweep waits for twice as many: the cost per key stays constant.
    this.#sweepAtCount = Math.max(BUCKETS_SWEEP_COUNT, this.#buckets.size * 2);
  }
}
