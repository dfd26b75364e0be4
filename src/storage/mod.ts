/**
 * Row versions on disk in `_seq` order.
 */

export { flushedText } from "./background/flush.ts";
export { type FlushJob, type FlushOutcome, flushSteps } from "./background/flush_job.ts";
export { mergedText } from "./background/merge.ts";
export type { MergeBounds } from "./background/merge_choice.ts";
export { type MergeJob, type MergeOutcome, mergeSteps } from "./background/merge_job.ts";
export type { SegmentWork } from "./background/segment_work.ts";
export { checkBackup } from "./check/check_backup.ts";
export { checkBlobs } from "./check/check_blobs.ts";
export { checkLog, type LogCheck } from "./check/check_log.ts";
export { checkSegments, isLost, requireSoundSegment } from "./check/check_segments.ts";
export { type CheckListener, damageFinding, type Finding, noteFinding } from "./check/findings.ts";
export { cutLog, endLog, type LogCut, plannedCut } from "./check/repair_log.ts";
export { dropSegments, quarantineSegments } from "./check/repair_segments.ts";
export { shownKey } from "./commit/conflicts.ts";
export type { BlobStore, StagedBlob } from "./contract/blob_store.ts";
export type { ListedLogFile } from "./contract/commit_log.ts";
export {
  errorFrom,
  type Job,
  type JobEnd,
  type JobKind,
  JobList,
  type NewJob,
  runJob,
} from "./contract/job_list.ts";
export type {
  Manifest,
  ManifestChange,
  ManifestState,
  SegmentEntry,
  SegmentHome,
  TableState,
} from "./contract/manifest.ts";
export {
  type ChangeBatch,
  type ChangedPartition,
  type ChangeScan,
  type ChangesOptions,
  type ColumnRange,
  type ColumnSpan,
  type Commit,
  type CompactResult,
  type FlushedStats,
  type FlushResult,
  type KeySpans,
  type ListedSegment,
  type LookupOptions,
  type OnVisible,
  type OrderedScan,
  type Scan,
  type ScanBatch,
  type ScanOptions,
  type SeqGap,
  SHARED_OWNER,
  type StagedCommit,
  type Store,
  type StoreCondition,
  type StoredColumn,
  type TableDefinition,
  type TableStats,
  type TableWrite,
  type WriteBatch,
} from "./contract/store.ts";
export type { StoreSnapshot } from "./contract/store_snapshot.ts";
export { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "./contract/system_columns.ts";
export {
  type DataDirectory,
  directoryFormat,
  holdsRows,
  inUse,
  openDataDirectory,
  refuseBackup,
  refuseForeignDirectory,
  requireFormat,
} from "./data_directory.ts";
export { requireAllowedPath } from "./directory/allowed_paths.ts";
export {
  type BackupFile,
  type BackupList,
  backupAround,
  backupListPath,
  listedFault,
  readBackupList,
  writeBackupList,
} from "./directory/backup_list.ts";
export {
  blobPath,
  copyPathsOf,
  type DataPaths,
  dataPathsOf,
  deletionVectorPath,
  segmentPath,
  walFileNumberFromName,
  walFilePath,
} from "./directory/file_names.ts";
export { LocalBlobStore } from "./directory/local_blob_store.ts";
export { moveToLostAndFound } from "./directory/lost_and_found.ts";
export { readSealedText, writeSealedText } from "./directory/sealed_text.ts";
export { type ListedStorage, storageFault, unavailable } from "./directory/storage_directory.ts";
export type { StorageProbe } from "./directory/storage_probe.ts";
export { LocalStore } from "./local_store.ts";
export type { LocalStoreOptions } from "./local_store_options.ts";
export { decodeWalHeader, WAL_HEADER_BYTES } from "./local_wal/format.ts";
export { rewriteNumberFile } from "./local_wal/high_water.ts";
export { findLogPoint, type LogPoint, shortenLog } from "./log_point.ts";
export { refuseNewerFiles } from "./newer_files.ts";
export { reservationAt } from "./snowflake_ids.ts";
export { Storages } from "./storages.ts";
export { refusalFor } from "./table/open_segment.ts";
