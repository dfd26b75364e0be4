/**
 * Defines the indexes of single partitions.
 *
 * The table contains the rows of all partitions, so an index of a partition is a name for an index
 * of the table. Any number of names may share one index, because an index that is not unique finds
 * the rows of a partition even if it also contains other rows. Only a unique index that the whole
 * table does not have is limited to the rows of its partition.
 *
 *     CREATE INDEX ON partition ──► name ──► index of the table with the same parts, or a new one
 *     ALTER INDEX … ATTACH      ──► name ──► index of the parent
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError, type ErrorCode } from "../../base/errors.ts";
import {
  type Catalog,
  type IndexEntry,
  indexPartsOf,
  KEY_INDEX_ID,
  keyNameOf,
  type PartitionIndex,
  type PartitionViewEntry,
  refusesRows,
  type TableEntry,
} from "../../catalog/mod.ts";
import { partitionsOf, withinPartitions, withParts } from "../names/partitions.ts";
import { withRenamedColumn } from "../names/renamed_columns.ts";
import { type WrittenIndex, withIndex } from "./index_elements.ts";

/** The catalog in which the names and the partitions of an index are looked up. */
type IndexCatalog = Pick<Catalog, "tables" | "view" | "views">;

interface NewPartitionIndex {
  readonly partition: PartitionViewEntry;
  /** All partitions of the table, including the partition itself. */
  readonly partitions: readonly PartitionViewEntry[];
  readonly catalog: IndexCatalog;
  /** The state of the index if it has to be built. */
  readonly state: IndexEntry["state"];
}

/**
 * Returns the table with an additional index of a partition.
 *
 * @throws {DatabaseError} The errors of `withIndex`; UNSUPPORTED_FEATURE for a unique index of a
 *   partition whose bound may change
 */
export function withPartitionIndex(
  table: TableEntry,
  written: WrittenIndex,
  { catalog, partition, partitions, state }: NewPartitionIndex,
): TableEntry {
  const { name, namespace, viewId } = partition;
  const { isConstraint, isPrimary, position } = written;
  // The names of the table and of its key are no names of the partition.
  const { keyName: _, ...rest } = table;
  const made = withIndex({ ...rest, name, namespace, primaryKey: [] }, written, { catalog, state });
  const index = defined(made.indexes?.at(-1), "partition index: new index is missing");
  const ids = ancestorsOf(partition, partitions);
  const alike = alikeOf(table, index, ids);
  if (isPrimary === true) requireOnlyKey(table, partition, { alike, ids, position });
  const named: PartitionIndex = {
    name: index.name,
    namespace,
    viewId,
    indexId: alike ?? index.indexId,
    isConstraint,
    ...(isPrimary === true && { isPrimary }),
    isAttached: false,
  };
  const partitionIndexes = [...(table.partitionIndexes ?? []), named];
  if (alike !== undefined) return { ...table, partitionIndexes };
  const isLimited = refusesRows(index);
  if (isLimited) requireFixedBound(index, partition, { partitions, position });
  const { isPrimary: __, where, ...own } = index;
  const within = { viewId, ...(where === undefined ? {} : { where }) };
  const entry: IndexEntry = {
    ...own,
    ...(where === undefined ? {} : { where }),
    ...(isLimited ? { within } : {}),
    isConstraint: false,
    isOfPartitions: true,
  };
  const indexes = [...(table.indexes ?? []), entry];
  const { nextColumnId } = made;
  return withinPartitions({ ...table, indexes, nextColumnId, partitionIndexes }, partitions);
}

/**
 * Requires that a new primary key is the only one of its partition. The partition also has the keys
 * of its table and of the partitions that contain it. A dump defines such a key again, so the new
 * key may have the same definition.
 *
 * @param alike The id of the index of the table with the same definition; undefined
 *   if there is none
 * @param ids The ids of the partition and of all partitions that contain it
 */
