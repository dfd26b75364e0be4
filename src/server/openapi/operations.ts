/**
 * Describes the operations of all endpoints: their parameters, bodies and responses. Each route
 * refers to its operation.
 */
import type { Operation, OperationParameter, Schema } from "../http/operation.ts";
import { FLAG, TEXT } from "./schema_forms.ts";
import { IDEMPOTENCY_KEY, jsonOf, reference } from "./schemas.ts";

/** A `_seq` in a request. */
const POSITION: Schema = { type: ["integer", "string"], minimum: 0, pattern: "^\\d+$" };

/** The pattern that namespace and table names match. */
const OBJECT_NAME: Schema = { type: "string", pattern: "^[A-Za-z][A-Za-z0-9_]{0,63}$" };

export const SESSION_COOKIES = {
  "Set-Cookie": "The cookies tidemark_auth and tidemark_refresh, both HttpOnly",
};

export function inPath(
  name: string,
  description: string,
  schema: Schema = TEXT,
): OperationParameter {
  return { name, in: "path", description, schema, required: true };
}

export function inQuery(
  name: string,
  description: string,
  schema: Schema = TEXT,
): OperationParameter {
  return { name, in: "query", description, schema };
}

export function inHeader(
  name: string,
  description: string,
  schema: Schema = TEXT,
): OperationParameter {
  return { name, in: "header", description, schema };
}

const LOGIN = { user: "…", password: "…" };

/** The operations of `/v1/api/auth/…`, keyed by the last segment of the path. */
export const AUTH_OPERATIONS: Readonly<
  Record<"login" | "logout" | "me" | "refresh" | "setup" | "status", Operation>
> = {
  status: {
    id: "authStatus",
    tag: "auth",
    summary: "Check whether the server still needs its first-time setup",
    access: "anyone",
    answers: { 200: { description: "The setup state", content: jsonOf("AuthStatus") } },
    errors: { 500: ["internal_error"] },
  },
  setup: {
    id: "setup",
    tag: "auth",
    summary: "Create the first DBA account and set the root password; works only once",
    description:
      "Only callers on the server's own machine may call this, unless auth.allow_remote_setup " +
      "is true. If auth.setup_code is true, the request must contain the code that the server " +
      "printed when it started.",
    access: "anyone",
    body: {
      content: jsonOf("SetupRequest"),
      required: true,
      example: { ...LOGIN, root_password: "…" },
    },
    answers: { 200: { description: "The new DBA account", content: jsonOf("Setup") } },
    errors: {
      400: ["invalid_request", "invalid_user", "weak_password"],
      403: ["forbidden", "host_not_allowed", "invalid_setup_code"],
      409: ["already_configured", "user_exists"],
      429: ["rate_limited"],
      500: ["internal_error"],
    },
  },
  login: {
    id: "login",
    tag: "auth",
    summary: "Exchange a login name and a password for tokens",
    access: "anyone",
    body: { content: jsonOf("LoginRequest"), required: true, example: LOGIN },
    answers: {
      200: { description: "Tokens", content: jsonOf("Login"), headers: SESSION_COOKIES },
    },
    errors: {
      400: ["invalid_request"],
      401: ["unauthorized", "account_locked"],
      428: ["setup_required"],
      429: ["rate_limited"],
      500: ["internal_error"],
    },
  },
  refresh: {
    id: "refresh",
    tag: "auth",
    summary: "Exchange a refresh token for new tokens",
    description:
      "The refresh token works until one of the new tokens is used, and for another 30 seconds " +
      "after that; using it later ends the session.",
    access: "refresh token",
    body: { content: jsonOf("RefreshRequest"), required: false, example: { refresh_token: "…" } },
    answers: {
      200: { description: "Tokens", content: jsonOf("Login"), headers: SESSION_COOKIES },
    },
    errors: {
      400: ["invalid_request"],
      401: ["unauthorized"],
      429: ["rate_limited"],
      500: ["internal_error"],
    },
  },
  logout: {
    id: "logout",
    tag: "auth",
    summary: "End the token's session, or all sessions of its user",
    description: "Succeeds even without a token.",
    access: "any token or none",
    body: { content: jsonOf("LogoutRequest"), required: false },
    answers: {
      200: {
        description: "Done",
        content: jsonOf("Message"),
        headers: { "Set-Cookie": "Deletes both cookies in the browser" },
      },
    },
    errors: { 400: ["invalid_request"], 500: ["internal_error"] },
  },
  me: {
    id: "me",
    tag: "auth",
    summary: "Get the caller's user and role",
    access: "bearer or cookie",
    answers: { 200: { description: "The caller's user and role", content: jsonOf("Me") } },
    errors: { 401: ["unauthorized"] },
  },
};

