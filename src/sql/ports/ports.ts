/**
 * Declares the interfaces through which the SQL layer lists or stops objects that higher layers
 * own: subscriptions, connections, backups, metrics and settings. `database.ts` injects the
 * implementations.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Job, JobStatus, TableWrite } from "../../storage/mod.ts";
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

/** The fields of a setting that SHOW displays. */
export type ShownSetting = Pick<SettingRow, "name" | "value" | "category" | "description">;

/** A row of `system.live`, supplied by the live layer. */
export interface LiveRow {
  readonly liveId: string;
  readonly connectionId: string;
  readonly subscriptionId: string;
  /** The ids of the tables that the live query reads. */
  readonly tableIds: readonly number[];
  readonly userId: string;
  readonly query: string;
  /**
   * The subscription options as sent by the client. undefined means that the client sent none, and
   * null that it receives only new changes.
   */
  readonly options: object | null | undefined;
  readonly status: string;
  readonly changes: number;
  readonly lastSeq: number | undefined;
  /** The seq up to which all changes have been sent to the subscription. */
  readonly position: number | undefined;
  /** The time by which the subscription's position is behind the newest visible commit. */
  readonly lagMs: number | undefined;
  /** The number of bytes in the connection's queue that are waiting for the network. */
  readonly queuedBytes: number;
  /** The average rate of changes over roughly the last minute. */
  readonly changesPerSecond: number;
  readonly createdAtMs: number;
  readonly lastUpdateMs: number | undefined;
  /** The size in bytes of the rows stored for the query; undefined if none are stored. */
  readonly stateBytes: number | undefined;
}

/** How a live query relates to the open subscriptions, for EXPLAIN SUBSCRIBE TO. */
export interface LiveMatch {
  /** The number of open subscriptions that would share the evaluation of the query. */
  readonly subscriptions: number;
  /** The number of groups that follow the query's partition, including the query's own group. */
  readonly groups: number;
  /** The number of groups that have to be tested against every change. */
  readonly unindexedGroups: number;
  /**
   * The number of groups that have to be tested against a change whose indexed column has the same
   * value as in the query.
   */
  readonly testedGroups: number;
}

/** The open subscriptions to a materialised query, for EXPLAIN SUBSCRIBE TO. */
export interface ResultMatch {
  readonly subscriptions: number;
  /** The size in bytes of the rows stored for the query. */
  readonly stateBytes: number;
  /**
   * The duration of the last evaluation in milliseconds; undefined before the first evaluation.
   */
  readonly costMs: number | undefined;
  readonly evaluations: number;
  /**
   * The number of times that the result has been updated from changes instead of being evaluated.
   */
  readonly followed: number;
}

/** The operations of the live layer that the SQL layer uses. */
export interface LiveAccess {
  rows(): readonly LiveRow[];
  match(plan: LivePlan): LiveMatch;
  /**
   * Returns the subscriptions to a query; undefined if no query with this fingerprint is followed.
   */
  matchResult(fingerprint: string): ResultMatch | undefined;
  /** Ends a subscription. Returns false if there is no subscription with this id. */
  kill(liveId: string): boolean;
  /** Must be called after a table has been dropped or its definition has changed. */
  tableChanged(tableId: number): void;
  /** Must be called after a view has been replaced or dropped. */
  viewChanged(): void;
}

/**
 * Starts backups and restores. Each call returns a job. If a job for the same task is already
 * running, that job is returned.
 */
export interface BackupAccess {
  /** Starts a backup. @throws {DatabaseError} INVALID_OPTION if the path is not allowed. */
  backUp(target: string, createdBy: string): BegunJob;
  /**
   * Starts a restore.
   *
   * @param options.to The target time; if absent, the database is restored to the time of the
   *   backup.
   * @throws {DatabaseError} INVALID_OPTION
   */
  restore(source: string, options: { createdBy: string; to: RestoreStatement["to"] }): BegunJob;
}

export interface BegunJob {
  readonly job: Job;
  readonly isNew: boolean;
}

/** An export of a user's own data, as listed by SHOW EXPORT. */
export interface ExportState {
  readonly jobId: string;
  readonly status: JobStatus;
  readonly createdAtMs: number;
  readonly message: string | undefined;
  /** Whether the archive of the export can be downloaded. */
  readonly hasArchive: boolean;
}

