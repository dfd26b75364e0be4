/**
 * Tests SET and SHOW: the settings that last for the rest of a request, the settings that last for
 * its transaction, and the accepted values. No statement gets more time than SET allowed.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

/**
 * A clock that advances by a millisecond at each check, so that all work takes time, however fast
 * it is.
 */
function tickingClock(): Clock & { elapsedMs: number } {
  const start = new ManualClock();
  return {
    elapsedMs: 0,
    nowMs: () => start.nowMs(),
    monotonicMs(): number {
      this.elapsedMs += 1;
      return this.elapsedMs;
    },
    after: (delayMs, callback) => start.after(delayMs, callback),
    yield: () => systemClock.yield(),
  };
}

const clock = tickingClock();
let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock, config: "performance.request_timeout = 30" });
  await engine.run("CREATE USER dora INTERNAL ROLE dba; CREATE USER sam INTERNAL ROLE service");
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
});

/** Runs some SQL, and returns the value that SHOW then reports for a setting. */
async function shownAfter(sql: string, name: string): Promise<unknown> {
  return (await engine.rows(`${sql}; SHOW ${name}`))[0]?.[1];
}

test("SET lasts for the rest of the request, but not for the next one", async () => {
  const [set] = await engine.run("SET application_name = 'shop'");
  expect(set).toMatchObject({ rowCount: 0, message: 'Setting application_name set to "shop"' });

  expect(await shownAfter("SET application_name = 'shop'; SELECT 1", "application_name")).toBe(
    "shop",
  );
  expect(await shownAfter("SELECT 1", "application_name")).toBe("");
  expect(
    await shownAfter(
      "SET application_name = a; SET application_name TO DEFAULT",
      "application_name",
    ),
  ).toBe("");
});

test.each([
  ["SET statement_timeout = 250", "statement_timeout", "250"],
  ["SET SESSION statement_timeout TO '2s'", "statement_timeout", "2000"],
  ["SET statement_timeout = '0.5 min'", "statement_timeout", "30000"],
  ["SET statement_timeout = 30000", "statement_timeout", "30000"],
  ["SET statement_timeout = 5; SET statement_timeout = DEFAULT", "statement_timeout", "30000"],
  ["SET statement_timeout = 5; SET statement_timeout = 0", "statement_timeout", "30000"],
  ["SET statement_timeout = 5; RESET statement_timeout", "statement_timeout", "30000"],
  ["SET statement_timeout = 5; RESET ALL", "statement_timeout", "30000"],
  ["SET application_name = 'a'; DISCARD ALL", "application_name", ""],
  ["SELECT set_config('application_name', 'b', false)", "application_name", "b"],
  ["SET client_encoding = 'UTF-8'", "client_encoding", "UTF8"],
  ["SET standard_conforming_strings = ON", "standard_conforming_strings", "on"],
  ["SET check_function_bodies = false", "check_function_bodies", "off"],
  ["SET xmloption = content", "xmloption", "content"],
  ["SET XML OPTION CONTENT", "xmloption", "content"],
  ["SET client_min_messages = WARNING", "client_min_messages", "warning"],
  ["SET row_security = off", "row_security", "off"],
  ["SET default_tablespace = ''", "default_tablespace", ""],
  ["SET default_table_access_method = heap", "default_table_access_method", "heap"],
  ["SET extra_float_digits = 3", "extra_float_digits", "3"],
  ["SET datestyle = 'ISO'", "datestyle", "ISO, MDY"],
  ["SET lock_timeout = '2s'", "lock_timeout", "2000"],
  ["SET idle_in_transaction_session_timeout = 0", "idle_in_transaction_session_timeout", "0"],
  ["SELECT 1", "server_version_num", "150000"],
  ["SELECT 1", "server_encoding", "UTF8"],
  ["SELECT 1", "transaction_isolation", "repeatable read"],
  ["SET timezone = 'utc'", "timezone", "UTC"],
  ["SET TimeZone TO UTC", `"TIMEZONE"`, "UTC"],
  ["SET TIME ZONE 'UTC'", "timezone", "UTC"],
  ["SET TIME ZONE LOCAL", "timezone", "UTC"],
  ["SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE", "timezone", "UTC"],
  ["SET enable_seqscan = false", "enable_seqscan", "off"],
  ["SET work_mem = '64MB'", "work_mem", "64MB"],
  ["SET random_page_cost TO 1.1; RESET random_page_cost", "random_page_cost", "4"],
  ["SET ROLE NONE", "role", "none"],
  ["SET ROLE TO none", "role", "none"],
  ["SET role = DEFAULT", "role", "none"],
  ["RESET ROLE", "role", "none"],
  ["USE public; RESET search_path", "search_path", "default"],
  ["SET application_name = word", "application_name", "word"],
  ["SET application_name = 12", "application_name", "12"],
])("%s is taken", async (sql, name, value) => {
  expect(await shownAfter(sql, name)).toBe(value);
});

