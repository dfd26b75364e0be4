/** The SQL layer: parses SQL text, binds and plans the statements, and produces rows. */

export { activeBytesOf, newActivity } from "./activity/activity.ts";
export { MemoryGate } from "./admission/memory_gate.ts";
export { StorageQuota } from "./admission/storage_quota.ts";
export { WriteGates } from "./admission/write_gates.ts";
export { resumeIndexBuilds } from "./ddl/index_definitions.ts";
export {
  homeOf,
  type TableDefaults,
  tableDefinition,
  tableNamesOf,
} from "./ddl/table_definition.ts";
export { storedIndexesOf } from "./execute/build/stored_index.ts";
export { type ArchiveAccess, UserExports } from "./exports/user_exports.ts";
export {
  type FileAccess,
  type FilePath,
  LocalFileAccess,
  type OpenFile,
} from "./files/file_access.ts";
export { isFileLive, sweepDroppedTables, sweepFiles } from "./files/uploads.ts";
export { LocalSqlEngine } from "./local_engine.ts";
export { webhookGroup, webhooksIn } from "./names/topics.ts";
export { AUDIT_TABLE, AuditLog } from "./own_tables/audit_log.ts";
export { DEAD_LETTER_COLUMNS, DEAD_LETTERS_TABLE } from "./own_tables/dead_letters_table.ts";
export { OWN_TABLES, ownTables } from "./own_tables/own_tables.ts";
export { TOPIC_GROUP_COLUMN_IDS, TOPIC_GROUPS_TABLE } from "./own_tables/topic_groups_table.ts";
export { TOPIC_OFFSET_COLUMN_IDS, TOPIC_OFFSETS_TABLE } from "./own_tables/topic_offsets_table.ts";
export type {
  AnswerPart,
  AnswerReader,
  AnswerStream,
  CompiledExpression,
  CopyBody,
  CopyTransfer,
  FollowedPlan,
  FoundRows,
  JoinChangeSource,
  JoinChanges,
  LiveEquality,
  LivePace,
  LivePlan,
  LiveRequest,
  ResultChanges,
  ResultEvaluation,
  ResultFormat,
  ResultMaintainer,
  ResultPlan,
  ResultRows,
  ResultSort,
  ResultTable,
  RowSearch,
  SearchRange,
  ServerAddress,
  SqlEngine,
  SqlParameter,
  SqlRequest,
  SqlResponse,
  StatementResult,
  TransactionEnd,
  TransactionInfo,
  TransactionRequest,
  UploadedFile,
} from "./ports/engine.ts";
export type { SqlEnvironment, SqlLimits } from "./ports/environment.ts";
export type {
  BackupAccess,
  BegunJob,
  ConnectionAccess,
  ConnectionRow,
  ExportAccess,
  LiveAccess,
  LiveMatch,
  LiveRow,
  MemoryPart,
  MetricSample,
  PreparedTopicAck,
  ResultMatch,
  TopicAccess,
  TopicAckRequest,
  TopicConsumeRequest,
  TopicConsumerRow,
  TopicMessage,
  TopicMessages,
  TopicOffsetRow,
  TopicStart,
  TopicState,
  WebhookAccess,
  WebhookState,
} from "./ports/ports.ts";
export { inProcessReader } from "./readers/in_process_reader.ts";
export type { AnswerMessage, ReaderMemory, ToReader } from "./readers/job.ts";
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
export { textOfArrayCell } from "./result/array_cell.ts";
export { csvField, csvRows, jsonRows, ndjsonRows } from "./result/row_text.ts";
export { SpillSpace } from "./spill/mod.ts";
export { beginDueErasures } from "./utility/erasure.ts";
export { type ExpiryDeps, ExpirySweep } from "./utility/expiry.ts";
