/**
 * Exports backups of a database, the archive of its log, and restores from both.
 *
 * The storage layer defines the contents of a backup (`storage/directory/backup_list.ts`) and
 * checks whether one is complete (`storage/check/check_backup.ts`), because `verify` reads a
 * backup like any data directory. This folder creates and restores backups.
 */
export { type ArchiveLag, type Archiver, requireArchive } from "./archive.ts";
export { INCARNATION } from "./archive_units.ts";
export type { PointBringer } from "./backup_jobs.ts";
export {
  archiverOf,
  type BackupLimits,
  backupJobsOf,
  nameIncarnation,
  noteRestore,
} from "./database_backups.ts";
export { finishRestore } from "./finish_restore.ts";
export { lostSeqsOf, noteLostSeqs } from "./lost_seqs.ts";
export {
  isRestoreStaged,
  type RestoreParts,
  type StageListener,
  stagedPath,
  stagedStep,
  stageRestore,
} from "./restore.ts";
export { bringTo } from "./restore_point.ts";
export {
  missingText,
  type Point,
  type PointText,
  readPoint,
  seqOfPoint,
  tailOf,
} from "./restore_sources.ts";
export { bringInThread } from "./restore_thread.ts";
export { erasBehind } from "./restore_times.ts";
