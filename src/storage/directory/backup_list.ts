/**
 * Reads and writes `backup.json`, which lists the files of a finished backup. This file is written
 * last and durably, so a directory without it is not a complete backup.
 *
 *     {"format":1,"version":"…","seq":…,"createdAtMs":…,"files":[["catalog.sqlite",bytes,crc],…]}
 *
 * Paths are relative to the backup. Every other file in the backup is listed with its length and
 * CRC-32.
 */
import { dirname, resolve } from "node:path";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError } from "../../base/errors.ts";
import { type Seq, seqFromNumber } from "../../base/seq.ts";
import { readSealedText, writeSealedText } from "./sealed_text.ts";

/**
 * The format number of backups. It is raised whenever older programs cannot restore newer backups.
 */
const BACKUP_FORMAT = 1;

const NAME = "backup.json";

/** The prefix with which every version of the list begins. */
const BEGINNING = '{"format":';

/**
 * Matches a path in the list. The path consists of plain names, so it cannot lead out of the
 * backup.
 */
const PATH = /^(?:[A-Za-z0-9_][A-Za-z0-9._-]*\/)*[A-Za-z0-9_][A-Za-z0-9._-]*$/;

export interface BackupFile {
  readonly path: string;
  readonly bytes: number;
  readonly crc: number;
}

export interface BackupList {
  /** The version of the server that made the backup. */
  readonly version: string;
  /**
   * The seq up to which the backup contains every commit. It contains no commit above this seq.
   */
  readonly seq: Seq;
  readonly createdAtMs: number;
  readonly files: readonly BackupFile[];
}

export function backupListPath(root: string): string {
  return `${root}/${NAME}`;
}

/**
 * Returns the path of the backup that is at `directory` or contains it; undefined if there is
 * none.
 */
export function backupAround(disk: Disk, directory: string): string | undefined {
  let path = resolve(directory);
  for (;;) {
    if (hasBackupList(disk, path)) return path;
    const parent = dirname(path);
    if (parent === path) return undefined;
    path = parent;
  }
}

/**
 * Other programs use the name backup.json, too. A backup list is recognised by the beginning of
 * its content.
 */
function hasBackupList(disk: Disk, directory: string): boolean {
  const path = backupListPath(directory);
  if (!disk.exists(path)) return false;
  try {
    const bytes = disk.readFile(path).subarray(0, BEGINNING.length);
    return Buffer.from(bytes).toString("latin1") === BEGINNING;
  } catch (error) {
    // Ignoring the error is safe: a directory that cannot be read is not a backup that this user
    // could have made.
    if (error instanceof DiskError) return false;
    throw error;
  }
}

/**
 * Describes how a file differs from its entry in the list; undefined if it matches.
 * @param found The file's size in bytes (undefined if the file is missing) and, once it has been
 *   read, its checksum.
 */
export function listedFault(
  { bytes, crc }: BackupFile,
  path: string,
  found: { readonly bytes: number | undefined; readonly crc?: number },
): CorruptionError | undefined {
  if (found.bytes === undefined) {
    return new CorruptionError(path, 0, `the file is missing, although ${NAME} lists it`);
  }
  if (found.bytes !== bytes) {
    const what = `the file has ${found.bytes} bytes instead of ${bytes}`;
    return new CorruptionError(path, Math.min(found.bytes, bytes), what);
  }
  if (found.crc === undefined || found.crc === crc) return undefined;
  return new CorruptionError(path, 0, `the file does not match its checksum in ${NAME}`);
}

/** Durably writes the list of a backup's files, which completes the backup. @throws {DiskError} */
export function writeBackupList(disk: Disk, root: string, list: BackupList): void {
  const { createdAtMs, files, seq, version } = list;
  const body = JSON.stringify({
    format: BACKUP_FORMAT,
    version,
    seq,
    createdAtMs,
    files: files.map(({ bytes, crc, path }) => [path, bytes, crc]),
  });
  writeSealedText(disk, backupListPath(root), body);
}

/**
 * Reads the list of a finished backup.
 *
 * @throws {DatabaseError} INVALID_OPTION if there is no list, STORAGE_UNAVAILABLE if its format is
 *   newer.
 * @throws {CorruptionError} If the list is damaged.
 */
export function readBackupList(disk: Disk, root: string): BackupList {
  const path = backupListPath(root);
  if (!disk.exists(path)) {
    const what = disk.exists(root)
      ? `the directory is not a backup, or the backup is incomplete: there is no ${NAME}`
      : "there is no such directory";
    throw new DatabaseError("INVALID_OPTION", `Cannot restore from ${root}: ${what}`);
  }
  const list = JSON.parse(readSealedText(disk, path)) as { format?: unknown };
  if (list.format !== BACKUP_FORMAT) {
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot restore from ${root}: the backup has format ${String(list.format)}, but this ` +
        `version reads only ${BACKUP_FORMAT}`,
      { hint: "use the newer version of Tidemark that made the backup" },
    );
  }
  return listFrom(list, path);
}

function listFrom(json: object, path: string): BackupList {
  const { createdAtMs, files, seq, version } = json as Partial<Record<string, unknown>>;
  const upTo = typeof seq === "number" ? seqFromNumber(seq) : undefined;
  const listed = Array.isArray(files) ? files.map(fileFrom) : [undefined];
  const isSound =
    typeof createdAtMs === "number" && typeof version === "string" && upTo !== undefined;
  const known = listed.filter((file) => file !== undefined);
  if (isSound && known.length === listed.length) {
    return { version, seq: upTo, createdAtMs, files: known };
  }
  throw new CorruptionError(path, 0, "the file is not a list of the files in a backup");
}

function fileFrom(entry: unknown): BackupFile | undefined {
  if (!Array.isArray(entry)) return undefined;
  const [path, bytes, crc] = entry as unknown[];
  if (typeof path !== "string" || !PATH.test(path)) return undefined;
  if (typeof bytes !== "number" || typeof crc !== "number") return undefined;
  return { path, bytes, crc };
}
