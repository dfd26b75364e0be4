/** Defines topic entries, with their sources and webhooks. */

/** The kind of change that a message describes. */
export type TopicOperation = "insert" | "update" | "delete";

/** What a topic's messages contain: the key, the entire row, or the key and the changed values. */
export type TopicPayload = "key" | "full" | "diff";

/** An operation on a table whose changes become messages of a topic. */
export interface TopicSource {
  /** The id of a source, unique within the topic. */
  readonly sourceId: number;
  readonly tableId: number;
  readonly operation: TopicOperation;
  /**
   * A condition as SQL text with column names, evaluated on the new row or, for a delete, on the
   * last values of the row. Renaming a column updates it. If absent, every change matches.
   */
  readonly where?: string;
  readonly payload: TopicPayload;
  /**
   * The seq of the definition that added the source (exclusive). Only later changes become
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
   * The seq of the webhook's definition, which is never reused. It is the key under which the
   * webhook's position in the topic is stored.
   */
  readonly webhookId: number;
  /** The name, unique among the webhooks of all topics. */
  readonly name: string;
  readonly url: string;
  /**
   * The key that signs requests; absent if they are not signed. Outside the catalog, only the
   * component that signs requests sees the key; all other components see only whether there is
   * one.
   */
  readonly secret?: string;
  /** Whether a message waits until all earlier messages with the same key have been delivered. */
  readonly isOrdered: boolean;
  /**
   * Where the webhook begins: "created" means with messages committed after its creation,
   * "earliest" with the oldest messages that the topic keeps.
   */
  readonly start: "created" | "earliest";
  /** How long the receiver may take to respond to a request, in seconds. */
  readonly timeoutSecs: number;
  /** The maximum number of requests that the webhook sends concurrently. */
  readonly concurrency: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
}

/** A topic: a work queue whose messages are the changes to its source tables. */
export interface TopicEntry {
  /** The id, unique among tables, views and topics. */
  readonly topicId: number;
  readonly namespace: string;
  readonly name: string;
  /** The number of partitions. It never changes. */
  readonly partitions: number;
  readonly retentionHours: number;
  readonly retentionBytes: number;
  /**
   * The number of unsuccessful deliveries after which a message is moved to the dead-letter topic;
   * absent if messages are never moved.
   */
  readonly maxDeliveries?: number;
  /** The dead-letter topic, as "namespace.name". */
  readonly deadLetter?: string;
  readonly createdSeq: number;
  /**
   * The seq up to which changes are no longer delivered, as a result of CLEAR TOPIC. Their
   * messages keep their offsets.
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
