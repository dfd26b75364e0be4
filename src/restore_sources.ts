/**
 * What a restore to a point is asked for, and what a server itself has of the log that leads there.
 */
import { INCARNATION } from "./archive_units.ts";
import type { Disk } from "./base/disk.ts";
import { DatabaseError } from "./base/errors.ts";
import { type Seq, seqFromNumber, seqFromUnixMs } from "./base/seq.ts";
import type { CatalogDatabase, JournalEntry } from "./catalog/mod.ts";
import { type DataPaths, walFilePath } from "./storage/mod.ts";
import { datetimeFromText } from "./types/mod.ts";

/** As a statement or a command names it: a `_seq` in digits, or a moment. */
export type PointText =
  | { readonly type: "seq"; readonly text: string }
  | { readonly type: "timestamp"; readonly value: string };

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

/** How many uploaded files are gone, for whoever asked for the restore; undefined for none. */
export function missingText(paths: readonly string[]): string | undefined {
  const [first] = paths;
  if (first === undefined) return undefined;
  const count = paths.length === 1 ? "1 uploaded file is" : `${paths.length} uploaded files are`;
  return `${count} lost, for instance ${first}: they came after the backup, and the archive of the log has no files`;
}

export interface LogSource {
  readonly number: number;
  readonly path: string;
  readonly bytes: number;
}

/**
 * The seq that a text means; of a moment, the last one of its millisecond.
 *
 * @throws {DatabaseError} INVALID_OPTION, INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function seqOfPoint(point: PointText): Seq {
  if (point.type === "seq") {
    const seq = seqFromNumber(Number(point.text));
    if (seq !== undefined) return seq;
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot restore to seq ${point.text}: it is no _seq of a row`,
    );
  }
  const micros = datetimeFromText(point.value, { nowMicros: undefined });
  const ms = Math.floor(Number(micros) / 1000);
  const next = seqFromUnixMs(ms + 1);
  if (next > 0) return (next - 1) as Seq;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot restore to ${point.value}: it is before the first moment of any database`,
  );
}

/** What a data directory whose server is stopped has of its log. */
export function tailOf(disk: Disk, paths: DataPaths, catalog: CatalogDatabase): LogTail {
  const incarnation = catalog.setting(INCARNATION) ?? "";
  return {
    incarnation: incarnation === "" ? undefined : incarnation,
    files: disk
      .list(paths.wal)
      .map(({ name }) => /^(\d{10})\.wal$/.exec(name)?.[1])
      .filter((digits) => digits !== undefined)
      .map(Number)
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
