/**
 * Puts a table's changed definition into force: in the catalog, in storage, for live queries and
 * for topics, all in one tick.
 */
import type { Dependents, ForeignKeyEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import type { IncomingReference } from "../execute/context/execution_context.ts";
import { withPartitions } from "../names/partitions.ts";
import { type PlacedPolicy, withoutPolicies } from "../names/policies.ts";
import { type PlacedTrigger, withTriggers, withViewTriggers } from "../names/triggers.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";
import { inForceSince } from "./foreign_keys.ts";
import { topicsWith } from "./topic_sources.ts";

export type RedefinitionDeps = Pick<SqlEnvironment, "catalog" | "definitionOf" | "store"> &
  Pick<DefinitionFollowers, "live" | "topics">;

/**
 * Puts a table's changed definition into force.
 *
 * @param others Changes to other objects that belong to the same catalog transaction.
 */
export function redefineTable(
  { catalog, definitionOf, live, store, topics: topicAccess }: RedefinitionDeps,
  { after: written, before }: { before: TableEntry; after: TableEntry },
  given: Dependents = {},
): void {
  const seq = store.issueSeq();
  const { after, others } = withPartitions(catalog, { before, after: written }, given);
  const topics = topicsWith(catalog, { before, after }, seq);
  catalog.changeTable(inForceSince(after, seq), seq, { ...others, topics });
  store.defineTable(definitionOf(after));
  live().tableChanged(after.tableId);
  if (topics.length > 0) topicAccess().topicsChanged();
}

/** Puts a view's changed definition into force. */
export function redefineView(
  { catalog, live, store }: Pick<RedefinitionDeps, "catalog" | "live" | "store">,
  view: ViewEntry,
): void {
  catalog.changeView({ ...view, changedSeq: store.issueSeq() });
  live().viewChanged();
}

/**
 * Changes a foreign key in the current entry of its table. If `change` returns undefined, the key
 * is dropped.
 */
export function changeForeignKey(
  deps: RedefinitionDeps,
  { name, tableId }: { tableId: number; name: string },
  change: (key: ForeignKeyEntry) => ForeignKeyEntry | undefined,
): void {
  const before = deps.catalog.tableById(tableId);
  if (before?.foreignKeys === undefined) return;
  const foreignKeys = before.foreignKeys.flatMap((key) =>
    key.name === name ? (change(key) ?? []) : [key],
  );
  const schemaVersion = before.schemaVersion + 1;
  redefineTable(deps, { before, after: { ...before, foreignKeys, schemaVersion } });
}

export function dropForeignKey(deps: RedefinitionDeps, { child, key }: IncomingReference): void {
  changeForeignKey(deps, { tableId: child.tableId, name: key.name }, () => undefined);
}

/** Drops a policy from the current entry of its table. */
export function dropPolicy(deps: RedefinitionDeps, { policy, table }: PlacedPolicy): void {
  const before = deps.catalog.tableById(table.tableId);
  if (before !== undefined)
    redefineTable(deps, { before, after: withoutPolicies(before, [policy]) });
}

/** Drops a trigger from the current entry of its table or view. */
export function dropTrigger(deps: RedefinitionDeps, { table, trigger }: PlacedTrigger): void {
  if ("viewId" in table) {
    const view = deps.catalog.viewById(table.viewId);
    const left = (view?.triggers ?? []).filter(({ name }) => name !== trigger.name);
    if (view !== undefined) redefineView(deps, withViewTriggers(view, left));
    return;
  }
  const before = deps.catalog.tableById(table.tableId);
  if (before === undefined) return;
  const kept = (before.triggers ?? []).filter(({ name }) => name !== trigger.name);
  const schemaVersion = before.schemaVersion + 1;
  redefineTable(deps, { before, after: { ...withTriggers(before, kept), schemaVersion } });
}
