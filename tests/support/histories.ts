/** Determines the fate of each row in a merge, for tests of merges. */
import { History, type HistoryLimits } from "../../src/storage/table/history.ts";

export { type Fate, type HistoryLimits, NOT_CURRENT } from "../../src/storage/table/history.ts";

/**
 * Returns the decisions that a merge makes about the rows of segments with the given row counts.
 */
export function historyOf(limits: HistoryLimits, rowCounts: readonly number[]): History {
  return new History(limits, rowCounts);
}
