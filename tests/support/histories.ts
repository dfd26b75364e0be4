/** Determines what a merge does with each row, for tests of merges. */
import { History, type HistoryLimits } from "../../src/storage/table/history.ts";

export { type Fate, type HistoryLimits, NOT_CURRENT } from "../../src/storage/table/history.ts";

/** Returns the outcome of a merge for the rows of segments with these row counts. */
export function historyOf(limits: HistoryLimits, rowCounts: readonly number[]): History {
  return new History(limits, rowCounts);
}
