/**
 * Caches a value from a provider, and fetches it again when it is no longer fresh.
 *
 *     none ──get──► loading ──► fresh ──freshMs──► old ──get──► loading ──► fresh
 *                      │                                           │
 *                      └─ fails: the callers fail                  └─ fails: the old value is used
 *                                                                     until 2 × freshMs
 *
 * - Concurrent callers share one fetch.
 * - After a failure, no new fetch starts for {@linkcode RETRY_MS}, so that a slow provider delays
 *   only one request during that time.
 */
import type { Clock } from "../../base/clock.ts";

/** The pause after a failed fetch, in milliseconds. */
const RETRY_MS = 10_000;

/** The minimum time between two fetches triggered by unknown keys, in milliseconds. */
const RENEW_MS = 30_000;

export interface FreshValueOptions<Value> {
  readonly clock: Clock;
  readonly freshMs: number;
  /** Fetches the current value from the provider. */
  readonly load: () => Promise<Value>;
  /** Called once per failed fetch, however many callers are waiting for the value. */
  readonly onFailure: (error: unknown) => void;
}

export class FreshValue<Value> {
  readonly #options: FreshValueOptions<Value>;
  #held: { readonly value: Value; readonly loadedMs: number } | undefined;
  #failure: { readonly error: unknown; readonly atMs: number } | undefined;
  #loading: Promise<Value> | undefined;
  /** The monotonic time at which `renewed` last began a fetch, in milliseconds. */
  #renewedMs = -Infinity;

  constructor(options: FreshValueOptions<Value>) {
    this.#options = options;
  }

  /**
   * Returns the cached value if it can be used without waiting; otherwise undefined. During the
   * pause after a failure, an old value can also be used.
   */
  get current(): Value | undefined {
    const { freshMs } = this.#options;
    const ageMs = this.#ageMs;
    const isUsable = ageMs < freshMs || (ageMs < 2 * freshMs && this.#recentFailure !== undefined);
    return isUsable ? this.#held?.value : undefined;
  }

  /**
   * Returns the cached value, fetching it first if necessary. @throws The error of a failed fetch.
   */
  async get(): Promise<Value> {
    const { current } = this;
    if (current !== undefined) return current;
    const failure = this.#recentFailure;
    if (failure !== undefined) throw failure.error;
    return await this.#load();
  }

  /**
   * Fetches the value even if the cached one is still fresh, unless the last such fetch began less
   * than {@linkcode RENEW_MS} ago. @throws The error of a failed fetch.
   */
  async renewed(): Promise<Value> {
    if (this.#loading !== undefined) return await this.#loading;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - this.#renewedMs < RENEW_MS) return await this.get();
    this.#renewedMs = nowMs;
    return await this.#load();
  }

  #load(): Promise<Value> {
    this.#loading ??= this.#fetched().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #fetched(): Promise<Value> {
    const { clock, freshMs, load, onFailure } = this.#options;
    try {
      const value = await load();
      this.#held = { value, loadedMs: clock.monotonicMs() };
      this.#failure = undefined;
      return value;
    } catch (error) {
      this.#failure = { error, atMs: clock.monotonicMs() };
      onFailure(error);
      if (this.#held === undefined || this.#ageMs >= 2 * freshMs) throw error;
      return this.#held.value;
    }
  }

  get #ageMs(): number {
    const { clock } = this.#options;
    return this.#held === undefined ? Infinity : clock.monotonicMs() - this.#held.loadedMs;
  }

  get #recentFailure(): { readonly error: unknown } | undefined {
    const failure = this.#failure;
    if (failure === undefined) return undefined;
    const isRecent = this.#options.clock.monotonicMs() - failure.atMs < RETRY_MS;
    return isRecent ? failure : undefined;
  }
}
