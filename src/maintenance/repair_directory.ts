/**
 * Repairs a damaged data directory so that a server can start on it, and lists everything that is
 * lost.
 *
 * - Files no longer in use are moved or copied to lost+found/, never removed.
 * - Damaged segments are quarantined: their tables refuse statements that need the lost rows.
 *   Damaged segments of the audit log are dropped instead: otherwise, the audit log would accept
 *   no events, and no user can drop its table.
 * - Commits are lost only if the caller consents. In that case, all commits from a certain seq
 *   onwards are lost, except for rows already in segments. A table that was flushed above that seq
 *   keeps its rows, so the result may be a state that never existed; such tables are named.
 *   Earlier subscribers need a new snapshot.
 * - No seq is issued again.
 * - A database whose log or catalog was truncated continues as a new incarnation, because it
 *   writes log files and catalog changes with numbers already used in the archive of the old
 *   incarnation.
 */

import { keptSecretPath } from "../auth/mod.ts";
import { INCARNATION } from "../backup/mod.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { SEQ_ZERO, type Seq, seqFromNumber, seqFromUnixMs } from "../base/seq.ts";
import { CatalogDatabase, catalogPathOf } from "../catalog/mod.ts";
import { AUDIT_TABLE } from "../sql/mod.ts";
import {
  cutLog,
  type DataPaths,
  dropSegments,
  type LogCut,
  moveToLostAndFound,
  plannedCut,
  quarantineSegments,
  rebuildIndexes,
  reservationAt,
  rewriteNumberFile,
  walFilePath,
} from "../storage/files.ts";
import type { SegmentEntry } from "../storage/mod.ts";
import type { CheckParts, DirectoryCheck } from "./check_directory.ts";

/** The effects of a repair, determined before it runs. */
export interface RepairPlan {
  /**
   * Faults that the repair cannot fix, with their remedies. If there are any, the directory is
   * left unchanged.
   */
  readonly obstacles: readonly string[];
  /** Losses that need no consent, because the data is already damaged. */
  readonly losses: readonly string[];
  /** Data to be sacrificed so that a server can start. The repair requires consent for this. */
  readonly sacrifices: readonly string[];
  /** Data that will remain although it is newer than the point at which the log is truncated. */
  readonly remains: readonly string[];
  readonly cut: LogCut | undefined;
}

/**
 * Returns the unreadable segments of the audit log: the damaged ones, and those that a server has
 * already quarantined, which a check does not report as new.
 */
export function lostAuditSegments({
  damagedSegments,
  manifest,
}: Pick<DirectoryCheck, "damagedSegments" | "manifest">): SegmentEntry[] {
  const damagedIds = new Set(damagedSegments.map(({ segmentId }) => segmentId));
  const segments = manifest?.segments.filter(({ tableId }) => tableId === AUDIT_TABLE.tableId);
  return (segments ?? []).filter(
    ({ quarantined, segmentId }) => quarantined || damagedIds.has(segmentId),
  );
}

export function planRepair(
  paths: DataPaths,
  { disk }: Pick<CheckParts, "disk">,
  check: DirectoryCheck,
): RepairPlan {
  const { catalog, log, manifest } = check;
  const sacrifices: string[] = [];
  const walPath = `${catalogPathOf(paths.root)}-wal`;
  if (catalog.isOnlyLogDamaged) {
    const offset = catalog.damage[0]?.offset ?? 0;
    sacrifices.push(
      `${walPath} from byte ${offset}: the newest changes to tables, to users and to the list ` +
        "of segments",
    );
  }
  for (const { root, storageId, what } of check.missingStorages) {
    sacrifices.push(
      `storage ${storageId}: the contents of ${root}, which were not checked, because ${what}; ` +
        "reads and writes of its tables fail until the directory is back",
    );
  }
  const states = new Map(manifest?.tables.map((state) => [state.tableId, state.flushedSeq]));
  const flushedSeqOf = (tableId: number): number | undefined =>
    check.tableNames.has(tableId) ? (states.get(tableId) ?? 0) : undefined;
  const firstLogFile = manifest?.firstLogFile;
  const cut =
    log.damage === undefined
      ? undefined
      : plannedCut(disk, paths, { check: log, firstLogFile, flushedSeqOf });
  if (cut !== undefined) sacrifices.push(...cutLines(paths, cut, check));
  const remains = cut === undefined ? [] : remainsOf(cut, check);
  const obstacles = obstaclesOf(paths, check);
  return { obstacles, losses: lossesOf(check), sacrifices, remains, cut };
}

