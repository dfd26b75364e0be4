/**
 * The main entry point of storage, which keeps row versions on disk in `_seq` order. Code that
 * works on files rather than rows goes through `files.ts`.
 */

export { flushedText } from "./background/flush.ts";
export { type FlushJob, type FlushOutcome, flushSteps } from "./background/flush_job.ts";
export { type IndexJob, indexSteps } from "./background/index_job.ts";
export { mergedText } from "./background/merge.ts";
export type { MergeBounds } from "./background/merge_choice.ts";
export { type MergeJob, type MergeOutcome, mergeSteps } from "./background/merge_job.ts";
export type { SegmentWork } from "./background/segment_work.ts";
export { shownKey } from "./commit/conflicts.ts";
export type { BlobStore, StagedBlob } from "./contract/blob_store.ts";
export type {
  AllChangesOptions,
  ChangeBatch,
  ChangeScan,
  ChangesOptions,
  OwnedChangeBatch,
  OwnedChangeScan,
  VersionRows,
} from "./contract/changes.ts";
export type { ListedLogFile } from "./contract/commit_log.ts";
export type {
  ChosenScanOptions,
  IndexBound,
  IndexLookupOptions,
  IndexReads,
  IndexScanOptions,
  IndexSpan,
  IndexState,
  RowChoice,
  StoredExpression,
  StoredIndex,
} from "./contract/index_reads.ts";
export {
  beganAtMs,
  errorFrom,
  type Job,
  type JobEnd,
  type JobKind,
  JobList,
  type JobStatus,
  type NewJob,
  runJob,
} from "./contract/job_list.ts";
export {
  canComputeKeys,
  computedKey,
  type IndexColumn,
  type KeyComputation,
  type KeyExpression,
  setKeyCompiler,
} from "./contract/key_expressions.ts";
export type {
  Manifest,
  ManifestChange,
  ManifestState,
  SegmentEntry,
  SegmentHome,
  TableState,
} from "./contract/manifest.ts";
export type {
  ColumnRange,
  ColumnSpan,
  CountedScan,
  KeySpans,
  LookupOptions,
  OrderedScan,
  Scan,
  ScanBatch,
  ScanOptions,
  ScanShare,
} from "./contract/scans.ts";
export type { DroppedShares, SharedTable, TableShares } from "./contract/shared_tables.ts";
export type {
  ChangedPartition,
  HistoryStore,
  OnVisible,
  ReadStore,
  SeqGap,
  SharingStore,
  Store,
  TableSharing,
  WriteStore,
} from "./contract/store.ts";
export type {
  CompactResult,
  FlushedStats,
  FlushResult,
  HeldHistory,
  ListedSegment,
  StoreCondition,
  StoreMemory,
  TableStats,
} from "./contract/store_figures.ts";
export type { StoreSnapshot } from "./contract/store_snapshot.ts";
export { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "./contract/system_columns.ts";
export {
  SHARED_OWNER,
  type StoredColumn,
  type TableDefinition,
} from "./contract/table_definition.ts";
export { queryOfPart, TERM_SEPARATOR, type TermQuery } from "./contract/terms.ts";
export type {
  Commit,
  PublishedDefinitions,
  StagedCommit,
  TableWrite,
  WriteBatch,
} from "./contract/writes.ts";
export { type DataDirectory, openDataDirectory } from "./data_directory.ts";
export { requireAllowedPath } from "./directory/allowed_paths.ts";
export { LocalBlobStore } from "./directory/local_blob_store.ts";
export { type ListedStorage, unavailable } from "./directory/storage_directory.ts";
export { LocalStore } from "./local_store.ts";
export type { LocalStoreOptions } from "./local_store_options.ts";
export { ReplicaStore } from "./replica/replica_store.ts";
export { Storages } from "./storages.ts";
export { refusalFor } from "./table/open_segment.ts";
export { indexColumnsOf } from "./table/table_index.ts";
