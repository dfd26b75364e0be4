/**
 * Text → statement → bound → plan → rows.
 */

export { AUDIT_TABLE, AuditLog } from "./administer/audit_log.ts";
export { beginDueErasures } from "./administer/erasure.ts";
export { tableDefinition, tableNamesOf } from "./define/table_definition.ts";
export type {
  AnswerPart,
  AnswerReader,
  AnswerStream,
  CompiledExpression,
  LivePlan,
  LiveRequest,
  Parameter,
  RowPace,
  ServerAddress,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
  UploadedFile,
} from "./engine.ts";
export type {
  BackupAccess,
  BegunJob,
  ConnectionAccess,
  ConnectionRow,
  LiveAccess,
  LiveMatch,
  LiveRow,
  MetricSample,
  SettingRow,
  SqlEnvironment,
  SqlLimits,
} from "./environment.ts";
export {
  type FileAccess,
  type FilePath,
  LocalFileAccess,
  type OpenFile,
} from "./file_access.ts";
export { isFileLive, sweepDroppedTables, sweepFiles } from "./files.ts";
export { LocalSqlEngine } from "./local_engine.ts";
export { OWN_TABLES, ownTables } from "./own_tables.ts";
export { newActivity } from "./request/activity.ts";
export { WriteGates } from "./request/write_gates.ts";
export { SpillSpace } from "./spill/mod.ts";
