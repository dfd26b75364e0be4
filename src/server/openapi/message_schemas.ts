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
    "Cells by column name: null, a boolean, a number, a string, or a list of numbers for an EMBEDDING",
};
const ROWS: Schema = { type: "array", items: ROW };

const SUBSCRIPTION_ID: Schema = {
  ...TEXT,
  description: "The id that the client gave in subscribe",
};

const OPTIONS = bodyOf<SubscribeOptions>({
  batch_size: optional({
    type: ["integer", "null"],
    minimum: 1,
    description: "Rows in one batch; websocket.max_batch_size is the maximum",
  }),
  last_rows: optional({
    type: ["integer", "null"],
    minimum: 0,
    description: "Load only this number of newest rows",
  }),
  from_seq_id: optional({
    ...POSITION,
    description: "Resume: send only changes after this _seq, and no snapshot",
  }),
  from: optional({
    ...POSITION,
    description: "Another name for from_seq_id, which takes precedence",
  }),
  replay: optional({
    type: ["string", "null"],
    enum: ["all", "latest"],
    description:
      "After a resume: every missed change (all, the default), or only the latest of each row",
  }),
  claims: optional({
    type: ["string", "null"],
    description:
      "Resume: the claims from the subscription_ack of the subscription whose position the client resumes from",
  }),
  way: optional({
    type: ["string", "null"],
    enum: ["maintained", "evaluated"],
    description:
      "How the result of a materialised query is kept current; the server chooses if absent",
  }),
});

const SPEC = bodyOf<SubscriptionSpec>({
  id: {
    type: "string",
    minLength: 1,
    maxLength: 128,
    description: "Any name; a second subscribe with the same id replaces the first",
  },
  sql: { type: "string", minLength: 1, description: "One SELECT, at most 65,536 bytes" },
  options: optional({
    anyOf: [messageReference("SubscribeOptions"), { type: "null" }],
    description: "Absent: the whole snapshot, then changes. null: only changes from now on",
  }),
  params: optional({ type: "array", items: {}, description: "Values of $1, $2, …" }),
  namespace_id: optional({
    type: ["string", "null"],
    description: "The namespace of table names without a namespace",
  }),
});

const BATCH_CONTROL = bodyOf<BatchControl>({
  batch_num: { ...COUNT, description: "Number of the batch, from 0" },
  has_more: {
    ...FLAG,
    description: "Whether rows remain; the client asks for the next batch with next_batch",
  },
  status: {
    type: "string",
    enum: ["loading", "ready"],
    description: "ready: the snapshot or the replay is complete, and live changes follow",
  },
  last_seq_id: {
    type: ["integer", "null"],
    minimum: 0,
    description: "The position that a resume continues from; null if this batch has none yet",
  },
});

const ERROR_MESSAGE = bodyOf<ErrorMessage>({
  type: kind("error"),
  subscription_id: {
    ...TEXT,
    description:
      "The subscription concerned; protocol, rate_limit or invalid_subscription if there is none",
  },
  code: { ...TEXT, description: "A code of the subscription codes in errors.md" },
  message: { ...TEXT, description: "Message for people; never contains a secret" },
  ended: { ...FLAG, description: "Whether the subscription is over" },
  position: optional({ ...COUNT, description: "UTF-16 offset into the sql of the subscription" }),
  hint: optional({ ...TEXT, description: "How to solve the problem" }),
  earliest_seq: optional({
    ...COUNT,
    description: "With RESUME_EXPIRED: the oldest position that can still be resumed from",
  }),
  retry_after_ms: optional({
    ...COUNT,
    description: "With RATE_LIMIT_EXCEEDED: how long to wait before sending again",
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
    method: optional({ ...TEXT, description: "jwt, the default and only method" }),
    token: { ...TEXT, description: "An access token from POST /v1/api/auth/login" },
    protocol: optional({
      type: ["object", "null"],
      properties: {
        serialization: { type: "string", enum: ["json", "msgpack"] },
        compression: { type: "string", enum: ["gzip", "none"] },
      },
      description: "How later messages are encoded; the query string of the URL decides otherwise",
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
      description: "May be absent if only one subscription is loading",
    }),
    last_seq_id: optional({ ...POSITION, description: "Accepted and ignored" }),
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
      description: "The pong repeats it; without an id, no pong is sent",
    }),
  }),
  AuthSuccess: bodyOf<ControlMessageOf<"auth_success">>({
    type: kind("auth_success"),
    user: { ...TEXT, description: "The user id" },
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
    message: { ...TEXT, description: "Message for people; the connection closes with code 1008" },
    code: optional({ ...TEXT, description: "A machine word, such as TOKEN_EXPIRED" }),
  }),
  SubscriptionAck: bodyOf<SubscriptionAck>({
    type: kind("subscription_ack"),
    subscription_id: SUBSCRIPTION_ID,
    total_rows: { type: "integer", description: "Always 0: the server does not count in advance" },
    batch_control: messageReference("BatchControl"),
    schema: {
      type: "array",
      items: messageReference("SchemaField"),
      description: "The columns of the query",
    },
    claims: optional({
      ...TEXT,
      description:
        "Stands for the claims of the client's token, if the query or a policy reads claims; return it in the options of a resume",
    }),
    key_columns: optional({
      type: "array",
      items: TEXT,
      description:
        "If the query is materialised, not followed row by row: the columns that make up _key; empty if _key is derived from all values in the row",
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
        "The order of the rows if the query has ORDER BY; rows with equal sort keys are ordered by _key",
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
        "With delete: the deleted rows. With update: the key, _seq and the columns that changed",
    }),
    reason: optional({
      type: "string",
      enum: ["expired"],
      description:
        'With delete: "expired" if the rows were deleted because they reached their table\'s TTL_SECONDS',
    }),
    ts: optional({ ...COUNT, description: "Time of the commit, in milliseconds since 1970" }),
    commit_seq: optional({ ...COUNT, description: "The highest _seq of the commit" }),
    commit_end: optional({
      ...FLAG,
      description:
        "If the query is materialised, not followed row by row: whether this is the last message of the commit, after which the rows equal the result of the query at commit_seq",
    }),
  }),
  SocketError: ERROR_MESSAGE,
  Pong: bodyOf<ControlMessageOf<"pong">>({
    type: kind("pong"),
    id: { ...TEXT, description: "The id of the ping" },
    positions: {
      type: "object",
      description: "For each subscription that is up to date: the position to resume from",
    },
  }),
  ...TOPIC_MESSAGE_SCHEMAS,
};
