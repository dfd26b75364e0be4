/**
 * Explains what each error means and what to do about it, for `docs/reference/errors.md`. The
 * tables of conditions and of subscription codes are exhaustive, so a new error code does not
 * compile without a note.
 */
import type { ErrorCode } from "../../src/base/error_code.ts";
import type { SubscriptionCode, TopicCode } from "../../src/protocol/mod.ts";

export const CONDITION_NOTES: Readonly<Record<ErrorCode, string>> = {
  EMPTY_SQL: "The SQL contains no statement.",
  BATCH_PARSE_ERROR:
    "The SQL contains several statements, and one of them cannot be parsed; none has run.",
  INVALID_SQL: "The statement cannot be parsed; `position` points to the error.",
  INVALID_INPUT: "The request, or an EXECUTE AS in it, does not have the required form.",
  UNSUPPORTED_FEATURE: "The server recognises the construct but does not support it; see `hint`.",
  INVALID_PARAMETER: "A parameter is missing, superfluous, too large or not a valid value.",
  PARAMS_WITH_BATCH:
    "Parameters were sent with several statements that do not form a single transaction.",
  INVALID_NAME: "A name is too long, or contains characters that are not allowed in names.",
  RESERVED_NAME: "The name is reserved for the system.",
  INVALID_DEFINITION: "The definition contradicts itself or existing rows.",
  INVALID_OPTION: "An option is unknown, out of range, or not available for this kind of table.",
  INVALID_QUERY: "The query breaks a rule for grouping, aggregates or windows.",
  AMBIGUOUS_COLUMN: "Several tables have a column with this name; write `table.column`.",
  NAMESPACE_NOT_FOUND: "The namespace does not exist.",
  TABLE_NOT_FOUND: "The table does not exist, or the caller may not read it.",
  COLUMN_NOT_FOUND: "No table in the query has this column.",
  FUNCTION_NOT_FOUND: "No function with this name accepts arguments of these types.",
  USER_NOT_FOUND: "The user does not exist.",
  OBJECT_NOT_FOUND: "The storage, job, query, subscription or connection does not exist.",
  ALREADY_EXISTS: "An object with this name already exists; to accept that, write IF NOT EXISTS.",
  DEPENDENT_OBJECTS: "Other objects depend on this one; drop them first, or write CASCADE.",
  TYPE_MISMATCH: "An expression has the wrong type; add a cast.",
  UNSUPPORTED_TYPE: "No type has this name.",
  INVALID_VALUE: "A string cannot be read as a value of the type.",
  VALUE_TOO_LONG: "A string is longer than its VARCHAR(n) allows.",
  ROW_TOO_LARGE: "A row has more bytes than `limits.max_row_bytes`.",
  VALUE_OUT_OF_RANGE: "A number or time is outside the range of its type.",
  DIVISION_BY_ZERO: "A number was divided by zero.",
  DIMENSION_MISMATCH: "Two embeddings have different numbers of dimensions.",
  NOT_NULL_VIOLATION: "A NOT NULL column would become NULL.",
  CHECK_VIOLATION: "A row violates a CHECK constraint.",
  FOREIGN_KEY_VIOLATION:
    "A row references a row that does not exist, or a row that other rows reference would be " +
    "deleted.",
  DUPLICATE_KEY: "A row with this primary key already exists; see ON CONFLICT.",
  EXCLUSION_VIOLATION: "A row overlaps another row, which an EXCLUDE constraint forbids.",
  RAISE_EXCEPTION:
    "A function raised the error with RAISE or ASSERT, which also determine its message.",
  CARDINALITY_VIOLATION:
    "A subquery used as a value returned several rows, or a statement would change a row twice.",
  INVALID_OPERATION: "The object does not support this operation.",
  READ_ONLY_OBJECT: "System views, some views, and table functions cannot be written to.",
  SYSTEM_COLUMN: "The system maintains the column, so statements cannot set it.",
  SHARED_IMPERSONATION: "EXECUTE AS cannot write to SHARED tables.",
  MANAGED_BY_CONFIG: "The server's configuration determines this setting.",
  WHERE_REQUIRED: "`limits.require_where` is on: add WHERE, or for all rows, WHERE true.",
  PERMISSION_DENIED: "The caller's role does not allow this.",
  WEAK_PASSWORD: "The password violates a rule in the section `auth`.",
  TRANSACTION_OPEN: "The statement cannot run inside a transaction.",
  TRANSACTION_REQUIRED: "COMMIT or ROLLBACK without BEGIN.",
  INVALID_TRANSACTION_STATE: "The transaction is read-only, or has already ended.",
  TRANSACTION_LIMIT: "The transaction writes more than `limits.transaction_max_bytes`.",
  TRANSACTION_FAILED:
    "A statement in the transaction failed. Only ROLLBACK, or ROLLBACK TO a savepoint, is possible.",
  TRANSACTION_NOT_FOUND:
    "No open transaction of this session has this id. If it has ended, the message says how.",
  SERIALIZATION_FAILURE:
    "A concurrent transaction changed the same rows first. Send the whole transaction again.",
  LOCK_NOT_AVAILABLE:
    "Another transaction holds the lock, and the statement does not wait for it, or its " +
    "lock_timeout has passed.",
  ALREADY_ACKNOWLEDGED:
    "The transaction acknowledges messages that have already been acknowledged together with " +
    "their effects. Nothing was written; continue with the next message.",
  IDEMPOTENCY_CONFLICT:
    "The key has been used for a different request, or its request is still running.",
  LIMIT_EXCEEDED: "The statement or its user exceeds a limit, which the message names.",
  MEMORY_EXCEEDED:
    "The statement needs more than `performance.query_memory_bytes`, or the server is short of memory.",
  RESULT_TOO_LARGE: "The result has more rows than `limits.max_result_rows`.",
  STATEMENT_TIMEOUT: "The request took longer than its timeout; the statement had no effect.",
  CANCELLED: "The statement was stopped by KILL, or because its client disconnected.",
  SHUTTING_DOWN: "The server is shutting down; try again once it is back up.",
  MISSING_FILE: "The statement names a file that the request does not contain.",
  EXTRA_FILE: "The request contains a file that no statement names.",
  FILE_TOO_LARGE: "A file exceeds `files.max_size_bytes`.",
  TOO_MANY_FILES: "The request contains more files than `files.max_files_per_request`.",
  INVALID_MIME_TYPE: "The media type is not in `files.allowed_mime_types`.",
  FILE_NOT_FOUND: "No row that the caller may read refers to this file.",
  EXPORT_NOT_FOUND: "This export has no archive: it has been replaced, or has expired.",
  HISTORY_TOO_OLD:
    "The table no longer keeps its rows as of this time; `earliest_seq` is the oldest position " +
    "that is still available.",
  RESUME_EXPIRED: "The history before this position is no longer kept; load a new snapshot.",
  INVALID_RESUME: "The server never issued this position, or lost it; load a new snapshot.",
  DISK_FULL: "There is too little free disk space, so only reads, DELETE and DROP run.",
  STORAGE_UNAVAILABLE: "The directory of a storage cannot be used; the message gives the reason.",
  DATA_DAMAGED: "Bytes on disk are damaged; see [operations.md](../operations.md#damage).",
  COMMIT_UNKNOWN:
    "The log could not be written, so it is unknown whether the change is durable. Before " +
    "repeating it, check whether it was made, or repeat it with the same idempotency key.",
  INTERNAL_ERROR: "There is a bug in the server; its log has the details.",
};

