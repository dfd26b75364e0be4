/**
 * Implements the catalog changes of ATTACH PARTITION and DETACH PARTITION.
 * `sql/request/partition_changes.ts` moves the rows within the same transaction.
 */
import { requireAlter, requireCreateTable, requireDrop, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type ColumnEntry,
  type IndexEntry,
  KEY_INDEX_ID,
  type PartitionViewEntry,
  shownColumnsOf,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { sameType, typeName } from "../../types/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { partitionAsTable } from "../names/partition_tables.ts";
import { derivedPartitions, partitionsOf, withParts } from "../names/partitions.ts";
import { referencesTo } from "../names/references.ts";
import { findTable } from "../names/table_names.ts";
import type { QueryCatalog } from "../names/views.ts";
import type {
  AstNode,
  AttachPartitionStatement,
  DetachPartitionStatement,
  PartitionDefinition,
  Statement,
} from "../parse/ast/ast.ts";
import {
  type Adoption,
  adoptedPartitioning,
  adoptedPartitions,
  requireAdoptable,
  withAdopted,
} from "./adopted_parts.ts";
import { inForceSince } from "./foreign_keys.ts";
import { takenNames, withFreeKeyName } from "./index_elements.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import type { PartitionChange } from "./partition_alteration.ts";
import {
  addPartition,
  type NewPartition,
  partitionedNamed,
  plannedPartition,
  removePartitions,
} from "./partition_definitions.ts";
import { redefineTable } from "./redefined_table.ts";
import { storageDirectoryOf } from "./storage_definitions.ts";
import { qualifiedName, type TableCall, type TableDeps } from "./table_statement.ts";

type PartitionCaller = Pick<TableCall, "namespace" | "principal">;
type NamedIn = Pick<TableDeps, "catalog" | "systemViews">;

/**
 * Returns the name of an attached table while its rows are being moved. No statement can refer to
 * this name.
 */
export function movedName({ name }: { readonly name: string }): string {
  return `?${name}`;
}

/**
 * Checks the caller's rights for ATTACH or DETACH PARTITION, before any part of the request runs.
 * @throws {DatabaseError}
 */
export function authorizePartition(
  node: PartitionDefinition,
  { namespace, principal }: PartitionCaller,
  { catalog }: NamedIn,
): void {
  const holder = catalog.namespace(node.table.schema ?? namespace);
  requireRun(principal, "defineTable", {
    action: `run ${node.type.toUpperCase()}`,
    position: node._location.start,
    ...(holder === undefined ? {} : { namespace: holder }),
  });
}

export function isPartitionDefinition(node: Statement): node is PartitionDefinition {
  return node.type === "attach partition" || node.type === "detach partition";
}

/**
 * Binds ATTACH and DETACH PARTITION against the current catalog.
 * @throws {DatabaseError}
 */
export function definePartition(
  node: PartitionDefinition,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  return node.type === "attach partition"
    ? attachPartition(node, call, deps)
    : detachPartition(node, call, deps);
}

function refused(message: string, { _location }: AstNode, hint?: string): DatabaseError {
  const position = _location.start;
  const about = hint === undefined ? { position } : { position, hint };
  return new DatabaseError("INVALID_OPERATION", message, about);
}

/** Returns the table that ATTACH PARTITION turns into a partition. */
export function attachedTable(
  node: AttachPartitionStatement,
  { namespace, principal }: PartitionCaller,
  deps: NamedIn,
): { readonly table: TableEntry; readonly parent: TableEntry; readonly columnIds: number[] } {
  const { catalog } = deps;
  const { table: parent } = partitionedNamed(node.table, { namespace, principal }, deps);
  const existing = partitionNamed(node.partition, { namespace, principal }, deps);
  const shown = qualifiedName(node.partition, namespace);
  if (existing !== undefined)
    throw refused(`Cannot attach ${shown}: it is already a partition`, node.partition);
  const table = findTable(deps, node.partition, { namespace, node: node.partition, principal });
  requireAlter(principal, parent, { namespace: catalog.namespace(parent.namespace) });
  requireDrop(principal, table, { namespace: catalog.namespace(table.namespace) });
  if (table === parent) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot attach ${shown}: a table cannot become a partition of itself`,
      { position: node.partition._location.start },
    );
  }
  if (table.kind !== "shared") {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot attach ${shown}: only a SHARED table can become a partition`,
      { position: node.partition._location.start },
    );
  }
  const topic = catalog
    .topics()
    .find(({ sources }) =>
      sources.some(({ tableId, toSeq }) => tableId === table.tableId && toSeq === undefined),
    );
  if (topic !== undefined) {
    throw refused(
      `Cannot attach ${shown}: it is a source of topic ${topic.namespace}.${topic.name}`,
      node.partition,
      "drop this source from the topic first",
    );
  }
  requireAlike(table, parent, node.partition);
  requireAdoptable({ source: table, parent, node: node.partition });
  const columnIds = shownColumnsOf(table).flatMap(
    ({ name }) => columnWith(parent, name)?.columnId ?? [],
  );
  return { table, parent, columnIds };
}

