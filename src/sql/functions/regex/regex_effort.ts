/** The effort of a search, which may read the rest of the text again after every match. */
import { CallEffort, type EffortLimit } from "../base/call_effort.ts";

const LIMIT: EffortLimit = {
  /**
   * These steps take about a tenth of a second. They cover two million characters with a simple
   * pattern.
   */
  stepsMax: 2 ** 23,
  message: "Cannot search the text: the regular expression takes",
  hint: "search a shorter text, or write a pattern that repeats less",
};

export function regexEffort(): CallEffort {
  return new CallEffort(LIMIT);
}
