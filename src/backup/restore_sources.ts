/**
 * Finds the sources for a point-in-time restore: parses the requested point, determines which part
 * of the log the server itself still has, and lists the log files and catalog changes that lead
 * from a backup to the point. A gap causes an error that names the missing part. No function here
 * changes a file.
 */

import { timeText } from "../base/clock.ts";
import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";
import { type Seq, seqFromNumber, seqFromUnixMs } from "../base/seq.ts";
import { type SeqEra, SeqTimes } from "../base/seq_times.ts";
import type { CatalogDatabase, JournalEntry } from "../catalog/mod.ts";
import { type DataPaths, walFileNumberFromName, walFilePath } from "../storage/files.ts";
import { datetimeFromText } from "../types/mod.ts";
import {
  type ArchiveUnit,
  archivedFiles,
  INCARNATION,
  readUnit,
  unitListPath,
  unitLogPath,
} from "./archive_units.ts";

/**
 * A requested point in time, as written in a statement or command: a `_seq` in digits, or a time.
 */
export type PointText =
  | { readonly type: "seq"; readonly text: string }
  | { readonly type: "timestamp"; readonly value: string };

/** A parsed point in time: a time, or the seq of a commit. */
export type Point = { readonly seq: Seq } | { readonly unixMs: number };

/** The part of a server's log that is not in the archive yet. */
export interface LogTail {
  readonly incarnation: string | undefined;
  /** The log files to replay, in ascending order and without gaps. */
  readonly files: readonly LogSource[];
  readonly journal: readonly JournalEntry[];
  readonly journalEnd: number;
  /**
   * The seq up to which the log files contain every commit; undefined if only reading the files
   * shows it.
   */
  readonly endSeq: number | undefined;
  /** The directory that contains the files uploaded since the backup. */
  readonly filesRoot: string;
}

export interface LogSource {
  readonly number: number;
  readonly path: string;
  readonly bytes: number;
}

/** A log file and, if it comes from the archive, the list that describes it. */
export interface ArchivedSource extends LogSource {
  readonly unit?: ArchiveUnit;
}

/**
 * A request for a point-in-time restore and the available log, as plain data that another thread
 * can receive.
 */
export interface PointRequest {
  readonly source: string;
  readonly seq: Seq;
  /** The eras from which the time of each seq is computed. */
  readonly eras: readonly SeqEra[];
  readonly archivePath: string | undefined;
  readonly tail: LogTail | undefined;
  /** The number of bytes that must remain free on the disk, as in `StageRequest`. */
  readonly minFreeBytes: number;
  /** The maximum number of log bytes that the restore keeps in memory. */
  readonly heldBytesMax?: number;
}

/** The position in the log and the journal at which a backup ends. */
export interface PointBegin {
  /**
   * The incarnation of the database that was backed up; undefined if the backup is older than any
   * archive.
   */
  readonly incarnation: string | undefined;
  /** The number of the backup's last log file. */
  readonly fileNumber: number;
  readonly seq: Seq;
  /** The id of the last catalog change that the backup contains. */
  readonly journalEnd: number;
}

/**
 * Parses the point in time that a statement or command requests.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function readPoint(point: PointText): Point {
  if (point.type === "seq") {
    const seq = /^\d+$/.test(point.text) ? seqFromNumber(Number(point.text)) : undefined;
    if (seq !== undefined) return { seq };
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot restore to _seq "${point.text}": it must be a number, such as the _seq of a row`,
    );
  }
  const unixMs = msOfMoment(point.value);
  if (seqFromNumber(seqFromUnixMs(unixMs)) !== undefined) return { unixMs };
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore to ${point.value}: the time is outside the range that a _seq can represent`,
  );
}

/**
 * Returns the seq of a requested point in time. If it is given as a time, this is the last seq
 * issued in that millisecond.
 *
 * @throws {DatabaseError} INVALID_OPTION
 */
