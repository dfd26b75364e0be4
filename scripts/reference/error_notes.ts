/**
 * Explains what each error means and what to do about it, for `docs/reference/errors.md`. The
 * tables of conditions and of subscription codes are exhaustive, so a new error code does not
 * compile without a note.
 */
import type { ErrorCode } from "../../src/base/error_code.ts";
import type { SubscriptionCode, TopicCode } from "../../src/protocol/mod.ts";

export const CONDITION_NOTES: Readonly<Record<ErrorCode, string>> = {
  EMPTY_SQL: "The text contains no statement.",
  BATCH_PARSE_ERROR: "A statement of a text with several cannot be parsed; nothing has run.",
  INVALID_SQL: "The statement cannot be parsed; `position` points to the place.",
  INVALID_INPUT: "The request, or EXECUTE AS, does not have the right form.",
  UNSUPPORTED_FEATURE: "The server recognises the construct but does not support it; see `hint`.",
  INVALID_PARAMETER: "A parameter is missing, superfluous, too large or not a value.",
  PARAMS_WITH_BATCH: "Parameters were sent with several statements that are not one transaction.",
  INVALID_NAME: "A name is too long or has characters that names cannot have.",
  RESERVED_NAME: "The name belongs to the system.",
  INVALID_DEFINITION: "The definition contradicts itself, or the rows that exist.",
  INVALID_OPTION: "An option is unknown, out of range, or not for this kind of table.",
  INVALID_QUERY: "The query breaks a rule of grouping, aggregates or windows.",
  AMBIGUOUS_COLUMN: "Several tables have a column of this name; write `table.column`.",
  NAMESPACE_NOT_FOUND: "The namespace does not exist.",
  TABLE_NOT_FOUND: "The table does not exist, or the caller may not read it.",
  COLUMN_NOT_FOUND: "No table of the query has this column.",
  FUNCTION_NOT_FOUND: "No function has this name with arguments of these types.",
  USER_NOT_FOUND: "The user does not exist.",
  OBJECT_NOT_FOUND: "The storage, job, query, subscription or connection does not exist.",
  ALREADY_EXISTS: "An object of this name exists; write IF NOT EXISTS to accept that.",
  DEPENDENT_OBJECTS: "Other objects use this one; drop them first, or write CASCADE.",
  TYPE_MISMATCH: "An expression has the wrong type; write a cast.",
  UNSUPPORTED_TYPE: "No type has this name.",
  INVALID_VALUE: "A text cannot be read as a value of the type.",
  VALUE_TOO_LONG: "A text is longer than its VARCHAR(n).",
  ROW_TOO_LARGE: "A row has more bytes than `limits.max_row_bytes`.",
  VALUE_OUT_OF_RANGE: "A number or a time is outside the range of its type.",
  DIVISION_BY_ZERO: "A division by zero.",
  DIMENSION_MISMATCH: "Two embeddings have different numbers of dimensions.",
  NOT_NULL_VIOLATION: "A column that is NOT NULL would be NULL.",
  CHECK_VIOLATION: "A row violates a CHECK.",
  FOREIGN_KEY_VIOLATION:
    "A row refers to a row that does not exist, or a row to which others refer would be deleted.",
  DUPLICATE_KEY: "A row with this primary key exists; see ON CONFLICT.",
  EXCLUSION_VIOLATION:
    "The range of a row overlaps that of another row, which an EXCLUDE constraint forbids.",
  RAISE_EXCEPTION: "A function has raised the error with RAISE or ASSERT; the message is its own.",
  CARDINALITY_VIOLATION:
    "A subquery used as a value returned several rows, or a statement would change a row twice.",
  INVALID_OPERATION: "The object does not support this operation.",
  READ_ONLY_OBJECT: "System views, views and table functions cannot be written.",
  SYSTEM_COLUMN: "The column is maintained by the system and cannot be set.",
  SHARED_IMPERSONATION: "EXECUTE AS cannot write SHARED tables.",
  MANAGED_BY_CONFIG: "The setting comes from the configuration of the server.",
  WHERE_REQUIRED: "`limits.require_where` is on: write WHERE, or WHERE true.",
  PERMISSION_DENIED: "The role of the caller does not permit this.",
  WEAK_PASSWORD: "The password breaks a rule of `auth`.",
  TRANSACTION_OPEN: "The statement cannot run inside a transaction.",
  TRANSACTION_REQUIRED: "COMMIT or ROLLBACK without BEGIN.",
  INVALID_TRANSACTION_STATE: "The transaction is read only, or has already ended.",
  TRANSACTION_LIMIT: "The transaction writes more than `limits.transaction_max_bytes`.",
  TRANSACTION_FAILED:
    "A statement in the transaction failed. Only ROLLBACK, or ROLLBACK TO a savepoint, is possible.",
  TRANSACTION_NOT_FOUND:
    "No open transaction of this session has this id. It may have ended; the message says how.",
  SERIALIZATION_FAILURE:
    "Another transaction changed the same rows first. Send the whole transaction again.",
  LOCK_NOT_AVAILABLE: "Another transaction has locked a row, and the statement says NOWAIT.",
  ALREADY_ACKNOWLEDGED:
    "An ACK in the transaction names messages that are already acknowledged, together with their effects. Nothing was written; continue with the next message.",
  IDEMPOTENCY_CONFLICT: "The key was used for another request, or its request still runs.",
  LIMIT_EXCEEDED: "The statement or its user exceeds a limit; the message names it.",
  MEMORY_EXCEEDED:
    "The statement needs more than `performance.query_memory_bytes`, or the server is short of memory.",
  RESULT_TOO_LARGE: "The result has more rows than `limits.max_result_rows`.",
  STATEMENT_TIMEOUT: "The request took longer than its timeout; the statement had no effect.",
  CANCELLED: "Somebody stopped the statement with KILL, or its client disconnected.",
  SHUTTING_DOWN: "The server is stopping; try again once it runs.",
  MISSING_FILE: "The statement names a file that the request does not contain.",
  EXTRA_FILE: "The request contains a file that no statement names.",
  FILE_TOO_LARGE: "A file exceeds `files.max_size_bytes`.",
  TOO_MANY_FILES: "The request contains more files than `files.max_files_per_request`.",
  INVALID_MIME_TYPE: "The media type is not in `files.allowed_mime_types`.",
  FILE_NOT_FOUND: "No row that the caller may read names this file.",
  EXPORT_NOT_FOUND: "There is no archive of this export: it was replaced, or it has expired.",
  HISTORY_TOO_OLD:
    "The table no longer keeps the rows of this time; `earliest_seq` is the oldest position left.",
  RESUME_EXPIRED: "The history before this position is gone; load a new snapshot.",
  INVALID_RESUME: "The server never issued this position, or lost it; load a new snapshot.",
  DISK_FULL: "Too little disk space is free: only reads, DELETE and DROP run.",
  STORAGE_UNAVAILABLE: "The directory of a storage cannot be used; the message says why.",
  DATA_DAMAGED: "Bytes on disk are damaged; see [operations.md](../operations.md#damage).",
  COMMIT_UNKNOWN:
    "The log could not be written, so it is unknown whether the change will last. Read before you repeat it, or repeat it with the same idempotency key.",
  INTERNAL_ERROR: "A bug in the server; its log has the details.",
};

