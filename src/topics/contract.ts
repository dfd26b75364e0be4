/**
 * Defines the interface that topics offer to the layers above. The messages of a topic are the
 * changes to its source tables.
 *
 * - A message's offset is the number of earlier messages in its partition, in seq order. It
 *   depends only on the history of the tables and the definition of the topic, so no restart,
 *   crash, restore or merge of segments changes it.
 * - Writers do nothing for topics. Changes are counted when a caller reads, waits or queries them.
 * - A counted message keeps its offset. If its row version can no longer be read, there is no
 *   message at that offset.
 */

import type { DatabaseError } from "../base/errors.ts";
import type { TopicEntry } from "../catalog/mod.ts";
import type {
  PreparedTopicAck,
  TopicAccess,
  TopicAckRequest,
  TopicMessage,
  TopicStart,
  WebhookState,
} from "../sql/mod.ts";

export interface TopicLimits {
  /**
   * How long, in milliseconds, a consumer may take to acknowledge a message before it is delivered
   * again.
   */
  readonly visibilityMs: number;
}

/** A page of messages read from one partition. */
export interface ReadMessages {
  /** The messages in ascending order of offset, without unreadable messages. */
  readonly messages: readonly TopicMessage[];
  /**
   * The exclusive end: every message below this offset has either been returned or cannot be read.
   */
  readonly upTo: number;
}

export interface ReadOptions {
  /**
   * The offset at which to start reading. If that message is no longer kept, reading starts at the
   * oldest message.
   */
  readonly from: number;
  /** The maximum number of messages to return, at least 1. */
  readonly limit: number;
  /**
   * The total payload size, in bytes, at which the read ends. The message that reaches it is
   * included. Defaults to 8 MiB.
   */
  readonly bytesMax?: number | undefined;
}

/** A topic's offsets and messages. */
export interface TopicLog {
  readonly entry: TopicEntry;
  /** The seq up to which all changes have offsets. */
  readonly countedSeq: number;
  /** The seq above which source tables must keep their history for the topic. */
  readonly heldSeq: number;
  /** The offset of the oldest message kept in a partition; `nextOffset` if no message is kept. */
  earliestOffset(partition: number): number;
  /** The offset after the last counted message of a partition. */
  nextOffset(partition: number): number;
  /**
   * Assigns offsets to all changes that are visible at the time of the call.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND once the topic has been dropped, SHUTTING_DOWN;
   *   STORAGE_UNAVAILABLE, DATA_DAMAGED if the disk cannot be read; DISK_FULL if too many counted
   *   messages cannot be stored
   */
  count(): Promise<void>;
  /** Converts a starting position within the counted messages to an offset. */
  offsetAt(partition: number, start: TopicStart): Promise<number>;
  /**
   * Reads counted messages in order.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND, SHUTTING_DOWN, STORAGE_UNAVAILABLE, DATA_DAMAGED
   */
  read(partition: number, options: ReadOptions): Promise<ReadMessages>;
  /**
   * Reads counted messages at the given offsets, which must ascend. Throws the errors of `read`.
   */
  readOffsets(partition: number, offsets: readonly number[]): Promise<readonly TopicMessage[]>;
  /**
   * Returns the time at which a counted message was committed; undefined if the message has been
   * discarded.
   */
  committedMs(partition: number, offset: number): number | undefined;
  /**
   * The number of events so far that trigger the callbacks of `onNews`. An event is counted in the
   * tick in which it occurs.
   */
  readonly newsCount: number;
  /**
   * Calls back in the tick in which a source table has changed, or in the next tick, before the
   * changes are counted. Also calls back when the topic is dropped or the server stops, after
   * which reads fail. Several commits may lead to a single call. Returns a function that cancels
   * the callback.
   */
  onNews(callback: () => void): () => void;
}

/** All topics in a database. */
export interface TopicLogs {
  log(topicId: number): TopicLog | undefined;
  /** Called after topics have changed. See {@linkcode TopicAccess}. */
  readonly topicsChanged: TopicAccess["topicsChanged"];
  /** Makes the offsets of a table's topics durable. See {@linkcode TopicAccess}. */
  readonly holdOffsets: TopicAccess["holdOffsets"];
  /** Returns the states of all topics. See {@linkcode TopicAccess}. */
  readonly states: TopicAccess["states"];
  /** Makes the offsets of counted messages durable, and ends all work of the topics. */
  close(): Promise<void>;
}

