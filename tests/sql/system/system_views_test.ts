/**
 * Tests reading the system views with SELECT: they have exactly the expected columns, and contain
 * the rows that the caller may see.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { StatementResult } from "../../../src/sql/mod.ts";
import { failureOf } from "../../auth/auth_fixture.ts";
import { RecordingSink } from "../../support/live_fixture.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

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

/**
 * Every view with its columns in order. Letters stand for types: t TEXT, i INT, b BIGINT, d
 * DOUBLE, B BOOLEAN, z TIMESTAMPTZ, j JSON.
 */
const LIVE =
  "live_id, connection_id, subscription_id, namespace_id, table_name, user_id, query, options j, " +
  "status, changes b, last_seq b, queued i, created_at z, last_update z, node_id i, position b, " +
  "lag_ms b, changes_per_sec d, state_bytes b";
const CONNECTIONS =
  "connection_id, user_id, role, transport, client_addr, serialization, compression, " +
  "subscriptions i, bytes_in b, bytes_out b, queued_bytes b, opened_at z, last_seen_at z";
const FILES =
  "file_id, namespace_id, table_name, column_name, user_id, sub, stored_name, name, mime, size b, " +
  "sha256, created_at z";
const JOBS =
  "job_id, job_type, status, namespace_id, table_name, parameters j, message, error, progress d, " +
  "retry_count i, max_retries i, created_by, created_at z, started_at z, finished_at z, " +
  "updated_at z, node_id i";
const CONSTRAINT = "constraint_schema, constraint_name, table_schema, table_name";

