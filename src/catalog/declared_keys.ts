/**
 * The primary key that a table declares, and the key by which the store finds its rows.
 *
 * Usually both are the same. A SHARED or USER table that is created without a primary key has a
 * hidden key column instead: `_key`, always the last column, with an id that the server assigns to
 * each row. `*` does not include it. A primary key that is added to such a table later is a unique
 * index. The hidden column remains the key of the store, so that no row has to be rewritten.
 */
import { BIGINT } from "../types/mod.ts";
import type { ColumnEntry, IndexEntry, TableEntry } from "./entries.ts";

/** The name of the hidden key column. No declared column begins with "_". */
export const HIDDEN_KEY_NAME = "_key";

/** Returns the hidden key column of a new table. */
export function hiddenKey(columnId: number): ColumnEntry {
  return {
    columnId,
    name: HIDDEN_KEY_NAME,
    type: BIGINT,
    notNull: true,
    defaultSql: "SNOWFLAKE_ID()",
    generatedAlways: true,
    isHidden: true,
    missing: null,
  };
}

export function hasHiddenKey({ columns }: Pick<TableEntry, "columns">): boolean {
  return columns.at(-1)?.isHidden === true;
}

/** Returns the declared columns, in order. */
export function shownColumnsOf({ columns }: Pick<TableEntry, "columns">): readonly ColumnEntry[] {
  return hasHiddenKey({ columns }) ? columns.slice(0, -1) : columns;
}

type NamedTable = Pick<TableEntry, "columns" | "keyName" | "name" | "primaryKey">;
type KeyedTable = NamedTable & Pick<TableEntry, "indexes" | "keyComment">;

/**
 * Returns the name of the primary key with which a table was created; undefined if it was created
 * without one.
 */
export function keyNameOf(table: NamedTable): string | undefined {
  if (table.primaryKey.length === 0 || hasHiddenKey(table)) return undefined;
  return table.keyName ?? `${table.name}_pkey`;
}

/** A primary key, as its table declares it. */
type DeclaredKey = Pick<IndexEntry, "columnIds" | "comment" | "name">;

/** Returns the primary key that is in force; undefined if the table declares no primary key. */
export function declaredKeyOf(table: KeyedTable): DeclaredKey | undefined {
  const name = keyNameOf(table);
  if (name === undefined) {
    return table.indexes?.find(({ isPrimary, state }) => isPrimary === true && state === "ready");
  }
  return { name, columnIds: table.primaryKey, comment: table.keyComment };
}