export function seqOfPoint(point: Point, { lastSeqUpTo }: SeqsByTime): Seq {
  if ("seq" in point) return point.seq;
  const seq = seqFromNumber(lastSeqUpTo(point.unixMs));
  if (seq !== undefined) return seq;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore to ${timeText(point.unixMs)}: the time is outside the range that a _seq ` +
      "can represent",
  );
}

/**
 * Finds a seq by its time, either in the store that issued the seqs, or in a record of their
 * times.
 */
export interface SeqsByTime {
  readonly lastSeqUpTo: (unixMs: number) => number;
}

function msOfMoment(text: string): number {
  try {
    return Math.floor(Number(datetimeFromText(text, { nowMicros: undefined })) / 1000);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot restore to "${text}": it is not a valid time; write, for example, ` +
        "2026-01-31T14:30:00Z",
      { cause: error },
    );
  }
}

/** Returns the part of the log that is in the data directory of a stopped server. */
export function tailOf(disk: Disk, paths: DataPaths, catalog: CatalogDatabase): LogTail {
  const incarnation = catalog.setting(INCARNATION) ?? "";
  return {
    incarnation: incarnation === "" ? undefined : incarnation,
    files: disk
      .list(paths.wal)
      .map(({ name }) => walFileNumberFromName(name))
      .filter((number) => number !== undefined)
      .toSorted((left, right) => left - right)
      .map((number) => {
        const path = walFilePath(paths, number);
        return { number, path, bytes: disk.sizeOf(path) ?? 0 };
      }),
    journal: catalog.journal.after(0),
    journalEnd: catalog.journal.end,
    endSeq: undefined,
    filesRoot: paths.root,
  };
}

/**
 * Returns the log files that lead to the requested seq, starting with the backup's last log file.
 *
 * @throws {DatabaseError} INVALID_OPTION if the files do not reach the seq.
 */
export function sourcesOf(disk: Disk, request: PointRequest, begin: PointBegin): ArchivedSource[] {
  const { archivePath, seq, tail } = request;
  const { incarnation } = begin;
  const root = `${archivePath ?? ""}/${incarnation ?? ""}`;
  const hasArchive = archivePath !== undefined && incarnation !== undefined;
  if (archivePath !== undefined && !disk.exists(archivePath)) {
    throw pointRefused(
      request,
      `there is no archive ${archivePath}`,
      "specify the directory of an archive",
    );
  }
  const archived = new Set(hasArchive ? archivedFiles(disk, root) : []);
  const isOwnTail = tail !== undefined && tail.incarnation === incarnation;
  const tailFiles = new Map(
    (isOwnTail ? tail.files : []).map((file) => [file.number, file] as const),
  );
  const sources: ArchivedSource[] = [];
  let endReason = "";
  let reached: number = begin.seq;
  for (let number = begin.fileNumber; reached < seq; number += 1) {
    if (archived.has(number)) {
      const unit = readUnit(disk, root, number);
      sources.push({ number, path: unitLogPath(root, number), bytes: unit.bytes, unit });
      reached = Math.max(reached, unit.lastSeq);
      continue;
    }
    const file = tailFiles.get(number);
    if (file === undefined) {
      const known = [...archived, ...tailFiles.keys()];
      endReason = whyNoFile(number, request, { incarnation, known, root });
      break;
    }
    sources.push(file);
    if (number === tail?.files.at(-1)?.number) {
      reached = Math.max(reached, tail.endSeq ?? seq);
      endReason = "nothing has been committed after this point yet";
      break;
    }
  }
  // For a stopped server, only reading the log files shows which seqs they contain.
  if (reached < seq) throw pointUncovered(request, reached, endReason);
  return sources;
}

