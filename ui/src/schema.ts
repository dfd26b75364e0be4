/**
 * The tables and columns that the user may see, for completion and for the list beside the editor.
 */
import type { SQLNamespace } from "@codemirror/lang-sql";
import { db } from "./database.ts";

export interface ListedTable {
  readonly namespace: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

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

/** The tables as completion wants them: namespace, table, columns. */
export function completionTree(tables: readonly ListedTable[]): SQLNamespace {
  const tree: Record<string, Record<string, SQLNamespace>> = {};
  for (const { columns, name, namespace } of tables) {
    const inNamespace = (tree[namespace] ??= {});
    inNamespace[name] = columns.map(({ name: label, type: detail }) => ({
      label,
      detail: detail.toLowerCase(),
      type: "property",
    }));
  }
  return tree;
}

/** A name as SQL text, quoted when it has to be. */
export function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
