/** Defines the entries of topics, with their sources and webhooks. */

/** The kind of change that a message describes. */
export type TopicOperation = "insert" | "update" | "delete";

/**
 * The payload format of a topic's messages: the key, the whole row, or the key and the changed
 * values.
 */
export type TopicPayload = "key" | "full" | "diff";

/** An operation on a table whose changes become messages of a topic. */
export interface TopicSource {
  /** The id of a topic source, which is unique within the topic. */
  readonly sourceId: number;
  readonly tableId: number;
  readonly operation: TopicOperation;
  /**
   * A condition as SQL text with column names, which is evaluated on the new row or, for a delete,
   * on the last values of the row. The text is updated when a column is renamed. If absent, every
   * change matches.
   */
  readonly where?: string;
  readonly payload: TopicPayload;
  /**
   * The seq of the definition that added the source (exclusive): only later changes become
   * messages.
   */
  readonly fromSeq: number;
  /**
   * The seq of the definition that dropped the source (inclusive); absent while the source exists.
   */
  readonly toSeq?: number;
}

/** Delivers the messages of a topic to a server over HTTP. */
export interface WebhookEntry {
  /**
   * The seq of the webhook's definition, which is never reused. The webhook's position in the topic
   * is stored under it.
   */
  readonly webhookId: number;
  /** The name, which is unique among the webhooks of all topics. */
  readonly name: string;
  readonly url: string;
  /**
   * The key with which requests are signed; absent if they are not signed. Outside the catalog,
   * only the component that signs requests sees the key; other components see only whether a key
   * exists.
   */
  readonly secret?: string;
  /** Whether a message waits until all earlier messages with the same key have been delivered. */
  readonly isOrdered: boolean;
  /**
   * The first messages of the webhook: "created" means messages that are committed after its
   * creation, and "earliest" means the oldest messages that the topic keeps.
   */
  readonly start: "created" | "earliest";
  /** The time in which the receiver must respond to a request, in seconds. */
  readonly timeoutSecs: number;
  /** The maximum number of requests that a webhook sends at the same time. */
  readonly concurrency: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/** A topic: a work queue whose messages are the changes to its source tables. */
export interface TopicEntry {
  /** The id, which is unique among tables, views and topics. */
  readonly topicId: number;
  readonly namespace: string;
  readonly name: string;
  /** The number of partitions of a topic, which never changes. */
  readonly partitions: number;
  readonly retentionHours: number;
  readonly retentionBytes: number;
  /**
   * The number of unsuccessful deliveries after which a message is moved to the dead-letter topic.
   * Absent if messages are never moved.
   */
  readonly maxDeliveries?: number;
  /** The dead-letter topic, as "namespace.name". */
  readonly deadLetter?: string;
  readonly createdSeq: number;
  /**
   * Because of CLEAR TOPIC, changes up to this seq are no longer delivered. Their messages keep
   * their offsets.
   */
  readonly clearedSeq: number;
  /**
   * The sources, including dropped sources from which the topic still has messages. No two current
   * sources have the same table and operation.
   */
  readonly sources: readonly TopicSource[];
  /** The next source id to assign. The ids of dropped sources are never reused. */
  readonly nextSourceId: number;
  /** The webhooks in the order of their creation; absent if there are none. */
  readonly webhooks?: readonly WebhookEntry[];
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}
