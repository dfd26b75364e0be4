/**
 * Describes the bodies of the topic endpoints as JSON Schema, each tied to its type in `protocol`.
 */
import type {
  TopicAckBody,
  TopicAckRequestBody,
  TopicConsumeBody,
  TopicConsumeRequestBody,
  TopicMessageBody,
  TopicNackBody,
  TopicNackRequestBody,
} from "../../protocol/mod.ts";
import type { Schema } from "../http/operation.ts";
import { bodyOf, COUNT, FLAG, optional, TEXT } from "./schema_forms.ts";

export type TopicSchemaName =
  | "TopicAck"
  | "TopicAckRequest"
  | "TopicConsume"
  | "TopicConsumeRequest"
  | "TopicMessage"
  | "TopicNack"
  | "TopicNackRequest"
  | "TopicStart";

export const TOPIC_ID: Schema = { ...TEXT, description: "namespace.topic" };
export const GROUP_ID: Schema = {
  ...TEXT,
  minLength: 1,
  description: "A name of at most 128 bytes; the group is created when it first reads",
};
const PARTITION: Schema = { type: ["integer", "null"], minimum: 0, default: 0 };
const ONE: Schema = { type: "integer", minimum: 0 };

/** The position at which a new group starts. */
const START: Schema = {
  description:
    "Where a group without a position starts: latest, earliest, an offset, or a time in " +
    "milliseconds since 1970",
  anyOf: [
    { ...TEXT, pattern: "^([Ll][Aa][Tt]|[Ee][Aa][Rr][Ll][Ii])[Ee][Ss][Tt]$" },
    { type: "object", properties: { Offset: ONE }, required: ["Offset"] },
    { type: "object", properties: { Timestamp: ONE }, required: ["Timestamp"] },
    { type: "null" },
  ],
};

export const ORDERED: Schema = {
  type: ["boolean", "null"],
  default: false,
  description:
    "If true, a message is delivered only after all earlier messages with the same key have " +
    "been acknowledged",
};

export const OFFSETS: Schema = {
  type: ["array", "null"],
  items: ONE,
  description: "Offsets of 1 to 10,000 individual messages, in any order",
};

export const UPTO_OFFSET: Schema = {
  type: ["integer", "null"],
  minimum: 0,
  description:
    "The last offset to acknowledge; all messages up to and including it are acknowledged",
};

export const TOPIC_SCHEMAS: Readonly<Record<TopicSchemaName, Schema>> = {
  TopicStart: START,
  TopicConsumeRequest: bodyOf<TopicConsumeRequestBody>({
    topic_id: TOPIC_ID,
    group_id: GROUP_ID,
    start: optional({ $ref: "#/components/schemas/TopicStart" }),
    limit: optional({
      type: ["integer", "null"],
      minimum: 1,
      default: 100,
      description:
        "Maximum number of messages to return, up to 10,000; the response ends earlier once " +
        "its payloads reach 8 MiB",
    }),
    partition_id: optional(PARTITION),
    timeout_seconds: optional({
      type: ["integer", "null"],
      minimum: 0,
      default: 0,
      description: "How long to wait for a message, in seconds; at most limits.max_poll_secs",
    }),
    ordered: optional(ORDERED),
  }),
  TopicMessage: bodyOf<TopicMessageBody>({
    topic_id: TOPIC_ID,
    partition_id: COUNT,
    offset: {
      ...COUNT,
      description: "Position of the message in its partition: the number of messages before it",
    },
    payload: {
      ...TEXT,
      description: "The message: base64-encoded JSON over HTTP, plain JSON over a WebSocket",
    },
    key: {
      type: ["string", "null"],
      description:
        "The primary key of the changed row; a JSON object if it has several columns; null if " +
        "there is none",
    },
    timestamp_ms: { ...COUNT, description: "Commit time, in milliseconds since 1970" },
    user: optional({ ...TEXT, description: "The owner of the row; absent if the table is SHARED" }),
    op: { type: "string", enum: ["Insert", "Update", "Delete"] },
    deliveries: {
      type: "integer",
      minimum: 1,
      description: "How often the message has been delivered to the group, including this delivery",
    },
  }),
  TopicConsume: bodyOf<TopicConsumeBody>({
    messages: { type: "array", items: { $ref: "#/components/schemas/TopicMessage" } },
    next_offset: {
      ...COUNT,
      description:
        "The offset after the last message; if there are no messages, the position of the group",
    },
    has_more: { ...FLAG, description: "Whether more messages are already available" },
  }),
  TopicAckRequest: bodyOf<TopicAckRequestBody>({
    topic_id: TOPIC_ID,
    group_id: GROUP_ID,
    upto_offset: optional(UPTO_OFFSET),
    offsets: optional(OFFSETS),
    partition_id: optional(PARTITION),
  }),
  TopicAck: bodyOf<TopicAckBody>({
    success: FLAG,
    acknowledged_offset: {
      type: "integer",
      minimum: -1,
      description:
        "The highest offset up to which every message has been acknowledged; -1 if there is none",
    },
  }),
  TopicNackRequest: bodyOf<TopicNackRequestBody>({
    topic_id: TOPIC_ID,
    group_id: GROUP_ID,
    offsets: { ...OFFSETS, type: "array" },
    delay_ms: optional({
      type: ["integer", "null"],
      minimum: 0,
      default: 0,
      description: "Delay before redelivery in milliseconds; at most a day",
    }),
    partition_id: optional(PARTITION),
  }),
  TopicNack: bodyOf<TopicNackBody>({ success: FLAG }),
};
