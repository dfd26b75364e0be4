/**
 * Derives everything that follows from the bounds of partitions: the SQL text with which each
 * partition reads its table, and the condition for a row to be accepted by any partition.
 *
 * A single table contains the rows of all partitions. A partition is a name for the rows within
 * its bounds. It is stored as a view entry whose text is rewritten when the table or another of
 * its partitions changes.
 */
import type {
  Catalog,
  Dependents,
  Partitioning,
  PartitioningKey,
  PartitionViewEntry,
  TableEntry,
  ViewEntry,
} from "../../catalog/mod.ts";
import { KEY_INDEX_ID, shownColumnsOf } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import type { TablePart, TableParts } from "../bind/query/table_oid.ts";
import { checkScope } from "../execute/build/table_runtime.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import {
  acceptedBy,
  conditionOf,
  type PartitionNode,
  type PartitionTree,
} from "./partition_texts.ts";
import { withRenamedColumn } from "./renamed_columns.ts";

export function isPartition(entry: ViewEntry | undefined): entry is PartitionViewEntry {
  return entry?.partition !== undefined;
}

/** Returns the partitions of a table at all levels, ordered by namespace and name. */
export function partitionsOf(
  catalog: Pick<Catalog, "views">,
  tableId: number,
): readonly PartitionViewEntry[] {
  return catalog
    .views()
    .filter(isPartition)
    .filter(({ partition }) => partition.tableId === tableId);
}

/** Returns a partition and all partitions nested within it. */
export function withParts(
  catalog: Pick<Catalog, "views">,
  partition: PartitionViewEntry,
): readonly PartitionViewEntry[] {
  const all = partitionsOf(catalog, partition.partition.tableId);
  const found = [partition];
  for (const each of found) {
    found.push(...all.filter((part) => part.partition.parentId === each.viewId));
  }
  return found;
}

/** Returns the types of the partition keys. */
export function keyTypesOf(table: TableEntry, { keys }: Partitioning): DataType[] {
  const { scope } = checkScope(table);
  return keys.map(({ sql }) => {
    const context = {
      statement: new StatementBinding([]),
      scope,
      clause: "PARTITION BY",
      sink: undefined,
    };
    return bindExpression(parseStored(sql, table.columns), context).type;
  });
}

/** Returns the partitions of a table, or of one of its partitions, as a tree. */
function treeOf(
  table: TableEntry,
  partitions: readonly PartitionViewEntry[],
  of: { readonly partitioning: Partitioning; readonly parentId: number | undefined },
): PartitionTree {
  const { parentId, partitioning } = of;
  const parts = partitions.filter(({ partition }) => partition.parentId === parentId);
  return {
    partitioning,
    hashed: partitioning.strategy === "hash" ? hashedKeys(table, partitioning) : [],
    parts: parts.map(
      ({ partition: { bound, partitioned }, viewId }): PartitionNode => ({
        bound,
        within:
          partitioned && treeOf(table, partitions, { partitioning: partitioned, parentId: viewId }),
      }),
    ),
  };
}

/** Returns the partition keys as SQL text that does not depend on the session's time zone. */
function hashedKeys(table: TableEntry, partitioning: Partitioning): string[] {
  const types = keyTypesOf(table, partitioning);
  return partitioning.keys.map(({ sql }, i) => {
    const isTime = types[i]?.kind === "timestamp";
    return isTime
      ? `COALESCE(EXTRACT(EPOCH FROM (${sql}))::TEXT, '')`
      : `COALESCE((${sql})::TEXT, '')`;
  });
}

/**
 * Returns the condition for the rows of a partition, written over the columns of the whole table.
 */
export function rowsCondition(
  table: TableEntry,
  partitions: readonly PartitionViewEntry[],
  { partition: { bound, parentId } }: PartitionViewEntry,
): string {
  const parent = partitions.find(({ viewId }) => viewId === parentId);
  const partitioning = parent === undefined ? table.partitioned : parent.partition.partitioned;
  if (partitioning === undefined) return "FALSE";
  const own = conditionOf(treeOf(table, partitions, { partitioning, parentId }), bound);
  return parent === undefined ? own : `(${rowsCondition(table, partitions, parent)}) AND (${own})`;
}