function requireOnlyKey(
  table: TableEntry,
  { name, namespace, viewId }: PartitionViewEntry,
  { alike, ids, position }: { alike: number | undefined; ids: readonly number[]; position: number },
): void {
  const { indexes = [], partitionIndexes = [] } = table;
  const ofTable = indexes.flatMap((each) => (each.isPrimary === true ? [each.indexId] : []));
  const ofPartitions = partitionIndexes.filter(
    (each) => each.isPrimary === true && ids.includes(each.viewId),
  );
  const inherited = [...(keyNameOf(table) === undefined ? [] : [KEY_INDEX_ID]), ...ofTable];
  const others = [...inherited, ...ofPartitions.map(({ indexId }) => indexId)];
  const isOwn = ofPartitions.some((each) => each.viewId === viewId);
  if (!isOwn && others.every((indexId) => indexId === alike)) return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot add a primary key to ${namespace}.${name}: the partition already has one`,
    { position, hint: "define a UNIQUE constraint instead" },
  );
}

/**
 * Requires that the rows that belong to a partition never change with other partitions. The rows
 * of a DEFAULT partition do, and a unique index would have to be built again each time.
 */
function requireFixedBound(
  { name }: IndexEntry,
  partition: PartitionViewEntry,
  { partitions, position }: Pick<NewPartitionIndex, "partitions"> & { readonly position: number },
): void {
  const ids = ancestorsOf(partition, partitions);
  const all = partitions.filter(({ viewId }) => ids.includes(viewId));
  if (all.every((each) => each.partition.bound.kind !== "default")) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot define unique index "${name}" for ${partition.namespace}.${partition.name} alone: ` +
      "the rows of a DEFAULT partition depend on the other partitions",
    { position, hint: "first define the same index for the partitioned table" },
  );
}

/** Returns the ids of a partition and of all partitions that contain it. */
function ancestorsOf(
  { partition: { parentId }, viewId }: PartitionViewEntry,
  partitions: readonly PartitionViewEntry[],
): readonly number[] {
  const parent = partitions.find((each) => each.viewId === parentId);
  return parent === undefined ? [viewId] : [viewId, ...ancestorsOf(parent, partitions)];
}

/**
 * Returns the id of an index of the table that can serve as the given index of a partition;
 * undefined if there is none.
 *
 * @param within The ids of the partitions to which the index of the table may be limited.
 */
function alikeOf(
  table: TableEntry,
  index: IndexEntry,
  within: readonly number[],
): number | undefined {
  const shape = shapeOf(table, index);
  const isKey = keyNameOf(table) !== undefined && shape === shapeOf(table, keyAsIndex(table));
  if (isKey) return KEY_INDEX_ID;
  return table.indexes?.find(
    (each) =>
      shapeOf(table, each) === shape &&
      (each.within === undefined || within.includes(each.within.viewId)),
  )?.indexId;
}

function keyAsIndex({ primaryKey }: TableEntry): Shaped {
  return { columnIds: primaryKey, isUnique: true };
}

type Shaped = Pick<
  IndexEntry,
  "columnIds" | "equalNulls" | "expressions" | "isExclusion" | "isUnique" | "where" | "within"
>;

/** Returns a text that is equal for indexes with the same definition. */
function shapeOf(table: Pick<TableEntry, "columns">, index: Shaped): string {
  const parts = indexPartsOf(table, index).map(({ name, terms }) => [name, terms]);
  const { equalNulls, isExclusion, isUnique } = index;
  const where = index.within === undefined ? index.where : index.within.where;
  return JSON.stringify([isUnique, isExclusion, equalNulls, parts, where?.sql]);
}

/** Returns the table's index with the given id; undefined for the key of the table's rows. */
function indexWithId(table: TableEntry, indexId: number): IndexEntry | undefined {
  return table.indexes?.find((each) => each.indexId === indexId);
}

/** An index, either of the table or of one of its partitions. */
export interface OwnedIndex {
  readonly indexId: number;
  readonly name: string;
  /** The partition that has the index; undefined for an index of the table. */
  readonly viewId: number | undefined;
}

/**
 * Returns the table in which the index of a partition is part of an index of its parent.
 *
 * @throws {DatabaseError} INVALID_OPERATION, INVALID_DEFINITION
 */
export function withAttached(
  table: TableEntry,
  { child, parent, position }: { child: PartitionIndex; parent: OwnedIndex; position: number },
  catalog: IndexCatalog,
): TableEntry {
  const refused = (why: string, code: ErrorCode = "INVALID_OPERATION"): DatabaseError =>
    new DatabaseError(
      code,
      `Cannot attach index "${child.name}" to index "${parent.name}": ${why}`,
      { position },
    );
  const partitions = partitionsOf(catalog, table.tableId);
  const of = partitions.find(({ viewId }) => viewId === child.viewId);
  if (of === undefined || of.partition.parentId !== parent.viewId) {
    throw refused("it is not an index of a partition of the same table");
  }
  const own = (table.partitionIndexes ?? []).filter(({ viewId }) => viewId === child.viewId);
  if (child.isAttached && child.indexId === parent.indexId) return table;
  if (child.isAttached) throw refused("it is already attached to another index");
  const other = own.find((each) => each.isAttached && each.indexId === parent.indexId);
  if (other !== undefined) throw refused(`index "${other.name}" is already attached to it`);
  const shape = (indexId: number): string =>
    shapeOf(table, indexWithId(table, indexId) ?? keyAsIndex(table));
  if (shape(child.indexId) !== shape(parent.indexId)) {
    throw refused("their definitions differ", "INVALID_DEFINITION");
  }
  if (indexWithId(table, parent.indexId)?.isConstraint === true && !child.isConstraint) {
    throw refused("only a constraint can be attached to a constraint");
  }
  return attached(table, { child, indexId: parent.indexId, of }, catalog);
}

