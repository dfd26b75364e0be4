/**
 * Runs the part of a merge that needs only files: reading the source segments and writing their
 * rows to two pending files, one for current versions and one for history. The caller syncs these
 * files. A merge job is plain data, so another thread can run it while the event loop continues.
 *
 * The sources are read once for each output file. Where history and current rows alternate,
 * numbers are therefore decoded twice, but only one portion of one output is in memory at a time.
 */
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { Compression, StoredColumn } from "../contract/table_definition.ts";
import type { SegmentReader } from "../segment/reader.ts";
import type { SegmentSummary } from "../segment/writer.ts";
import { History, type HistoryLimits } from "../table/history.ts";
import type { IndexOutput } from "../table/index_builder.ts";
import { openListedSegment } from "../table/listed_files.ts";
import { writeIndexes, writeSteps } from "./flush_job.ts";
import type { MergeSource } from "./merge_order.ts";
import { mergedPieces } from "./merge_rows.ts";

/** A segment written by a merge. */
export interface MergeOutput {
  readonly segmentId: number;
  /** The path to which the merge writes the segment. */
  readonly pendingPath: string;
}

export interface MergeJob {
  /**
   * The published segments to merge: either current neighbours, oldest first, or history segments.
   */
  readonly sources: readonly { readonly path: string; readonly entry: SegmentEntry }[];
  /** The output file for current versions; undefined if the sources are history segments. */
  readonly current?: MergeOutput;
  readonly past: MergeOutput;
  /** The indexes to build for the segment with current versions. */
  readonly indexes: readonly IndexOutput[];
  readonly tableId: number;
  readonly keyColumnIds: readonly number[];
  readonly columns: readonly StoredColumn[];
  readonly compression: Compression | undefined;
  readonly history: HistoryLimits;
}

export interface MergeOutcome {
  /**
   * The written segment of current versions; undefined if there are none, since a segment has at
   * least one row.
   */
  readonly current?: SegmentSummary;
  readonly past?: SegmentSummary;
  /** For each source, the position of each of its rows in the current output, or `NOT_CURRENT`. */
  readonly newRows: readonly Uint32Array<ArrayBuffer>[];
  /**
   * The number of versions discarded. `lowWatermarks` has, for each owner, the seq up to which
   * history has been discarded.
   */
  readonly discardedCount: number;
  readonly lowWatermarks: ReadonlyMap<number, number>;
}

/**
 * Runs a merge job in steps of a few milliseconds until it is done or cancelled.
 *
 * @throws {CorruptionError} @throws {DiskError}
 */
export function* mergeSteps(
  disk: Disk,
  job: MergeJob,
  isCancelled: () => boolean,
): Generator<void, MergeOutcome | undefined> {
  const readers: SegmentReader[] = [];
  try {
    for (const { entry, path } of job.sources) {
      readers.push(openListedSegment(disk, path, { entry }));
    }
    const rowCounts = readers.map(({ rowCount }) => rowCount);
    const newRows = rowCounts.map(
      (count) => new Uint32Array(job.current === undefined ? 0 : count),
    );
    const history = new History(job.history, rowCounts);
    const source = { readers, columns: job.columns, newRows, history };
    const writes = { disk, job, isCancelled };
    let current: SegmentSummary | undefined;
    let past: SegmentSummary | undefined;
    if (job.current !== undefined) {
      current = yield* written(writes, job.current, { ...source, output: "current" });
      if (current === undefined) return undefined;
      const { pendingPath } = job.current;
      const { indexes } = job;
      const output = { pendingPath, summary: current, indexes, isCancelled };
      if (current.rowCount > 0 && !(yield* writeIndexes(disk, output))) return undefined;
    }
    const hasPast = job.current === undefined || history.pastCount > 0;
    if (hasPast) {
      past = yield* written(writes, job.past, { ...source, output: "past" });
      if (past === undefined) return undefined;
    }
    const { discardedCount, lowWatermarks } = history;
    return {
      newRows,
      discardedCount,
      lowWatermarks,
      ...(current === undefined || current.rowCount === 0 ? {} : { current }),
      ...(past === undefined || past.rowCount === 0 ? {} : { past }),
    };
  } finally {
    for (const reader of readers) reader.close();
  }
}

/** Writes one output file of a merge. Returns undefined if the job was cancelled. */
function* written(
  { disk, isCancelled, job }: { disk: Disk; job: MergeJob; isCancelled: () => boolean },
  { pendingPath, segmentId }: MergeOutput,
  source: MergeSource,
): Generator<void, SegmentSummary | undefined> {
  const { tableId, keyColumnIds, columns, compression } = job;
  const isHistory = source.output === "past";
  const outline = { segmentId, tableId, keyColumnIds, columns, compression, isHistory };
  return yield* writeSteps(disk, {
    pendingPath,
    pieces: mergedPieces(source, outline),
    isCancelled,
  });
}
