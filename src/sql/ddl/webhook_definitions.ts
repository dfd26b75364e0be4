/** Executes CREATE, ALTER and DROP WEBHOOK. A webhook is stored in the entry of its topic. */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import {
  checkObjectName,
  checkSecret,
  type TopicEntry,
  type WebhookEntry,
  webhookChangesFrom,
  webhookOptionsFrom,
} from "../../catalog/mod.ts";
import { findTopic, type PlacedWebhook, topicNameOf, webhooksIn } from "../names/topics.ts";
import type {
  AlterWebhookStatement,
  CreateWebhookStatement,
  DropWebhookStatement,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { optionSettings } from "./table_elements.ts";
import type { TopicCall } from "./topic_definitions.ts";

/** The parts of the database that webhook definitions use. */
export type WebhookDefinitionDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store"> &
  DefinitionFollowers;

/**
 * Binds CREATE WEBHOOK against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME, INVALID_OPTION, PERMISSION_DENIED, …
 */
export function createWebhook(
  node: CreateWebhookStatement,
  { namespace, principal }: TopicCall,
  deps: WebhookDefinitionDeps,
): BoundDefinition {
  const { catalog, clock, store, webhooks } = deps;
  const { secret, url } = node;
  const { name, _location } = node.name;
  const { start: position } = _location;
  checkObjectName("webhook", name, { position });
  if (webhooksIn(catalog).some(({ webhook }) => webhook.name === name)) {
    if (node.ifNotExists === true) return () => `Webhook ${name} already exists`;
    throw new DatabaseError("ALREADY_EXISTS", `Cannot create webhook ${name}: it already exists`, {
      position,
    });
  }
  const topic = findTopic(catalog, node.topic, namespace);
  webhooks().requireUrl(url, node.urlStart);
  if (secret !== undefined) checkSecret(secret, { position });
  const options = webhookOptionsFrom(optionSettings(node.options));
  return () => {
    store.requireFreeSpace();
    const seq = store.issueSeq();
    const entry: WebhookEntry = {
      webhookId: seq,
      name,
      url,
      ...(secret === undefined ? {} : { secret }),
      ...options,
      createdBy: principal.userId,
      createdAtMs: clock.nowMs(),
    };
    changeTopic({ ...topic, webhooks: [...(topic.webhooks ?? []), entry] }, seq, deps);
    return `Webhook ${name} created`;
  };
}

/**
 * Binds ALTER WEBHOOK. The altered webhook continues from its current position in the topic.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_OPTION, PERMISSION_DENIED
 */
export function alterWebhook(
  { change, name: { name, _location } }: AlterWebhookStatement,
  deps: WebhookDefinitionDeps,
): BoundDefinition {
  const { catalog, store, webhooks } = deps;
  const { start: position } = _location;
  const found = placedWebhook(catalog, name);
  if (found === undefined) throw unknownWebhook(catalog, name, position);
  if (change.type === "set url") webhooks().requireUrl(change.url, change.urlStart);
  if (change.type === "set secret") checkSecret(change.secret, { position });
  const altered = alteredWebhook(found.webhook, change);
  return () => {
    store.requireFreeSpace();
    const all = found.topic.webhooks ?? [];
    const changed = all.map((each) => (each.name === name ? altered : each));
    changeTopic({ ...found.topic, webhooks: changed }, store.issueSeq(), deps);
    return `Webhook ${name} altered`;
  };
}

/**
 * Returns a webhook's entry after ALTER WEBHOOK.
 * @throws {DatabaseError} INVALID_OPTION
 */
function alteredWebhook(
  webhook: WebhookEntry,
  change: AlterWebhookStatement["change"],
): WebhookEntry {
  const { secret: _, ...unsigned } = webhook;
  switch (change.type) {
    case "set url":
      return { ...webhook, url: change.url };
    case "set secret":
      return { ...webhook, secret: change.secret };
    case "drop secret":
      return unsigned;
    case "set options":
      return { ...webhook, ...webhookChangesFrom(optionSettings(change.options)) };
  }
}

function placedWebhook(
  catalog: WebhookDefinitionDeps["catalog"],
  name: string,
): PlacedWebhook | undefined {
  return webhooksIn(catalog).find(({ webhook }) => webhook.name === name);
}

function unknownWebhook(
  catalog: WebhookDefinitionDeps["catalog"],
  name: string,
  position: number,
): DatabaseError {
  const known = webhooksIn(catalog).map(({ webhook }) => webhook.name);
  const alike = nearestName(name, known);
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find webhook "${name}"`, {
    position,
    hint:
      alike === undefined ? "to list the webhooks, run SHOW WEBHOOKS" : `did you mean ${alike}?`,
  });
}

/**
 * Binds DROP WEBHOOK against the current catalog.
 * @throws {DatabaseError} OBJECT_NOT_FOUND
 */
export function dropWebhook(
  node: DropWebhookStatement,
  deps: WebhookDefinitionDeps,
): BoundDefinition {
  const { catalog, store } = deps;
  const { name, _location } = node.name;
  const found = placedWebhook(catalog, name);
  if (found === undefined) {
    if (node.ifExists === true) return () => `Webhook ${name} does not exist`;
    throw unknownWebhook(catalog, name, _location.start);
  }
  const { webhooks: _, ...topic } = found.topic;
  return () => {
    const left = (found.topic.webhooks ?? []).filter((each) => each.name !== name);
    const changed = left.length === 0 ? topic : { ...topic, webhooks: left };
    changeTopic(changed, store.issueSeq(), deps);
    return `Webhook ${name} of topic ${topicNameOf(topic)} dropped`;
  };
}

function changeTopic(
  topic: TopicEntry,
  seq: ReturnType<WebhookDefinitionDeps["store"]["issueSeq"]>,
  { catalog, clock, topics, webhooks }: WebhookDefinitionDeps,
): void {
  catalog.changeTopic({ ...topic, updatedAtMs: clock.nowMs() }, seq);
  topics().topicsChanged();
  webhooks().webhooksChanged();
}
