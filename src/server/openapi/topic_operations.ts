/** Describes the operations of the topic endpoints. */
import type { Operation } from "../http/operation.ts";
import { jsonOf } from "./schemas.ts";

const ERRORS = {
  400: ["INVALID_INPUT"],
  403: ["FORBIDDEN"],
  404: ["NOT_FOUND"],
  500: ["INTERNAL_ERROR", "DATA_DAMAGED", "COMMIT_UNKNOWN"],
  507: ["STORAGE_FULL"],
} as const;

export const TOPIC_OPERATIONS: Readonly<Record<"ack" | "consume" | "nack", Operation>> = {
  consume: {
    id: "consumeTopic",
    tag: "data",
    summary: "Read messages from a topic as a consumer group",
    description:
      "The group has limits.topic_visibility_secs to acknowledge the messages; after that they " +
      "are delivered again. The request returns as soon as there is a message, or when " +
      "timeout_seconds have passed. Requires the role service or higher.",
    access: "bearer",
    body: {
      required: true,
      example: { topic_id: "chat.feed", group_id: "mailer", limit: 10, timeout_seconds: 30 },
      content: jsonOf("TopicConsumeRequest"),
    },
    answers: {
      200: {
        description: "The messages, or an empty list if none arrived in time",
        content: jsonOf("TopicConsume"),
      },
    },
    errors: { ...ERRORS, 409: ["KILLED"] },
  },
  ack: {
    id: "ackTopic",
    tag: "data",
    summary: "Acknowledge messages from a topic for a consumer group",
    description:
      "Acknowledging a message again has no effect. To acknowledge messages in the same commit " +
      "as other changes, use ACK in an SQL transaction. Requires the role service or higher.",
    access: "bearer",
    body: {
      required: true,
      example: { topic_id: "chat.feed", group_id: "mailer", upto_offset: 41 },
      content: jsonOf("TopicAckRequest"),
    },
    answers: {
      200: { description: "The acknowledgement is durable", content: jsonOf("TopicAck") },
    },
    errors: { ...ERRORS, 400: ["INVALID_INPUT", "INVALID_OFFSET"] },
  },
  nack: {
    id: "nackTopic",
    tag: "data",
    summary: "Return messages from a topic to their consumer group for redelivery",
    description:
      "The messages are delivered again immediately, or after delay_ms, without waiting for " +
      "limits.topic_visibility_secs. Messages that no consumer currently holds are unaffected. " +
      "Requires the role service or higher.",
    access: "bearer",
    body: {
      required: true,
      example: { topic_id: "chat.feed", group_id: "mailer", offsets: [41], delay_ms: 5000 },
      content: jsonOf("TopicNackRequest"),
    },
    answers: {
      200: { description: "The messages will be delivered again", content: jsonOf("TopicNack") },
    },
    errors: { ...ERRORS, 400: ["INVALID_INPUT", "INVALID_OFFSET"] },
  },
};
