/** A bug handler for tests that inject no faults: any reported bug fails the test. */
import type { OnBug } from "../../src/base/bugs.ts";

export const noBugs: OnBug = (error) => {
  throw error;
};
