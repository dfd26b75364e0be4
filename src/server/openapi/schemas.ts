/**
 * Describes the bodies of the HTTP endpoints as JSON Schema, each tied to its type in `protocol`,
 * and lists all named schemas.
 */
import type {
  AccountLinksBody,
  AliveBody,
  AuthStatusBody,
  ClusterHealthBody,
  ClusterNodeBody,
  DeleteRequestBody,
  EmailRequestBody,
  ErrorBody,
  HealthBody,
  LoginBody,
  LoginRequestBody,
  LogoutRequestBody,
  MeBody,
  MessageBody,
  PasswordRequestBody,
  PlainErrorBody,
  ProviderCodeRequestBody,
  ProviderLinkRequestBody,
  ProviderUnlinkRequestBody,
  ReadinessBody,
  RefreshRequestBody,
  ResetLinkRequestBody,
  ResetRequestBody,
  SchemaField,
  SetupBody,
  SetupRequestBody,
  SignUpRequestBody,
  SqlRequestBody,
  SqlResponseBody,
  StatementEntry,
  TopicErrorBody,
  TransactionBody,
  TransactionCommitRequestBody,
  TransactionRequestBody,
  UserBody,
  VerifyRequestBody,
} from "../../protocol/mod.ts";
import type { Content, Schema } from "../http/operation.ts";
import { MESSAGE_SCHEMAS, type MessageSchemaName } from "./message_schemas.ts";
import {
  bodyOf,
  COUNT,
  FLAG,
  type Optional,
  optional,
  strictBodyOf,
  TEXT,
} from "./schema_forms.ts";
import { TOPIC_SCHEMAS, type TopicSchemaName } from "./topic_schemas.ts";

export type SchemaName =
  | "Alive"
  | "AuthStatus"
  | "ClusterHealth"
  | "ClusterNode"
  | "DeleteRequest"
  | "Error"
  | "Health"
  | "Login"
  | "EmailRequest"
  | "LoginRequest"
  | "LogoutRequest"
  | "Me"
  | "Message"
  | "PasswordRequest"
  | "PlainError"
  | "ProviderCodeRequest"
  | "AccountLinks"
  | "ProviderLinkRequest"
  | "ProviderUnlinkRequest"
  | "Readiness"
  | "RefreshRequest"
  | "ResetLinkRequest"
  | "ResetRequest"
  | "SchemaField"
  | "Setup"
  | "SetupRequest"
  | "SignUpRequest"
  | "SqlRequest"
  | "SqlResponse"
  | "Statement"
  | "TopicError"
  | "Transaction"
  | "TransactionCommitRequest"
  | "TransactionRequest"
  | "User"
  | "VerifyRequest"
  | TopicSchemaName
  | MessageSchemaName;

const TEXT_OR_NULL: Schema = { type: ["string", "null"] };
const COUNT_OR_NULL: Schema = { type: ["integer", "null"], minimum: 0 };
const NUMBER_OR_NULL: Schema = { type: ["number", "null"] };
const TIME: Schema = { type: "string", format: "date-time", description: "RFC 3339 in UTC" };
const DATE: Schema = { type: "string", format: "date" };
const TOKEN: Schema = { type: "string", description: "A JWT" };
const PASSWORD: Schema = { type: "string", format: "password", maxLength: 4096 };
const RETRY: Optional = {
  optional: { ...COUNT, description: "The same value as in the Retry-After header" },
};

const USER: Schema = {
  ...TEXT,
  description: "The login name; the field may also be called username",
};

const ERROR: Schema = bodyOf<ErrorBody>({
  code: { ...TEXT, description: "Machine-readable code, such as TABLE_NOT_FOUND" },
  message: {
    ...TEXT,
    description: "Human-readable message; it names the object, but never contains a secret",
  },
  position: optional({
    ...COUNT,
    description: "Position of the error in the request's sql, as an offset in UTF-16 code units",
  }),
  hint: optional({ ...TEXT, description: "How to fix the problem" }),
  statement: optional({
    ...COUNT,
    description: "Index of the statement that failed, starting at 0",
  }),
  reason: optional({ ...TEXT, description: "With SQL_EXECUTION_ERROR: a more specific code" }),
  retry_after_seconds: RETRY,
  max_bytes: optional({ ...COUNT, description: "With 413: the maximum size of a request body" }),
  size_bytes: optional({ ...COUNT, description: "With 413: the size of this request's body" }),
  earliest_seq: optional({
    ...COUNT,
    description:
      "With RESUME_EXPIRED or the reason history_too_old: the earliest _seq at which the data " +
      "can still be read",
  }),
  details: optional({ ...TEXT, description: "The internal cause; only administrators receive it" }),
});

