/**
 * Reads the log at start: every commit that is whole, in order, and where the next one goes.
 *
 * What is found at the end of the valid frames of a file decides:
 *
 *     nothing of this file                          the clean end
 *     an invalid frame, no valid one behind it      torn: cut there, if the high-water file agrees
 *     valid frames that were in the same group      torn: a group is written at once, and any part
 *                                                   of it may have reached the disk
 *     a valid frame that knew the bad one durable   damage: refused, naming file and offset
 *     the next file continues from a higher seq     damage: refused likewise
 */
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { type DataPaths, walFileNumberFromName, walFilePath } from "../file_names.ts";
import {
  decodeFrame,
  decodeWalHeader,
  type Frame,
  WAL_HEADER_BYTES,
  type WalHeader,
} from "./format.ts";

/** A commit as the log has it: one frame, or the frames of its parts. */
export interface LoggedCommit {
  readonly frames: readonly Frame[];
  readonly lastSeq: number;
}

/** Where the log ends. */
export interface WalEnd {
  readonly files: readonly { readonly number: number; readonly bytes: number }[];
  /** Offset in the last file, and the number of the frame that goes there. */
  readonly offset: number;
  readonly frameNumber: number;
  /** Highest seq in the log, or 0. */
  readonly lastSeq: number;
  /** Bytes from `offset` up to here are remains of a torn group, which must be wiped. */
  readonly wipeUpTo: number;
}

export interface WalReadOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly log: Log;
  /** From the high-water file. */
  readonly highWaterSeq: number;
}

interface FileEnd {
  readonly path: string;
  readonly offset: number;
  readonly frameNumber: number;
  readonly wipeUpTo: number;
}

/**
 * Calls `visit` with each commit, in order of seq; frames alias memory that lives on with them.
 *
 * @throws {CorruptionError} If something that was durable is damaged or missing.
 */
export function readWal(options: WalReadOptions, visit: (commit: LoggedCommit) => void): WalEnd {
  const { disk, paths, log, highWaterSeq } = options;
  const assembler = new CommitAssembler(visit);
  const files: { number: number; bytes: number }[] = [];
  let end: FileEnd = { path: paths.wal, offset: 0, frameNumber: 0, wipeUpTo: 0 };
  for (const number of fileNumbers(disk, paths)) {
    const path = walFilePath(paths, number);
    const bytes = disk.readFile(path);
    const header = decodeWalHeader(bytes, path);
    if (header.fileNumber !== number) {
      // Its name was being taken away for recycling; nothing in it counts any more.
      log.warn("removed the old name of a recycled log file", { path, now: header.fileNumber });
      disk.remove(path);
      continue;
    }
    if (files.length > 0)
      requireContinuation(header, { previous: files.at(-1)?.number, path, end });
    if (files.length > 0 && header.baseSeq !== assembler.lastSeq) {
      throw new CorruptionError(
        end.path,
        end.offset,
        `the log ends here at seq ${assembler.lastSeq}, and ${path} continues after seq ${header.baseSeq}`,
      );
    }
    assembler.observe(header);
    files.push({ number, bytes: bytes.length });
    end = readFile(bytes, { path, fileNumber: number }, (frame) => assembler.add(frame));
  }
  if (assembler.lastSeq < highWaterSeq) {
    throw new CorruptionError(
      end.path,
      end.offset,
      `the log ends here at seq ${assembler.lastSeq}, and commits up to seq ${highWaterSeq} were acknowledged`,
    );
  }
  if (end.wipeUpTo > end.offset) {
    log.warn("cut a torn group at the end of the log", { path: end.path, offset: end.offset });
  }
  const { offset, frameNumber, wipeUpTo } = end;
  const { lastSeq } = assembler;
  return { files, offset, frameNumber, wipeUpTo, lastSeq };
}

/** Puts parts together; keeps the highest seq. */
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
        // Parts without an end belong to a commit that was taken back or never finished.
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
        // Without a beginning it lay in a file that no table needed any more.
        if (this.#parts !== undefined) {
          this.#visit({ frames: [...this.#parts, frame], lastSeq: frame.lastSeq });
        }
        this.#parts = undefined;
    }
  }
}

function fileNumbers(disk: Disk, paths: DataPaths): number[] {
  return disk
    .list(paths.wal)
    .map(({ name }) => walFileNumberFromName(name))
    .filter((number) => number !== undefined)
    .toSorted((left, right) => left - right);
}

function requireContinuation(
  header: WalHeader,
  { previous, path, end }: { previous: number | undefined; path: string; end: FileEnd },
): void {
  if (previous !== undefined && header.fileNumber !== previous + 1) {
    throw new CorruptionError(
      end.path,
      end.offset,
      `the next log file is missing: ${path} is number ${header.fileNumber}`,
    );
  }
}

function readFile(
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
  const wipeUpTo = endOfTornGroup(bytes, { path, offset, fileNumber, frameNumber });
  return { path, offset, frameNumber, wipeUpTo };
}

/**
 * Looks behind the last valid frame.
 *
 * @returns Where the remains of a torn group end; `offset` when there are none.
 * @throws {CorruptionError} If a frame there says that what is missing was durable.
 */
function endOfTornGroup(
  bytes: Uint8Array,
  place: { path: string; offset: number; fileNumber: number; frameNumber: number },
): number {
  const { path, offset, fileNumber, frameNumber } = place;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = offset;
  if (offset + 16 <= bytes.length && view.getUint32(offset + 8, true) === fileNumber) {
    end = Math.min(bytes.length, offset + Math.max(16, view.getUint32(offset + 4, true)));
  }
  for (let at = offset; at + 16 <= bytes.length; at += 8) {
    // Cheap first: nearly every place is zero, or has the number of an older file.
    if (view.getUint32(at + 8, true) !== fileNumber) continue;
    const frame = decodeFrame(bytes, { path, offset: at, fileNumber });
    if (frame === undefined) continue;
    if (frame.durableFrames > frameNumber) {
      throw new CorruptionError(
        path,
        offset,
        `frame ${frameNumber} is damaged; frame ${frame.frameNumber} at byte ${at} was written after it`,
      );
    }
    end = Math.max(end, at + frame.length);
  }
  return end;
}
