/**
 * Verifies that a primary key of several columns finds rows by its leading columns and in key
 * order, as an index does. The tests compare pages of two tables with the same rows, only one of
 * which has such a key, in memory, in files, after merges and after a restart. They also check the
 * number of rows that each page reads.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE keyed (tenant INT, name TEXT, id INT, v INT, PRIMARY KEY (tenant, name, id));" +
      "CREATE TABLE plain (tenant INT, name TEXT, id INT PRIMARY KEY, v INT)",
  );
  for (const table of ["keyed", "plain"]) {
    await engine.run(
      `INSERT INTO ${table} SELECT i % 7, 'n' || i % 100, i, i FROM generate_series(1, 30000) i;` +
        `STORAGE FLUSH TABLE ${table};` +
        `INSERT INTO ${table} SELECT i % 7, 'n' || i % 100, i, i FROM generate_series(30001, 40000) i;` +
        `UPDATE ${table} SET v = 0 WHERE id % 500 = 0; DELETE FROM ${table} WHERE id % 300 = 0`,
    );
  }
});
afterAll(() => engine[Symbol.asyncDispose]());

const PAGES = [
  "(tenant, name, id) > (3, 'n5', 2000) ORDER BY tenant, name, id LIMIT 15",
  "(tenant, name) < (3, 'n5') ORDER BY tenant DESC, name DESC, id DESC LIMIT 15",
  "tenant = 4 AND (name, id) >= ('n77', 100) ORDER BY name, id LIMIT 15",
  "tenant = 4 AND name = 'n7' ORDER BY id DESC LIMIT 15",
  "tenant = 4 AND name = 'n7' AND id < 3000",
  "tenant = 6 AND name LIKE 'n99%' ORDER BY name, id LIMIT 4",
];

function pages(table: string): Promise<readonly (readonly (readonly unknown[])[])[]> {
  return Promise.all(
    PAGES.map((page) => {
      const order = page.includes("ORDER BY") ? page : `${page} ORDER BY id`;
      return engine.rows(`SELECT tenant, name, id, v FROM ${table} WHERE ${order}`);
    }),
  );
}

test("pages equal those of a table without the key, and read few rows", async () => {
  const expected = await pages("plain");
  expect(expected.every(({ length }) => length > 3)).toBe(true);
  for (const step of [
    "SELECT 1",
    "STORAGE FLUSH TABLE keyed",
    "STORAGE COMPACT TABLE keyed",
    "restart",
  ]) {
    if (step === "restart") await engine.restart();
    else await engine.run(step);
    expect(await pages("keyed")).toEqual(expected);
  }
  for (const page of PAGES) {
    const plan = (await engine.rows(`EXPLAIN ANALYZE SELECT v FROM keyed WHERE ${page}`)).join(
      "\n",
    );
    const [, rows] = /Index Scan on default\.keyed.*?; rows: (\d+)/.exec(plan) ?? [];
    expect(rows === undefined ? plan : Number(rows) <= 120).toBe(true);
  }
});

test("the first column of the key joins few rows", async () => {
  const join =
    "SELECT k.id FROM (VALUES (4, 'n7'), (5, 'n8')) w (t, n) JOIN $T k ON k.tenant = w.t AND k.name = w.n ORDER BY 1";
  const found = await engine.rows(join.replace("$T", "keyed"));
  expect(found).toEqual(await engine.rows(join.replace("$T", "plain")));
});

test("the order of the key is not an index in the catalog", async () => {
  const listed = "SELECT index_name FROM system.indexes WHERE table_name = 'keyed'";
  expect(await engine.rows(listed)).toEqual([["keyed_pkey"]]);
  expect((await engine.ask("DROP INDEX keyed_pkey")).error?.code).toBe("OBJECT_NOT_FOUND");
  await engine.run("CREATE INDEX keyed_more ON keyed (tenant, name)");
  expect((await engine.rows(listed)).length).toBe(2);
});