const PLAIN_ERROR: Schema = bodyOf<PlainErrorBody>({
  error: { ...TEXT, description: "Machine-readable code, such as not_found" },
  message: { ...TEXT, description: "Human-readable message" },
  retry_after_seconds: RETRY,
  max_bytes: optional({ ...COUNT, description: "With 413: the maximum size of a request body" }),
  size_bytes: optional({ ...COUNT, description: "With 413: the size of this request's body" }),
  field: optional({
    ...TEXT,
    description: "With weak_password: the request field whose password is too weak",
  }),
});

const SCHEMA_FIELD: Schema = bodyOf<SchemaField>({
  name: { ...TEXT, description: "The name of the result column" },
  data_type: {
    anyOf: [
      TEXT,
      {
        type: "object",
        description:
          "Decimal with precision and scale (both 0 for NUMERIC without a size), Embedding " +
          "with its number of dimensions, or Array with the type of its elements",
      },
    ],
    description:
      'A type name such as "BigInt", or {"Decimal":{"precision":p,"scale":s}}, {"Embedding":n} ' +
      'or {"Array":t}',
  },
  index: { ...COUNT, description: "Position of the column, starting at 0" },
  flags: optional({
    type: "array",
    items: { type: "string", enum: ["pk", "nn", "uq"] },
    description: "For table columns: pk (primary key), nn (NOT NULL) and uq (unique)",
  }),
});

const STATEMENT: Schema = bodyOf<StatementEntry>({
  schema: optional({ type: "array", items: reference("SchemaField") }),
  rows: optional({
    type: "array",
    items: { type: "array", items: {} },
    description:
      "The rows, each as an array of cells in the order of schema; present whenever schema is",
  }),
  row_count: {
    ...COUNT,
    description: "Number of rows returned or changed; 0 for statements that define objects",
  },
  message: optional({
    ...TEXT,
    description: "Human-readable result of a statement that returns no rows",
  }),
  as_user: {
    ...TEXT,
    description: "The user as whom the statement ran; with EXECUTE AS, its target",
  },
  last_seq: optional({
    ...COUNT_OR_NULL,
    description:
      "For statements that change rows: the highest _seq; null if no row changed, or if the " +
      "transaction is not yet committed",
  }),
  notices: optional({
    type: "array",
    items: TEXT,
    description:
      "Effects that may be unintended, such as storing a timestamp that was given in " +
      "milliseconds or seconds",
  }),
});

/** The schema of the idempotency key without null, because a form field is never null. */
export const IDEMPOTENCY_KEY: Schema = {
  type: "string",
  pattern: "^[\\x20-\\x7e]{1,128}$",
  description: "Requests with the same key and body run only once, however often they are sent",
};

