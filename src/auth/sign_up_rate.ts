/**
 * Limits how many accounts strangers may create. One limit applies to all addresses together, and
 * a tenth of it to each address, so that a single sender cannot prevent everybody else from
 * signing up. Every attempt counts, because a response must not reveal whether the attempt created
 * an account.
 *
 * Memory is limited: when there are too many senders, the oldest one is forgotten.
 */
import { type Clock, HOUR_MS } from "../base/clock.ts";
import { putNewest } from "../base/newest.ts";
import { senderOf } from "../base/sender.ts";
import type { Caller } from "./answers.ts";
import { AuthError } from "./auth_error.ts";

/** The share of all attempts that a single address may use. */
const SHARE = 0.1;

/**
 * The maximum number of senders whose attempts are counted. Their counters take up a few
 * megabytes.
 */
const SENDERS_MAX = 20_000;

/** The number of sign-up attempts currently allowed. It recovers to its maximum within an hour. */
interface Allowance {
  readonly left: number;
  readonly atMs: number;
}

export class SignUpRate {
  readonly #clock: Clock;
  readonly #perHour: number;
  #all: Allowance;
  readonly #bySender = new Map<string, Allowance>();

  /**
   * Creates a limit on the accounts created per hour.
   * @param options.perHour The maximum number of accounts per hour; 0 means no limit.
   */
  constructor({ clock, perHour }: { clock: Clock; perHour: number }) {
    this.#clock = clock;
    this.#perHour = perHour;
    this.#all = { left: perHour, atMs: clock.monotonicMs() };
  }

  /**
   * Counts a sign-up attempt against the limits. Callers on this machine are subject only to the
   * limit for all addresses together.
   * @throws {AuthError} rate_limited
   */
  take({ address, isLocal }: Pick<Caller, "address" | "isLocal">): void {
    if (this.#perHour === 0) return;
    const sender = senderOf(address);
    const share = Math.max(1, this.#perHour * SHARE);
    const own = isLocal ? undefined : this.#refilled(this.#bySender.get(sender), share);
    const all = this.#refilled(this.#all, this.#perHour);
    if (own !== undefined && own.left < 1) throw refusal(own, share);
    if (all.left < 1) throw refusal(all, this.#perHour);
    if (own !== undefined) {
      putNewest(this.#bySender, [sender, { ...own, left: own.left - 1 }], SENDERS_MAX);
    }
    this.#all = { ...all, left: all.left - 1 };
  }

  #refilled(before: Allowance | undefined, perHour: number): Allowance {
    const atMs = this.#clock.monotonicMs();
    if (before === undefined) return { left: perHour, atMs };
    const refill = ((atMs - before.atMs) / HOUR_MS) * perHour;
    return { left: Math.min(perHour, before.left + refill), atMs };
  }
}

function refusal({ left }: Allowance, perHour: number): AuthError {
  const waitMs = ((1 - left) / perHour) * HOUR_MS;
  return new AuthError(
    "rate_limited",
    "Too many sign-ups: limits.signups_per_hour sets the maximum, and a single address may " +
      "use at most a tenth of it",
    { retryAfterSeconds: Math.ceil(waitMs / 1000) },
  );
}
