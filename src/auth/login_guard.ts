/**
 * Slows down password guessing.
 *
 * - A pair of login name and sender is locked after a number of consecutive failures, even if the
 *   name does not exist. Other senders can still log in, so no sender can lock out a user.
 * - For each name, the number of failures per hour from all senders together is limited, and
 *   attempts are delayed as the failures mount up. Once the limit is reached, only known devices
 *   may log in: a device that presents a token from an earlier login, or a sender from which the
 *   user has logged in before. The failures of each known device are counted separately.
 * - For each name, only one login is checked at a time, and one more may wait. Each known device
 *   has a separate queue. The limits therefore also apply to simultaneous attempts.
 *
 * The state is lost when the process ends. Memory is limited: when there are too many entries, the
 * oldest one is removed. Creating that many entries takes longer than any entry stays relevant.
 */
import type { Clock } from "../base/clock.ts";
import { putNewest } from "../base/newest.ts";
import { senderOf } from "../base/sender.ts";
import type { Caller } from "./answers.ts";
import { AuthError } from "./auth_error.ts";

export interface LoginGuardOptions {
  clock: Clock;
  /**
   * The number of consecutive failures that locks a login name for a sender; 0 disables the lock.
   */
  failuresMax: number;
  lockMs: number;
}

/** The number of failures for a name within an hour after which only known devices may log in. */
const FAILURES_MAX = 100;
const FAILURES_WINDOW_MS = 3_600_000;

/** The maximum number of logins that may wait to be checked, per name and per known device. */
const WAITING_MAX = 1;
const WAITING_KNOWN_MAX = 16;

/** The maximum number of senders remembered as known per user. */
const KNOWN_SENDERS_MAX = 20;

/**
 * The number of failures for a name within 15 minutes after which every login with that name is
 * delayed.
 */
const SLOW_AFTER_FAILURES = 20;
const SLOW_WINDOW_MS = 15 * 60_000;
const SLOW_BY_MS = 1000;

/** The maximum number of entries in each of the maps, which then take up about 20 MB. */
const ENTRIES_MAX = 100_000;

/** A summary of the recent failed logins with a name. */
export interface LoginTrouble {
  /** The number of consecutive failures from the address with the most failures. */
  readonly failures: number;
  /**
   * The remaining time of the lock, in milliseconds; 0 if the name is not locked for any sender.
   */
  readonly lockedForMs: number;
}

/** An attempt to log in. Its outcome is not known yet. */
export interface Attempt {
  readonly name: string;
  /** The sender of the login attempt, or the device if it is a known one. */
  readonly from: string;
  /** Whether the user has logged in from this sender before. */
  readonly isKnown: boolean;
}

/** The queue of logins for one name or one known device. */
interface AttemptLine {
  readonly waiting: (() => void)[];
}

interface Failures {
  count: number;
  /** The time at which the lock ends, on the monotonic clock; 0 while there is no lock. */
  lockedUntilMs: number;
}

export class LoginGuard {
  readonly #clock: Clock;
  readonly #failuresMax: number;
  readonly #lockMs: number;
  readonly #pairs = new Map<string, Failures>();
  /**
   * The times of the failed logins for a name or a known device, the newest last. Only as many
   * times are kept as it takes to lock the name or the device.
   */
  readonly #times = new Map<string, number[]>();
  /** The known senders of each user: those from which the user has logged in before. */
  readonly #known = new Map<string, Map<string, true>>();
  readonly #lines = new Map<string, AttemptLine>();

  constructor({ clock, failuresMax, lockMs }: LoginGuardOptions) {
    this.#clock = clock;
    this.#failuresMax = failuresMax;
    this.#lockMs = lockMs;
  }

