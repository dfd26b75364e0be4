/** The fate of rows in a merge, for tests of the merges that carry it out. */
import { History, type HistoryLimits } from "../../src/storage/table/history.ts";

export { type Fate, type HistoryLimits, NOT_CURRENT } from "../../src/storage/table/history.ts";

/** Returns the fates of the rows of segments with these row counts. */
export function historyOf(limits: HistoryLimits, rowCounts: readonly number[]): History {
  return new History(limits, rowCounts);
}
