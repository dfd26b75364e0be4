/**
 * SQL can list and stop things that higher layers own: subscriptions, connections, backups, metrics
 * and settings. It declares the interfaces here; `database.ts` injects the implementations.
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

/** One row of `system.live`, supplied by the live layer. */
export interface LiveRow {
  readonly liveId: string;
  readonly connectionId: string;
  readonly subscriptionId: string;
  /** The ids of the tables that the live query reads. */
  readonly tableIds: readonly number[];
  readonly userId: string;
  readonly query: string;
  /** The options as the client sent them: undefined if there were none, null for live only. */
  readonly options: object | null | undefined;
  readonly status: string;
  readonly changes: number;
  readonly lastSeq: number | undefined;
  /** The position up to which the subscription has sent everything. */
  readonly position: number | undefined;
  /** The age of the subscription's position relative to the newest visible commit. */
  readonly lagMs: number | undefined;
  /** The bytes that wait for the network in the queue of the connection. */
  readonly queuedBytes: number;
  /** The average rate of changes over about the last minute. */
  readonly changesPerSecond: number;
  readonly createdAtMs: number;
  readonly lastUpdateMs: number | undefined;
  /** The bytes of the rows that are stored for the query; undefined if no rows are stored. */
  readonly stateBytes: number | undefined;
}

/** How a live query relates to the open subscriptions, for EXPLAIN SUBSCRIBE TO. */
export interface LiveMatch {
  /** The number of open subscriptions that would share the evaluation of the query. */
  readonly subscriptions: number;
  /** The number of groups that follow the query's partition, including its own group. */
  readonly groups: number;
  /** The number of groups against which every change is tested. */
  readonly unindexedGroups: number;
  /** The number of groups against which a change with the query's value is tested. */
  readonly testedGroups: number;
}

/** The open subscriptions to a materialised query, for EXPLAIN SUBSCRIBE TO. */
export interface ResultMatch {
  readonly subscriptions: number;
  /** The bytes of the rows that are stored for the query. */
  readonly stateBytes: number;
  /** The duration of the last evaluation in milliseconds; undefined before the first one. */
  readonly costMs: number | undefined;
  readonly evaluations: number;
  /**
   * The number of times that the result was brought up to date from changes, without an evaluation.
   */
  readonly followed: number;
}

/** The operations of the live layer that SQL uses. */
export interface LiveAccess {
  rows(): readonly LiveRow[];
  match(plan: LivePlan): LiveMatch;
  /**
   * Returns the subscriptions to a query; undefined if no query with this fingerprint is followed.
   */
  matchResult(fingerprint: string): ResultMatch | undefined;
  /** Ends a subscription. Returns false if there is no subscription with this id. */
  kill(liveId: string): boolean;
  /** Called after a definition was changed or dropped. */
  tableChanged(tableId: number): void;
  /** Called after a view was replaced or dropped. */
  viewChanged(): void;
}

/**
 * Starts backups and restores. Each call returns a job. If a job for the same task is already open,
 * that job is returned.
 */
export interface BackupAccess {
  /** Starts a backup. @throws {DatabaseError} INVALID_OPTION if the path is not allowed. */
  backUp(target: string, createdBy: string): BegunJob;
  /**
   * Starts a restore.
   *
   * @param options.to The target time; if absent, the moment of the backup.
   * @throws {DatabaseError} INVALID_OPTION
   */
  restore(source: string, options: { createdBy: string; to: RestoreStatement["to"] }): BegunJob;
}

export interface BegunJob {
  readonly job: Job;
  readonly isNew: boolean;
}

/** An export of a user's own data, as SHOW EXPORT lists it. */
export interface ExportState {
  readonly jobId: string;
  readonly status: JobStatus;
  readonly createdAtMs: number;
  readonly message: string | undefined;
  /** Whether the archive of an export can be downloaded. */
  readonly hasArchive: boolean;
}

