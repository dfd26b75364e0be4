/**
 * Distinguishes the primary key that a table declares from the key by which the store finds the
 * table's rows.
 *
 * Usually the two are the same. A SHARED or USER table without a primary key has a hidden key
 * column instead: `_key`, which is always the last column and contains an id that the server
 * assigns to each row. `SELECT *` does not include it. If a primary key is added to such a table
 * later, it is implemented as a unique index. The hidden column remains the key of the store, so
 * that no row has to be rewritten.
 */
import { BIGINT } from "../types/mod.ts";
import type { ColumnEntry, IndexEntry, TableEntry } from "./entries.ts";

/** The name of the hidden key column. Declared column names never begin with "_". */
export const HIDDEN_KEY_NAME = "_key";

/** Returns the hidden key column for a new table. */
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

/** Returns the declared columns of a table, in order, without the hidden key column. */
export function shownColumnsOf({ columns }: Pick<TableEntry, "columns">): readonly ColumnEntry[] {
  return hasHiddenKey({ columns }) ? columns.slice(0, -1) : columns;
}

type NamedTable = Pick<TableEntry, "columns" | "keyName" | "name" | "primaryKey">;
type KeyedTable = NamedTable & Pick<TableEntry, "indexes" | "keyComment">;

/**
 * Returns the name of a table's original primary key; undefined if the table was created without
 * one.
 */
export function keyNameOf(table: NamedTable): string | undefined {
  if (table.primaryKey.length === 0 || hasHiddenKey(table)) return undefined;
  return table.keyName ?? `${table.name}_pkey`;
}

/** A primary key in the form in which the table declares it. */
type DeclaredKey = Pick<IndexEntry, "columnIds" | "comment" | "name">;

/** Returns the primary key that a table currently declares; undefined if there is none. */
export function declaredKeyOf(table: KeyedTable): DeclaredKey | undefined {
  const name = keyNameOf(table);
  if (name === undefined) {
    return table.indexes?.find(({ isPrimary, state }) => isPrimary === true && state === "ready");
  }
  return { name, columnIds: table.primaryKey, comment: table.keyComment };
}
