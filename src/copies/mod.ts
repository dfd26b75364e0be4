/**
 * Copies of a database: backups, the archive of its log, and what brings either back.
 */
export { type ArchiveLag, Archiver, requireArchive } from "./archive.ts";
export { INCARNATION } from "./archive_units.ts";
export { BackupJobs, type BackupJobsOptions, type PointAdvancer } from "./backup_jobs.ts";
export { lostSeqsOf, noteLostSeqs } from "./lost_seqs.ts";
export {
  type FinishedRestore,
  finishRestore,
  isRestoreStaged,
  type RestoreParts,
  type StageListener,
  stageRestore,
} from "./restore.ts";
export { advanceTo } from "./restore_point.ts";
export { missingText, type PointText, seqOfPoint, tailOf } from "./restore_sources.ts";
export { advanceInThread } from "./restore_thread.ts";
