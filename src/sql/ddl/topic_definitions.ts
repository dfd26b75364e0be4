/**
 * Executes CREATE TOPIC and ALTER TOPIC.
 *
 * A message's offset is derived from the changes to the source tables, and from the sources that
 * were in force at the time of each change. A source therefore keeps its entry after it is
 * dropped, and every definition has a seq.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import {
  checkObjectName,
  type OptionSetting,
  type TableEntry,
  type TopicEntry,
  type TopicSource,
  topicOptionsFrom,
  topicPayloadFrom,
} from "../../catalog/mod.ts";
import { findTable, requireHolder } from "../names/table_names.ts";
import { findTopic, topicNameOf } from "../names/topics.ts";
import type {
  AddSource,
  AlterTopicStatement,
  CreateTopicStatement,
  DropSource,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { optionSettings } from "./table_elements.ts";
import { checkTopicFilter } from "./topic_filter.ts";

/** The parts of the database that topic definitions use. */
export type TopicDefinitionDeps = NameDeps &
  Pick<SqlEnvironment, "clock" | "store"> &
  Pick<DefinitionFollowers, "topics">;

export interface TopicCall {
  readonly principal: Principal;
  /** The namespace in which topic statements look up unqualified names. */
  readonly namespace: string;
}

const PARTITIONS_MAX = 1024;

/**
 * Binds CREATE TOPIC against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME, INVALID_OPTION, …
 */
export function createTopic(
  node: CreateTopicStatement,
  { namespace: current, principal }: TopicCall,
  deps: TopicDefinitionDeps,
): BoundDefinition {
  const { catalog, clock, store } = deps;
  const topics = deps.topics();
  const { name, schema: namespace = current, _location } = node.name;
  const position = _location.start;
  const shown = `${namespace}.${name}`;
  requireHolder(catalog, namespace, node.name);
  checkObjectName("topic", name, { position });
  if (catalog.topic(namespace, name) !== undefined) {
    if (node.ifNotExists === true) return () => `Topic ${shown} already exists`;
    throw taken(shown, "it", position);
  }
  const isTable = catalog.table(namespace, name) !== undefined;
  if (isTable || catalog.view(namespace, name) !== undefined) {
    throw taken(shown, `a ${isTable ? "table" : "view"} with this name`, position);
  }
  const partitions = partitionsOf(node);
  const settings = optionSettings(node.options);
  const options = topicOptionsFrom(settings);
  requireDeadLetters(options.deadLetter, { shown, settings, deps });
  return () => {
    store.requireFreeSpace();
    const seq = store.issueSeq();
    const nowMs = clock.nowMs();
    const topicId = catalog.nextTableId();
    const entry: TopicEntry = {
      topicId,
      namespace,
      name,
      partitions,
      ...options,
      createdSeq: seq,
      clearedSeq: 0,
      sources: [],
      nextSourceId: 1,
      createdBy: principal.userId,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    };
    catalog.createTopic(entry, seq);
    topics.topicsChanged();
    return `Topic ${shown} created`;
  };
}

function taken(shown: string, what: string, position: number): DatabaseError {
  return new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot create topic ${shown}: ${what} already exists`,
    {
      position,
    },
  );
}

function partitionsOf({ _location, partitions = 1 }: CreateTopicStatement): number {
  if (partitions >= 1 && partitions <= PARTITIONS_MAX) return partitions;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot create a topic with ${partitions} partitions: the number of partitions must be ` +
      `between 1 and ${PARTITIONS_MAX}`,
    { position: _location.start },
  );
}

/**
 * Requires that the dead-letter topic named by a statement exists and is a different topic.
 * @throws {DatabaseError} INVALID_OPTION, OBJECT_NOT_FOUND
 */
function requireDeadLetters(
  deadLetter: string | undefined,
  { settings, shown, deps }: { settings: readonly OptionSetting[]; shown: string; deps: NameDeps },
): void {
  const setting = settings.find(({ name }) => name.toUpperCase() === "DEAD_LETTER");
  if (deadLetter === undefined || setting === undefined) return;
  const at = setting.position === undefined ? {} : { position: setting.position };
  if (deadLetter === shown) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot set DEAD_LETTER to "${deadLetter}": a topic cannot be its own dead-letter topic`,
      at,
    );
  }
  const [namespace = "", name = "", ...rest] = deadLetter.split(".");
  if (rest.length === 0 && deps.catalog.topic(namespace, name) !== undefined) return;
  throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find the dead-letter topic "${deadLetter}"`, {
    ...at,
    hint: "create the topic first, and write its name as 'namespace.topic'",
  });
}