export const SUBSCRIPTION_NOTES: Readonly<Record<SubscriptionCode, string>> = {
  SUBSCRIPTION_LIMIT_EXCEEDED: "The user or the connection has too many subscriptions.",
  INVALID_OPTIONS: "An option of subscribe has the wrong type or value.",
  INVALID_SQL: "The query cannot be parsed or bound; `position` points to the place.",
  UNSUPPORTED: "The query is valid but cannot be followed; the message says why.",
  INVALID_PARAMETER: "A parameter is missing, superfluous or not a value.",
  NOT_FOUND: "The table does not exist, or the caller may not read it.",
  UNAUTHORIZED: "The role of the caller does not permit this query.",
  INVALID_RESUME:
    "The server never issued this position, or lost it. Subscribe without a position.",
  RESUME_EXPIRED:
    "The history before this position is gone; `earliest_seq` is the oldest position left. Subscribe without a position.",
  SCHEMA_CHANGED:
    "A definition that the query uses changed, or the connection was renewed with other claims. Subscribe again.",
  KILLED: "An operator ended the subscription or the connection.",
  SUBSCRIPTION_FAILED: "The query failed while it ran; the message says why.",
  CONVERSION_ERROR: "A value could not be converted for the query's expressions.",
  TOKEN_EXPIRED:
    "The token expired some time ago, and the client did not authenticate again with a newer one. Get a new token and connect again.",
  TOKEN_REVOKED: "The session ended. Log in again.",
  SHUTTING_DOWN: "The server is stopping. Connect again and resume.",
  AUTH_REQUIRED: "The first message has to be `authenticate`.",
  INVALID_SUBSCRIPTION_ID: "The id is blank or longer than 128 characters.",
  BATCH_FETCH_FAILED: "next_batch names a subscription that does not exist.",
  AMBIGUOUS_SUBSCRIPTION: "Several subscriptions are loading; next_batch has to name one.",
  INVALID_MESSAGE:
    "The message cannot be read. The tenth such message within a short time closes the connection.",
  UNSUPPORTED_DATA: "The frame has an encoding that the connection did not choose.",
  MESSAGE_TOO_LARGE: "The message has more bytes than `limits.max_message_size`.",
  RATE_LIMIT_EXCEEDED: "Too many messages; wait for `retry_after_ms`.",
};

