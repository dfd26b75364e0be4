/**
 * Executes DROP TABLE. It also drops tables on behalf of other statements: the tables of a dropped
 * namespace, and materialized views that read a dropped object. In one tick, a drop receives a
 * seq, commits in the catalog and takes effect in storage. The files that contain the rows are
 * removed afterwards.
 */
import { type Principal, requireDrop, requireReach, requireRun } from "../../auth/mod.ts";
import { isExpected } from "../../base/errors.ts";
import type { Catalog, PartitionViewEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import type { IncomingReference } from "../execute/context/execution_context.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { removeDroppedFiles } from "../files/uploads.ts";
import { materializedAmong, requireMaterialized } from "../names/materialized_views.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { partitionsOf } from "../names/partitions.ts";
import { type PlacedPolicy, policiesNeeding, refusePolicies } from "../names/policies.ts";
import { referencesTo } from "../names/references.ts";
import { columnsTakingFrom, type NumberedColumn, sequencesOf } from "../names/sequences.ts";
import { findTable, visibleTable, visibleView } from "../names/table_names.ts";
import { type PlacedTrigger, refuseTriggers, triggersCalling } from "../names/triggers.ts";
import { dependentsOf, type Removal, refuseDependents } from "../names/views.ts";
import type { DropTableStatement, QName } from "../parse/ast/ast.ts";
import { droppedMessage } from "./dropped_message.ts";
import { refuseReferring } from "./foreign_keys.ts";
import { HeldOffsets } from "./held_offsets.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { droppedWith, removePartitions } from "./partition_definitions.ts";
import { dropForeignKey, dropPolicy, dropTrigger } from "./redefined_table.ts";
import { dropDefaults, refuseNumbered } from "./sequence_definitions.ts";
import {
  type DroppedFileDeps,
  qualifiedName,
  requireKind,
  type TableCall,
  type TableDeps,
} from "./table_statement.ts";
import { topicsWithout } from "./topic_sources.ts";

/** The objects that a statement drops, together with everything that depends on them. */
export interface DroppedObjects {
  /** The dropped tables, including the tables of materialized views. */
  readonly tables: readonly TableEntry[];
  /** The dropped views and functions, and the queries of dropped materialized views. */
  readonly views: readonly ViewEntry[];
  /** The dropped partitions of tables that are kept, keyed by table id. */
  readonly partitions: ReadonlyMap<number, readonly PartitionViewEntry[]>;
  /** The columns of kept tables whose DEFAULTs use a dropped sequence. */
  readonly numbered: readonly NumberedColumn[];
  /** The foreign keys of kept tables that refer to dropped tables. */
  readonly referring: readonly IncomingReference[];
  /** The policies of kept tables that read dropped tables. */
  readonly policies: readonly PlacedPolicy[];
  /** The triggers of kept tables that call dropped functions. */
  readonly triggers: readonly PlacedTrigger[];
  /** The description of the dropped objects in the response. */
  readonly message: string;
}

/**
 * Checks the caller's rights for DROP TABLE, before any part of the request runs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeDropTables(
  { names }: DropTableStatement,
  { namespace, principal }: { principal: Principal; namespace: string },
  catalog: Catalog,
): void {
  for (const name of names) {
    const holder = catalog.namespace(name.schema ?? namespace);
    requireRun(principal, "removeTable", {
      action: `drop table ${qualifiedName(name, namespace)}`,
      ...(holder === undefined ? {} : { namespace: holder }),
    });
  }
}

/**
 * Binds DROP TABLE against the current catalog.
 * @throws {DatabaseError}
 */
export function dropTables(
  node: DropTableStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const dropped = (): DroppedObjects => droppedBy(node, call, deps);
  dropped();
  return () => dropAll(dropped, call.ledger, deps);
}

/**
 * Returns the objects that a statement drops, together with everything that depends on them.
 *
 * @throws {DatabaseError}
 */
function droppedBy(
  node: DropTableStatement,
  { namespace, principal }: TableCall,
  deps: TableDeps,
): DroppedObjects {
  const { catalog, systemViews } = deps;
  // A statement may name a table twice, but the table is dropped only once.
  const tables = new Map<number, TableEntry>();
  const partitions = new Map<number, PartitionViewEntry>();
  const missing: string[] = [];
  const { ifExists } = node;
  for (const name of node.names) {
    systemViews.refuse(name, { namespace, principal, action: "drop", ifExists });
    const named = { namespace: name.schema ?? namespace, name: name.name };
    const table = visibleTable(catalog, named, principal);
    const parts = partsNamed(name, { namespace, principal }, deps);
    for (const each of parts) partitions.set(each.viewId, each);
    if (parts.length > 0) continue;
    const isView = visibleView(deps, named, principal) !== undefined;
    if (table === undefined && ifExists === true && !isView) {
      missing.push(qualifiedName(name, namespace));
      continue;
    }
    const found = table ?? findTable(deps, name, { namespace, node: name, principal });
    requireDrop(principal, found, { namespace: catalog.namespace(found.namespace) });
    requireKind(node.kind, found, node);
    requireMaterialized(node.isMaterialized === true, found, { node: name, verb: "DROP" });
    tables.set(found.tableId, found);
  }
  const ids = new Set(tables.keys());
  const own = [...ids].flatMap((tableId) => partitionsOf(catalog, tableId));
  for (const { viewId } of own) partitions.delete(viewId);
  const dropped = [...tables.values(), ...partitions.values()].map(
    (each) => `${each.namespace}.${each.name}`,
  );
  const kind = node.isMaterialized === true ? "materialized view" : "table";
  const statement = {
    action: `drop ${kind} ${dropped.join(", ")}`,
    position: node._location.start,
    isCascading: node.cascade === "cascade",
    principal,
  };
  const message = droppedMessage(kind, { dropped, missing });
  return { ...withDependents({ tables, entries: [], partitions }, statement, catalog), message };
}

/**
 * Returns the partition with a given name and the partitions within it; an empty list if there is
 * none.
 */
function partsNamed(
  name: QName,
  caller: Pick<TableCall, "namespace" | "principal">,
  deps: TableDeps,
): readonly PartitionViewEntry[] {
  const partition = partitionNamed(name, caller, deps);
  return partition === undefined ? [] : droppedWith(partition, caller, deps);
}

/** The objects that a statement names, or the contents of a namespace that it names. */
export interface NamedObjects {
  /** The named tables, keyed by id. */
  readonly tables: ReadonlyMap<number, TableEntry>;
  /** Views and functions. */
  readonly entries: readonly ViewEntry[];
  /** The partitions of tables that are not dropped, keyed by view id. */
  readonly partitions?: ReadonlyMap<number, PartitionViewEntry>;
  /** Views, and the queries of materialized views, that use a dropped type. */
  readonly users?: readonly ViewEntry[];
}

/**
 * Returns objects together with everything that depends on them.
 *
 * @param statement.principal The user whose rights are checked; undefined if the server itself
 *   drops the objects.
 * @throws {DatabaseError} DEPENDENT_OBJECTS, PERMISSION_DENIED
 */
export function withDependents(
  named: NamedObjects,
  {
    action,
    isCascading,
    position,
    principal,
  }: { action: string; isCascading: boolean; position: number; principal: Principal | undefined },
  catalog: Catalog,
): Omit<DroppedObjects, "message"> {
  const tables = new Map(named.tables);
  const partitions = [...(named.partitions?.values() ?? [])];
  const { entries, users = [] } = named;
  for (const table of materializedAmong(users, catalog)) tables.set(table.tableId, table);
  const viewIds = new Set([...entries, ...partitions, ...users].map(({ viewId }) => viewId));
  const dependents = [...users, ...dependentsDropped(tables, { viewIds }, { catalog, principal })];
  const ids = new Set(tables.keys());
  const own = [...ids].flatMap((tableId) => partitionsOf(catalog, tableId));
  const gone = new Set([...viewIds, ...dependents.map(({ viewId }) => viewId)]);
  const triggers = triggersCalling(catalog, gone).filter(
    ({ table }) => !("viewId" in table ? gone.has(table.viewId) : ids.has(table.tableId)),
  );
  const sequences = [...ids].flatMap((tableId) => sequencesOf(catalog, tableId));
  const numbered = columnsTakingFrom(catalog, sequences, ids);
  const referring = [...ids].flatMap((tableId) =>
    referencesTo(catalog, tableId).filter(({ child }) => !ids.has(child.tableId)),
  );
  const policies = policiesNeeding(catalog, { tableIds: ids });
  const elsewhere = [
    ...dependents,
    ...numbered.map(({ table }) => table),
    ...referring.map(({ child }) => child),
    ...policies.map(({ table }) => table),
    ...triggers.map(({ table }) => table),
  ];
  if (principal !== undefined) requireReach(principal, elsewhere, { action, position });
  if (!isCascading) {
    refuseDependents(action, dependents, { position });
    refuseNumbered(action, numbered, position);
    refuseReferring(action, referring, position);
    refusePolicies(action, policies, { position });
    refuseTriggers(action, triggers, { position });
  }

  const views = [...entries, ...dependents, ...own];
  return {
    tables: [...tables.values()],
    views,
    partitions: Map.groupBy(partitions, ({ partition: { tableId } }) => tableId),
    numbered,
    policies,
    referring,
    triggers,
  };
}

/**
 * Returns the views and functions that depend on removed objects. The tables of materialized views
 * among them are added to `tables`. The result does not include the queries of materialized views
 * that the statement names, because {@linkcode drop} drops them with their tables.
 *
 * @param tables The removed tables.
 * @param removal Other removed objects.
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function dependentsDropped(
  tables: Map<number, TableEntry>,
  removal: Pick<Removal, "columns" | "viewIds">,
  { catalog, principal }: { readonly catalog: Catalog; readonly principal: Principal | undefined },
): readonly ViewEntry[] {
  const own = [
    ...queriesOf([...tables.values()], catalog),
    ...[...tables.keys()].flatMap((tableId) => partitionsOf(catalog, tableId)),
  ];
  const viewIds = new Set([...(removal.viewIds ?? []), ...own.map(({ viewId }) => viewId)]);
  const tableIds = new Set(tables.keys());
  const views = dependentsOf(catalog, { ...removal, tableIds, viewIds });
  const dependent = materializedAmong(views, catalog).filter(({ tableId }) => !tables.has(tableId));
  for (const table of dependent) {
    const namespace = catalog.namespace(table.namespace);
    if (principal !== undefined) requireDrop(principal, table, { namespace });
    tables.set(table.tableId, table);
  }
  if (dependent.length === 0) return views;
  const known = new Set(views.map(({ viewId }) => viewId));
  const more = dependentsDropped(tables, removal, { catalog, principal });
  return [...views, ...more.filter(({ viewId }) => !known.has(viewId))];
}

/** Returns the catalog entries for the queries of the materialized views among `tables`. */
function queriesOf(tables: readonly TableEntry[], catalog: Catalog): ViewEntry[] {
  return tables.flatMap(({ materialized }) =>
    materialized === undefined ? [] : (catalog.viewById(materialized.queryId) ?? []),
  );
}

/**
 * Drops objects and everything that depends on them.
 *
 * @param droppedNow Binds the statement against the catalog's state in the current tick.
 */
export async function dropAll(
  droppedNow: () => DroppedObjects,
  ledger: RequestLedger,
  deps: TableDeps,
): Promise<string> {
  const held = new HeldOffsets(deps);
  const removals: Promise<void>[] = [];
  let message: string | undefined;
  try {
    while (message === undefined) {
      const { numbered, partitions, policies, referring, tables, triggers, views, ...dropped } =
        droppedNow();
      const unheld = tables.find(({ tableId }) => !held.holds(tableId));
      if (unheld !== undefined) {
        await held.hold(unheld.tableId);
        continue;
      }
      dropDefaults(deps, numbered);
      for (const each of referring) dropForeignKey(deps, each);
      for (const each of policies) dropPolicy(deps, each);
      for (const each of triggers) dropTrigger(deps, each);
      for (const [tableId, each] of partitions) removePartitions(deps, tableId, each);
      // The query of a materialized view is dropped with its own table.
      const plain = views.filter(({ resultId }) => resultId === undefined);
      removals.push(...dropTogether(tables, { views: plain, ledger }, deps));
      message = dropped.message;
    }
  } finally {
    held.release();
  }
  await Promise.all(removals);
  return message;
}

/**
 * Drops tables and views in the current tick. Each result resolves like the result of {@linkcode
 * drop}.
 *
 * @throws {DatabaseError}
 */
export function dropTogether(
  tables: readonly TableEntry[],
  { ledger, views }: { readonly views: readonly ViewEntry[]; readonly ledger: RequestLedger },
  deps: TableDeps,
): Promise<void>[] {
  const removals = tables.map((table, index) =>
    drop(table, { views: index === 0 ? views : [], ledger }, deps),
  );
  if (tables.length === 0) deps.catalog.dropViews(views);
  if (views.length > 0) deps.live().viewChanged();
  return removals;
}

/** Drops temporary tables and views at the end of their transaction, if they still exist. */
export async function dropTemporary(
  ids: { readonly tableIds: readonly number[]; readonly viewIds: readonly number[] },
  ledger: RequestLedger,
  deps: TableDeps,
): Promise<void> {
  const { catalog } = deps;
  const statement = { action: "end the transaction", isCascading: true, position: 0 };
  const dropped = (): DroppedObjects => {
    const tables = ids.tableIds.flatMap((tableId) => catalog.tableById(tableId) ?? []);
    const entries = ids.viewIds.flatMap((viewId) => catalog.viewById(viewId) ?? []);
    const named = { tables: new Map(tables.map((table) => [table.tableId, table])), entries };
    return {
      ...withDependents(named, { ...statement, principal: undefined }, catalog),
      message: "",
    };
  };
  await dropAll(dropped, ledger, deps);
}

/**
 * Drops a table in the current tick. The result resolves once the table's files have been removed,
 * or their removal has been left to a later job.
 *
 * @throws {DatabaseError}
 */
function drop(
  table: TableEntry,
  { ledger, views: dependents }: { views: readonly ViewEntry[]; ledger: RequestLedger },
  deps: TableDeps,
): Promise<void> {
  const { catalog, live, store, topics: topicAccess } = deps;
  const { tableId } = table;
  const seq = store.issueSeq();
  const views = [...dependents, ...queriesOf([table], catalog)];
  const topics = topicsWithout(catalog, tableId, seq);
  const droppedSequences = sequencesOf(catalog, tableId);
  catalog.dropTable(tableId, seq, { views, topics, droppedSequences });
  store.dropTable(tableId);
  live().tableChanged(tableId);
  if (topics.length > 0) topicAccess().topicsChanged();
  if (deps.afterCommit === undefined) return removeFiles(tableId, ledger, deps);
  deps.afterCommit((later) => removeFiles(tableId, ledger, later));
  return Promise.resolve();
}

/**
 * Removes the files of a dropped table, unless the statement is killed. A kill is not an error
 * here, because the table has already been dropped.
 */
async function removeFiles(
  tableId: number,
  ledger: RequestLedger,
  deps: DroppedFileDeps,
): Promise<void> {
  const isEnded = (): boolean => ledger.cancelledBy !== undefined;
  try {
    await removeDroppedFiles(tableId, deps, isEnded);
  } catch (error) {
    // Ignoring the error is safe: no statement can reach the files any longer, and an hourly job
    // tries again to remove them.
    if (!isExpected(error)) throw error;
    deps.log.warn("cannot delete the files of a dropped table", { error: error.message });
  }
}