/** The parts of the catalog that list the partitions of a table. */
export interface PartitionCatalog {
  readonly tableById: (tableId: number) => TableEntry | undefined;
  readonly partitionsOf: (tableId: number) => readonly PartitionViewEntry[];
}

const leaves = new WeakMap<TableEntry, readonly PartitionLeaf[]>();

type PartitionLeaf = TablePart & { readonly entry: PartitionViewEntry };

/**
 * Returns the leaf partitions of a table or, if `within` is given, of the partition with that id.
 * Returns undefined if there is no such table.
 */
export function tableParts(
  { partitionsOf: list, tableById }: PartitionCatalog,
  tableId: number,
  within?: number,
): TableParts | undefined {
  const table = tableById(tableId);
  if (table === undefined) return undefined;
  const partitions = list(tableId);
  // Caching by table entry is safe, because the table is redefined whenever the bounds of its
  // partitions change.
  let known = leaves.get(table);
  if (known === undefined) {
    known = partitions
      .filter(({ partition }) => partition.partitioned === undefined)
      .map((entry) => {
        const condition = rowsCondition(table, partitions, entry);
        return { id: entry.viewId, condition, entry };
      });
    leaves.set(table, known);
  }
  const isWithin = ({ partition: { parentId }, viewId }: PartitionViewEntry): boolean => {
    if (within === undefined || viewId === within) return true;
    const parent = partitions.find((each) => each.viewId === parentId);
    return parent !== undefined && isWithin(parent);
  };
  return { table, parts: known.filter(({ entry }) => isWithin(entry)) };
}

/**
 * Returns a partitioned table and the view entries of its partitions, recomputed from the table's
 * columns and the bounds of the partitions.
 */
export function derivedPartitions(
  table: TableEntry,
  partitions: readonly PartitionViewEntry[],
): { readonly table: TableEntry; readonly partitions: readonly PartitionViewEntry[] } {
  const { partitioned } = table;
  if (partitioned === undefined) return { table, partitions };
  const { accepts: _, ...partitioning } = partitioned;
  const accepts = acceptedBy(treeOf(table, partitions, { partitioning, parentId: undefined }));
  const columns = table.columns.map(({ columnId, name }) => ({ columnId, name }));
  return {
    table: withinPartitions(
      {
        ...table,
        partitioned: { ...partitioning, ...(accepts === undefined ? {} : { accepts }) },
      },
      partitions,
    ),
    partitions: partitions.map((entry) => {
      const { columnIds = [] } = entry.partition;
      const shown = shownColumnsOf(table);
      const ordered = [
        ...columnIds.flatMap((id) => shown.find(({ columnId }) => columnId === id) ?? []),
        ...shown.filter(({ columnId }) => !columnIds.includes(columnId)),
      ].map(({ name }) => name);
      const from = `${nameText(table.namespace)}.${nameText(table.name)}`;
      const list = ordered.map(nameText).join(", ");
      return {
        ...entry,
        sql: `SELECT ${list} FROM ${from} WHERE ${rowsCondition(table, partitions, entry)}`,
        columnNames: ordered,
        tables: [{ tableId: table.tableId, columns, used: keyColumnsOf(table, partitions) }],
      };
    }),
  };
}

/**
 * Returns a table in which the conditions of checks and indexes that apply to a single partition
 * follow from the bounds of the given partitions. The elements of any other partition are removed.
 */