/**
 * Executes a plan in a directory that the caller has locked.
 *
 * @returns The paths in lost+found/ of all files taken out of use.
 * @throws {DatabaseError} @throws {DiskError} Completed steps stay done; run the repair again.
 */
export function repairDirectory(
  paths: DataPaths,
  parts: CheckParts,
  { check, plan }: { check: DirectoryCheck; plan: RepairPlan },
): string[] {
  const { clock, disk } = parts;
  const kept: string[] = [];
  for (const path of [paths.wal, paths.segments, paths.tmp, paths.lostAndFound]) {
    disk.makeDirectory(path);
  }
  if (check.catalog.isOnlyLogDamaged) {
    const from = `${catalogPathOf(paths.root)}-wal`;
    kept.push(copyToLostAndFound(paths, parts, from));
  }
  const path = catalogPathOf(paths.root);
  const catalog = CatalogDatabase.open({ path, clock, log: silentLog });
  try {
    const { manifest } = catalog;
    const nowMs = clock.nowMs();
    // The new incarnation must be recorded before the log is truncated, because a repair after a
    // crash would not truncate the log again.
    if (check.catalog.isOnlyLogDamaged || plan.cut !== undefined) {
      catalog.changeSetting(INCARNATION, "");
    }
    const audit = lostAuditSegments(check);
    if (audit.length > 0) kept.push(...dropSegments(disk, paths, { entries: audit, manifest }));
    const entries = check.damagedSegments.filter(({ tableId }) => tableId !== AUDIT_TABLE.tableId);
    if (entries.length > 0) kept.push(...quarantineSegments(disk, paths, { entries, manifest }));
    rebuildIndexes(disk, paths, check.damagedIndexes);
    if (check.isSecretDamaged) {
      const from = keptSecretPath(paths.root);
      kept.push(moveToLostAndFound(disk, paths, { from, name: "jwt_secret" }));
    }
    for (const from of [paths.ids, paths.highWater]) {
      if (!isNoFile(from, parts)) continue;
      kept.push(moveToLostAndFound(disk, paths, { from, name: from.slice(paths.wal.length + 1) }));
    }
    if (check.log.isReservationDamaged) {
      const reserved = Math.max(check.log.reservedIds, check.highestFileId, reservationAt(nowMs));
      rewriteNumberFile(disk, paths.ids, reserved);
    }
    if (plan.cut !== undefined) {
      const floorSeq = floorSeqOf(check, plan.cut, nowMs);
      // The history must be ended before the log is truncated, because a repair after a crash
      // would not truncate the log again.
      manifest.publish({ tables: withoutHistory(check, floorSeq) });
      kept.push(...cutLog(disk, paths, { cut: plan.cut, floorSeq }));
    } else if (check.log.isHighWaterDamaged) {
      rewriteNumberFile(disk, paths.highWater, check.log.reading.lastSeq);
    }
    disk.syncDirectory(paths.wal);
    disk.syncDirectory(paths.root);
    return kept;
  } finally {
    catalog.close();
  }
}

function obstaclesOf(paths: DataPaths, check: DirectoryCheck): string[] {
  const obstacles: string[] = [];
  if (check.isFormatDamaged) {
    obstacles.push(
      `Cannot repair ${paths.format}: it does not contain the format of the directory; restore ` +
        "the file from a backup",
    );
  }
  if (check.catalog.damage.length > 0 && !check.catalog.isOnlyLogDamaged) {
    obstacles.push(
      `Cannot repair ${catalogPathOf(paths.root)}: only the catalog lists the tables, users ` +
        "and segments; restore the whole directory from a backup",
    );
  }
  if (check.log.isAheadOfCatalog) {
    obstacles.push(
      `Cannot repair ${catalogPathOf(paths.root)}: the catalog is older than the log; restore ` +
        "the catalog that belongs to this log",
    );
  }
  return obstacles;
}

function lossesOf(check: DirectoryCheck): string[] {
  const { damagedFiles, damagedSegments, isSecretDamaged, tableNames } = check;
  const nameOf = (tableId: number): string => tableNames.get(tableId) ?? String(tableId);
  return [
    ...(isSecretDamaged ? ["the secret that signs tokens, so all users must log in again"] : []),
    ...lostAuditSegments(check).map(
      ({ rowCount, segmentId }) =>
        `${AUDIT_TABLE.name}: segment ${segmentId}, with ${rowCount} versions of events; the ` +
        "audit log continues without them",
    ),
    ...damagedSegments
      .filter(({ tableId }) => tableId !== AUDIT_TABLE.tableId)
      .map(
        ({ maxSeq, minSeq, rowCount, segmentId, tableId }) =>
          `table ${nameOf(tableId)}: segment ${segmentId}, with ${rowCount} row versions ` +
          `from _seq ${minSeq} to ${maxSeq}; statements that need them fail with DATA_DAMAGED`,
      ),
    ...damagedFiles.map(
      ({ fileId, name, tableId }) =>
        `table ${nameOf(tableId)}: uploaded file ${fileId} ("${name}"), which is left in ` +
        "place; downloads fail with DATA_DAMAGED until its row refers to a different file",
    ),
  ];
}

