/** Verifies that the reader of DuckDB tables returns them in the form that the benchmark needs. */
import { expect, test } from "bun:test";
import { DuckDBInstance } from "@duckdb/node-api";
import { openDatabaseFile } from "../../scripts/bench/peers/database_file.ts";

test("a database file gives the columns of its tables, and their rows as texts", async () => {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run(
    "CREATE TABLE sales (id BIGINT, price DECIMAL(7, 2), day DATE, note VARCHAR)",
  );
  await connection.run(
    "INSERT INTO sales VALUES (1, 2.5, '2000-01-02', 'a b'), (2, NULL, NULL, NULL)",
  );
  const file = await openDatabaseFile(instance);
  expect(file.tables).toEqual([
    {
      name: "sales",
      columns: "id BIGINT, price DECIMAL(7,2), day DATE, note VARCHAR",
      foreign: [],
      numeric: new Set([0, 1]),
    },
  ]);
  expect(await Array.fromAsync(file.rowsIn(file.tables))).toEqual([
    { table: "sales", row: ["1", "2.50", "2000-01-02", "a b"] },
    { table: "sales", row: ["2", "NULL", "NULL", "NULL"] },
  ]);
  expect(await file.rowsOf("SELECT max(id) FROM sales")).toEqual([["2"]]);
});