function columnWith(table: TableEntry, name: string): ColumnEntry | undefined {
  return shownColumnsOf(table).find((column) => column.name === name);
}

/** Requires that two tables have the same columns, in any order. */
function requireAlike(table: TableEntry, parent: TableEntry, { _location }: AstNode): void {
  const unlike = (what: string): DatabaseError =>
    new DatabaseError("TYPE_MISMATCH", `Cannot attach ${nameOf(table)}: ${what}`, {
      position: _location.start,
    });
  for (const { generatedSql, name, type } of shownColumnsOf(table)) {
    const other = columnWith(parent, name);
    if (other === undefined) throw unlike(`${nameOf(parent)} has no column "${name}"`);
    if (generatedSql !== other.generatedSql) {
      throw unlike(
        generatedSql !== undefined && other.generatedSql !== undefined
          ? `the expressions of the generated column "${name}" differ`
          : `column "${name}" is generated in only one of the tables`,
      );
    }
    if (sameType(type, other.type)) continue;
    const [own, wanted] = [typeName(type), typeName(other.type)];
    throw unlike(`column "${name}" is ${own}, but ${wanted} in ${nameOf(parent)}`);
  }
  const missing = shownColumnsOf(parent).find(({ name }) => columnWith(table, name) === undefined);
  if (missing !== undefined) throw unlike(`column "${missing.name}" is missing`);
}

/**
 * Binds ATTACH PARTITION: the table gets a name that no statement can use, and the partition takes
 * over the table's former name.
 */
function attachPartition(
  node: AttachPartitionStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const planned = (): { readonly added: NewPartition; readonly adoption: Adoption } => {
    const { columnIds, parent, table: source } = attachedTable(node, call, deps);
    const adoption = { source, parent, node: node.partition };
    const partitioned = adoptedPartitioning(adoption);
    const added = { parent: node.table, bounds: node.bounds, columnIds, partitioned };
    return { added, adoption };
  };
  plannedPartition(planned().added, call, deps);
  return async () => {
    const { added, adoption } = planned();
    const { source: table } = adoption;
    const parts = partitionsOf(deps.catalog, table.tableId);
    const sequences = deps.catalog.sequences().flatMap(({ ownedBy }) => ownedBy ?? []);
    const numbered = new Set(
      sequences.flatMap(({ columnId, tableId }) => (tableId === table.tableId ? columnId : [])),
    );
    redefineTable(deps, { before: table, after: withoutName(table) });
    const { name, namespace } = table;
    const own = {
      addTo: (parent: TableEntry, change: PartitionChange): TableEntry =>
        withAdopted(parent, { ...adoption, numbered }, change),
      parts: (viewId: number): readonly PartitionViewEntry[] =>
        adoptedPartitions(parts, adoption, viewId),
    };
    const place = { name, namespace };
    await addPartition(() => plannedPartition(added, call, deps), place, { call, deps, own });
    return `Partition ${namespace}.${name} attached`;
  };
}

/**
 * Returns an attached table in the form in which its rows are moved: without its name, and without
 * anything that bears a name of its own.
 */
function withoutName(table: TableEntry): TableEntry {
  const { indexes: _, keyName: __, partitioned: ___, partitionIndexes: ____, ...rest } = table;
  const { partitionChecks: _____, partitionDefaults: ______, ...plain } = rest;
  return { ...plain, name: movedName(table), schemaVersion: table.schemaVersion + 1 };
}

