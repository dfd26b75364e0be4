/**
 * Truncates a damaged log at the damage, so that a server can start with the commits before it.
 *
 *     1 copy the part of the last file that will be cut off to lost+found/
 *     2 durably raise wal/HWM to the highest seq that can ever have been issued
 *     3 move the later files to lost+found/
 *     4 fill the rest of the last file with zeros
 *     5 add a new file with one empty commit at the seq of step 2
 *
 * - No data is destroyed: every byte that is cut off is kept in lost+found/.
 * - The empty commit makes the log reach its high-water mark again. The next startup therefore
 *   accepts the log, and continues above every seq that clients have ever seen.
 * - If a repair is interrupted at any step, the log still ends below its high-water mark. A server
 *   then refuses the log as before, and the next repair starts again from step 1.
 */
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import type { Disk } from "../../base/disk.ts";
import type { Seq } from "../../base/seq.ts";
import { type DataPaths, walFilePath } from "../directory/file_names.ts";
import { freeNameInLostAndFound, moveToLostAndFound } from "../directory/lost_and_found.ts";
import {
  beginFrame,
  encodeWalHeader,
  FRAME_HEADER_BYTES,
  sealFrame,
  WAL_HEADER_BYTES,
} from "../local_wal/format.ts";
import { rewriteNumberFile } from "../local_wal/high_water.ts";
import { logFileNumbers } from "../local_wal/reader.ts";
import { type LogCheck, type LostFrames, lostFrames } from "./check_log.ts";

/** The number of zero bytes written to the log at a time. */
const PIECE_BYTES: number = 1 << 20;

/**
 * The minimum size in bytes of the new file in which a repaired log continues. The log writer
 * begins another file once this file is full.
 */
const NEW_FILE_BYTES_MIN = 65536;

/** The point at which the log is truncated, and the commits lost beyond that point. */
export interface LogCut {
  /** The file to be truncated; undefined if no part of the log can be kept. */
  readonly lastFile: number | undefined;
  /** The offset within the truncated file at which the log ends. */
  readonly offset: number;
  /** The last seq that remains in the log. */
  readonly lastSeq: number;
  /** The seq up to which all commits were acknowledged. */
  readonly acknowledgedSeq: number;
  /** The number of the new file in which the repaired log continues. */
  readonly nextFile: number;
  readonly lost: LostFrames;
}

/** Determines which commits would be lost by truncating a damaged log. Changes nothing. */
export function plannedCut(
  disk: Disk,
  paths: DataPaths,
  {
    check,
    firstLogFile,
    flushedSeqOf,
  }: {
    check: LogCheck;
    firstLogFile: number | undefined;
    flushedSeqOf: (tableId: number) => number | undefined;
  },
): LogCut {
  const { damage, highWaterSeq, reading } = check;
  assert(damage !== undefined, "log repair: cannot cut an undamaged log");
  const { end, files, lastSeq } = reading;
  const isBegun = firstLogFile === undefined || (files[0]?.number ?? Infinity) <= firstLogFile;
  if (files.length > 0 && isBegun) {
    const { fileNumber, offset } = end;
    return {
      lastFile: fileNumber,
      offset,
      lastSeq,
      acknowledgedSeq: highWaterSeq,
      nextFile: fileNumber + 1,
      lost: lostFrames(disk, paths, { fileNumber, offset, flushedSeqOf }),
    };
  }
  // The beginning of the log is missing, so no commit after the gap can be trusted.
  const nextFile = firstLogFile ?? logFileNumbers(disk, paths)[0] ?? 1;
  return {
    lastFile: undefined,
    offset: 0,
    lastSeq: 0,
    acknowledgedSeq: highWaterSeq,
    nextFile,
    lost: lostFrames(disk, paths, { fileNumber: 0, offset: 0, flushedSeqOf }),
  };
}

/**
 * Appends an empty commit to an intact log, which makes the log continue above `floorSeq`.
 *
 * @param floorSeq Above every seq in the log.
 * @throws {DiskError}
 */
export function endLog(
  disk: Disk,
  paths: DataPaths,
  { check: { highWaterSeq, reading }, floorSeq }: { check: LogCheck; floorSeq: Seq },
): void {
  const { end, files, lastSeq } = reading;
  const lastFile = files.at(-1)?.number;
  const cut: LogCut = {
    lastFile,
    offset: end.offset,
    lastSeq,
    acknowledgedSeq: highWaterSeq,
    nextFile: (lastFile ?? 0) + 1,
    lost: { lastSeq: 0, rowsByTable: new Map(), files: [] },
  };
  cutLog(disk, paths, { cut, floorSeq });
}

