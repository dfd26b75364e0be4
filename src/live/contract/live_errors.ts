/**
 * Maps a failure to the code of the `error` message that refuses or ends a subscription.
 *
 * The table covers every error code, so a new error code does not compile until a decision about
 * it is made here.
 */
import { CorruptionError, DatabaseError, type ErrorCode, withoutPaths } from "../../base/errors.ts";
import type { EndCode, ErrorMessage } from "../../protocol/mod.ts";
import { SubscriptionError } from "./live.ts";

type Stage = "planning" | "reading";

/**
 * Maps each error code that planning a query may raise to the code that the subscription reports.
 */
const PLANNING_CODES: Record<ErrorCode, EndCode> = {
  EMPTY_SQL: "INVALID_SQL",
  BATCH_PARSE_ERROR: "INVALID_SQL",
  INVALID_SQL: "INVALID_SQL",
  INVALID_INPUT: "INVALID_SQL",
  UNSUPPORTED_FEATURE: "UNSUPPORTED",
  INVALID_PARAMETER: "INVALID_PARAMETER",
  PARAMS_WITH_BATCH: "INVALID_PARAMETER",
  INVALID_NAME: "INVALID_SQL",
  RESERVED_NAME: "INVALID_SQL",
  INVALID_DEFINITION: "INVALID_SQL",
  INVALID_OPTION: "INVALID_SQL",
  INVALID_QUERY: "INVALID_SQL",
  AMBIGUOUS_COLUMN: "INVALID_SQL",
  NAMESPACE_NOT_FOUND: "NOT_FOUND",
  TABLE_NOT_FOUND: "NOT_FOUND",
  COLUMN_NOT_FOUND: "INVALID_SQL",
  FUNCTION_NOT_FOUND: "INVALID_SQL",
  USER_NOT_FOUND: "INVALID_SQL",
  OBJECT_NOT_FOUND: "NOT_FOUND",
  ALREADY_EXISTS: "INVALID_SQL",
  DEPENDENT_OBJECTS: "INVALID_SQL",
  TYPE_MISMATCH: "INVALID_SQL",
  UNSUPPORTED_TYPE: "INVALID_SQL",
  INVALID_VALUE: "INVALID_SQL",
  VALUE_TOO_LONG: "INVALID_SQL",
  ROW_TOO_LARGE: "INVALID_SQL",
  VALUE_OUT_OF_RANGE: "INVALID_SQL",
  DIVISION_BY_ZERO: "INVALID_SQL",
  DIMENSION_MISMATCH: "INVALID_SQL",
  NOT_NULL_VIOLATION: "INVALID_SQL",
  CHECK_VIOLATION: "INVALID_SQL",
  FOREIGN_KEY_VIOLATION: "INVALID_SQL",
  DUPLICATE_KEY: "INVALID_SQL",
  EXCLUSION_VIOLATION: "INVALID_SQL",
  CARDINALITY_VIOLATION: "INVALID_SQL",
  RAISE_EXCEPTION: "INVALID_SQL",
  INVALID_OPERATION: "INVALID_SQL",
  READ_ONLY_OBJECT: "INVALID_SQL",
  SYSTEM_COLUMN: "INVALID_SQL",
  SHARED_IMPERSONATION: "UNAUTHORIZED",
  MANAGED_BY_CONFIG: "INVALID_SQL",
  WHERE_REQUIRED: "INVALID_SQL",
  PERMISSION_DENIED: "UNAUTHORIZED",
  WEAK_PASSWORD: "INVALID_SQL",
  TRANSACTION_OPEN: "INVALID_SQL",
  TRANSACTION_REQUIRED: "INVALID_SQL",
  INVALID_TRANSACTION_STATE: "INVALID_SQL",
  TRANSACTION_LIMIT: "INVALID_SQL",
  TRANSACTION_FAILED: "INVALID_SQL",
  TRANSACTION_NOT_FOUND: "INVALID_SQL",
  SERIALIZATION_FAILURE: "SUBSCRIPTION_FAILED",
  LOCK_NOT_AVAILABLE: "SUBSCRIPTION_FAILED",
  ALREADY_ACKNOWLEDGED: "SUBSCRIPTION_FAILED",
  IDEMPOTENCY_CONFLICT: "SUBSCRIPTION_FAILED",
  LIMIT_EXCEEDED: "INVALID_SQL",
  MEMORY_EXCEEDED: "SUBSCRIPTION_FAILED",
  RESULT_TOO_LARGE: "SUBSCRIPTION_FAILED",
  STATEMENT_TIMEOUT: "SUBSCRIPTION_FAILED",
  SHUTTING_DOWN: "SHUTTING_DOWN",
  CANCELLED: "SUBSCRIPTION_FAILED",
  MISSING_FILE: "INVALID_SQL",
  EXTRA_FILE: "INVALID_SQL",
  FILE_TOO_LARGE: "INVALID_SQL",
  TOO_MANY_FILES: "INVALID_SQL",
  INVALID_MIME_TYPE: "INVALID_SQL",
  FILE_NOT_FOUND: "INVALID_SQL",
  EXPORT_NOT_FOUND: "INVALID_SQL",
  HISTORY_TOO_OLD: "RESUME_EXPIRED",
  RESUME_EXPIRED: "RESUME_EXPIRED",
  INVALID_RESUME: "INVALID_RESUME",
  DISK_FULL: "SUBSCRIPTION_FAILED",
  STORAGE_UNAVAILABLE: "SUBSCRIPTION_FAILED",
  DATA_DAMAGED: "SUBSCRIPTION_FAILED",
  COMMIT_UNKNOWN: "SUBSCRIPTION_FAILED",
  INTERNAL_ERROR: "SUBSCRIPTION_FAILED",
};

