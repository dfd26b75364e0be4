/** Limits the effort of a search, which may read the rest of the string again after every match. */
import { CallEffort, type EffortLimit } from "../base/call_effort.ts";

const LIMIT: EffortLimit = {
  /**
   * This number of steps takes about a tenth of a second. A simple pattern can search two million
   * characters with it.
   */
  stepsMax: 2 ** 23,
  message: "Cannot search the text: the regular expression takes",
  hint: "search a shorter text, or write a pattern with fewer repetitions",
};

export function regexEffort(): CallEffort {
  return new CallEffort(LIMIT);
}
