/**
 * Replaces a database with a staged backup: steps 3 to 7 of a restore, as shown in `restore.ts`.
 */
import { checksumOfFile, removeTree } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError } from "../base/errors.ts";
import { type Log, silentLog } from "../base/log.ts";
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
  listedFault,
  plannedCut,
  readBackupList,
  reservationAt,
  rewriteNumberFile,
} from "../storage/files.ts";
import type { SegmentEntry } from "../storage/mod.ts";
import { INCARNATION } from "./archive_units.ts";
import { noteLostSeqs } from "./lost_seqs.ts";
import {
  CHECKED_MARK,
  isRestoreStaged,
  MOVING_MARK,
  pendingRestorePath,
  type RestoreOrder,
  type RestoreParts,
  readOrder,
  stagedPath,
} from "./restore.ts";

/** The result of a finished restore. */
export interface FinishedRestore {
  readonly seq: Seq;
  /** The request for the restore; absent if nobody was logged in when it was made. */
  readonly order: RestoreOrder | undefined;
  /**
   * The path to which the replaced database was moved; undefined if there was nothing to replace.
   */
  readonly before: string | undefined;
}

/**
 * The directories of a database that a restore replaces. The lock, the secret and data that can be
 * rebuilt are not part of them.
 */
const STATE_DIRECTORIES = ["wal", "segments", "files"] as const;
const STATE = [CATALOG_FILE, ...STATE_DIRECTORIES] as const;

const DEAF: CheckListener = { onChecked() {}, onFinding() {} };

/**
 * Finishes a staged restore, if there is one, in a directory that the caller has locked and whose
 * catalog is not open. After an error, the next call continues where this one stopped.
 *
 * @returns The result; undefined if no restore was staged.
 * @throws {DatabaseError} @throws {CorruptionError} @throws {DiskError}
 */
export function finishRestore(paths: DataPaths, parts: RestoreParts): FinishedRestore | undefined {
  const { disk, log } = parts;
  const staged = dataPathsOf(stagedPath(paths));
  removeTree(disk, pendingRestorePath(paths));
  if (!isRestoreStaged(disk, paths)) {
    // Removes the remains of a finished restore that a crash left behind.
    removeTree(disk, staged.root);
    return undefined;
  }
  const { files, seq } = readBackupList(disk, staged.root);
  const order = readOrder(disk, staged.root, log);
  onceIn(staged.root, CHECKED_MARK, disk, () => requireListed(staged.root, files, disk));
  onceIn(staged.root, MOVING_MARK, disk, () => continueFrom(paths, staged, { ...parts, seq }));
  const before = moveIntoPlace(paths, staged, disk);
  // The list of files is removed first, because without it the directory no longer counts as a
  // staged restore.
  disk.remove(backupListPath(staged.root));
  disk.syncDirectory(staged.root);
  removeTree(disk, staged.root);
  disk.syncDirectory(paths.root);
  log.warn("restored a backup", { seq, before, ...order });
  return { seq, order, before };
}

/**
 * Runs a step of a restore unless its marker file shows that the step has already been completed.
 */
function onceIn(root: string, mark: string, disk: Disk, step: () => void): void {
  if (disk.exists(`${root}/${mark}`)) return;
  step();
  disk.open(`${root}/${mark}`, { create: true }).close();
  disk.syncDirectory(root);
}

/**
 * Checks the copied backup once more, because a long time may have passed before the restart.
 * @throws {CorruptionError}
 */
function requireListed(root: string, files: BackupList["files"], disk: Disk): void {
  for (const file of files) {
    const path = `${root}/${file.path}`;
    const found = disk.exists(path) ? checksumOfFile(disk, path) : { bytes: undefined };
    const fault = listedFault(file, path, found);
    if (fault === undefined) continue;
    const what = `${fault.what}; remove ${root}, and restore again`;
    throw new CorruptionError(path, fault.offset, what);
  }
}

/**
 * Logs the names of the storages whose segments are now in the data directory, to explain why the
 * directory has grown.
 */
function tellBroughtHere(segments: readonly SegmentEntry[], log: Log): void {
  const away = segments.flatMap(({ bytes, home }) => (home === undefined ? [] : [{ bytes, home }]));
  if (away.length === 0) return;
  log.warn(
    "restored segments of other storages into the data directory; merges will move them back",
    {
      storages: [...new Set(away.map(({ home }) => home.storageId))].toSorted().join(", "),
      segments: away.length,
      bytes: away.reduce((sum, { bytes }) => sum + bytes, 0),
    },
  );
}

/**
 * Makes the restored database continue where the replaced one stopped, so that no seq and no other
 * number is issued twice.
 */
function continueFrom(
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
      const undoneSeqs = manifest.undoneSeqs();
      const options = { disk, paths: staged, firstLogFile, catalogSeq, undoneSeqs };
      check = checkLog(options, DEAF);
      floorSeq = floorOf([before.seq, catalogSeq, seqFromUnixMs(nowMs), ...seqsOf(check)]);
      const states = new Map(state.tables.map((table) => [table.tableId, table]));
      manifest.publish({
        tables: catalog.tables().map(({ tableId }) => {
          const { flushedSeq = SEQ_ZERO, lastFlushedAtMs = 0 } = states.get(tableId) ?? {};
          return { tableId, flushedSeq, lastFlushedAtMs, lowWaterSeq: floorSeq };
        }),
      });
      tellBroughtHere(state.segments, parts.log);
      catalog.continueFrom(before.used);
      // The seqs between the end of the backup and the end of the replaced database become
      // invalid, and the restored database gets a new archive.
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

/**
 * Ends the log of the staged backup with an empty commit. This also works after an interrupted
 * attempt.
 */
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

/**
 * Reads the highest seqs and ids of the database being replaced. Files that cannot be read are
 * ignored.
 */
function lookAt(
  paths: DataPaths,
  scratch: string,
  { clock, disk }: RestoreParts,
): { seq: number; reservedIds: number; used: UsedBefore | undefined } {
  const unknown = { firstLogFile: undefined, catalogSeq: undefined, undoneSeqs: undefined };
  const check = checkLog({ disk, paths, ...unknown }, DEAF);
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

/** Returns a seq that is higher than all the given seqs. */
function floorOf(seqs: readonly number[]): Seq {
  const floor = Math.max(...seqs) + 1;
  const seq = seqFromNumber(floor);
  if (seq !== undefined) return seq;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot continue after _seq ${floor - 1}: there is no higher _seq`,
  );
}

/**
 * Exchanges the old database for the staged backup. Returns the path to which the old database was
 * moved; undefined if there was none.
 */
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
  // Until the new catalog is in place, the files that SQLite created next to the old catalog still
  // belong to it.
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

/**
 * Returns whether the data directory contains only empty directories. If so, there is no old
 * database to keep.
 */
function isEmpty({ root }: DataPaths, disk: Disk): boolean {
  if ([CATALOG_FILE, ...CATALOG_SIDE_FILES].some((name) => disk.exists(`${root}/${name}`)))
    return false;
  const directories = STATE_DIRECTORIES.map((name) => `${root}/${name}`);
  return directories.every((path) => !disk.exists(path) || disk.list(path).length === 0);
}

/** Returns an unused path in lost+found/. */
function freshDirectory({ lostAndFound }: DataPaths, disk: Disk): string {
  for (let number = 1; ; number += 1) {
    const path = `${lostAndFound}/before-restore-${number}`;
    if (disk.exists(path)) continue;
    disk.makeDirectory(path);
    return path;
  }
}