test.each([
  ["SET statement_timeout = 30001", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = '1h'", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = -1", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = 'soon'", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = NULL", "INVALID_OPTION@1:0"],
  ["SET timezone = 'Europe/Berlin'", "INVALID_OPTION@1:0"],
  ["SET TIME ZONE 'Europe/Berlin'", "INVALID_OPTION@1:0"],
  ["SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE", "INVALID_OPTION@1:0"],
  ["SET application_name = X'00'", "INVALID_OPTION@1:0"],
  ["SET limits.max_sql_bytes = 5", "INVALID_OPTION@1:0"],
  ["SET shared_buffers = DEFAULT", "INVALID_OPTION@1:0"],
  ["RESET shared_buffers", "INVALID_OPTION@1:0"],
  ["SET enable_seqscan = maybe", "INVALID_OPTION@1:0"],
  ["SET random_page_cost = dear", "INVALID_OPTION@1:0"],
  ["SET work_mem = '64 pages'", "INVALID_OPTION@1:0"],
  ["SET lc_messages = 'de_DE'", "INVALID_OPTION@1:0"],
  ["SELECT set_config('role', 'ann', false)", "INVALID_OPTION@1"],
  ["SET client_encoding = 'LATIN1'", "INVALID_OPTION@1:0"],
  ["SET standard_conforming_strings = off", "INVALID_OPTION@1:0"],
  ["SET datestyle = 'German'", "INVALID_OPTION@1:0"],
  ["SET intervalstyle = iso_8601", "INVALID_OPTION@1:0"],
  ["SET extra_float_digits = 4", "INVALID_OPTION@1:0"],
  ["SET xmloption = tree", "INVALID_OPTION@1:0"],
  ["SET XML OPTION DOCUMENT", "INVALID_OPTION@1:0"],
  ["SET server_version = '16'", "INVALID_OPTION@1:0"],
  ["SELECT set_config('shared_buffers', '1', false)", "INVALID_OPTION@1"],
  ["SELECT set_config('application_name', 'x', true)", "TRANSACTION_REQUIRED@1"],
  ["SELECT set_config(NULL, 'x', false)", "INVALID_VALUE@1"],
  ["SELECT 1, set_config('search_path', 'default', false)", "INVALID_OPTION@1"],
  ["SELECT set_config('limits.own', '1', false)", "INVALID_OPTION@1"],
  ["SELECT set_config('app..x', '1', false)", "INVALID_OPTION@1"],
  ["SELECT set_config('search_path', 'nowhere', false)", "NAMESPACE_NOT_FOUND@1:33"],
  ["SET LOCAL application_name = 'x'", "TRANSACTION_REQUIRED@1:0"],
])("%s is refused", async (sql, failure) => {
  expect(await engine.failure(sql)).toBe(failure);
});

test("a long invalid value of a setting is refused at once, and the error shows its beginning", async () => {
  const text = `1${" ".repeat(500_000)}x`;
  for (const name of ["statement_timeout", "timezone"]) {
    const { error } = await engine.ask(`SET ${name} = '${text}'`);
    expect(error?.code, name).toBe("INVALID_OPTION");
    expect(error?.message, name).toContain(`Cannot set ${name} to "1   `);
    expect(error?.message.length, name).toBeLessThan(300);
  }
});