const SQL_REQUEST: Schema = bodyOf<SqlRequestBody>({
  sql: { type: "string", minLength: 1, description: "One or more SQL statements" },
  params: optional({
    type: ["array", "null"],
    items: { type: ["array", "boolean", "null", "number", "object", "string"] },
    description:
      "Values for the parameters $1, $2, …; allowed with a single statement or a whole " +
      "transaction. A list becomes an array, BYTES, EMBEDDING or JSON, as the statement " +
      "requires; an object becomes JSON",
  }),
  namespace_id: optional({
    ...TEXT_OR_NULL,
    description: "Default namespace for unqualified names",
    default: "default",
  }),
  timeout_ms: optional({
    type: ["integer", "null"],
    minimum: 1,
    description:
      "How long the whole request may take, in milliseconds; at most limits.max_timeout_ms",
  }),
  check: optional({
    type: ["boolean", "null"],
    default: false,
    description: "If true, the statements are parsed, bound and authorised, but not run",
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

/** The caller's current password. */
const OWN_PASSWORD = optional({
  type: ["string", "null"],
  format: "password",
  maxLength: 4096,
  description: "The login name; absent for guests and for accounts created through a provider",
});

const PROVIDER_CODE = {
  code: {
    ...TEXT,
    maxLength: 256,
    description: "The value of tidemark_code from the URL fragment",
  },
  verifier: {
    ...TEXT,
    maxLength: 256,
    description: "The verifier whose SHA-256 hash was sent as the challenge when the login began",
  },
};

/** All named schemas. */
export const SCHEMAS: Readonly<Record<SchemaName, Schema>> = {
  Alive: bodyOf<AliveBody>({ status: { type: "string", const: "alive" } }),
  AuthStatus: bodyOf<AuthStatusBody>({
    needs_setup: { ...FLAG, description: "True until the root password has been set" },
    message: TEXT,
    setup_code_required: {
      ...FLAG,
      description: "Whether setup requires the code that the server printed when it started",
    },
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
  DeleteRequest: strictBodyOf<DeleteRequestBody>({
    password: OWN_PASSWORD,
    code: optional({
      ...TEXT,
      maxLength: 256,
      description: "The code from a new login, if the account has no password",
    }),
    verifier: optional({
      ...TEXT,
      maxLength: 256,
      description: "The verifier that belongs to code",
    }),
  }),
  Error: ERROR,
  Health: bodyOf<HealthBody>({
    status: { type: "string", const: "healthy" },
    api_version: { type: "string", const: "v1" },
    version: TEXT,
    build_date: DATE,
  }),
  Login: bodyOf<LoginBody>({
    access_token: { ...TOKEN, description: "An access token for the header Authorization: Bearer" },
    expires_at: TIME,
    refresh_token: {
      ...TOKEN,
      description: "A refresh token, accepted only by /v1/api/auth/refresh",
    },
    refresh_expires_at: TIME,
    user: reference("User"),
    admin_ui_access: {
      ...FLAG,
      description:
        "Whether the user may use the admin page, that is, whether the role is dba or system",
    },
  }),
  LoginRequest: strictBodyOf<LoginRequestBody>({
    user: { ...USER, maxLength: 320 },
    password: PASSWORD,
  }),
  LogoutRequest: strictBodyOf<LogoutRequestBody>({
    all: optional({
      type: ["boolean", "null"],
      description: "If true, end all sessions of the user",
      default: false,
    }),
  }),
  Me: bodyOf<MeBody>({ user: reference("User"), admin_ui_access: FLAG }),
  Message: bodyOf<MessageBody>({ message: TEXT }),
  PasswordRequest: strictBodyOf<PasswordRequestBody>({
    password: PASSWORD,
    new_password: PASSWORD,
  }),
  PlainError: PLAIN_ERROR,
  ProviderCodeRequest: strictBodyOf<ProviderCodeRequestBody>(PROVIDER_CODE),
  ProviderLinkRequest: strictBodyOf<ProviderLinkRequestBody>({
    ...PROVIDER_CODE,
    password: OWN_PASSWORD,
    own_code: optional({
      ...TEXT,
      maxLength: 256,
      description:
        "The code from a login at a provider that is already linked, if the account has no " +
        "password",
    }),
    own_verifier: optional({
      ...TEXT,
      maxLength: 256,
      description: "The verifier that belongs to own_code",
    }),
  }),
  AccountLinks: bodyOf<AccountLinksBody>({
    links: {
      type: "array",
      items: bodyOf<AccountLinksBody["links"][number]>({
        provider: { ...TEXT, description: "The name of the provider" },
        subject: { ...TEXT, description: "The id by which the provider identifies the person" },
        label: TEXT,
      }),
    },
  }),
  ProviderUnlinkRequest: strictBodyOf<ProviderUnlinkRequestBody>({
    provider: TEXT,
    subject: TEXT,
    password: OWN_PASSWORD,
  }),
  Readiness: bodyOf<ReadinessBody>({
    status: { type: "string", enum: ["ready", "draining"] },
    read_only: optional({
      ...FLAG,
      description:
        "Present while the disk is full and the server runs only reads, DELETE, DROP and " +
        "account changes",
    }),
  }),
  RefreshRequest: strictBodyOf<RefreshRequestBody>({
    refresh_token: optional({
      ...TEXT_OR_NULL,
      description: "The refresh token; takes precedence over the header and the cookie",
    }),
  }),
  SchemaField: SCHEMA_FIELD,
  Setup: bodyOf<SetupBody>({ user: reference("User"), message: TEXT }),
  ResetLinkRequest: strictBodyOf<ResetLinkRequestBody>({
    user: { ...TEXT, maxLength: 320, description: "A login name or an email address" },
  }),
  ResetRequest: strictBodyOf<ResetRequestBody>({ token: TEXT, password: PASSWORD }),
  SetupRequest: strictBodyOf<SetupRequestBody>({
    user: {
      ...USER,
      description:
        "The login name of the first DBA account, other than root; the field may also be called " +
        "username",
    },
    password: PASSWORD,
    root_password: PASSWORD,
    email: optional({ ...TEXT_OR_NULL, maxLength: 320 }),
    setup_code: optional({
      ...TEXT_OR_NULL,
      description: "The code that the server printed when it started, if setup requires it",
    }),
  }),
  SignUpRequest: strictBodyOf<SignUpRequestBody>({
    user: optional({
      ...TEXT_OR_NULL,
      maxLength: 128,
      description: "The login name; may be omitted if the email address can be used to log in",
    }),
    password: PASSWORD,
    email: optional({ ...TEXT_OR_NULL, maxLength: 320 }),
    invitation: optional({ ...TEXT_OR_NULL, description: "An invitation code" }),
  }),
  SqlRequest: SQL_REQUEST,
  SqlResponse: bodyOf<SqlResponseBody>({
    results: {
      type: "array",
      items: reference("Statement"),
      description: "The results of the completed statements, in order",
    },
    status: { type: "string", enum: ["success", "error"] },
    took: { type: "number", minimum: 0, description: "Milliseconds" },
    error: optional(reference("Error")),
  }),
  Statement: STATEMENT,
  Transaction: bodyOf<TransactionBody>({
    transaction_id: TEXT,
    state: { type: "string", enum: ["open", "failed", "committed", "rolled_back", "unknown"] },
    expires_at: optional(TIME),
    idle_timeout_ms: optional({
      ...COUNT,
      description:
        "How long the transaction may wait for the next request before it is rolled back",
    }),
    last_seq: optional({
      ...COUNT_OR_NULL,
      description: "The highest _seq of the committed transaction; null if it changed no rows",
    }),
    reason: optional({ ...TEXT, description: "Why the transaction is in this state" }),
  }),
  TransactionCommitRequest: bodyOf<TransactionCommitRequestBody>({
    idempotency_key: optional({ ...IDEMPOTENCY_KEY, type: ["string", "null"] }),
  }),
  TransactionRequest: bodyOf<TransactionRequestBody>({
    namespace_id: optional({
      ...TEXT_OR_NULL,
      description: "Default namespace for unqualified names, for requests that do not specify one",
      default: "default",
    }),
    isolation: optional({ type: ["string", "null"], enum: ["snapshot"], default: "snapshot" }),
    read_only: optional({ type: ["boolean", "null"], default: false }),
    timeout_ms: optional({
      type: ["integer", "null"],
      minimum: 1,
      description:
        "How long the transaction may stay open; at most limits.transaction_timeout_secs",
    }),
  }),
  TopicError: bodyOf<TopicErrorBody>({
    error: { ...TEXT, description: "Human-readable message; never contains a secret" },
    code: { ...TEXT, description: "Machine-readable code, such as INVALID_OFFSET" },
    hint: optional({ ...TEXT, description: "How to fix the problem" }),
    retry_after_seconds: RETRY,
    max_bytes: optional({ ...COUNT, description: "With 413: the maximum size of a request body" }),
    size_bytes: optional({ ...COUNT, description: "With 413: the size of this request's body" }),
  }),
  User: bodyOf<UserBody>({
    id: TEXT,
    role: { type: "string", enum: ["user", "service", "dba", "system"] },
    email: TEXT_OR_NULL,
    created_at: TIME,
    updated_at: TIME,
  }),
  EmailRequest: strictBodyOf<EmailRequestBody>({ password: PASSWORD, email: TEXT }),
  VerifyRequest: strictBodyOf<VerifyRequestBody>({ token: TEXT }),
  ...MESSAGE_SCHEMAS,
  ...TOPIC_SCHEMAS,
};

/** Returns a reference to a named schema. */
export function reference(name: SchemaName): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** Returns a JSON body with a named schema. */
export function jsonOf(name: SchemaName): Content {
  return { "application/json": reference(name) };
}