/**
 * Returns the code that a subscription reports for an error that occurred while rows were being
 * read. An error raised by an expression on a row is reported as a conversion error.
 */
function readingCode(errorCode: ErrorCode): EndCode {
  if (errorCode === "TABLE_NOT_FOUND" || errorCode === "NAMESPACE_NOT_FOUND") return "NOT_FOUND";
  const code = PLANNING_CODES[errorCode];
  return code === "INVALID_SQL" || code === "UNSUPPORTED" ? "CONVERSION_ERROR" : code;
}

/** Builds the message that ends a subscription. */
export function ending(
  subscriptionId: string,
  code: EndCode,
  message: string,
): ErrorMessage & { ended: true } {
  return { type: "error", subscription_id: subscriptionId, code, message, ended: true };
}

/**
 * Maps a failure to the message that ends the subscription. An unknown failure also ends only the
 * subscription, so that one subscriber's row cannot bring down the server for everybody else. The
 * caller logs the failure.
 */
export function endingFor(subscriptionId: string, error: unknown, stage: Stage): ErrorMessage {
  if (error instanceof SubscriptionError) return error.response;
  if (error instanceof CorruptionError) {
    return ending(
      subscriptionId,
      "SUBSCRIPTION_FAILED",
      "The subscription has ended: stored data of the table is damaged",
    );
  }
  if (!(error instanceof DatabaseError)) {
    return ending(
      subscriptionId,
      "SUBSCRIPTION_FAILED",
      "The subscription has ended because of an internal error",
    );
  }
  const { code: errorCode, message, position, hint, earliestSeq } = withoutPaths(error);
  const code = stage === "planning" ? PLANNING_CODES[errorCode] : readingCode(errorCode);
  return {
    ...ending(subscriptionId, code, message),
    ...(position === undefined ? {} : { position }),
    ...(hint === undefined ? {} : { hint }),
    ...(earliestSeq === undefined ? {} : { earliest_seq: earliestSeq }),
  };
}

/** Returns the error for a resume position that the retained history no longer covers. */
export function resumeExpired(earliestSeq: number): DatabaseError {
  return new DatabaseError(
    "RESUME_EXPIRED",
    `The changes up to _seq ${earliestSeq} are no longer kept; subscribe without from_seq_id ` +
      "to load the current rows",
    { earliestSeq },
  );
}

/**
 * Returns the error for a resume position at which the client had different rights. Replaying
 * the changes since then would not produce the rows that the client may see now.
 */
export function resumedWithOtherRights(what: string, earliestSeq?: number): DatabaseError {
  return new DatabaseError(
    "RESUME_EXPIRED",
    `${what}, so different rows may be visible now; subscribe without from_seq_id to load them`,
    earliestSeq === undefined ? {} : { earliestSeq },
  );
}

/**
 * Returns the code for a query that is no longer valid because one of its tables or views has
 * changed. The subscriber has already seen the table, so the error reports a missing right instead
 * of claiming that the table does not exist.
 */
export function codeAfterRefusal({ isHidden, response: { code } }: SubscriptionError): EndCode {
  if (isHidden) return "UNAUTHORIZED";
  if (code === "NOT_FOUND" || code === "UNAUTHORIZED") return code;
  return code === "SUBSCRIPTION_FAILED" ? code : "SCHEMA_CHANGED";
}
