/**
 * Ends a copy of the log at a seq: what was committed above it is cut off, so that a start on the
 * copy comes to the state of that seq. A commit is whole or not there: one that began at or below
 * the seq and ended above it is cut off.
 */
import type { Disk } from "../base/disk.ts";
import type { CorruptionError } from "../base/errors.ts";
import { type DataPaths, walFilePath } from "./directory/file_names.ts";
import type { Frame } from "./local_wal/format.ts";
import { logFileNumbers, readLog } from "./local_wal/reader.ts";

/** The end of the last commit at or below a seq. */
export interface LogPoint {
  readonly fileNumber: number;
  readonly offset: number;
  /** Of that commit; 0 when there is none in what was read. */
  readonly lastSeq: number;
  /** Highest seq of everything that was read. */
  readonly endSeq: number;
  /** No commit goes on behind what was read. */
  readonly isWhole: boolean;
  /** Why no more could be read. */
  readonly damage: CorruptionError | undefined;
}

/**
 * Reads a log and changes nothing.
 *
 * @param firstFile Of the log; what is below counts no more.
 * @param otherwise Where it ends when no commit at or below the seq is in it.
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

/** Cuts a log that nobody has open off behind a point, durably. @throws {DiskError} */
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
