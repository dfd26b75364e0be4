/**
 * What a restore to a point is asked for, what a server itself has of the log, and which files and
 * which changes of the catalog lead from a backup to the point: without a gap, or an error that
 * says where it is. Nothing here changes anything.
 */

import type { Disk } from "../base/disk.ts";
import { DatabaseError } from "../base/errors.ts";
import { type Seq, seqFromNumber, seqFromUnixMs } from "../base/seq.ts";
import { type SeqEra, SeqTimes } from "../base/seq_times.ts";
import { timeText } from "../base/time_text.ts";
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

/** As a statement or a command names it: a `_seq` in digits, or a moment. */
export type PointText =
  | { readonly type: "seq"; readonly text: string }
  | { readonly type: "timestamp"; readonly value: string };

/** A point whose text was read. */
export type Point = { readonly seq: Seq } | { readonly unixMs: number };

/** What a server has of the log that is in no archive yet. */
export interface LogTail {
  readonly incarnation: string | undefined;
  /** Without gaps, ascending. */
  readonly files: readonly LogSource[];
  readonly journal: readonly JournalEntry[];
  readonly journalEnd: number;
  /** Whatever was committed up to here is in the files; undefined when only they can tell. */
  readonly endSeq: number | undefined;
  /** Where uploaded files lie that the backup does not have. */
  readonly filesRoot: string;
}

export interface LogSource {
  readonly number: number;
  readonly path: string;
  readonly bytes: number;
}

/** A file of the log; with what the archive says of it, if it is from there. */
export interface ArchivedSource extends LogSource {
  readonly unit?: ArchiveUnit;
}

/** What is asked for, and what there is of the log: plain data. */
export interface PointRequest {
  readonly source: string;
  readonly seq: Seq;
  /** The times of the seqs, as far as they are known. */
  readonly eras: readonly SeqEra[];
  readonly archivePath: string | undefined;
  readonly tail: LogTail | undefined;
  /** As of `StageRequest`. */
  readonly minFreeBytes: number;
  /** So much of the log is held at a time. */
  readonly heldBytesMax?: number;
}

/** Where a backup ends. */
export interface PointBegin {
  /** Undefined for one that is older than any archive. */
  readonly incarnation: string | undefined;
  /** Its last log file. */
  readonly fileNumber: number;
  readonly seq: Seq;
  /** The last change of the catalog that it has. */
  readonly journalEnd: number;
}

/** Reads a point as it is named. @throws {DatabaseError} INVALID_OPTION */
export function readPoint(point: PointText): Point {
  if (point.type === "seq") {
    const seq = /^\d+$/.test(point.text) ? seqFromNumber(Number(point.text)) : undefined;
    if (seq !== undefined) return { seq };
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot restore to seq "${point.text}": it is no _seq of a row, which is a number`,
    );
  }
  const unixMs = msOfMoment(point.value);
  if (seqFromNumber(seqFromUnixMs(unixMs)) !== undefined) return { unixMs };
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore to ${point.value}: no database has a _seq of that moment`,
  );
}

/**
 * The seq of a point; of a moment, the last one of its millisecond.
 *
 * @throws {DatabaseError} INVALID_OPTION
 */
export function seqOfPoint(point: Point, { lastSeqUpTo }: SeqsByTime): Seq {
  if ("seq" in point) return point.seq;
  const seq = seqFromNumber(lastSeqUpTo(point.unixMs));
  if (seq !== undefined) return seq;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore to ${timeText(point.unixMs)}: no database has a _seq of that moment`,
  );
}

/** Finds a seq by its time: the store that issued the seqs, or a record of their times. */
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
      `Cannot restore to "${text}": it is no moment of the calendar, for instance 2026-01-31T14:30:00Z`,
      { cause: error },
    );
  }
}

/** What a data directory whose server is stopped has of its log. */
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
 * The log files that lead to the point, from the last one of the backup on.
 *
 * @throws {DatabaseError} INVALID_OPTION where they do not reach it.
 */
export function sourcesOf(disk: Disk, request: PointRequest, begin: PointBegin): ArchivedSource[] {
  const { archivePath, seq, tail } = request;
  const { incarnation } = begin;
  const root = `${archivePath ?? ""}/${incarnation ?? ""}`;
  const hasArchive = archivePath !== undefined && incarnation !== undefined;
  if (archivePath !== undefined && !disk.exists(archivePath)) {
    throw pointRefused(request, `there is no archive ${archivePath}`, "name the directory of one");
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
      endReason = "nothing was committed above it yet";
      break;
    }
  }
  // Of the files of a server that is stopped, only what is in them tells how far they go.
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
    return `log file ${number} is missing in the archive, and later ones are there: ${unitListPath(root, number)}`;
  }
  if (incarnation === undefined) return "the backup is older than any archive";
  if (archivePath === undefined && tail === undefined) return "no archive of the log was named";
  const foreign =
    tail?.incarnation !== undefined && tail.incarnation !== incarnation
      ? "; the database here is another one, or was restored since the backup"
      : "";
  return `there is no log file ${number} in ${archivePath === undefined ? "the log" : `the archive ${root}`}${foreign}`;
}

/**
 * What the catalog came to on the way, as far as the point.
 *
 * @throws {DatabaseError} INVALID_OPTION if some of it was not kept.
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
        `what changed in the catalog since the backup was not kept: change ${id} of ${end} is missing, for instance because storage.archive_path was not set`,
        "restore the backup as it is, or name a later one",
      );
    }
    if (entry.stamp > seq) break;
    wanted.push(entry);
  }
  return wanted;
}

/** @throws {DatabaseError} INVALID_OPTION if the rows of a backup are of a later moment. */
export function refuseBefore(
  { seq: rowsSeq }: { readonly seq: Seq },
  request: Pick<PointRequest, "eras" | "seq" | "source">,
): void {
  if (request.seq >= rowsSeq) return;
  const what = `the backup is of seq ${rowsSeq} (${textOfSeq(rowsSeq, request)}), which is later`;
  throw pointRefused(request, what, "name an older backup");
}

/** Why a point cannot be had. */
export function pointRefused(
  { eras, seq, source }: Pick<PointRequest, "eras" | "seq" | "source">,
  what: string,
  hint?: string,
): DatabaseError {
  return new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore from ${source} to seq ${seq} (${textOfSeq(seq, { eras })}): ${what}`,
    hint === undefined ? {} : { hint },
  );
}

/** The log ends before the point. */
export function pointUncovered(
  request: PointRequest,
  reached: number,
  endReason: string,
): DatabaseError {
  const what = `the log that can be had reaches up to seq ${reached} (${textOfSeq(reached, request)})`;
  return pointRefused(request, `${what}: ${endReason}`, "name an earlier point");
}

/** The moment of a seq. */
export function textOfSeq(seq: number, { eras }: Pick<PointRequest, "eras">): string {
  return timeText(new SeqTimes({ eras }).msOf(seq));
}

/** How many uploaded files are gone, for whoever asked for the restore; undefined for none. */
export function missingText(paths: readonly string[]): string | undefined {
  const [first] = paths;
  if (first === undefined) return undefined;
  const count = paths.length === 1 ? "1 uploaded file is" : `${paths.length} uploaded files are`;
  return `${count} lost, for instance ${first}: they came after the backup, and the archive of the log has no files`;
}
