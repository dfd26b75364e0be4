/**
 * Reads the log at startup: every complete commit in order, and the position of the next commit.
 *
 * The bytes after the last valid frame of a file determine how the log ends:
 *
 *     no frame of this file                         the clean end
 *     an invalid frame, no valid one after it       torn: truncated, if the high-water file agrees
 *     valid frames that were in the same group      torn: a group is written at once, and any part
 *                                                   of it may have reached the disk
 *     a valid frame says the bad frame was durable  damage: refused, naming file and offset
 *     the next file continues from a higher seq     damage: refused likewise
 */
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type DataPaths, walFileNumberFromName, walFilePath } from "../directory/file_names.ts";
import { readable } from "../directory/readable.ts";
import {
  decodeFrame,
  decodeWalHeader,
  type Frame,
  WAL_HEADER_BYTES,
  type WalHeader,
} from "./format.ts";

/** A commit in the log: a single frame or, for a large commit, the frames of its parts. */
export interface LoggedCommit {
  readonly frames: readonly Frame[];
  readonly lastSeq: number;
}

/** The position at which the log ends. */
export interface WalEnd {
  readonly files: readonly { readonly number: number; readonly bytes: number }[];
  /**
   * Log files before `firstFile`. They had been released, but a crash undid the removal of their
   * names.
   */
  readonly outdated: readonly string[];
  /** Recycled files that still have their old names. Their contents are ignored. */
  readonly staleNames: readonly { readonly path: string; readonly now: number }[];
  /** The offset in the last log file at which the log ends. */
  readonly offset: number;
  readonly frameNumber: number;
  /** The highest seq in the log; 0 if the log is empty. */
  readonly lastSeq: number;
  /**
   * The end of the bytes that belong to a torn group and must be wiped. They start at `offset`.
   */
  readonly wipeUpTo: number;
}

export interface WalReadOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly log: Log;
  /** The number in the high-water file. */
  readonly highWaterSeq: number;
  /** The number of the log's first file. Earlier files are ignored even if they are intact. */
  readonly firstFile: number;
}

/** The position at which the valid frames of a log file end. */
interface FileEnd {
  readonly path: string;
  /** The number of the file; 0 before the first file. */
  readonly fileNumber: number;
  readonly offset: number;
  readonly frameNumber: number;
  readonly wipeUpTo: number;
}

/** The part of the log that can be read. */
export interface LogReading {
  /** The log files up to the end of the log, in order. */
  readonly files: WalEnd["files"];
  /**
   * Log files before `firstFile`. They had been released, but a crash undid the removal of their
   * names.
   */
  readonly outdated: WalEnd["outdated"];
  readonly staleNames: WalEnd["staleNames"];
  readonly end: FileEnd;
  readonly lastSeq: number;
  /**
   * The damage that makes durable bytes beyond the end of the log unreadable; undefined if there
   * is none.
   */
  readonly damage: CorruptionError | undefined;
}

/**
 * Calls `visit` with each commit, in seq order. The frames share the memory of their file and keep
 * it alive.
 *
 * @throws {CorruptionError} If durable bytes of the log are damaged or missing.
 */
export function readWal(options: WalReadOptions, visit: (commit: LoggedCommit) => void): WalEnd {
  const { log } = options;
  const { files, outdated, staleNames, end, lastSeq, damage } = readLog(options, visit);
  if (damage !== undefined) throw damage;
  const { path, offset, frameNumber, wipeUpTo } = end;
  if (wipeUpTo > offset) {
    log.warn("truncated a partly written group at the end of the log", { path, offset });
  }
  return { files, outdated, staleNames, offset, frameNumber, wipeUpTo, lastSeq };
}

/** Reads as much of the log as possible. Changes nothing, and does not throw on damage. */
export function readLog(
  { disk, firstFile, paths, highWaterSeq }: Omit<WalReadOptions, "log">,
  visit: (commit: LoggedCommit) => void,
): LogReading {
  const assembler = new CommitAssembler(visit);
  const files: { number: number; bytes: number }[] = [];
  const outdated: string[] = [];
  const staleNames: { path: string; now: number }[] = [];
  let end: FileEnd = { path: paths.wal, fileNumber: 0, offset: 0, frameNumber: 0, wipeUpTo: 0 };
  let damage: CorruptionError | undefined;
  for (const number of logFileNumbers(disk, paths)) {
    const path = walFilePath(paths, number);
    if (number < firstFile) {
      outdated.push(path);
      continue;
    }
    try {
      const bytes = readable(path, () => disk.readFile(path));
      const header = decodeWalHeader(bytes, path);
      if (header.fileNumber !== number) {
        // This file was recycled, but a crash lost its new name, so the file still has its old
        // name.
        staleNames.push({ path, now: header.fileNumber });
        continue;
      }
      if (files.length > 0) requireContinuation(header, { path, end, lastSeq: assembler.lastSeq });
      assembler.observe(header);
      files.push({ number, bytes: bytes.length });
      end = readFrames(bytes, { path, fileNumber: number }, (frame) => assembler.add(frame));
      end = { ...end, wipeUpTo: endOfTornGroup(bytes, end) };
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      damage = error;
      break;
    }
  }
  const { lastSeq } = assembler;
  if (lastSeq < highWaterSeq) {
    damage ??= new CorruptionError(
      end.path,
      end.offset,
      `the log ends here at _seq ${lastSeq}, although commits up to _seq ${highWaterSeq} were ` +
        "acknowledged",
    );
  }
  return { files, outdated, staleNames, end, lastSeq, damage };
}

