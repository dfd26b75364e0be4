/**
 * Keeps track of the consumers of groups: which groups each reads, when each was last active, and
 * how each can be ended.
 *
 * All requests of a user in one partition of a group count as a single consumer. Each stream is a
 * consumer of its own.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { ConsumerGroup } from "./consumer_group.ts";

/** How long a consumer without messages may be idle before it is removed. */
const IDLE_MS_MAX = 600_000;

/** A stream that ends when its consumer is killed. */
export interface KilledStream {
  killed(): void;
}

/** A consumer that reads for one or more groups. */
export class GroupConsumer {
  /** The consumer's number, which is unique in this process. */
  readonly number: number;
  readonly userId: string;
  readonly groups: readonly ConsumerGroup[];
  /** When the consumer was last active, on the monotonic clock. */
  lastSeenMs: number;
  /** The number of waits and reads in progress. */
  activeCount = 0;
  isKilled = false;
  /** The consumer's stream; undefined if the consumer reads by HTTP requests. */
  stream: KilledStream | undefined;

  constructor(options: {
    number: number;
    userId: string;
    groups: readonly ConsumerGroup[];
    nowMs: number;
  }) {
    this.number = options.number;
    this.userId = options.userId;
    this.groups = options.groups;
    this.lastSeenMs = options.nowMs;
  }

  /** The name by which KILL finds the consumer. */
  get consumerId(): string {
    return `consumer-${this.number}`;
  }

  /**
   * Releases the messages that the consumer has claimed, so that other consumers can receive them.
   */
  release(): void {
    for (const group of this.groups) group.releaseAllOf(this.number);
  }

  /** Checks that the consumer has not been killed. @throws {DatabaseError} CANCELLED */
  requireAlive(): void {
    if (this.isKilled) {
      throw new DatabaseError(
        "CANCELLED",
        `Cannot read messages: the consumer ${this.consumerId} was killed`,
      );
    }
  }
}

export class GroupConsumers {
  readonly #clock: Clock;
  readonly #byNumber = new Map<number, GroupConsumer>();
  /** The consumers that read by HTTP requests, keyed by group and user. */
  readonly #byUser = new Map<ConsumerGroup, Map<string, GroupConsumer>>();
  #lastNumber = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#byNumber.size;
  }

  all(): IterableIterator<GroupConsumer> {
    return this.#byNumber.values();
  }

  /** Adds a consumer that reads through a stream. */
  add(userId: string, groups: readonly ConsumerGroup[]): GroupConsumer {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const nowMs = this.#clock.monotonicMs();
    const consumer = new GroupConsumer({ number, userId, groups, nowMs });
    this.#byNumber.set(number, consumer);
    return consumer;
  }

  /** Returns the consumer that represents all HTTP requests of a user in a group. */
  ofUser(userId: string, group: ConsumerGroup): GroupConsumer {
    const users = this.#byUser.get(group) ?? new Map<string, GroupConsumer>();
    this.#byUser.set(group, users);
    const known = users.get(userId);
    const consumer = known ?? this.add(userId, [group]);
    users.set(userId, consumer);
    consumer.lastSeenMs = this.#clock.monotonicMs();
    return consumer;
  }

  /** Ends a consumer and releases its messages, so that other consumers can receive them. */
  remove(consumer: GroupConsumer): void {
    this.#byNumber.delete(consumer.number);
    for (const group of consumer.groups) {
      const users = this.#byUser.get(group);
      if (users?.get(consumer.userId) === consumer) users.delete(consumer.userId);
      if (users?.size === 0) this.#byUser.delete(group);
    }
    consumer.release();
  }

  /** Ends a consumer and its stream. The caller has to end the consumer's waiting requests. */
  kill(consumerId: string): GroupConsumer | undefined {
    for (const consumer of this.#byNumber.values()) {
      if (consumer.consumerId !== consumerId) continue;
      consumer.isKilled = true;
      this.remove(consumer);
      consumer.stream?.killed();
      return consumer;
    }
    return undefined;
  }

  /** Removes consumers that have been idle for longer than the limit. */
  forgetIdle(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const users of this.#byUser.values()) {
      for (const consumer of users.values()) {
        const isIdle = consumer.activeCount === 0 && nowMs - consumer.lastSeenMs >= IDLE_MS_MAX;
        const { groups, number } = consumer;
        if (isIdle && !groups.some(({ window }) => window.claimsByConsumer().has(number))) {
          this.remove(consumer);
        }
      }
    }
  }

  /** Forgets the consumers of a closed group. */
  forgetGroup(group: ConsumerGroup): void {
    for (const consumer of this.#byUser.get(group)?.values() ?? []) this.remove(consumer);
  }
}
