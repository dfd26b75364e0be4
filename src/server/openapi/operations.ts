/**
 * What each endpoint takes and answers, in the words of the wire contract. Routes name theirs.
 */
import type { Operation, OperationParameter, Schema } from "../http/operation.ts";
import { IDEMPOTENCY_KEY, jsonOf, TEXT } from "./schemas.ts";

/** A `_seq` from a client. */
const POSITION: Schema = { type: ["integer", "string"], minimum: 0, pattern: "^\\d+$" };

/** The pattern of namespace and table names. */
const OBJECT_NAME: Schema = { type: "string", pattern: "^[A-Za-z][A-Za-z0-9_]{0,63}$" };

const FLAG: Schema = { type: "boolean" };

const SESSION_COOKIES = { "Set-Cookie": "tidemark_auth and tidemark_refresh, both HttpOnly" };

function inPath(name: string, description: string, schema: Schema = TEXT): OperationParameter {
  return { name, in: "path", description, schema, required: true };
}

function inQuery(name: string, description: string, schema: Schema = TEXT): OperationParameter {
  return { name, in: "query", description, schema };
}

function inHeader(name: string, description: string, schema: Schema = TEXT): OperationParameter {
  return { name, in: "header", description, schema };
}

const LOGIN = { user: "…", password: "…" };
const SETUP = { ...LOGIN, root_password: "…" };

/** `/v1/api/auth/…`, by its last segment. */
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
    summary: "Make the first DBA and give root its password, once",
    description: "For callers on the server's machine, unless auth.allow_remote_setup is true.",
    access: "anyone",
    body: { content: jsonOf("SetupRequest"), required: true, example: SETUP },
    answers: { 200: { description: "The DBA that was made", content: jsonOf("Setup") } },
    errors: {
      400: ["invalid_request", "invalid_user", "weak_password"],
      403: ["forbidden", "host_not_allowed"],
      409: ["already_configured", "user_exists"],
      429: ["rate_limited"],
      500: ["internal_error"],
    },
  },
  login: {
    id: "login",
    tag: "auth",
    summary: "Trade a name and a password for tokens",
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
    summary: "Trade a refresh token for new tokens",
    description: "The token that was used works for 30 seconds more; later use ends the session.",
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
    summary: "End the session of the token, or all of its user",
    description: "Succeeds without a token, too.",
    access: "any token or none",
    body: { content: jsonOf("LogoutRequest"), required: false },
    answers: {
      200: {
        description: "Done",
        content: jsonOf("Message"),
        headers: { "Set-Cookie": "Makes a browser forget both cookies" },
      },
    },
    errors: { 400: ["invalid_request"], 500: ["internal_error"] },
  },
  me: {
    id: "me",
    tag: "auth",
    summary: "Who the caller is",
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
    "Statements run in order, each a transaction of its own unless BEGIN says otherwise; the first " +
    "failure stops the rest. Files for FILE('x') come as parts file:x of a form. Accept chooses " +
    "NDJSON or CSV for a request with one statement that returns rows. A long answer is streamed: " +
    "if it fails late its status is 200, and the field status says error.",
  access: "bearer",
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
        "Idempotency-Replayed": "true when this is the answer of an earlier request",
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
    406: ["NOT_ACCEPTABLE"],
    409: ["IDEMPOTENCY_CONFLICT"],
    500: ["INTERNAL_ERROR", "DATA_DAMAGED", "COMMIT_UNKNOWN"],
    507: ["STORAGE_FULL"],
  },
};

