/**
 * Puts a backup in the place of a database, in two parts, so that a running server can prepare it:
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
 */
import type { Clock } from "../base/clock.ts";
import { checksumOfFile, copyFile, makeDirectoryOf, removeTree } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError } from "../base/errors.ts";
import { type Log, silentLog } from "../base/log.ts";
import { pauser } from "../base/pauser.ts";
import { SEQ_ZERO, type Seq, seqFromNumber, seqFromUnixMs } from "../base/seq.ts";
import {
  CATALOG_FILE,
  CATALOG_SIDE_FILES,
  CatalogDatabase,
  catalogPathOf,
  checkCatalog,
  type UsedBefore,
} from "../catalog/mod.ts";
import {
  type BackupList,
  backupListPath,
  type CheckListener,
  checkLog,
  cutLog,
  type DataPaths,
  dataPathsOf,
  endLog,
  type LogCheck,
  plannedCut,
  readBackupList,
  readSealedText,
  refuseNewerFiles,
  requireFormat,
  reservationAt,
  rewriteNumberFile,
  writeSealedText,
} from "../storage/mod.ts";
import { INCARNATION } from "./archive_units.ts";
import { noteLostSeqs } from "./lost_seqs.ts";
import { refuseBefore } from "./restore_sources.ts";

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
  readonly listener: StageListener;
  /** User id of who asked for it; absent where nobody is logged in. */
  readonly orderedBy?: string;
  /** What the copy is brought to before it counts. */
  readonly advance?: {
    /** Not before the backup. */
    readonly seq: Seq;
    /** Does it; returns the list that the copy has then. */
    readonly run: (draft: DataPaths, list: BackupList) => Promise<BackupList>;
  };
}

/** Who asked for a restore that a start finishes: kept beside what was prepared. */
interface RestoreOrder {
  readonly orderedBy: string;
  readonly source: string;
}

/** What became of a restore that was prepared. */
export interface FinishedRestore {
  readonly seq: Seq;
  /** Absent if nobody was logged in who asked for it. */
  readonly order: RestoreOrder | undefined;
  /** Where the state from before is now; undefined when there was none. */
  readonly before: string | undefined;
}

/** What a database consists of beside its lock, its secret and what can be made again. */
const STATE_DIRECTORIES = ["wal", "segments", "files"] as const;
const STATE = [CATALOG_FILE, ...STATE_DIRECTORIES] as const;

const DEAF: CheckListener = { onChecked() {}, onFinding() {} };

/** Where a prepared restore waits; without this directory there is none. */
export function stagedPath({ root }: DataPaths): string {
  return `${root}/restore`;
}

/** Whether a restore is prepared, and the next start finishes it. */
export function isRestoreStaged(disk: Disk, paths: DataPaths): boolean {
  return disk.exists(backupListPath(stagedPath(paths)));
}

/**
 * Copies a backup to where the next start finds it.
 *
 * @throws {DatabaseError} INVALID_OPTION if it is no backup or a later one, STORAGE_UNAVAILABLE if it is of a newer
 * version, DISK_FULL, CANCELLED.
 * @throws {CorruptionError} If it is damaged. @throws {DiskError} Nothing has changed then, either.
 */
