/** Converts a table's catalog entry into the definition used by the store. */
import { HOUR_MS } from "../../base/clock.ts";
import {
  type Catalog,
  deletedAfterMs,
  flushPolicyFrom,
  type TableEntry,
} from "../../catalog/mod.ts";
import type { SegmentHome, TableDefinition } from "../../storage/mod.ts";
import { storedIndexesOf } from "../execute/build/stored_index.ts";
import { OWN_TABLES } from "../own_tables/own_tables.ts";

/** Defaults for options that a table leaves unset. */
export type TableDefaults = Pick<TableDefinition, "flush" | "historyMs">;

/** Returns the names of the tables in a catalog and of the store's own tables, keyed by id. */
export function tableNamesOf(catalog: Pick<Catalog, "tables"> | undefined): Map<number, string> {
  return new Map([
    ...(catalog?.tables() ?? []).map(
      ({ name, namespace, tableId }) => [tableId, `${namespace}.${name}`] as const,
    ),
    ...OWN_TABLES.map(({ name, tableId }) => [tableId, name] as const),
  ]);
}

/**
 * Returns the place where new segments of a table are stored; undefined for the data directory.
 */
export function homeOf(
  { options, storageDirectory }: Pick<TableEntry, "options" | "storageDirectory">,
  catalog: Pick<Catalog, "storages">,
): SegmentHome | undefined {
  const { storageId } = options;
  const storage = storageId === undefined ? undefined : catalog.storages.named(storageId);
  if (storage === undefined || storageDirectory === undefined) return undefined;
  return { storageId: storage.storageId, root: storage.root, directory: storageDirectory };
}

/** Returns a table's definition for the store, without its `home`. */
export function tableDefinition(table: TableEntry, defaults: TableDefaults): TableDefinition {
  const { compression = "auto", deletedRetentionHours, flushPolicy, ttlSeconds } = table.options;
  // Rows that are deleted at a certain age exist only briefly, so the history of their table need
  // not outlast them. A client that has been away for longer simply reads the few existing rows
  // again.
  const historyMs = deletedAfterMs(table) ?? defaults.historyMs;
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
    indexes: storedIndexesOf(table),
    flush: flushPolicy === undefined ? defaults.flush : flushOf(flushPolicy),
    // STREAM tables do not support the option COMPRESSION, because their rows expire before
    // compression pays off.
    compression: table.kind === "stream" ? "none" : compression,
    historyMs: deletedRetentionHours === undefined ? historyMs : deletedRetentionHours * HOUR_MS,
    // `sql/utility/expiry.ts` deletes the expired rows of a SHARED table, so the store needs no
    // TTL for them.
    ttlMs: table.kind === "stream" && ttlSeconds !== undefined ? ttlSeconds * 1000 : undefined,
    expiredSeq: table.expiredSeq,
  };
}

/** Returns the flush limits set by a FLUSH_POLICY option. */
function flushOf(option: string): TableDefinition["flush"] {
  const { intervalSeconds, rows } = flushPolicyFrom(option);
  return {
    rowsMax: rows ?? Number.POSITIVE_INFINITY,
    ageMsMax: (intervalSeconds ?? Number.POSITIVE_INFINITY) * 1000,
  };
}