/** Served under two paths. */
export function fileOperation(id: string): Operation {
  return {
    id,
    tag: "data",
    summary: "Download the bytes behind a FILE cell",
    access: "bearer",
    parameters: [
      inPath("namespace", "Of the table", OBJECT_NAME),
      inPath("table", "A USER or SHARED table", OBJECT_NAME),
      inPath("sub", "The field sub of the cell", { type: "string", pattern: "^f\\d{4,}$" }),
      inPath("stored_name", "The stored name, or the field id of the cell alone", {
        type: "string",
        pattern: "^\\d[^/\\\\]*$",
      }),
      inQuery("user_id", "Whose file, of a USER table; another user's needs role dba or system"),
      inHeader("Range", "One range of bytes"),
      inHeader("If-Range", "The ETag that the range belongs to"),
      inHeader("If-None-Match", "ETags that the caller has"),
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
        headers: { "Content-Range": "Which bytes these are" },
      },
      304: { description: "The caller has it" },
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
    "The rows there are in batches, then every change to them: events subscription_ack, " +
    "initial_data_batch, change and subscription_error, whose data is the JSON message that the " +
    "WebSocket sends. A request whose Accept names text/event-stream, as a browser's EventSource " +
    "sends it, is never answered with another status than 200, after which an EventSource would " +
    "not connect again: a refusal is the event subscription_error, whose data also has status, " +
    "and the end of the stream. Other clients get the statuses below.",
  access: "bearer or cookie",
  parameters: [
    { ...inQuery("sql", "The query to follow"), required: true },
    inQuery("namespace_id", "Namespace of names that say none", {
      ...TEXT,
      minLength: 1,
      default: "default",
    }),
    inQuery("params", "Values of $1, $2, … as the text of a JSON array"),
    inQuery("batch_size", "Rows of a batch", { type: "integer", minimum: 1 }),
    inQuery("last_rows", "Only the newest so many rows", { type: "integer", minimum: 0 }),
    inQuery("from_seq_id", "Resume after this _seq", POSITION),
    inQuery("replay", "Of missed changes: all, or the latest of each row", {
      type: "string",
      enum: ["all", "latest"],
    }),
    inQuery("snapshot", "false leaves out the rows there are", FLAG),
    inHeader("Last-Event-ID", "As from_seq_id, which it wins over", POSITION),
  ],
  answers: {
    200: { description: "Events, without an end", content: { "text/event-stream": TEXT } },
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
    "The token comes by header, or as the first message: " +
    '{"type":"authenticate","token":"…"}. Messages are not described here.',
  access: "anyone",
  parameters: [
    inQuery("compress", "false, 0 or no: no message is compressed"),
    inQuery("serialization", "How messages are written", {
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
  answers: { 101: { description: "The connection is a WebSocket from here on" } },
  errors: { 403: ["origin_not_allowed"], 426: ["upgrade_required"] },
};

/** Two paths have the same answer, so the id is the caller's. */
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
    summary: "The nodes of the cluster; a server alone is its only node",
    access: "local",
    answers: { 200: { description: "The state", content: jsonOf("ClusterHealth") } },
  },
  live: {
    id: "healthLive",
    tag: "probes",
    summary: "Whether the process lives",
    access: "anyone",
    answers: { 200: { description: "It does", content: jsonOf("Alive") } },
  },
  ready: {
    id: "healthReady",
    tag: "probes",
    summary: "Whether the server takes requests",
    access: "anyone",
    answers: {
      200: { description: "It does", content: jsonOf("Readiness") },
      503: { description: "It is shutting down", content: jsonOf("Readiness") },
    },
  },
  metrics: {
    id: "metrics",
    tag: "probes",
    summary: "Measures for Prometheus",
    description: "Needs role dba or system, or an address of security.metrics_allow.",
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

const HAS_IT = { 304: { description: "The caller has it" } };

export const CLIENT_OPERATIONS: Readonly<Record<"script" | "types", Operation>> = {
  script: {
    id: "clientScript",
    tag: "client",
    summary: "The client as a JavaScript module, for pages of any origin",
    access: "anyone",
    parameters: [inHeader("If-None-Match", "ETags that the caller has")],
    answers: {
      200: {
        description: "The module",
        content: { "text/javascript": TEXT },
        headers: { ETag: "Another for each content", "X-TypeScript-Types": "Where its types are" },
      },
      ...HAS_IT,
    },
    errors: { 404: ["not_found"] },
  },
  types: {
    id: "clientTypes",
    tag: "client",
    summary: "The TypeScript declarations of the client",
    access: "anyone",
    parameters: [inHeader("If-None-Match", "ETags that the caller has")],
    answers: {
      200: {
        description: "The declarations",
        content: { "application/typescript": TEXT },
        headers: { ETag: "Another for each content" },
      },
      ...HAS_IT,
    },
  },
};

export const UI_OPERATIONS: Readonly<Record<"asset" | "page" | "root", Operation>> = {
  root: {
    id: "root",
    tag: "ui",
    summary: "Leads to the admin page",
    access: "anyone",
    answers: { 302: { description: "To /ui", headers: { Location: "/ui" } } },
  },
  page: {
    id: "uiPage",
    tag: "ui",
    summary: "The admin page",
    access: "anyone",
    answers: { 200: { description: "The page", content: { "text/html": TEXT } } },
  },
  asset: {
    id: "uiAsset",
    tag: "ui",
    summary: "What the admin page loads; a path without extension is the page itself",
    access: "anyone",
    parameters: [inPath("path", "May have slashes")],
    answers: { 200: { description: "The asset", content: { "*/*": { description: "Bytes" } } } },
    errors: { 404: ["not_found"] },
  },
};
