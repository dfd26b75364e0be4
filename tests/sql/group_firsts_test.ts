/**
 * Goal: DISTINCT ON sorts about as many rows as there are groups, and keeps those that a sort of all
 * would put first. Method: rows sorted as EXPLAIN ANALYZE counts them, and random orders beside the
 * same question asked of a window.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE readings (id INT PRIMARY KEY, device INT, kind TEXT, v DOUBLE);" +
      "INSERT INTO readings SELECT g, nullif(g * 7 % 30, 4), 'k' || g % 4, nullif(g * 37 % 101, 9) / 4.0" +
      " FROM generate_series(1, 40000) g; STORAGE FLUSH TABLE readings",
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
  ])("of %s by %s", async (on, order, groupCount) => {
    const sql = `SELECT DISTINCT ON (${on}) id, device, kind, v FROM readings ORDER BY ${order}`;
    expect(await sortedRows(sql)).toBe(groupCount);
    const numbered = `SELECT *, row_number() OVER (PARTITION BY ${on} ORDER BY ${order}) n FROM readings`;
    expect(await engine.rows(sql)).toEqual(
      await engine.rows(
        `SELECT id, device, kind, v FROM (${numbered}) x WHERE n = 1 ORDER BY ${order}`,
      ),
    );
  });

  test("all rows where nearly each is a group", async () => {
    const sql = "SELECT DISTINCT ON (id / 2) id FROM readings ORDER BY id / 2, id DESC";
    expect(await sortedRows(sql)).toBeGreaterThan(30_000);
    expect(await engine.rows(sql)).toEqual(
      await engine.rows("SELECT max(id) FROM readings GROUP BY id / 2 ORDER BY 1"),
    );
  });

  test("the row that came first where the order leaves it open", async () => {
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
