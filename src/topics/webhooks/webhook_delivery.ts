/**
 * Delivers the messages of a topic to one webhook, as a consumer of its group.
 *
 *     stopped ──start──► opening ──► open ──close──► stopped
 *                           ▲          │
 *                           └──pause───┘ KILL, failure
 *
 * - A message is acknowledged after a 2xx response. Any other outcome is a negative
 *   acknowledgement, with a delay that grows with the number of deliveries. A message may
 *   therefore arrive twice, but none is lost. After the topic's MAX_DELIVERIES, the group moves
 *   the message to the dead letters.
 * - Each message in flight uses one credit of the stream. A failure withholds its credit for a
 *   time that grows with each consecutive failure, so a receiver that is down gets few requests.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import type { OutboundHosts } from "../../base/outbound_hosts.ts";
import type { Random } from "../../base/random.ts";
import type { SeldomLog } from "../../base/seldom_log.ts";
import type { TopicEntry, WebhookEntry } from "../../catalog/mod.ts";
import { type TopicMessage, webhookGroup } from "../../sql/mod.ts";
import type { TopicConsumers, TopicLimits, TopicStream } from "../contract.ts";
import type { Post, PostAnswer } from "./http_post.ts";
import { webhookRequest } from "./webhook_request.ts";
import { webhookUrl } from "./webhook_url.ts";

/** The delay after the first failure, in milliseconds. It doubles with each further failure. */
const DELAY_MS_MIN = 1000;
const DELAY_MS_MAX = 600_000;

/** The longest delay that a receiver may request. */
const RETRY_AFTER_MS_MAX = 3_600_000;

/** The maximum time for which a failed request may withhold its credit. */
const HOLD_MS_MAX = 30_000;

export interface WebhookDeps extends TopicLimits {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: SeldomLog;
  readonly onBug: OnBug;
  readonly hosts: OutboundHosts;
  readonly post: Post;
  readonly topics: TopicConsumers;
}

export class WebhookDelivery {
  readonly webhook: WebhookEntry;
  deliveredCount = 0;
  failedCount = 0;
  lastDeliveredAtMs: number | undefined;
  lastFailedAtMs: number | undefined;
  lastError: string | undefined;
  /** Whether the configuration forbids the webhook's URL. */
  isRefused = false;
  readonly #topic: Pick<TopicEntry, "name" | "namespace" | "topicId">;
  readonly #deps: WebhookDeps;
  readonly #running = new Set<Promise<void>>();
  readonly #timers = new Set<CancelTimer>();
  readonly #abort = new AbortController();
  #failuresInRow = 0;
  #stream: TopicStream | undefined;
  #isStopped = false;
  #url: URL | undefined;

  constructor(webhook: WebhookEntry, topic: TopicEntry, deps: WebhookDeps) {
    this.webhook = webhook;
    this.#topic = topic;
    this.#deps = deps;
  }

  /** Whether the last request to the webhook failed. */
  get isRetrying(): boolean {
    return this.lastError !== undefined;
  }

  /**
   * Begins delivering unless the delivery has already been closed.
   *
   * @param before The previous delivery, which has ended, if the webhook was altered.
   */
  start(before?: WebhookDelivery): void {
    this.deliveredCount = before?.deliveredCount ?? 0;
    this.failedCount = before?.failedCount ?? 0;
    this.lastDeliveredAtMs = before?.lastDeliveredAtMs;
    this.lastFailedAtMs = before?.lastFailedAtMs;
    if (this.#isStopped) return;
    try {
      this.#url = webhookUrl(this.webhook.url, this.#deps.hosts);
    } catch (error) {
      // The webhook's state shows the error. Nothing is delivered until the server restarts with
      // different settings.
      if (!isExpected(error)) throw error;
      this.isRefused = true;
      this.lastError = error.message;
      this.#deps.log.warn(
        "a webhook cannot deliver messages: the configuration does not allow its URL",
        {
          webhook: this.webhook.name,
        },
      );
      return;
    }
    this.#track(this.#open());
  }

