/**
 * What a database that opens has to do with copies of itself: a restore that waits for it is
 * finished, its log is archived, and its statements begin backups and restores.
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

/** Of the configuration. */
export interface CopyLimits {
  /** Absolute paths of directories; what is below them may be named. */
  readonly allowedRoots: readonly string[];
  /** Where full log files are kept; undefined where they are not. */
  readonly archivePath: string | undefined;
  /** What a server keeps free. */
  readonly minFreeBytes: number;
  /** The usual length of the log. */
  readonly walMaxBytes: number;
}

export interface CopyParts {
  readonly clock: Clock;
  readonly onBug: OnBug;
  readonly disk: Disk;
  readonly log: Log;
  readonly random: Random;
  readonly version: string;
  /** Who brings a backup to a later moment; without it that happens between other work. */
  readonly bringInThread?: PointBringer | undefined;
}

/** Enough that no two lives of a database are ever taken for one. */
const INCARNATION_BYTES = 16;

/** So many times the usual length of the log waits for an archive that cannot be reached. */
const ARCHIVE_WAITS = 4;

/** The order itself is among the events of the state that was replaced. */
export async function noteRestore(audit: AuditLog, { order, seq }: FinishedRestore): Promise<void> {
  if (order === undefined) return;
  const { orderedBy: actor, source: target } = order;
  await audit.note({ action: "finish restore", actor, target, outcome: "ok", details: { seq } });
}

/** Names this life of the database, unless it has its name. */
export function nameIncarnation(catalog: CatalogDatabase, random: Random): void {
  if ((catalog.setting(INCARNATION) ?? "") !== "") return;
  const incarnation = Buffer.from(random.bytes(INCARNATION_BYTES)).toString("hex");
  catalog.changeSetting(INCARNATION, incarnation);
}

/** Who copies the log away; undefined when nobody is asked to. */
export function archiverOf(
  { archivePath, walMaxBytes }: CopyLimits,
  { clock, disk, log, onBug }: CopyParts,
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

/** Who carries out what statements begin. */
export function backupJobsOf(
  { allowedRoots, archivePath, minFreeBytes }: CopyLimits,
  { bringInThread, clock, disk, log, random, version }: CopyParts,
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
    random,
    archivePath,
    allowedRoots,
  });
}
