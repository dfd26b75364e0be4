/**
 * Opens the data directory, locks it against other processes, and removes files left behind by a
 * crash.
 *
 * `format.json` records the version of the layout. The server reads it and the formats of the
 * files before it writes anything, even the lock file, so an older program leaves a newer
 * directory unchanged. In a new directory, `format.json` is written first. A directory with a log
 * or a `tmp` but no `format.json` was therefore not created by Tidemark.
 */
import { dirname } from "node:path";
import { emptyDirectory } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { SegmentEntry } from "./contract/manifest.ts";
import { backupAround, backupListPath } from "./directory/backup_list.ts";
import { type DataPaths, dataPathsOf } from "./directory/file_names.ts";
import {
  listedFiles,
  moveToLostAndFound,
  nameInLostAndFound,
  unlistedFiles,
} from "./directory/lost_and_found.ts";
import { refuseNewerFiles } from "./newer_files.ts";

/**
 * The format number of the data directory. It is raised whenever older programs cannot read newer
 * directories.
 */
const DIRECTORY_FORMAT = 1;

/**
 * The names in the data directory that the server may clean up, overwrite or remove at startup.
 */
const OWN_NAMES: ReadonlySet<string> = new Set([
  "ballast",
  "exports",
  "files",
  "restore",
  "restore.new",
  "segments",
  "tmp",
  "wal",
]);

export interface DataDirectory {
  readonly paths: DataPaths;
  /** Releases the lock. Called once, by the code that opened the directory. */
  release(): void;
}

/** Whether the directory has a log or a segment. Neither can exist without a catalog. */
export function holdsRows({ segments, wal }: DataPaths, disk: Disk): boolean {
  return [wal, segments].some((path) => disk.exists(path) && disk.list(path).length > 0);
}

/**
 * Opens and locks a data directory, creating it if necessary.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if the directory is foreign, has a newer format, or
 *   is in use.
 */
export function openDataDirectory(disk: Disk, root: string): DataDirectory {
  const paths = dataPathsOf(root);
  refuseBackup(disk, root);
  refuseForeignDirectory(disk, paths);
  requireFormat(disk, paths);
  refuseNewerFiles(disk, paths);
  if (!disk.exists(root)) {
    disk.makeDirectory(root);
    disk.syncDirectory(dirname(root));
  }
  const unlock = disk.lock(paths.lock);
  if (unlock === undefined) {
    throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot open ${root}: ${inUse(disk, paths)}`);
  }
  try {
    if (!disk.exists(paths.format)) writeFormat(disk, paths);
    for (const path of [paths.wal, paths.segments, paths.tmp]) disk.makeDirectory(path);
    emptyDirectory(disk, paths.tmp);
    disk.syncDirectory(root);
  } catch (error) {
    unlock();
    throw error;
  }
  return { paths, release: unlock };
}

/** Returns the end of an error message, which names the process that holds a directory's lock. */
export function inUse(disk: Disk, paths: DataPaths): string {
  const processId = holderOf(disk, paths);
  const who = processId === undefined ? "" : ` (pid ${processId})`;
  return `another process is using it${who}`;
}

function holderOf(disk: Disk, { lock }: DataPaths): string | undefined {
  try {
    const release = disk.lockShared(lock);
    if (release !== undefined) {
      // The process that holds the lock may only be reading the directory. In that case, an
      // earlier server wrote the process id in the file.
      release();
      return undefined;
    }
    const text = Buffer.from(disk.readFile(lock)).toString("latin1");
    return /^([1-9]\d{0,9})\n$/.exec(text)?.[1];
  } catch (error) {
    // Ignoring the error is safe: the caller already knows that the directory is in use.
    if (error instanceof DiskError) return undefined;
    throw error;
  }
}

/**
 * Moves segment files that the manifest does not list to lost+found/. Such files remain if a crash
 * occurs after a file is created but before it is published, or after its successor is published
 * but before the file is removed.
 */
export function sweepSegments(
  disk: Disk,
  paths: DataPaths,
  { entries, log }: { entries: readonly SegmentEntry[]; log: Log },
): void {
  const tableNames = new Set(entries.map(({ tableId }) => String(tableId)));
  const movedCounts = new Map<string, number>();
  for (const from of unlistedFiles(disk, paths.segments, listedFiles(paths, entries))) {
    const directory = dirname(from);
    moveToLostAndFound(disk, paths, { from, name: nameInLostAndFound(from) });
    movedCounts.set(directory, (movedCounts.get(directory) ?? 0) + 1);
  }
  for (const [path, count] of movedCounts) {
    disk.syncDirectory(path);
    disk.syncDirectory(paths.lostAndFound);
    log.warn("moved unlisted segment files to lost+found", { path, count });
  }
  for (const { name, isDirectory } of disk.list(paths.segments)) {
    // A directory without segments belongs to a dropped table, or to a table of which no row has
    // been flushed. In the latter case, the next flush recreates the directory.
    if (isDirectory && !tableNames.has(name)) disk.removeDirectory(`${paths.segments}/${name}`);
  }
}

/**
 * Refuses a directory with a format that this program cannot read.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if the format is different or unknown.
 */
export function requireFormat(disk: Disk, paths: DataPaths): void {
  if (!disk.exists(paths.format)) {
    if (!disk.exists(paths.wal)) return;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot open ${paths.root}: it has a log but no format.json`,
    );
  }
  const format = directoryFormat(disk, paths);
  if (format === DIRECTORY_FORMAT) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    format === undefined
      ? `Cannot open ${paths.root}: format.json does not contain a format number`
      : `Cannot open ${paths.root}: it has format ${format}, but this version reads only ` +
          DIRECTORY_FORMAT,
  );
}

