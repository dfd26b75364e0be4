/**
 * For parts that are told of bugs, where a test plants none: one that is met fails the test.
 */
import type { OnBug } from "../../src/base/bugs.ts";

export const noBugs: OnBug = (error) => {
  throw error;
};