/** Returns the damage to report if the first files of the log are missing. */
export function missingBeginning(
  paths: DataPaths,
  { files }: Pick<LogReading, "files">,
  firstLogFile: number | undefined,
): CorruptionError | undefined {
  const found = files[0]?.number ?? Infinity;
  if (firstLogFile === undefined || found <= firstLogFile) return undefined;
  return new CorruptionError(
    walFilePath(paths, firstLogFile),
    0,
    found === Infinity
      ? "the file is missing, as is the rest of the log"
      : "the file is missing, or the catalog is older than the log, which begins with file " +
          `${found}`,
  );
}

/** Returns the numbers of all files that are named like a log file, in ascending order. */
export function logFileNumbers(disk: Disk, paths: DataPaths): number[] {
  return disk
    .list(paths.wal)
    .map(({ name }) => walFileNumberFromName(name))
    .filter((number) => number !== undefined)
    .toSorted((left, right) => left - right);
}

/** Joins the parts of each commit, and keeps track of the highest seq. */
class CommitAssembler {
  readonly #visit: (commit: LoggedCommit) => void;
  #parts: Frame[] | undefined;
  lastSeq = 0;

  constructor(visit: (commit: LoggedCommit) => void) {
    this.#visit = visit;
  }

  observe({ baseSeq }: WalHeader): void {
    this.lastSeq = Math.max(this.lastSeq, baseSeq);
  }

  add(frame: Frame): void {
    this.lastSeq = Math.max(this.lastSeq, frame.lastSeq);
    switch (frame.kind) {
      case "commit":
        // Drops the parts collected so far: without a part-end frame, their commit was rolled back
        // or never ended.
        this.#parts = undefined;
        this.#visit({ frames: [frame], lastSeq: frame.lastSeq });
        return;
      case "partBegin":
        this.#parts = [frame];
        return;
      case "part":
        this.#parts?.push(frame);
        return;
      case "partEnd":
        // If no earlier part was collected, the commit began in a file that was released because
        // no table needed it.
        if (this.#parts !== undefined) {
          this.#visit({ frames: [...this.#parts, frame], lastSeq: frame.lastSeq });
        }
        this.#parts = undefined;
    }
  }
}

function requireContinuation(
  header: WalHeader,
  { path, end, lastSeq }: { path: string; end: FileEnd; lastSeq: number },
): void {
  if (header.fileNumber !== end.fileNumber + 1) {
    throw new CorruptionError(
      end.path,
      end.offset,
      `the next log file is missing: ${path} has the number ${header.fileNumber}`,
    );
  }
  if (header.baseSeq !== lastSeq) {
    throw new CorruptionError(
      end.path,
      end.offset,
      `the log ends here at _seq ${lastSeq}, but ${path} continues after _seq ${header.baseSeq}`,
    );
  }
}

function readFrames(
  bytes: Uint8Array,
  { path, fileNumber }: { path: string; fileNumber: number },
  visit: (frame: Frame) => void,
): FileEnd {
  let offset = WAL_HEADER_BYTES;
  let frameNumber = 0;
  for (;;) {
    const frame = decodeFrame(bytes, { path, offset, fileNumber });
    if (frame === undefined || frame.frameNumber !== frameNumber) break;
    visit(frame);
    offset += frame.length;
    frameNumber += 1;
  }
  return { path, fileNumber, offset, frameNumber, wipeUpTo: offset };
}

/**
 * Examines the bytes after the last valid frame.
 *
 * @returns The end of the remains of a torn group; `offset` if there are none.
 * @throws {CorruptionError} If a later frame shows that the missing bytes were durable.
 */
function endOfTornGroup(bytes: Uint8Array, place: FileEnd): number {
  const { path, offset, fileNumber, frameNumber } = place;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = offset;
  if (offset + 16 <= bytes.length && view.getUint32(offset + 8, true) === fileNumber) {
    end = Math.min(bytes.length, offset + Math.max(16, view.getUint32(offset + 4, true)));
  }
  for (let at = offset; at + 16 <= bytes.length; at += 8) {
    // The inexpensive test comes first: nearly every position contains zeros or the number of an
    // older file.
    if (view.getUint32(at + 8, true) !== fileNumber) continue;
    const frame = decodeFrame(bytes, { path, offset: at, fileNumber });
    if (frame === undefined) continue;
    if (frame.durableFrames > frameNumber) {
      throw new CorruptionError(
        path,
        offset,
        `frame ${frameNumber} is damaged, although frame ${frame.frameNumber} at byte ${at} ` +
          "was written after it",
      );
    }
    end = Math.max(end, at + frame.length);
  }
  return end;
}