const VIEWS: Readonly<Record<string, string>> = {
  "information_schema.schemata": "catalog_name, schema_name, schema_owner",
  "information_schema.tables":
    "table_catalog, table_schema, table_name, table_type, is_insertable_into",
  "information_schema.columns":
    "table_catalog, table_schema, table_name, column_name, ordinal_position i, column_default, " +
    "is_nullable, data_type, character_maximum_length i, numeric_precision i, " +
    "numeric_precision_radix i, numeric_scale i, " +
    "datetime_precision i, domain_schema, domain_name, udt_catalog, udt_schema, udt_name, is_identity, identity_generation, is_generated, " +
    "generation_expression, is_updatable",
  "information_schema.views":
    "table_catalog, table_schema, table_name, view_definition, check_option, is_updatable, " +
    "is_insertable_into, is_trigger_updatable, is_trigger_deletable, is_trigger_insertable_into, " +
    "security_invoker B, access_level, view_owner, is_in_force B",
  "information_schema.table_constraints": `${CONSTRAINT}, constraint_type, is_deferrable, initially_deferred, enforced, nulls_distinct`,
  "information_schema.key_column_usage": `${CONSTRAINT}, column_name, ordinal_position i, position_in_unique_constraint i`,
  "information_schema.check_constraints": `${CONSTRAINT}, check_clause`,
  "information_schema.referential_constraints":
    "constraint_catalog, constraint_schema, constraint_name, unique_constraint_catalog, " +
    "unique_constraint_schema, unique_constraint_name, match_option, update_rule, delete_rule",
  "information_schema.constraint_column_usage":
    "table_schema, table_name, column_name, constraint_schema, constraint_name",
  "information_schema.sequences":
    "sequence_catalog, sequence_schema, sequence_name, data_type, numeric_precision i, " +
    "numeric_precision_radix i, numeric_scale i, start_value, minimum_value, maximum_value, " +
    "increment, cycle_option",
  "information_schema.routines":
    "specific_catalog, specific_schema, specific_name, routine_catalog, routine_schema, " +
    "routine_name, routine_type, data_type, routine_body, routine_definition, external_language, " +
    "is_deterministic, is_null_call, security_type, created z, last_altered z",
  "information_schema.triggers":
    "trigger_catalog, trigger_schema, trigger_name, event_manipulation, event_object_catalog, " +
    "event_object_schema, event_object_table, action_order i, action_condition, action_statement, " +
    "action_orientation, action_timing, action_reference_old_table, action_reference_new_table, " +
    "action_reference_old_row, action_reference_new_row, created z",
  "system.users":
    "user_id, role, email, auth_type, auth_data j, failed_login_attempts i, locked_until z, " +
    "last_login_at z, last_seen z, created_at z, updated_at z, deleted_at z, erase_after z, " +
    "storage_bytes b, storage_bytes_max b, login_name, email_verified_at z, metadata j",
  "system.namespaces":
    "namespace_id, name, owner, options j, table_count b, namespace_comment, created_at z",
  "system.tables":
    "table_id, namespace_id, table_name, table_type, storage_id, access_level, schema_version i, " +
    "options j, table_comment, created_by, created_at z, updated_at z",
  "system.columns":
    "namespace_id, table_name, schema_version i, column_id i, column_name, ordinal i, data_type, " +
    "nullable B, primary_key B, primary_key_pos i, default_value, column_comment",
  "system.sequences":
    "namespace_id, sequence_name, data_type, start_value b, min_value b, max_value b, " +
    "increment_by b, cycle B, cache_size b, last_value b, owned_by, sequence_comment",
  "system.types":
    'namespace_id, type_name, labels {"Array":"Text"}, type_comment, type_kind, base_type, checks {"Array":"Text"}, fields {"Array":"Text"}',
  "system.materialized_views":
    "namespace_id, view_name, access_level, is_populated B, definition, created_by, created_at z",
  "system.indexes":
    "namespace_id, table_name, index_name, columns, is_unique B, is_primary B, is_constraint B, " +
    "state, definition, index_comment",
  "system.schemas":
    "table_id, table_name, namespace_id, table_type, schema_version i, columns j, constraints j, " +
    "options j, access_level, storage_id, is_latest B, table_comment, created_at z, updated_at z",
  "system.storages":
    "storage_id, storage_name, description, storage_type, base_directory, config j, " +
    "shared_tables_template, user_tables_template, created_at z, updated_at z",
  "system.jobs": JOBS,
  "system.my_jobs": JOBS,
  "system.live": LIVE,
  "system.my_live": LIVE,
  "system.connections": CONNECTIONS,
  "system.my_connections": CONNECTIONS,
  "system.queries":
    "query_id, user_id, as_user, sql, state, started_at z, elapsed_ms d, rows_read b, " +
    "bytes_received b, memory_bytes b",
  "system.transactions":
    "transaction_id, user_id, state, is_read_only B, snapshot_seq b, started_at z, elapsed_ms d, " +
    "idle_ms d, requests b, staged_rows b, staged_bytes b",
  "system.advisory_locks":
    "key, key_user_id, mode, level, is_granted B, user_id, transaction_id, query_id, since z",
  "system.audit_log":
    "audit_id b, timestamp z, actor_user_id, action, target, outcome, details j, ip_address, " +
    "subject_user_id",
  "system.segments":
    "segment_id, namespace_id, table_name, user_id, storage_id, min_seq b, max_seq b, row_count b, " +
    "size_bytes b, compression, schema_version i, status, created_at z, kind",
  "system.manifest":
    "namespace_id, table_name, user_id, segments i, pending_versions b, flushed_seq b, sync_state, " +
    "updated_at z, manifest_json j",
  "system.stats": "metric_name, metric_value, unit, description",
  "system.memory": "part, used_bytes b, allowed_bytes b, description",
  "system.settings": "name, value, default_value, source, category, description",
  "system.logs": "timestamp z, level, target, message, fields j",
  "system.query_stats":
    "fingerprint, sql, calls b, errors b, rows b, total_ms d, mean_ms d, p50_ms d, p95_ms d, " +
    "p99_ms d, max_ms d, last_seen z",
  "system.policies":
    "table_id, policy_name, command, roles, using_expression, check_expression, owner, " +
    "is_in_force B, created_at z, updated_at z",
  "system.webhooks":
    "name, topic_id, url, is_signed B, is_ordered B, start, timeout_secs i, concurrency i, group_id, status, delivered b, failed b, last_error, last_failed_at z, last_delivered_at z, lag_messages b, lag_ms b, created_by, created_at z",
  "system.tokens": "name, user_id, scopes, expires_at z, last_used_at z, created_by, created_at z",
  "system.invitations": "name, uses i, uses_max i, expires_at z, created_by, created_at z",
  "system.topics":
    "topic_id, name, partitions i, retention_seconds b, retention_max_bytes b, routes j, " +
    "created_at z, updated_at z, namespace_id, max_deliveries i, dead_letter, messages b, " +
    "message_bytes b, held_versions b, held_bytes b, status",
  "system.topic_offsets": "topic_id, group_id, partition_id i, last_acked_offset b, updated_at z",
  "system.topic_consumers":
    "consumer_id, topic_id, group_id, partition_id i, user_id, lag_messages b, lag_ms b, " +
    "claims i, redeliveries b, last_seen_at z",
  "system.files": FILES,
  "system.my_files": FILES,
  "system.my_account":
    "user_id, role, email, auth_type, last_login_at z, created_at z, storage_bytes b, " +
    "storage_bytes_max b, login_name, email_verified_at z, metadata j",
};