  /**
   * Describes an attempt to log in with a name from an address.
   * @param sessionId The session of the earlier login whose token the device presents.
   */
  attempt(name: string, address: string, sessionId?: string): Attempt {
    if (sessionId !== undefined) return { name, from: `session ${sessionId}`, isKnown: true };
    const from = senderOf(address);
    return { name, from, isKnown: this.#known.get(name)?.has(from) === true };
  }

  /**
   * Returns the number of seconds, at least 1, for which the name stays locked for this sender;
   * undefined if it is not locked.
   */
  lockedForSeconds({ from, name }: Attempt): number | undefined {
    const key = pairKey(name, from);
    const failures = this.#pairs.get(key);
    if (failures === undefined || failures.lockedUntilMs === 0) return undefined;
    const leftMs = failures.lockedUntilMs - this.#clock.monotonicMs();
    if (leftMs > 0) return Math.ceil(leftMs / 1000);
    this.#pairs.delete(key);
    return undefined;
  }

  /**
   * Returns the number of seconds for which only known devices may log in with the name; undefined
   * if this attempt is allowed now.
   */
  closedForSeconds(attempt: Attempt): number | undefined {
    const times = this.#times.get(lineKey(attempt));
    if (times === undefined || times.length < FAILURES_MAX) return undefined;
    const leftMs = (times[0] ?? 0) + FAILURES_WINDOW_MS - this.#clock.monotonicMs();
    return leftMs > 0 ? Math.ceil(leftMs / 1000) : undefined;
  }

  /** Returns how long to delay a login before checking it, in milliseconds. */
  delayMs(attempt: Attempt): number {
    if (attempt.isKnown) return 0;
    const time = this.#times.get(lineKey(attempt))?.at(-SLOW_AFTER_FAILURES);
    if (time === undefined) return 0;
    return this.#clock.monotonicMs() - time <= SLOW_WINDOW_MS ? SLOW_BY_MS : 0;
  }

  /**
   * Waits until no other login in the same queue is being checked. Returns a function that lets
   * the next login proceed.
   * @throws {AuthError} rate_limited if too many logins are already waiting.
   */
  async enter(attempt: Attempt): Promise<() => void> {
    const key = lineKey(attempt);
    const line = this.#lines.get(key);
    if (line === undefined) {
      this.#lines.set(key, { waiting: [] });
    } else {
      const waitingMax = attempt.isKnown ? WAITING_KNOWN_MAX : WAITING_MAX;
      if (line.waiting.length >= waitingMax) {
        throw new AuthError(
          "rate_limited",
          "Too many simultaneous logins for this user; try again in a second",
          {
            retryAfterSeconds: 1,
          },
        );
      }
      await new Promise<void>((resolve) => line.waiting.push(resolve));
    }
    return () => this.#leave(key);
  }

  #leave(key: string): void {
    const next = this.#lines.get(key)?.waiting.shift();
    if (next === undefined) this.#lines.delete(key);
    else next();
  }

