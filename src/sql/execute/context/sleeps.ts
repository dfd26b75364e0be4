/**
 * Tracks a query's calls to PG_SLEEP, and lets the query wait for an advisory lock.
 *
 *     on the event loop ──asleep──► forgotten ──the time is over──► begun again
 *         └──it takes long otherwise──► begun again in a reader, which sleeps in its thread
 *
 * A query that waits for a lock is discarded and restarted in the same way, always on the event
 * loop.
 *
 * A restarted query requests the same sleeps in the same order, so the number of completed sleeps
 * determines which sleep comes next.
 */
import { type Clock, HOUR_MS } from "../../../base/clock.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";

/**
 * Thrown when a query sleeps or waits for a lock. This is not a failure, so every enclosing catch
 * clause must rethrow it.
 */
export const ASLEEP: Error = new Error("The query sleeps");

/**
 * The total time for which a request may sleep, whatever its timeout. It is limited because the
 * snapshot of the request is kept for that time.
 */
const SLEEP_MS_MAX = HOUR_MS;

/** A query's sleeps so far, in the form in which they are passed to another thread. */
export interface SleptSoFar {
  readonly overCount: number;
  /** The total duration for which the request has asked to sleep, in milliseconds. */
  readonly sleepMs: number;
  /** The maximum duration of a single sleep; Infinity if there is no limit. */
  readonly msMax: number;
}

export interface SleepsOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  /** Returns the maximum duration of a single sleep. A longer sleep ends after this time. */
  readonly msMax: () => number;
  /** The number of sleeps that the query has completed. */
  readonly overCount?: number;
  /**
   * Waits until the given time of the monotonic clock. Absent if a query cannot wait in the middle
   * of a run.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  readonly waitUntil?: (untilMs: number) => void;
}

export class Sleeps {
  readonly #options: SleepsOptions;
  #overCount: number;
  /** The number of sleeps that the query has requested since it was last started. */
  #askedCount = 0;
  /** When the last sleep ends, in milliseconds on the monotonic clock. */
  #untilMs = 0;
  /** Waits for a lock; undefined unless the query was discarded in order to wait for one. */
  #turn: (() => Promise<void>) | undefined;

  constructor(options: SleepsOptions) {
    this.#options = options;
    this.#overCount = options.overCount ?? 0;
  }

  get soFar(): SleptSoFar {
    const { ledger, msMax } = this.#options;
    return { overCount: this.#overCount, sleepMs: ledger.sleepMs, msMax: msMax() };
  }

  /**
   * Records the sleeps of a run in another thread.
   * @param sleepMs See {@linkcode SleptSoFar}.
   */
  noteSlept(sleepMs: number): void {
    this.#options.ledger.sleepMs = sleepMs;
  }

  /** Called when a sleeping query starts or restarts. */
  begin(): void {
    this.#askedCount = 0;
  }

  /**
   * Makes the query sleep, unless it completed this sleep before it was restarted.
   * @throws ASLEEP if the sleep is not over.
   * @throws {DatabaseError} LIMIT_EXCEEDED, …
   */
  sleep(ms: number): void {
    this.#askedCount += 1;
    if (this.#askedCount <= this.#overCount) return;
    const { clock, ledger, msMax, waitUntil } = this.#options;
    ledger.sleepMs += ms;
    if (ledger.sleepMs > SLEEP_MS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot sleep for ${ms / 1000} s: a request may sleep for at most ` +
          `${SLEEP_MS_MAX / 1000} s in total`,
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
   * Makes the query wait for something other than the end of a sleep.
   *
   * @param turn Resolves when it is time to restart the query.
   * @throws ASLEEP
   */
  waitFor(turn: () => Promise<void>): never {
    this.#turn = turn;
    throw ASLEEP;
  }

  /**
   * Resolves when it is time to restart the query.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN, and errors of the wait
   */
  async over(): Promise<void> {
    if (this.#turn !== undefined) {
      const turn = this.#turn;
      this.#turn = undefined;
      return await turn();
    }
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
