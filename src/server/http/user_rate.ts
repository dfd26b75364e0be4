/** Limits how often each user may run statements, across all endpoints. */
import type { Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { RateLimiter } from "../admission/rate_limit.ts";
import { HttpError } from "./http_error.ts";

export class UserRate {
  readonly #limiter: RateLimiter;
  readonly #perSecond: number;

  constructor(clock: Clock, perSecond: number) {
    this.#limiter = new RateLimiter({ clock, perSecond });
    this.#perSecond = perSecond;
  }

  /**
   * Counts a request towards its user's rate, and refuses it if the rate is exceeded.
   * @throws {HttpError} 429 RATE_LIMIT_EXCEEDED
   */
  take({ actorId }: Principal): void {
    const waitMs = this.#limiter.take(actorId);
    if (waitMs === 0) return;
    throw new HttpError(
      429,
      "RATE_LIMIT_EXCEEDED",
      `Too many requests: a user may send at most ${this.#perSecond} per second`,
      { retryAfterSeconds: Math.ceil(waitMs / 1000) },
    );
  }
}
