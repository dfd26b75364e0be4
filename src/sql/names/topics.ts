/**
 * Finds topics and webhooks by name, and finds the topics that read a table.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type { Catalog, TopicEntry, WebhookEntry } from "../../catalog/mod.ts";
import type { QName } from "../parse/ast/ast.ts";
import { findNamespace } from "./table_names.ts";

/** Returns "namespace.name", the form in which clients refer to a topic. */
export function topicNameOf({ name, namespace }: Pick<TopicEntry, "name" | "namespace">): string {
  return `${namespace}.${name}`;
}

/**
 * Returns the topic with the given name.
 *
 * @param current The namespace for unqualified names.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, NAMESPACE_NOT_FOUND
 */
export function findTopic(
  catalog: Pick<Catalog, "namespace" | "topic" | "topics">,
  node: QName,
  current: string,
): TopicEntry {
  const { name, schema: namespace = current } = node;
  const topic = catalog.topic(namespace, name);
  if (topic !== undefined) return topic;
  const shown = `${namespace}.${name}`;
  const known = catalog.topics().map(topicNameOf);
  const alike = known.find((each) => each.endsWith(`.${name}`)) ?? nearestName(shown, known);
  if (alike === undefined) findNamespace(catalog, namespace, node);
  throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find topic "${shown}"`, {
    position: node._location.start,
    hint: alike === undefined ? "to list the topics, run SHOW TOPICS" : `did you mean ${alike}?`,
  });
}

/**
 * Returns the topics that have a table as a source, or had it as a source that has since been
 * dropped.
 */
export function topicsOf(catalog: Pick<Catalog, "topics">, tableId: number): TopicEntry[] {
  return catalog.topics().filter(({ sources }) => sources.some((each) => each.tableId === tableId));
}

/**
 * Requires that the name of a new table or view is not the name of a topic in the same namespace.
 *
 * @throws {DatabaseError} ALREADY_EXISTS
 */
export function refuseTopicName(
  catalog: Pick<Catalog, "topic">,
  kind: "table" | "view",
  { name, namespace, position }: { name: string; namespace: string; position: number },
): void {
  if (catalog.topic(namespace, name) === undefined) return;
  throw new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot create ${kind} ${namespace}.${name}: a topic with this name already exists`,
    { position },
  );
}

/**
 * Refuses to drop topics that receive the dead letters of other topics.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refuseDeadLetterTopics(
  catalog: Pick<Catalog, "topics">,
  dropped: readonly TopicEntry[],
  position: number,
): void {
  const others = catalog.topics().filter((topic) => !dropped.includes(topic));
  for (const shown of dropped.map(topicNameOf)) {
    const users = others.filter(({ deadLetter }) => deadLetter === shown).map(topicNameOf);
    if (users.length === 0) continue;
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop topic ${shown}: it is the dead-letter topic of ` +
        `${counted(users.length, "topic")}: ${users.join(", ")}`,
      {
        position,
        hint: "for each of these topics, run ALTER TOPIC … SET (MAX_DELIVERIES = 0, DEAD_LETTER = '')",
      },
    );
  }
}

/** A webhook, with the topic whose messages it delivers. */
export interface PlacedWebhook {
  readonly topic: TopicEntry;
  readonly webhook: WebhookEntry;
}

/** Returns the name of the topic group with which a webhook consumes messages. */
export function webhookGroup({ name, webhookId }: WebhookEntry): string {
  return `webhook:${name}:${webhookId}`;
}

/** Returns the webhooks of all topics, ordered by name. */
export function webhooksIn(catalog: Pick<Catalog, "topics">): PlacedWebhook[] {
  return catalog
    .topics()
    .flatMap((topic) => (topic.webhooks ?? []).map((webhook) => ({ topic, webhook })))
    .toSorted((left, right) => (left.webhook.name < right.webhook.name ? -1 : 1));
}

/**
 * Refuses to drop a topic that has webhooks.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refuseWebhooksOf(
  { name, namespace, webhooks = [] }: TopicEntry,
  position: number,
): void {
  if (webhooks.length === 0) return;
  const names = webhooks.map((webhook) => webhook.name).join(", ");
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot drop topic ${namespace}.${name}: its messages are delivered by ` +
      `${counted(webhooks.length, "webhook")}: ${names}`,
    { position, hint: "drop the webhooks first" },
  );
}
