/**
 * Determines how much of its work a test does if it iterates over seeds, samples or cases.
 *
 * A normal run does a part of the work, always the same part, and ends within minutes. A thorough
 * run (`npm test -- --thorough`, as in `.ci/run`) does all of it.
 */

/** True in a thorough run; set by `scripts/test.ts`. */
export const isThorough: boolean = process.env["TIDEMARK_TEST_THOROUGH"] === "1";

/** Returns how many seeds, samples, rows or points to try. */
export function amountOf({ usual, thorough }: { usual: number; thorough: number }): number {
  return isThorough ? thorough : usual;
}

/** Returns every n-th case, beginning with the first; all cases in a thorough run. */
export function shareOf<T>(cases: readonly T[], { oneOf }: { oneOf: number }): readonly T[] {
  return isThorough ? cases : cases.filter((_, index) => index % oneOf === 0);
}