const TYPE_LETTERS: Readonly<Record<string, string>> = {
  Text: "",
  Int: " i",
  BigInt: " b",
  Double: " d",
  Boolean: " B",
  DateTime: " z",
  Json: " j",
};

/**
 * Returns the columns of a result in the same notation as the expected views, with a letter for
 * each type.
 */
function columnsOf(found: StatementResult | undefined): string | undefined {
  return found?.schema
    ?.map(({ data_type: type, name }) => {
      const word = typeof type === "string" ? type : JSON.stringify(type);
      return `${name}${TYPE_LETTERS[word] ?? ` ${word}`}`;
    })
    .join(", ");
}

test.each(Object.entries(VIEWS))("%s has its columns, with their types", async (name, columns) => {
  const [found] = await engine.run(`SELECT * FROM ${name}`);
  expect(columnsOf(found)).toBe(columns);
});

test("the table in this test lists all system views", async () => {
  const rows = await engine.rows(
    "SELECT table_schema || '.' || table_name FROM information_schema.tables " +
      "WHERE table_type = 'SYSTEM VIEW'",
  );
  expect(new Set(rows.flat())).toEqual(new Set(Object.keys(VIEWS)));
});

/**
 * The columns of each SHOW statement, in the same notation as the views, with a letter for each
 * type.
 */
const SHOWN: Readonly<Record<string, string>> = {
  "SHOW NAMESPACES": "namespace_id, name, owner, created_at z, options j, table_count b",
  "SHOW FUNCTIONS":
    "namespace_id, function_name, arguments, result_type, volatility, is_strict B, " +
    "function_comment, created_by, created_at z, updated_at z",
  "SHOW TABLES":
    "table_id, table_name, namespace_id, table_type, created_at z, schema_version i, " +
    "table_comment, updated_at z, options j, access_level, storage_id",
  "DESCRIBE app.t":
    "column_name, ordinal_position i, column_id i, data_type, is_nullable B, is_primary_key B, " +
    "column_default, column_comment, schema_version i",
  "SHOW STATS FOR TABLE app.t":
    "table_name, namespace, schema_version i, logical_rows b, unflushed_versions b, " +
    "flushed_segments b, bytes b, active_subscriptions b, memory_bytes b",
  "SHOW MANIFEST":
    "namespace_id, table_name, scope, segments b, rows b, bytes b, min_seq b, max_seq b, " +
    "sync_state, last_flushed_at z, manifest_json j",
  "SHOW STORAGES":
    "storage_id, storage_name, description, storage_type, base_directory, config j, " +
    "shared_tables_template, user_tables_template, created_at z, updated_at z",
  "SHOW ALL": "name, value, description, category",
};

test.each(Object.entries(SHOWN))("%s has its columns, with their types", async (sql, columns) => {
  const [found] = await engine.run(sql);
  expect(columnsOf(found)).toBe(columns);
});

test("system.users shows how an account authenticates, and its recent failed logins", async () => {
  await engine.run(`CREATE USER oda OAUTH '{"subject":"7","provider":"idp"}'`);
  const caller = { address: "203.0.113.7", isLocal: true };
  const attempt = { user: "ann", password: "wrong" };
  const { auth, catalog } = engine.database;
  catalog.accounts.change("root", {
    passwordHash: catalog.accounts.user("ann")?.passwordHash ?? "",
  });
  expect(await failureOf(() => auth.login(attempt, caller))).toBe("unauthorized");
  const sql =
    "SELECT auth_type, auth_data, failed_login_attempts, locked_until IS NULL, last_seen IS NULL " +
    "FROM system.users WHERE user_id IN ('ann', 'oda') ORDER BY user_id";
  expect(await engine.rows(sql)).toEqual([
    ["password", null, 1, true, true],
    ["oauth", '{"provider":"idp","subject":"7"}', 0, true, true],
  ]);
  for (let tries = 0; tries < 4; tries += 1) {
    expect(await failureOf(() => auth.login(attempt, caller))).toBe("unauthorized");
  }
  const locked = "SELECT locked_until - NOW() FROM system.users WHERE user_id = 'ann'";
  expect(await engine.rows(locked)).toEqual([["00:15:00"]]);
});

