/**
 * Guessing is slow: what stands between a password and whoever tries many.
 *
 * - A pair of (login name, address) is locked after a number of consecutive failures. The name may
 *   exist or not. Another address can still log in, so nobody can lock another user out.
 * - A name that fails from many addresses gets slower for everybody, but stays open.
 * - A new password forgives all failures of its name: they were guesses at another one.
 * - An address has a bucket of attempts: logins, setups, refreshes and failed tokens.
 *
 * Nothing here outlives the process. Memory is bounded: above the bound the oldest entry goes.
 */
import type { Clock } from "../base/clock.ts";
import { putNewest } from "../base/newest.ts";
import { senderOf } from "../base/sender.ts";
import type { Caller } from "./answers.ts";
import { AuthError } from "./auth_error.ts";

export interface LoginGuardOptions {
  clock: Clock;
  /** Consecutive failures that lock a pair; 0 for never. */
  failuresMax: number;
  lockMs: number;
}

/** Failures of one name within the window after which each login of the name waits. */
const SLOW_AFTER_FAILURES = 20;
const SLOW_WINDOW_MS = 15 * 60_000;
const SLOW_BY_MS = 1000;

/** Entries of each kind that are remembered: some 20 MB at most. */
const ENTRIES_MAX = 100_000;

/** How logins of a name fare. */
export interface LoginTrouble {
  /** Consecutive ones that failed, from one address. */
  readonly failures: number;
  /** 0 while none is locked. */
  readonly lockedForMs: number;
}

interface Failures {
  count: number;
  /** 0 while not locked. */
  lockedUntilMs: number;
}

export class LoginGuard {
  readonly #clock: Clock;
  readonly #failuresMax: number;
  readonly #lockMs: number;
  readonly #pairs = new Map<string, Failures>();
  /** When a name failed, newest last; at most as many as make it slow. */
  readonly #names = new Map<string, number[]>();

  constructor({ clock, failuresMax, lockMs }: LoginGuardOptions) {
    this.#clock = clock;
    this.#failuresMax = failuresMax;
    this.#lockMs = lockMs;
  }

  /** Seconds until the pair may try again, at least 1; undefined when it may now. */
  lockedForSeconds(name: string, address: string): number | undefined {
    const key = pairKey(name, address);
    const failures = this.#pairs.get(key);
    if (failures === undefined || failures.lockedUntilMs === 0) return undefined;
    const leftMs = failures.lockedUntilMs - this.#clock.monotonicMs();
    if (leftMs > 0) return Math.ceil(leftMs / 1000);
    this.#pairs.delete(key);
    return undefined;
  }

  /** How long a login of this name waits before it is looked at. */
  delayMs(name: string): number {
    const times = this.#names.get(name);
    if (times === undefined || times.length < SLOW_AFTER_FAILURES) return 0;
    const oldest = times[0] ?? 0;
    return this.#clock.monotonicMs() - oldest <= SLOW_WINDOW_MS ? SLOW_BY_MS : 0;
  }

  /** Returns whether this failure locked the pair. */
  failed(name: string, address: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const times = this.#names.get(name) ?? [];
    times.push(nowMs);
    if (times.length > SLOW_AFTER_FAILURES) times.shift();
    putNewest(this.#names, [name, times], ENTRIES_MAX);
    if (this.#failuresMax === 0) return false;
    const key = pairKey(name, address);
    const failures = this.#pairs.get(key) ?? { count: 0, lockedUntilMs: 0 };
    failures.count += 1;
    const isLocked = failures.count === this.#failuresMax;
    if (isLocked) failures.lockedUntilMs = nowMs + this.#lockMs;
    putNewest(this.#pairs, [key, failures], ENTRIES_MAX);
    return isLocked;
  }

  /** Names that failed and are not forgiven yet; of several addresses the worst counts. */
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

  succeeded(name: string, address: string): void {
    this.#pairs.delete(pairKey(name, address));
  }

  /** Lifts every lock of a name, and forgets its failures. */
  forgive(name: string): void {
    this.#names.delete(name);
    for (const key of this.#pairs.keys()) if (nameIn(key) === name) this.#pairs.delete(key);
  }
}

/** Attempts of each address: refilled at a rate, holding five seconds' worth. */
export class AuthBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #buckets = new Map<string, { tokens: number; atMs: number }>();

  /** `perSecond` 0 means no limit. */
  constructor({ clock, perSecond }: { clock: Clock; perSecond: number }) {
    this.#clock = clock;
    this.#perSecond = perSecond;
  }

  /** Takes one attempt. Returns undefined, or seconds to wait when there is none left. */
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

  /** Of a caller on this machine none is counted. @throws {AuthError} rate_limited */
  takeAttempt(caller: Caller): void {
    const retryAfterSeconds = caller.isLocal ? undefined : this.take(senderOf(caller.address));
    if (retryAfterSeconds === undefined) return;
    throw new AuthError("rate_limited", "Too many attempts from this address", {
      retryAfterSeconds,
    });
  }

  /** What a bad token is answered with: itself, until its sender has sent too many. */
  failedToken(error: AuthError, caller: Caller): AuthError {
    const retryAfterSeconds = caller.isLocal ? undefined : this.take(senderOf(caller.address));
    if (retryAfterSeconds === undefined) return error;
    return new AuthError("RATE_LIMIT_EXCEEDED", "Too many failed tokens from this address", {
      retryAfterSeconds,
    });
  }
}

const BUCKET_SECONDS = 5;

function pairKey(name: string, address: string): string {
  // An address has no line break, so two pairs never share a key.
  return `${address}\n${name}`;
}

function nameIn(key: string): string {
  return key.slice(key.indexOf("\n") + 1);
}
