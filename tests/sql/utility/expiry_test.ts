/**
 * Tests shared STREAM tables: exactly the rows whose age has reached TTL_SECONDS are deleted. In
 * all other respects, the tables behave like SHARED tables, with keys, changes and transactions.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { SEQ_EPOCH_MS } from "../../../src/base/seq.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

let engine: TestEngine;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock(SEQ_EPOCH_MS + 1_000_000_000);
  engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE STREAM TABLE s (id INT PRIMARY KEY, v TEXT) WITH (TTL_SECONDS = 10, ACCESS_LEVEL = 'PUBLIC')",
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

/** Lets time pass, and runs all pending work. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  await settled();
}

/** Runs all pending work, including that of the disk. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  await engine.database.store.durable(engine.database.store.appliedSeq);
}

async function ids(table = "s"): Promise<unknown[]> {
  return (await engine.rows(`SELECT id FROM ${table} ORDER BY id`)).flat();
}

/**
 * Waits until the sweep has left only the expected rows. Each of its commits waits for the disk.
 */
async function untilLeft(expected: readonly unknown[], table = "s"): Promise<void> {
  await until(async () => Bun.deepEquals(await ids(table), expected));
}

test("a row stays for TTL_SECONDS, and is deleted within the next second", async () => {
  await engine.run("INSERT INTO s VALUES (1, 'a')");
  await pass(4000);
  await engine.run("INSERT INTO s VALUES (2, 'b')");
  await pass(5999);
  expect(await ids()).toEqual([1, 2]);
  await pass(1001);
  await untilLeft([2]);
  await pass(4000);
  await untilLeft([]);
  expect(await engine.rows("SELECT id FROM s WHERE _deleted ORDER BY id")).toEqual([[1], [2]]);
});

test("a row that is changed starts to age again", async () => {
  await engine.run("INSERT INTO s VALUES (1, 'a'), (2, 'b')");
  await pass(8000);
  await engine.run("INSERT INTO s VALUES (1, 'c') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v");
  await pass(3000);
  await untilLeft([1]);
  expect(await engine.rows("SELECT * FROM s")).toEqual([[1, "c", expect.anything(), false]]);
  await pass(8000);
  await untilLeft([]);
});

test("a change in a transaction conflicts with the deletion of its row", async () => {
  await engine.run("INSERT INTO s VALUES (1, 'a'), (2, 'b')");
  await engine.run("BEGIN; UPDATE s SET v = 'c' WHERE id = 1; COMMIT");
  await pass(11_000);
  await untilLeft([]);
  await engine.run("INSERT INTO s VALUES (1, 'again')");
  expect(await ids()).toEqual([1]);
});

test("more rows than fit into one commit are deleted, and no younger row", async () => {
  await engine.run("INSERT INTO s SELECT i, 'old' FROM generate_series(1, 1700) g(i)");
  await engine.run("STORAGE FLUSH TABLE s");
  await pass(6000);
  await engine.run("INSERT INTO s SELECT i, 'young' FROM generate_series(2001, 2300) g(i)");
  await engine.run("UPDATE s SET v = 'young' WHERE id % 17 = 0 AND id <= 1700");
  await pass(5000);
  await until(async () => {
    const [[oldCount] = []] = await engine.rows("SELECT count(*) FROM s WHERE v = 'old'");
    return oldCount === 0;
  });
  expect(await engine.rows("SELECT v, count(*) FROM s GROUP BY v")).toEqual([["young", 400]]);
});

test("rows that expired while the database was closed are gone soon after it opens", async () => {
  await engine.run("INSERT INTO s VALUES (1, 'a')");
  await engine.database.close();
  clock.advance(20_000);
  await engine.reopen();
  await untilLeft([]);
});

