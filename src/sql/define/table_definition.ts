/**
 * What the catalog says of a table, in the terms of the store.
 */
import { HOUR_MS } from "../../base/clock.ts";
import { type Catalog, flushPolicyFrom, type TableEntry } from "../../catalog/mod.ts";
import type { SegmentHome, TableDefinition } from "../../storage/mod.ts";
import { OWN_TABLES } from "../common/own_tables.ts";

/** What holds for tables that set no option of their own. */
export interface StorageDefaults {
  readonly flush_rows: number;
  readonly flush_interval_secs: number;
  readonly history_hours: number;
}

/** Names of the tables that a catalog knows, and of the store's own, by id. */
export function tableNamesOf(catalog: Pick<Catalog, "tables"> | undefined): Map<number, string> {
  return new Map([
    ...(catalog?.tables() ?? []).map(
      ({ name, namespace, tableId }) => [tableId, `${namespace}.${name}`] as const,
    ),
    ...OWN_TABLES.map(({ name, tableId }) => [tableId, name] as const),
  ]);
}

/** Where new segments of a table go; undefined in the data directory. */
export function homeOf(
  { options, storageDirectory }: Pick<TableEntry, "options" | "storageDirectory">,
  catalog: Pick<Catalog, "storage">,
): SegmentHome | undefined {
  const { storageId } = options;
  const storage = storageId === undefined ? undefined : catalog.storage(storageId);
  if (storage === undefined || storageDirectory === undefined) return undefined;
  return { storageId: storage.storageId, root: storage.root, directory: storageDirectory };
}

/**
 * How storage sees a table, but for its home; options it does not set come from the configuration.
 */
export function tableDefinition(table: TableEntry, storage: StorageDefaults): TableDefinition {
  const { compression = "auto", deletedRetentionHours, flushPolicy, ttlSeconds } = table.options;
  const policy = flushPolicy === undefined ? undefined : flushPolicyFrom(flushPolicy);
  const rowsMax = policy === undefined ? storage.flush_rows : policy.rows;
  const intervalSeconds =
    policy === undefined ? storage.flush_interval_secs : policy.intervalSeconds;
  return {
    tableId: table.tableId,
    name: `${table.namespace}.${table.name}`,
    columns: table.columns.map(({ columnId, missing, name, type }) => ({
      columnId,
      name,
      type,
      missing,
    })),
    keyColumnIds: table.primaryKey,
    flush: {
      rowsMax: rowsMax ?? Number.POSITIVE_INFINITY,
      ageMsMax: (intervalSeconds ?? Number.POSITIVE_INFINITY) * 1000,
    },
    // A STREAM table has no such option: its rows are gone before it would pay.
    compression: table.kind === "stream" ? "none" : compression,
    historyMs: (deletedRetentionHours ?? storage.history_hours) * HOUR_MS,
    ttlMs: ttlSeconds === undefined ? undefined : ttlSeconds * 1000,
    expiredSeq: table.expiredSeq,
  };
}
