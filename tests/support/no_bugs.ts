/** A bug handler for tests that inject no faults: any bug that is reported fails the test. */
import type { OnBug } from "../../src/base/bugs.ts";

export const noBugs: OnBug = (error) => {
  throw error;
};
