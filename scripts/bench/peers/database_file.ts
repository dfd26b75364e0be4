/** Reads tables and their rows from a DuckDB database. */
import type { DuckDBInstance } from "@duckdb/node-api";
import { type MadeRow, NULL_CELL, type TableShape } from "./engines.ts";

export interface DatabaseFile {
  readonly tables: readonly TableShape[];
  rowsOf(sql: string): Promise<readonly (readonly unknown[])[]>;
  /** Returns the rows of all tables, one table after the other. */
  rowsIn(tables: readonly TableShape[]): AsyncGenerator<MadeRow>;
}

export async function openDatabaseFile(instance: DuckDBInstance): Promise<DatabaseFile> {
  const connection = await instance.connect();
  const rowsOf = async (sql: string): Promise<readonly (readonly unknown[])[]> =>
    (await connection.runAndReadAll(sql)).getRowsJson();
  async function* rowsIn(tables: readonly TableShape[]): AsyncGenerator<MadeRow> {
    for (const { name } of tables) {
      const texts = await connection.stream(`SELECT COLUMNS(*)::VARCHAR FROM ${name}`);
      for await (const chunk of texts.yieldRowsJson()) {
        for (const row of chunk) {
          yield {
            table: name,
            row: row.map((cell) => (typeof cell === "string" ? cell : NULL_CELL)),
          };
        }
      }
    }
  }
  return { tables: await tablesOf(rowsOf), rowsOf, rowsIn };
}

async function tablesOf(rowsOf: DatabaseFile["rowsOf"]): Promise<readonly TableShape[]> {
  const columns = await rowsOf(`
    SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal
    ORDER BY table_name, column_index`);
  const byTable = Map.groupBy(columns, ([table]) => String(table));
  return [...byTable].map(([name, own]) => ({
    name,
    columns: own.map(([, column, type]) => `${String(column)} ${String(type)}`).join(", "),
    foreign: [],
    numeric: new Set(
      own.flatMap(([, , type], position) =>
        type === "VARCHAR" || type === "DATE" ? [] : [position],
      ),
    ),
  }));
}
