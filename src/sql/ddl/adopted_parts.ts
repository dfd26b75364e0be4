/**
 * Moves what an attached table has in addition to its new parent: its constraints, indexes and
 * DEFAULTs become those of the partition, and its partitions become partitions of the parent.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type IndexEntry,
  KEY_INDEX_ID,
  keyNameOf,
  type Partitioning,
  type PartitionViewEntry,
  shownColumnsOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import type { AstNode } from "../parse/ast/ast.ts";
import type { PartitionChange } from "./partition_alteration.ts";
import { withNewestAttached } from "./partition_indexes.ts";
import { writtenCopy } from "./table_likes.ts";

/** An attached table and its new parent. */
export interface Adoption {
  /** The attached table, before it loses its name. */
  readonly source: TableEntry;
  readonly parent: TableEntry;
  readonly node: AstNode;
}

/** An adoption whose statement runs. */
export interface RunningAdoption extends Adoption {
  /** The ids of the columns whose sequences are dropped together with the attached table. */
  readonly numbered: ReadonlySet<number>;
}

/**
 * Requires that everything that an attached table has can belong to a partition.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
export function requireAdoptable({ node, parent, source }: Adoption): void {
  const { foreignKeys = [], indexes = [], policies = [], triggers = [] } = source;
  const foreign = foreignKeys.find(
    (key) => parent.foreignKeys?.some((other) => other.tableId === key.tableId) !== true,
  );
  const ofPart = indexes.find(({ isOfPartitions }) => isOfPartitions === true);
  const own = [
    ...(foreign === undefined ? [] : [`foreign key "${foreign.name}"`]),
    ...(ofPart === undefined ? [] : [`an index of a partition, "${ofPart.name}"`]),
    ...(policies.length > 0 ? ["row policies"] : []),
    ...(triggers.length > 0 ? ["triggers"] : []),
  ];
  const [first] = own;
  if (first === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot attach ${nameOf(source)}: it has ${first}, but ${nameOf(parent)} does not`,
    {
      position: node._location.start,
      hint: `add the same to ${nameOf(parent)} first, or drop it from ${nameOf(source)}`,
    },
  );
}

/**
 * Returns the parent with the checks, DEFAULTs and indexes of the attached table.
 * @throws {DatabaseError}
 */
export function withAdopted(
  parent: TableEntry,
  { node: { _location }, numbered, source }: RunningAdoption,
  change: PartitionChange,
): TableEntry {
  const position = _location.start;
  let next = source.checks.reduce((table, { name, sql }) => {
    if (parent.checks.some((other) => other.sql === sql)) return table;
    const expr = parseStored(sql, source.columns);
    const constraintName = { name, _location };
    const check = { type: "check", expr, source: sql, constraintName, _location } as const;
    return change.withCheck(table, check);
  }, parent);
  for (const { columnId, defaultSql, name, notNull } of shownColumnsOf(source)) {
    const column = shownColumnsOf(parent).find((each) => each.name === name);
    if (column === undefined) continue;
    if (notNull) next = change.withNotNull(next, { name, _location });
    const isNumbered = column.identity !== undefined || numbered.has(columnId);
    if (!isNumbered && column.generatedSql === undefined && defaultSql !== column.defaultSql) {
      next = change.withDefault(next, column, defaultSql);
    }
  }
  const ids = new Map<number, number>();
  for (const index of ownIndexesOf(source)) {
    const { isConstraint, isPrimary, name } = index;
    const copy = writtenCopy(source, index, _location);
    const key = isPrimary === true ? { isPrimary } : {};
    const exclusion = index.isExclusion === true ? ({ isExclusion: true } as const) : {};
    const written = {
      ...copy,
      ...key,
      ...exclusion,
      name: { name, _location },
      isConstraint,
      position,
    };
    next = withNewestAttached(change.withIndex(next, written), change.partitions);
    const { indexId } = next.partitionIndexes?.at(-1) ?? index;
    ids.set(index.indexId, indexId);
  }
  return withPartsOf(next, source, ids);
}

/** Returns the primary key and the indexes of a table in the order of their definition. */
function ownIndexesOf(source: TableEntry): readonly IndexEntry[] {
  const { indexes = [], primaryKey: columnIds } = source;
  const name = keyNameOf(source);
  if (name === undefined) return indexes;
  const key = {
    indexId: KEY_INDEX_ID,
    name,
    columnIds,
    isUnique: true,
    isConstraint: true,
  } as const;
  return [{ ...key, isPrimary: true, state: "ready" }, ...indexes];
}

/**
 * Returns the parent with the checks, DEFAULTs and names of indexes that the partitions of the
 * attached table have.
 *
 * @param ids The ids of the parent's indexes, by the ids of the attached table's indexes.
 */
function withPartsOf(
  parent: TableEntry,
  source: TableEntry,
  ids: ReadonlyMap<number, number>,
): TableEntry {
  const { partitionChecks = [], partitionDefaults = [], partitionIndexes = [] } = source;
  if (source.partitioned === undefined) return parent;
  const columnIds = columnIdsFrom(source, parent);
  const idOf = (id: number): number => columnIds.get(id) ?? id;
  const checks = partitionChecks.map((check) => {
    const { notNull } = check;
    return notNull === undefined ? check : Object.assign({}, check, { notNull: idOf(notNull) });
  });
  const defaults = partitionDefaults.map((each) =>
    Object.assign({}, each, { columnId: idOf(each.columnId) }),
  );
  const names = partitionIndexes.flatMap((each) => {
    const indexId = ids.get(each.indexId);
    return indexId === undefined ? [] : [{ ...each, indexId }];
  });
  return {
    ...parent,
    partitionChecks: [...(parent.partitionChecks ?? []), ...checks],
    partitionDefaults: [...(parent.partitionDefaults ?? []), ...defaults],
    partitionIndexes: [...(parent.partitionIndexes ?? []), ...names],
  };
}

/** Returns the ids of the columns of one table, by the ids of the columns with the same names. */
function columnIdsFrom(source: TableEntry, parent: TableEntry): ReadonlyMap<number, number> {
  const ids = new Map(parent.columns.map(({ columnId, name }) => [name, columnId]));
  return new Map(
    source.columns.map(({ columnId, name }) => [columnId, ids.get(name) ?? columnId] as const),
  );
}

/** Returns the partitioning of an attached table with the column ids of its parent. */
export function adoptedPartitioning({ parent, source }: Adoption): Partitioning | undefined {
  return source.partitioned && withColumnIds(source.partitioned, columnIdsFrom(source, parent));
}

function withColumnIds(
  { keys, strategy }: Partitioning,
  ids: ReadonlyMap<number, number>,
): Partitioning {
  return {
    strategy,
    keys: keys.map((key) => ({ ...key, reads: key.reads.map((id) => ids.get(id) ?? id) })),
  };
}

/** Returns the partitions of an attached table as partitions of its parent. */
export function adoptedPartitions(
  partitions: readonly PartitionViewEntry[],
  { parent, source }: Adoption,
  viewId: number,
): readonly PartitionViewEntry[] {
  const ids = columnIdsFrom(source, parent);
  const order = shownColumnsOf(source).map(({ columnId }) => columnId);
  return partitions.map((entry): PartitionViewEntry => {
    const { columnIds = order, parentId = viewId, partitioned, ...rest } = entry.partition;
    const partition = {
      ...rest,
      tableId: parent.tableId,
      parentId,
      columnIds: columnIds.map((id) => ids.get(id) ?? id),
      ...(partitioned && { partitioned: withColumnIds(partitioned, ids) }),
    };
    return Object.assign({}, entry, { partition });
  });
}
