/**
 * Verifies that INSERT … ON CONFLICT with many rows has the same outcome for each row as a series
 * of statements that each insert one of the rows in the same order.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TouchedKeys } from "../../../../src/sql/execute/change/conflict.ts";
import { TestEngine } from "../../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
});
afterAll(() => engine[Symbol.asyncDispose]());

test("TouchedKeys.add returns true only the first time for a key", () => {
  const touched = new TouchedKeys();
  const keys = Array.from({ length: 10_000 }, (_, i) => `${i}\u0000é${i % 7}`);
  expect(keys.filter((key) => touched.add(key))).toHaveLength(keys.length);
  expect(keys.some((key) => touched.add(key))).toBe(false);
  expect([touched.add(""), touched.add("")]).toEqual([true, false]);
});

test("new rows, changed rows and rows that WHERE excludes keep the order in which they were proposed", async () => {
  await engine.run(`
    CREATE TABLE u (id INT PRIMARY KEY, a INT DEFAULT 7, v TEXT, CHECK (a < 5000));
    INSERT INTO u SELECT g, g % 10, 'old' FROM generate_series(2, 2000, 2) AS s(g)`);
  const upsert = `
    INSERT INTO u SELECT g, g, 'new' FROM generate_series(1, 2000) AS s(g)
    ON CONFLICT (id) DO UPDATE SET a = u.a + excluded.a, v = u.v || excluded.v WHERE u.a < 8`;
  const returned = await engine.rows(`${upsert} RETURNING id, a, v`);
  const expected = Array.from({ length: 2000 }, (_, i) => i + 1).flatMap((id) => {
    if (id % 2 === 1) return [[id, id, "new"]];
    return id % 10 < 8 ? [[id, (id % 10) + id, "oldnew"]] : [];
  });
  expect(returned).toEqual(expected);
  expect(await engine.rows("SELECT count(*) FROM u WHERE v = 'old'")).toEqual([[200]]);
  const defaults = "INSERT INTO u VALUES (2, 0, ''), (4, 0, '') ON CONFLICT (id)";
  await engine.run(`${defaults} DO UPDATE SET a = DEFAULT`);
  expect(await engine.rows("SELECT a FROM u WHERE id IN (2, 4)")).toEqual([[7], [7]]);
});

test("faults of the proposed rows are reported before anything is computed from the rows", async () => {
  await engine.run("CREATE TABLE w (id INT PRIMARY KEY, a INT); INSERT INTO w VALUES (1, 0)");
  const upsert = "INSERT INTO w VALUES (1, 1), (2, 2), (2, 3) ON CONFLICT (id) DO UPDATE SET a = 1";
  expect(await engine.failure(`${upsert} / w.a`)).toBe("CARDINALITY_VIOLATION@1");
  expect(await engine.rows("SELECT id, a FROM w")).toEqual([[1, 0]]);
});