/**
 * Refuses a path that cannot become a data directory:
 *
 * - a file
 * - a directory with other contents, because a server would treat them as its own and, for example,
 *   empty `tmp`
 * - a new directory inside a backup, because it would be deleted together with the backup
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
export function refuseForeignDirectory(disk: Disk, paths: DataPaths): void {
  const { format, root } = paths;
  if (disk.exists(format)) return;
  const backup = backupAround(disk, root);
  if (backup !== undefined) {
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot open ${root}: it is inside the backup ${backup}`,
      { hint: "choose a directory elsewhere" },
    );
  }
  if (!disk.exists(root)) return;
  const names = namesIn(disk, root);
  const found = names.find((name) => OWN_NAMES.has(name));
  if (found === undefined) return;
  const has = found === "wal" ? "a log" : `"${found}"`;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open ${root}: it contains ${has} but no format.json, so it is damaged, or is not a ` +
      "data directory",
    { hint: "choose an empty or new directory, or restore format.json" },
  );
}

function namesIn(disk: Disk, root: string): string[] {
  try {
    return disk.list(root).map(({ name }) => name);
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== "ENOTDIR") throw error;
    const what = "the path is a file, not a directory";
    throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot open ${root}: ${what}`);
  }
}

/**
 * Refuses a directory that is a backup. A server running on it would reissue seqs and ids that the
 * original server has issued since the backup.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
export function refuseBackup(disk: Disk, root: string): void {
  if (!disk.exists(backupListPath(root))) return;
  throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot open ${root}: it is a backup`, {
    hint: `to restore it into a data directory, run tidemark restore ${root} <data_path>`,
  });
}

/**
 * Returns the format recorded in format.json; undefined if the file is missing or records none.
 */
export function directoryFormat(disk: Disk, paths: DataPaths): number | undefined {
  if (!disk.exists(paths.format)) return undefined;
  const text = Buffer.from(disk.readFile(paths.format)).toString("latin1");
  const digits = /^\{"format":(\d{1,9})\}\n$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function writeFormat(disk: Disk, paths: DataPaths): void {
  // The file is written under another name first, so a crash never leaves a partial format.json.
  const pendingPath = `${paths.format}.new`;
  const file = disk.open(pendingPath, { create: true });
  try {
    file.truncate(0);
    file.write(Buffer.from(`{"format":${DIRECTORY_FORMAT}}\n`), 0);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.rename(pendingPath, paths.format);
  disk.syncDirectory(paths.root);
}
