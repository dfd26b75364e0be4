/**
 * Describes the messages of `/v1/ws` as JSON Schema, each tied to its type in `protocol`.
 *
 * The schemas describe the JSON form. MessagePack has the same fields, except that it represents
 * integers beyond 2^53 − 1 as 64-bit integers instead of text.
 */
import type {
  BatchControl,
  ChangeMessage,
  ClientMessage,
  ControlMessage,
  ErrorMessage,
  InitialDataBatch,
  SortCollation,
  SortTerm,
  SubscribeOptions,
  SubscriptionAck,
  SubscriptionSpec,
} from "../../protocol/mod.ts";
import type { Schema } from "../http/operation.ts";
import { bodyOf, COUNT, FLAG, optional, TEXT } from "./schema_forms.ts";
import { TOPIC_MESSAGE_SCHEMAS, type TopicMessageSchemaName } from "./topic_message_schemas.ts";

type ClientMessageOf<Type extends ClientMessage["type"]> = Extract<ClientMessage, { type: Type }>;
type ControlMessageOf<Type extends ControlMessage["type"]> = Extract<
  ControlMessage,
  { type: Type }
>;

export type MessageSchemaName =
  | "AuthError"
  | "AuthSuccess"
  | "Authenticate"
  | "BatchControl"
  | "Change"
  | "ClientMessage"
  | "InitialDataBatch"
  | "NextBatch"
  | "Ping"
  | "Pong"
  | "ServerMessage"
  | "SocketError"
  | "Subscribe"
  | "SubscribeOptions"
  | "Subscription"
  | "SubscriptionAck"
  | "Unsubscribe"
  | TopicMessageSchemaName;

/** Returns a reference to one of the message schemas. */
function messageReference(name: MessageSchemaName | "SchemaField"): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

function kind(name: ClientMessage["type"] | ControlMessage["type"] | DataMessageType): Schema {
  return { type: "string", const: name };
}

type DataMessageType = "subscription_ack" | "initial_data_batch" | "change";

const POSITION: Schema = {
  type: ["integer", "string", "null"],
  minimum: 0,
  pattern: "^\\d+$",
};

const ROW: Schema = {
  type: "object",
  description:
    "The cells by column name; each is null, a boolean, a number, a string, or (for an " +
    "EMBEDDING) a list of numbers",
};
const ROWS: Schema = { type: "array", items: ROW };

const SUBSCRIPTION_ID: Schema = {
  ...TEXT,
  description: "The subscription id that the client chose in its subscribe message",
};

const OPTIONS = bodyOf<SubscribeOptions>({
  batch_size: optional({
    type: ["integer", "null"],
    minimum: 1,
    description: "Number of rows per batch; at most websocket.max_batch_size",
  }),
  last_rows: optional({
    type: ["integer", "null"],
    minimum: 0,
    description: "Load only this many of the newest rows",
  }),
  from_seq_id: optional({
    ...POSITION,
    description: "Resume: skip the snapshot and send only the changes after this _seq",
  }),
  from: optional({
    ...POSITION,
    description: "Alias of from_seq_id; ignored if both are present",
  }),
  replay: optional({
    type: ["string", "null"],
    enum: ["all", "latest"],
    description:
      "Which missed changes to send after a resume: all of them (all, the default), or only " +
      "the latest of each row (latest)",
  }),
  claims: optional({
    type: ["string", "null"],
    description:
      "For a resume: the claims value from the subscription_ack of the earlier subscription",
  }),
  way: optional({
    type: ["string", "null"],
    enum: ["maintained", "evaluated"],
    description:
      "How the server keeps the result of a materialised query up to date; if absent, the " +
      "server chooses",
  }),
});

const SPEC = bodyOf<SubscriptionSpec>({
  id: {
    type: "string",
    minLength: 1,
    maxLength: 128,
    description:
      "A name that the client chooses; subscribing again with the same id replaces the earlier " +
      "subscription",
  },
  sql: {
    type: "string",
    minLength: 1,
    description: "A single SELECT statement of at most 65,536 bytes",
  },
  options: optional({
    anyOf: [messageReference("SubscribeOptions"), { type: "null" }],
    description: "If absent: the whole snapshot, then changes. If null: only changes from now on",
  }),
  params: optional({
    type: "array",
    items: {},
    description: "Values for the parameters $1, $2, …",
  }),
  namespace_id: optional({
    type: ["string", "null"],
    description: "Default namespace for table names without one",
  }),
});

