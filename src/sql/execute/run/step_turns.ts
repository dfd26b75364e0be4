/**
 * Work in small steps that takes more than a turn of the event loop: others run every few
 * milliseconds, and it ends when its request has to. Queries are drained by `operator.ts`.
 *
 * A step yields whether the work may still be ended: what is committed is finished.
 */
import type { Clock } from "../../../base/clock.ts";
import { FURTHER_TURN_MS_MAX, TURN_MS_MAX } from "../../../base/limits.ts";
import { checkDeadline, type RequestLedger } from "./request_ledger.ts";

export type Steps<T> = Generator<boolean, T, void>;

/** A step may also yield a promise to wait for; the work may be ended meanwhile. */
export type WaitingSteps<T> = Generator<boolean | Promise<void>, T, void>;

export interface TurnOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
}

/** Runs steps from this turn on. Returns undefined when one turn was enough. */
export function stepTurns(steps: Steps<void>, options: TurnOptions): Promise<void> | undefined {
  const { clock } = options;
  const endMs = clock.monotonicMs() + TURN_MS_MAX;
  do {
    if (steps.next().done === true) return undefined;
  } while (clock.monotonicMs() < endMs);
  return runSteps(steps, options);
}

/** Runs steps from the next turn on, to their end; between turns others run. */
export async function runSteps<T>(
  steps: WaitingSteps<T>,
  { clock, ledger }: TurnOptions,
): Promise<T> {
  let mayEnd = true;
  try {
    for (;;) {
      await clock.yield();
      if (mayEnd) checkDeadline(ledger, clock);
      const endMs = clock.monotonicMs() + FURTHER_TURN_MS_MAX;
      do {
        const { done, value } = steps.next();
        if (done === true) return value;
        mayEnd = value !== false;
        if (typeof value !== "boolean") await value;
      } while (clock.monotonicMs() < endMs);
    }
  } catch (error) {
    // Closes what it reads.
    steps.return(undefined as never);
    throw error;
  }
}

/** Limits the time between yields across many short steps that are not run by a generator. */
export class SharedTurns {
  readonly #options: TurnOptions;
  #endMs: number;

  constructor(options: TurnOptions) {
    this.#options = options;
    this.#endMs = options.clock.monotonicMs() + TURN_MS_MAX;
  }

  /** Before a step: lets others run once the turn is over. @throws {DatabaseError} */
  endStep(): Promise<void> | undefined {
    const nowMs = checkDeadline(this.#options.ledger, this.#options.clock);
    return nowMs < this.#endMs ? undefined : this.#nextTurn();
  }

  async #nextTurn(): Promise<void> {
    const { clock, ledger } = this.#options;
    await clock.yield();
    this.#endMs = checkDeadline(ledger, clock) + FURTHER_TURN_MS_MAX;
  }
}