  /**
   * Stops accepting messages, and waits for the requests in flight. Undelivered messages are
   * delivered again later.
   *
   * @param graceMs How long requests in flight may take to finish.
   */
  async close(graceMs: number): Promise<void> {
    this.#isStopped = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#stream?.drain();
    const cancelTimer = this.#deps.clock.after(graceMs, () => this.#abort.abort());
    await Promise.all(this.#running);
    cancelTimer();
    this.#stream?.close();
    this.#stream = undefined;
  }

  async #open(): Promise<void> {
    const { concurrency, createdAtMs, isOrdered, start } = this.webhook;
    const request = {
      topicId: this.#topic.topicId,
      group: webhookGroup(this.webhook),
      start:
        start === "earliest"
          ? ({ kind: "earliest" } as const)
          : ({ kind: "time", unixMs: createdAtMs } as const),
      credit: concurrency,
      isOrdered,
      userId: this.webhook.createdBy,
    };
    try {
      const stream = await this.#deps.topics.open(request, {
        messages: (messages) => this.#take(messages),
        ended: (error) => this.#reopen(error),
      });
      if (this.#isStopped) {
        stream.close();
        return;
      }
      this.#stream = stream;
      stream.start();
    } catch (error) {
      if (!isExpected(error)) throw error;
      this.#reopen(error);
    }
  }

  /** Reopens the stream after a pause, unless the topic has been dropped. */
  #reopen(error: Error): void {
    this.#stream = undefined;
    if (this.#isStopped) return;
    if (error instanceof DatabaseError && error.code === "OBJECT_NOT_FOUND") return;
    this.#noteFailure(`the messages of the webhook cannot be read: ${error.message}`);
    this.#after(this.#holdMs, () => this.#track(this.#open()));
  }

  #take(messages: readonly TopicMessage[]): boolean {
    for (const message of messages) this.#track(this.#deliver(message));
    return true;
  }

  /** Reports a bug in work that no caller awaits. */
  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#deps.onBug(error, "a webhook"))
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  async #deliver(message: TopicMessage): Promise<void> {
    const stream = this.#stream;
    const url = this.#url;
    if (stream === undefined || url === undefined) return;
    const answer = await this.#post(message, url);
    const { offset, partition } = message;
    try {
      if (answer.isDelivered) await stream.ack({ partition, offsets: [offset] });
      else
        await stream.nack({
          partition,
          offsets: [offset],
          delayMs: this.#delayMs(message, answer),
        });
    } catch (error) {
      // The error can be ignored: the message's claim expires by itself, and the message is
      // delivered again.
      if (!isExpected(error)) throw error;
      this.#deps.log.error("cannot acknowledge a message for a webhook", {
        webhook: this.webhook.name,
        error: error.message,
      });
    }
    if (answer.isDelivered) {
      this.#failuresInRow = 0;
      this.deliveredCount += 1;
      this.lastDeliveredAtMs = this.#deps.clock.nowMs();
      this.lastError = undefined;
      stream.addCredit(1);
    } else {
      this.#noteFailure(answer.reason);
      this.#after(this.#holdMs, () => stream.addCredit(1));
    }
  }

  #post(message: TopicMessage, url: URL): Promise<PostAnswer> {
    const { name, secret, timeoutSecs } = this.webhook;
    const { clock, post, visibilityMs } = this.#deps;
    const topicId = `${this.#topic.namespace}.${this.#topic.name}`;
    const request = webhookRequest(message, {
      topicId,
      webhook: name,
      secret,
      nowMs: clock.nowMs(),
    });
    // With a longer timeout, the message could be delivered again before the response arrives.
    const timeoutMs = Math.min(timeoutSecs * 1000, visibilityMs * 0.75);
    return post({ ...request, url, timeoutMs, signal: this.#abort.signal });
  }

  #noteFailure(reason: string): void {
    if (this.#isStopped) return;
    this.#failuresInRow += 1;
    this.failedCount += 1;
    this.lastFailedAtMs = this.#deps.clock.nowMs();
    this.lastError = reason;
    this.#deps.log.warn("a webhook failed", { webhook: this.webhook.name, reason });
  }

  /** Returns how long to wait before delivering a message again, in milliseconds. */
  #delayMs(
    { deliveries }: TopicMessage,
    { retryAfterMs = 0 }: PostAnswer & { isDelivered: false },
  ): number {
    if (this.#isStopped) return 0;
    const grownMs = Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(deliveries - 1, 20));
    // Spreads the delays. Otherwise messages that failed together would also be delivered again
    // together.
    const spreadMs = grownMs * (0.75 + 0.5 * this.#deps.random.unit());
    return Math.round(Math.max(spreadMs, Math.min(retryAfterMs, RETRY_AFTER_MS_MAX)));
  }

  get #holdMs(): number {
    return Math.min(HOLD_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(this.#failuresInRow - 1, 10));
  }

  #after(delayMs: number, work: () => void): void {
    if (this.#isStopped) return;
    const cancel = this.#deps.clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      work();
    });
    this.#timers.add(cancel);
  }
}
