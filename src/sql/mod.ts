/**
 * Text → statement → bound → plan → rows.
 */

export { beginDueErasures } from "./administer/erasure.ts";
export { newActivity } from "./common/activity.ts";
export { AUDIT_TABLE, AuditLog } from "./common/audit_log.ts";
export { csvField } from "./common/csv_cells.ts";
export type {
  AnswerPart,
  AnswerReader,
  AnswerStream,
  CompiledExpression,
  FoundRows,
  LiveEquality,
  LivePace,
  LivePlan,
  LiveRequest,
  Parameter,
  RowSearch,
  SearchRange,
  ServerAddress,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
  UploadedFile,
} from "./common/engine.ts";
export type { SqlEnvironment, SqlLimits } from "./common/environment.ts";
export type {
  BackupAccess,
  BegunJob,
  ConnectionAccess,
  ConnectionRow,
  LiveAccess,
  LiveMatch,
  LiveRow,
  MetricSample,
} from "./common/layers_above.ts";
export { OWN_TABLES, ownTables } from "./common/own_tables.ts";
export { csvRows, jsonRows, ndjsonRows, type ResultFormat } from "./common/row_text.ts";
export { StorageQuota } from "./common/storage_quota.ts";
export { WriteGates } from "./common/write_gates.ts";
export {
  homeOf,
  type TableDefaults,
  tableDefinition,
  tableNamesOf,
} from "./define/table_definition.ts";
export {
  type FileAccess,
  type FilePath,
  LocalFileAccess,
  type OpenFile,
} from "./files/file_access.ts";
export { isFileLive, sweepDroppedTables, sweepFiles } from "./files/uploads.ts";
export { LocalSqlEngine } from "./local_engine.ts";
export { inProcessReader } from "./readers/in_process_reader.ts";
export type { AnswerMessage, ToReader } from "./readers/job.ts";
export {
  QueryReader,
  type ReaderSettings,
  sleepInThread,
  waitForAnswer,
  waitInThread,
} from "./readers/query_reader.ts";
export {
  type Dividing,
  QueryReaders,
  type ReaderCounts,
} from "./readers/query_readers.ts";
export type { OpenReader } from "./readers/reader_pool.ts";
export { SpillSpace } from "./spill/mod.ts";
