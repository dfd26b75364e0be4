/**
 * Implements a group in one partition: delivers messages and receives acknowledgements.
 *
 *     fetch ──count, read──► claims in the window ──► consumer
 *     prepareAck ──► row ──the caller's commit──► done: the window
 *
 * - The window in memory is authoritative. The row contains the part of it that survives a
 *   restart, which excludes claims.
 * - Only one fetch runs at a time, because a fetch reads from disk between examining the window
 *   and making its claims. Acknowledgements may arrive in the meantime, so each message is
 *   examined again after it has been read.
 * - An event (a commit, a nack, the end of a consumer or a deadline) wakes one waiting consumer.
 *   When that consumer has fetched, it wakes the next one if there are more messages. Each event
 *   wakes a consumer at most once.
 * - An idle group may be closed and opened again, because nothing refers to it and its row
 *   contains its entire state.
 */
import { assert } from "../../base/assert.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import type { SeldomLog } from "../../base/seldom_log.ts";
import type {
  PreparedTopicAck,
  TopicAckRequest,
  TopicMessage,
  TopicMessages,
} from "../../sql/mod.ts";
import type { TopicLimits, TopicLog } from "../contract.ts";
import {
  type GroupPlace,
  type GroupStore,
  groupWrite,
  isStoredState,
  storedGroup,
} from "./group_row.ts";
import { GroupWindow, WINDOW_MAX } from "./group_window.ts";

/**
 * The total payload size in bytes at which a fetch ends. The message that reaches it is included.
 */
const FETCH_BYTES_MAX = 8 * 1024 * 1024;

/** How many previously delivered messages are read at a time. */
const PIECE_MESSAGES = 256;

export interface GroupDeps extends TopicLimits {
  readonly clock: Clock;
  readonly store: GroupStore;
  readonly log: SeldomLog;
}

/** A consumer of the group that is waiting for messages. */
export interface GroupWaiter {
  /** The number of the last event reported to the waiter. */
  seenEvent: number;
  /** Called once, to end the consumer's wait. */
  wake(): void;
}

export interface FetchOptions {
  readonly limit: number;
  readonly isOrdered: boolean;
  /** The number of the consumer that is to receive the messages. */
  readonly consumer: number;
}

/** Moves messages that were delivered too often to the dead-letter topic. */
export interface Burial {
  /**
   * Returns the number of deliveries after which a message becomes a dead letter; undefined for no
   * limit.
   */
  deliveriesMax(): number | undefined;
  /**
   * Writes dead letters along with the acknowledgements of their messages, in the current tick.
   */
  bury(messages: readonly TopicMessage[]): void;
}

export class ConsumerGroup {
  readonly place: GroupPlace;
  readonly log: TopicLog;
  /** Handles messages that were delivered too often. Must be set before the first fetch. */
  burial: Burial | undefined;
  updatedAtMs: number;
  /** When the group was last used by a request, on the monotonic clock. */
  usedMs: number;
  readonly #deps: GroupDeps;
  readonly #waiters = new Set<GroupWaiter>();
  /** Cancels the topic's notifications, which only groups with waiting consumers receive. */
  #stopNews: (() => void) | undefined;
  #window: GroupWindow;
  /**
   * Messages before this offset may have been delivered before startup, or before a rolled-back
   * commit reset the window.
   */
  #restoredEnd: number;
  /**
   * Whether the row keys of some messages in the window are unknown, as they are after startup.
   */
  #hasUnknownKeys: boolean;
  /** The number of events caused by this group itself. */
  #ownEventCount = 0;
  #fetching: Promise<unknown> = Promise.resolve();
  #cancelTimer: CancelTimer | undefined;
  /**
   * The time up to which expired deadlines and delays have been reported as events, on the
   * monotonic clock.
   */
  #reportedMs: number;
  /** How many fetches, commits and callers need the group to stay open. */
  #holdCount = 0;
  #isClosed = false;

