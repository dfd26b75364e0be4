/**
 * Text → statement → bound → plan → rows.
 */
export type {
  CompiledExpression,
  LivePlan,
  LiveRequest,
  Parameter,
  SqlEngine,
  SqlRequest,
  SqlResponse,
  StatementResult,
  UploadedFile,
} from "./engine.ts";