test("system.manifest lists the segments of each table", async () => {
  await engine.run("CREATE TABLE app.m (id INT PRIMARY KEY); INSERT INTO app.m VALUES (1), (2)");
  const sql =
    "SELECT segments, pending_versions, flushed_seq IS NULL, sync_state, user_id, " +
    "manifest_json ->> 'unflushed_versions' FROM system.manifest WHERE table_name = 'm'";
  expect(await engine.rows(sql)).toEqual([[0, 2, true, "pending_write", null, "2"]]);
  await engine.run("STORAGE FLUSH TABLE app.m");
  await Promise.all(engine.database.jobs.all().map(({ ended }) => ended));
  expect(await engine.rows(sql)).toEqual([[1, 0, false, "in_sync", null, "0"]]);
  await engine.run("DROP TABLE app.m");
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

test("SHOW TABLES and system.tables list the same tables and system views, with the same ids", async () => {
  const listed = "SELECT table_id, namespace_id, table_name, table_type FROM system.tables";
  const rows = await engine.rows(`${listed} ORDER BY 2, 3`);
  const shown = await engine.rows("SHOW TABLES");
  const ofShown: unknown = shown.map(([id, name, namespace, type]) => [id, namespace, name, type]);
  expect(ofShown).toEqual(rows);
  const names = rows.map(([, namespace, name]) => `${String(namespace)}.${String(name)}`);
  expect(names.filter((name) => Object.hasOwn(VIEWS, name))).toEqual(Object.keys(VIEWS).toSorted());
  const ids = rows.map(([id]) => String(id));
  expect(ids.filter((id) => !/^[1-9]\d*$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});

test("tables, views and their constraints are listed", async () => {
  expect(
    await engine.rows(
      "SELECT table_name, table_type FROM system.tables WHERE table_type <> 'SYSTEM' ORDER BY 1",
    ),
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

test("system.my_files lists the files of the caller, and system.files all files", async () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const files = new Map([["a", { name: "a.bin", mime: "application/octet-stream", bytes }]]);
  await as("ann", () => engine.run("INSERT INTO app.f VALUES (1, FILE('a'))", { files }));
  const mine = "SELECT name, size, user_id, column_name FROM system.my_files";
  expect(await engine.rows(mine)).toEqual([]);
  const shown = [["a.bin", 3, "ann", "doc"]];
  await as("ann", async () => expect(await engine.rows(mine)).toEqual(shown));
  expect(await engine.rows(mine.replace("my_files", "files"))).toEqual(shown);
});

test("a user sees the tables that they may read, and only their own rows of system views", async () => {
  await as("ann", async () => {
    const seen = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app'";
    expect(await engine.rows(seen)).toEqual([["f"]]);
    const system = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'system'";
    // Callers see the indexes of tables that they may read.
    const open = /^(?:my_.*|indexes|materialized_views)$/;
    for (const [name] of await engine.rows(system)) expect(name).toMatch(open);
    for (const name of ["schemas", "storages", "files", "queries", "query_stats", "tables"]) {
      expect(await engine.failure(`SELECT * FROM system.${name}`)).toBe("PERMISSION_DENIED@1");
    }
  });
});

test("a missing system view is reported by name, with a similar one that may be read", async () => {
  const hintOf = async (name: string): Promise<unknown> => {
    const { error } = await engine.ask(`SELECT * FROM ${name}`);
    expect([error?.code, error?.message]).toEqual([
      "TABLE_NOT_FOUND",
      `Cannot find system view ${name}`,
    ]);
    return error?.hint;
  };
  const list =
    "to list all tables and views, run SELECT table_schema, table_name FROM " +
    "information_schema.tables";
  expect(await hintOf("system.views")).toBe("did you mean information_schema.views?");
  expect(await hintOf("system.user")).toBe("did you mean system.users?");
  expect(await hintOf("information_schema.nonsense")).toBe(list);
  await as("ann", async () => expect(await hintOf("system.user")).toBe(list));
});

test("SHOW STORAGES shows paths to callers who may read system.storages", async () => {
  const path = "SELECT base_directory FROM system.storages";
  const [[known] = []] = await engine.rows(path);
  const shown = async (): Promise<unknown> => (await engine.rows("SHOW STORAGES"))[0]?.[4];
  expect([known, await shown()]).toEqual([engine.dataPath, engine.dataPath]);
  await as("ann", async () => expect(await shown()).toBeNull());
});

test("system.stats shows counters, and system.logs the newest lines", async () => {
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

test("system.memory lists the memory of each part of the server, with its limits", async () => {
  await engine.run("CREATE SHARED TABLE app.held (id INT PRIMARY KEY, text TEXT)");
  const used = async (): Promise<Map<unknown, readonly unknown[]>> => {
    const rows = await engine.rows("SELECT part, used_bytes, allowed_bytes FROM system.memory");
    return new Map(rows.map(([part, ...bytes]) => [part, bytes]));
  };
  const before = await used();
  await engine.run(
    "INSERT INTO app.held SELECT x, repeat('x', 1000) FROM generate_series(1, 500) AS g(x)",
  );
  const after = await used();
  const bytes = (from: typeof after, part: string): number => Number(from.get(part)?.[0]);

  expect([...after.keys()].slice(0, 2)).toEqual(["resident", "statements"]);
  expect([...after.keys()].at(-1)).toBe("rest");
  expect(bytes(after, "memtables") - bytes(before, "memtables")).toBeWithin(500_000, 1_000_000);
  expect(after.get("memtables")?.[1]).toBe(512 * 1024 ** 2);
  expect(after.get("replacement_notes")?.[1]).toBeNull();
  expect(bytes(after, "plans")).toBeGreaterThan(0);
  // The parts of the memory add up to the resident memory, unless some estimates are too high.
  const parts = [...after.keys()].filter((part) => part !== "resident");
  const sum = parts.reduce((total: number, part) => total + bytes(after, String(part)), 0);
  expect(sum).toBeGreaterThanOrEqual(bytes(after, "resident"));
  for (const part of parts)
    expect(bytes(after, String(part)), String(part)).toBeGreaterThanOrEqual(0);
  await as("ann", async () => {
    expect(await engine.failure("SELECT * FROM system.memory")).toStartWith("PERMISSION_DENIED");
  });
});

test("system.stats counts seconds from the opening of the database, not from the first statement", async () => {
  const clock = new ManualClock();
  await using quiet = await TestEngine.open({ clock });
  clock.advance(90_000);
  expect(
    await quiet.rows(
      "SELECT metric_value FROM system.stats WHERE metric_name = 'server_uptime_seconds'",
    ),
  ).toEqual([["90.000"]]);
});

test("every node_id is the configured one", async () => {
  const config = "cluster.node_bits = 3\ncluster.node_id = 5";
  await using node = await TestEngine.open({ config });
  await node.run("CREATE TABLE t (id INT PRIMARY KEY); STORAGE FLUSH TABLE t");
  node.database.live.subscribe({
    principal: node.principal,
    spec: { id: "s", sql: "SELECT * FROM t" },
    sink: new RecordingSink(),
  });
  expect(await node.rows("SELECT node_id FROM system.jobs")).toEqual([[5]]);
  expect(await node.rows("SELECT node_id FROM system.live")).toEqual([[5]]);
  expect(
    await node.rows("SELECT metric_value FROM system.stats WHERE metric_name = 'node_id'"),
  ).toEqual([["5"]]);
});

test("the number of fraction digits of a time column is part of its type", async () => {
  await engine.run(`CREATE TABLE app.times (id INT PRIMARY KEY, a TIMESTAMP(3), b TIMESTAMPTZ(0),
    c TIME(2), d TIMESTAMP)`);

  const [described] = await engine.run("DESCRIBE app.times");
  expect(described?.rows?.slice(1, 5).map(([name, , , type]) => [name, type])).toEqual([
    ["a", "timestamp(3) without time zone"],
    ["b", "timestamp(0) with time zone"],
    ["c", "time(2) without time zone"],
    ["d", "timestamp without time zone"],
  ]);
  expect(
    await engine.rows(`SELECT data_type, datetime_precision FROM information_schema.columns
      WHERE table_name = 'times' AND column_name IN ('a', 'b', 'c', 'd') ORDER BY column_name`),
  ).toEqual([
    ["timestamp without time zone", 3],
    ["timestamp with time zone", 0],
    ["time without time zone", 2],
    ["timestamp without time zone", 6],
  ]);
});
