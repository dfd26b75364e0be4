/**
 * The bodies of the wire contract as JSON Schema, each tied to its type in `protocol`: a field that
 * is added there, or becomes optional, does not compile here until it is described.
 */
import type {
  AliveBody,
  AuthStatusBody,
  ClusterHealthBody,
  ClusterNodeBody,
  ErrorBody,
  HealthBody,
  LoginBody,
  LoginRequestBody,
  LogoutRequestBody,
  MeBody,
  MessageBody,
  PlainErrorBody,
  ReadinessBody,
  RefreshRequestBody,
  SchemaField,
  SetupBody,
  SetupRequestBody,
  SqlRequestBody,
  SqlResponseBody,
  StatementEntry,
  UserBody,
} from "../../protocol/mod.ts";
import type { Content, Schema } from "../http/operation.ts";

/** A property that may be left out. */
interface Optional {
  readonly optional: Schema;
}

export type SchemaName =
  | "Alive"
  | "AuthStatus"
  | "ClusterHealth"
  | "ClusterNode"
  | "Error"
  | "Health"
  | "Login"
  | "LoginRequest"
  | "LogoutRequest"
  | "Me"
  | "Message"
  | "PlainError"
  | "Readiness"
  | "RefreshRequest"
  | "SchemaField"
  | "Setup"
  | "SetupRequest"
  | "SqlRequest"
  | "SqlResponse"
  | "Statement"
  | "User";

type Properties<Body> = {
  readonly [Key in keyof Body]-?: Partial<Pick<Body, Key>> extends Pick<Body, Key>
    ? Optional
    : Schema;
};

export const TEXT: Schema = { type: "string" };
const TEXT_OR_NULL: Schema = { type: ["string", "null"] };
const FLAG: Schema = { type: "boolean" };
const COUNT: Schema = { type: "integer", minimum: 0 };
const COUNT_OR_NULL: Schema = { type: ["integer", "null"], minimum: 0 };
const NUMBER_OR_NULL: Schema = { type: ["number", "null"] };
const TIME: Schema = { type: "string", format: "date-time", description: "RFC 3339 in UTC" };
const DATE: Schema = { type: "string", format: "date" };
const TOKEN: Schema = { type: "string", description: "A JWT" };
const PASSWORD: Schema = { type: "string", format: "password", maxLength: 4096 };
const RETRY: Optional = {
  optional: { ...COUNT, description: "Equals the header Retry-After" },
};

const USER: Schema = { ...TEXT, description: "Login name; the field may be called username, too" };

const ERROR: Schema = bodyOf<ErrorBody>({
  code: { ...TEXT, description: "A machine word, e.g. TABLE_NOT_FOUND" },
  message: { ...TEXT, description: "For people; names the object, and never a secret" },
  position: optional({ ...COUNT, description: "UTF-16 offset into the sql of the request" }),
  hint: optional({ ...TEXT, description: "What to do" }),
  statement: optional({ ...COUNT, description: "Index of the statement that failed, from 0" }),
  reason: optional({ ...TEXT, description: "A finer word for SQL_EXECUTION_ERROR" }),
  retry_after_seconds: RETRY,
  max_bytes: optional({ ...COUNT, description: "With 413: how large a body may be" }),
  size_bytes: optional({ ...COUNT, description: "With 413: how large it is" }),
  earliest_seq: optional({ ...COUNT, description: "With RESUME_EXPIRED: from where to resume" }),
  details: optional({ ...TEXT, description: "The internal cause, for admins only" }),
});

const PLAIN_ERROR: Schema = bodyOf<PlainErrorBody>({
  error: { ...TEXT, description: "A machine word, e.g. not_found" },
  message: { ...TEXT, description: "For people" },
  retry_after_seconds: RETRY,
  max_bytes: optional({ ...COUNT, description: "With 413: how large a body may be" }),
  size_bytes: optional({ ...COUNT, description: "With 413: how large it is" }),
  field: optional({ ...TEXT, description: "With weak_password: which field of the request" }),
});

