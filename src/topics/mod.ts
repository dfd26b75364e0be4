/**
 * Exports topics, which offer the changes to tables as messages with offsets. Consumers read the
 * messages at their own pace.
 */
export type {
  ReadMessages,
  ReadOptions,
  TopicConsumers,
  TopicFigures,
  TopicLimits,
  TopicLog,
  TopicLogs,
  TopicNack,
  TopicStream,
  TopicStreamRequest,
  TopicStreamSink,
  WebhookFigures,
} from "./contract.ts";
export { DeadLetterCatalog } from "./dead_letter_source.ts";
export { TopicGroups } from "./groups/topic_groups.ts";
export { LocalTopics } from "./local_topics.ts";
export { type Post, posting } from "./webhooks/http_post.ts";
export { signatureHeader } from "./webhooks/webhook_request.ts";
export { Webhooks } from "./webhooks/webhooks.ts";
