/**
 * Maps each error code to its form on the wire. The table is exhaustive, so that no error code can
 * be added without choosing its wire code, status and SQLSTATE.
 *
 * Over HTTP, an error consists of the code and, for SQL_EXECUTION_ERROR, a more specific reason.
 * Subscriptions have their own closed set of codes. The code for an error depends on where the
 * error occurs, so `live` contains that mapping.
 */
import type { ErrorCode } from "../base/error_code.ts";

/** The possible values of `error.code` on the SQL and file endpoints. */
export type WireCode =
  | "INVALID_INPUT"
  | "EMPTY_SQL"
  | "BATCH_PARSE_ERROR"
  | "INVALID_SQL"
  | "INVALID_PARAMETER"
  | "PARAMS_WITH_BATCH"
  | "TABLE_NOT_FOUND"
  | "NAMESPACE_NOT_FOUND"
  | "SQL_EXECUTION_ERROR"
  | "RESULT_TOO_LARGE"
  | "QUERY_TIMEOUT"
  | "SHUTTING_DOWN"
  | "IDEMPOTENCY_CONFLICT"
  | "TRANSACTION_NOT_FOUND"
  | "MISSING_FILE"
  | "EXTRA_FILE"
  | "FILE_TOO_LARGE"
  | "TOO_MANY_FILES"
  | "INVALID_MIME_TYPE"
  | "FILE_NOT_FOUND"
  | "EXPORT_NOT_FOUND"
  | "PERMISSION_DENIED"
  | "RESUME_EXPIRED"
  | "INVALID_RESUME"
  | "INTERNAL_ERROR"
  | "DATA_DAMAGED"
  | "COMMIT_UNKNOWN"
  | "STORAGE_FULL";

/** The possible values of `code` on the topic endpoints and in `topic_error`. */
export type TopicCode =
  | "INVALID_INPUT"
  | "INVALID_OFFSET"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "KILLED"
  | "SHUTTING_DOWN"
  | "STORAGE_FULL"
  | "DATA_DAMAGED"
  | "COMMIT_UNKNOWN"
  | "INTERNAL_ERROR";

interface WireError {
  readonly code: WireCode;
  /** The specific reason for an error; set only for SQL_EXECUTION_ERROR. */
  readonly reason?: string;
  /** The HTTP status of the response. */
  readonly status: number;
  /** The SQLSTATE, for clients that rely on the SQL standard; not part of the JSON body. */
  readonly sqlstate?: string;
}

/** Codes for errors after which no subscription with the given id exists. */
export type EndCode =
  | "SUBSCRIPTION_LIMIT_EXCEEDED"
  | "INVALID_OPTIONS"
  | "INVALID_SQL"
  | "UNSUPPORTED"
  | "INVALID_PARAMETER"
  | "NOT_FOUND"
  | "UNAUTHORIZED"
  | "INVALID_RESUME"
  | "RESUME_EXPIRED"
  | "SCHEMA_CHANGED"
  | "KILLED"
  | "SUBSCRIPTION_FAILED"
  | "CONVERSION_ERROR"
  | "TOKEN_EXPIRED"
  | "TOKEN_REVOKED"
  | "SHUTTING_DOWN";

/** Codes for errors that do not affect any subscription. */
type PassingCode =
  | "AUTH_REQUIRED"
  | "INVALID_SUBSCRIPTION_ID"
  | "BATCH_FETCH_FAILED"
  | "AMBIGUOUS_SUBSCRIPTION"
  | "INVALID_MESSAGE"
  | "UNSUPPORTED_DATA"
  | "MESSAGE_TOO_LARGE"
  | "RATE_LIMIT_EXCEEDED";

/** Codes in `error` messages on the WebSocket. */
export type SubscriptionCode = EndCode | PassingCode;

const PASSING: Record<PassingCode, true> = {
  AUTH_REQUIRED: true,
  INVALID_SUBSCRIPTION_ID: true,
  BATCH_FETCH_FAILED: true,
  AMBIGUOUS_SUBSCRIPTION: true,
  INVALID_MESSAGE: true,
  UNSUPPORTED_DATA: true,
  MESSAGE_TOO_LARGE: true,
  RATE_LIMIT_EXCEEDED: true,
};