/** Runs the exports in which users receive their own data. */
export interface ExportAccess {
  /** Starts an export of the caller's data, or returns the caller's export that is in progress. */
  begin(principal: Principal): BegunJob;
  /** Returns the exports of the caller, newest first. */
  list(principal: Principal): readonly ExportState[];
  /** Removes the archives of a user who was dropped. @throws {DiskError} */
  removeOwner(owner: number): Promise<void>;
  /** Removes archives that have expired. Returns their number. @throws {DiskError} */
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

/** The operations of the server that SQL uses. */
export interface ConnectionAccess {
  rows(): readonly ConnectionRow[];
  /** Closes a connection. Returns false if there is no connection with this id. */
  kill(connectionId: string): boolean;
}

/** The position in a partition at which a consumer without a position begins. */
export type TopicStart =
  /** The offset of the oldest message that is still stored. */
  | { readonly kind: "earliest" }
  /** The offset of the next message that will be published. */
  | { readonly kind: "latest" }
  /**
   * The message with this offset or, if it no longer exists, the oldest message that is still
   * stored.
   */
  | { readonly kind: "offset"; readonly offset: number }
  /** The first message that was committed at or after this time. */
  | { readonly kind: "time"; readonly unixMs: number };

/** A change to a source table, in the form in which consumers of a topic receive it. */
export interface TopicMessage {
  readonly partition: number;
  /** The number of earlier messages in the partition. */
  readonly offset: number;
  /**
   * The primary key as text, or as a JSON object if it has several columns. Null if there is no
   * primary key.
   */
  readonly key: string | null;
  /** The payload of the message: a JSON object as text. */
  readonly payload: string;
  readonly timestampMs: number;
  /** The user who owns the row. Absent for a row of a SHARED table. */
  readonly user?: string | undefined;
  /** The owner number of the row that the message describes. */
  readonly owner: number;
  readonly op: "Insert" | "Update" | "Delete";
  /**
   * The number of times that the message has been delivered to its group, including this time; 1
   * for a consumer without a group.
   */
  readonly deliveries: number;
}

export interface TopicMessages {
  /**
   * Messages in ascending order of offset, without messages that are acknowledged, claimed or
   * unreadable.
   */
  readonly messages: readonly TopicMessage[];
  /** The offset after the last message; if there are no messages, the consumer's current offset. */
  readonly nextOffset: number;
  /** Whether further messages are available now. */
  readonly hasMore: boolean;
}

export interface TopicConsumeRequest {
  readonly topicId: number;
  /** The partition to read. In a partition that does not exist, there are no messages. */
  readonly partition: number;
  /**
   * The group that consumes the messages. If it is absent, there is no stored position, and no
   * messages are claimed.
   */
  readonly group?: string | undefined;
  /** The position at which to begin if the group has no position. */
  readonly start: TopicStart;
  /** The maximum number of messages, 1 or more. */
  readonly limit: number;
  /** Whether to hold back a message while an earlier one with the same key is unacknowledged. */
  readonly isOrdered?: boolean | undefined;
  /** The time to wait if no message is available; 0 if absent. */
  readonly waitMs?: number | undefined;
  /** Aborts the wait for messages. The response then contains no messages. */
  readonly signal?: AbortSignal | undefined;
  /** The user id of the caller, for `system.topic_consumers`. */
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

/** A validated acknowledgement. It takes effect when the caller commits its writes. */
export interface PreparedTopicAck {
  /** The writes to be applied, together with others or alone. */
  readonly writes: readonly TableWrite[];
  /** All messages below this offset are acknowledged once the writes are committed. */
  readonly committedOffset: number;
  /** The number of messages that were acknowledged for the first time. */
  readonly acknowledgedCount: number;
  /** Called in the tick in which the writes were applied. */
  done(): void;
  /** Called in place of `done` if the writes will not be applied. */
  abandoned(): void;
}

/** The state of a topic, for `system.topics`. */
export interface TopicState {
  readonly topicId: number;
  /** The number of retained messages, as far as they have been counted. */
  readonly messages: number;
  /** The estimated size of the payloads of these messages. */
  readonly bytes: number;
  /** The seq up to which every change has an offset. */
  readonly countedSeq: number;
  /**
   * The estimated number of replaced versions that the source tables keep only because of topics.
   */
  readonly heldVersions: number;
  /** The size of the versions that `heldVersions` counts, in bytes. */
  readonly heldBytes: number;
  /**
   * The reasons why messages are missing from the topic, one sentence each; empty if none are
   * missing.
   */
  readonly faults: readonly string[];
}

/** The position of a group in a partition, for `system.topic_offsets`. */
export interface TopicOffsetRow {
  readonly topicId: number;
  readonly group: string;
  readonly partition: number;
  /** The highest offset up to which every message is acknowledged; -1 if there is none. */
  readonly lastAckedOffset: number;
  readonly updatedAtMs: number;
}

/** A group in a partition and its unacknowledged messages, for `system.topic_consumers`. */
export interface TopicConsumerRow {
  /** The id of the consumer; undefined for a group without an active consumer. */
  readonly consumerId: string | undefined;
  readonly topicId: number;
  readonly group: string;
  readonly partition: number;
  readonly userId: string | undefined;
  readonly lagMessages: number;
  /** The age of the oldest message that the group has not acknowledged. */
  readonly lagMs: number;
  readonly claims: number;
  /** The number of redeliveries to the group since startup. */
  readonly redeliveries: number;
  readonly lastSeenAtMs: number;
}

/** The operations of the topics layer that SQL uses. */
export interface TopicAccess {
  /**
   * Returns the next messages of a partition.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND if the topic was dropped, CANCELLED after KILL,
   *   DATA_DAMAGED, STORAGE_UNAVAILABLE
   */
  consume(request: TopicConsumeRequest): Promise<TopicMessages>;
  /**
   * Resolves once every change that is visible now has an offset. Call this before `prepareAck`:
   * otherwise, the offset of a message that was delivered before a restart may seem to be beyond
   * the end of the partition.
   */
  counted(topicId: number): Promise<void>;
  /**
   * Validates an acknowledgement in this tick, and returns the writes that carry it out.
   *
   * @throws {DatabaseError} OBJECT_NOT_FOUND, VALUE_OUT_OF_RANGE for an offset beyond the end or
   * one that the group never received, LIMIT_EXCEEDED for offsets too far above the committed
   * offset
   */
  prepareAck(request: TopicAckRequest): PreparedTopicAck;
  states(): readonly TopicState[];
  offsets(): readonly TopicOffsetRow[];
  consumers(): readonly TopicConsumerRow[];
  /** Ends a consumer. Returns false if there is no consumer with this id. */
  kill(consumerId: string): boolean;
  /** Called after topics were created, changed or dropped. */
  topicsChanged(): void;
  /**
   * Call this before a source table is altered or dropped. Resolves once all offsets that readers
   * have seen are durable. No further change is then counted until the returned function is called,
   * because later counts use the new definition. Call the function once the definition has been
   * changed or refused.
   */
  holdOffsets(tableId: number): Promise<() => void>;
}

/** The deliveries of a webhook, for `system.webhooks`. Counts begin at server startup. */
export interface WebhookState {
  readonly webhookId: number;
  /**
   * The state of the deliveries. "refused" means that the configuration does not permit the URL.
   */
  readonly status: "delivering" | "retrying" | "refused";
  readonly deliveredCount: number;
  /** The number of requests to the webhook that failed. */
  readonly failedCount: number;
  readonly lastDeliveredAtMs: number | undefined;
  readonly lastFailedAtMs: number | undefined;
  /** The reason why the last failed request failed; undefined once a later request succeeded. */
  readonly lastError: string | undefined;
  readonly lagMessages: number;
  /** The age of the oldest message that the webhook has not delivered. */
  readonly lagMs: number;
}

/** The operations of webhooks that SQL uses. */
export interface WebhookAccess {
  /**
   * Requires that requests may be sent to a URL.
   * @throws {DatabaseError} INVALID_OPTION if the URL is not valid for a webhook, PERMISSION_DENIED
   * if the configuration does not permit its host
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
  /** The name of the metric with its labels, as exported. */
  readonly name: string;
  readonly value: string;
  readonly description: string | undefined;
}
