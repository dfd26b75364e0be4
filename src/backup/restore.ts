/**
 * Replaces a database with a backup, in two parts, so that a running server can prepare the
 * restore. This file stages a restore; `finish_restore.ts` finishes it:
 *
 *     stage    1 copy the backup's files to <data>/restore.new/, and compare each with the list
 *              2 sync restore.new/ and rename it to restore/: from now on the restore will happen
 *     finish   3 compare the copy with the list once more, and write restore/CHECKED
 *              4 move the copy above every seq and number that the old state ever issued
 *              5 write restore/MOVING: from now on there is no way back
 *              6 move the old state to lost+found/before-restore-…/ and the new one to its place
 *              7 remove restore/
 *
 * - The database does not change before step 2. A backup that is damaged, incomplete or in a newer
 *   format is refused.
 * - Finishing requires a closed database. A staged restore is finished at the next startup, or
 *   immediately by `tidemark restore`. After a crash, the next attempt continues: steps 4 and 6
 *   can be repeated, and the changes made by step 4 are not mistaken for damage, because damage is
 *   detected before that step.
 * - No subscription can resume across a restore, and every token becomes invalid, because the
 *   subscription or token may refer to a state that no longer exists.
 * - A point-in-time restore rolls the copy forward between steps 1 and 2 (`restore_point.ts`).
 * - All segments are in the data directory afterwards. New segments are written to their storages,
 *   and merges move the existing ones there.
 */
import type { Clock } from "../base/clock.ts";
import { copyFile, makeDirectoryOf, removeTreeSoon } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { pauser } from "../base/pauser.ts";
import type { Seq } from "../base/seq.ts";
import type { SeqEra } from "../base/seq_times.ts";
import { CatalogDatabase, catalogPathOf } from "../catalog/mod.ts";
import {
  type BackupList,
  backupListPath,
  type DataPaths,
  dataPathsOf,
  listedFault,
  readBackupList,
  readSealedText,
  refuseNewerFiles,
  requireFormat,
  writeSealedText,
} from "../storage/files.ts";
import { requireFreeSpace } from "./free_space.ts";
import { refuseBefore } from "./restore_sources.ts";

export interface RestoreParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
}

/** Observes the progress of staging a restore. */
export interface StageListener {
  onCopied(copiedBytes: number, totalBytes: number): void;
  /** Called before each step of a restore, except for the copying of files. */
  onStep(what: string): void;
  /**
   * Reports uploaded files to which rows refer, but which exist neither in the backup nor in the
   * data directory.
   */
  onMissing(paths: readonly string[]): void;
  /** Returns whether the caller has cancelled the restore. */
  isCancelled(): boolean;
}

export interface StageRequest {
  readonly source: string;
  readonly paths: DataPaths;
  /** The disk space that a running server keeps free, in bytes; 0 if no server is running. */
  readonly minFreeBytes: number;
  readonly listener: StageListener;
  /** The id of the user who requested the restore; absent if it was requested without a login. */
  readonly orderedBy?: string;
  /**
   * Rolls the copy of the backup forward to a later point in time before the restore is staged.
   */
  readonly bringTo?: {
    /** The seq to restore to. It is not older than the backup. */
    readonly seq: Seq;
    readonly eras: readonly SeqEra[];
    /**
     * Replays commits onto the copy of the backup, up to `seq`. Returns the resulting list of
     * files.
     */
    readonly run: (pending: DataPaths, list: BackupList) => Promise<BackupList>;
  };
}

/**
 * A request for a restore to be finished at the next startup. It is stored next to the staged
 * copy.
 */
export interface RestoreOrder {
  readonly orderedBy: string;
  readonly source: string;
}

/** The names of the marker files in a staged restore. Each file marks a completed step. */
export const CHECKED_MARK = "CHECKED";
export const MOVING_MARK = "MOVING";

/**
 * The progress of a staged restore. "copied" means that the copied files match the list of the
 * backup. "checked" means that the copy may have been changed so that it continues above the seqs
 * of the old database. "moving" means that the databases are being exchanged, so the data
 * directory contains no complete database until the restore is finished.
 */
export type StagedStep = "copied" | "checked" | "moving";

/**
 * Returns the path of the directory for a staged restore. It exists only if a restore is staged.
 */
export function stagedPath({ root }: DataPaths): string {
  return `${root}/restore`;
}

/** Returns whether a restore has been staged. If so, the next startup will finish it. */
export function isRestoreStaged(disk: Disk, paths: DataPaths): boolean {
  return disk.exists(backupListPath(stagedPath(paths)));
}

/** Returns the progress of a staged restore; undefined if none is staged. */
export function stagedStep(disk: Disk, paths: DataPaths): StagedStep | undefined {
  if (!isRestoreStaged(disk, paths)) return undefined;
  const root = stagedPath(paths);
  if (disk.exists(`${root}/${MOVING_MARK}`)) return "moving";
  return disk.exists(`${root}/${CHECKED_MARK}`) ? "checked" : "copied";
}

