/**
 * Limits the work of a single function call whose cost may grow much faster than its arguments.
 * The server serves no other request during the call.
 *
 * The limit counts steps rather than time, so that a call is refused either on every machine or on
 * none.
 */
import { DatabaseError } from "../../../base/errors.ts";

export interface EffortLimit {
  readonly stepsMax: number;
  /**
   * The beginning of the error message, such as "Cannot search the text: it takes". The number of
   * steps follows.
   */
  readonly message: string;
  readonly hint: string;
}

export class CallEffort {
  readonly #limit: EffortLimit;
  #left: number;

  constructor(limit: EffortLimit) {
    this.#limit = limit;
    this.#left = limit.stepsMax;
  }

  /**
   * Adds steps to the work that the call has done so far.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left >= 0) return;
    const { hint, message, stepsMax } = this.#limit;
    throw new DatabaseError("LIMIT_EXCEEDED", `${message} more than ${stepsMax} steps`, { hint });
  }
}
