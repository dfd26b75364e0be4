/**
 * Goal: the first rows in the order of a column are read in that order, and are those of a sort of all
 * rows. Method: rows read as EXPLAIN ANALYZE counts them, and queries beside the same ones over an
 * expression that hides the column.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE posts (id BIGINT PRIMARY KEY, slug TEXT, score INT, day DATE, note INT);" +
      "CREATE USER TABLE mine (id BIGINT PRIMARY KEY, v INT);" +
      "INSERT INTO posts SELECT g::bigint * 7919 % 20011, 'p' || g * 31 % 9973, g % 50," +
      " DATE '2026-01-01' + g % 40, nullif(g % 9, 0) FROM generate_series(1, 20000) g;" +
      "STORAGE FLUSH TABLE posts;" +
      "UPDATE posts SET score = score + 100 WHERE id % 90 = 0; DELETE FROM posts WHERE id % 70 = 0;" +
      "INSERT INTO mine SELECT g, g % 7 FROM generate_series(1, 9000) g; STORAGE FLUSH TABLE mine",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** How many rows were read, once the order was asked for before. */
async function readOf(sql: string): Promise<number> {
  await engine.run(sql);
  await engine.run(sql);
  const [entry] = await engine.run(`EXPLAIN ANALYZE ${sql}`);
  const lines = (entry?.rows ?? []).map(([line]) => String(line));
  const scan = lines.find((line) => line.includes("Table Scan on ")) ?? "";
  return Number(/ rows: (\d+); loops/.exec(scan)?.[1]);
}

describe("the first rows in the order of a column", () => {
  test.each([
    ["the key", 22, "FROM posts ORDER BY id LIMIT 20"],
    ["the key, from behind", 22, "FROM posts ORDER BY id DESC LIMIT 20"],
    ["a key above a bound", 20, "FROM posts WHERE id > 9000 ORDER BY id LIMIT 15"],
    ["a key below a bound", 20, "FROM posts WHERE id < 9000 ORDER BY id DESC LIMIT 15"],
    ["a key between bounds", 20, "FROM posts WHERE id BETWEEN 50 AND 60 ORDER BY id LIMIT 15"],
    ["a number and the key", 600, "FROM posts ORDER BY score DESC, id LIMIT 9"],
    ["a text", 20, "FROM posts ORDER BY slug, id LIMIT 12"],
    ["a day", 1000, "FROM posts ORDER BY day DESC, id DESC OFFSET 3 LIMIT 9"],
    ["the key, with a condition", 400, "FROM posts WHERE score = 7 ORDER BY id LIMIT 4"],
    ["rows of the caller", 40, "FROM mine WHERE v < 5 ORDER BY id DESC LIMIT 8"],
  ])("are read in the order of %s", async (_, rowsMax, from) => {
    const columns = from.includes("mine") ? "id, v" : "id, slug, score, note";
    const sql = `SELECT ${columns} ${from}`;
    expect(await readOf(sql)).toBeLessThanOrEqual(rowsMax);
    const hidden = sql
      .replace("ORDER BY id", "ORDER BY 0 + id")
      .replace("ORDER BY score", "ORDER BY 0 + score");
    const plain = hidden
      .replace("ORDER BY slug", "ORDER BY slug || ''")
      .replace("ORDER BY day", "ORDER BY day + 0");
    expect(await engine.rows(sql)).toEqual(await engine.rows(plain));
  });

  test("are read in any order where few rows pass the conditions, or some are NULL", async () => {
    const rare = "SELECT id FROM posts WHERE 0 + score = 149 ORDER BY id LIMIT 300";
    expect(await readOf(rare)).toBeGreaterThan(19_000);
    expect(await engine.rows(rare)).toEqual(
      await engine.rows(rare.replace("ORDER BY id", "ORDER BY 0 + id")),
    );
    const nullable = "SELECT id FROM posts ORDER BY note, id LIMIT 5";
    expect(await readOf(nullable)).toBeGreaterThan(19_000);
    expect(await engine.rows(nullable)).toEqual(
      await engine.rows(nullable.replace("ORDER BY note", "ORDER BY 0 + note")),
    );
  });

  test("are none for a bound that is NULL, or LIMIT 0", async () => {
    const sql = "SELECT id FROM posts WHERE id > $1 ORDER BY id LIMIT $2";
    for (const params of [
      [null, 3],
      [5, 0],
    ]) {
      await engine.rows(sql, { params: [5, 3] });
      expect(await engine.rows(sql, { params })).toEqual([]);
    }
  });

  test("are those of a transaction that has changed some", async () => {
    const first = "SELECT id FROM posts ORDER BY id LIMIT 3";
    await readOf(first);
    const { results } = await engine.ask(
      `BEGIN; INSERT INTO posts VALUES (-5, 'new', 1, '2026-01-01', 1); DELETE FROM posts WHERE id = 1; ${first}; ROLLBACK`,
    );
    expect(results.at(-2)?.rows).toEqual([[-5], [2], [3]]);
  });
});
