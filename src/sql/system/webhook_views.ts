/** The views of webhooks and their deliveries: `system.webhooks` and SHOW WEBHOOKS. */
import { BIGINT, BOOLEAN, DATETIME, INT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { type PlacedWebhook, topicNameOf, webhookGroup, webhooksIn } from "../names/topics.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { WebhookState } from "../ports/ports.ts";
import type { PlainColumn } from "../result/result.ts";
import { ADMIN_ONLY, type ColumnList, microsOf, view } from "./system_view.ts";

/** The parts of the database that the webhook view reads. */
export type WebhookViewDeps = Pick<SqlEnvironment, "catalog" | "webhooks">;

const WEBHOOK_COLUMNS: ColumnList = [
  ["name", TEXT],
  ["topic_id", TEXT],
  ["url", TEXT],
  ["is_signed", BOOLEAN],
  ["is_ordered", BOOLEAN],
  ["start", TEXT],
  ["timeout_secs", INT],
  ["concurrency", INT],
  ["group_id", TEXT],
  ["status", TEXT],
  ["delivered", BIGINT],
  ["failed", BIGINT],
  ["last_error", TEXT],
  ["last_failed_at", DATETIME],
  ["last_delivered_at", DATETIME],
  ["lag_messages", BIGINT],
  ["lag_ms", BIGINT],
  ["created_by", TEXT],
  ["created_at", DATETIME],
];

export const SHOW_WEBHOOKS_COLUMNS: readonly PlainColumn[] = WEBHOOK_COLUMNS.map(
  ([name, type]) => ({ name, type }),
);

export function webhookViews(deps: WebhookViewDeps): [string, SystemView][] {
  return [["system.webhooks", view(WEBHOOK_COLUMNS, () => webhookRows(deps), ADMIN_ONLY)]];
}

/** Returns all webhooks, ordered by name. Secrets are omitted. */
export function webhookRows({ catalog, webhooks }: WebhookViewDeps): Row[] {
  const placed = webhooksIn(catalog);
  if (placed.length === 0) return [];
  const states = new Map(
    webhooks()
      .states()
      .map((state) => [state.webhookId, state]),
  );
  return placed.map((each) => webhookRow(each, states.get(each.webhook.webhookId)));
}

function webhookRow({ topic, webhook }: PlacedWebhook, state: WebhookState | undefined): Row {
  return [
    webhook.name,
    topicNameOf(topic),
    webhook.url,
    webhook.secret !== undefined,
    webhook.isOrdered,
    webhook.start,
    webhook.timeoutSecs,
    webhook.concurrency,
    webhookGroup(webhook),
    state?.status ?? null,
    state?.deliveredCount ?? null,
    state?.failedCount ?? null,
    state?.lastError ?? null,
    microsOf(state?.lastFailedAtMs),
    microsOf(state?.lastDeliveredAtMs),
    state?.lagMessages ?? null,
    state?.lagMs ?? null,
    webhook.createdBy,
    webhook.createdAtMs * 1000,
  ];
}