test("a changed TTL applies to existing rows, and restores no deleted row", async () => {
  await engine.run("INSERT INTO s VALUES (1, 'a')");
  await pass(5000);
  await engine.run("INSERT INTO s VALUES (2, 'b')");
  await engine.run("ALTER STREAM TABLE s SET (TTL_SECONDS = 3)");
  await pass(1000);
  await untilLeft([2]);
  await engine.run("ALTER TABLE s SET (TTL_SECONDS = 60)");
  await pass(30_000);
  expect(await ids()).toEqual([2]);
  await pass(30_000);
  await untilLeft([]);
});

test("damage in one table does not delay the expiry of other tables", async () => {
  await engine.run(
    "CREATE STREAM TABLE other (id INT PRIMARY KEY) WITH (TTL_SECONDS = 10, ACCESS_LEVEL = 'PUBLIC')",
  );
  await engine.run("INSERT INTO s VALUES (1, 'a')");
  await engine.run("STORAGE FLUSH ALL");
  const { tableId = 0 } = engine.database.catalog.table("default", "s") ?? {};
  await engine.database.close();
  const folder = join(engine.dataPath, "segments", String(tableId));
  for (const name of readdirSync(folder)) truncateSync(join(folder, name), 100);
  await engine.reopen();
  await engine.run("INSERT INTO other VALUES (1)");
  await pass(12_000);
  await untilLeft([], "other");
  expect(await engine.failure("SELECT id FROM s")).toStartWith("DATA_DAMAGED");
});

test("DROP TABLE ends the expiry of its rows", async () => {
  await engine.run("INSERT INTO s VALUES (1, 'a')");
  await engine.run("DROP STREAM TABLE s");
  await pass(12_000);
  await engine.run("CREATE TABLE s (id INT PRIMARY KEY); INSERT INTO s VALUES (7)");
  await pass(60_000);
  expect(await ids()).toEqual([7]);
});

test("a shared STREAM table is listed as a STREAM table with its access level", async () => {
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, who TEXT) WITH (TYPE = 'STREAM', TTL_SECONDS = 5, OWNER_COLUMN = 'who')",
  );
  expect(
    await engine.rows(
      "SELECT table_name, table_type, access_level FROM system.tables WHERE namespace_id = 'default' ORDER BY 1",
    ),
  ).toEqual([
    ["s", "STREAM", "PUBLIC"],
    ["t", "STREAM", "RESTRICTED"],
  ]);
  const shown = await engine.rows("SHOW TABLES IN default");
  expect(shown.map(([, name, , type]) => [name, type])).toEqual([
    ["s", "STREAM"],
    ["t", "STREAM"],
  ]);
  expect((await engine.rows("SHOW POLICIES ON t")).length).toBe(4);
});

test.each([
  ["ALTER SHARED TABLE s RENAME COLUMN v TO w", "INVALID_OPERATION", "it is STREAM"],
  ["DROP SHARED TABLE s", "INVALID_OPERATION", "it is STREAM"],
  ["ALTER TABLE s RESET (TTL_SECONDS)", "INVALID_OPTION", "requires this option"],
  ["ALTER TABLE own SET (ACCESS_LEVEL = 'PUBLIC')", "INVALID_OPTION", "on a STREAM table"],
  ["CREATE POLICY p ON own USING (true)", "INVALID_OPERATION", "their own rows"],
  ["CREATE POLICY p ON s USING (true)", "INVALID_OPERATION", "policies require 'RESTRICTED'"],
  [
    "CREATE STREAM TABLE x (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC')",
    "INVALID_OPTION",
    "without TTL_SECONDS",
  ],
  [
    "CREATE SHARED TABLE x (id INT PRIMARY KEY) WITH (TTL_SECONDS = 5)",
    "INVALID_OPTION",
    "TTL_SECONDS on a SHARED table",
  ],
  ["CREATE TABLE x (id INT PRIMARY KEY REFERENCES s (id))", "INVALID_DEFINITION", "expire"],
])("%s is refused with %s", async (sql, code, message) => {
  await engine.run("CREATE STREAM TABLE own (id INT PRIMARY KEY) WITH (TTL_SECONDS = 10)");
  const { error } = await engine.ask(sql);
  expect(error?.code).toBe(code as never);
  expect(error?.message).toContain(message);
});
