/**
 * Puts a backup in the place of a database, in two parts, so that a running server can prepare it.
 * Staging is here, and finishing in `finish_restore.ts`:
 *
 *     stage    1 the backup's files are copied to <data>/restore.new/, each compared with the list
 *              2 restore.new/ is synced, and becomes restore/: from here on the restore will happen
 *     finish   3 the copy is compared with the list once more, and restore/CHECKED is written
 *              4 the copy goes on above every seq and number that the old state ever gave out
 *              5 restore/MOVING is written: from here on there is no way back
 *              6 the old state goes to lost+found/before-restore-…/, and the new one into its place
 *              7 restore/ goes
 *
 * - Until step 2 nothing of the database has changed, and a backup that is damaged, incomplete or
 *   of a newer format is refused.
 * - Finishing needs the database closed; a start does it, and `tidemark restore` at once. A crash
 *   within it is followed by another attempt: steps 4 and 6 can be done again, and what step 4 has
 *   begun to change is not taken for damage, which is refused before it.
 * - Nobody resumes across a restore, and every token ends: what they stand for may be gone.
 * - A restore to a point brings the copy there between 1 and 2 (`restore_point.ts`).
 * - All segments lie in the data directory then; new ones go to their storage, and merges take the
 * rest there.
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
import { refuseBefore } from "./restore_sources.ts";
import { requireRoom } from "./room.ts";

export interface RestoreParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
}

/** How far the copying of a backup is. */
export interface StageListener {
  onCopied(copiedBytes: number, totalBytes: number): void;
  /** What comes next, of the work that copies nothing. */
  onStep(what: string): void;
  /** Uploaded files that rows may name, and that are neither in the backup nor in the directory. */
  onMissing(paths: readonly string[]): void;
  /** Whether somebody asked to stop. */
  isCancelled(): boolean;
}

export interface StageRequest {
  readonly source: string;
  readonly paths: DataPaths;
  /** What a server that runs on the directory keeps free; 0 where none does. */
  readonly minFreeBytes: number;
  readonly listener: StageListener;
  /** User id of who asked for it; absent where nobody is logged in. */
  readonly orderedBy?: string;
  /** What the copy is brought to before it counts. */
  readonly bringTo?: {
    /** Not before the backup. */
    readonly seq: Seq;
    readonly eras: readonly SeqEra[];
    /** Does it; returns the list that the copy has then. */
    readonly run: (draft: DataPaths, list: BackupList) => Promise<BackupList>;
  };
}

/** Who asked for a restore that a start finishes: kept beside what was prepared. */
export interface RestoreOrder {
  readonly orderedBy: string;
  readonly source: string;
}

/** In a prepared restore: marks of the steps that were done. */
export const CHECKED_MARK = "CHECKED";
export const MOVING_MARK = "MOVING";

/**
 * How far a restore is that was prepared: its copy is as its list says; or it may have been changed
 * to go on above the old state; or one of both is moving, and only finishing makes one database.
 */
export type StagedStep = "copied" | "checked" | "moving";

/** Where a prepared restore waits; without this directory there is none. */
export function stagedPath({ root }: DataPaths): string {
  return `${root}/restore`;
}

/** Whether a restore is prepared, and the next start finishes it. */
export function isRestoreStaged(disk: Disk, paths: DataPaths): boolean {
  return disk.exists(backupListPath(stagedPath(paths)));
}

/** Undefined if none is prepared. */
export function stagedStep(disk: Disk, paths: DataPaths): StagedStep | undefined {
  if (!isRestoreStaged(disk, paths)) return undefined;
  const root = stagedPath(paths);
  if (disk.exists(`${root}/${MOVING_MARK}`)) return "moving";
  return disk.exists(`${root}/${CHECKED_MARK}`) ? "checked" : "copied";
}