/**
 * Truncates the log at the point determined by {@linkcode plannedCut}.
 *
 * @param floorSeq At or above every seq ever issued.
 * @returns The paths of the truncated parts in lost+found/.
 * @throws {DiskError}
 */
export function cutLog(
  disk: Disk,
  paths: DataPaths,
  { cut, floorSeq }: { cut: LogCut; floorSeq: Seq },
): string[] {
  const { lastFile, lastSeq, lost, nextFile, offset } = cut;
  assert(floorSeq >= cut.acknowledgedSeq, "log repair: new log begins below an acknowledged seq");
  assert(floorSeq > lastSeq, "log repair: seq of the empty commit is not the highest");
  const kept: string[] = [];
  const sizes = logFileNumbers(disk, paths).map((number) =>
    disk.sizeOf(walFilePath(paths, number)),
  );
  const fileBytes = Math.max(NEW_FILE_BYTES_MIN, ...sizes.filter((size) => size !== undefined));
  const lastPath = lastFile === undefined ? undefined : walFilePath(paths, lastFile);
  if (lastPath !== undefined) {
    const copy = copyRest(disk, paths, { path: lastPath, offset });
    if (copy !== undefined) kept.push(copy);
  }
  rewriteNumberFile(disk, paths.highWater, floorSeq);
  disk.syncDirectory(paths.wal);
  for (const number of lost.files) {
    const from = walFilePath(paths, number);
    kept.push(moveToLostAndFound(disk, paths, { from, name: from.slice(paths.wal.length + 1) }));
  }
  if (kept.length > 0) disk.syncDirectory(paths.lostAndFound);
  disk.syncDirectory(paths.root);
  disk.syncDirectory(paths.wal);
  if (lastPath !== undefined) clearRest(disk, lastPath, offset);
  const baseSeq = lastFile === undefined ? 0 : lastSeq;
  addFile(disk, paths, { number: nextFile, fileBytes, baseSeq, floorSeq });
  return kept;
}

/**
 * Copies a file from `offset` up to its last nonzero byte. Returns undefined if only zeros remain.
 */
function copyRest(
  disk: Disk,
  paths: DataPaths,
  { path, offset }: { path: string; offset: number },
): string | undefined {
  const bytes = disk.readFile(path);
  let end = bytes.length;
  while (end > offset && bytes[end - 1] === 0) end -= 1;
  if (end <= offset) return undefined;
  const name = `${path.slice(paths.wal.length + 1)}.from-${offset}`;
  const copy = freeNameInLostAndFound(disk, paths, name);
  const file = disk.open(copy, { exclusive: true });
  try {
    file.write(bytes.subarray(offset, end), 0);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.syncDirectory(paths.lostAndFound);
  return copy;
}

function clearRest(disk: Disk, path: string, offset: number): void {
  const file = disk.open(path, {});
  try {
    writeZeros(file, { from: offset, upTo: file.size() });
    file.syncNow();
  } finally {
    file.close();
  }
}

/** Adds a file with one empty commit to the end of the log. */
function addFile(
  disk: Disk,
  paths: DataPaths,
  options: { number: number; fileBytes: number; baseSeq: number; floorSeq: Seq },
): void {
  const { baseSeq, fileBytes, floorSeq, number } = options;
  const path = walFilePath(paths, number);
  const pendingPath = `${paths.tmp}/repair.wal`;
  const commit = new ByteWriter(FRAME_HEADER_BYTES);
  const head = { kind: "commit", fileNumber: number, frameNumber: 0, durableFrames: 0 } as const;
  const seqs = { firstSeq: floorSeq, lastSeq: floorSeq, catalogSeq: 0 };
  sealFrame(commit, beginFrame(commit), { ...head, ...seqs });
  const file = disk.open(pendingPath, { create: true });
  try {
    file.truncate(0);
    writeZeros(file, { from: 0, upTo: fileBytes });
    file.write(encodeWalHeader({ fileNumber: number, baseSeq }), 0);
    file.write(commit.view(), WAL_HEADER_BYTES);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.rename(pendingPath, path);
  disk.syncDirectory(paths.wal);
}

function writeZeros(
  file: ReturnType<Disk["open"]>,
  { from, upTo }: { from: number; upTo: number },
): void {
  const zeros = new Uint8Array(Math.max(0, Math.min(upTo - from, PIECE_BYTES)));
  for (let offset = from; offset < upTo; offset += zeros.length) {
    file.write(zeros.subarray(0, Math.min(zeros.length, upTo - offset)), offset);
  }
}
