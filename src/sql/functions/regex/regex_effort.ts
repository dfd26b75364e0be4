/**
 * Limits the work of one call. No other request is served while a text is searched, and the rest of
 * the text may be read again after every match. The limit counts steps rather than time, so that a
 * call is refused on every machine or on none.
 */
import { DatabaseError } from "../../../base/errors.ts";

/**
 * The maximum number of steps in a search, which take about a tenth of a second. They cover two
 * million characters with a simple pattern.
 */
const STEPS_MAX = 2 ** 23;

export class RegexEffort {
  #left = STEPS_MAX;

  /** Adds steps to the work done so far. @throws {DatabaseError} LIMIT_EXCEEDED */
  spend(steps: number): void {
    this.#left -= steps;
    if (this.#left >= 0) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot search the text: the regular expression takes more than ${STEPS_MAX} steps`,
      { hint: "search a shorter text, or write a pattern that repeats less" },
    );
  }
}