/** @throws {DatabaseError} INVALID_OPERATION if a restore waits already. */
export function refuseStaged(disk: Disk, paths: DataPaths, source: string): void {
  const step = stagedStep(disk, paths);
  if (step === undefined) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot restore from ${source}: another restore waits for the next start of the server`,
    {
      hint:
        step === "moving"
          ? "it has begun and cannot be withdrawn: start the server, which finishes it"
          : `to withdraw it, remove ${stagedPath(paths)}`,
    },
  );
}

/**
 * Copies a backup to where the next start finds it.
 *
 * @throws {DatabaseError} INVALID_OPTION if it is no backup or a later one, INVALID_OPERATION if a
 * restore waits already, STORAGE_UNAVAILABLE if it is of a newer version, DISK_FULL, CANCELLED.
 * @throws {CorruptionError} If it is damaged. @throws {DiskError} Nothing has changed then, either.
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
  requireRoom(disk, paths.root, { action, bytes: totalBytes, minFreeBytes });
  const draft = draftPath(paths);
  await removeTreeSoon(disk, draft);
  disk.makeDirectory(draft);
  try {
    await copyListed(list, { disk, clock, source, draft, listener, totalBytes });
    // What comes to another moment has another list then, which is written last.
    if (bringTo !== undefined) disk.remove(backupListPath(draft));
    const staged = bringTo === undefined ? list : await bringTo.run(dataPathsOf(draft), list);
    if (orderedBy !== undefined) writeOrder(disk, draft, { orderedBy, source });
    // What a crash left of one that was finished.
    await removeTreeSoon(disk, stagedPath(paths));
    disk.rename(draft, stagedPath(paths));
    disk.syncDirectory(paths.root);
    return staged;
  } catch (error) {
    await removeTreeSoon(disk, draft);
    throw error;
  }
}

async function copyListed(
  { files }: BackupList,
  {
    disk,
    clock,
    source,
    draft,
    listener,
    totalBytes,
  }: {
    disk: Disk;
    clock: Clock;
    source: string;
    draft: string;
    listener: StageListener;
    totalBytes: number;
  },
): Promise<void> {
  const pause = pauser(clock);
  const directories = [draft];
  let copiedBytes = 0;
  const onCopied = (count: number): void => {
    copiedBytes += count;
    listener.onCopied(copiedBytes, totalBytes);
    if (!listener.isCancelled()) return;
    throw new DatabaseError("CANCELLED", `Cannot restore from ${source}: the job was killed`);
  };
  for (const name of ["wal", "segments", "files", "tmp"]) {
    disk.makeDirectory(`${draft}/${name}`);
    directories.push(`${draft}/${name}`);
  }
  for (const file of files) {
    const { path } = file;
    const from = `${source}/${path}`;
    const fault = listedFault(file, from, { bytes: disk.sizeOf(from) });
    if (fault !== undefined) throw fault;
    directories.push(...makeDirectoryOf(disk, draft, path));
    const copied = await copyFile(from, `${draft}/${path}`, { disk, pause, onCopied });
    const lateFault = listedFault(file, from, copied);
    if (lateFault !== undefined) throw lateFault;
  }
  await copyFile(backupListPath(source), backupListPath(draft), { disk, pause, onCopied() {} });
  for (const directory of directories.toReversed()) await disk.syncDirectorySoon(directory);
}

/** Where files are copied to before they count. */
export function draftPath({ root }: DataPaths): string {
  return `${root}/restore.new`;
}

function writeOrder(disk: Disk, root: string, order: RestoreOrder): void {
  writeSealedText(disk, orderPath(root), JSON.stringify(order));
}

/** Undefined if nobody is named, or that cannot be read. */
export function readOrder(disk: Disk, root: string, log: Log): RestoreOrder | undefined {
  const path = orderPath(root);
  try {
    return disk.exists(path) ? (JSON.parse(readSealedText(disk, path)) as RestoreOrder) : undefined;
  } catch (error) {
    // Safe: it says who asked, and nothing about the data.
    if (!(error instanceof CorruptionError)) throw error;
    log.warn("cannot say who ordered the restore", { error: error.message });
    return undefined;
  }
}

function orderPath(root: string): string {
  return `${root}/ORDER`;
}
