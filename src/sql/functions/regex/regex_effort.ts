/**
 * Limits the effort of regular expression searches. A call that finds many matches may scan the
 * rest of the string again after every match.
 */
import { CallEffort, type EffortLimit } from "../base/call_effort.ts";

const LIMIT: EffortLimit = {
  /**
   * A search with this many steps takes about a tenth of a second, enough for a simple pattern to
   * search two million characters.
   */
  stepsMax: 2 ** 23,
  message: "Cannot search the text: matching the regular expression requires",
  hint: "search a shorter string, or use fewer repetitions in the pattern",
};

export function regexEffort(): CallEffort {
  return new CallEffort(LIMIT);
}