  /** Records a failed login. Returns whether it locked the name for this sender. */
  failed(attempt: Attempt): boolean {
    const { from, name } = attempt;
    const nowMs = this.#clock.monotonicMs();
    const line = lineKey(attempt);
    const times = this.#times.get(line) ?? [];
    times.push(nowMs);
    if (times.length > FAILURES_MAX) times.shift();
    putNewest(this.#times, [line, times], ENTRIES_MAX);
    if (this.#failuresMax === 0) return false;
    const key = pairKey(name, from);
    const failures = this.#pairs.get(key) ?? { count: 0, lockedUntilMs: 0 };
    failures.count += 1;
    const isLocked = failures.count === this.#failuresMax;
    if (isLocked) failures.lockedUntilMs = nowMs + this.#lockMs;
    putNewest(this.#pairs, [key, failures], ENTRIES_MAX);
    return isLocked;
  }

  /**
   * Returns the names with recent failures. If several addresses have caused failures for a name,
   * only the address with the most failures counts.
   */
  troubles(): ReadonlyMap<string, LoginTrouble> {
    const found = new Map<string, LoginTrouble>();
    const nowMs = this.#clock.monotonicMs();
    for (const [key, { count, lockedUntilMs }] of this.#pairs) {
      if (lockedUntilMs !== 0 && lockedUntilMs <= nowMs) continue;
      const name = nameIn(key);
      const { failures = 0, lockedForMs = 0 } = found.get(name) ?? {};
      found.set(name, {
        failures: Math.max(failures, count),
        lockedForMs: Math.max(lockedForMs, lockedUntilMs === 0 ? 0 : lockedUntilMs - nowMs),
      });
    }
    return found;
  }

  /**
   * Records a successful login, and forgets the earlier failures of its name and sender.
   * @param address The address from which the user logged in.
   */
  succeeded({ from, name }: Attempt, address: string): void {
    this.#pairs.delete(pairKey(name, from));
    const senders = this.#known.get(name) ?? new Map<string, true>();
    putNewest(senders, [senderOf(address), true], KNOWN_SENDERS_MAX);
    putNewest(this.#known, [name, senders], ENTRIES_MAX);
  }

  /**
   * Removes every lock on a name, and forgets its failures. It also forgets the name's known
   * senders, because the password may have been changed to shut one of them out.
   */
  forgive(name: string): void {
    this.#known.delete(name);
    for (const keys of [this.#times, this.#pairs]) {
      for (const key of keys.keys()) if (nameIn(key) === name) keys.delete(key);
    }
  }
}

/**
 * Limits the login attempts from each address with a token bucket that holds five seconds' worth
 * of attempts.
 */
export class AuthBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  /** Creates a limit on login attempts per second. @param perSecond 0 means no limit. */
  constructor({ clock, perSecond }: { clock: Clock; perSecond: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /**
   * Consumes one attempt for an address. If no attempt is left, returns the number of seconds to
   * wait; otherwise undefined.
   */
  take(address: string): number | undefined {
    if (this.#perSecond === 0) return undefined;
    const nowMs = this.#clock.monotonicMs();
    const full = this.#perSecond * BUCKET_SECONDS;
    const bucket = this.#buckets.get(address) ?? { tokens: full, atMs: nowMs };
    const refill = ((nowMs - bucket.atMs) / 1000) * this.#perSecond;
    bucket.tokens = Math.min(full, bucket.tokens + refill);
    bucket.atMs = nowMs;
    putNewest(this.#buckets, [address, bucket], ENTRIES_MAX);
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / this.#perSecond);
    bucket.tokens -= 1;
    return undefined;
  }

  /**
   * Consumes one attempt for a caller's address. Callers on this machine are not limited.
   * @throws {AuthError} rate_limited
   */
  takeAttempt(caller: Caller): void {
    const retryAfterSeconds = caller.isLocal ? undefined : this.take(senderOf(caller.address));
    if (retryAfterSeconds === undefined) return;
    throw new AuthError("rate_limited", "Too many attempts from this address; try again later", {
      retryAfterSeconds,
    });
  }

  /**
   * Returns the error to report for a bad token: `error`, or a rate limit error if the sender has
   * sent too many bad tokens.
   */
  failedToken(error: AuthError, caller: Caller): AuthError {
    const retryAfterSeconds = caller.isLocal ? undefined : this.take(senderOf(caller.address));
    if (retryAfterSeconds === undefined) return error;
    return new AuthError(
      "RATE_LIMIT_EXCEEDED",
      "Too many invalid tokens from this address; try again later",
      {
        retryAfterSeconds,
      },
    );
  }
}

const BUCKET_SECONDS = 5;

function pairKey(name: string, from: string): string {
  // A sender contains no line break, so different pairs of name and sender never have the same
  // key.
  return `${from}\n${name}`;
}

/** Returns the key of the login queue of a name, or of one of the name's known devices. */
function lineKey({ from, isKnown, name }: Attempt): string {
  return pairKey(name, isKnown ? from : "");
}

function nameIn(key: string): string {
  return key.slice(key.indexOf("\n") + 1);
}
