/**
 * Describes the WebSocket messages about topics as JSON Schema, each tied to its type in
 * `protocol`.
 */
import type {
  TopicControlMessage,
  TopicDelivery,
  TopicErrorMessage,
  TopicRequestMessage,
} from "../../protocol/mod.ts";
import type { Schema } from "../http/operation.ts";
import { bodyOf, COUNT, FLAG, optional, TEXT } from "./schema_forms.ts";
import { GROUP_ID, OFFSETS, ORDERED, TOPIC_ID, UPTO_OFFSET } from "./topic_schemas.ts";

export type TopicMessageSchemaName =
  | "AckMessages"
  | "AckResult"
  | "Consume"
  | "ConsumeAck"
  | "Credit"
  | "Messages"
  | "Nack"
  | "Stop"
  | "TopicFailure";

type RequestOf<Type extends TopicRequestMessage["type"]> = Extract<
  TopicRequestMessage,
  { type: Type }
>;
type AnswerOf<Type extends TopicControlMessage["type"]> = Extract<
  TopicControlMessage,
  { type: Type }
>;

function kind(
  name: TopicRequestMessage["type"] | TopicControlMessage["type"] | TopicDelivery["type"],
): Schema {
  return { type: "string", const: name };
}

const CONSUMER: Schema = {
  ...TEXT,
  minLength: 1,
  maxLength: 128,
  description: "The consumer id that the client chose in its consume message",
};
const PARTITION: Schema = { type: ["integer", "null"], minimum: 0, default: 0 };
const REQUEST: Schema = {
  ...TEXT,
  maxLength: 64,
  description: "A string that the client chooses; the response or the error repeats it",
};
const REPEATED: Schema = { ...TEXT, description: "The request_id from the client's message" };

export const TOPIC_MESSAGE_SCHEMAS: Readonly<Record<TopicMessageSchemaName, Schema>> = {
  Consume: bodyOf<RequestOf<"consume">>({
    type: kind("consume"),
    id: {
      ...CONSUMER,
      description:
        "A name that the client chooses; sending consume again with the same id replaces the " +
        "earlier consumer",
    },
    topic_id: TOPIC_ID,
    group_id: GROUP_ID,
    partition_id: optional({
      type: ["integer", "null"],
      minimum: 0,
      description: "If absent, the consumer receives messages from all partitions",
    }),
    start: optional({ $ref: "#/components/schemas/TopicStart" }),
    credit: optional({
      type: ["integer", "null"],
      minimum: 0,
      default: 100,
      description:
        "How many messages may be delivered until the client grants more credit; at most 10,000",
    }),
    ordered: optional(ORDERED),
  }),
  Credit: bodyOf<RequestOf<"credit">>({
    type: kind("credit"),
    id: CONSUMER,
    credit: {
      type: "integer",
      minimum: 1,
      description: "How many more messages may be delivered; the total credit is at most 10,000",
    },
  }),
  AckMessages: bodyOf<RequestOf<"topic_ack">>({
    type: kind("topic_ack"),
    id: CONSUMER,
    partition_id: optional(PARTITION),
    upto_offset: optional(UPTO_OFFSET),
    offsets: optional(OFFSETS),
    request_id: optional(REQUEST),
  }),
  Nack: bodyOf<RequestOf<"nack">>({
    type: kind("nack"),
    id: CONSUMER,
    partition_id: optional(PARTITION),
    offsets: {
      type: "array",
      items: COUNT,
      description:
        "Offsets of the messages to deliver again; messages already acknowledged stay " +
        "acknowledged",
    },
    delay_ms: optional({
      type: ["integer", "null"],
      minimum: 0,
      default: 0,
      description: "Delay before redelivery in milliseconds; at most a day",
    }),
    request_id: optional(REQUEST),
  }),
  Stop: bodyOf<RequestOf<"stop">>({
    type: kind("stop"),
    id: CONSUMER,
    drain: optional({
      type: ["boolean", "null"],
      default: false,
      description:
        "If true, no more messages are delivered, but acknowledgements are still accepted. If " +
        "false, the consumer ends, and its unacknowledged messages are delivered to other " +
        "consumers",
    }),
  }),
  ConsumeAck: bodyOf<AnswerOf<"consume_ack">>({ type: kind("consume_ack"), id: CONSUMER }),
  Messages: bodyOf<TopicDelivery>({
    type: kind("messages"),
    id: CONSUMER,
    messages: { type: "array", items: { $ref: "#/components/schemas/TopicMessage" } },
  }),
  AckResult: bodyOf<AnswerOf<"topic_ack_result">>({
    type: kind("topic_ack_result"),
    id: CONSUMER,
    partition_id: COUNT,
    acknowledged_offset: {
      type: "integer",
      minimum: -1,
      description:
        "The highest offset up to which every message has been acknowledged; -1 if there is none",
    },
    acknowledged: {
      ...COUNT,
      description: "The number of messages that this request acknowledged for the first time",
    },
    request_id: optional(REPEATED),
  }),
  TopicFailure: bodyOf<TopicErrorMessage>({
    type: kind("topic_error"),
    id: CONSUMER,
    code: { ...TEXT, description: "One of the topic error codes listed in errors.md" },
    message: { ...TEXT, description: "Human-readable message; never contains a secret" },
    ended: { ...FLAG, description: "Whether the error ended the consumer" },
    hint: optional({ ...TEXT, description: "How to fix the problem" }),
    request_id: optional(REPEATED),
  }),
};
