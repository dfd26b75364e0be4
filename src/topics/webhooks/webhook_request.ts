/**
 * Builds the request that delivers one message to a webhook.
 *
 *     Tidemark-Signature: t=<seconds>,v1=<hex HMAC-SHA256 of "<seconds>.<body>">
 *
 * The signature contains the time of the attempt, which lets a receiver refuse replayed requests.
 * The delivery id identifies the message and is the same for every attempt.
 */
import type { TopicMessage } from "../../sql/mod.ts";

export interface WebhookRequest {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface WebhookRequestOptions {
  /** The topic's name, "namespace.topic". */
  readonly topicId: string;
  readonly webhook: string;
  /** The signing key; undefined if requests are not signed. */
  readonly secret: string | undefined;
  readonly nowMs: number;
}

export function webhookRequest(
  message: TopicMessage,
  { nowMs, secret, topicId, webhook }: WebhookRequestOptions,
): WebhookRequest {
  const { deliveries, offset, partition } = message;
  const body = bodyOf(message, topicId);
  return {
    body,
    headers: {
      "Content-Type": "application/json",
      "User-Agent": "Tidemark",
      "Tidemark-Webhook": webhook,
      "Tidemark-Delivery": `${topicId}/${partition}/${offset}`,
      "Tidemark-Attempt": String(deliveries),
      ...signatureHeader(body, { nowMs, secret }),
    },
  };
}

/**
 * Returns the header with the signature of a body.
 *
 * @param options.secret The signing key; undefined if requests are not signed.
 */
export function signatureHeader(
  body: string,
  { nowMs, secret }: { nowMs: number; secret: string | undefined },
): Readonly<Record<string, string>> {
  if (secret === undefined) return {};
  const seconds = Math.floor(nowMs / 1000);
  const signature = new Bun.CryptoHasher("sha256", secret)
    .update(`${seconds}.${body}`)
    .digest("hex");
  return { "Tidemark-Signature": `t=${seconds},v1=${signature}` };
}

/** The payload is already JSON, so it is inserted as it is. */
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
