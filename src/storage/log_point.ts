/**
 * Truncates a copy of the log at a seq, so that a server started on the copy recovers the state at
 * that seq. All commits that end above the seq are removed. This includes a commit that began at
 * or below the seq, because a commit is atomic.
 */
import type { Disk } from "../base/disk.ts";
import type { CorruptionError } from "../base/errors.ts";
import { type DataPaths, walFilePath } from "./directory/file_names.ts";
import type { Frame } from "./local_wal/format.ts";
import { logFileNumbers, readLog } from "./local_wal/reader.ts";

/** The end of the last commit at or below the requested seq. */
export interface LogPoint {
  readonly fileNumber: number;
  readonly offset: number;
  /** The last seq of the last commit to be kept; 0 if there is no such commit. */
  readonly lastSeq: number;
  /** The highest seq in the part of the log that could be read. */
  readonly endSeq: number;
  /** Whether the readable part of the log ends at a commit boundary. */
  readonly isWhole: boolean;
  /** The damage at which reading stopped; undefined if there was none. */
  readonly damage: CorruptionError | undefined;
}

/**
 * Finds the point at which to truncate the log. Changes nothing.
 *
 * @param firstFile The first relevant log file. Earlier files are ignored.
 * @param otherwise The point to return if the log has no commit at or below the seq.
 */
export function findLogPoint(
  disk: Disk,
  paths: DataPaths,
  {
    firstFile,
    otherwise,
    seq,
  }: {
    firstFile: number;
    otherwise: { readonly fileNumber: number; readonly offset: number };
    seq: number;
  },
): LogPoint {
  let found: { frame: Frame; lastSeq: number } | undefined;
  let last: Frame | undefined;
  const reading = readLog({ disk, paths, highWaterSeq: 0, firstFile }, ({ frames, lastSeq }) => {
    last = frames.at(-1);
    if (last !== undefined && lastSeq <= seq) found = { frame: last, lastSeq };
  });
  const { damage, end, lastSeq: endSeq } = reading;
  const isWhole =
    end.frameNumber === 0 ||
    (last?.fileNumber === end.fileNumber && last.frameNumber === end.frameNumber - 1);
  if (found === undefined) return { ...otherwise, lastSeq: 0, endSeq, isWhole, damage };
  const { frame, lastSeq } = found;
  const { fileNumber, length, offset } = frame;
  return { fileNumber, offset: offset + length, lastSeq, endSeq, isWhole, damage };
}

/** Durably truncates a log at a point. The log must not be open. @throws {DiskError} */
export function shortenLog(
  disk: Disk,
  paths: DataPaths,
  { fileNumber, offset }: Pick<LogPoint, "fileNumber" | "offset">,
): void {
  for (const number of logFileNumbers(disk, paths)) {
    if (number > fileNumber) disk.remove(walFilePath(paths, number));
  }
  const file = disk.open(walFilePath(paths, fileNumber), {});
  try {
    file.truncate(offset);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.syncDirectory(paths.wal);
}
