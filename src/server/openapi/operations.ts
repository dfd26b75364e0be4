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
  "Set-Cookie": "tidemark_auth and tidemark_refresh, both HttpOnly",
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

/** The operations of `/v1/api/auth/…`, by the last segment of the path. */
export const AUTH_OPERATIONS: Readonly<
  Record<"login" | "logout" | "me" | "refresh" | "setup" | "status", Operation>
> = {
  status: {
    id: "authStatus",
    tag: "auth",
    summary: "Whether the server needs its first-time setup",
    access: "anyone",
    answers: { 200: { description: "The state", content: jsonOf("AuthStatus") } },
    errors: { 500: ["internal_error"] },
  },
  setup: {
    id: "setup",
    tag: "auth",
    summary: "Create the first DBA and set the root password; works only once",
    description:
      "Only for callers on the server's machine, unless auth.allow_remote_setup is true. With " +
      "auth.setup_code, only with the code that the server printed when it started.",
    access: "anyone",
    body: {
      content: jsonOf("SetupRequest"),
      required: true,
      example: { ...LOGIN, root_password: "…" },
    },
    answers: { 200: { description: "The new DBA", content: jsonOf("Setup") } },
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
    summary: "Exchange a name and a password for tokens",
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
      "The used token works until one of the new tokens has been used, and 30 seconds longer; later " +
      "use ends the session.",
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
    summary: "End the session of the token, or all sessions of its user",
    description: "Also succeeds without a token.",
    access: "any token or none",
    body: { content: jsonOf("LogoutRequest"), required: false },
    answers: {
      200: {
        description: "Done",
        content: jsonOf("Message"),
        headers: { "Set-Cookie": "Makes a browser delete both cookies" },
      },
    },
    errors: { 400: ["invalid_request"], 500: ["internal_error"] },
  },
  me: {
    id: "me",
    tag: "auth",
    summary: "The caller's user and role",
    access: "bearer or cookie",
    answers: { 200: { description: "The user", content: jsonOf("Me") } },
    errors: { 401: ["unauthorized"] },
  },
};

