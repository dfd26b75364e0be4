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
      "The group has limits.topic_visibility_secs to acknowledge them; after that they are " +
      "delivered again. The request waits until there is a message or timeout_seconds have passed. " +
      "Requires role service or higher.",
    access: "bearer",
    body: {
      required: true,
      example: { topic_id: "chat.feed", group_id: "mailer", limit: 10, timeout_seconds: 30 },
      content: jsonOf("TopicConsumeRequest"),
    },
    answers: {
      200: { description: "Messages, if there are any", content: jsonOf("TopicConsume") },
    },
    errors: { ...ERRORS, 409: ["KILLED"] },
  },
  ack: {
    id: "ackTopic",
    tag: "data",
    summary: "Acknowledge messages of a topic for a group",
    description:
      "Acknowledging a message again changes nothing. ACK within an SQL transaction does it " +
      "together with the changes of the transaction. Requires role service or higher.",
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
    summary: "Return messages of a topic to their group",
    description:
      "They are delivered again, at once or after delay_ms, without waiting for " +
      "limits.topic_visibility_secs. A message that is not claimed does not change. Requires role " +
      "service or higher.",
    access: "bearer",
    body: {
      required: true,
      example: { topic_id: "chat.feed", group_id: "mailer", offsets: [41], delay_ms: 5000 },
      content: jsonOf("TopicNackRequest"),
    },
    answers: {
      200: { description: "The messages wait for their redelivery", content: jsonOf("TopicNack") },
    },
    errors: { ...ERRORS, 400: ["INVALID_INPUT", "INVALID_OFFSET"] },
  },
};
