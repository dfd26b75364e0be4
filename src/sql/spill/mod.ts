/**
 * Temporary storage for rows that do not fit into their statement's memory. Operators in `execute/`
 * decide when to use it; this folder does not depend on plans or expressions.
 */
export { LEVEL_MAX, PARTITION_COUNT, Partitions } from "./partitions.ts";
export { type CompareValues, type RunMerge, SortedRuns } from "./sorted_runs.ts";
export {
  type BlockRef,
  piecesOf,
  SpillFile,
  SpillSpace,
  TemporaryFiles,
} from "./temporary_files.ts";
