/** Limits the effort of a function that compares positions of words pair by pair. */
import { CallEffort, type EffortLimit } from "../base/call_effort.ts";

const LIMIT: EffortLimit = {
  /** This number of steps takes a few tenths of a second. */
  stepsMax: 2 ** 22,
  message: "Cannot compare the words: this takes",
  hint: "compare shorter texts, or search for fewer words",
};

export function searchEffort(): CallEffort {
  return new CallEffort(LIMIT);
}
