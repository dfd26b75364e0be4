/**
 * Defines the format of the log archive, and reads and writes it.
 *
 *     <archive_path>/<incarnation>/0000000007.wal    an unchanged copy of a full log file
 *                                  0000000007.json   its checksum, its seqs, and the catalog
 *                                                    changes made meanwhile; written last
 *
 * - A log file without its list is not part of the archive.
 * - The files of an incarnation are numbered without gaps. A restore begins a new incarnation, so
 *   the files of a database and of its restored successor never get mixed up.
 */
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError } from "../base/errors.ts";
import type { JournalEntry } from "../catalog/mod.ts";
import { readSealedText, writeSealedText } from "../storage/files.ts";

/**
 * The format version of the archive. It is increased whenever older versions of the server could
 * not read the new format.
 */
const ARCHIVE_FORMAT = 1;

const LIST_NAME = /^(\d{10})\.json$/;

/** A log file in an archive, with the list that describes it. */
export interface ArchiveUnit {
  readonly incarnation: string;
  readonly file: number;
  readonly bytes: number;
  /** The CRC-32 checksum of the log file. */
  readonly crc: number;
  /** The highest seq in the preceding log files. */
  readonly baseSeq: number;
  readonly lastSeq: number;
  /** The id of the last catalog transaction in the journal of this or any earlier log file. */
  readonly journalEnd: number;
  readonly journal: readonly JournalEntry[];
}

/** The name of the catalog setting that distinguishes databases and their incarnations. */
export const INCARNATION = "incarnation";

export function unitLogPath(root: string, file: number): string {
  return `${root}/${String(file).padStart(10, "0")}.wal`;
}

export function unitListPath(root: string, file: number): string {
  return `${root}/${String(file).padStart(10, "0")}.json`;
}

/**
 * Returns the numbers of the log files in an archive, in ascending order.
 * @throws {DiskError}
 */
export function archivedFiles(disk: Disk, root: string): number[] {
  if (!disk.exists(root)) return [];
  return disk
    .list(root)
    .map(({ name }) => LIST_NAME.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .toSorted((left, right) => left - right);
}

/**
 * Durably writes the list that completes an archived log file, which must already exist.
 * @throws {DiskError}
 */
export function writeUnit(disk: Disk, root: string, unit: ArchiveUnit): void {
  writeSealedText(
    disk,
    unitListPath(root, unit.file),
    JSON.stringify({ format: ARCHIVE_FORMAT, ...unit }),
  );
}

/**
 * Reads and verifies the list that describes an archived log file.
 * @throws {CorruptionError} If the list is damaged or describes a different file.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if a newer version wrote it.
 */
export function readUnit(disk: Disk, root: string, file: number): ArchiveUnit {
  const path = unitListPath(root, file);
  const unit = JSON.parse(readSealedText(disk, path)) as ArchiveUnit & { format?: unknown };
  if (unit.format !== ARCHIVE_FORMAT) {
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot read ${path}: the archive has format ${String(unit.format)}, but this version ` +
        `reads only ${ARCHIVE_FORMAT}`,
      { hint: "use the newer version of Tidemark that created the archive" },
    );
  }
  if (unit.file !== file || !root.endsWith(`/${unit.incarnation}`)) {
    throw new CorruptionError(
      path,
      0,
      `the archived file belongs to file ${unit.file} of the archive ${unit.incarnation}`,
    );
  }
  return unit;
}