/**
 * Binds ALTER TOPIC against the current catalog.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_OPTION, …
 */
export function alterTopic(
  node: AlterTopicStatement,
  call: TopicCall,
  deps: TopicDefinitionDeps,
): BoundDefinition {
  const { catalog, clock, store, topics } = deps;
  const topic = findTopic(catalog, node.name, call.namespace);
  const altered = alteration(node, topic, { ...call, deps });
  return () => {
    store.requireFreeSpace();
    const seq = store.issueSeq();
    catalog.changeTopic({ ...altered(seq), updatedAtMs: clock.nowMs() }, seq);
    topics().topicsChanged();
    return `Topic ${topicNameOf(topic)} altered`;
  };
}

/**
 * Checks an ALTER TOPIC action. Returns a function that takes the seq of the definition and
 * returns the altered topic.
 */
function alteration(
  { change }: AlterTopicStatement,
  topic: TopicEntry,
  call: SourceCall,
): (seq: Seq) => TopicEntry {
  switch (change.type) {
    case "add source":
      return addSource(change, topic, call);
    case "drop source":
      return dropSource(change, topic, call);
    case "set options": {
      const settings = optionSettings(change.options);
      const options = topicOptionsFrom(settings, topic);
      requireDeadLetters(options.deadLetter, { shown: topicNameOf(topic), settings, ...call });
      const { deadLetter: _, maxDeliveries: __, ...rest } = topic;
      return () => ({ ...rest, ...options });
    }
  }
}

interface SourceCall extends TopicCall {
  readonly deps: TopicDefinitionDeps;
}

function addSource(
  change: AddSource,
  topic: TopicEntry,
  call: SourceCall,
): (seq: Seq) => TopicEntry {
  const { operation, source: where } = change;
  const table = sourceTable(change, call);
  const { tableId } = table;
  if (sourceInForce(topic, { operation, tableId }) !== undefined) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot add source ${routeOf(table, change)} to topic ${topicNameOf(topic)}: the topic already has this source`,
      {
        position: change._location.start,
        hint: "to change the WHERE or the payload of a source, drop the source first",
      },
    );
  }
  const payload = topicPayloadFrom(optionSettings(change.options));
  if (payload === "key" && table.primaryKey.length === 0) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot publish the key of table ${table.namespace}.${table.name}: the table has no ` +
        "primary key",
      { position: change._location.start },
    );
  }
  if (change.where !== undefined) checkTopicFilter(change.where, table);
  return (seq) => ({
    ...topic,
    nextSourceId: topic.nextSourceId + 1,
    sources: [
      ...topic.sources,
      {
        sourceId: topic.nextSourceId,
        tableId,
        operation,
        ...(where === undefined ? {} : { where }),
        payload,
        fromSeq: seq,
      },
    ],
  });
}

function dropSource(
  change: DropSource,
  topic: TopicEntry,
  call: SourceCall,
): (seq: Seq) => TopicEntry {
  const { operation } = change;
  const table = sourceTable(change, call);
  const dropped = sourceInForce(topic, { operation, tableId: table.tableId });
  if (dropped === undefined) {
    throw new DatabaseError(
      "OBJECT_NOT_FOUND",
      `Cannot find source ${routeOf(table, change)} in topic ${topicNameOf(topic)}`,
      {
        position: change._location.start,
        hint: `to list the sources, run DESCRIBE TOPIC ${topicNameOf(topic)}`,
      },
    );
  }
  return (seq) => ({
    ...topic,
    sources: topic.sources.map((each) =>
      each.sourceId === dropped.sourceId ? { ...each, toSeq: seq } : each,
    ),
  });
}

function sourceInForce(
  { sources }: TopicEntry,
  route: Pick<TopicSource, "operation" | "tableId">,
): TopicSource | undefined {
  return sources.find(
    ({ operation, tableId, toSeq }) =>
      toSeq === undefined && tableId === route.tableId && operation === route.operation,
  );
}

/**
 * Returns the source table that a topic statement names.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, READ_ONLY_OBJECT, INVALID_OPERATION
 */
function sourceTable(
  { table: named, type }: AddSource | DropSource,
  { namespace, principal, deps }: SourceCall,
): TableEntry {
  deps.systemViews.refuse(named, { namespace, principal, action: `${type} of` });
  return findTable(deps, named, { namespace, node: named, principal });
}

function routeOf(
  { name, namespace }: TableEntry,
  { operation }: Pick<TopicSource, "operation">,
): string {
  return `${namespace}.${name} ON ${operation.toUpperCase()}`;
}
