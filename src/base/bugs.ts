/**
 * Decides how much work ends because of a bug.
 *
 *     work of one caller ──bug──► that work ends; its caller gets an error, the log has the stack
 *     a change to durable state, or of the order of commits
 *                        ──bug──► StateInDoubtError ──► the process stops; the log makes that safe
 *
 * Code that changes shared state marks the errors it throws ({@linkcode inDoubt}). Code that
 * serves callers contains all other errors ({@linkcode Bugs.contain}). An uncaught error may have
 * affected any state, so it stops the process.
 */
import type { Clock } from "./clock.ts";
import { isExpected, stackOf } from "./errors.ts";
import type { Log, LogFields } from "./log.ts";

/**
 * A bug interrupted a change that has to be atomic. Only `main.ts` catches this error, in order to
 * stop the process.
 */
export class StateInDoubtError extends Error {
  constructor(cause: unknown) {
    super("a bug interrupted a change to shared state", { cause });
    this.name = "StateInDoubtError";
  }
}

/**
 * Returns the error to throw when a change to shared state fails. If a bug caused the error, it is
 * wrapped to show that the state is in doubt.
 */
export function inDoubt(error: unknown): unknown {
  if (isExpected(error) || error instanceof StateInDoubtError) return error;
  return new StateInDoubtError(error);
}

/**
 * Makes a change to shared state within one tick.
 * @throws {StateInDoubtError} If a bug interrupts the change.
 */
export function asOneChange<T>(change: () => T): T {
  try {
    return change();
  } catch (error) {
    throw inDoubt(error);
  }
}

/** Records a bug and lets other work continue, like {@linkcode Bugs.contain}. */
export type OnBug = (error: unknown, what: string, fields?: LogFields) => void;

/** Wraps a clock so that a bug in a timer callback does not end the process. */
export function containingClock(clock: Clock, onBug: OnBug): Clock {
  return {
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    yield: () => clock.yield(),
    after: (delayMs, callback) =>
      clock.after(delayMs, () => {
        try {
          callback();
        } catch (error) {
          onBug(error, "a timer");
        }
      }),
  };
}

/** Counts and logs the bugs that this process has survived. */
export class Bugs {
  readonly #log: Log;
  #count = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** The number of bugs since the process started, for monitoring. */
  get count(): number {
    return this.#count;
  }

  /**
   * Logs and counts a bug. The caller of this method reports the failure to its own caller.
   *
   * @param what Completes the log message "a bug ended …", for example "a request".
   * @throws {StateInDoubtError} If the process must not continue.
   */
  contain(error: unknown, what: string, fields: LogFields = {}): void {
    if (error instanceof StateInDoubtError) throw error;
    this.#count += 1;
    this.#log.error(`a bug ended ${what}`, { ...fields, cause: stackOf(error) });
  }
}
