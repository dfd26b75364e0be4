/**
 * Adapts topics to a change of a source table.
 *
 * - The condition of a source keeps its meaning: if a column is renamed, the condition is
 *   rewritten to use the new name.
 * - A source ends when its table, or a column that its condition reads, is dropped. The topic
 *   keeps the messages that can still be read, and their offsets.
 */

import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry, TopicEntry, TopicSource } from "../../catalog/mod.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import { topicNameOf, topicsOf } from "../names/topics.ts";
import type { AlterTableStatement, Expr } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { parseExpression } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { checkTopicFilter } from "./topic_filter.ts";

/** Throws if the caller's token excludes the namespace of a dependent object. */
export type TokenReach = (places: readonly { readonly namespace: string }[]) => void;

/** A table before and after ALTER TABLE. */
interface AlteredTable {
  readonly before: TableEntry;
  readonly after: TableEntry;
}

/**
 * Requires that the conditions of all topic sources over a table remain valid.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS without CASCADE if a condition reads a dropped column;
 *   INVALID_DEFINITION if a condition does not fit a column's new type; PERMISSION_DENIED if the
 *   caller's token excludes a topic
 */
export function requireSourcesKept(
  { catalog, reach }: { readonly catalog: Pick<Catalog, "topics">; readonly reach: TokenReach },
  { after, before }: AlteredTable,
  node: AlterTableStatement,
): void {
  for (const topic of topicsOf(catalog, before.tableId)) {
    for (const source of topic.sources) {
      if (source.tableId !== before.tableId || source.toSeq !== undefined) continue;
      const { where } = source;
      if (where === undefined) continue;
      const { missing, text } = retargeted(where, { before, after });
      if (missing !== undefined || text !== where) reach([topic]);
      if (missing === undefined) requireFit(text, { after, topic, node });
      else requireCascade(missing, node, { topic, source, table: before });
    }
  }
}

/**
 * Returns the error for a topic source whose condition reads a dropped column, which requires
 * CASCADE.
 *
 * @param missing The dropped column that the source's condition reads.
 */
function requireCascade(
  missing: string,
  { _location, changes }: AlterTableStatement,
  { source, table, topic }: { source: TopicSource; table: TableEntry; topic: TopicEntry },
): void {
  const drop = changes.find((each) => each.type === "drop column" && each.column.name === missing);
  if (drop?.type === "drop column" && drop.behaviour === "cascade") return;
  const route = `${table.namespace}.${table.name} ON ${source.operation.toUpperCase()}`;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot drop column "${missing}": topic ${topicNameOf(topic)} reads it in the WHERE of its ` +
      `source ${route}`,
    {
      position: (drop ?? { _location })._location.start,
      hint: "add CASCADE to drop that source as well",
    },
  );
}

function requireFit(
  text: string,
  { after, node, topic }: { after: TableEntry; node: AlterTableStatement; topic: TopicEntry },
): void {
  try {
    checkTopicFilter(parseStored(text, after.columns), after);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot alter ${after.namespace}.${after.name}: it is a source of topic ` +
        `${topicNameOf(topic)}, and the WHERE of the source would no longer be valid: ` +
        error.message,
      { position: node._location.start, cause: error },
    );
  }
}

/**
 * Returns the topics that change because a source table is altered.
 *
 * @param seq The seq of the definition.
 */
export function topicsWith(
  catalog: Pick<Catalog, "topics">,
  altered: AlteredTable,
  seq: Seq,
): TopicEntry[] {
  const { tableId } = altered.before;
  return changedTopics(catalog, tableId, (source) => {
    if (source.where === undefined) return source;
    const { missing, text } = retargeted(source.where, altered);
    if (missing !== undefined) return ended(source, seq);
    return text === source.where ? source : { ...source, where: text };
  });
}

/**
 * Returns the topics that change because a source table is dropped.
 *
 * @param seq The seq of the definition.
 */
export function topicsWithout(
  catalog: Pick<Catalog, "topics">,
  tableId: number,
  seq: Seq,
): TopicEntry[] {
  return changedTopics(catalog, tableId, (source) => ended(source, seq));
}

function ended(source: TopicSource, seq: Seq): TopicSource {
  return source.toSeq === undefined ? { ...source, toSeq: seq } : source;
}

function changedTopics(
  catalog: Pick<Catalog, "topics">,
  tableId: number,
  change: (source: TopicSource) => TopicSource,
): TopicEntry[] {
  return topicsOf(catalog, tableId).flatMap((topic) => {
    const sources = topic.sources.map((each) => (each.tableId === tableId ? change(each) : each));
    const isSame = sources.every((each, index) => each === topic.sources[index]);
    return isSame ? [] : [{ ...topic, sources }];
  });
}

interface Retargeted {
  readonly text: string;
  /** A column that the condition of a topic source reads although the table no longer has it. */
  readonly missing?: string | undefined;
}

/**
 * Returns the condition of a topic source with each column name replaced by the column's current
 * name.
 */
function retargeted(where: string, { after, before }: AlteredTable): Retargeted {
  const places: { start: number; end: number; name: string }[] = [];
  for (const part of partsOf(parseExpression(where))) {
    const node: Partial<Expr> = part;
    if (node.type !== "ref" || node._location === undefined) continue;
    const column = before.columns.find(({ name }) => name === node.name);
    // A topic source that has already ended may read a column that was dropped earlier.
    const name = after.columns.find(({ columnId }) => columnId === column?.columnId)?.name;
    if (name === undefined) return { text: where, missing: node.name };
    const namesTable = node.table !== undefined && after.name !== before.name;
    if (name !== node.name || namesTable) places.push({ ...node._location, name });
  }
  const text = places
    .toSorted((left, right) => right.start - left.start)
    .reduce(
      (so, { end, name, start }) => so.slice(0, start) + nameText(name) + so.slice(end),
      where,
    );
  return { text };
}