  /**
   * Opens a group that has a stored position. The changes for its topic must have been counted.
   *
   * @param options.isNew Whether the group cannot have received messages yet.
   * @param options.restoredEnd Messages before this offset may have been delivered before startup.
   */
  constructor(
    place: GroupPlace,
    deps: GroupDeps,
    { isNew, log, restoredEnd }: { isNew: boolean; log: TopicLog; restoredEnd: number },
  ) {
    this.place = place;
    this.log = log;
    this.#deps = deps;
    const stored = storedGroup(deps.store, place);
    assert(stored !== undefined, "consumer group: stored position is missing");
    this.#window = new GroupWindow(stored.state);
    this.updatedAtMs = stored.updatedAtMs;
    this.usedMs = deps.clock.monotonicMs();
    this.#reportedMs = this.usedMs;
    this.#restoredEnd = restoredEnd;
    this.#hasUnknownKeys = !isNew;
  }

  /** The committed offset: every message below it has been acknowledged. */
  get committed(): number {
    return this.#window.committed;
  }

  get window(): GroupWindow {
    return this.#window;
  }

  /** The number of the last event. A waiter remembers it before checking for messages. */
  get event(): number {
    return this.#ownEventCount + this.log.newsCount;
  }

  get #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  /** The number of counted messages not yet acknowledged. */
  get lagMessages(): number {
    const { claimCount, end, waitingCount } = this.#window;
    const unread = Math.max(0, this.log.nextOffset(this.place.partition) - end);
    return unread + claimCount + waitingCount;
  }