export const SQL_OPERATION: Operation = {
  id: "sql",
  tag: "data",
  summary: "Run SQL statements",
  description:
    "The statements run in order, each in its own transaction unless BEGIN opens one; the " +
    "first failure stops the rest. The file for FILE('x') is sent as the form part file:x. If " +
    "the request is a single statement that returns rows, the Accept header can select NDJSON " +
    "or CSV. A long response is streamed, so if it fails midway, its HTTP status is still 200, " +
    "but its status field is error.",
  access: "bearer",
  parameters: [
    inHeader("Tidemark-Transaction", "The id of the open transaction in which the statements run"),
  ],
  body: {
    required: true,
    example: { sql: "SELECT 1" },
    content: {
      ...jsonOf("SqlRequest"),
      "multipart/form-data": {
        type: "object",
        description:
          "Must also contain a part file:x for each placeholder FILE('x') in the statement",
        properties: {
          sql: TEXT,
          params: { ...TEXT, description: "A JSON array" },
          namespace_id: { ...TEXT, minLength: 1 },
          timeout_ms: { ...TEXT, pattern: "^\\d{1,12}$" },
          check: { type: "string", enum: ["true", "false"] },
          idempotency_key: IDEMPOTENCY_KEY,
        },
        required: ["sql"],
      },
    },
  },
  answers: {
    200: {
      description: "The results, with an entry per statement",
      content: {
        ...jsonOf("SqlResponse"),
        "application/x-ndjson": {
          ...TEXT,
          description:
            "A line with schema and as_user, then an array per row, then a line with status",
        },
        "text/csv": {
          ...TEXT,
          description:
            "CSV as in RFC 4180, with a header line; dates and times are in ISO 8601 format",
        },
      },
      headers: {
        "Idempotency-Replayed": "true if this is the stored response to an earlier request",
        "Tidemark-Notices":
          "For NDJSON and CSV: the notices of all statements, as a JSON array of ASCII strings",
      },
    },
  },
  errors: {
    400: [
      "INVALID_INPUT",
      "EMPTY_SQL",
      "BATCH_PARSE_ERROR",
      "INVALID_SQL",
      "INVALID_PARAMETER",
      "PARAMS_WITH_BATCH",
      "TABLE_NOT_FOUND",
      "NAMESPACE_NOT_FOUND",
      "SQL_EXECUTION_ERROR",
      "RESULT_TOO_LARGE",
      "QUERY_TIMEOUT",
      "MISSING_FILE",
      "EXTRA_FILE",
      "FILE_TOO_LARGE",
      "TOO_MANY_FILES",
      "INVALID_MIME_TYPE",
    ],
    403: ["PERMISSION_DENIED"],
    404: ["TRANSACTION_NOT_FOUND"],
    406: ["NOT_ACCEPTABLE"],
    409: ["IDEMPOTENCY_CONFLICT"],
    500: ["INTERNAL_ERROR", "DATA_DAMAGED", "COMMIT_UNKNOWN"],
    507: ["STORAGE_FULL"],
  },
};

export const COPY_OPERATION: Operation = {
  id: "copy",
  tag: "data",
  summary: "Bulk-copy rows into a table, or out of a table or query",
  description:
    "The sql is a single COPY … FROM STDIN, whose data is the request body, or a single COPY … " +
    "TO STDOUT, whose rows become the response body. Both bodies are streamed. COPY FROM is a " +
    "single commit: if it fails, nothing is stored. If COPY TO fails after its first bytes " +
    "have been sent, the server breaks the connection.",
  access: "bearer",
  parameters: [
    { ...inQuery("sql", "The COPY statement"), required: true },
    inQuery("namespace_id", "Default namespace for unqualified names", {
      ...TEXT,
      minLength: 1,
      default: "default",
    }),
    inQuery(
      "timeout_ms",
      "How long the statement may take in milliseconds, excluding the time it waits for the " +
        "client",
      {
        type: "integer",
        minimum: 1,
      },
    ),
  ],
  body: {
    required: false,
    content: {
      "*/*": { description: "The data for COPY FROM, in the format that the statement specifies" },
    },
  },
  answers: {
    200: {
      description:
        "The result of COPY FROM, or the rows from COPY TO in the format that the statement " +
        "specifies",
      content: {
        ...jsonOf("SqlResponse"),
        "text/plain": TEXT,
        "text/csv": TEXT,
        "application/x-ndjson": TEXT,
        "application/octet-stream": { description: "PostgreSQL's binary COPY format" },
      },
    },
  },
  errors: SQL_OPERATION.errors ?? {},
};

