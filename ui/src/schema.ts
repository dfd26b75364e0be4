/**
 * Lists the tables and columns that the user may see, for completion and for the list next to the
 * editor.
 */
import { db } from "./database.ts";
import type { ListedTable } from "./listed_table.ts";

const COLUMNS = `
  SELECT table_schema, table_name, column_name, data_type
  FROM information_schema.columns
  ORDER BY table_schema, table_name, ordinal_position`;

export async function readTables(): Promise<ListedTable[]> {
  const tables = new Map<string, ListedTable & { columns: { name: string; type: string }[] }>();
  for (const row of await db.query(COLUMNS)) {
    const namespace = String(row["table_schema"]);
    const name = String(row["table_name"]);
    const key = `${namespace}.${name}`;
    const table = tables.get(key) ?? { namespace, name, columns: [] };
    table.columns.push({ name: String(row["column_name"]), type: String(row["data_type"]) });
    tables.set(key, table);
  }
  return [...tables.values()];
}