function plain(code: WireCode, sqlstate: string, status = 400): WireError {
  return { code, status, sqlstate };
}

function execution(reason: string, sqlstate: string): WireError {
  return { code: "SQL_EXECUTION_ERROR", reason, status: 400, sqlstate };
}

const WIRE_ERRORS: Record<ErrorCode, WireError> = {
  EMPTY_SQL: plain("EMPTY_SQL", "42601"),
  BATCH_PARSE_ERROR: plain("BATCH_PARSE_ERROR", "42601"),
  INVALID_SQL: plain("INVALID_SQL", "42601"),
  INVALID_INPUT: plain("INVALID_INPUT", "42601"),
  UNSUPPORTED_FEATURE: execution("not_implemented", "0A000"),
  INVALID_PARAMETER: plain("INVALID_PARAMETER", "22023"),
  PARAMS_WITH_BATCH: plain("PARAMS_WITH_BATCH", "22023"),

  INVALID_NAME: execution("invalid_name", "42602"),
  RESERVED_NAME: execution("reserved_name", "42939"),
  INVALID_DEFINITION: execution("invalid_definition", "42P16"),
  INVALID_OPTION: execution("invalid_option", "22023"),
  INVALID_QUERY: plain("INVALID_SQL", "42803"),
  AMBIGUOUS_COLUMN: plain("INVALID_SQL", "42702"),
  NAMESPACE_NOT_FOUND: plain("NAMESPACE_NOT_FOUND", "3F000"),
  TABLE_NOT_FOUND: plain("TABLE_NOT_FOUND", "42P01"),
  COLUMN_NOT_FOUND: plain("INVALID_SQL", "42703"),
  FUNCTION_NOT_FOUND: plain("INVALID_SQL", "42883"),
  USER_NOT_FOUND: execution("user_not_found", "42704"),
  OBJECT_NOT_FOUND: execution("object_not_found", "42704"),
  ALREADY_EXISTS: execution("already_exists", "42P07"),
  DEPENDENT_OBJECTS: execution("dependent_objects", "2BP01"),

  TYPE_MISMATCH: execution("type", "42804"),
  UNSUPPORTED_TYPE: execution("type", "42704"),
  INVALID_VALUE: execution("type", "22P02"),
  VALUE_TOO_LONG: execution("type", "22001"),
  ROW_TOO_LARGE: execution("row_too_large", "22001"),
  VALUE_OUT_OF_RANGE: execution("numeric_range", "22003"),
  DIVISION_BY_ZERO: execution("division_by_zero", "22012"),
  DIMENSION_MISMATCH: execution("type", "22000"),

  NOT_NULL_VIOLATION: execution("not_null", "23502"),
  CHECK_VIOLATION: execution("check", "23514"),
  FOREIGN_KEY_VIOLATION: execution("foreign_key", "23503"),
  DUPLICATE_KEY: execution("duplicate_key", "23505"),
  EXCLUSION_VIOLATION: execution("exclusion", "23P01"),
  CARDINALITY_VIOLATION: execution("other", "21000"),
  RAISE_EXCEPTION: execution("raised", "P0001"),

  INVALID_OPERATION: execution("invalid_operation", "42809"),
  READ_ONLY_OBJECT: execution("read_only", "42809"),
  SYSTEM_COLUMN: execution("system_column", "42809"),
  SHARED_IMPERSONATION: execution("shared_impersonation", "42809"),
  MANAGED_BY_CONFIG: execution("managed_by_config", "55000"),
  WHERE_REQUIRED: execution("invalid_operation", "55000"),
  PERMISSION_DENIED: plain("PERMISSION_DENIED", "42501", 403),
  WEAK_PASSWORD: execution("weak_password", "22023"),

  TRANSACTION_OPEN: execution("transaction_open", "25000"),
  TRANSACTION_REQUIRED: execution("transaction_required", "25000"),
  INVALID_TRANSACTION_STATE: execution("invalid_transaction_state", "25000"),
  TRANSACTION_LIMIT: execution("transaction_limit", "54000"),
  TRANSACTION_FAILED: execution("transaction_failed", "25P02"),
  TRANSACTION_NOT_FOUND: plain("TRANSACTION_NOT_FOUND", "25P01", 404),
  SERIALIZATION_FAILURE: execution("conflict", "40001"),
  LOCK_NOT_AVAILABLE: execution("lock_not_available", "55P03"),
  ALREADY_ACKNOWLEDGED: execution("already_acknowledged", "23505"),
  IDEMPOTENCY_CONFLICT: plain("IDEMPOTENCY_CONFLICT", "22023", 409),
  LIMIT_EXCEEDED: execution("other", "54000"),
  MEMORY_EXCEEDED: execution("memory", "54000"),
  RESULT_TOO_LARGE: plain("RESULT_TOO_LARGE", "54000"),
  STATEMENT_TIMEOUT: plain("QUERY_TIMEOUT", "57014"),
  CANCELLED: execution("cancelled", "57014"),
  SHUTTING_DOWN: plain("SHUTTING_DOWN", "57P01", 503),

  MISSING_FILE: plain("MISSING_FILE", "22023"),
  EXTRA_FILE: plain("EXTRA_FILE", "22023"),
  FILE_TOO_LARGE: plain("FILE_TOO_LARGE", "54000"),
  TOO_MANY_FILES: plain("TOO_MANY_FILES", "54000"),
  INVALID_MIME_TYPE: plain("INVALID_MIME_TYPE", "22023"),
  FILE_NOT_FOUND: plain("FILE_NOT_FOUND", "42704", 404),
  EXPORT_NOT_FOUND: plain("EXPORT_NOT_FOUND", "42704", 404),

  HISTORY_TOO_OLD: execution("history_too_old", "72000"),
  RESUME_EXPIRED: plain("RESUME_EXPIRED", "72000", 410),
  INVALID_RESUME: plain("INVALID_RESUME", "22023"),

  DISK_FULL: plain("STORAGE_FULL", "53100", 507),
  STORAGE_UNAVAILABLE: execution("other", "58030"),
  DATA_DAMAGED: plain("DATA_DAMAGED", "XX001", 500),
  COMMIT_UNKNOWN: plain("COMMIT_UNKNOWN", "08007", 500),
  INTERNAL_ERROR: plain("INTERNAL_ERROR", "XX000", 500),
};

