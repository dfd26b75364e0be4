/**
 * Copies of a database: backups, the archive of its log, and what brings either back.
 *
 * What a backup consists of (`storage/directory/backup_list.ts`), and whether one is whole
 * (`storage/check/check_backup.ts`), is storage's affair, as `verify` reads a backup like any data
 * directory; what writes one is here.
 */
export { type ArchiveLag, type Archiver, requireArchive } from "./archive.ts";
export { INCARNATION } from "./archive_units.ts";
export type { PointBringer } from "./backup_jobs.ts";
export {
  archiverOf,
  backupJobsOf,
  type CopyLimits,
  nameIncarnation,
  noteRestore,
} from "./database_copies.ts";
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