const SCHEMA_FIELD: Schema = bodyOf<SchemaField>({
  name: { ...TEXT, description: "The column of the result" },
  data_type: {
    anyOf: [
      TEXT,
      {
        type: "object",
        description: "Decimal with precision and scale, or Embedding with its dimensions",
      },
    ],
    description:
      'A word such as "BigInt", {"Decimal":{"precision":p,"scale":s}} or {"Embedding":n}',
  },
  index: { ...COUNT, description: "Position, from 0" },
  flags: optional({
    type: "array",
    items: { type: "string", enum: ["pk", "nn", "uq"] },
    description: "Of plain columns: primary key, NOT NULL, unique",
  }),
});

const STATEMENT: Schema = bodyOf<StatementEntry>({
  schema: optional({ type: "array", items: reference("SchemaField") }),
  rows: optional({
    type: "array",
    items: { type: "array", items: {} },
    description: "Cells in the order of schema; present with it",
  }),
  row_count: { ...COUNT, description: "Rows returned or affected; 0 for definitions" },
  message: optional({ ...TEXT, description: "Of statements without rows" }),
  as_user: { ...TEXT, description: "The user that it ran as: the target of EXECUTE AS" },
  last_seq: optional({
    ...COUNT_OR_NULL,
    description: "Of changes: the highest _seq; null when no row changed, or before the COMMIT",
  }),
  notices: optional({
    type: "array",
    items: TEXT,
    description:
      "Effects that may be unintended, such as a stored moment whose number looks like milliseconds or seconds",
  }),
});

/** A form field is not JSON, so it is never null. */
export const IDEMPOTENCY_KEY: Schema = {
  type: "string",
  pattern: "^[\\x20-\\x7e]{1,128}$",
  description: "The same key and body get the first answer again",
};

const SQL_REQUEST: Schema = bodyOf<SqlRequestBody>({
  sql: { type: "string", minLength: 1, description: "One or more statements" },
  params: optional({
    type: ["array", "null"],
    items: { type: ["boolean", "null", "number", "string"] },
    description: "Values of $1, $2, …; for one statement, or one whole transaction",
  }),
  namespace_id: optional({
    ...TEXT_OR_NULL,
    description: "Namespace of names that say none",
    default: "default",
  }),
  timeout_ms: optional({
    type: ["integer", "null"],
    minimum: 1,
    description: "For the whole request; at most limits.max_timeout_ms",
  }),
  check: optional({
    type: ["boolean", "null"],
    default: false,
    description: "Parse, bind and authorise only: nothing runs",
  }),
  idempotency_key: optional({ ...IDEMPOTENCY_KEY, type: ["string", "null"] }),
});

const CLUSTER_NODE: Schema = bodyOf<ClusterNodeBody>({
  node_id: COUNT,
  role: { type: "string", enum: ["leader", "follower", "learner", "candidate"] },
  status: { type: "string", enum: ["active", "offline", "joining", "catching_up", "unknown"] },
  api_addr: TEXT,
  is_self: FLAG,
  is_leader: FLAG,
  replication_lag: COUNT_OR_NULL,
  catchup_progress_pct: NUMBER_OR_NULL,
  hostname: TEXT_OR_NULL,
  memory_usage_mb: NUMBER_OR_NULL,
  cpu_usage_percent: NUMBER_OR_NULL,
  uptime_seconds: COUNT_OR_NULL,
  uptime_human: TEXT_OR_NULL,
});