export const SUBSCRIPTION_NOTES: Readonly<Record<SubscriptionCode, string>> = {
  SUBSCRIPTION_LIMIT_EXCEEDED: "The user or the connection has too many subscriptions.",
  INVALID_OPTIONS: "An option of subscribe has the wrong type or value.",
  INVALID_SQL: "The query cannot be parsed or bound; `position` points to the error.",
  UNSUPPORTED: "The query is valid but cannot be followed; the message gives the reason.",
  INVALID_PARAMETER: "A parameter is missing, superfluous or not a valid value.",
  NOT_FOUND: "The table does not exist, or the caller may not read it.",
  UNAUTHORIZED: "The caller's role does not allow this query.",
  INVALID_RESUME:
    "The server never issued this position, or lost it. Subscribe without a position.",
  RESUME_EXPIRED:
    "The history before this position is no longer kept; `earliest_seq` is the oldest position " +
    "that is still available. Subscribe without a position.",
  SCHEMA_CHANGED:
    "A definition that the query uses has changed, or the connection was authenticated again " +
    "with different claims. Subscribe again.",
  KILLED: "An administrator ended the subscription or the connection.",
  SUBSCRIPTION_FAILED: "The query failed while it was running; the message gives the reason.",
  CONVERSION_ERROR: "A value could not be converted for the query's expressions.",
  TOKEN_EXPIRED:
    "The token expired some time ago, and the client has not authenticated again with a newer " +
    "one. Get a new token and connect again.",
  TOKEN_REVOKED: "The session has ended. Log in again.",
  SHUTTING_DOWN: "The server is shutting down. Connect again and resume.",
  AUTH_REQUIRED: "The first message must be `authenticate`.",
  INVALID_SUBSCRIPTION_ID: "The id is blank or longer than 128 characters.",
  BATCH_FETCH_FAILED: "next_batch names a subscription that does not exist.",
  AMBIGUOUS_SUBSCRIPTION: "Several subscriptions are loading, so next_batch must name one of them.",
  INVALID_MESSAGE:
    "The message cannot be read. The tenth such message within a short time closes the connection.",
  UNSUPPORTED_DATA: "The frame does not have the encoding that the connection has chosen.",
  MESSAGE_TOO_LARGE: "The message has more bytes than `limits.max_message_size`.",
  RATE_LIMIT_EXCEEDED: "There were too many messages; wait for `retry_after_ms`.",
};