const BATCH_CONTROL = bodyOf<BatchControl>({
  batch_num: { ...COUNT, description: "Number of the batch, starting at 0" },
  has_more: {
    ...FLAG,
    description: "Whether there are more rows; the client requests the next batch with next_batch",
  },
  status: {
    type: "string",
    enum: ["loading", "ready"],
    description:
      "loading: more of the snapshot or replay follows; ready: it is complete, and live changes " +
      "follow",
  },
  last_seq_id: {
    type: ["integer", "null"],
    minimum: 0,
    description:
      "The position from which the client can resume; null if the batch does not provide one",
  },
});

const ERROR_MESSAGE = bodyOf<ErrorMessage>({
  type: kind("error"),
  subscription_id: {
    ...TEXT,
    description:
      "The id of the affected subscription; protocol, rate_limit or invalid_subscription if " +
      "there is none",
  },
  code: { ...TEXT, description: "One of the subscription error codes listed in errors.md" },
  message: { ...TEXT, description: "Human-readable message; never contains a secret" },
  ended: { ...FLAG, description: "Whether the error ended the subscription" },
  position: optional({
    ...COUNT,
    description:
      "Position of the error in the subscription's sql, as an offset in UTF-16 code units",
  }),
  hint: optional({ ...TEXT, description: "How to fix the problem" }),
  earliest_seq: optional({
    ...COUNT,
    description: "With RESUME_EXPIRED: the oldest position from which the client can still resume",
  }),
  retry_after_ms: optional({
    ...COUNT,
    description: "With RATE_LIMIT_EXCEEDED: how many milliseconds to wait before sending again",
  }),
});

/** The messages that a client sends, in the order in which they are used. */
export const CLIENT_MESSAGES: readonly MessageSchemaName[] = [
  "Authenticate",
  "Subscribe",
  "NextBatch",
  "Unsubscribe",
  "Ping",
  "Consume",
  "Credit",
  "AckMessages",
  "Nack",
  "Stop",
];

/** The messages that the server sends, in the order in which they are used. */
export const SERVER_MESSAGES: readonly MessageSchemaName[] = [
  "AuthSuccess",
  "AuthError",
  "SubscriptionAck",
  "InitialDataBatch",
  "Change",
  "SocketError",
  "Pong",
  "ConsumeAck",
  "Messages",
  "AckResult",
  "TopicFailure",
];