/** Returns the partition that DETACH PARTITION turns into a table. */
export function detachedPartition(
  node: DetachPartitionStatement,
  { namespace, principal }: PartitionCaller,
  deps: NamedIn,
): { readonly entry: PartitionViewEntry; readonly table: TableEntry } {
  const { catalog } = deps;
  const { partition: parent, table } = partitionedNamed(node.table, { namespace, principal }, deps);
  const found = partitionNamed(node.partition, { namespace, principal }, deps);
  const { parentId, tableId } = found?.entry.partition ?? {};
  if (found === undefined || tableId !== table.tableId || parentId !== parent?.viewId) {
    throw new DatabaseError(
      "TABLE_NOT_FOUND",
      `Cannot find partition ${qualifiedName(node.partition, namespace)} of ${qualifiedName(node.table, namespace)}`,
      { position: node.partition._location.start },
    );
  }
  const holder = catalog.namespace(found.entry.namespace);
  requireAlter(principal, table, { namespace: catalog.namespace(table.namespace) });
  requireCreateTable(principal, qualifiedName(node.partition, namespace), { namespace: holder });
  const file = table.columns.find(({ type }) => type.kind === "file");
  if (file === undefined) return found;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot detach ${qualifiedName(node.partition, namespace)}: files in column "${file.name}" cannot move to another table`,
    { position: node._location.start },
  );
}

/** Binds DETACH PARTITION: a new table takes over the name of the partition. */
function detachPartition(
  node: DetachPartitionStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  detachedPartition(node, call, deps);
  return () => {
    const { catalog, clock, definitionOf, live, store } = deps;
    const { entry, table } = detachedPartition(node, call, deps);
    const { name, namespace } = entry;
    const [, ...parts] = withParts(catalog, entry);
    removePartitions(deps, table.tableId, [entry, ...parts]);
    store.requireFreeSpace();
    const nowMs = clock.nowMs();
    const tableId = catalog.nextTableId();
    const { kind, options } = table;
    const directoryOf = storageDirectoryOf(deps, { entries: [], kind, options });
    const { copied, named: kept } = detachedForm(table, entry);
    const { partitioned } = entry.partition;
    const renamed: TableEntry = {
      ...copied,
      ...(partitioned === undefined ? {} : { partitioned }),
      tableId,
      namespace,
      name,
      columns: copied.columns.map(withoutIdentity),
      schemaVersion: 1,
      createdBy: call.principal.userId,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      ...(directoryOf === undefined
        ? {}
        : { storageDirectory: directoryOf({ namespace, name, tableId }) }),
    };
    const named = withOwnNames(renamed, { from: table, kept }, deps);
    const moved = parts.map((part) => movedPart(part, entry, tableId));
    const derived = derivedPartitions(named, moved);
    const readers = withTableFor(entry, named, catalog);
    const seq = store.issueSeq();
    const made = inForceSince(derived.table, seq);
    catalog.createTable(made, seq, {
      changedViews: [...derived.partitions, ...readers],
    });
    store.defineTable(definitionOf(made));
    live().viewChanged();
    return `Partition ${namespace}.${name} detached`;
  };
}

/**
 * Returns a nested partition of the detached partition in the form that it takes under the new
 * table.
 */
function movedPart(
  part: PartitionViewEntry,
  { viewId }: PartitionViewEntry,
  tableId: number,
): PartitionViewEntry {
  const { parentId, ...rest } = part.partition;
  const isTop = parentId === viewId || parentId === undefined;
  return { ...part, partition: { ...rest, tableId, ...(isTop ? {} : { parentId }) } };
}

/**
 * Returns the views and functions that read a partition, changed so that they read the partition's
 * new table instead.
 */
function withTableFor(
  { viewId }: PartitionViewEntry,
  { columns, tableId }: TableEntry,
  catalog: QueryCatalog,
): ViewEntry[] {
  return catalog.storedQueries().flatMap((query) => {
    const read = query.views.find((each) => each.viewId === viewId);
    if (read === undefined) return [];
    const { renamedFrom } = read;
    const table = {
      tableId,
      ...(renamedFrom === undefined ? {} : { renamedFrom }),
      columns: columns.map(({ columnId, name }) => ({ columnId, name })),
      used: columns.map(({ columnId }) => columnId),
    };
    const views = query.views.filter((each) => each !== read);
    return [{ ...query, views, tables: [...query.tables, table] }];
  });
}

/**
 * Returns a column that is no longer an identity column and no longer takes numbers from a
 * sequence.
 */
function withoutIdentity(column: ColumnEntry): ColumnEntry {
  if (column.identity === undefined) return column;
  const { defaultSql: _, identity: __, ...rest } = column;
  return { ...rest, generatedAlways: false };
}

/** A copy of a table's definition for the rows of one of its partitions. */
interface DetachedForm {
  readonly copied: TableEntry;
  /** The ids of the indexes that already have a name of the partition. */
  readonly named: ReadonlySet<number>;
}

function detachedForm(table: TableEntry, entry: PartitionViewEntry): DetachedForm {
  const own = partitionAsTable(table, entry);
  const { partitionChecks: _, partitionDefaults: __, partitionIndexes: ___, ...plain } = own;
  const { partitioned } = entry.partition;
  const ownIndexes = own.indexes ?? [];
  const named = new Set(ownIndexes.map(({ indexId }) => indexId));
  const keyName = ownIndexes.find(({ indexId }) => indexId === KEY_INDEX_ID)?.name;
  const indexes = [
    ...ownIndexes.filter(({ indexId }) => indexId !== KEY_INDEX_ID),
    ...(table.indexes ?? []).filter(
      ({ indexId, isOfPartitions }) =>
        !named.has(indexId) && (isOfPartitions !== true || partitioned !== undefined),
    ),
  ];
  const { columnIds = [] } = entry.partition;
  const ordered = columnIds.flatMap(
    (id) => own.columns.find(({ columnId }) => columnId === id) ?? [],
  );
  const copied = {
    // Only a table with partitions can have anything that belongs to a single partition.
    ...(partitioned === undefined ? plain : own),
    columns: [...ordered, ...own.columns.filter((column) => !ordered.includes(column))],
    primaryKey: table.primaryKey,
    ...(keyName === undefined ? {} : { keyName }),
    indexes,
  };
  return { copied, named };
}

/**
 * Renames the keys and indexes of a copied table to names that are not in use in its namespace.
 */
function withOwnNames(
  copy: TableEntry,
  { from, kept }: { readonly from: TableEntry; readonly kept: ReadonlySet<number> },
  { catalog }: TableDeps,
): TableEntry {
  const { indexes = [], ...rest } = copy;
  const keyed: TableEntry = withFreeKeyName({ ...rest, indexes: [] }, catalog);
  const named: IndexEntry[] = [];
  for (const index of indexes) {
    const isTaken = takenNames({ ...keyed, indexes: named }, catalog);
    const { indexId, name } = index;
    const renamed = name.startsWith(`${from.name}_`)
      ? `${copy.name}${name.slice(from.name.length)}`
      : `${copy.name}_${name}`;
    const start = kept.has(indexId) ? name : renamed;
    let free = start;
    for (let number = 1; isTaken(free); number += 1) free = `${start}${number}`;
    const { enforcedSeq: __, ...own } = index;
    named.push({ ...own, name: free, state: "ready" });
  }
  return { ...keyed, ...(named.length === 0 ? {} : { indexes: named }) };
}

/**
 * Refuses to remove rows of a table if, because of a foreign key, this would change or delete rows
 * of another table.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refuseReferred(
  { tableId }: TableEntry,
  { catalog }: Pick<TableDeps, "catalog">,
  { action, isDropped, node }: { action: string; isDropped: boolean; node: AstNode },
): void {
  const referring = referencesTo(catalog, tableId).find(
    ({ key }) => isDropped || (key.onDelete !== "no action" && key.onDelete !== "restrict"),
  );
  if (referring === undefined) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${action}: foreign key "${referring.key.name}" of ${nameOf(referring.child)} ` +
      "references its rows",
    { position: node._location.start, hint: "drop the foreign key first" },
  );
}