/**
 * Returns the table in which the newest index of a partition is attached to the index of the
 * partition's parent that has the same definition, if there is one that has no other such part.
 */
export function withNewestAttached(
  table: TableEntry,
  partitions: readonly PartitionViewEntry[],
): TableEntry {
  const { partitionIndexes = [] } = table;
  const newest = partitionIndexes.at(-1);
  if (newest === undefined) return table;
  const { indexId, viewId } = newest;
  const served = partitionIndexes.filter((each) => each.indexId === indexId && each !== newest);
  const parentId = partitions.find((each) => each.viewId === viewId)?.partition.parentId;
  const isParents =
    parentId === undefined
      ? indexWithId(table, indexId)?.isOfPartitions !== true
      : served.some((each) => each.viewId === parentId);
  const isTaken = served.some((each) => each.viewId === viewId && each.isAttached);
  if (!isParents || isTaken) return table;
  const attachedNow = { ...newest, isAttached: true };
  return { ...table, partitionIndexes: [...partitionIndexes.slice(0, -1), attachedNow] };
}

/** Makes an index of a partition, and the indexes attached to it, names of another index. */
function attached(
  table: TableEntry,
  { child, indexId, of }: { child: PartitionIndex; indexId: number; of: PartitionViewEntry },
  catalog: IndexCatalog,
): TableEntry {
  const below = new Set(withParts(catalog, of).map(({ viewId }) => viewId));
  const { partitionIndexes = [] } = table;
  const changed = partitionIndexes.map((each) => {
    const isAlike = below.has(each.viewId) && each.indexId === child.indexId;
    const isBelow = isAlike && each.viewId !== of.viewId;
    if (each !== child && !isBelow) return each;
    return Object.assign({}, each, { indexId, isAttached: each.isAttached || each === child });
  });
  return withNames(table, changed, catalog);
}

/**
 * Returns the table after a new index of the table or of a partition is complete: the indexes of
 * partitions with the same definition are attached to it, one for each partition.
 */
export function withAlikeAttached(
  table: TableEntry,
  { indexId, viewId: parentId }: Pick<OwnedIndex, "indexId" | "viewId">,
  catalog: IndexCatalog,
): TableEntry {
  const index = indexWithId(table, indexId);
  if (index === undefined || table.partitionIndexes === undefined) return table;
  const shape = shapeOf(table, index);
  const children = partitionsOf(catalog, table.tableId).filter(
    ({ partition }) => partition.parentId === parentId,
  );
  return children.reduce((next, of): TableEntry => {
    const child = next.partitionIndexes?.find((each) => {
      const served = indexWithId(next, each.indexId) ?? keyAsIndex(next);
      const isFree = each.viewId === of.viewId && !each.isAttached;
      const fits = index.isConstraint ? each.isConstraint : true;
      return isFree && fits && shapeOf(next, served) === shape;
    });
    if (child !== undefined) return attached(next, { child, indexId, of }, catalog);
    // The partition has no such index under a name of its own, but its partitions may have one.
    return withAlikeAttached(next, { indexId, viewId: of.viewId }, catalog);
  }, table);
}

/** Replaces the names of partition indexes, and removes the indexes that no name uses any more. */
function withNames(
  table: TableEntry,
  partitionIndexes: readonly PartitionIndex[],
  catalog: IndexCatalog,
): TableEntry {
  const named = { ...table, partitionIndexes };
  return withinPartitions(named, partitionsOf(catalog, table.tableId));
}

/**
 * Returns the table without an index of a partition and the indexes attached to it.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS if the index is attached to another one
 */
