/**
 * The archive of the log: what lies in it, and how it is read.
 *
 *     <archive_path>/<incarnation>/0000000007.wal    a full file of the log, as it is
 *                                  0000000007.json   its checksum, its seqs, and what the catalog
 *                                                    came to meanwhile; written last
 *
 * - A log file without its list is not in the archive.
 * - Files of an incarnation are numbered without gaps; a restore begins another incarnation, so
 *   what a database and its restored successor write never mixes.
 */
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError } from "../base/errors.ts";
import type { JournalEntry } from "../catalog/mod.ts";
import { readSealedText, writeSealedText } from "../storage/files.ts";

/** Raised whenever an older program could not read what this one writes. */
const ARCHIVE_FORMAT = 1;

const LIST_NAME = /^(\d{10})\.json$/;

/** One log file of the archive, and what belongs to it. */
export interface ArchiveUnit {
  readonly incarnation: string;
  readonly file: number;
  readonly bytes: number;
  /** CRC-32 of the log file. */
  readonly crc: number;
  /** Last seq of the files before it, and of it. */
  readonly baseSeq: number;
  readonly lastSeq: number;
  /** Id of the last transaction of the catalog that is in this list or in one before it. */
  readonly journalEnd: number;
  readonly journal: readonly JournalEntry[];
}

/** Name of the setting of the catalog that tells databases, and their lives, apart. */
export const INCARNATION = "incarnation";

export function unitLogPath(root: string, file: number): string {
  return `${root}/${String(file).padStart(10, "0")}.wal`;
}

export function unitListPath(root: string, file: number): string {
  return `${root}/${String(file).padStart(10, "0")}.json`;
}

/** Numbers of the log files that are in an archive, ascending. @throws {DiskError} */
export function archivedFiles(disk: Disk, root: string): number[] {
  if (!disk.exists(root)) return [];
  return disk
    .list(root)
    .map(({ name }) => LIST_NAME.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .toSorted((left, right) => left - right);
}

/** Finishes a unit, durably; its log file is there. @throws {DiskError} */
export function writeUnit(disk: Disk, root: string, unit: ArchiveUnit): void {
  writeSealedText(
    disk,
    unitListPath(root, unit.file),
    JSON.stringify({ format: ARCHIVE_FORMAT, ...unit }),
  );
}

/**
 * @throws {CorruptionError} If it is damaged, or the list of another file.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if a newer version wrote it.
 */
export function readUnit(disk: Disk, root: string, file: number): ArchiveUnit {
  const path = unitListPath(root, file);
  const unit = JSON.parse(readSealedText(disk, path)) as ArchiveUnit & { format?: unknown };
  if (unit.format !== ARCHIVE_FORMAT) {
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot read ${path}: the archive has format ${String(unit.format)}, and this version reads ${ARCHIVE_FORMAT}`,
      { hint: "restore it with the newer Tidemark that made it" },
    );
  }
  if (unit.file !== file || !root.endsWith(`/${unit.incarnation}`)) {
    throw new CorruptionError(
      path,
      0,
      `it is the list of file ${unit.file} of the archive ${unit.incarnation}`,
    );
  }
  return unit;
}
