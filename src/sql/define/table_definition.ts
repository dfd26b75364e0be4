/**
 * What the catalog says of a table, in the terms of the store.
 */
import { HOUR_MS } from "../../base/clock.ts";
import { type Catalog, flushPolicyFrom, type TableEntry } from "../../catalog/mod.ts";
import type { SegmentHome, TableDefinition } from "../../storage/mod.ts";
import { OWN_TABLES } from "../common/own_tables.ts";

/** What holds for tables that set no option of their own. */
export type TableDefaults = Pick<TableDefinition, "flush" | "historyMs">;

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

/** How storage sees a table, but for its home. */
export function tableDefinition(table: TableEntry, defaults: TableDefaults): TableDefinition {
  const { compression = "auto", deletedRetentionHours, flushPolicy, ttlSeconds } = table.options;
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
    flush: flushPolicy === undefined ? defaults.flush : flushOf(flushPolicy),
    // A STREAM table has no such option: its rows are gone before it would pay.
    compression: table.kind === "stream" ? "none" : compression,
    historyMs:
      deletedRetentionHours === undefined ? defaults.historyMs : deletedRetentionHours * HOUR_MS,
    ttlMs: ttlSeconds === undefined ? undefined : ttlSeconds * 1000,
    expiredSeq: table.expiredSeq,
  };
}

/** By the option of a table: what it does not name starts no flush. */
function flushOf(option: string): TableDefinition["flush"] {
  const { intervalSeconds, rows } = flushPolicyFrom(option);
  return {
    rowsMax: rows ?? Number.POSITIVE_INFINITY,
    ageMsMax: (intervalSeconds ?? Number.POSITIVE_INFINITY) * 1000,
  };
}
