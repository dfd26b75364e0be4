/**
 * SQL can list and stop things that higher layers own: subscriptions, connections, backups, metrics
 * and settings. It declares the interfaces here; `database.ts` injects the implementations.
 */
import type { Job, TableWrite } from "../../storage/mod.ts";
import type { RestoreStatement } from "../parse/ast/ast.ts";
import type { LivePlan } from "./engine.ts";

/** One row of `system.settings`. */
export interface SettingRow {
  readonly name: string;
  readonly value: string;
  readonly defaultValue: string | undefined;
  readonly source: string;
  readonly category: string;
  readonly description: string;
}

/** The part of a setting that SHOW displays. */
export type ShownSetting = Pick<SettingRow, "name" | "value" | "category" | "description">;

/** One row of `system.live`, supplied by the live layer. */
export interface LiveRow {
  readonly liveId: string;
  readonly connectionId: string;
  readonly subscriptionId: string;
  /** The ids of the tables that the query reads. */
  readonly tableIds: readonly number[];
  readonly userId: string;
  readonly query: string;
  /** The options as the client sent them: undefined without options, null for live only. */
  readonly options: object | null | undefined;
  readonly status: string;
  readonly changes: number;
  readonly lastSeq: number | undefined;
  /** The position up to which everything has been sent. */
  readonly position: number | undefined;
  /** The age of its position relative to the newest commit that anyone can read. */
  readonly lagMs: number | undefined;
  /** Bytes that wait for the network in the queue of its connection. */
  readonly queuedBytes: number;
  /** The average rate of changes over about the last minute. */
  readonly changesPerSecond: number;
  readonly createdAtMs: number;
  readonly lastUpdateMs: number | undefined;
  /** The bytes of the rows that are kept for the query; undefined if none are. */
  readonly stateBytes: number | undefined;
}

/** The place of a live query among the open ones, for EXPLAIN SUBSCRIBE TO. */
export interface LiveMatch {
  /** The number of open subscriptions that would share its evaluation. */
  readonly subscriptions: number;
  /** The number of groups that follow its partition, including its own. */
  readonly groups: number;
  /** The number of groups against which every change is tested. */
  readonly unindexedGroups: number;
  /** The number of groups against which a change with its value is tested. */
  readonly testedGroups: number;
}

/** The open subscriptions to a query that is followed as a whole, for EXPLAIN SUBSCRIBE TO. */
export interface ResultMatch {
  readonly subscriptions: number;
  /** The bytes of the rows that are kept. */
  readonly stateBytes: number;
  /** The time of its last evaluation, in milliseconds; undefined before the first. */
  readonly costMs: number | undefined;
}

/** The operations of the live layer that SQL uses. */
export interface LiveAccess {
  rows(): readonly LiveRow[];
  match(plan: LivePlan): LiveMatch;
  /** Returns undefined if no query with this fingerprint is followed. */
  matchResult(fingerprint: string): ResultMatch | undefined;
  /** Returns false if there is no such subscription. */
  kill(liveId: string): boolean;
  /** Called after a definition was changed or dropped. */
  tableChanged(tableId: number): void;
  /** Called after a view was replaced or dropped. */
  viewChanged(): void;
}

/**
 * Starts backups and restores. Each call returns its job, or the same job if it is already open.
 */
export interface BackupAccess {
  /** @throws {DatabaseError} INVALID_OPTION if the path is not allowed. */
  backUp(target: string, createdBy: string): BegunJob;
  /**
   * @param options.to The target time; if absent, the moment of the backup. @throws {DatabaseError}
   *   INVALID_OPTION
   */
  restore(source: string, options: { createdBy: string; to: RestoreStatement["to"] }): BegunJob;
}

export interface BegunJob {
  readonly job: Job;
  readonly isNew: boolean;
}

/** One row of `system.connections`: an authenticated socket or event stream. */
export interface ConnectionRow {
  readonly connectionId: string;
  readonly userId: string;
  readonly role: string;
  readonly transport: "websocket" | "sse";
  readonly clientAddress: string;
  readonly serialization: string;
  readonly compression: string;
  readonly subscriptions: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly queuedBytes: number;
  readonly openedAtMs: number;
  readonly lastSeenAtMs: number;
}

