/**
 * Makes a damaged data directory one that a server starts on, and names every loss.
 *
 * - What is taken out of use is moved or copied to lost+found/ and never removed.
 * - Damaged segments are quarantined: their tables refuse what would need the lost rows. Those of
 *   the audit log are dropped, or it would take no event any more, and nobody can drop the table.
 * - Commits are lost only when the caller accepts it, and then all from one seq on that are in no
 *   segment. A table that was flushed above it keeps its rows, so what remains need not be a state
 *   that there was: those tables are named. Subscribers from before are told to begin anew.
 * - No seq is handed out again.
 * - A database whose log or catalog was cut goes on as another incarnation: it writes log files of
 *   the numbers, and changes of the catalog of the ids, that the archive of the old one has
 *   already.
 */

import { keptSecretPath } from "../auth/mod.ts";
import { DatabaseError, DiskError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { SEQ_ZERO, type Seq, seqFromNumber, seqFromUnixMs } from "../base/seq.ts";
import { CatalogDatabase, catalogPathOf } from "../catalog/mod.ts";
import { INCARNATION } from "../copies/mod.ts";
import { AUDIT_TABLE } from "../sql/mod.ts";
import {
  cutLog,
  type DataPaths,
  dropSegments,
  type LogCut,
  moveToLostAndFound,
  plannedCut,
  quarantineSegments,
  reservationAt,
  rewriteNumberFile,
  walFilePath,
} from "../storage/files.ts";
import type { SegmentEntry } from "../storage/mod.ts";
import type { CheckParts, DirectoryCheck } from "./check_directory.ts";

/** What a repair will do, before it does anything. */
export interface RepairPlan {
  /** What it cannot mend, and what to do instead; a directory that has any of it is left alone. */
  readonly obstacles: readonly string[];
  /** What is lost whether anybody agrees or not: it is damaged already. */
  readonly losses: readonly string[];
  /** What is given up so that a server starts, and needs to be agreed to. */
  readonly sacrifices: readonly string[];
  /** What is above the cut and stays. */
  readonly remains: readonly string[];
  readonly cut: LogCut | undefined;
}

/**
 * Segments of the audit log that cannot be read: those with damage, and those that a server
 * quarantined when it met damage, which a check takes for nothing new.
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
      `${walPath} from byte ${offset}: the newest changes of tables, users and the list of segments`,
    );
  }
  for (const { root, storageId, what } of check.missingStorages) {
    sacrifices.push(
      `storage ${storageId}: whatever is in ${root}, which is not looked at, since ${what}; reads and writes of its tables fail until it is back`,
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
 * Does what was planned, in a directory whose lock the caller holds.
 *
 * @returns Paths in lost+found/ of everything that was taken out of use.
 * @throws {DatabaseError} @throws {DiskError} What was done until then stands; repair again.
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
    // Before the cut, too, for the same reason as what is published there.
    if (check.catalog.isOnlyLogDamaged || plan.cut !== undefined) {
      catalog.changeSetting(INCARNATION, "");
    }
    const audit = lostAuditSegments(check);
    if (audit.length > 0) kept.push(...dropSegments(disk, paths, { entries: audit, manifest }));
    const entries = check.damagedSegments.filter(({ tableId }) => tableId !== AUDIT_TABLE.tableId);
    if (entries.length > 0) kept.push(...quarantineSegments(disk, paths, { entries, manifest }));
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
      // Before the cut: a log that was cut is not cut again by a repair that comes after a crash.
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
      `Cannot repair ${paths.format}: it does not say which version made the directory; put it back from a backup`,
    );
  }
  if (check.catalog.damage.length > 0 && !check.catalog.isOnlyLogDamaged) {
    obstacles.push(
      `Cannot repair ${catalogPathOf(paths.root)}: it alone knows tables, users and segments; put back a backup of the whole directory`,
    );
  }
  if (check.log.isAheadOfCatalog) {
    obstacles.push(
      `Cannot repair ${catalogPathOf(paths.root)}: it is older than the log; put back the catalog that belongs to this log`,
    );
  }
  return obstacles;
}

function lossesOf(check: DirectoryCheck): string[] {
  const { damagedFiles, damagedSegments, isSecretDamaged, tableNames } = check;
  const nameOf = (tableId: number): string => tableNames.get(tableId) ?? String(tableId);
  return [
    ...(isSecretDamaged ? ["the secret that signs tokens: all users log in anew"] : []),
    ...lostAuditSegments(check).map(
      ({ rowCount, segmentId }) =>
        `${AUDIT_TABLE.name}: segment ${segmentId}, ${rowCount} versions of events; it goes on without them`,
    ),
    ...damagedSegments
      .filter(({ tableId }) => tableId !== AUDIT_TABLE.tableId)
      .map(
        ({ maxSeq, minSeq, rowCount, segmentId, tableId }) =>
          `table ${nameOf(tableId)}: segment ${segmentId}, ${rowCount} row versions from seq ${minSeq} to ${maxSeq}; statements that need them answer DATA_DAMAGED`,
      ),
    ...damagedFiles.map(
      ({ fileId, name, tableId }) =>
        `table ${nameOf(tableId)}: uploaded file ${fileId} ("${name}"), left where it is; downloads answer DATA_DAMAGED until its row names another`,
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
      ? `${place}: commits up to seq ${upTo} that are in no segment`
      : `${place}: commits after seq ${lastSeq}, which is the last that remains in the log, up to seq ${upTo}`,
  ];
  for (const [tableId, count] of lost.rowsByTable) {
    lines.push(
      `table ${tableNames.get(tableId) ?? tableId}: ${count} row versions that can still be read there, and are in no segment`,
    );
  }
  return lines;
}

/** Tables whose segments have rows from behind the last commit that remains in the log. */
function remainsOf({ lastSeq }: LogCut, { manifest, tableNames }: DirectoryCheck): string[] {
  const highest = new Map<number, number>();
  for (const { maxSeq, quarantined, tableId } of manifest?.segments ?? []) {
    if (quarantined || maxSeq <= lastSeq || !tableNames.has(tableId)) continue;
    highest.set(tableId, Math.max(maxSeq, highest.get(tableId) ?? 0));
  }
  return [...highest].map(
    ([tableId, seq]) =>
      `table ${tableNames.get(tableId)}: its segments have rows from behind the cut, up to seq ${seq}; of a transaction over several tables they may be the only part that is left`,
  );
}

/** At or above every seq that anybody can have seen. */
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
  throw new DatabaseError("STORAGE_UNAVAILABLE", `Cannot go on above seq ${floor}: it is no seq`);
}

/** Who followed a table before the cut may have seen what is gone, so nobody resumes from there. */
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

/** Whether something else is in the place of a file: a directory, or a link that leads nowhere. */
function isNoFile(path: string, { disk }: CheckParts): boolean {
  try {
    disk.open(path, {}).close();
    return false;
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    // Safe: any other failure meets who writes the file.
    return error.code === "EISDIR" || error.code === "ELOOP";
  }
}

function copyToLostAndFound(paths: DataPaths, { disk }: CheckParts, from: string): string {
  const draft = `${paths.tmp}/repair.copy`;
  const file = disk.open(draft, { create: true });
  try {
    file.truncate(0);
    file.write(disk.readFile(from), 0);
    file.syncNow();
  } finally {
    file.close();
  }
  const to = moveToLostAndFound(disk, paths, {
    from: draft,
    name: from.slice(from.lastIndexOf("/") + 1),
  });
  disk.syncDirectory(paths.lostAndFound);
  return to;
}
