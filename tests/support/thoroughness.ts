/**
 * How much of its work a test does that repeats itself over seeds, samples or cases.
 *
 * A usual run does a part of it, always the same, and is over in minutes. A thorough run
 * (`npm test -- --thorough`, as `.ci/run` does it) does all of it.
 */

/** Set by `scripts/test.ts`. */
export const isThorough: boolean = process.env["TIDEMARK_TEST_THOROUGH"] === "1";

/** How many seeds, samples, rows or points to try. */
export function amountOf({ usual, thorough }: { usual: number; thorough: number }): number {
  return isThorough ? thorough : usual;
}

/** Every so many-th of the cases, the first included, or all of them in a thorough run. */
export function shareOf<T>(cases: readonly T[], { oneOf }: { oneOf: number }): readonly T[] {
  return isThorough ? cases : cases.filter((_, index) => index % oneOf === 0);
}