/** The operations of the server that SQL uses. */
export interface ConnectionAccess {
  rows(): readonly ConnectionRow[];
  /** Returns false if there is no such connection. */
  kill(connectionId: string): boolean;
}

/** The position in a partition at which a reader without its own position begins. */
export type TopicStart =
  /** The oldest kept message. */
  | { readonly kind: "earliest" }
  /** The next message. */
  | { readonly kind: "latest" }
  /** The message with this offset, or the oldest kept message if it no longer exists. */
  | { readonly kind: "offset"; readonly offset: number }
  /** The first message that was committed at this time or later. */
  | { readonly kind: "time"; readonly unixMs: number };

/** A change of a source table, as readers of a topic receive it. */
export interface TopicMessage {
  readonly partition: number;
  /** The number of earlier messages in the partition. */
  readonly offset: number;
  /**
   * The primary key as text, or as a JSON object if it has several columns. Null if there is no
   * primary key.
   */
  readonly key: string | null;
  /** The payload: a JSON object as text. */
  readonly payload: string;
  readonly timestampMs: number;
  /** The user who owns the row. Absent for a row of a SHARED table. */
  readonly user?: string | undefined;
  /** The owner number of the row. */
  readonly owner: number;
  readonly op: "Insert" | "Update" | "Delete";
  /**
   * How often the message has been delivered to its group, including this time; 1 for a reader
   * without a group.
   */
  readonly deliveries: number;
}

export interface TopicMessages {
  /** Messages in ascending order of offset, without acknowledged, claimed or unreadable ones. */
  readonly messages: readonly TopicMessage[];
  /** The offset after the last message; if there are no messages, the reader's current offset. */
  readonly nextOffset: number;
  /** Whether more messages are available now. */
  readonly hasMore: boolean;
}

export interface TopicConsumeRequest {
  readonly topicId: number;
  /** The partition to read. An unknown partition has no messages. */
  readonly partition: number;
  /** The group that reads. If absent, the reader has no position and claims nothing. */
  readonly group?: string | undefined;
  /** The position at which to begin if the group has no position. */
  readonly start: TopicStart;
  /** The maximum number of messages, 1 or more. */
  readonly limit: number;
  /** Whether to hold back a message while an earlier one with the same key is unacknowledged. */
  readonly isOrdered?: boolean | undefined;
  /** The time to wait if no message is available; 0 if absent. */
  readonly waitMs?: number | undefined;
  /** Ends the wait without messages. */
  readonly signal?: AbortSignal | undefined;
  /** The caller, for `system.topic_consumers`. */
  readonly userId: string;
}

export interface TopicAckRequest {
  readonly topicId: number;
  readonly partition: number;
  readonly group: string;
  /** Inclusive: acknowledges all messages up to this offset. */
  readonly upTo?: number | undefined;
  /** Acknowledges these messages. */
  readonly offsets?: readonly number[] | undefined;
}

/** A checked acknowledgement that takes effect with its caller's commit. */
export interface PreparedTopicAck {
  /** The writes to be applied, with others or alone. */
  readonly writes: readonly TableWrite[];
  /** All messages below this offset are acknowledged once the writes are committed. */
  readonly committedOffset: number;
  /** The number of newly acknowledged messages. */
  readonly acknowledgedCount: number;
  /** Called in the tick in which the writes were applied. */
  done(): void;
  /** Called instead if the writes will not be applied. */
  abandoned(): void;
}

/** The state of a topic, for `system.topics`. */
export interface TopicState {
  readonly topicId: number;
  /** The number of retained messages, as far as they have been counted. */
  readonly messages: number;
  /** The estimated size of their payloads. */
  readonly bytes: number;
  /** Every change up to this seq is counted. */
  readonly countedSeq: number;
  /** An estimate of the replaced versions that its tables keep only because of topics. */
  readonly heldVersions: number;
  /** The bytes of the versions that `heldVersions` counts. */
  readonly heldBytes: number;
  /**
   * Why messages are missing from the topic, one sentence per reason. Empty if none are missing.
   */
  readonly faults: readonly string[];
}

