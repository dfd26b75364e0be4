/**
 * Implements a request that waits until its group has messages. Thousands of requests may be
 * waiting, so each is a single object. The group, the deadline, the client's signal and KILL call
 * its methods, which avoids closures and suspended async functions.
 *
 *     fetching ──messages, deadline, client left, KILL, failure──► over
 *        │ ▲
 *        ▼ │ event, deadline, stop of the server
 *     waiting ──client left, KILL──► over
 */
import type { Clock } from "../../base/clock.ts";
import type { Deadlines, TimedItem } from "../../base/deadlines.ts";
import type { TopicConsumeRequest, TopicMessages } from "../../sql/mod.ts";
import type { ConsumerGroup, GroupWaiter } from "./consumer_group.ts";
import type { GroupConsumer } from "./group_consumers.ts";

/** The dependencies that all waiting requests share. */
export interface PollParts {
  readonly clock: Clock;
  /** The waiting requests, ordered by deadline. */
  readonly waiting: Deadlines<TopicPoll>;
  /** Whether the server is stopping, in which case no request may wait. */
  readonly isStopping: () => boolean;
}

type PollRequest = Pick<TopicConsumeRequest, "isOrdered" | "limit" | "signal" | "waitMs">;

export class TopicPoll implements TimedItem, EventListenerObject, GroupWaiter {
  heapIndex = -1;
  seenEvent = 0;
  readonly dueMs: number;
  readonly consumer: GroupConsumer;
  readonly #group: ConsumerGroup;
  readonly #parts: PollParts;
  readonly #signal: AbortSignal | undefined;
  readonly #limit: number;
  readonly #isOrdered: boolean;
  #isWaiting = false;
  readonly #resolve: (messages: TopicMessages) => void;
  readonly #reject: (error: unknown) => void;
  /** Settles when the request is over. */
  readonly messages: Promise<TopicMessages>;

  constructor(
    { isOrdered = false, limit, signal, waitMs = 0 }: PollRequest,
    { consumer, group, parts }: { consumer: GroupConsumer; group: ConsumerGroup; parts: PollParts },
  ) {
    this.consumer = consumer;
    this.dueMs = parts.clock.monotonicMs() + waitMs;
    this.#group = group;
    this.#parts = parts;
    this.#signal = signal;
    this.#limit = limit;
    this.#isOrdered = isOrdered;
    const { promise, reject, resolve } = Promise.withResolvers<TopicMessages>();
    this.messages = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    consumer.activeCount += 1;
    this.#fetch();
  }

  /** Called when there may be messages for the request, and when the server stops. */
  wake(): void {
    if (!this.#isWaiting) return;
    this.#endWait();
    this.#group.forget(this);
    this.#fetch();
  }

  onDue(): void {
    this.wake();
  }

  /** Called when the client of a waiting request has disconnected. */
  handleEvent(): void {
    if (this.#isWaiting) this.#leave();
  }

  /** Called when the consumer of a waiting request has been killed. */
  killed(): void {
    if (this.#isWaiting) this.#leave();
  }

  get #hasLeft(): boolean {
    return this.#signal?.aborted === true || this.consumer.isKilled;
  }

  #fetch(): void {
    this.seenEvent = this.#group.event;
    const { number } = this.consumer;
    this.#group
      .fetch({ limit: this.#limit, isOrdered: this.#isOrdered, consumer: number })
      .then((found) => this.#take(found))
      .catch((error: unknown) => {
        this.#end();
        this.#reject(error);
      });
  }

  #take(found: TopicMessages): void {
    if (this.#hasLeft) {
      this.#group.unclaim(found.messages);
      this.#endForGood();
      return;
    }
    const { clock, isStopping } = this.#parts;
    const isLast = isStopping() || this.dueMs <= clock.monotonicMs();
    if (found.messages.length === 0 && !isLast) {
      this.#wait();
      return;
    }
    this.#end();
    this.#resolve(found);
  }

  #wait(): void {
    this.#isWaiting = true;
    this.#parts.waiting.add(this);
    this.#signal?.addEventListener("abort", this);
    this.#group.wait(this);
  }

  #endWait(): void {
    this.#isWaiting = false;
    this.#parts.waiting.remove(this);
    this.#signal?.removeEventListener("abort", this);
  }

  #leave(): void {
    this.#endWait();
    this.#group.leave(this);
    this.#endForGood();
  }

  /** Ends the request because its client has disconnected or its consumer has been killed. */
  #endForGood(): void {
    this.#end();
    try {
      this.consumer.requireAlive();
    } catch (error) {
      this.#reject(error);
      return;
    }
    this.#resolve({ messages: [], nextOffset: this.#group.committed, hasMore: false });
  }

  #end(): void {
    this.consumer.activeCount -= 1;
    this.consumer.lastSeenMs = this.#parts.clock.monotonicMs();
  }
}
