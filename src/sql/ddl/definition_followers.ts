/**
 * Defines the layers that must be notified of a new definition. In a transaction, they are
 * notified once the definition has been published.
 */
import type { LiveAccess, TopicAccess, WebhookAccess } from "../ports/ports.ts";

export interface DefinitionFollowers {
  readonly live: () => Pick<LiveAccess, "tableChanged" | "viewChanged">;
  readonly topics: () => Pick<TopicAccess, "holdOffsets" | "topicsChanged">;
  readonly webhooks: () => Pick<WebhookAccess, "requireUrl" | "webhooksChanged">;
}
