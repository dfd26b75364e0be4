/**
 * Rows that do not fit the memory of their statement: where they lie meanwhile, and how they are
 * read again. Operators in `execute/` decide when; this folder knows no plan and no expression.
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
