/**
 * Checks the log: every frame of every file, the number files beside it, and that it begins and
 * ends where the manifest and the high-water file say. A torn tail of the last file is a note, for
 * a crash leaves one; damage to what was durable is not.
 */
import { assert } from "../../base/assert.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { type DataPaths, walFilePath } from "../directory/file_names.ts";
import { readable } from "../directory/readable.ts";
import { decodeFrame, type Frame, WAL_HEADER_BYTES } from "../local_wal/format.ts";
import { checkNumberFile } from "../local_wal/high_water.ts";
import { decodeWrites } from "../local_wal/logged_writes.ts";
import {
  type LoggedCommit,
  type LogReading,
  logFileNumbers,
  missingBeginning,
  readLog,
} from "../local_wal/reader.ts";
import { type CheckListener, damageFinding, noteFinding } from "./findings.ts";

export interface LogCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  /** File that recovery begins with, by the manifest. */
  readonly firstLogFile: number | undefined;
  /** Highest seq that the catalog knows; undefined when there is no catalog to ask. */
  readonly catalogSeq: number | undefined;
}

/** What the check of the log found, for who repairs it. */
export interface LogCheck {
  readonly reading: LogReading;
  /** Why the log cannot be read to its end. */
  readonly damage: CorruptionError | undefined;
  /** The log was written under definitions that the catalog does not have. */
  readonly isAheadOfCatalog: boolean;
  readonly highWaterSeq: number;
  readonly isHighWaterDamaged: boolean;
  readonly reservedIds: number;
  readonly isReservationDamaged: boolean;
}

/** What can still be read of the log behind where it ends, and lies in no segment. */
export interface LostFrames {
  /** Highest seq in them, or 0. */
  readonly lastSeq: number;
  /** Row versions, of tables that the catalog knows. */
  readonly rowsByTable: ReadonlyMap<number, number>;
  /** Files that lie wholly behind the end, in order. */
  readonly files: readonly number[];
}

/** Reads everything and changes nothing. */
export function checkLog(options: LogCheckOptions, listener: CheckListener): LogCheck {
  const { disk, paths, firstLogFile, catalogSeq } = options;
  const hasLog = disk.exists(paths.wal);
  const hasFiles = hasLog && logFileNumbers(disk, paths).length > 0;
  const [highWater, ids] = [paths.highWater, paths.ids].map((path) =>
    hasFiles || disk.exists(path) ? checkNumberFile(disk, path) : undefined,
  );
  const numberFaults = [...(highWater?.damage ?? []), ...(ids?.damage ?? [])];
  for (const fault of numberFaults) listener.onFinding(damageFinding(fault));
  let catalogFault: CorruptionError | undefined;
  const note = ({ frames, lastSeq }: LoggedCommit): void => {
    for (const frame of frames) {
      catalogFault ??= aheadOf(frame, lastSeq, catalogSeq);
      // Throws where a body does not say what a body says.
      decodeWrites(frame);
    }
  };
  const highWaterSeq = highWater?.value ?? 0;
  const firstFile = firstLogFile ?? 0;
  const reading = hasLog
    ? readLog({ disk, paths, highWaterSeq, firstFile }, note)
    : nothingRead(paths);
  const damage = reading.damage ?? missingBeginning(paths, reading, firstLogFile);
  for (const fault of [damage, catalogFault]) {
    if (fault !== undefined) listener.onFinding(damageFinding(fault));
  }
  noteRest(reading, paths, listener);
  return {
    reading,
    damage,
    isAheadOfCatalog: catalogFault !== undefined,
    highWaterSeq,
    isHighWaterDamaged: (highWater?.damage.length ?? 0) > 0,
    reservedIds: ids?.value ?? 0,
    isReservationDamaged: (ids?.damage.length ?? 0) > 0,
  };
}

function noteRest(
  { damage, end, files, lastSeq, staleNames }: LogReading,
  paths: DataPaths,
  listener: CheckListener,
): void {
  if (damage === undefined && end.wipeUpTo > end.offset) {
    const what = `a torn group from byte ${end.offset} to ${end.wipeUpTo}, never acknowledged; a start cuts it after seq ${lastSeq}`;
    listener.onFinding(noteFinding(end.path, what));
  }
  for (const { path, now } of staleNames) {
    const what = `the old name of file ${now}, which was recycled; a start removes it`;
    listener.onFinding(noteFinding(path, what));
  }
  for (const { number, bytes } of files) listener.onChecked(walFilePath(paths, number), bytes);
}

/**
 * Looks at everything behind a place of the log for frames that are whole.
 *
 * @param flushedSeqOf How far a table is in segments; undefined for one that there is not.
 */
export function lostFrames(
  disk: Disk,
  paths: DataPaths,
  {
    fileNumber,
    offset,
    flushedSeqOf,
  }: {
    fileNumber: number;
    offset: number;
    flushedSeqOf: (tableId: number) => number | undefined;
  },
): LostFrames {
  const rowsByTable = new Map<number, number>();
  const files: number[] = [];
  let lastSeq = 0;
  for (const number of logFileNumbers(disk, paths)) {
    if (number < fileNumber) continue;
    if (number > fileNumber) files.push(number);
    const start = number === fileNumber ? offset : WAL_HEADER_BYTES;
    for (const frame of framesIn(disk, walFilePath(paths, number), { number, start })) {
      lastSeq = Math.max(lastSeq, frame.lastSeq);
      for (const { seqs, tableId } of decodeWrites(frame)) {
        const flushedSeq = flushedSeqOf(tableId) ?? Infinity;
        const count = seqs.filter((seq) => seq > flushedSeq).length;
        if (count > 0) rowsByTable.set(tableId, (rowsByTable.get(tableId) ?? 0) + count);
      }
    }
  }
  return { lastSeq, rowsByTable, files };
}

function* framesIn(
  disk: Disk,
  path: string,
  { number, start }: { number: number; start: number },
): Generator<Frame> {
  assert(start % 8 === 0, "frames begin at multiples of 8");
  let bytes: Uint8Array;
  try {
    bytes = readable(path, () => disk.readFile(path));
  } catch (error) {
    // Safe: what cannot be read has no frames to count.
    if (error instanceof CorruptionError) return;
    throw error;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = start; at + 16 <= bytes.length; ) {
    const isCandidate = view.getUint32(at + 8, true) === number;
    const frame = isCandidate
      ? decodeFrame(bytes, { path, offset: at, fileNumber: number })
      : undefined;
    if (frame !== undefined) yield frame;
    at += frame?.length ?? 8;
  }
}

function aheadOf(
  { catalogSeq: writtenUnder, offset, path }: Frame,
  lastSeq: number,
  catalogSeq: number | undefined,
): CorruptionError | undefined {
  if (catalogSeq === undefined || writtenUnder <= catalogSeq) return undefined;
  const what = `commit ${lastSeq} was written under definition ${writtenUnder}, and the catalog ends at ${catalogSeq}: it is missing, or older than the log`;
  return new CorruptionError(path, offset, what);
}

function nothingRead(paths: DataPaths): LogReading {
  const end = { path: paths.wal, fileNumber: 0, offset: 0, frameNumber: 0, wipeUpTo: 0 };
  return { files: [], outdated: [], staleNames: [], end, lastSeq: 0, damage: undefined };
}