function whyNoFile(
  number: number,
  { archivePath, tail }: PointRequest,
  {
    incarnation,
    known,
    root,
  }: { incarnation: string | undefined; known: readonly number[]; root: string },
): string {
  if (known.some((other) => other > number)) {
    return (
      `log file ${number} is missing from the archive, although later ones exist: ` +
      unitListPath(root, number)
    );
  }
  if (incarnation === undefined) return "the backup is older than all archives";
  if (archivePath === undefined && tail === undefined) return "no log archive was specified";
  const foreign =
    tail?.incarnation !== undefined && tail.incarnation !== incarnation
      ? "; the archive belongs to a different database, or this database was itself restored " +
        "after the backup"
      : "";
  return (
    `log file ${number} is missing ` +
    `from ${archivePath === undefined ? "the log" : `the archive ${root}`}${foreign}`
  );
}

/**
 * Returns the catalog changes between the backup and the seq to restore.
 *
 * @throws {DatabaseError} INVALID_OPTION if some of these changes were not kept.
 */
export function journalOf(
  sources: readonly ArchivedSource[],
  request: PointRequest,
  { journalEnd: begin }: PointBegin,
): readonly JournalEntry[] {
  if (sources.length === 0) return [];
  const { seq, tail } = request;
  const entries = new Map<number, JournalEntry>();
  let end = begin;
  const units = sources.map(({ unit }) => unit).filter((unit) => unit !== undefined);
  const usesTail = units.length < sources.length && tail !== undefined;
  const lists = [...units, ...(usesTail ? [tail] : [])];
  for (const { journal, journalEnd } of lists) {
    end = Math.max(end, journalEnd);
    for (const entry of journal) entries.set(entry.id, entry);
  }
  const wanted: JournalEntry[] = [];
  for (let id = begin + 1; id <= end; id += 1) {
    const entry = entries.get(id);
    if (entry === undefined) {
      throw pointRefused(
        request,
        `the catalog changes since the backup were not kept: change ${id} of ${end} is ` +
          "missing, for example because storage.archive_path was not set",
        "restore the backup unchanged, or choose a later backup",
      );
    }
    if (entry.stamp > seq) break;
    wanted.push(entry);
  }
  return wanted;
}

/**
 * Refuses to restore a backup to a point in time before the end of the backup.
 * @throws {DatabaseError} INVALID_OPTION if the rows of the backup are newer than the requested
 *   point.
 */
export function refuseBefore(
  { seq: rowsSeq }: { readonly seq: Seq },
  request: Pick<PointRequest, "eras" | "seq" | "source">,
): void {
  if (request.seq >= rowsSeq) return;
  const what =
    `the backup has rows up to _seq ${rowsSeq} (${textOfSeq(rowsSeq, request)}), which is ` +
    "later";
  throw pointRefused(request, what, "choose an older backup");
}

/** Returns the error for a point in time that a restore cannot reach. */
export function pointRefused(
  { eras, seq, source }: Pick<PointRequest, "eras" | "seq" | "source">,
  what: string,
  hint?: string,
): DatabaseError {
  return new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore from ${source} to _seq ${seq} (${textOfSeq(seq, { eras })}): ${what}`,
    hint === undefined ? {} : { hint },
  );
}

/** Returns the error for a log that ends before the requested point in time. */
export function pointUncovered(
  request: PointRequest,
  reached: number,
  endReason: string,
): DatabaseError {
  const what = `the available log reaches only _seq ${reached} (${textOfSeq(reached, request)})`;
  return pointRefused(request, `${what}: ${endReason}`, "choose an earlier point");
}

/** Returns the time at which a seq was issued, as text. */
export function textOfSeq(seq: number, { eras }: Pick<PointRequest, "eras">): string {
  return timeText(new SeqTimes({ eras }).msOf(seq));
}

/** Returns a message about missing uploaded files; undefined if no file is missing. */
export function missingText(paths: readonly string[]): string | undefined {
  const [first] = paths;
  if (first === undefined) return undefined;
  const count = paths.length === 1 ? "1 uploaded file is" : `${paths.length} uploaded files are`;
  return (
    `${count} lost, for example ${first}: the log archive contains no files uploaded after the ` +
    "backup"
  );
}