/** Returns the wire code, reason and status for an error code on the HTTP endpoints. */
export function wireErrorOf(code: ErrorCode): WireError {
  return WIRE_ERRORS[code];
}

/** Returns the code and status for an error code on the topic endpoints and in `topic_error`. */
export function topicErrorOf(code: ErrorCode): { code: TopicCode; status: number } {
  switch (code) {
    case "INVALID_INPUT":
    case "INVALID_PARAMETER":
      return { code: "INVALID_INPUT", status: 400 };
    case "VALUE_OUT_OF_RANGE":
    case "LIMIT_EXCEEDED":
      return { code: "INVALID_OFFSET", status: 400 };
    case "PERMISSION_DENIED":
      return { code: "FORBIDDEN", status: 403 };
    case "NAMESPACE_NOT_FOUND":
    case "OBJECT_NOT_FOUND":
      return { code: "NOT_FOUND", status: 404 };
    case "CANCELLED":
      return { code: "KILLED", status: 409 };
    case "SHUTTING_DOWN":
    case "DATA_DAMAGED":
    case "COMMIT_UNKNOWN":
      return { code, status: wireErrorOf(code).status };
    case "DISK_FULL":
      return { code: "STORAGE_FULL", status: wireErrorOf(code).status };
    default:
      return { code: "INTERNAL_ERROR", status: 500 };
  }
}

/**
 * Returns whether an error with this code ends its subscription, as reported in the `ended` field.
 */
export function endsSubscription(code: SubscriptionCode): boolean {
  return !Object.hasOwn(PASSING, code);
}
