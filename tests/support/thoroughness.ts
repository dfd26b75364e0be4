/**
 * Determines the share of its work that a test does if it iterates over seeds, samples or cases,
 * and the tests that are left out.
 *
 * A normal run does part of the work, always the same part, and ends within minutes. A thorough
 * run (`npm test -- --thorough`, as in `.ci/run`) does all of it. A normal run ends by listing
 * everything that it left out.
 */
import { LEFT_TO_THOROUGH } from "../../scripts/support/skipped_tests.ts";

/** Whether this is a thorough run. `scripts/test.ts` sets the variable. */
export const isThorough: boolean = process.env["TIDEMARK_TEST_THOROUGH"] === "1";

/** Returns the number of seeds, samples, rows or points to try. */
export function amountOf({ usual, thorough }: { usual: number; thorough: number }): number {
  return isThorough ? thorough : usual;
}

/** Returns every n-th case, starting with the first. In a thorough run, returns all cases. */
export function shareOf<T>(cases: readonly T[], { oneOf }: { oneOf: number }): readonly T[] {
  return isThorough ? cases : cases.filter((_, index) => index % oneOf === 0);
}

/**
 * The reason why a normal run skips a test, for `testUnless`. Such a test takes seconds of
 * processor time, and other tests cover most of the same behaviour. Undefined in a thorough run.
 */
export const onlyThorough: string | undefined = isThorough ? undefined : LEFT_TO_THOROUGH;