test("an invalid value of a setting is found before the text runs", async () => {
  await engine.run("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
  const text = "INSERT INTO app.t VALUES (1); SET timezone = 'Mars'";
  expect(await engine.failure(text)).toBe("INVALID_OPTION@2:30");
  expect(await engine.rows("SELECT * FROM app.t")).toEqual([]);
});

test("all users may SET and SHOW their settings, but not see the configuration", async () => {
  await engine.run("CREATE USER kim INTERNAL ROLE user");
  for (const sql of ["SET timezone = 'UTC'", "SHOW timezone", "RESET ALL", "SHOW server_version"]) {
    for (const userId of ["kim", "sam", "dora"]) {
      engine.userId = userId;
      expect(await engine.run(sql), sql).toHaveLength(1);
    }
  }
  engine.userId = "kim";
  expect(await engine.failure("SHOW ALL")).toBe("PERMISSION_DENIED@1:0");
  expect(await engine.failure("SHOW limits.max_sql_bytes")).toBe("OBJECT_NOT_FOUND@1:0");
  engine.userId = "dora";
  expect(await engine.rows("SHOW limits.max_sql_bytes")).toHaveLength(1);
});

test("the beginning of a dump runs unchanged, and changes the namespace only if told to", async () => {
  await engine.run("CREATE NAMESPACE dump; CREATE TABLE dump.t (id INT PRIMARY KEY)");
  const preamble = [
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = on",
    "SELECT pg_catalog.set_config('search_path', '', false)",
    "SET check_function_bodies = false",
    "SET xmloption = content",
    "SET client_min_messages = warning",
    "SET row_security = off",
    "SET default_tablespace = ''",
    "SET default_table_access_method = heap",
  ].join(";\n");
  engine.userId = "sam";
  const results = await engine.run(`${preamble}; SELECT CURRENT_NAMESPACE()`);
  expect([results[5]?.rows, results.at(-1)?.rows]).toEqual([[[""]], [["default"]]]);
  engine.userId = "root";
  const entered = "SELECT set_config('search_path', 'dump', false); SELECT count(*) FROM t";
  expect(await engine.rows(entered)).toEqual([[0]]);
});

test("current_setting returns the same as SHOW, including what SET has changed", async () => {
  const [version] = await engine.rows("SHOW server_version");
  expect(await engine.rows("SELECT current_setting('server_version')")).toEqual([[version?.[1]]]);
  const path = "SET search_path TO app; SHOW search_path; SELECT current_setting('search_path')";
  expect((await engine.run(path)).slice(1).map(({ rows }) => rows?.[0]?.slice(0, 2))).toEqual([
    ["search_path", "app"],
    ["app"],
  ]);
  const changed = "SET application_name = 'x'; SELECT current_setting('APPLICATION_NAME')";
  expect(await engine.rows(changed)).toEqual([["x"]]);
  expect(await engine.rows("SELECT pg_catalog.current_setting('app.none', true)")).toEqual([
    [null],
  ]);
  expect(await engine.failure("SELECT current_setting('app.none')")).toBe("OBJECT_NOT_FOUND@1");
  const [aliased] = await engine.run("SELECT current_setting('timezone') AS zone");
  expect(aliased?.schema?.map(({ name }) => name)).toEqual(["zone"]);
  const local =
    "BEGIN; SET LOCAL application_name = 'y'; SELECT current_setting('application_name'); COMMIT";
  expect((await engine.run(local))[2]?.rows).toEqual([["y"]]);
});

test("current_setting shows the configuration only to those who may inspect it", async () => {
  await engine.run("CREATE USER IF NOT EXISTS kim INTERNAL ROLE user");
  engine.userId = "kim";
  const text = "SELECT current_setting('limits.max_sql_bytes', true)";
  expect(await engine.rows(text)).toEqual([[null]]);
  engine.userId = "root";
  expect((await engine.rows(text))[0]?.[0]).not.toBeNull();
});

test("expressions read and change settings", async () => {
  const read = "SELECT lower(current_setting('timezone')) || length(current_setting('datestyle'))";
  expect(await engine.rows(read)).toEqual([["utc8"]]);
  const both = "SELECT set_config('app.id', 7::text, false), current_setting('app.id')::int + 1";
  expect(await engine.rows(both)).toEqual([["7", 8]]);
  const of = "FROM (VALUES ('a'), ('b')) AS v (x) WHERE set_config('app.x', x, false) = 'a'";
  expect(await engine.rows(`SELECT x ${of}; SELECT current_setting('app.x')`)).toEqual([["b"]]);
  const reset = "SELECT set_config('application_name', 'a', false) || 'b'";
  const toDefault = "SELECT set_config('application_name', NULL, false) || 'c'";
  const shown = "SELECT current_setting('application_name')";
  expect((await engine.run(`${reset}; ${toDefault}; ${shown}`)).map(({ rows }) => rows)).toEqual([
    [["ab"]],
    [["c"]],
    [[""]],
  ]);
});

test("a DEFAULT reads the settings of the request that inserts", async () => {
  const table =
    "CREATE SHARED TABLE noted (id INT PRIMARY KEY, who TEXT DEFAULT current_setting('app.who'))";
  await engine.run(table);
  const insert = "SET app.who = 'ann'; INSERT INTO noted (id) VALUES (1)";
  expect(await engine.rows(`${insert}; SELECT who FROM noted`)).toEqual([["ann"]]);
  expect(await engine.failure("INSERT INTO noted (id) VALUES (2)")).toBe("OBJECT_NOT_FOUND@1");
  expect(await engine.rows("SELECT count(*) FROM noted")).toEqual([[1]]);
});

test("a custom setting ends with its request, and a local one with its transaction", async () => {
  const read = "SELECT current_setting('app.id', true)";
  expect(await engine.rows(`SELECT set_config('app.id', '1', false); ${read}`)).toEqual([["1"]]);
  expect(await engine.rows(read)).toEqual([[null]]);
  const local = `BEGIN; SELECT set_config('app.id', '2', true); ${read}; COMMIT; ${read}`;
  const results = await engine.run(local);
  expect([results[2]?.rows, results[4]?.rows]).toEqual([[["2"]], [[null]]]);
  const undone = `BEGIN; SELECT set_config('app.id', '2', false); ROLLBACK; ${read}`;
  expect(await engine.rows(undone)).toEqual([[null]]);
});

test("a request may have a limited number of custom settings", async () => {
  const each = "SELECT count(set_config('app.n' || n, 'x', false)) FROM generate_series(1, 200) n";
  expect(await engine.failure(each)).toBe("INVALID_OPTION@1");
});

test("a live query reads no settings", async () => {
  const { error } = await engine.ask(
    "SUBSCRIBE TO SELECT * FROM noted WHERE who = current_setting('a.b')",
  );
  expect(error?.code).toBe("UNSUPPORTED_FEATURE");
});

test("COMMIT keeps SET and ends SET LOCAL, whereas ROLLBACK undoes both", async () => {
  const change =
    "SET application_name = 'a'; BEGIN; SET application_name = 'b'; SET LOCAL application_name = 'c'";
  expect(await shownAfter(change, "application_name; COMMIT")).toBeUndefined();
  const inside = await engine.run(`${change}; SHOW application_name; COMMIT`);
  expect(inside[4]?.rows?.[0]?.[1]).toBe("c");
  expect(await shownAfter(`${change}; COMMIT`, "application_name")).toBe("b");
  expect(await shownAfter(`${change}; ROLLBACK`, "application_name")).toBe("a");
});

test("SHOW ALL lists every setting, and marks those that SET can change", async () => {
  const shown = await engine.rows("SET statement_timeout = 7; SHOW ALL");
  const settings = await engine.rows(
    "SELECT name, value, description, category FROM system.settings",
  );
  expect(shown.slice(0, settings.length)).toEqual(settings as unknown[][]);
  const own = shown.slice(settings.length);
  expect(own.slice(0, 3).map(([name, value]) => [name, value])).toEqual([
    ["statement_timeout", "7"],
    ["timezone", "UTC"],
    ["application_name", ""],
  ]);
  expect(own.filter(([name]) => name === "server_encoding")).toEqual([
    [
      "server_encoding",
      "UTF8",
      "Exists only for programs that read it; cannot be changed",
      "fixed",
    ],
  ]);
  expect(await engine.failure("SHOW nothing")).toBe("OBJECT_NOT_FOUND@1:0");
});

test("a statement ends at the time set by SET, and the request at its own limit", async () => {
  const endless = "SELECT count(*) FROM generate_series(1, 1000000000)";
  const start = clock.elapsedMs;
  expect(await engine.failure(`SET statement_timeout = 40; SELECT 1; ${endless}`)).toBe(
    "STATEMENT_TIMEOUT@3",
  );
  expect(clock.elapsedMs - start).toBeLessThan(1000);

  // Each statement may use its full time, but all of them share the request's time.
  const selects = Array.from({ length: 200 }, () => "SELECT 1").join(";");
  await engine.run(`SET statement_timeout = 40; ${selects}`);
  expect(
    await engine.failure(`SET statement_timeout = 40; ${selects}`, { timeoutMs: 100 }),
  ).toStartWith("STATEMENT_TIMEOUT@");
});
