/** Manages the webhooks of an open database. Each webhook in the catalog has one delivery. */
import type { Catalog } from "../../catalog/mod.ts";
import { type WebhookAccess, type WebhookState, webhookGroup, webhooksIn } from "../../sql/mod.ts";
import type { WebhookFigures } from "../contract.ts";
import { WebhookDelivery, type WebhookDeps } from "./webhook_delivery.ts";
import { webhookUrl } from "./webhook_url.ts";

/**
 * How long requests in flight may take to finish after the server is stopped or a webhook is
 * dropped.
 */
const GRACE_MS = 5000;

export class Webhooks implements WebhookAccess {
  readonly #catalog: Pick<Catalog, "topics">;
  readonly #deps: WebhookDeps;
  readonly #deliveries = new Map<number, WebhookDelivery>();
  /** Promises of deliveries that are ending. The deliveries themselves are in `#leaving`. */
  readonly #ending = new Set<Promise<void>>();
  readonly #leaving = new Set<WebhookDelivery>();
  /** The request counts of dropped webhooks. */
  #droppedDelivered = 0;
  #droppedFailed = 0;
  #isClosed = false;

  constructor(catalog: Pick<Catalog, "topics">, deps: WebhookDeps) {
    this.#catalog = catalog;
    this.#deps = deps;
    this.webhooksChanged();
  }

  requireUrl(url: string, position: number): void {
    webhookUrl(url, this.#deps.hosts, position);
  }

  webhooksChanged(): void {
    if (this.#isClosed) return;
    const placed = webhooksIn(this.#catalog);
    const kept = new Set(placed.map(({ webhook }) => webhook.webhookId));
    for (const [webhookId, delivery] of this.#deliveries) {
      if (kept.has(webhookId)) continue;
      this.#deliveries.delete(webhookId);
      void this.#end(delivery).then(() => {
        this.#droppedDelivered += delivery.deliveredCount;
        this.#droppedFailed += delivery.failedCount;
        return undefined;
      });
    }
    for (const { topic, webhook } of placed) {
      const known = this.#deliveries.get(webhook.webhookId);
      if (known !== undefined && Bun.deepEquals(known.webhook, webhook)) continue;
      const delivery = new WebhookDelivery(webhook, topic, this.#deps);
      this.#deliveries.set(webhook.webhookId, delivery);
      if (known === undefined) delivery.start();
      // An altered webhook starts delivering once the requests in flight have ended, which keeps
      // messages in order.
      else void this.#end(known).then(() => delivery.start(known));
    }
  }

  figures(): WebhookFigures {
    const statuses = { delivering: 0, retrying: 0, refused: 0 };
    let delivered = this.#droppedDelivered;
    let failed = this.#droppedFailed;
    for (const delivery of this.#deliveries.values()) statuses[statusOf(delivery)] += 1;
    // Until an altered webhook's old delivery has ended, its counts are reported as well.
    for (const delivery of [...this.#deliveries.values(), ...this.#leaving]) {
      delivered += delivery.deliveredCount;
      failed += delivery.failedCount;
    }
    return { ...statuses, delivered, failed };
  }

  states(): readonly WebhookState[] {
    const lags = new Map<string, { lagMessages: number; lagMs: number }>();
    for (const { group, lagMessages, lagMs } of this.#deps.topics.consumers()) {
      const lag = lags.get(group) ?? { lagMessages: 0, lagMs: 0 };
      lags.set(group, {
        lagMessages: lag.lagMessages + lagMessages,
        lagMs: Math.max(lag.lagMs, lagMs),
      });
    }
    const none = { lagMessages: 0, lagMs: 0 };
    return [...this.#deliveries.values()].map((delivery) =>
      stateOf(delivery, lags.get(webhookGroup(delivery.webhook)) ?? none),
    );
  }

  /** Ends all deliveries. Resolves once no request is in flight any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const delivery of this.#deliveries.values()) void this.#end(delivery);
    this.#deliveries.clear();
    await Promise.all(this.#ending);
  }

  #end(delivery: WebhookDelivery): Promise<void> {
    const ending = delivery
      .close(GRACE_MS)
      .catch((error: unknown) => this.#deps.onBug(error, "the end of a webhook"))
      .finally(() => {
        this.#ending.delete(ending);
        this.#leaving.delete(delivery);
      });
    this.#ending.add(ending);
    this.#leaving.add(delivery);
    return ending;
  }
}

function statusOf({ isRefused, isRetrying }: WebhookDelivery): WebhookState["status"] {
  if (isRefused) return "refused";
  return isRetrying ? "retrying" : "delivering";
}

function stateOf(
  delivery: WebhookDelivery,
  { lagMessages, lagMs }: Pick<WebhookState, "lagMessages" | "lagMs">,
): WebhookState {
  return {
    webhookId: delivery.webhook.webhookId,
    status: statusOf(delivery),
    deliveredCount: delivery.deliveredCount,
    failedCount: delivery.failedCount,
    lastDeliveredAtMs: delivery.lastDeliveredAtMs,
    lastFailedAtMs: delivery.lastFailedAtMs,
    lastError: delivery.lastError,
    lagMessages,
    lagMs,
  };
}
