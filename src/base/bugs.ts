/**
 * How far a bug reaches.
 *
 *     work of one caller ──bug──► that work ends; its caller is told, and the log has the stack
 *     a change of what is durable, or of the order of commits
 *                        ──bug──► StateInDoubtError ──► the process stops; the log makes that safe
 *
 * Who changes shared state marks what it throws ({@linkcode inDoubt}); who serves callers contains
 * the rest ({@linkcode Bugs.contain}). What nobody catches is of unknown reach, and stops the
 * process, too.
 */
import type { Clock } from "./clock.ts";
import { isExpected, stackOf } from "./errors.ts";
import type { Log, LogFields } from "./log.ts";

/** A bug in the middle of a change that has to be whole. Only `main.ts` catches it, to stop. */
export class StateInDoubtError extends Error {
  constructor(cause: unknown) {
    super("a change was not finished", { cause });
    this.name = "StateInDoubtError";
  }
}

/** What is to be thrown in place of an error that a change of shared state met. */
export function inDoubt(error: unknown): unknown {
  if (isExpected(error) || error instanceof StateInDoubtError) return error;
  return new StateInDoubtError(error);
}

/** Notes a bug and lets others go on; see {@linkcode Bugs.contain}. */
export type OnBug = (error: unknown, what: string, fields?: LogFields) => void;

/** The same clock, of whose timers none ends the process. */
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

/** The bugs that this process went on after. */
export class Bugs {
  readonly #log: Log;
  #count = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** How many there were, for who watches the server. */
  get count(): number {
    return this.#count;
  }

  /**
   * Notes a bug whose caller is told of it.
   *
   * @param what Ends "a bug ended": "a request".
   * @throws {StateInDoubtError} If nobody may go on.
   */
  contain(error: unknown, what: string, fields: LogFields = {}): void {
    if (error instanceof StateInDoubtError) throw error;
    this.#count += 1;
    this.#log.error(`a bug ended ${what}`, { ...fields, cause: stackOf(error) });
  }
}
