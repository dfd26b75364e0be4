/**
 * Connects a database to its backups when the database opens: finishes a pending restore, starts
 * archiving the log, and provides the jobs for backups and restores.
 */
import type { OnBug } from "../base/bugs.ts";
import type { Clock } from "../base/clock.ts";
import type { Disk } from "../base/disk.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { CatalogDatabase } from "../catalog/mod.ts";
import type { AuditLog } from "../sql/mod.ts";
import type { DataDirectory } from "../storage/mod.ts";
import { Archiver } from "./archive.ts";
import { INCARNATION } from "./archive_units.ts";
import { BackupJobs, type BackupJobsOptions, type PointBringer } from "./backup_jobs.ts";
import type { FinishedRestore } from "./finish_restore.ts";

/** The configured paths and limits of backups. */
export interface BackupLimits {
  /** The absolute paths of the directories under which backups are allowed. */
  readonly allowedRoots: readonly string[];
  /** The directory to which full log files are copied; undefined if they are not archived. */
  readonly archivePath: string | undefined;
  /** The disk space that the server keeps free, in bytes. */
  readonly minFreeBytes: number;
  /** The maximum number of log bytes that a point-in-time restore keeps in memory. */
  readonly heldBytesMax: number;
  /** The maximum size of the log in normal operation, in bytes. */
  readonly walMaxBytes: number;
}

export interface BackupParts {
  readonly clock: Clock;
  readonly onBug: OnBug;
  readonly disk: Disk;
  readonly log: Log;
  readonly random: Random;
  readonly version: string;
  /**
   * Rolls a backup forward in a separate thread. If absent, the event loop does the work in
   * slices.
   */
  readonly bringInThread?: PointBringer | undefined;
}

/** The number of random bytes in the name of an incarnation, enough to make every name unique. */
const INCARNATION_BYTES = 16;

/**
 * The factor by which the log may exceed its usual maximum size while the archive is unreachable.
 */
const ARCHIVE_WAITS = 4;

/**
 * Records a finished restore in the audit log. The event names the user who requested the restore,
 * because the audit record of that request was part of the replaced database.
 */
export async function noteRestore(audit: AuditLog, { order, seq }: FinishedRestore): Promise<void> {
  if (order === undefined) return;
  const { orderedBy: actor, source: target } = order;
  await audit.note({ action: "finish restore", actor, target, outcome: "ok", details: { seq } });
}

/** Gives this incarnation of the database a name, unless it already has one. */
export function nameIncarnation(catalog: CatalogDatabase, random: Random): void {
  if ((catalog.setting(INCARNATION) ?? "") !== "") return;
  const incarnation = Buffer.from(random.bytes(INCARNATION_BYTES)).toString("hex");
  catalog.changeSetting(INCARNATION, incarnation);
}

/** Returns the archiver for the log; undefined if none is configured. */
export function archiverOf(
  { archivePath, walMaxBytes }: BackupLimits,
  { clock, disk, log, onBug }: BackupParts,
  { catalog, directory }: { catalog: CatalogDatabase; directory: DataDirectory },
): Archiver | undefined {
  if (archivePath === undefined) return undefined;
  return new Archiver({
    disk,
    clock,
    log,
    onBug,
    catalog,
    paths: directory.paths,
    archivePath,
    incarnation: catalog.setting(INCARNATION) ?? "",
    waitingBytesMax: ARCHIVE_WAITS * walMaxBytes,
  });
}

/** Returns the backup and restore jobs that statements may start. */
export function backupJobsOf(
  { allowedRoots, archivePath, heldBytesMax, minFreeBytes }: BackupLimits,
  { bringInThread, clock, disk, log, random, version }: BackupParts,
  {
    directory,
    ...layers
  }: Pick<BackupJobsOptions, "catalog" | "store" | "blobs" | "jobs"> & {
    directory: DataDirectory;
  },
): BackupJobs {
  return new BackupJobs({
    ...layers,
    bringInThread,
    disk,
    clock,
    log,
    version,
    paths: directory.paths,
    minFreeBytes,
    heldBytesMax,
    random,
    archivePath,
    allowedRoots,
  });
}