/** The position of a group in a partition, for `system.topic_offsets`. */
export interface TopicOffsetRow {
  readonly topicId: number;
  readonly group: string;
  readonly partition: number;
  /**
   * The highest offset up to which every message is acknowledged; -1 if there is no such offset.
   */
  readonly lastAckedOffset: number;
  readonly updatedAtMs: number;
}

/** A group in a partition and its unacknowledged messages, for `system.topic_consumers`. */
export interface TopicConsumerRow {
  /** The id of the consumer; undefined for a group without one. */
  readonly consumerId: string | undefined;
  readonly topicId: number;
  readonly group: string;
  readonly partition: number;
  readonly userId: string | undefined;
  readonly lagMessages: number;
  /** The age of the oldest message that is not acknowledged. */
  readonly lagMs: number;
  readonly claims: number;
  /** The group's redeliveries since startup. */
  readonly redeliveries: number;
  readonly lastSeenAtMs: number;
}

/** The operations of the topics layer that SQL uses. */
export interface TopicAccess {
  /**
   * @throws {DatabaseError} OBJECT_NOT_FOUND if the topic was dropped, CANCELLED after KILL,
   *   DATA_DAMAGED, STORAGE_UNAVAILABLE
   */
  consume(request: TopicConsumeRequest): Promise<TopicMessages>;
  /**
   * Resolves once every change that is visible now has an offset. Call it before `prepareAck`:
   * otherwise a message that was delivered before a restart may appear to be beyond the end.
   */
  counted(topicId: number): Promise<void>;
  /**
   * Checks an acknowledgement in this tick, and returns the writes that make it.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND, VALUE_OUT_OF_RANGE for an offset beyond the end or
   *   one that the group never received, LIMIT_EXCEEDED for offsets too far above the committed one
   */
  prepareAck(request: TopicAckRequest): PreparedTopicAck;
  states(): readonly TopicState[];
  offsets(): readonly TopicOffsetRow[];
  consumers(): readonly TopicConsumerRow[];
  /** Returns false if there is no such consumer. */
  kill(consumerId: string): boolean;
  /** Called after topics were created, changed or dropped. */
  topicsChanged(): void;
  /**
   * Call this before a source table is altered or dropped. Resolves once all offsets that readers
   * have seen are durable. No further change is counted until the returned function is called,
   * after the definition was changed or refused, since later counts see the new definition.
   */
  holdOffsets(tableId: number): Promise<() => void>;
}

/** The deliveries of a webhook, for `system.webhooks`. Counts begin at server startup. */
export interface WebhookState {
  readonly webhookId: number;
  /** "refused": the configuration does not permit its URL. */
  readonly status: "delivering" | "retrying" | "refused";
  readonly deliveredCount: number;
  /** The number of failed requests. */
  readonly failedCount: number;
  readonly lastDeliveredAtMs: number | undefined;
  readonly lastFailedAtMs: number | undefined;
  /** Why the last failed request failed; undefined once a later one succeeded. */
  readonly lastError: string | undefined;
  readonly lagMessages: number;
  /** The age of the oldest message that is not delivered. */
  readonly lagMs: number;
}

/** The operations of webhooks that SQL uses. */
export interface WebhookAccess {
  /**
   * @throws {DatabaseError} INVALID_OPTION if it is not a valid webhook URL, PERMISSION_DENIED if
   *   the configuration does not permit its host
   */
  requireUrl(url: string, position: number): void;
  states(): readonly WebhookState[];
  /** Called after webhooks were created, altered or dropped. */
  webhooksChanged(): void;
}

/** One row of `system.memory`: a part of the process that uses memory. */
export interface MemoryPart {
  readonly part: string;
  readonly usedBytes: number;
  /** The limit of the part; undefined if the part has no separate limit. */
  readonly allowedBytes: number | undefined;
  readonly description: string;
}

/** One sample of `/metrics`, for `system.stats`. */
export interface MetricSample {
  /** The name with its labels, as exported. */
  readonly name: string;
  readonly value: string;
  readonly description: string | undefined;
}