export function withoutPartitionIndex(
  table: TableEntry,
  dropped: PartitionIndex,
  { action, catalog, position }: { action: string; catalog: IndexCatalog; position: number },
): TableEntry {
  const partitions = partitionsOf(catalog, table.tableId);
  const of = partitions.find(({ viewId }) => viewId === dropped.viewId);
  if (dropped.isAttached && of !== undefined) {
    const parentName = parentNameOf(table, dropped, { of, partitions });
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot ${action}: index "${parentName}" requires it`,
      { position, hint: `drop "${parentName}" instead` },
    );
  }
  const below = of === undefined ? [] : withParts(catalog, of).map(({ viewId }) => viewId);
  const isDropped = (each: PartitionIndex): boolean =>
    each === dropped ||
    (each.isAttached && each.indexId === dropped.indexId && below.includes(each.viewId));
  const kept = (table.partitionIndexes ?? []).filter((each) => !isDropped(each));
  return withNames(table, kept, catalog);
}

/** Returns the name of the index to which an index of a partition is attached. */
function parentNameOf(
  table: TableEntry,
  { indexId }: PartitionIndex,
  { of, partitions }: { of: PartitionViewEntry; partitions: readonly PartitionViewEntry[] },
): string | undefined {
  const above = ancestorsOf(of, partitions).slice(1);
  const named = (table.partitionIndexes ?? []).filter((each) => each.indexId === indexId);
  const parent = above.flatMap((id) => named.find(({ viewId }) => viewId === id) ?? [])[0];
  return parent?.name ?? indexWithId(table, indexId)?.name ?? keyNameOf(table);
}

/**
 * Returns the table without one of its indexes and the partition indexes attached to it. An index
 * that is not attached keeps finding its rows.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS if an index of a partition that is not attached relies
 *   on the unique index
 */
export function withoutTableIndex(
  table: TableEntry,
  index: IndexEntry,
  { catalog, position }: { readonly catalog: IndexCatalog; readonly position: number },
): TableEntry {
  const { partitionIndexes = [] } = table;
  const { indexId, isPrimary: _, ...rest } = index;
  const indexes = (table.indexes ?? []).filter((each) => each.indexId !== indexId);
  const served = partitionIndexes.filter((each) => each.indexId === indexId);
  if (served.length === 0) return { ...table, indexes };
  const partitions = partitionsOf(catalog, table.tableId);
  const parentOf = (child: PartitionIndex): PartitionIndex | undefined => {
    const of = partitions.find(({ viewId }) => viewId === child.viewId);
    const { parentId } = of?.partition ?? {};
    return served.find((each) => each.viewId === parentId);
  };
  const isDropped = (each: PartitionIndex): boolean => {
    const parent = parentOf(each);
    return each.isAttached && (parent === undefined || isDropped(parent));
  };
  const first = served.find((each) => !isDropped(each));
  const kept = partitionIndexes.filter((each) => !served.includes(each) || !isDropped(each));
  if (first === undefined) return { ...table, indexes, partitionIndexes: kept };
  if (refusesRows(index)) {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop index "${index.name}": index "${first.name}" of a partition relies on it`,
      { position, hint: `first drop "${first.name}", or attach it with ALTER INDEX` },
    );
  }
  const { name } = first;
  const shared = { ...rest, indexId, name, isConstraint: false, isOfPartitions: true } as const;
  return { ...table, indexes: [...indexes, shared], partitionIndexes: kept };
}

/**
 * Returns the parts of a table in which a column is renamed: the expressions and conditions of
 * indexes, and the checks of partitions.
 */
export function renamedInIndexes(
  { indexes, partitionChecks }: TableEntry,
  from: string,
  to: string,
): Pick<TableEntry, "indexes" | "partitionChecks"> {
  const renamed = <T extends { readonly sql: string }>(each: T): T => ({
    ...each,
    sql: withRenamedColumn(each.sql, from, to),
  });
  const renamedIndex = (index: IndexEntry): IndexEntry => {
    const { expressions, where, within } = index;
    return {
      ...index,
      ...(expressions && { expressions: expressions.map(renamed) }),
      ...(where && { where: renamed(where) }),
      ...(within?.where && { within: { ...within, where: renamed(within.where) } }),
    };
  };
  return {
    ...(indexes && { indexes: indexes.map(renamedIndex) }),
    ...(partitionChecks && {
      partitionChecks: partitionChecks.map((check) => ({
        ...renamed(check),
        own: withRenamedColumn(check.own, from, to),
      })),
    }),
  };
}

/** Returns a table in which the names of partition indexes follow an index that is replaced. */
export function withReplacedIndex(
  { partitionIndexes }: TableEntry,
  replaced: ReadonlyMap<number, number>,
): Pick<TableEntry, "partitionIndexes"> {
  if (partitionIndexes === undefined) return {};
  return {
    partitionIndexes: partitionIndexes.map((each) => ({
      ...each,
      indexId: replaced.get(each.indexId) ?? each.indexId,
    })),
  };
}