/** Notes on the error codes for topics. They apply to HTTP requests and socket messages. */
export const TOPIC_NOTES: Readonly<Record<TopicCode, string>> = {
  INVALID_INPUT: "A field is missing or has the wrong form; the message names it.",
  INVALID_OFFSET:
    "The group has never received this message, the message does not exist, or the first " +
    "unacknowledged message is 10,000 or more offsets below it.",
  FORBIDDEN: "The caller needs the role `service` or higher, or the session has ended.",
  NOT_FOUND: "There is no such topic or consumer, or the group has not read from that partition.",
  KILLED: "KILL CONSUMER has ended the request or the consumer.",
  SHUTTING_DOWN: "The server is shutting down; try again in a few seconds.",
  STORAGE_FULL: "The disk is full.",
  DATA_DAMAGED: "Rows that the response needs are damaged on disk.",
  COMMIT_UNKNOWN: "It is unknown whether the acknowledgement is durable; acknowledge again.",
  INTERNAL_ERROR:
    "There is a bug in the server, or a disk is failing; the server's log has the details.",
};

export const HTTP_NOTES: Readonly<Record<string, string>> = {
  account_locked: "There were too many failed logins; the account is locked for a while.",
  already_configured: "The first-time setup has already been done.",
  BODY_TOO_LARGE: "The body has more bytes than the endpoint accepts; see `max_bytes`.",
  forbidden:
    "Only callers on the server's own machine, or pages of an allowed origin, may do this.",
  host_not_allowed: "The Host header names a host that is not in `security.allowed_hosts`.",
  INSUFFICIENT_PERMISSIONS: "The caller's role does not allow this.",
  internal_error: "There is a bug in the server; its log has the details.",
  INVALID_CREDENTIALS: "The token is not valid. Log in again.",
  invalid_request: "The body does not have the required form; the message names the field.",
  invalid_user: "The user id is not valid.",
  MISSING_AUTHORIZATION: "The request has no header `Authorization: Bearer …`.",
  NOT_ACCEPTABLE: "The result cannot be sent in a format that the Accept header lists.",
  not_found: "There is no endpoint at this path.",
  origin_not_allowed: "The page's origin is not in `security.cors.allowed_origins`.",
  RANGE_NOT_SATISFIABLE: "The requested range is outside the file.",
  RATE_LIMIT_EXCEEDED: "There were too many requests; wait for `Retry-After` seconds.",
  rate_limited: "There were too many logins or setup requests; wait for `Retry-After` seconds.",
  setup_required: "The server has no administrator yet; complete the first-time setup.",
  AUTHENTICATION_ERROR: "The keys of the token's issuer cannot be fetched; try again later.",
  TOKEN_EXPIRED: "The token has expired. Refresh it.",
  TOO_MANY_CONNECTIONS:
    "The server has too many connections, either in total or from this address.",
  unauthorized: "The name, the password or the token is wrong.",
  UNSUPPORTED_MEDIA_TYPE: "The body has the wrong Content-Type.",
  unsupported_media_type: "The body has the wrong Content-Type.",
  upgrade_required: "The endpoint accepts only WebSocket connections.",
  invalid_invitation: "The invitation is missing, unknown, used up or expired.",
  invalid_link: "The token in the link has been used, has expired, or was replaced by a newer one.",
  invalid_setup_code: "Setup requires the code that the server printed when it started.",
  user_exists:
    "A user with this name already exists, or the login at the provider belongs to a different " +
    "account.",
  unknown_user: "No account is linked to the login at the provider.",
  invalid_code: "The code of the login has been used, has expired, or belongs to a different page.",
  weak_password: "The password violates a rule in the section `auth`.",
};