/** Notes on the error codes for topics, for HTTP requests and socket messages. */
export const TOPIC_NOTES: Readonly<Record<TopicCode, string>> = {
  INVALID_INPUT: "A field is missing or has the wrong form; the message names it.",
  INVALID_OFFSET:
    "The group never received this message, the message does not exist, or the first unacknowledged message is 10,000 or more offsets below it.",
  FORBIDDEN: "The caller needs role `service` or higher, or the session was ended.",
  NOT_FOUND: "There is no such topic or consumer, or the group has not read in that partition.",
  KILLED: "KILL CONSUMER ended the request or the consumer.",
  SHUTTING_DOWN: "The server is stopping; try again in a few seconds.",
  STORAGE_FULL: "The disk is full.",
  DATA_DAMAGED: "Rows that the response needs are damaged on disk.",
  COMMIT_UNKNOWN: "It is unknown whether the acknowledgement is durable; acknowledge again.",
  INTERNAL_ERROR: "A bug or a failing disk; the server's log has the details.",
};

export const HTTP_NOTES: Readonly<Record<string, string>> = {
  account_locked: "Too many failed logins; the account is locked for a while.",
  already_configured: "The first-time setup has been done.",
  BODY_TOO_LARGE: "The body has more bytes than the endpoint accepts; see `max_bytes`.",
  forbidden: "Only callers on the server's machine, or of an allowed origin, may do this.",
  host_not_allowed: "The Host header is not in `security.allowed_hosts`.",
  INSUFFICIENT_PERMISSIONS: "The role of the caller does not permit this.",
  internal_error: "A bug in the server; its log has the details.",
  INVALID_CREDENTIALS: "The token is not valid. Log in again.",
  invalid_request: "The body does not have the right form; the message names the field.",
  invalid_user: "The user id cannot be used.",
  MISSING_AUTHORIZATION: "The request has no header `Authorization: Bearer …`.",
  NOT_ACCEPTABLE: "The result cannot be sent in a format that the Accept header lists.",
  not_found: "There is no such path.",
  origin_not_allowed: "The page's origin is not in `security.cors.allowed_origins`.",
  RANGE_NOT_SATISFIABLE: "The file has no such range.",
  RATE_LIMIT_EXCEEDED: "Too many requests; wait for `Retry-After` seconds.",
  rate_limited: "Too many logins or setups; wait for `Retry-After` seconds.",
  setup_required: "The server has no administrator yet; do the first-time setup.",
  AUTHENTICATION_ERROR: "The keys of the token's issuer cannot be fetched; try again later.",
  TOKEN_EXPIRED: "The token has expired. Refresh it.",
  TOO_MANY_CONNECTIONS: "The server or the address has too many connections.",
  unauthorized: "The name, the password or the token is wrong.",
  UNSUPPORTED_MEDIA_TYPE: "The body has the wrong Content-Type.",
  unsupported_media_type: "The body has the wrong Content-Type.",
  upgrade_required: "The endpoint accepts only WebSocket connections.",
  invalid_invitation: "The invitation is missing, unknown, used up or expired.",
  invalid_link: "The token of the link was used, has expired, or was replaced by a newer password.",
  invalid_setup_code: "Setup requires the code that the server printed when it started.",
  user_exists:
    "A user of this name exists, or the login of the provider belongs to another account.",
  unknown_user: "No account belongs to the login of the provider.",
  invalid_code: "The code of a login was used, has expired, or belongs to another page.",
  weak_password: "The password breaks a rule of `auth`.",
};
