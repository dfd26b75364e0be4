/**
 * The data directory: who may use it, and what is swept when it is opened.
 *
 * `format.json` names the version of the layout. It is read before anything is written, the lock
 * included, and so are the formats of the files, so that an older program leaves a newer directory
 * exactly as it is. It is made first, so a directory that has a log or a `tmp` but no `format.json`
 * is not one that Tidemark left behind.
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

/** Raised whenever an older program could not read what this one writes. */
const DIRECTORY_FORMAT = 1;

/** What is swept, written over or removed at a start, where it is taken for a server's own. */
const OWN_NAMES: ReadonlySet<string> = new Set([
  "ballast",
  "files",
  "restore",
  "restore.new",
  "segments",
  "tmp",
  "wal",
]);

export interface DataDirectory {
  readonly paths: DataPaths;
  /** Gives the lock back; for who opened it, once. */
  release(): void;
}

/** Whether there is a log or a segment, each of which belongs to a catalog. */
export function holdsRows({ segments, wal }: DataPaths, disk: Disk): boolean {
  return [wal, segments].some((path) => disk.exists(path) && disk.list(path).length > 0);
}

/** @throws {DatabaseError} STORAGE_UNAVAILABLE if it is foreign, of a newer version, or in use. */
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

/** Says of a directory whose lock is taken by whom, as the end of a sentence. */
export function inUse(disk: Disk, paths: DataPaths): string {
  const processId = holderOf(disk, paths);
  const who = processId === undefined ? "" : ` (pid ${processId})`;
  return `another process is using it${who}`;
}

function holderOf(disk: Disk, { lock }: DataPaths): string | undefined {
  try {
    const release = disk.lockShared(lock);
    if (release !== undefined) {
      // Held by those who only look, if by anybody: the number is that of a server before them.
      release();
      return undefined;
    }
    const text = Buffer.from(disk.readFile(lock)).toString("latin1");
    return /^([1-9]\d{0,9})\n$/.exec(text)?.[1];
  } catch (error) {
    // Safe: that the directory is in use is known without it.
    if (error instanceof DiskError) return undefined;
    throw error;
  }
}

/**
 * Moves files of segments that the manifest does not list to lost+found/: a crash left them,
 * between making the file and publishing it, or between publishing its successor and removing it.
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
    // Of a table that was dropped, or that has flushed nothing yet: the next flush makes it again.
    if (isDirectory && !tableNames.has(name)) disk.removeDirectory(`${paths.segments}/${name}`);
  }
}

/**
 * Refuses a directory that this program cannot read.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if its format is another, or cannot be told.
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
      ? `Cannot open ${paths.root}: format.json does not name a format`
      : `Cannot open ${paths.root}: it has format ${format}, and this version reads ${DIRECTORY_FORMAT}`,
  );
}

/**
 * Refuses a file; a directory of something else, in which a start would take for its own what is
 * not: it empties `tmp`, for one; and a new one inside a backup, which would go with that.
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
      `Cannot open ${root}: it lies inside the backup ${backup}`,
      { hint: "name a directory elsewhere" },
    );
  }
  if (!disk.exists(root)) return;
  const names = namesIn(disk, root);
  const found = names.find((name) => OWN_NAMES.has(name));
  if (found === undefined) return;
  const has = found === "wal" ? "a log" : `"${found}"`;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot open ${root}: it has ${has} but no format.json, so it is no data directory, or a damaged one`,
    { hint: "name a directory that is empty or not there yet, or put back format.json" },
  );
}

function namesIn(disk: Disk, root: string): string[] {
  try {
    return disk.list(root).map(({ name }) => name);
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== "ENOTDIR") throw error;
    const what = "it is a file, and not a directory";
    throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot open ${root}: ${what}`);
  }
}

/**
 * Refuses a directory that is a backup: what runs on it would hand out again what the server that
 * made it has handed out since.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
export function refuseBackup(disk: Disk, root: string): void {
  if (!disk.exists(backupListPath(root))) return;
  throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot open ${root}: it is a backup`, {
    hint: `put it into a data directory with tidemark restore ${root} <data_path>`,
  });
}

/** The format that format.json names; undefined when it is missing or names none. */
export function directoryFormat(disk: Disk, paths: DataPaths): number | undefined {
  if (!disk.exists(paths.format)) return undefined;
  const text = Buffer.from(disk.readFile(paths.format)).toString("latin1");
  const digits = /^\{"format":(\d{1,9})\}\n$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function writeFormat(disk: Disk, paths: DataPaths): void {
  // Made whole under another name first: a crash never leaves half of it.
  const draft = `${paths.format}.new`;
  const file = disk.open(draft, { create: true });
  try {
    file.truncate(0);
    file.write(Buffer.from(`{"format":${DIRECTORY_FORMAT}}\n`), 0);
    file.syncNow();
  } finally {
    file.close();
  }
  disk.rename(draft, paths.format);
  disk.syncDirectory(paths.root);
}
