/**
 * Tests STORAGE FLUSH and COMPACT, which return, for each table, a row that reports the work.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;
const clock = new ManualClock();

beforeAll(async () => {
  engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE NAMESPACE a; CREATE NAMESPACE b; CREATE TABLE a.t (id INT PRIMARY KEY, v TEXT);" +
      "CREATE USER TABLE a.u (id INT PRIMARY KEY, v TEXT); CREATE TABLE b.t (id INT PRIMARY KEY);" +
      "CREATE USER ann INTERNAL; CREATE USER sam INTERNAL ROLE service",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Returns the table, status and message of each job row, and whether it has an id. */
async function jobs(sql: string): Promise<unknown[]> {
  const [entry] = await engine.run(sql);
  return (entry?.rows ?? []).map(([id, type, status, namespace, table, message]) => [
    typeof id === "string" ? id.slice(0, 2) : id,
    type,
    status,
    [namespace, table].join("."),
    message,
  ]);
}

test("COMPACT merges flushed rows, and has nothing left to do afterwards", async () => {
  const nothing = ["CO", "compact", "skipped", "a.t", "nothing to compact"];
  expect(await jobs("STORAGE COMPACT TABLE a.t")).toEqual([nothing]);
  for (const id of [1, 2, 3]) {
    await engine.run(`INSERT INTO a.t VALUES (${id}, 'x'); STORAGE FLUSH TABLE a.t`);
  }
  await engine.run("UPDATE a.t SET v = 'y' WHERE id = 1; STORAGE FLUSH TABLE a.t");
  expect(await jobs("STORAGE COMPACT TABLE a.t")).toEqual([
    ["CO", "compact", "completed", "a.t", "4 segments merged, 0 old row versions discarded"],
  ]);
  expect(await jobs("STORAGE COMPACT TABLE a.t")).toEqual([nothing]);
  const [entry] = await engine.run("SELECT id, v FROM a.t ORDER BY id");
  expect(entry?.rows).toEqual([
    [1, "y"],
    [2, "x"],
    [3, "x"],
  ]);
});

test("ALL means every table, or every table of a namespace", async () => {
  const tables = async (sql: string): Promise<unknown[]> =>
    (await jobs(sql)).map((row) => (row as unknown[])[3]);
  expect(await tables("STORAGE COMPACT ALL")).toEqual(["a.t", "a.u", "b.t"]);
  expect(await tables("STORAGE COMPACT ALL IN a")).toEqual(["a.t", "a.u"]);
  expect(await tables("STORAGE FLUSH ALL IN NAMESPACE b")).toEqual(["b.t"]);
});

test("COMPACT of a missing table, or without the right, is refused", async () => {
  expect(await engine.failure("STORAGE COMPACT TABLE a.none")).toBe("TABLE_NOT_FOUND@1:22");
  expect(await engine.failure("STORAGE COMPACT ALL IN none")).toBe("NAMESPACE_NOT_FOUND@1:23");
  expect(await engine.failure("EXECUTE AS USER 'ann' (STORAGE COMPACT TABLE a.t)")).toContain(
    "PERMISSION_DENIED",
  );
});

/** Waits for a table's automatic flush. */
async function flushed(name: string): Promise<void> {
  const { catalog, store } = engine.database;
  const { tableId = 0 } = catalog.table("a", name) ?? {};
  while (store.stats(tableId).unflushedVersions > 0) {
    await new Promise((done) => setImmediate(done));
  }
}

async function listed(where: string): Promise<readonly (readonly unknown[])[]> {
  return await engine.rows(
    `SELECT job_type, status, table_name, message, progress, created_by FROM system.jobs WHERE ${where}`,
  );
}

test("system.jobs lists requested jobs and automatic ones", async () => {
  await engine.run("CREATE SHARED TABLE a.seen (id INT PRIMARY KEY) WITH (FLUSH_POLICY='rows:2')");
  await engine.run("INSERT INTO a.seen VALUES (1); STORAGE FLUSH TABLE a.seen");
  await engine.run("INSERT INTO a.seen VALUES (2), (3)");
  clock.advance(5000);
  await flushed("seen");
  await engine.run("STORAGE FLUSH TABLE a.seen");
  expect(await listed("table_name = 'seen'")).toEqual([
    ["flush", "completed", "seen", "1 row version written to a segment", 1, "root"],
    ["flush", "completed", "seen", "2 row versions written to a segment", 1, null],
    ["flush", "skipped", "seen", "nothing to flush", null, "root"],
  ]);
  expect(
    await engine.rows("SELECT count(*) FROM system.my_jobs WHERE created_by = 'root'"),
  ).toEqual(await engine.rows("SELECT count(*) FROM system.jobs WHERE created_by = 'root'"));
});

test("KILL JOB accepts the id of a job that has not ended", async () => {
  const [[id] = []] = await engine.rows("STORAGE FLUSH TABLE a.t");
  expect(await engine.failure(`KILL JOB '${String(id)}'`)).toBe("INVALID_OPERATION@1:0");
  expect(await engine.failure("KILL JOB 'none'")).toBe("OBJECT_NOT_FOUND@1:0");
});

test("a killed job ends as cancelled, and its rows are flushed later", async () => {
  const { database } = engine;
  const table = database.catalog.table("a", "t");
  if (table === undefined) throw new Error("there is no table");
  await engine.run("INSERT INTO a.t VALUES (1000, 'x')");
  const flushing = engine.run("STORAGE FLUSH TABLE a.t");
  // The statement is bound first, so its job appears only a few ticks later.
  let job = database.jobs.openOf("flush", table.tableId);
  while (job === undefined) {
    await new Promise((done) => setImmediate(done));
    job = database.jobs.openOf("flush", table.tableId);
  }
  await engine.run(`KILL JOB '${job.jobId}'`);
  const [entry] = await flushing;
  const status = entry?.rows?.[0]?.[2];
  // KILL may arrive after the flush has completed. The job's status shows which of the two came
  // first.
  const unflushed = database.store.stats(table.tableId).unflushedVersions;
  expect([status, unflushed]).toEqual(status === "cancelled" ? ["cancelled", 1] : ["completed", 0]);
  expect(await engine.rows("SELECT v FROM a.t WHERE id = 1000")).toEqual([["x"]]);
  clock.advance(6000);
  await flushed("t");
});
