/**
 * Lists all files and values that belong to a copy of the store at a given moment. While the
 * snapshot is held, none of its files is removed or renamed, and the listed part of each file does
 * not change.
 */
import type { Seq } from "../../base/seq.ts";
import type { CommitLog } from "./commit_log.ts";
import type { Manifest, SegmentEntry } from "./manifest.ts";

export interface StoreSnapshot {
  /** The highest seq in the log at the time of the snapshot. */
  readonly seq: Seq;
  readonly segments: readonly SegmentEntry[];
  /** The log files that recovery needs, in order. */
  readonly logFiles: readonly number[];
  /** The number of bytes in the last log file at the time of the snapshot. */
  readonly logEnd: number;
  /** An upper bound on the ids issued by SNOWFLAKE_ID() up to the snapshot. */
  readonly reservedIds: number;
  /** Releases the snapshot, so that its files may be removed again. */
  release(): void;
}

/**
 * Returns the files that make up the store in this tick, according to the manifest and the log.
 * @param releases Functions to be called when the snapshot is released.
 */
export function snapshotOf(
  manifest: Manifest,
  {
    commitLog,
    releases,
    reservedIds,
  }: {
    readonly commitLog: CommitLog;
    readonly releases: readonly (() => void)[];
    readonly reservedIds: number;
  },
): StoreSnapshot {
  const { firstLogFile = commitLog.oldestFile, segments } = manifest.load();
  const { fileNumber, offset, seq } = commitLog.written;
  const logFiles = Array.from(
    { length: fileNumber - firstLogFile + 1 },
    (_, index) => firstLogFile + index,
  );
  return {
    seq: seq as Seq,
    segments,
    logFiles,
    logEnd: offset,
    reservedIds,
    release() {
      for (const release of releases) release();
    },
  };
}