  /** Keeps the group open until the returned function is called. */
  hold(): () => void {
    this.#holdCount += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#holdCount -= 1;
      isHeld = false;
    };
  }

  /**
   * Whether no consumer is waiting, no message is claimed or delayed, and no work is in progress.
   */
  get isIdle(): boolean {
    if (this.#holdCount > 0 || this.#waiters.size > 0) return false;
    const nowMs = this.#nowMs;
    this.#window.expire(nowMs);
    return this.#window.claimCount === 0 && this.#window.nextDueMs(nowMs) === Infinity;
  }

  /**
   * Whether the stored position is up to date. If so, it contains the whole state of an idle
   * group.
   */
  get isStored(): boolean {
    return isStoredState(this.#deps.store, this.place, this.#window.state);
  }

  /** Records the event that there may be messages to deliver. */
  note(): void {
    this.#ownEventCount += 1;
    this.#wakeNext();
  }

  /** Waits for the next event that has not been reported to this waiter. */
  wait(waiter: GroupWaiter): void {
    if (waiter.seenEvent < this.event || this.#isClosed) {
      waiter.seenEvent = this.event;
      waiter.wake();
      return;
    }
    this.#waiters.add(waiter);
    this.#stopNews ??= this.log.onNews(() => this.#wakeNext());
    this.#setTimer();
  }

  /** Removes a waiter that is about to fetch. */
  forget(waiter: GroupWaiter): void {
    this.#waiters.delete(waiter);
    if (this.#waiters.size > 0) return;
    this.#stopTimer();
    this.#endNews();
  }

  /**
   * Removes a waiter that is not going to fetch. If it has already been woken, another is woken in
   * its place.
   */
  leave(waiter: GroupWaiter): void {
    const wasWoken = !this.#waiters.has(waiter);
    this.forget(waiter);
    // The event may be a commit whose changes have not been counted, so only a fetch can tell
    // whether there are messages.
    if (wasWoken) this.#wakeNext();
  }

  #wakeNext(): void {
    for (const waiter of this.#waiters) {
      if (waiter.seenEvent >= this.event) continue;
      this.#waiters.delete(waiter);
      waiter.seenEvent = this.event;
      waiter.wake();
      return;
    }
  }

  #passOn(isOrdered: boolean): void {
    if (this.#waiters.size > 0 && this.hasReady(isOrdered)) this.#wakeNext();
  }

  /**
   * Wakes a waiter when a claim or a message's delay expires. The timer fires at once if a
   * deadline has already passed without being reported.
   */
  #setTimer(): void {
    this.#stopTimer();
    if (this.#waiters.size === 0) return;
    const dueMs = this.#window.nextDueMs(this.#reportedMs);
    if (dueMs === Infinity) return;
    this.#cancelTimer = this.#deps.clock.after(Math.max(0, dueMs - this.#nowMs), () => {
      this.#cancelTimer = undefined;
      this.#reportedMs = this.#nowMs;
      this.note();
      this.#setTimer();
    });
  }

  #endNews(): void {
    this.#stopNews?.();
    this.#stopNews = undefined;
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Whether a fetch would find messages among those already counted. */
  hasReady(isOrdered: boolean): boolean {
    const window = this.#window;
    const isNew = window.end < this.log.nextOffset(this.place.partition);
    if (isNew && window.freeCount > 0) return true;
    const due = window.due(this.#nowMs, isOrdered ? WINDOW_MAX : 1);
    return due.some((offset) => !isOrdered || !window.isHeldByKey(offset));
  }

  /**
   * Claims messages for a consumer.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND if the topic has been dropped, DATA_DAMAGED,
   *   STORAGE_UNAVAILABLE
   */
  fetch(options: FetchOptions): Promise<TopicMessages> {
    const fetch = this.#fetching.then(() => this.#fetch(options));
    // A failure of this fetch goes only to its caller; the next fetch starts regardless.
    this.#fetching = fetch.catch(() => undefined).finally(this.hold());
    return fetch;
  }

  async #fetch(options: FetchOptions): Promise<TopicMessages> {
    await this.log.count();
    this.#window.forwardTo(this.log.earliestOffset(this.place.partition));
    if (options.isOrdered && this.#hasUnknownKeys) await this.#learnKeys();
    const taken = new Taken(options);
    await this.#takeDue(taken);
    await this.#takeNew(taken);
    if (taken.hasRedelivered) this.keepCounts();
    const hasMore = this.hasReady(options.isOrdered);
    this.#passOn(false);
    this.#setTimer();
    const last = taken.messages.at(-1);
    const nextOffset = last === undefined ? this.#window.committed : last.offset + 1;
    return { messages: taken.messages, nextOffset, hasMore };
  }

  /** Claims the messages in the window that are waiting and due. */
  async #takeDue(taken: Taken): Promise<void> {
    const { isOrdered } = taken;
    const countMax = isOrdered ? WINDOW_MAX : taken.missing;
    let offsets = this.#window.due(this.#nowMs, countMax);
    if (isOrdered) offsets = offsets.filter((offset) => !this.#window.isHeldByKey(offset));
    const deliveriesMax = this.burial?.deliveriesMax() ?? Infinity;
    const dead = offsets.filter((offset) => this.#window.deliveriesOf(offset) >= deliveriesMax);
    if (dead.length > 0) await this.#buryAll(dead);
    for (let at = 0; at < offsets.length && !taken.isFull; at += PIECE_MESSAGES) {
      const piece = offsets.slice(at, at + PIECE_MESSAGES);
      await this.#read(piece, (message) => {
        const { offset } = message;
        if (taken.isFull || !this.#window.isWaiting(offset)) return;
        if (isOrdered && this.#window.isHeldByKey(offset)) return;
        this.#claim(taken, message);
      });
    }
  }

  /** Reads messages in the window, and acknowledges those whose rows no longer exist. */
  async #read(
    offsets: readonly number[],
    onMessage: (message: TopicMessage) => void,
  ): Promise<void> {
    const gone = new Set(offsets);
    for (const message of await this.log.readOffsets(this.place.partition, offsets)) {
      gone.delete(message.offset);
      this.#window.setKey(message.offset, keyOf(message));
      onMessage(message);
    }
    if (gone.size > 0) this.#window.ack({ offsets: [...gone] });
  }

  async #buryAll(offsets: readonly number[]): Promise<void> {
    for (let at = 0; at < offsets.length; at += PIECE_MESSAGES) {
      const messages: TopicMessage[] = [];
      await this.#read(offsets.slice(at, at + PIECE_MESSAGES), (message) => {
        const deliveries = this.#window.deliveriesOf(message.offset);
        if (this.#window.isWaiting(message.offset)) messages.push({ ...message, deliveries });
      });
      this.burial?.bury(messages);
    }
  }

  /** Claims messages that have never been delivered to the group. */
  async #takeNew(taken: Taken): Promise<void> {
    const { partition } = this.place;
    while (!taken.isFull && this.#window.freeCount > 0) {
      const from = this.#window.end;
      if (from >= this.log.nextOffset(partition)) return;
      const limit = Math.min(taken.missing, this.#window.freeCount);
      const { bytesLeft: bytesMax } = taken;
      const { messages, upTo } = await this.log.read(partition, { from, limit, bytesMax });
      for (const message of messages) this.#takeNewOne(taken, message);
      this.#pushGone(upTo);
      if (this.#window.end === from) return;
    }
  }

  #takeNewOne(taken: Taken, message: TopicMessage): void {
    this.#pushGone(message.offset);
    // While the messages were being read, an acknowledgement of a delivery from before the restart
    // may have added this message to the window.
    if (this.#window.end > message.offset || this.#window.freeCount === 0) return;
    this.#window.push(keyOf(message));
    if (taken.isOrdered && this.#window.isHeldByKey(message.offset)) return;
    this.#claim(taken, message);
  }

  /** Adds the unreadable messages below an offset to the window as acknowledged messages. */
  #pushGone(upTo: number): void {
    while (this.#window.end < upTo && this.#window.freeCount > 0) {
      const offset = this.#window.end;
      this.#window.push(undefined);
      this.#window.ack({ offsets: [offset] });
    }
  }

  #claim(taken: Taken, message: TopicMessage): void {
    const deadlineMs = this.#nowMs + this.#deps.visibilityMs;
    const { consumer } = taken;
    const deliveries = this.#window.claim(message.offset, { consumer, deadlineMs });
    taken.add(deliveries === 1 ? message : { ...message, deliveries });
  }

  /**
   * Reads the unacknowledged messages in the window to learn their row keys, which the stored
   * position does not contain.
   */
  async #learnKeys(): Promise<void> {
    this.#hasUnknownKeys = false;
    const { committed, end } = this.#window;
    const offsets = Array.from({ length: end - committed }, (_, index) => committed + index);
    const unacked = offsets.filter((offset) => !this.#window.isAcked(offset));
    for (let at = 0; at < unacked.length; at += PIECE_MESSAGES) {
      await this.#read(unacked.slice(at, at + PIECE_MESSAGES), () => undefined);
    }
  }

  /**
   * Stores the delivery counts so that they survive when the group is removed from memory. No
   * caller waits for the write.
   */
  keepCounts(): void {
    try {
      this.#apply(this.#window.state);
    } catch (error) {
      // The error can be ignored: after a restart, the counts stored with the last acknowledgement
      // apply.
      if (!isExpected(error)) throw error;
      this.#deps.log.error("cannot store how often messages have been delivered", {
        group: this.place.group,
        error: error.message,
      });
    }
  }

  #apply(state: GroupWindow["state"]): void {
    const nowMs = this.#deps.clock.nowMs();
    const writes = [groupWrite(this.place, { isNew: false, nowMs, state })];
    this.#deps.store.apply({ writes, usesReserve: true });
    this.#guard();
  }

  /**
   * Checks an acknowledgement. See {@linkcode TopicAccess.prepareAck}.
   *
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE, LIMIT_EXCEEDED
   */
  prepareAck({ offsets, upTo }: TopicAckRequest): PreparedTopicAck {
    const highest = Math.max(upTo ?? -1, offsets?.at(-1) ?? -1);
    this.#requireDelivered(highest, upTo === undefined);
    const { count, state } = this.#window.plan({ offsets, upTo });
    const nowMs = this.#deps.clock.nowMs();
    const release = this.hold();
    return {
      writes: count === 0 ? [] : [groupWrite(this.place, { isNew: false, nowMs, state })],
      committedOffset: state.committed,
      acknowledgedCount: count,
      done: () => {
        release();
        if (count > 0) this.acknowledged({ offsets, upTo }, nowMs);
      },
      abandoned: release,
    };
  }

  /**
   * Records an acknowledgement in the window. Called in the tick in which the acknowledgement's
   * row has been applied.
   */
  acknowledged(request: Pick<TopicAckRequest, "offsets" | "upTo">, nowMs: number): void {
    if (Math.max(request.upTo ?? -1, request.offsets?.at(-1) ?? -1) >= this.#window.end) {
      this.#hasUnknownKeys = true;
    }
    // A consumer whose fetch is in progress may have found the window full and be about to wait,
    // so the event counts even if no consumer is waiting yet.
    const mayFreeMessages = this.#window.freeCount === 0 || this.#window.hasKeys;
    this.#window.ack(request);
    this.updatedAtMs = nowMs;
    this.#guard();
    if (mayFreeMessages) this.note();
  }

  /**
   * Checks that all messages up to an offset have been delivered.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE, LIMIT_EXCEEDED
   */
  #requireDelivered(offset: number, isSingle: boolean): void {
    const { committed, end } = this.#window;
    const { group, partition } = this.place;
    const knownEnd = Math.max(end, this.#restoredEnd);
    if (offset >= knownEnd) {
      throw new DatabaseError(
        "VALUE_OUT_OF_RANGE",
        `Cannot acknowledge offset ${offset} of partition ${partition}: group "${group}" has only received messages up to offset ${knownEnd - 1}`,
      );
    }
    if (isSingle && offset >= committed + WINDOW_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot acknowledge offset ${offset} of partition ${partition} individually: it is ` +
          `${WINDOW_MAX} or more above offset ${committed}, which the group has to acknowledge ` +
          "first",
      );
    }
  }

  /**
   * Puts messages back to be delivered again after a delay.
   *
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE if a message has never been delivered
   */
  nack(offsets: readonly number[], delayMs: number): void {
    this.#requireDelivered(Math.max(-1, ...offsets), true);
    const dueMs = this.#nowMs + delayMs;
    let count = 0;
    for (const offset of offsets) if (this.#window.release(offset, dueMs)) count += 1;
    if (count > 0) this.note();
    this.#setTimer();
  }

  /** Releases the messages of a consumer that is ending, for other consumers. */
  releaseAllOf(consumer: number): void {
    if (this.#window.releaseAllOf(consumer) > 0) this.note();
  }

  /** Revokes the claims on messages that did not reach their consumer. */
  unclaim(messages: readonly TopicMessage[]): void {
    for (const { offset } of messages) this.#window.unclaim(offset);
    if (messages.length > 0) this.note();
  }

  /**
   * Watches this tick's commit. If it is rolled back, its effects on the window are undone as
   * well.
   */
  #guard(): void {
    const { store } = this.#deps;
    const release = this.hold();
    // A failure of the commit is also reported to its writer.
    store
      .durable(store.appliedSeq)
      .catch(() => this.#reload())
      .finally(release);
  }

  #reload(): void {
    const stored = storedGroup(this.#deps.store, this.place);
    if (stored === undefined) return;
    this.#restoredEnd = Math.max(this.#restoredEnd, this.#window.end);
    const { redeliveries } = this.#window;
    this.#window = new GroupWindow(stored.state);
    this.#window.redeliveries = redeliveries;
    this.#hasUnknownKeys = true;
    this.note();
  }

  /**
   * Ends all waits, because the topic was dropped, the group is idle, or the database is closing.
   */
  close(): void {
    this.#isClosed = true;
    this.#endNews();
    this.#stopTimer();
    for (const waiter of this.#waiters) waiter.wake();
    this.#waiters.clear();
  }
}

/** The messages claimed by one fetch. */
class Taken {
  readonly messages: TopicMessage[] = [];
  readonly isOrdered: boolean;
  readonly consumer: number;
  hasRedelivered = false;
  bytesLeft = FETCH_BYTES_MAX;
  readonly #limit: number;

  constructor({ consumer, isOrdered, limit }: FetchOptions) {
    this.consumer = consumer;
    this.isOrdered = isOrdered;
    this.#limit = limit;
  }

  get missing(): number {
    return this.#limit - this.messages.length;
  }

  get isFull(): boolean {
    return this.missing <= 0 || this.bytesLeft <= 0;
  }

  add(message: TopicMessage): void {
    this.messages.push(message);
    this.bytesLeft -= message.payload.length;
    if (message.deliveries > 1) this.hasRedelivered = true;
  }
}

/**
 * Returns a key that identifies the message's row within its topic; undefined if the table has no
 * primary key.
 */
function keyOf({ key, user }: TopicMessage): string | undefined {
  if (key === null) return undefined;
  return user === undefined ? key : `${user} ${key}`;
}
