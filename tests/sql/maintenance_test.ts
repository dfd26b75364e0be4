/**
 * STORAGE FLUSH and COMPACT: a row for each table, and what it says was done.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE a; CREATE NAMESPACE b; CREATE TABLE a.t (id INT PRIMARY KEY, v TEXT);" +
      "CREATE USER TABLE a.u (id INT PRIMARY KEY, v TEXT); CREATE TABLE b.t (id INT PRIMARY KEY);" +
      "CREATE USER ann INTERNAL; CREATE USER sam INTERNAL ROLE service",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Table, status and message of each job row, and whether it has an id. */
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

test("COMPACT merges what was flushed, and has nothing to do after that", async () => {
  const nothing = [null, "compact", "skipped", "a.t", "nothing to compact"];
  expect(await jobs("STORAGE COMPACT TABLE a.t")).toEqual([nothing]);
  for (const id of [1, 2, 3]) {
    await engine.run(`INSERT INTO a.t VALUES (${id}, 'x'); STORAGE FLUSH TABLE a.t`);
  }
  await engine.run("UPDATE a.t SET v = 'y' WHERE id = 1; STORAGE FLUSH TABLE a.t");
  expect(await jobs("STORAGE COMPACT TABLE a.t")).toEqual([
    ["CO", "compact", "completed", "a.t", "4 segment(s) merged, 0 old row version(s) discarded"],
  ]);
  expect(await jobs("STORAGE COMPACT TABLE a.t")).toEqual([nothing]);
  const [entry] = await engine.run("SELECT id, v FROM a.t ORDER BY id");
  expect(entry?.rows).toEqual([
    [1, "y"],
    [2, "x"],
    [3, "x"],
  ]);
});

test("ALL is about every table, or about those of a namespace", async () => {
  const tables = async (sql: string): Promise<unknown[]> =>
    (await jobs(sql)).map((row) => (row as unknown[])[3]);
  expect(await tables("STORAGE COMPACT ALL")).toEqual(["a.t", "a.u", "b.t"]);
  expect(await tables("STORAGE COMPACT ALL IN a")).toEqual(["a.t", "a.u"]);
  expect(await tables("STORAGE FLUSH ALL IN NAMESPACE b")).toEqual(["b.t"]);
});

test("COMPACT of what is not there, or by who may not, is refused", async () => {
  expect(await engine.failure("STORAGE COMPACT TABLE a.none")).toBe("TABLE_NOT_FOUND@1:22");
  expect(await engine.failure("STORAGE COMPACT ALL IN none")).toBe("NAMESPACE_NOT_FOUND@1:0");
  expect(await engine.failure("EXECUTE AS USER 'ann' (STORAGE COMPACT TABLE a.t)")).toContain(
    "PERMISSION_DENIED",
  );
});
