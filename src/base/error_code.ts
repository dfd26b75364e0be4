/**
 * Defines the complete set of codes for errors that a client or a disk can cause. The codes are
 * separate from the error classes, because the client library imports the protocol, which uses the
 * codes, and must not import anything from the server.
 *
 * An error code is the machine-readable name of a failure. An exhaustive table in
 * `protocol/error_codes.ts` maps each code to its form on the wire (code, reason, status).
 */

/** The code of every failure that can be reported to a caller. */
export type ErrorCode =
  // Codes for errors in the SQL itself.
  | "EMPTY_SQL"
  | "BATCH_PARSE_ERROR"
  | "INVALID_SQL"
  | "INVALID_INPUT"
  | "UNSUPPORTED_FEATURE"
  | "INVALID_PARAMETER"
  | "PARAMS_WITH_BATCH"
  // Codes for names and definitions.
  | "INVALID_NAME"
  | "RESERVED_NAME"
  | "INVALID_DEFINITION"
  | "INVALID_OPTION"
  | "INVALID_QUERY"
  | "AMBIGUOUS_COLUMN"
  | "NAMESPACE_NOT_FOUND"
  | "TABLE_NOT_FOUND"
  | "COLUMN_NOT_FOUND"
  | "FUNCTION_NOT_FOUND"
  | "USER_NOT_FOUND"
  | "OBJECT_NOT_FOUND"
  | "ALREADY_EXISTS"
  | "DEPENDENT_OBJECTS"
  // Codes for values.
  | "TYPE_MISMATCH"
  | "UNSUPPORTED_TYPE"
  | "INVALID_VALUE"
  | "VALUE_TOO_LONG"
  | "ROW_TOO_LARGE"
  | "VALUE_OUT_OF_RANGE"
  | "DIVISION_BY_ZERO"
  | "DIMENSION_MISMATCH"
  // Codes for constraints.
  | "NOT_NULL_VIOLATION"
  | "CHECK_VIOLATION"
  | "FOREIGN_KEY_VIOLATION"
  | "DUPLICATE_KEY"
  | "EXCLUSION_VIOLATION"
  | "CARDINALITY_VIOLATION"
  | "RAISE_EXCEPTION"
  // Codes for missing permissions and invalid operations.
  | "INVALID_OPERATION"
  | "READ_ONLY_OBJECT"
  | "SYSTEM_COLUMN"
  | "SHARED_IMPERSONATION"
  | "MANAGED_BY_CONFIG"
  | "WHERE_REQUIRED"
  | "PERMISSION_DENIED"
  | "WEAK_PASSWORD"
  // Codes for transactions and resource limits.
  | "TRANSACTION_OPEN"
  | "TRANSACTION_REQUIRED"
  | "INVALID_TRANSACTION_STATE"
  | "TRANSACTION_LIMIT"
  | "TRANSACTION_FAILED"
  | "TRANSACTION_NOT_FOUND"
  | "SERIALIZATION_FAILURE"
  | "LOCK_NOT_AVAILABLE"
  | "ALREADY_ACKNOWLEDGED"
  | "IDEMPOTENCY_CONFLICT"
  | "LIMIT_EXCEEDED"
  | "MEMORY_EXCEEDED"
  | "RESULT_TOO_LARGE"
  | "STATEMENT_TIMEOUT"
  | "CANCELLED"
  | "SHUTTING_DOWN"
  // Codes for files.
  | "MISSING_FILE"
  | "EXTRA_FILE"
  | "FILE_TOO_LARGE"
  | "TOO_MANY_FILES"
  | "INVALID_MIME_TYPE"
  | "FILE_NOT_FOUND"
  | "EXPORT_NOT_FOUND"
  // Codes for history.
  | "HISTORY_TOO_OLD"
  | "RESUME_EXPIRED"
  | "INVALID_RESUME"
  // Codes for failures of the machine on which the server runs.
  | "DISK_FULL"
  | "STORAGE_UNAVAILABLE"
  | "DATA_DAMAGED"
  | "COMMIT_UNKNOWN"
  | "INTERNAL_ERROR";
