/** Limits the effort of text search functions that compare word positions pair by pair. */
import { CallEffort, type EffortLimit } from "../base/call_effort.ts";

const LIMIT: EffortLimit = {
  /** A call with this many steps takes a few tenths of a second. */
  stepsMax: 2 ** 22,
  message: "Cannot search the text: comparing the words requires",
  hint: "search shorter texts, or search for fewer words",
};

export function searchEffort(): CallEffort {
  return new CallEffort(LIMIT);
}
