/**
 * Shows a partition in the form of a table of its own, with everything that applies to its rows.
 */
import {
  type Catalog,
  type ColumnEntry,
  type IndexEntry,
  KEY_INDEX_ID,
  type PartitionViewEntry,
  type TableEntry,
} from "../../catalog/mod.ts";
import { partitionsOf } from "./partitions.ts";

/**
 * Returns a partition as a table: with the columns and constraints of its table, the constraints
 * and DEFAULTs that it has in addition, and those indexes that have a name of their own.
 */
export function partitionAsTable(
  table: TableEntry,
  { comment, name, namespace, viewId }: PartitionViewEntry,
): TableEntry {
  const { keyComment: _, keyName: __, partitioned: ___, policies: ____, ...rest } = table;
  const { partitionChecks = [], partitionDefaults = [], partitionIndexes = [] } = table;
  const isOwn = (each: { readonly viewId: number }): boolean => each.viewId === viewId;
  const checks = partitionChecks.filter(isOwn);
  const defaults = partitionDefaults.filter(isOwn);
  const columns = table.columns.map((column): ColumnEntry => {
    const notNull = checks.some((check) => check.notNull === column.columnId) || column.notNull;
    const own = defaults.find(({ columnId }) => columnId === column.columnId);
    if (own === undefined) return { ...column, notNull };
    const { defaultSql: _____, ...others } = column;
    return { ...others, notNull, ...(own.sql === undefined ? {} : { defaultSql: own.sql }) };
  });
  return {
    ...rest,
    name,
    namespace,
    comment,
    columns,
    primaryKey: [],
    checks: [
      ...table.checks,
      ...checks
        .filter(({ notNull }) => notNull === undefined)
        .map((check) => ({ name: check.name, sql: check.own, comment: check.comment })),
    ],
    indexes: partitionIndexes.filter(isOwn).flatMap((each): IndexEntry[] => {
      const served = servedBy(table, each.indexId);
      if (served === undefined) return [];
      const { isConstraint, isPrimary } = each;
      const shown = { ...served, name: each.name, comment: each.comment, isConstraint };
      return [isPrimary === true ? { ...shown, isPrimary } : shown];
    }),
  };
}

/** Returns an index of a table as its definition describes it, without the bound of a partition. */
function servedBy(table: TableEntry, indexId: number): IndexEntry | undefined {
  if (indexId === KEY_INDEX_ID) {
    const columnIds = table.primaryKey;
    return { indexId, name: "", columnIds, isUnique: true, isConstraint: true, state: "ready" };
  }
  const index = table.indexes?.find((each) => each.indexId === indexId);
  if (index === undefined) return undefined;
  const { isOfPartitions: _, isPrimary: __, within, ...rest } = index;
  if (within === undefined) return rest;
  const { where: ___, ...whole } = rest;
  return within.where === undefined ? whole : { ...whole, where: within.where };
}

/** Returns a table followed by its partitions, each in the form of a table of its own. */
export function withPartitionTables(
  table: TableEntry,
  catalog: Pick<Catalog, "views">,
): readonly TableEntry[] {
  if (table.partitioned === undefined) return [table];
  const { indexes = [] } = table;
  const own = indexes.filter(({ isOfPartitions }) => isOfPartitions !== true);
  return [
    { ...table, indexes: own },
    ...partitionsOf(catalog, table.tableId).map((each) => partitionAsTable(table, each)),
  ];
}
