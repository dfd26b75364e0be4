/**
 * Verifies that DISTINCT ON sorts about as many rows as there are groups, and returns the rows
 * that would come first if all rows were sorted. The tests check the number of sorted rows in
 * EXPLAIN ANALYZE, and compare results under random orders with those of equivalent window
 * queries.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

const ROWS = 10_000;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE readings (id INT PRIMARY KEY, device INT, kind TEXT, v DOUBLE);" +
      "INSERT INTO readings SELECT g, nullif(g * 7 % 30, 4), 'k' || g % 4, nullif(g * 37 % 101, 9) / 4.0" +
      ` FROM generate_series(1, ${ROWS}) g; STORAGE FLUSH TABLE readings`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function sortedRows(sql: string): Promise<number> {
  const rows = await engine.rows(`EXPLAIN ANALYZE ${sql}`);
  const line = rows.map(([text]) => String(text)).find((text) => text.includes("Sort "));
  return Number(/ rows: (\d+); loops/.exec(line ?? "")?.[1]);
}

describe("DISTINCT ON sorts the first row of each group", () => {
  test.each([
    ["device", "device, id DESC", 30],
    ["device", "device DESC NULLS LAST, v NULLS FIRST, id", 30],
    ["device", "device, v DESC NULLS LAST, id", 30],
    ["kind, device", "device, kind DESC, id", 60],
    ["kind", "kind, v, device DESC, id DESC", 4],
    ["v", "v, id", 101],
  ])("DISTINCT ON sorts the first row of each group of %s by %s", async (on, order, groupCount) => {
    const sql = `SELECT DISTINCT ON (${on}) id, device, kind, v FROM readings ORDER BY ${order}`;
    expect(await sortedRows(sql)).toBe(groupCount);
    const numbered = `SELECT *, row_number() OVER (PARTITION BY ${on} ORDER BY ${order}) n FROM readings`;
    expect(await engine.rows(sql)).toEqual(
      await engine.rows(
        `SELECT id, device, kind, v FROM (${numbered}) x WHERE n = 1 ORDER BY ${order}`,
      ),
    );
  });

  test("DISTINCT ON sorts all rows if nearly each row is a group", async () => {
    const sql = "SELECT DISTINCT ON (id / 2) id FROM readings ORDER BY id / 2, id DESC";
    expect(await sortedRows(sql)).toBeGreaterThan(ROWS / 2);
    expect(await engine.rows(sql)).toEqual(
      await engine.rows("SELECT max(id) FROM readings GROUP BY id / 2 ORDER BY 1"),
    );
  });

  test("DISTINCT ON returns the first row to arrive if the order leaves it open", async () => {
    expect(
      await engine.rows("SELECT DISTINCT ON (kind) kind, id FROM readings ORDER BY kind"),
    ).toEqual([
      ["k0", 4],
      ["k1", 1],
      ["k2", 2],
      ["k3", 3],
    ]);
  });
});

describe("row_number() below a bound numbers only the first rows of each partition", () => {
  /** Returns the number of rows to which the innermost window function has assigned a number. */
  async function numberedRows(sql: string): Promise<number> {
    const rows = await engine.rows(`EXPLAIN ANALYZE ${sql}`);
    const line = rows.map(([text]) => String(text)).findLast((text) => text.includes("Window "));
    return Number(/ rows: (\d+); loops/.exec(line ?? "")?.[1]);
  }

  const numbered = (calls: string, partition: string): string =>
    `SELECT *, ${calls} OVER (PARTITION BY ${partition} ORDER BY v DESC NULLS LAST, kind) n FROM readings`;
  const first = (from: string, where: string): string =>
    `SELECT id, n FROM (${from}) x WHERE ${where} ORDER BY id`;

  test.each([
    ["device", "n = 1", 30],
    ["device", "n <= 3", 90],
    ["device", "3 > n AND v > 1", 60],
    ["kind", "id < 5000 AND n = 2", 8],
    ["kind, device", "n BETWEEN 2 AND 5", 300],
    ["kind", "n <= 64", 256],
  ])("row_number() sorts few rows by %s where %s", async (partition, where, count) => {
    const sql = first(numbered("row_number()", partition), where);
    expect(await numberedRows(sql)).toBe(count);
    // The planner does not know a bound that is computed from a row.
    const plain = first(numbered("row_number()", partition), where.replace("n", "n + 0"));
    expect(await numberedRows(plain)).toBe(ROWS);
    expect(await engine.rows(sql)).toEqual(await engine.rows(plain));
  });

  test("row_number() sorts few rows if all rows are one partition", async () => {
    const from = "SELECT id, row_number() OVER (ORDER BY v DESC NULLS LAST, id) n FROM readings";
    expect(await numberedRows(first(from, "n <= 5"))).toBe(5);
    expect(await engine.rows(first(from, "n <= 5"))).toEqual(
      await engine.rows(first(from, "n + 0 <= 5")),
    );
  });

  test("row_number() sorts few rows in a further block, and next to a rank", async () => {
    const inner = `SELECT id AS i, n AS m FROM (${numbered("row_number()", "device")}) x WHERE id > 3`;
    expect(await numberedRows(`SELECT * FROM (${inner}) y WHERE m <= 2`)).toBe(60);
    const ranked = numbered("rank() OVER w AS r, row_number()", "kind").replace(
      " FROM readings",
      " FROM readings WINDOW w AS (PARTITION BY kind ORDER BY v DESC NULLS LAST, kind)",
    );
    const sql = `SELECT id, r, n FROM (${ranked}) x WHERE n <= 5 ORDER BY kind, n`;
    expect(await numberedRows(sql)).toBe(20);
    expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace("n <= 5", "n + 0 <= 5")));
  });

  test.each([
    ["beyond so many", numbered("row_number()", "kind"), "n <= 65"],
    ["at none", numbered("row_number()", "kind"), "n < 1"],
    ["of a rank, which may be shared", numbered("rank()", "kind"), "n = 1"],
    ["from below", numbered("row_number()", "kind"), "n >= 39"],
    [
      "to a computed number",
      `SELECT id, n + 1 AS n FROM (${numbered("row_number()", "kind")}) z`,
      "n = 2",
    ],
  ])("all rows with a bound %s", async (_, from, where) => {
    expect(await numberedRows(first(from, where))).toBe(ROWS);
  });

  test("row_number() sorts all rows if another call reads the following rows", async () => {
    const from = numbered("count(*) OVER (PARTITION BY kind) AS c, row_number()", "kind");
    const rows = await engine.rows(`SELECT DISTINCT c FROM (${from}) x WHERE n = 1`);
    expect(rows).toEqual([[ROWS / 4]]);
    const lead = numbered("lead(id) OVER w AS f, row_number()", "kind").replace(
      " FROM readings",
      " FROM readings WINDOW w AS (PARTITION BY kind ORDER BY v DESC NULLS LAST, kind)",
    );
    const sql = `SELECT f FROM (${lead}) x WHERE n = 1`;
    expect(await numberedRows(sql)).toBe(ROWS);
  });
});