export const EXPORT_OPERATION: Operation = {
  id: "export",
  tag: "data",
  summary: "Download the archive that EXPORT USER DATA created",
  access: "bearer",
  parameters: [
    inPath(
      "user_id",
      "The user who owns the data; another user's data requires the role dba or system",
    ),
    inPath("export_id", "The job_id of the export", { type: "string", pattern: "^EX\\d+$" }),
    inQuery(
      "access",
      "A signature that replaces the token. SHOW EXPORT returns the URL including it",
    ),
    inHeader("Range", "A single range of bytes"),
    inHeader("If-Range", "The ETag of the version to which the range refers"),
    inHeader("If-None-Match", "ETags of the versions that the caller already has"),
  ],
  answers: {
    200: {
      description: "The whole archive",
      content: {
        "application/zip": { description: "A ZIP file with the rows as NDJSON, and the files" },
      },
      headers: { ETag: "The export_id, in quotes" },
    },
    206: {
      description: "The requested range of bytes",
      content: { "*/*": { description: "Bytes" } },
      headers: { "Content-Range": "The position of these bytes in the archive" },
    },
    304: { description: "The caller already has the archive" },
  },
  errors: {
    400: ["INVALID_INPUT"],
    403: ["PERMISSION_DENIED"],
    404: ["EXPORT_NOT_FOUND"],
    416: ["RANGE_NOT_SATISFIABLE"],
    500: ["INTERNAL_ERROR"],
  },
};

/**
 * Returns the operation that downloads a file. It is served at two paths under different ids, so
 * the caller passes the id.
 */
export function fileOperation(id: string): Operation {
  return {
    id,
    tag: "data",
    summary: "Download the file that a FILE cell refers to",
    access: "bearer",
    parameters: [
      inPath("namespace", "The namespace of the table that contains the cell", OBJECT_NAME),
      inPath("table", "A USER or SHARED table", OBJECT_NAME),
      inPath("sub", "The sub field of the FILE cell", { type: "string", pattern: "^f\\d{4,}$" }),
      inPath("stored_name", "The stored name of the file, or just the id field of the FILE cell", {
        type: "string",
        pattern: "^\\d[^/\\\\]*$",
      }),
      inQuery(
        "user_id",
        "For a USER table: the user who owns the file; another user's file requires the role " +
          "dba or system",
      ),
      inQuery(
        "access",
        "A signature that replaces the token. FILE_URL() in SQL returns the URL including it, " +
          "as /v1/files/{file id}/{name}?access=…",
      ),
      inQuery("download", "With 1, the browser saves the file instead of displaying it"),
      inHeader("Range", "A single range of bytes"),
      inHeader("If-Range", "The ETag of the version to which the range refers"),
      inHeader("If-None-Match", "ETags of the versions that the caller already has"),
    ],
    answers: {
      200: {
        description: "The whole file",
        content: {
          "*/*": { description: "The bytes of the file, with the media type stored for it" },
        },
        headers: {
          ETag: "SHA-256 hash of the file",
          "Content-Disposition": "The original name of the file",
        },
      },
      206: {
        description: "The requested range of bytes",
        content: { "*/*": { description: "Bytes" } },
        headers: { "Content-Range": "The position of these bytes in the file" },
      },
      304: { description: "The caller already has the current content" },
    },
    errors: {
      400: ["INVALID_INPUT"],
      403: ["PERMISSION_DENIED"],
      404: ["TABLE_NOT_FOUND", "FILE_NOT_FOUND"],
      416: ["RANGE_NOT_SATISFIABLE"],
      500: ["INTERNAL_ERROR", "DATA_DAMAGED"],
    },
  };
}