export const MESSAGE_SCHEMAS: Readonly<Record<MessageSchemaName, Schema>> = {
  ClientMessage: { anyOf: CLIENT_MESSAGES.map(messageReference) },
  ServerMessage: { anyOf: SERVER_MESSAGES.map(messageReference) },
  Authenticate: bodyOf<ClientMessageOf<"authenticate">>({
    type: kind("authenticate"),
    method: optional({
      ...TEXT,
      description: "The authentication method: jwt, which is the default and the only one",
    }),
    token: { ...TEXT, description: "An access token, such as one from POST /v1/api/auth/login" },
    protocol: optional({
      type: ["object", "null"],
      properties: {
        serialization: { type: "string", enum: ["json", "msgpack"] },
        compression: { type: "string", enum: ["gzip", "none"] },
      },
      description:
        "How later messages are encoded; settings in the URL's query string take precedence",
    }),
  }),
  Subscribe: bodyOf<ClientMessageOf<"subscribe">>({
    type: kind("subscribe"),
    subscription: messageReference("Subscription"),
  }),
  Subscription: SPEC,
  SubscribeOptions: OPTIONS,
  NextBatch: bodyOf<ClientMessageOf<"next_batch">>({
    type: kind("next_batch"),
    subscription_id: optional({
      ...TEXT,
      description: "May be omitted if only one subscription is loading",
    }),
    last_seq_id: optional({ ...POSITION, description: "Accepted for compatibility, but ignored" }),
  }),
  Unsubscribe: bodyOf<ClientMessageOf<"unsubscribe">>({
    type: kind("unsubscribe"),
    subscription_id: SUBSCRIPTION_ID,
  }),
  Ping: bodyOf<ClientMessageOf<"ping">>({
    type: kind("ping"),
    id: optional({
      type: "string",
      maxLength: 64,
      description: "An id that the pong repeats; without an id, the server sends no pong",
    }),
  }),
  AuthSuccess: bodyOf<ControlMessageOf<"auth_success">>({
    type: kind("auth_success"),
    user: { ...TEXT, description: "The id of the authenticated user" },
    role: { type: "string", enum: ["user", "service", "dba", "system"] },
    protocol: {
      ...bodyOf<ControlMessageOf<"auth_success">["protocol"]>({
        serialization: { type: "string", enum: ["json", "msgpack"] },
        compression: { type: "string", enum: ["gzip", "none"] },
      }),
      description: "How the server encodes data messages on this connection",
    },
  }),
  AuthError: bodyOf<ControlMessageOf<"auth_error">>({
    type: kind("auth_error"),
    message: {
      ...TEXT,
      description: "Human-readable message; the server then closes the connection with code 1008",
    },
    code: optional({ ...TEXT, description: "Machine-readable code, such as TOKEN_EXPIRED" }),
  }),
  SubscriptionAck: bodyOf<SubscriptionAck>({
    type: kind("subscription_ack"),
    subscription_id: SUBSCRIPTION_ID,
    total_rows: {
      type: "integer",
      description: "Always 0, because the server does not count the rows in advance",
    },
    batch_control: messageReference("BatchControl"),
    schema: {
      type: "array",
      items: messageReference("SchemaField"),
      description: "The columns of the query's result",
    },
    claims: optional({
      ...TEXT,
      description:
        "Identifies the values of the token's claims, if the query or a policy reads claims; " +
        "the client returns it in the options when it resumes",
    }),
    key_columns: optional({
      type: "array",
      items: TEXT,
      description:
        "For a materialised query: the columns that make up _key; empty if _key is derived " +
        "from all values in the row",
    }),
    sort: optional({
      type: "array",
      items: bodyOf<SortTerm>({
        column: TEXT,
        direction: { type: "string", enum: ["asc", "desc"] },
        nulls: { type: "string", enum: ["first", "last"] },
        collation: optional(
          bodyOf<SortCollation>({
            locale: TEXT,
            sensitivity: { type: "string", enum: ["base", "case", "accent", "variant"] },
            ignore_punctuation: { type: "boolean" },
            deterministic: { type: "boolean" },
          }),
        ),
      }),
      description:
        "The sort order of the rows if the query has an ORDER BY; rows with equal sort keys " +
        "are ordered by _key",
    }),
  }),
  InitialDataBatch: bodyOf<InitialDataBatch>({
    type: kind("initial_data_batch"),
    subscription_id: SUBSCRIPTION_ID,
    rows: ROWS,
    batch_control: messageReference("BatchControl"),
  }),
  BatchControl: BATCH_CONTROL,
  Change: bodyOf<ChangeMessage>({
    type: kind("change"),
    subscription_id: SUBSCRIPTION_ID,
    change_type: { type: "string", enum: ["insert", "update", "delete"] },
    rows: {
      ...ROWS,
      description: "The rows after the change; empty for a delete",
    },
    old_values: optional({
      ...ROWS,
      description:
        "For a delete: the deleted rows. For an update: the old values of the key, _seq and " +
        "the changed columns",
    }),
    reason: optional({
      type: "string",
      enum: ["expired"],
      description:
        `For a delete: "expired" if the rows were deleted because they had reached the table's ` +
        "TTL_SECONDS",
    }),
    ts: optional({ ...COUNT, description: "Commit time, in milliseconds since 1970" }),
    commit_seq: optional({ ...COUNT, description: "The highest _seq in the commit" }),
    commit_end: optional({
      ...FLAG,
      description:
        "For a materialised query: whether this is the last message of the commit; after it, " +
        "the client's rows equal the result of the query at commit_seq",
    }),
  }),
  SocketError: ERROR_MESSAGE,
  Pong: bodyOf<ControlMessageOf<"pong">>({
    type: kind("pong"),
    id: { ...TEXT, description: "The id from the ping" },
    positions: {
      type: "object",
      description:
        "Maps each subscription that is up to date to the position from which it can resume",
    },
  }),
  ...TOPIC_MESSAGE_SCHEMAS,
};
