/**
 * How much one call may search: a text is searched in one go, during which nobody else is served,
 * and what follows each match may be read once for every match. A count of steps, so that the same
 * call is refused everywhere or nowhere.
 */
import { DatabaseError } from "../../../base/errors.ts";

/**
 * The most steps of a search: program instructions, plus the additional costs of each. This takes
 * about a tenth of a second, or two million characters with a plain pattern.
 */
const STEPS_MAX = 2 ** 23;

export class Effort {
  #left = STEPS_MAX;

  /** @throws {DatabaseError} LIMIT_EXCEEDED */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left >= 0) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot search the text: the regular expression takes more than ${STEPS_MAX} steps on it`,
      { hint: "search a shorter text, or write a pattern that repeats less" },
    );
  }
}
