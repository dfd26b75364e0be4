/**
 * The part of a merge that needs nothing but files: the sources are read, and the rows of all of
 * them are written into one draft, which is not synced. A job is plain data, so that another thread
 * can do it while the event loop goes on.
 */
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import type { Compression, StoredColumn } from "../contract/store.ts";
import type { SegmentReader } from "../segment/reader.ts";
import type { SegmentSummary } from "../segment/writer.ts";
import { History, type HistoryLimits } from "../table/history.ts";
import { openListedSegment } from "../table/listed_files.ts";
import { draftSteps } from "./flush_job.ts";
import { mergedPieces } from "./merge_rows.ts";

export interface MergeJob {
  /** Published segments, neighbours, oldest first. */
  readonly sources: readonly { readonly path: string; readonly entry: SegmentEntry }[];
  readonly segmentId: number;
  readonly tableId: number;
  readonly keyColumnIds: readonly number[];
  readonly columns: readonly StoredColumn[];
  readonly compression: Compression | undefined;
  readonly history: HistoryLimits;
  /** Where the merged segment is written. */
  readonly draft: string;
}

export interface MergeOutcome {
  readonly summary: SegmentSummary;
  /** For each source: where each of its rows is in the merged segment, or `DISCARDED`. */
  readonly newRows: readonly Uint32Array<ArrayBuffer>[];
  /** Versions that were left out, and for each owner up to which seq its history went with them. */
  readonly discardedCount: number;
  readonly lowWaters: ReadonlyMap<number, number>;
}

/**
 * Does a job in steps of a few milliseconds, until it is done or cancelled.
 *
 * @throws {CorruptionError} @throws {DiskError}
 */
export function* mergeSteps(
  disk: Disk,
  job: MergeJob,
  isCancelled: () => boolean,
): Generator<void, MergeOutcome | undefined> {
  const { segmentId, tableId, keyColumnIds, columns, compression } = job;
  const readers: SegmentReader[] = [];
  try {
    for (const { entry, path } of job.sources) {
      readers.push(openListedSegment(disk, path, { entry }));
    }
    const newRows = readers.map(({ rowCount }) => new Uint32Array(rowCount));
    const history = new History(
      job.history,
      readers.map(({ rowCount }) => rowCount),
    );
    const outline = { segmentId, tableId, keyColumnIds, columns, compression };
    const pieces = mergedPieces({ readers, columns, newRows, history }, outline);
    const summary = yield* draftSteps(disk, { draft: job.draft, pieces, isCancelled });
    if (summary === undefined) return undefined;
    const { discardedCount, lowWaters } = history;
    return { summary, newRows, discardedCount, lowWaters };
  } finally {
    for (const reader of readers) reader.close();
  }
}
