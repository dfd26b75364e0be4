/**
 * Row versions on disk in `_seq` order.
 */
export type { BlobPath, BlobStore, StagedBlob } from "./blob_store.ts";
export { type DataDirectory, openDataDirectory } from "./data_directory.ts";
export { LocalBlobStore } from "./local_blob_store.ts";
export { LocalStore, type LocalStoreOptions, type LocalStoreParts } from "./local_store.ts";
export type {
  Manifest,
  ManifestChange,
  ManifestState,
  SegmentEntry,
  TableState,
} from "./manifest.ts";
export {
  type ChangeBatch,
  type ChangedPartition,
  type ChangeScan,
  type ChangesOptions,
  type ColumnRange,
  type Commit,
  DELETED_COLUMN_ID,
  type FlushPolicy,
  type FlushResult,
  type LookupOptions,
  type OnVisible,
  type Scan,
  type ScanBatch,
  type ScanOptions,
  SEQ_COLUMN_ID,
  type SegmentInfo,
  SHARED_OWNER,
  type Store,
  type StoredColumn,
  type TableDefinition,
  type TableStats,
  type TableWrite,
  type WriteBatch,
} from "./store.ts";