/** Runs exports, with which users download their own data. */
export interface ExportAccess {
  /**
   * Starts an export of the caller's data, or returns the caller's export that is already in
   * progress.
   */
  begin(principal: Principal): BegunJob;
  /** Returns the exports of the caller, newest first. */
  list(principal: Principal): readonly ExportState[];
  /** Removes the archives of a deleted user. @throws {DiskError} */
  removeOwner(owner: number): Promise<void>;
  /** Removes expired archives, and returns the number of removed archives. @throws {DiskError} */
  removeExpired(): Promise<number>;
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

/** The operations on connections that the SQL layer uses. */
export interface ConnectionAccess {
  rows(): readonly ConnectionRow[];
  /** Closes a connection. Returns false if there is no connection with this id. */
  kill(connectionId: string): boolean;
}

/** The point at which a consumer without a stored position begins to read a partition. */
export type TopicStart =
  /** The offset of the oldest message that is still stored. */
  | { readonly kind: "earliest" }
  /** The offset of the next message that will be published. */
  | { readonly kind: "latest" }
  /**
   * The message with this offset or, if that message no longer exists, the oldest message that is
   * still stored.
   */
  | { readonly kind: "offset"; readonly offset: number }
  /** The first message committed at or after this time. */
  | { readonly kind: "time"; readonly unixMs: number };

/** A change to a source table, as consumers of a topic receive it. */
export interface TopicMessage {
  readonly partition: number;
  /** The number of messages that precede this message in its partition. */
  readonly offset: number;
  /**
   * The primary key of the row as text, or as a JSON object if it has several columns; null if the
   * table has no primary key.
   */
  readonly key: string | null;
  /** The payload of the message: a JSON object as text. */
  readonly payload: string;
  readonly timestampMs: number;
  /** The user who owns the row; absent for a row of a SHARED table. */
  readonly user?: string | undefined;
  /** The owner number of the row that the message describes. */
  readonly owner: number;
  readonly op: "Insert" | "Update" | "Delete";
  /**
   * The number of times that the message has been delivered to its group, including this delivery;
   * 1 for a consumer without a group.
   */
  readonly deliveries: number;
}

export interface TopicMessages {
  /**
   * The messages in ascending order of offset, without messages that are acknowledged, claimed or
   * unreadable.
   */
  readonly messages: readonly TopicMessage[];
  /**
   * The offset after the last message or, if there are no messages, the consumer's current offset.
   */
  readonly nextOffset: number;
  /** Whether further messages can be consumed now. */
  readonly hasMore: boolean;
}

export interface TopicConsumeRequest {
  readonly topicId: number;
  /** The partition to read. A partition that does not exist has no messages. */
  readonly partition: number;
  /**
   * The group that consumes the messages. Without a group, no position is stored and no messages
   * are claimed.
   */
  readonly group?: string | undefined;
  /** The point at which to begin if the group has no stored position. */
  readonly start: TopicStart;
  /** The maximum number of messages to return; at least 1. */
  readonly limit: number;
  /**
   * Whether to hold back a message until all earlier messages with the same key are acknowledged.
   */
  readonly isOrdered?: boolean | undefined;
  /** The time in milliseconds to wait if no message is available; 0 if absent. */
  readonly waitMs?: number | undefined;
  /** Aborts the wait for messages. The response then contains no messages. */
  readonly signal?: AbortSignal | undefined;
  /** The caller's user id, for `system.topic_consumers`. */
  readonly userId: string;
}

export interface TopicAckRequest {
  readonly topicId: number;
  readonly partition: number;
  readonly group: string;
  /** The offset up to which all messages are acknowledged (inclusive). */
  readonly upTo?: number | undefined;
  /** The offsets of the messages to acknowledge. */
  readonly offsets?: readonly number[] | undefined;
}

/**
 * An acknowledgement that has been validated, but takes effect only when the caller commits its
 * writes.
 */
export interface PreparedTopicAck {
  /** The writes that carry out the acknowledgement. They may be committed together with others. */
  readonly writes: readonly TableWrite[];
  /** The offset below which all messages are acknowledged once the writes are committed. */
  readonly committedOffset: number;
  /** The number of messages that are acknowledged for the first time. */
  readonly acknowledgedCount: number;
  /** Must be called in the tick in which the writes were applied. */
  done(): void;
  /** Must be called instead of `done` if the writes will not be applied. */
  abandoned(): void;
}

/** The state of a topic, for `system.topics`. */
export interface TopicState {
  readonly topicId: number;
  /** The number of retained messages that have been counted so far. */
  readonly messages: number;
  /** The estimated total size in bytes of the payloads of these messages. */
  readonly bytes: number;
  /** The seq up to which every change has been assigned an offset. */
  readonly countedSeq: number;
  /** The estimated number of obsolete row versions that the source tables keep only for topics. */
  readonly heldVersions: number;
  /** The total size in bytes of the versions counted in `heldVersions`. */
  readonly heldBytes: number;
  /**
   * The reasons why messages are missing from the topic, one sentence for each; empty if no
   * messages are missing.
   */
  readonly faults: readonly string[];
}

/** The position of a group in a partition, for `system.topic_offsets`. */
export interface TopicOffsetRow {
  readonly topicId: number;
  readonly group: string;
  readonly partition: number;
  /** The highest offset up to which every message is acknowledged; -1 if no message is. */
  readonly lastAckedOffset: number;
  readonly updatedAtMs: number;
}

/**
 * A group that reads a partition, and its unacknowledged messages, for `system.topic_consumers`.
 */
export interface TopicConsumerRow {
  /** The id of the consumer; undefined for a group that has no active consumer. */
  readonly consumerId: string | undefined;
  readonly topicId: number;
  readonly group: string;
  readonly partition: number;
  readonly userId: string | undefined;
  readonly lagMessages: number;
  /** The age of the oldest message that the group has not acknowledged. */
  readonly lagMs: number;
  readonly claims: number;
  /** The number of redeliveries of messages to the group since server startup. */
  readonly redeliveries: number;
  readonly lastSeenAtMs: number;
}

/** The operations of the topics layer that the SQL layer uses. */
export interface TopicAccess {
  /**
   * Returns the next messages of a partition.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND if the topic was dropped, CANCELLED after KILL,
   *   DATA_DAMAGED, STORAGE_UNAVAILABLE
   */
  consume(request: TopicConsumeRequest): Promise<TopicMessages>;
  /**
   * Resolves once every change that is now visible has an offset. It must be called before
   * `prepareAck`. Otherwise, the offset of a message delivered before a restart may appear to be
   * beyond the end of the partition.
   */
  counted(topicId: number): Promise<void>;
  /**
   * Validates an acknowledgement within this tick, and returns the writes that carry it out.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND; VALUE_OUT_OF_RANGE for an offset that is beyond the
   *   end or that the group has never received; LIMIT_EXCEEDED for offsets too far above the
   *   committed offset
   */
  prepareAck(request: TopicAckRequest): PreparedTopicAck;
  states(): readonly TopicState[];
  offsets(): readonly TopicOffsetRow[];
  consumers(): readonly TopicConsumerRow[];
  /** Ends a consumer. Returns false if there is no consumer with this id. */
  kill(consumerId: string): boolean;
  /** Must be called after topics have been created, changed or dropped. */
  topicsChanged(): void;
  /**
   * Must be called before a source table is altered or dropped. Resolves once all offsets that
   * readers have seen are durable. From then on, no further changes are counted until the returned
   * function is called, because later counts use the new definition. That function must be called
   * once the definition has been changed or the change has been refused.
   */
  holdOffsets(tableId: number): Promise<() => void>;
}

/** The state of a webhook's deliveries, for `system.webhooks`. Counts begin at server startup. */
export interface WebhookState {
  readonly webhookId: number;
  /** The state of deliveries. "refused" means that the configuration does not permit the URL. */
  readonly status: "delivering" | "retrying" | "refused";
  readonly deliveredCount: number;
  /** The number of failed requests to the webhook. */
  readonly failedCount: number;
  readonly lastDeliveredAtMs: number | undefined;
  readonly lastFailedAtMs: number | undefined;
  /**
   * The reason why the last failed request failed; undefined once a later request has succeeded.
   */
  readonly lastError: string | undefined;
  readonly lagMessages: number;
  /** The age of the oldest message that has not been delivered to the webhook. */
  readonly lagMs: number;
}

/** The operations on webhooks that the SQL layer uses. */
export interface WebhookAccess {
  /**
   * Requires that the server may send requests to a URL.
   * @throws {DatabaseError} INVALID_OPTION if the URL is not valid for a webhook,
   *   PERMISSION_DENIED if the configuration does not permit its host
   */
  requireUrl(url: string, position: number): void;
  states(): readonly WebhookState[];
  /** Must be called after webhooks have been created, altered or dropped. */
  webhooksChanged(): void;
}

/** One row of `system.memory`: a part of the process that uses memory. */
export interface MemoryPart {
  readonly part: string;
  readonly usedBytes: number;
  /** The memory limit of this part of the process; undefined if it has no limit of its own. */
  readonly allowedBytes: number | undefined;
  readonly description: string;
}

/** One sample of `/metrics`, for `system.stats`. */
export interface MetricSample {
  /** The name of the metric with its labels, as it is exported by `/metrics`. */
  readonly name: string;
  readonly value: string;
  readonly description: string | undefined;
}