/** Every schema that has a name, by it. */
export const SCHEMAS: Readonly<Record<SchemaName, Schema>> = {
  Alive: bodyOf<AliveBody>({ status: { type: "string", const: "alive" } }),
  AuthStatus: bodyOf<AuthStatusBody>({
    needs_setup: { ...FLAG, description: "True exactly while root has no password" },
    message: TEXT,
    oidc_providers: {
      type: "array",
      items: bodyOf<AuthStatusBody["oidc_providers"][number]>({
        name: TEXT,
        label: TEXT,
        login_url: TEXT,
      }),
    },
  }),
  ClusterHealth: bodyOf<ClusterHealthBody>({
    status: { type: "string", enum: ["healthy", "degraded", "unhealthy"] },
    version: TEXT,
    build_date: DATE,
    is_cluster_mode: FLAG,
    cluster_id: TEXT,
    node_id: COUNT,
    is_leader: FLAG,
    total_groups: COUNT,
    groups_leading: COUNT,
    current_term: COUNT,
    last_applied: COUNT_OR_NULL,
    millis_since_quorum_ack: COUNT_OR_NULL,
    nodes: { type: "array", items: reference("ClusterNode") },
  }),
  ClusterNode: CLUSTER_NODE,
  Error: ERROR,
  Health: bodyOf<HealthBody>({
    status: { type: "string", const: "healthy" },
    api_version: { type: "string", const: "v1" },
    version: TEXT,
    build_date: DATE,
  }),
  Login: bodyOf<LoginBody>({
    access_token: { ...TOKEN, description: "For Authorization: Bearer" },
    expires_at: TIME,
    refresh_token: { ...TOKEN, description: "For the refresh, and for nothing else" },
    refresh_expires_at: TIME,
    user: reference("User"),
    admin_ui_access: { ...FLAG, description: "Whether the role is dba or system" },
  }),
  LoginRequest: strictBodyOf<LoginRequestBody>({
    user: { ...USER, maxLength: 128 },
    password: PASSWORD,
  }),
  LogoutRequest: strictBodyOf<LogoutRequestBody>({
    all: optional({
      type: ["boolean", "null"],
      description: "Every session of the user",
      default: false,
    }),
  }),
  Me: bodyOf<MeBody>({ user: reference("User"), admin_ui_access: FLAG }),
  Message: bodyOf<MessageBody>({ message: TEXT }),
  PlainError: PLAIN_ERROR,
  Readiness: bodyOf<ReadinessBody>({
    status: { type: "string", enum: ["ready", "draining"] },
    read_only: optional({
      ...FLAG,
      description:
        "Present while only reads, DELETE, DROP and changes of accounts run, for want of disk",
    }),
  }),
  RefreshRequest: strictBodyOf<RefreshRequestBody>({
    refresh_token: optional({ ...TEXT_OR_NULL, description: "Wins over header and cookie" }),
  }),
  SchemaField: SCHEMA_FIELD,
  Setup: bodyOf<SetupBody>({ user: reference("User"), message: TEXT }),
  SetupRequest: strictBodyOf<SetupRequestBody>({
    user: {
      ...USER,
      description: "Login name of the first DBA, not root; the field may be called username, too",
    },
    password: PASSWORD,
    root_password: PASSWORD,
    email: optional({ ...TEXT_OR_NULL, maxLength: 320 }),
  }),
  SqlRequest: SQL_REQUEST,
  SqlResponse: bodyOf<SqlResponseBody>({
    results: {
      type: "array",
      items: reference("Statement"),
      description: "One entry for each statement that completed, in order",
    },
    status: { type: "string", enum: ["success", "error"] },
    took: { type: "number", minimum: 0, description: "Milliseconds" },
    error: optional(reference("Error")),
  }),
  Statement: STATEMENT,
  User: bodyOf<UserBody>({
    id: TEXT,
    role: { type: "string", enum: ["user", "service", "dba", "system"] },
    email: TEXT_OR_NULL,
    created_at: TIME,
    updated_at: TIME,
  }),
};

/** Stands for a schema that has a name. */
export function reference(name: SchemaName): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** A JSON body with a schema that has a name. */
export function jsonOf(name: SchemaName): Content {
  return { "application/json": reference(name) };
}

function optional(schema: Schema): Optional {
  return { optional: schema };
}

/** Readers ignore fields that they do not know, so nothing is said of further ones. */
function bodyOf<Body>(given: Properties<Body>): Schema {
  const entries = Object.entries<Schema | Optional>(given);
  return {
    type: "object",
    properties: Object.fromEntries(
      entries.map(([name, it]) => [name, isOptional(it) ? it.optional : it]),
    ),
    required: entries.filter(([, it]) => !isOptional(it)).map(([name]) => name),
  };
}

/** A body that is refused if it has any other member. */
function strictBodyOf<Body>(given: Properties<Body>): Schema {
  return { ...bodyOf(given), additionalProperties: false };
}

function isOptional(property: Schema | Optional): property is Optional {
  return Object.hasOwn(property, "optional");
}