/** A negative acknowledgement, which requests that messages be delivered again. */
export interface TopicNack {
  readonly topicId: number;
  readonly partition: number;
  readonly group: string;
  readonly offsets: readonly number[];
  /** How long to wait before the messages are delivered again, in milliseconds. */
  readonly delayMs: number;
}

export interface TopicStreamRequest {
  readonly topicId: number;
  readonly group: string;
  /** The partition to consume; undefined for all partitions. */
  readonly partition?: number | undefined;
  /** Where to start in partitions in which the group has no position. */
  readonly start: TopicStart;
  /** The number of messages that may be delivered before more credit is granted. */
  readonly credit: number;
  /** Whether messages are ordered by key; see {@linkcode TopicConsumeRequest.isOrdered}. */
  readonly isOrdered: boolean;
  readonly userId: string;
}

/** Receives the messages of a stream. */
export interface TopicStreamSink {
  /**
   * Receives messages in order.
   * @returns Whether the sink can accept more messages. If not, {@linkcode TopicStream.drained}
   *   must be called once it can.
   */
  messages(messages: readonly TopicMessage[]): boolean;
  /** Called once if the stream ends by itself, with the reason. After KILL, that is CANCELLED. */
  ended(error: DatabaseError): void;
}

/** A consumer to which messages are pushed. */
export interface TopicStream {
  /** How many messages may still be delivered to the consumer. */
  readonly credit: number;
  /** Begins delivery. */
  start(): void;
  addCredit(count: number): void;
  /** Called when the sink can accept messages again. */
  drained(): void;
  /** Stops delivery; acknowledgements are still accepted. */
  drain(): void;
  /**
   * Resolves when the acknowledgement is durable. Throws the errors of {@linkcode
   * TopicAccess.prepareAck}.
   */
  ack(request: Pick<TopicAckRequest, "offsets" | "partition" | "upTo">): Promise<PreparedTopicAck>;
  /**
   * Returns messages to the group, to be delivered again.
   * @throws {DatabaseError} OBJECT_NOT_FOUND, VALUE_OUT_OF_RANGE
   */
  nack(request: Pick<TopicNack, "delayMs" | "offsets" | "partition">): Promise<void>;
  /** Ends the stream. Unacknowledged messages go to other consumers. */
  close(): void;
}

/** Figures for all consumer groups together, shown in `/metrics`. */
export interface TopicFigures {
  /** The number of groups in memory. A group counts once per partition. */
  readonly groups: number;
  readonly consumers: number;
  readonly claims: number;
  readonly lagMessages: number;
  /** The number of redelivered messages since startup. */
  readonly redeliveries: number;
}

/** How many webhooks have each status, and the total numbers of their requests since startup. */
export interface WebhookFigures extends Readonly<Record<WebhookState["status"], number>> {
  readonly delivered: number;
  readonly failed: number;
}

/** The operations available to consumers of topics. */
export interface TopicConsumers extends TopicAccess {
  /**
   * Returns the id of a topic.
   * @param name "namespace.topic".
   * @throws {DatabaseError} OBJECT_NOT_FOUND
   */
  topicIdOf(name: string): number;
  /**
   * Resolves when the acknowledgement is durable. Throws the errors of {@linkcode
   * TopicAccess.prepareAck}.
   */
  ack(request: TopicAckRequest): Promise<PreparedTopicAck>;
  /**
   * Returns messages to the group, to be delivered again.
   * @throws {DatabaseError} OBJECT_NOT_FOUND, VALUE_OUT_OF_RANGE
   */
  nack(request: TopicNack): Promise<void>;
  /**
   * Opens a stream, which delivers nothing until the caller calls `start`. @throws {DatabaseError}
   * OBJECT_NOT_FOUND
   */
  open(request: TopicStreamRequest, sink: TopicStreamSink): Promise<TopicStream>;
  figures(): TopicFigures;
  /** Ends all waiting requests, which then return no messages. Later requests do not wait. */
  shutDown(): void;
  close(): Promise<void>;
}