export const SQL_OPERATION: Operation = {
  id: "sql",
  tag: "data",
  summary: "Run SQL statements",
  description:
    "Statements run in order, each in a separate transaction unless BEGIN begins one; the first " +
    "failure stops the rest. Files for FILE('x') come as parts file:x of a form. Accept chooses " +
    "NDJSON or CSV for a request with one statement that returns rows. A long response is streamed: " +
    "if it fails late its status is 200, and the field status says error.",
  access: "bearer",
  parameters: [
    inHeader("Tidemark-Transaction", "The open transaction in which the statements run"),
  ],
  body: {
    required: true,
    example: { sql: "SELECT 1" },
    content: {
      ...jsonOf("SqlRequest"),
      "multipart/form-data": {
        type: "object",
        description: "Also a part file:x for each placeholder FILE('x') of the statement",
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
      description: "One entry for each statement",
      content: {
        ...jsonOf("SqlResponse"),
        "application/x-ndjson": {
          ...TEXT,
          description: "A line with schema and as_user, one array for each row, a line with status",
        },
        "text/csv": {
          ...TEXT,
          description: "RFC 4180 with a header line; dates and times are ISO 8601",
        },
      },
      headers: {
        "Idempotency-Replayed": "true when this is the response to an earlier request",
        "Tidemark-Notices":
          "With NDJSON and CSV: the notices of all statements, as a JSON array of strings in ASCII",
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
  summary: "Copy many rows into a table, or out of a table or query",
  description:
    "The statement is one COPY … FROM STDIN, whose data is the body of the request, or one " +
    "COPY … TO STDOUT, whose rows are the body of the response. Both bodies are streamed. A COPY FROM " +
    "is one commit: if it fails, none of it is stored. If a COPY TO fails after its first " +
    "bytes, the connection breaks.",
  access: "bearer",
  parameters: [
    { ...inQuery("sql", "The COPY statement"), required: true },
    inQuery("namespace_id", "Default namespace of unqualified names", {
      ...TEXT,
      minLength: 1,
      default: "default",
    }),
    inQuery("timeout_ms", "How long the statement may take, not counting waits for the client", {
      type: "integer",
      minimum: 1,
    }),
  ],
  body: {
    required: false,
    content: { "*/*": { description: "The data of a COPY FROM, in the format of the statement" } },
  },
  answers: {
    200: {
      description: "The result of COPY FROM, or the rows of COPY TO in the format of the statement",
      content: {
        ...jsonOf("SqlResponse"),
        "text/plain": TEXT,
        "text/csv": TEXT,
        "application/x-ndjson": TEXT,
        "application/octet-stream": { description: "PostgreSQL's binary format" },
      },
    },
  },
  errors: SQL_OPERATION.errors ?? {},
};

export const EXPORT_OPERATION: Operation = {
  id: "export",
  tag: "data",
  summary: "Download the archive of a finished EXPORT USER DATA",
  access: "bearer",
  parameters: [
    inPath(
      "user_id",
      "The user to whom the data belongs; the data of another user requires role dba or system",
    ),
    inPath("export_id", "The job_id of the export", { type: "string", pattern: "^EX\\d+$" }),
    inQuery("access", "A signature. SHOW EXPORT returns the whole URL, which needs no token"),
    inHeader("Range", "One range of bytes"),
    inHeader("If-Range", "The ETag that the range belongs to"),
    inHeader("If-None-Match", "ETags that the caller already has"),
  ],
  answers: {
    200: {
      description: "The archive",
      content: { "application/zip": { description: "Rows as NDJSON, and files" } },
      headers: { ETag: "The export_id" },
    },
    206: {
      description: "The range",
      content: { "*/*": { description: "Bytes" } },
      headers: { "Content-Range": "The bytes of this part" },
    },
    304: { description: "The caller has the archive" },
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
    summary: "Download the bytes of a FILE cell",
    access: "bearer",
    parameters: [
      inPath("namespace", "The namespace of the table", OBJECT_NAME),
      inPath("table", "A USER or SHARED table", OBJECT_NAME),
      inPath("sub", "The field sub of the cell", { type: "string", pattern: "^f\\d{4,}$" }),
      inPath(
        "stored_name",
        "The name under which the file is stored, or only the field id of the cell",
        {
          type: "string",
          pattern: "^\\d[^/\\\\]*$",
        },
      ),
      inQuery(
        "user_id",
        "The owner of the file in a USER table; another user's file requires role dba or system",
      ),
      inQuery(
        "access",
        "A signature. The whole URL comes from FILE_URL() in SQL, as " +
          "/v1/files/{file id}/{name}?access=…, and needs no token",
      ),
      inQuery("download", "With 1, a browser saves the file instead of showing it"),
      inHeader("Range", "One range of bytes"),
      inHeader("If-Range", "The ETag that the range belongs to"),
      inHeader("If-None-Match", "ETags that the caller already has"),
    ],
    answers: {
      200: {
        description: "The file",
        content: { "*/*": { description: "Bytes of the stored media type" } },
        headers: { ETag: "SHA-256 of the bytes", "Content-Disposition": "The original name" },
      },
      206: {
        description: "The range",
        content: { "*/*": { description: "Bytes" } },
        headers: { "Content-Range": "The bytes of this part" },
      },
      304: { description: "The caller has the current content" },
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
  summary: "Follow one query as server-sent events",
  description:
    "The existing rows in batches, then every change to them: events subscription_ack, " +
    "initial_data_batch, change and subscription_error, whose data is the JSON message that the " +
    "WebSocket sends. A request whose Accept names text/event-stream, as a browser's EventSource " +
    "sends it, is never answered with a status other than 200, after which an EventSource would " +
    "not connect again: a refusal is the event subscription_error, whose data also has status, " +
    "and the end of the stream. Other clients get the statuses below.",
  access: "bearer or cookie",
  parameters: [
    { ...inQuery("sql", "The query to follow"), required: true },
    inQuery("namespace_id", "Default namespace of unqualified names", {
      ...TEXT,
      minLength: 1,
      default: "default",
    }),
    inQuery("params", "Values of $1, $2, … as the text of a JSON array"),
    inQuery("batch_size", "The number of rows in a batch", { type: "integer", minimum: 1 }),
    inQuery("last_rows", "Return only this many of the newest rows", {
      type: "integer",
      minimum: 0,
    }),
    inQuery("from_seq_id", "Resume after this _seq", POSITION),
    inQuery("claims", "For a resume with from_seq_id: claims of the subscription_ack", TEXT),
    inQuery("replay", "The missed changes to send: all, or the latest of each row", {
      type: "string",
      enum: ["all", "latest"],
    }),
    inQuery("snapshot", "false omits the existing rows", FLAG),
    inHeader("Last-Event-ID", "The id of the last event; takes precedence over from_seq_id", TEXT),
  ],
  answers: {
    200: {
      description: "A stream of events that does not end",
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
  summary: "Open a WebSocket, to follow queries",
  description:
    "The token is sent in a header or in an authenticate message. x-websocket-messages lists the schemas of all messages.",
  access: "anyone",
  messages: { client: reference("ClientMessage"), server: reference("ServerMessage") },
  parameters: [
    inQuery("compress", "false, 0 or no: no message is compressed"),
    inQuery("serialization", "How messages are encoded", {
      type: "string",
      enum: ["json", "msgpack"],
      default: "json",
    }),
    inQuery("compression", "none: no message is compressed", {
      type: "string",
      enum: ["gzip", "none"],
      default: "gzip",
    }),
  ],
  answers: { 101: { description: "The connection is now a WebSocket" } },
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
    summary: "Version and date of the server",
    access: "local",
    answers: { 200: { description: "It works", content: jsonOf("Health") } },
  };
}

export const PROBE_OPERATIONS: Readonly<
  Record<"clusterHealth" | "live" | "metrics" | "openapi" | "ready", Operation>
> = {
  clusterHealth: {
    id: "clusterHealth",
    tag: "probes",
    summary: "The nodes of the cluster; a single server is its only node",
    access: "local",
    answers: { 200: { description: "The state", content: jsonOf("ClusterHealth") } },
  },
  live: {
    id: "healthLive",
    tag: "probes",
    summary: "Whether the process is alive",
    access: "anyone",
    answers: { 200: { description: "It does", content: jsonOf("Alive") } },
  },
  ready: {
    id: "healthReady",
    tag: "probes",
    summary: "Whether the server accepts requests",
    access: "anyone",
    answers: {
      200: { description: "It does", content: jsonOf("Readiness") },
      503: { description: "The server is shutting down", content: jsonOf("Readiness") },
    },
  },
  metrics: {
    id: "metrics",
    tag: "probes",
    summary: "Metrics for Prometheus",
    description: "Requires role dba or system, or an address in security.metrics_allow.",
    access: "bearer or address",
    answers: { 200: { description: "Text format 0.0.4", content: { "text/plain": TEXT } } },
    errors: { 403: ["INSUFFICIENT_PERMISSIONS"] },
  },
  openapi: {
    id: "openapi",
    tag: "probes",
    summary: "This description",
    access: "anyone",
    answers: {
      200: { description: "OpenAPI 3.1", content: { "application/json": { type: "object" } } },
    },
  },
};
