/**
 * The request that delivers one message to a webhook.
 *
 *     Tidemark-Signature: t=<seconds>,v1=<hex HMAC-SHA256 of "<seconds>.<body>">
 *
 * The time is that of the attempt, so that a receiver can refuse replayed requests. The delivery id
 * identifies the message and is the same in every attempt.
 */
import type { TopicMessage } from "../../sql/mod.ts";

export interface WebhookRequest {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface WebhookRequestOptions {
  /** The topic's name, as "namespace.name". */
  readonly topicId: string;
  readonly webhook: string;
  /** The key for signatures; if absent, the request is not signed. */
  readonly secret: string | undefined;
  readonly nowMs: number;
}

export function webhookRequest(
  message: TopicMessage,
  { nowMs, secret, topicId, webhook }: WebhookRequestOptions,
): WebhookRequest {
  const { deliveries, offset, partition } = message;
  const body = bodyOf(message, topicId);
  const seconds = Math.floor(nowMs / 1000);
  return {
    body,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": "Tidemark",
      "Tidemark-Webhook": webhook,
      "Tidemark-Delivery": `${topicId}/${partition}/${offset}`,
      "Tidemark-Attempt": String(deliveries),
      ...(secret === undefined
        ? {}
        : { "Tidemark-Signature": `t=${seconds},v1=${signature({ body, secret, seconds })}` }),
    },
  };
}

function signature({
  body,
  seconds,
  secret,
}: {
  body: string;
  seconds: number;
  secret: string;
}): string {
  return new Bun.CryptoHasher("sha256", secret).update(`${seconds}.${body}`).digest("hex");
}

/** The payload is already JSON, so it is inserted into the text unchanged. */
function bodyOf(message: TopicMessage, topicId: string): string {
  const { deliveries, key, offset, op, partition, payload, timestampMs, user } = message;
  const rest = {
    topic_id: topicId,
    partition_id: partition,
    offset,
    key,
    timestamp_ms: timestampMs,
    ...(user === undefined ? {} : { user }),
    op,
    deliveries,
  };
  return `${JSON.stringify(rest).slice(0, -1)},"payload":${payload}}`;
}