export const LIVE_OPERATION: Operation = {
  id: "live",
  tag: "data",
  summary: "Follow a single query through server-sent events",
  description:
    "The stream contains the existing rows in batches, then every change to them. Its events " +
    "are subscription_ack, initial_data_batch, change and subscription_error; their data is " +
    "the same JSON message that a WebSocket would send. If the Accept header names " +
    "text/event-stream, as that of a browser's EventSource does, the status is always 200, " +
    "because an EventSource does not reconnect after any other status. A rejected request then " +
    "gets the event subscription_error, whose data also contains the status, and the stream " +
    "ends. Other clients get the statuses below.",
  access: "bearer or cookie",
  parameters: [
    { ...inQuery("sql", "The query to follow"), required: true },
    inQuery("namespace_id", "Default namespace for unqualified names", {
      ...TEXT,
      minLength: 1,
      default: "default",
    }),
    inQuery("params", "Values for the parameters $1, $2, …, as a JSON array"),
    inQuery("batch_size", "Number of rows per batch", { type: "integer", minimum: 1 }),
    inQuery("last_rows", "Load only this many of the newest rows", {
      type: "integer",
      minimum: 0,
    }),
    inQuery("from_seq_id", "Resume: send only the changes after this _seq", POSITION),
    inQuery(
      "claims",
      "For a resume with from_seq_id: the claims value from the earlier subscription_ack",
      TEXT,
    ),
    inQuery(
      "replay",
      "Which missed changes to send after a resume: all, or only the latest of each row",
      {
        type: "string",
        enum: ["all", "latest"],
      },
    ),
    inQuery("snapshot", "If false, the existing rows are omitted", FLAG),
    inHeader(
      "Last-Event-ID",
      "The id of the last event that the client received; takes precedence over from_seq_id",
      TEXT,
    ),
  ],
  answers: {
    200: {
      description: "An endless stream of events",
      content: { "text/event-stream": TEXT },
    },
  },
  errors: {
    400: ["INVALID_SQL", "UNSUPPORTED", "INVALID_OPTIONS", "INVALID_PARAMETER", "INVALID_RESUME"],
    403: ["UNAUTHORIZED"],
    404: ["NOT_FOUND"],
    410: ["RESUME_EXPIRED", "SCHEMA_CHANGED"],
    429: ["SUBSCRIPTION_LIMIT_EXCEEDED"],
  },
};

export const SOCKET_OPERATION: Operation = {
  id: "socket",
  tag: "data",
  summary: "Open a WebSocket for following queries and consuming topics",
  description:
    "The client sends its token in a header or in an authenticate message. The field " +
    "x-websocket-messages lists the schemas of all messages.",
  access: "anyone",
  messages: { client: reference("ClientMessage"), server: reference("ServerMessage") },
  parameters: [
    inQuery("compress", "With false, 0 or no, messages are not compressed"),
    inQuery("serialization", "The format in which messages are encoded", {
      type: "string",
      enum: ["json", "msgpack"],
      default: "json",
    }),
    inQuery("compression", "With none, messages are not compressed", {
      type: "string",
      enum: ["gzip", "none"],
      default: "gzip",
    }),
  ],
  answers: { 101: { description: "The connection has been upgraded to a WebSocket" } },
  errors: { 403: ["origin_not_allowed"], 426: ["upgrade_required"] },
};

/**
 * Returns the health operation. It is served at two paths under different ids, so the caller
 * passes the id.
 */
export function healthOperation(id: string): Operation {
  return {
    id,
    tag: "probes",
    summary: "Get the version and build date of the server",
    access: "local",
    answers: { 200: { description: "The server is working", content: jsonOf("Health") } },
  };
}

export const PROBE_OPERATIONS: Readonly<
  Record<"clusterHealth" | "live" | "metrics" | "openapi" | "ready", Operation>
> = {
  clusterHealth: {
    id: "clusterHealth",
    tag: "probes",
    summary: "List the nodes of the cluster; a single server is its only node",
    access: "local",
    answers: { 200: { description: "The state of the cluster", content: jsonOf("ClusterHealth") } },
  },
  live: {
    id: "healthLive",
    tag: "probes",
    summary: "Check whether the server process is alive",
    access: "anyone",
    answers: { 200: { description: "The process is alive", content: jsonOf("Alive") } },
  },
  ready: {
    id: "healthReady",
    tag: "probes",
    summary: "Check whether the server accepts requests",
    access: "anyone",
    answers: {
      200: { description: "The server accepts requests", content: jsonOf("Readiness") },
      503: { description: "The server is shutting down", content: jsonOf("Readiness") },
    },
  },
  metrics: {
    id: "metrics",
    tag: "probes",
    summary: "Get metrics in the Prometheus format",
    description:
      "Requires the role dba or system, or a client address listed in security.metrics_allow.",
    access: "bearer or address",
    answers: {
      200: {
        description: "Metrics in Prometheus text format 0.0.4",
        content: { "text/plain": TEXT },
      },
    },
    errors: { 403: ["INSUFFICIENT_PERMISSIONS"] },
  },
  openapi: {
    id: "openapi",
    tag: "probes",
    summary: "Get this OpenAPI description",
    access: "anyone",
    answers: {
      200: { description: "OpenAPI 3.1", content: { "application/json": { type: "object" } } },
    },
  },
};
