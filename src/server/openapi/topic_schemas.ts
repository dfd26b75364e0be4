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
  description: "Any name of at most 128 bytes; the group is created when it first reads",
};
const PARTITION: Schema = { type: ["integer", "null"], minimum: 0, default: 0 };
const ONE: Schema = { type: "integer", minimum: 0 };

/** The position at which a new group starts. */
const START: Schema = {
  description:
    "Where a group without a position begins: latest, earliest, an offset, or a time in milliseconds since 1970",
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
    "Whether no message is delivered while an earlier one of its key is not acknowledged",
};

export const OFFSETS: Schema = {
  type: ["array", "null"],
  items: ONE,
  description: "Individual messages, 1 to 10,000 of them, in any order",
};

export const UPTO_OFFSET: Schema = {
  type: ["integer", "null"],
  minimum: 0,
  description: "Inclusive: every message up to this one",
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
        "The maximum number of messages, up to 10,000; payloads of 8 MiB end a response earlier",
    }),
    partition_id: optional(PARTITION),
    timeout_seconds: optional({
      type: ["integer", "null"],
      minimum: 0,
      default: 0,
      description: "How long to wait for a message, at most limits.max_poll_secs",
    }),
    ordered: optional(ORDERED),
  }),
  TopicMessage: bodyOf<TopicMessageBody>({
    topic_id: TOPIC_ID,
    partition_id: COUNT,
    offset: { ...COUNT, description: "The number of earlier messages in the partition" },
    payload: { ...TEXT, description: "Base64 of JSON over HTTP; JSON text on a socket" },
    key: {
      type: ["string", "null"],
      description: "The primary key; a JSON object for several columns; null without one",
    },
    timestamp_ms: { ...COUNT, description: "Time of the commit, in milliseconds since 1970" },
    user: optional({ ...TEXT, description: "The owner of the row; absent in a SHARED table" }),
    op: { type: "string", enum: ["Insert", "Update", "Delete"] },
    deliveries: {
      type: "integer",
      minimum: 1,
      description: "The number of deliveries to the group, including this one",
    },
  }),
  TopicConsume: bodyOf<TopicConsumeBody>({
    messages: { type: "array", items: { $ref: "#/components/schemas/TopicMessage" } },
    next_offset: {
      ...COUNT,
      description: "The offset after the last message; without messages, the group's position",
    },
    has_more: { ...FLAG, description: "Whether more messages are available at once" },
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
      description: "The highest offset up to which every message is acknowledged; -1 for none",
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
      description: "The delay before redelivery, at most a day",
    }),
    partition_id: optional(PARTITION),
  }),
  TopicNack: bodyOf<TopicNackBody>({ success: FLAG }),
};