/**
 * Refuses a restore if another one is already staged.
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function refuseStaged(disk: Disk, paths: DataPaths, source: string): void {
  const step = stagedStep(disk, paths);
  if (step === undefined) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot restore from ${source}: a different restore is already waiting for the next startup`,
    {
      hint:
        step === "moving"
          ? "the waiting restore has begun and cannot be cancelled; start the server to finish it"
          : `to cancel that restore, remove ${stagedPath(paths)}`,
    },
  );
}

/**
 * Copies a backup into the data directory, where the next startup finds it. If copying fails,
 * nothing changes.
 *
 * @throws {DatabaseError} INVALID_OPTION if the path is not a backup, or the backup is newer than
 *   the requested point in time; INVALID_OPERATION if a restore is already staged;
 *   STORAGE_UNAVAILABLE if a newer version wrote the backup; DISK_FULL, CANCELLED.
 * @throws {CorruptionError} If the backup is damaged.
 * @throws {DiskError}
 */
export async function stageRestore(
  { disk, clock }: Pick<RestoreParts, "disk" | "clock">,
  { bringTo, minFreeBytes, orderedBy, source, paths, listener }: StageRequest,
): Promise<BackupList> {
  const list = readBackupList(disk, source);
  refuseStaged(disk, paths, source);
  if (bringTo !== undefined) refuseBefore(list, { ...bringTo, source });
  requireFormat(disk, dataPathsOf(source));
  refuseNewerFiles(disk, dataPathsOf(source));
  CatalogDatabase.refuseForeign(catalogPathOf(source));
  const totalBytes = list.files.reduce((sum, { bytes }) => sum + bytes, 0);
  const action = `restore from ${source}`;
  requireFreeSpace(disk, paths.root, { action, bytes: totalBytes, minFreeBytes });
  const pendingPath = pendingRestorePath(paths);
  await removeTreeSoon(disk, pendingPath);
  disk.makeDirectory(pendingPath);
  try {
    await copyListed(list, { disk, clock, source, pendingPath, listener, totalBytes });
    // The files depend on the requested point in time, so their list is written after the copy has
    // been rolled forward.
    if (bringTo !== undefined) disk.remove(backupListPath(pendingPath));
    const staged = bringTo === undefined ? list : await bringTo.run(dataPathsOf(pendingPath), list);
    if (orderedBy !== undefined) writeOrder(disk, pendingPath, { orderedBy, source });
    // Removes the remains of a finished restore that a crash left behind.
    await removeTreeSoon(disk, stagedPath(paths));
    disk.rename(pendingPath, stagedPath(paths));
    disk.syncDirectory(paths.root);
    return staged;
  } catch (error) {
    await removeTreeSoon(disk, pendingPath);
    throw error;
  }
}

async function copyListed(
  { files }: BackupList,
  {
    disk,
    clock,
    source,
    pendingPath,
    listener,
    totalBytes,
  }: {
    disk: Disk;
    clock: Clock;
    source: string;
    pendingPath: string;
    listener: StageListener;
    totalBytes: number;
  },
): Promise<void> {
  const pause = pauser(clock);
  const directories = [pendingPath];
  let copiedBytes = 0;
  const onCopied = (count: number): void => {
    copiedBytes += count;
    listener.onCopied(copiedBytes, totalBytes);
    if (!listener.isCancelled()) return;
    throw new DatabaseError("CANCELLED", `Cannot restore from ${source}: the job was killed`);
  };
  for (const name of ["wal", "segments", "files", "tmp"]) {
    disk.makeDirectory(`${pendingPath}/${name}`);
    directories.push(`${pendingPath}/${name}`);
  }
  for (const file of files) {
    const { path } = file;
    const from = `${source}/${path}`;
    const fault = listedFault(file, from, { bytes: disk.sizeOf(from) });
    if (fault !== undefined) throw fault;
    directories.push(...makeDirectoryOf(disk, pendingPath, path));
    const copied = await copyFile(from, `${pendingPath}/${path}`, { disk, pause, onCopied });
    const lateFault = listedFault(file, from, copied);
    if (lateFault !== undefined) throw lateFault;
  }
  await copyFile(backupListPath(source), backupListPath(pendingPath), {
    disk,
    pause,
    onCopied() {},
  });
  for (const directory of directories.toReversed()) await disk.syncDirectorySoon(directory);
}

/**
 * Returns the path of the directory into which a backup is copied before the restore counts as
 * staged.
 */
export function pendingRestorePath({ root }: DataPaths): string {
  return `${root}/restore.new`;
}

function writeOrder(disk: Disk, root: string, order: RestoreOrder): void {
  writeSealedText(disk, orderPath(root), JSON.stringify(order));
}

/**
 * Reads the request for a staged restore. Returns undefined if its file names no user or cannot be
 * read.
 */
export function readOrder(disk: Disk, root: string, log: Log): RestoreOrder | undefined {
  const path = orderPath(root);
  try {
    return disk.exists(path) ? (JSON.parse(readSealedText(disk, path)) as RestoreOrder) : undefined;
  } catch (error) {
    // The error can be ignored: the file only names a user, and does not affect the data.
    if (!(error instanceof CorruptionError)) throw error;
    log.warn("cannot determine who requested the restore", { error: error.message });
    return undefined;
  }
}

function orderPath(root: string): string {
  return `${root}/ORDER`;
}
