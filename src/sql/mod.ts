/**
 * Text → statement → bound → plan → rows.
 */
export { newActivity } from "./activity.ts";
export { AUDIT_TABLE, AuditLog } from "./audit_log.ts";
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
export { beginDueErasures } from "./erasure.ts";
export {
  type FileAccess,
  type FilePath,
  LocalFileAccess,
  type OpenFile,
} from "./file_access.ts";
export { isFileLive, sweepDroppedTables, sweepFiles } from "./files.ts";
export { LocalSqlEngine } from "./local_engine.ts";
export { OWN_TABLES, ownTables } from "./own_tables.ts";
export { SpillSpace } from "./spill/mod.ts";
export { tableDefinition, tableNamesOf } from "./table_definition.ts";
export { WriteGates } from "./write_gates.ts";
