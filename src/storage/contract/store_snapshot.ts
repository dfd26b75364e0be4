/**
 * Everything that a copy of the store at one moment consists of. While it is held, no file of it is
 * removed, renamed or written again below where it ends.
 */
import type { Seq } from "../../base/seq.ts";
import type { CommitLog } from "./commit_log.ts";
import type { Manifest, SegmentEntry } from "./manifest.ts";

export interface StoreSnapshot {
  /** Highest seq in the log at that moment. */
  readonly seq: Seq;
  readonly segments: readonly SegmentEntry[];
  /** Log files that recovery needs, in order. */
  readonly logFiles: readonly number[];
  /** Bytes of the last one that were written at that moment. */
  readonly logEnd: number;
  /** No id of SNOWFLAKE_ID() above this was handed out. */
  readonly reservedIds: number;
  /** Lets the files go. */
  release(): void;
}

/**
 * What is there in this turn, by the manifest and the log.
 * @param releases End what holds the files.
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
