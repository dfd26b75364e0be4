/**
 * Limits the work of one call of a function that compares positions of words pair by pair, because
 * no other request is served in the meantime. The limit counts steps rather than time, so that a
 * call is refused on every machine or on none.
 */
import { DatabaseError } from "../../../base/errors.ts";

/** The maximum number of steps, which take some tenths of a second. */
const STEPS_MAX = 2 ** 22;

export class SearchEffort {
  #left = STEPS_MAX;

  /** Adds steps to the work done so far. @throws {DatabaseError} LIMIT_EXCEEDED */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left >= 0) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot compare the words: this takes more than ${STEPS_MAX} steps`,
      { hint: "compare shorter texts, or search for fewer words" },
    );
  }
}
