/**
 * The catalogs that are read with SELECT: their columns are those of the contract, their rows those
 * of the caller.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE TABLE app.t (id INT, n INT CHECK (n > 0), PRIMARY KEY (id));" +
      "ALTER TABLE app.t ADD COLUMN x TEXT DEFAULT 'y';" +
      "CREATE TABLE app.f (id INT PRIMARY KEY, doc FILE) WITH (TYPE='USER');" +
      "CREATE VIEW app.v AS SELECT id FROM app.t; CREATE USER ann WITH PASSWORD 'Correct-horse-9'",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function as<T>(userId: string, work: () => Promise<T>): Promise<T> {
  engine.userId = userId;
  try {
    return await work();
  } finally {
    engine.userId = "root";
  }
}

const COLUMNS: Readonly<Record<string, string>> = {
  "information_schema.schemata": "catalog_name, schema_name, schema_owner",
  "information_schema.views": "table_catalog, table_schema, table_name, view_definition",
  "information_schema.tables":
    "table_catalog, table_schema, table_name, table_type, is_insertable_into",
  "system.schemas":
    "table_id, table_name, namespace_id, table_type, schema_version, columns, constraints, options, " +
    "access_level, storage_id, is_latest, table_comment, created_at, updated_at",
  "system.storages":
    "storage_id, storage_name, description, storage_type, base_directory, config, " +
    "shared_tables_template, user_tables_template, created_at, updated_at",
  "system.files":
    "file_id, namespace_id, table_name, column_name, user_id, sub, stored_name, name, mime, size, " +
    "sha256, created_at",
  "system.queries":
    "query_id, user_id, as_user, sql, state, started_at, elapsed_ms, rows_read, memory_bytes",
  "system.stats": "metric_name, metric_value, unit, description",
  "system.logs": "timestamp, level, target, message, fields",
  "system.query_stats":
    "fingerprint, sql, calls, errors, rows, total_ms, mean_ms, p50_ms, p95_ms, p99_ms, max_ms, last_seen",
};

test.each(Object.entries(COLUMNS))("%s has its columns", async (name, columns) => {
  const [found] = await engine.run(`SELECT * FROM ${name}`);
  expect(found?.schema?.map((field) => field.name).join(", ")).toBe(columns);
});

test("system.schemas has a row for each version of a table", async () => {
  const rows = await engine.rows(
    "SELECT schema_version, is_latest, json_array_length(columns), constraints FROM system.schemas " +
      "WHERE table_name = 't' ORDER BY 1",
  );
  const constraints =
    '[{"name":"t_pkey","type":"PRIMARY KEY","columns":["id"]},' +
    '{"name":"t_n_check","type":"CHECK","check":"n > 0"}]';
  expect(rows).toEqual([
    [1, false, 2, constraints],
    [2, true, 3, constraints],
  ]);
});

test("tables, views and their constraints are listed", async () => {
  expect(
    await engine.rows("SELECT table_name, table_type FROM system.tables ORDER BY table_name"),
  ).toEqual([
    ["f", "USER"],
    ["t", "SHARED"],
    ["v", "VIEW"],
  ]);
  const sql =
    "SELECT c.constraint_name, c.constraint_type, k.column_name, x.check_clause " +
    "FROM information_schema.table_constraints c " +
    "LEFT JOIN information_schema.key_column_usage k USING (constraint_name) " +
    "LEFT JOIN information_schema.check_constraints x USING (constraint_name) " +
    "WHERE c.table_name = 't' ORDER BY 1";
  expect(await engine.rows(sql)).toEqual([
    ["t_n_check", "CHECK", null, "n > 0"],
    ["t_pkey", "PRIMARY KEY", "id", null],
  ]);
});

test("system.my_files has the files of the caller, system.files those of all", async () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const files = new Map([["a", { name: "a.bin", mime: "application/octet-stream", bytes }]]);
  await as("ann", () => engine.run("INSERT INTO app.f VALUES (1, FILE('a'))", { files }));
  const mine = "SELECT name, size, user_id, column_name FROM system.my_files";
  expect(await engine.rows(mine)).toEqual([]);
  const shown = [["a.bin", 3, "ann", "doc"]];
  await as("ann", async () => expect(await engine.rows(mine)).toEqual(shown));
  expect(await engine.rows(mine.replace("my_files", "files"))).toEqual(shown);
});

test("a user sees what it may read, and of system its own views only", async () => {
  await as("ann", async () => {
    const seen = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app'";
    expect(await engine.rows(seen)).toEqual([["f"]]);
    const system = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'system'";
    for (const [name] of await engine.rows(system)) expect(String(name)).toStartWith("my_");
    for (const name of ["schemas", "storages", "files", "queries", "query_stats", "tables"]) {
      expect(await engine.failure(`SELECT * FROM system.${name}`)).toBe("PERMISSION_DENIED@1");
    }
  });
});

test("system.stats counts what there is, and system.logs has the newest lines", async () => {
  await engine.run("CREATE USER quinn WITH INTERNAL");
  const stats = new Map(
    (await engine.rows("SELECT metric_name, metric_value FROM system.stats")).map(
      ([name, value]) => [String(name), String(value)] as const,
    ),
  );
  const count = async (view: string): Promise<string> =>
    String((await engine.rows(`SELECT count(*) FROM system.${view}`))[0]?.[0]);
  expect(stats.get("total_users")).toBe(await count("users"));
  expect(stats.get("total_namespaces")).toBe(await count("namespaces"));
  expect(stats.get("active_connections")).toBe("0");
  expect(stats.get("server_version")).toBe("0.0.0");
  expect(Number(stats.get("memory_rss_bytes"))).toBeGreaterThan(1_000_000);
  const lines = await engine.rows("SELECT level, message, fields FROM system.logs");
  const [level, message, fields] = lines.at(-1) ?? [];
  expect([level, message, JSON.parse(String(fields))]).toEqual([
    "info",
    "user created",
    { user: "quinn", role: "user", by: "root" },
  ]);
  await as("ann", async () => {
    expect(await engine.failure("SELECT * FROM system.stats")).toStartWith("PERMISSION_DENIED");
    expect(await engine.failure("SELECT * FROM system.logs")).toStartWith("PERMISSION_DENIED");
  });
});
