/**
 * The sleeps of one query.
 *
 *     on the event loop ──asleep──► forgotten ──the time is over──► begun anew
 *         └──it takes long otherwise──► begun anew in a reader, which sleeps in its thread
 *
 * A query that is begun anew asks for the same sleeps in the same order, so the number of those
 * that are over says which one is next.
 */
import { type Clock, HOUR_MS } from "../../../base/clock.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";

/** Thrown when a query sleeps; no failure. A catch on its way passes it on. */
export const ASLEEP: Error = new Error("The query sleeps");

/** How long one request sleeps in all, whatever its time: its snapshot is held for so long. */
const SLEEP_MS_MAX = HOUR_MS;

/** The sleeps of a query, as another thread is told of them. */
export interface SleptSoFar {
  readonly overCount: number;
  /** How long the request has been asked to sleep in all. */
  readonly sleepMs: number;
  /** How long one sleep may be at most; Infinity for ever. */
  readonly msMax: number;
}

export interface SleepsOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  /** How long one sleep may be at most; a longer one ends then. */
  readonly msMax: () => number;
  /** The sleeps that are over. */
  readonly overCount?: number;
  /**
   * Waits until a monotonic time; absent where nobody can wait in the middle of a query.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  readonly waitUntil?: (untilMs: number) => void;
}

export class Sleeps {
  readonly #options: SleepsOptions;
  #overCount: number;
  /** Sleeps that the query has asked for since it was begun last. */
  #askedCount = 0;
  /** The end of the sleep that was begun last, in monotonic milliseconds. */
  #untilMs = 0;

  constructor(options: SleepsOptions) {
    this.#options = options;
    this.#overCount = options.overCount ?? 0;
  }

  get soFar(): SleptSoFar {
    const { ledger, msMax } = this.#options;
    return { overCount: this.#overCount, sleepMs: ledger.sleepMs, msMax: msMax() };
  }

  /** Another thread has run the query. @param sleepMs As in {@linkcode SleptSoFar}. */
  noteSlept(sleepMs: number): void {
    this.#options.ledger.sleepMs = sleepMs;
  }

  /** The query begins, or is begun anew. */
  begin(): void {
    this.#askedCount = 0;
  }

  /** @throws ASLEEP if the sleep is not over. @throws {DatabaseError} LIMIT_EXCEEDED, … */
  sleep(ms: number): void {
    this.#askedCount += 1;
    if (this.#askedCount <= this.#overCount) return;
    const { clock, ledger, msMax, waitUntil } = this.#options;
    ledger.sleepMs += ms;
    if (ledger.sleepMs > SLEEP_MS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot sleep for ${ms / 1000} s: a request sleeps ${SLEEP_MS_MAX / 1000} s at most in all`,
      );
    }
    if (ms > 0) {
      this.#untilMs = clock.monotonicMs() + Math.min(ms, msMax());
      if (waitUntil === undefined) throw ASLEEP;
      waitUntil(this.#untilMs);
    }
    this.#overCount += 1;
  }

  /**
   * Resolves when the query is to be begun anew.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  async over(): Promise<void> {
    const { clock, ledger } = this.#options;
    const endMs = Math.min(this.#untilMs, ledger.deadlineMs);
    while (clock.monotonicMs() < endMs && ledger.cancelledBy === undefined) {
      const woken = Promise.withResolvers<void>();
      ledger.wake = woken.resolve;
      const leftMs = Math.min(endMs - clock.monotonicMs(), HOUR_MS);
      const cancelTimer = clock.after(leftMs, woken.resolve);
      await woken.promise;
      cancelTimer();
      ledger.wake = undefined;
    }
    checkDeadline(ledger, clock);
    this.#overCount += 1;
  }
}
