/**
 * The views of topics, their groups and their consumers: `system.topics`, `system.topic_offsets`,
 * `system.topic_consumers`, SHOW TOPICS and DESCRIBE TOPIC.
 */
import type { TopicEntry, TopicSource } from "../../catalog/mod.ts";
import { BIGINT, DATETIME, INT, JSON_TEXT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { topicNameOf } from "../names/topics.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { TopicState } from "../ports/ports.ts";
import type { PlainColumn } from "../result/result.ts";
import { ADMIN_ONLY, type ColumnList, view } from "./system_view.ts";

/** The parts of the database that the topic views read. */
export type TopicViewDeps = Pick<SqlEnvironment, "catalog" | "topics">;

const TOPIC_COLUMNS: ColumnList = [
  ["topic_id", TEXT],
  ["name", TEXT],
  ["partitions", INT],
  ["retention_seconds", BIGINT],
  ["retention_max_bytes", BIGINT],
  ["routes", JSON_TEXT],
  ["created_at", DATETIME],
  ["updated_at", DATETIME],
  ["namespace_id", TEXT],
  ["max_deliveries", INT],
  ["dead_letter", TEXT],
  ["messages", BIGINT],
  ["message_bytes", BIGINT],
  ["held_versions", BIGINT],
  ["held_bytes", BIGINT],
  ["status", TEXT],
];

const OFFSET_COLUMNS: ColumnList = [
  ["topic_id", TEXT],
  ["group_id", TEXT],
  ["partition_id", INT],
  ["last_acked_offset", BIGINT],
  ["updated_at", DATETIME],
];

const CONSUMER_COLUMNS: ColumnList = [
  ["consumer_id", TEXT],
  ["topic_id", TEXT],
  ["group_id", TEXT],
  ["partition_id", INT],
  ["user_id", TEXT],
  ["lag_messages", BIGINT],
  ["lag_ms", BIGINT],
  ["claims", INT],
  ["redeliveries", BIGINT],
  ["last_seen_at", DATETIME],
];

export const SHOW_TOPICS_COLUMNS: readonly PlainColumn[] = TOPIC_COLUMNS.map(([name, type]) => ({
  name,
  type,
}));

export const DESCRIBE_TOPIC_COLUMNS: readonly PlainColumn[] = [
  { name: "table_name", type: TEXT },
  { name: "operation", type: TEXT },
  { name: "condition", type: TEXT },
  { name: "payload", type: TEXT },
  { name: "from_seq", type: BIGINT },
  { name: "to_seq", type: BIGINT },
];

export function topicViews(deps: TopicViewDeps): [string, SystemView][] {
  return [
    ["system.topics", view(TOPIC_COLUMNS, () => topicRows(deps), ADMIN_ONLY)],
    ["system.topic_offsets", view(OFFSET_COLUMNS, () => offsetRows(deps), ADMIN_ONLY)],
    ["system.topic_consumers", view(CONSUMER_COLUMNS, () => consumerRows(deps), ADMIN_ONLY)],
  ];
}

/** Returns the topics of all namespaces, or of one namespace, ordered by namespace and name. */
export function topicRows({ catalog, topics }: TopicViewDeps, namespace?: string): Row[] {
  const states = new Map(
    topics()
      .states()
      .map((state) => [state.topicId, state]),
  );
  return catalog
    .topics()
    .filter((topic) => namespace === undefined || topic.namespace === namespace)
    .map((topic) => topicRow(topic, { catalog, state: states.get(topic.topicId) }));
}

function topicRow(
  topic: TopicEntry,
  { catalog, state }: Pick<TopicViewDeps, "catalog"> & { state: TopicState | undefined },
): Row {
  const faults = state?.faults ?? [];
  return [
    topicNameOf(topic),
    topic.name,
    topic.partitions,
    topic.retentionHours * 3600,
    topic.retentionBytes,
    JSON.stringify(inForce(topic).map((source) => routeOf(source, catalog))),
    topic.createdAtMs * 1000,
    topic.updatedAtMs * 1000,
    topic.namespace,
    topic.maxDeliveries ?? null,
    topic.deadLetter ?? null,
    state?.messages ?? null,
    state?.bytes ?? null,
    state?.heldVersions ?? null,
    state?.heldBytes ?? null,
    faults.length === 0 ? "ok" : faults.join("; "),
  ];
}

function inForce({ sources }: TopicEntry): TopicSource[] {
  return sources.filter(({ toSeq }) => toSeq === undefined);
}

/** Returns a topic's source as an object for the column `routes`. */
function routeOf(
  { operation, payload, tableId, where }: TopicSource,
  catalog: TopicViewDeps["catalog"],
): object {
  const table = catalog.tableById(tableId);
  return {
    table: table === undefined ? null : topicNameOf(table),
    on: operation,
    ...(where === undefined ? {} : { where }),
    payload,
  };
}

/** Returns the sources of a topic, including dropped sources, in order of creation. */
export function sourceRows({ sources }: TopicEntry, catalog: TopicViewDeps["catalog"]): Row[] {
  return sources.map(({ fromSeq, operation, payload, tableId, toSeq, where }) => {
    const table = catalog.tableById(tableId);
    return [
      table === undefined ? null : topicNameOf(table),
      operation,
      where ?? null,
      payload,
      fromSeq,
      toSeq ?? null,
    ];
  });
}

function offsetRows({ catalog, topics }: TopicViewDeps): Row[] {
  return topics()
    .offsets()
    .map(({ group, lastAckedOffset, partition, topicId, updatedAtMs }) => [
      shownTopic(catalog, topicId),
      group,
      partition,
      lastAckedOffset,
      updatedAtMs * 1000,
    ]);
}

function consumerRows({ catalog, topics }: TopicViewDeps): Row[] {
  return topics()
    .consumers()
    .map((row) => [
      row.consumerId ?? null,
      shownTopic(catalog, row.topicId),
      row.group,
      row.partition,
      row.userId ?? null,
      row.lagMessages,
      row.lagMs,
      row.claims,
      row.redeliveries,
      row.lastSeenAtMs * 1000,
    ]);
}

function shownTopic(catalog: TopicViewDeps["catalog"], topicId: number): string | null {
  const topic = catalog.topicById(topicId);
  return topic === undefined ? null : topicNameOf(topic);
}
