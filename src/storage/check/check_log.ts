/**
 * Checks the log: every frame of every file, and the files that record the high-water marks. The
 * log must begin where the manifest says and reach the high-water mark. A torn tail in the last
 * file is reported only as a note, since any crash can leave one. Damage to durable bytes is a
 * fault.
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
  /** The number of the log file at which recovery begins, according to the manifest. */
  readonly firstLogFile: number | undefined;
  /** The highest seq recorded in the catalog; undefined if there is no catalog. */
  readonly catalogSeq: number | undefined;
  /** The seqs of definitions that never took effect; see `Manifest.undoneSeqs`. */
  readonly undoneSeqs: ReadonlySet<number> | undefined;
}

/** The result of a log check, as used by a repair. */
export interface LogCheck {
  readonly reading: LogReading;
  /** The damage that prevents the log from being read to its end; undefined if there is none. */
  readonly damage: CorruptionError | undefined;
  /** Whether the log was written under definitions newer than the definitions in the catalog. */
  readonly isAheadOfCatalog: boolean;
  readonly highWaterSeq: number;
  readonly isHighWaterDamaged: boolean;
  readonly reservedIds: number;
  readonly isReservationDamaged: boolean;
}

/** Readable log frames beyond the end of the log whose rows are in no segment. */
export interface LostFrames {
  /** The highest seq in the lost frames; 0 if there are none. */
  readonly lastSeq: number;
  /** For each table in the catalog, the number of lost row versions. */
  readonly rowsByTable: ReadonlyMap<number, number>;
  /** The log files that lie entirely beyond the end of the log, in order. */
  readonly files: readonly number[];
}

/** Checks the whole log. Changes nothing. */
export function checkLog(options: LogCheckOptions, listener: CheckListener): LogCheck {
  const { disk, paths, firstLogFile, catalogSeq, undoneSeqs } = options;
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
      if (undoneSeqs?.has(frame.catalogSeq) !== true) {
        catalogFault ??= aheadOf(frame, lastSeq, catalogSeq);
      }
      // The result is ignored: decoding throws if the body of the frame is invalid.
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
    const what =
      `a partly written commit group from byte ${end.offset} to ${end.wipeUpTo} was never ` +
      `acknowledged; the next startup truncates it after _seq ${lastSeq}`;
    listener.onFinding(noteFinding(end.path, what));
  }
  for (const { path, now } of staleNames) {
    const what = `the old name of file ${now}, which was recycled; the next startup removes it`;
    listener.onFinding(noteFinding(path, what));
  }
  for (const { number, bytes } of files) listener.onChecked(walFilePath(paths, number), bytes);
}

/**
 * Searches for complete frames beyond a position in the log, given by `fileNumber` and `offset`.
 *
 * @param flushedSeqOf Returns the flushed seq of a table; undefined if the table does not exist.
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
  assert(start % 8 === 0, "log check: frame does not begin at a multiple of 8 bytes");
  let bytes: Uint8Array;
  try {
    bytes = readable(path, () => disk.readFile(path));
  } catch (error) {
    // Ignoring the damage is safe: an unreadable log file has no frames to count.
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
  const what =
    `commit ${lastSeq} was written with definition ${writtenUnder}, but the catalog ends at ` +
    `${catalogSeq}, so the catalog is missing or older than the log`;
  return new CorruptionError(path, offset, what);
}

function nothingRead(paths: DataPaths): LogReading {
  const end = { path: paths.wal, fileNumber: 0, offset: 0, frameNumber: 0, wipeUpTo: 0 };
  return { files: [], outdated: [], staleNames: [], end, lastSeq: 0, damage: undefined };
}