export function withinPartitions(
  table: TableEntry,
  partitions: readonly PartitionViewEntry[],
): TableEntry {
  const { partitionChecks, partitionDefaults, partitionIndexes } = table;
  if ((partitionChecks ?? partitionDefaults ?? partitionIndexes) === undefined) return table;
  const isKnown = ({ viewId }: { readonly viewId: number }): boolean =>
    partitions.some((each) => each.viewId === viewId);
  const bounds = new Map<number, string>();
  const boundOf = (viewId: number): string => {
    let bound = bounds.get(viewId);
    if (bound === undefined) {
      const entry = partitions.find((each) => each.viewId === viewId);
      bound = entry === undefined ? "FALSE" : rowsCondition(table, partitions, entry);
      bounds.set(viewId, bound);
    }
    return bound;
  };
  const keys = keyColumnsOf(table, partitions);
  const ids = new Set([KEY_INDEX_ID, ...(table.indexes ?? []).map(({ indexId }) => indexId)]);
  const named = partitionIndexes?.filter((each) => isKnown(each) && ids.has(each.indexId));
  return {
    ...table,
    ...(partitionChecks && {
      partitionChecks: partitionChecks.filter(isKnown).map((check) => {
        const sql = `NOT (${boundOf(check.viewId)}) OR (${check.own})`;
        return Object.assign({}, check, { sql });
      }),
    }),
    ...(named === undefined ? {} : { partitionIndexes: named }),
    ...(partitionDefaults && { partitionDefaults: partitionDefaults.filter(isKnown) }),
    ...(table.indexes && {
      indexes: table.indexes.flatMap((index) => {
        const { indexId, isOfPartitions, within } = index;
        if (isOfPartitions === true && named?.some((each) => each.indexId === indexId) !== true) {
          return [];
        }
        if (within === undefined) return [index];
        const { viewId, where } = within;
        const bound = boundOf(viewId);
        const sql = where === undefined ? bound : `(${bound}) AND (${where.sql})`;
        const reads = [...new Set([...keys, ...(where?.reads ?? [])])];
        return [{ ...index, where: { sql, reads } }];
      }),
    }),
  };
}

/** Returns the ids of the columns that the partition keys read, at all levels. */
function keyColumnsOf(
  { partitioned }: TableEntry,
  partitions: readonly PartitionViewEntry[],
): number[] {
  const all = [partitioned, ...partitions.map(({ partition }) => partition.partitioned)];
  const reads = all.flatMap((each) => each?.keys.flatMap((key) => key.reads) ?? []);
  return [...new Set(reads)];
}

/**
 * Extends a change to a table and its dependent objects with the resulting changes to the table's
 * partitions.
 */
export function withPartitions(
  catalog: Pick<Catalog, "views">,
  { after, before }: { readonly before: TableEntry; readonly after: TableEntry },
  others: Dependents,
): { readonly after: TableEntry; readonly others: Dependents } {
  if (after.partitioned === undefined) return { after, others };
  const { changedViews = [], views: dropped = [] } = others;
  const changed = new Map(changedViews.map((view) => [view.viewId, view]));
  const known = partitionsOf(catalog, after.tableId).filter(
    ({ viewId }) => !changed.has(viewId) && dropped.every((each) => each.viewId !== viewId),
  );
  const own = changedViews.filter(isPartition).filter((each) => belongs(each, after));
  const names = after.columns.flatMap(({ columnId, name }) => {
    const old = before.columns.find((column) => column.columnId === columnId);
    return old === undefined || old.name === name ? [] : [{ from: old.name, to: name }];
  });
  const rename = <Of extends Partitioning>(partitioning: Of): Of => ({
    ...partitioning,
    keys: partitioning.keys.map(
      (key): PartitioningKey => ({
        ...key,
        sql: names.reduce((sql, { from, to }) => withRenamedColumn(sql, from, to), key.sql),
      }),
    ),
  });
  const current = [...known, ...own].map((entry) => withKeys(entry, rename));
  const table = { ...after, partitioned: rename(after.partitioned) };
  const derived = derivedPartitions(table, current);
  const isChanged = (each: PartitionViewEntry): boolean =>
    changed.has(each.viewId) || !known.some((old) => isSame(old, each));
  const kept = changedViews.filter((each) => !isPartition(each) || !belongs(each, after));
  return {
    after: derived.table,
    others: { ...others, changedViews: [...kept, ...derived.partitions.filter(isChanged)] },
  };
}

function withKeys(
  entry: PartitionViewEntry,
  rename: (partitioning: Partitioning) => Partitioning,
): PartitionViewEntry {
  const { partitioned } = entry.partition;
  if (partitioned === undefined) return entry;
  return { ...entry, partition: { ...entry.partition, partitioned: rename(partitioned) } };
}

function belongs({ partition }: PartitionViewEntry, { tableId }: TableEntry): boolean {
  return partition.tableId === tableId;
}

function isSame(left: PartitionViewEntry, right: PartitionViewEntry): boolean {
  return left.viewId === right.viewId && JSON.stringify(left) === JSON.stringify(right);
}
