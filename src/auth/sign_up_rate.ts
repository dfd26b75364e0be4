/**
 * Limits the number of accounts that strangers create, over all addresses. Every attempt counts,
 * because a response must not reveal whether the attempt created an account.
 */
import { type Clock, HOUR_MS } from "../base/clock.ts";
import { AuthError } from "./auth_error.ts";

export class SignUpRate {
  readonly #clock: Clock;
  readonly #perHour: number;
  /** The number of attempts that may follow now. It is refilled within an hour. */
  #left: number;
  #atMs: number;

  /** @param options.perHour The number of attempts per hour; 0 means no limit. */
  constructor({ clock, perHour }: { clock: Clock; perHour: number }) {
    this.#clock = clock;
    this.#perHour = perHour;
    this.#left = perHour;
    this.#atMs = clock.monotonicMs();
  }

  /** Uses up one attempt. @throws {AuthError} rate_limited */
  take(): void {
    if (this.#perHour === 0) return;
    const nowMs = this.#clock.monotonicMs();
    const refill = ((nowMs - this.#atMs) / HOUR_MS) * this.#perHour;
    this.#left = Math.min(this.#perHour, this.#left + refill);
    this.#atMs = nowMs;
    if (this.#left < 1) {
      const waitMs = ((1 - this.#left) / this.#perHour) * HOUR_MS;
      throw new AuthError(
        "rate_limited",
        "Too many sign-ups: the server creates a limited number of accounts per hour (limits.signups_per_hour)",
        { retryAfterSeconds: Math.ceil(waitMs / 1000) },
      );
    }
    this.#left -= 1;
  }
}