function cutLines(paths: DataPaths, cut: LogCut, { tableNames }: DirectoryCheck): string[] {
  const { acknowledgedSeq, lastFile, lastSeq, lost, offset } = cut;
  const upTo = Math.max(acknowledgedSeq, lost.lastSeq);
  const path = walFilePath(paths, lastFile ?? 0);
  const place = lastFile === undefined ? `${paths.wal}, all of it` : `${path} from byte ${offset}`;
  const lines = [
    lastFile === undefined
      ? `${place}: commits up to _seq ${upTo} that are not in any segment`
      : `${place}: commits after _seq ${lastSeq}, the last one that remains in the log, up to ` +
        `_seq ${upTo}`,
  ];
  for (const [tableId, count] of lost.rowsByTable) {
    lines.push(
      `table ${tableNames.get(tableId) ?? tableId}: ${count} row versions that are not in ` +
        "any segment, but can still be read from the damaged log",
    );
  }
  return lines;
}

/**
 * Returns the tables whose segments contain rows of commits after the last commit left in the log.
 */
function remainsOf({ lastSeq }: LogCut, { manifest, tableNames }: DirectoryCheck): string[] {
  const highest = new Map<number, number>();
  for (const { maxSeq, quarantined, tableId } of manifest?.segments ?? []) {
    if (quarantined || maxSeq <= lastSeq || !tableNames.has(tableId)) continue;
    highest.set(tableId, Math.max(maxSeq, highest.get(tableId) ?? 0));
  }
  return [...highest].map(
    ([tableId, seq]) =>
      `table ${tableNames.get(tableId)}: its segments contain rows written after the cut, up ` +
      `to _seq ${seq}; if a transaction wrote to several tables, only part of it may remain`,
  );
}

/** Returns a seq that is at least as high as every seq that a client may have seen. */
function floorSeqOf(
  { catalogSeq, log, manifest }: DirectoryCheck,
  cut: LogCut,
  nowMs: number,
): Seq {
  const floor = Math.max(
    log.highWaterSeq,
    log.reading.lastSeq + 1,
    cut.lost.lastSeq,
    catalogSeq,
    seqFromUnixMs(nowMs),
    ...(manifest?.tables ?? []).map(({ flushedSeq }) => flushedSeq),
  );
  const seq = seqFromNumber(floor);
  if (seq !== undefined) return seq;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot continue after _seq ${floor - 1}: there is no higher _seq`,
  );
}

/** Ends the history of tables, because subscribers may have seen commits that are now lost. */
function withoutHistory(
  { manifest, tableNames }: DirectoryCheck,
  lowWaterSeq: Seq,
): NonNullable<DirectoryCheck["manifest"]>["tables"] {
  const states = new Map(manifest?.tables.map((state) => [state.tableId, state]));
  return [...tableNames.keys()].map((tableId) => {
    const { flushedSeq = SEQ_ZERO, lastFlushedAtMs = 0 } = states.get(tableId) ?? {};
    return { tableId, flushedSeq, lastFlushedAtMs, lowWaterSeq };
  });
}

/**
 * Returns whether there is something other than a file at `path`: a directory, or a link without a
 * target.
 */
function isNoFile(path: string, { disk }: CheckParts): boolean {
  try {
    disk.open(path, {}).close();
    return false;
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    // Other errors need no handling here, because they are reported when the file is written.
    return error.code === "EISDIR" || error.code === "ELOOP";
  }
}

function copyToLostAndFound(paths: DataPaths, { disk }: CheckParts, from: string): string {
  const pendingPath = `${paths.tmp}/repair.copy`;
  const file = disk.open(pendingPath, { create: true });
  try {
    file.truncate(0);
    file.write(disk.readFile(from), 0);
    file.syncNow();
  } finally {
    file.close();
  }
  const to = moveToLostAndFound(disk, paths, {
    from: pendingPath,
    name: from.slice(from.lastIndexOf("/") + 1),
  });
  disk.syncDirectory(paths.lostAndFound);
  return to;
}