export async function stageRestore(
  { disk, clock }: Pick<RestoreParts, "disk" | "clock">,
  { advance, orderedBy, source, paths, listener }: StageRequest,
): Promise<BackupList> {
  const list = readBackupList(disk, source);
  if (advance !== undefined) refuseBefore(list, { seq: advance.seq, source });
  requireFormat(disk, dataPathsOf(source));
  refuseNewerFiles(disk, dataPathsOf(source));
  CatalogDatabase.refuseForeign(catalogPathOf(source));
  const totalBytes = list.files.reduce((sum, { bytes }) => sum + bytes, 0);
  const free = disk.freeBytes(paths.root);
  if (free < totalBytes) {
    throw new DatabaseError(
      "DISK_FULL",
      `Cannot restore from ${source}: it needs ${totalBytes} bytes, and ${free} are free`,
    );
  }
  const draft = draftPath(paths);
  removeTree(disk, draft);
  disk.makeDirectory(draft);
  try {
    await copyListed(list, { disk, clock, source, draft, listener, totalBytes });
    // What comes to another moment has another list then, which is written last.
    if (advance !== undefined) disk.remove(backupListPath(draft));
    const staged = advance === undefined ? list : await advance.run(dataPathsOf(draft), list);
    if (orderedBy !== undefined) writeOrder(disk, draft, { orderedBy, source });
    disk.rename(draft, stagedPath(paths));
    disk.syncDirectory(paths.root);
    return staged;
  } catch (error) {
    removeTree(disk, draft);
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
  for (const { bytes, crc, path } of files) {
    const from = `${source}/${path}`;
    const size = disk.sizeOf(from);
    if (size !== bytes)
      throw new CorruptionError(from, Math.min(size ?? 0, bytes), sizeText(size, bytes));
    directories.push(...makeDirectoryOf(disk, draft, path));
    const copied = await copyFile(from, `${draft}/${path}`, { disk, pause, onCopied });
    if (copied.crc !== crc || copied.bytes !== bytes) {
      throw new CorruptionError(from, 0, "it does not match its checksum in backup.json");
    }
  }
  await copyFile(backupListPath(source), backupListPath(draft), { disk, pause, onCopied() {} });
  for (const directory of directories.toReversed()) disk.syncDirectory(directory);
}

function sizeText(size: number | undefined, bytes: number): string {
  if (size === undefined) return "it is missing, and listed in backup.json";
  return `the file has ${size} bytes and should have ${bytes}`;
}

/**
 * Finishes a restore that was staged, if there is one, in a directory whose lock the caller holds
 * and whose catalog nobody has open.
 *
 * @returns What became of it; undefined if there was none.
 * @throws {DatabaseError} @throws {CorruptionError} @throws {DiskError} The next attempt goes on.
 */
export function finishRestore(paths: DataPaths, parts: RestoreParts): FinishedRestore | undefined {
  const { disk, log } = parts;
  const staged = dataPathsOf(stagedPath(paths));
  removeTree(disk, draftPath(paths));
  if (!isRestoreStaged(disk, paths)) {
    // What a crash left of one that was finished.
    removeTree(disk, staged.root);
    return undefined;
  }
  const { files, seq } = readBackupList(disk, staged.root);
  const order = readOrder(disk, staged.root, log);
  onceIn(staged.root, "CHECKED", disk, () => requireListed(staged.root, files, disk));
  onceIn(staged.root, "MOVING", disk, () => succeed(paths, staged, { ...parts, seq }));
  const before = moveIntoPlace(paths, staged, disk);
  // The list first: what is left is nothing without it.
  disk.remove(backupListPath(staged.root));
  disk.syncDirectory(staged.root);
  removeTree(disk, staged.root);
  disk.syncDirectory(paths.root);
  log.warn("restored a backup", { seq, before, ...order });
  return { seq, order, before };
}

function writeOrder(disk: Disk, root: string, order: RestoreOrder): void {
  writeSealedText(disk, orderPath(root), JSON.stringify(order));
}

function readOrder(disk: Disk, root: string, log: Log): RestoreOrder | undefined {
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

/** Does a step that a mark says was done, if it was. */
function onceIn(root: string, mark: string, disk: Disk, step: () => void): void {
  if (disk.exists(`${root}/${mark}`)) return;
  step();
  disk.open(`${root}/${mark}`, { create: true }).close();
  disk.syncDirectory(root);
}

/** What was copied may wait long for its restart. @throws {CorruptionError} */
function requireListed(root: string, files: BackupList["files"], disk: Disk): void {
  for (const { bytes, crc, path } of files) {
    const copy = `${root}/${path}`;
    const size = disk.sizeOf(copy);
    if (size !== bytes)
      throw new CorruptionError(copy, Math.min(size ?? 0, bytes), sizeText(size, bytes));
    if (checksumOfFile(disk, copy).crc === crc) continue;
    const what = `it does not match its checksum in backup.json; remove ${root} and restore again`;
    throw new CorruptionError(copy, 0, what);
  }
}

/** Makes the staged state the successor of the old one: no seq and no number comes twice. */
function succeed(
  old: DataPaths,
  staged: DataPaths,
  parts: RestoreParts & { readonly seq: Seq },
): void {
  const { clock, disk } = parts;
  const nowMs = clock.nowMs();
  const scratch = `${old.tmp}/before-restore`;
  removeTree(disk, scratch);
  disk.makeDirectory(scratch);
  try {
    const before = lookAt(old, scratch, parts);
    const catalog = CatalogDatabase.open({
      path: catalogPathOf(staged.root),
      clock,
      log: silentLog,
    });
    let firstLogFile: number | undefined;
    let check: LogCheck;
    let floorSeq: Seq;
    try {
      const { manifest } = catalog;
      const state = manifest.load();
      ({ firstLogFile } = state);
      const catalogSeq = manifest.highestSeq();
      check = checkLog({ disk, paths: staged, firstLogFile, catalogSeq }, DEAF);
      floorSeq = floorOf([before.seq, catalogSeq, seqFromUnixMs(nowMs), ...seqsOf(check)]);
      const states = new Map(state.tables.map((table) => [table.tableId, table]));
      manifest.publish({
        tables: catalog.tables().map(({ tableId }) => {
          const { flushedSeq = SEQ_ZERO, lastFlushedAtMs = 0 } = states.get(tableId) ?? {};
          return { tableId, flushedSeq, lastFlushedAtMs, lowWaterSeq: floorSeq };
        }),
      });
      catalog.succeed(before.used);
      // What was seen between the two is gone, and what comes next has another archive.
      noteLostSeqs(catalog, { after: parts.seq, upTo: floorSeq });
      catalog.changeSetting(INCARNATION, "");
    } finally {
      catalog.close();
    }
    goOnAbove(staged, disk, { check, firstLogFile, floorSeq });
    const reserved = Math.max(before.reservedIds, check.reservedIds, reservationAt(nowMs));
    rewriteNumberFile(disk, staged.ids, reserved);
    disk.syncDirectory(staged.wal);
    disk.syncDirectory(staged.root);
  } finally {
    removeTree(disk, scratch);
  }
}

/** Ends the staged log with an empty commit, also when an attempt before this one was cut off. */
function goOnAbove(
  staged: DataPaths,
  disk: Disk,
  {
    check,
    firstLogFile,
    floorSeq,
  }: { check: LogCheck; firstLogFile: number | undefined; floorSeq: Seq },
): void {
  if (check.damage === undefined) {
    endLog(disk, staged, { check, floorSeq });
    return;
  }
  const cut = plannedCut(disk, staged, { check, firstLogFile, flushedSeqOf: () => undefined });
  cutLog(disk, staged, { cut, floorSeq });
}

/** How far the state that is replaced has come, as far as it can be read. */
function lookAt(
  paths: DataPaths,
  scratch: string,
  { clock, disk }: RestoreParts,
): { seq: number; reservedIds: number; used: UsedBefore | undefined } {
  const check = checkLog({ disk, paths, firstLogFile: undefined, catalogSeq: undefined }, DEAF);
  const path = catalogPathOf(paths.root);
  const { catalog } = checkCatalog({ disk, path, scratch, clock, log: silentLog });
  const catalogSeq = catalog?.manifest.highestSeq() ?? 0;
  const used = catalog?.used();
  catalog?.close();
  return { seq: Math.max(catalogSeq, ...seqsOf(check)), reservedIds: check.reservedIds, used };
}

function seqsOf({ highWaterSeq, reading }: LogCheck): number[] {
  return [highWaterSeq, reading.lastSeq];
}

/** Above all of them. */
function floorOf(seqs: readonly number[]): Seq {
  const floor = Math.max(...seqs) + 1;
  const seq = seqFromNumber(floor);
  if (seq !== undefined) return seq;
  throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot go on above seq ${floor}: it is no seq`);
}

/** Returns where the old state is now; undefined when there was none. */
function moveIntoPlace(paths: DataPaths, staged: DataPaths, disk: Disk): string | undefined {
  let kept: string | undefined;
  const isNew = isEmpty(paths, disk);
  const putAside = (name: string): void => {
    if (!disk.exists(`${paths.root}/${name}`)) return;
    if (isNew) {
      removeTree(disk, `${paths.root}/${name}`);
      return;
    }
    if (kept === undefined) {
      disk.makeDirectory(paths.lostAndFound);
      kept = freshDirectory(paths, disk);
    }
    disk.rename(`${paths.root}/${name}`, `${kept}/${name}`);
  };
  // While the new catalog is not in its place these are the old one's.
  if (disk.exists(catalogPathOf(staged.root)))
    for (const name of CATALOG_SIDE_FILES) putAside(name);
  for (const name of STATE) {
    if (!disk.exists(`${staged.root}/${name}`)) continue;
    putAside(name);
    disk.rename(`${staged.root}/${name}`, `${paths.root}/${name}`);
  }
  if (kept !== undefined) {
    disk.syncDirectory(kept);
    disk.syncDirectory(paths.lostAndFound);
  }
  disk.syncDirectory(staged.root);
  disk.syncDirectory(paths.root);
  return kept;
}

/** Whether there is nothing to keep: the directories that every data directory has. */
function isEmpty({ root }: DataPaths, disk: Disk): boolean {
  if ([CATALOG_FILE, ...CATALOG_SIDE_FILES].some((name) => disk.exists(`${root}/${name}`)))
    return false;
  const directories = STATE_DIRECTORIES.map((name) => `${root}/${name}`);
  return directories.every((path) => !disk.exists(path) || disk.list(path).length === 0);
}

/** A directory in lost+found/ that is not there yet. */
function freshDirectory({ lostAndFound }: DataPaths, disk: Disk): string {
  for (let number = 1; ; number += 1) {
    const path = `${lostAndFound}/before-restore-${number}`;
    if (disk.exists(path)) continue;
    disk.makeDirectory(path);
    return path;
  }
}

function draftPath({ root }: DataPaths): string {
  return `${root}/restore.new`;
}
