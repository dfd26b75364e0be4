/**
 * Verifies that a query for the first rows in the order of a column reads them in that order, and
 * returns the same rows as a sort of all rows. The tests check the number of rows read in EXPLAIN
 * ANALYZE, and compare queries with equivalent ones on an expression that hides the column.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

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

/** Returns the number of rows that a query reads if the same order has been requested before. */
async function readOf(sql: string): Promise<number> {
  await engine.run(sql);
  await engine.run(sql);
  const [entry] = await engine.run(`EXPLAIN ANALYZE ${sql}`);
  const lines = (entry?.rows ?? []).map(([line]) => String(line));
  const scan = lines.find((line) => /(?:Table|Index) Scan on /.test(line)) ?? "";
  return Number(/ rows: (\d+); loops/.exec(scan)?.[1]);
}

describe("the first rows in the order of a column are read without a sort", () => {
  test.each([
    ["the key", 22, "FROM posts ORDER BY id LIMIT 20"],
    ["the key, from behind", 22, "FROM posts ORDER BY id DESC LIMIT 20"],
    ["a key above a bound", 20, "FROM posts WHERE id > 9000 ORDER BY id LIMIT 15"],
    ["a key below a bound", 20, "FROM posts WHERE id < 9000 ORDER BY id DESC LIMIT 15"],
    ["a key between bounds", 20, "FROM posts WHERE id BETWEEN 50 AND 60 ORDER BY id LIMIT 15"],
    ["a number and the key", 60, "FROM posts ORDER BY score DESC, id LIMIT 9"],
    ["a text", 20, "FROM posts ORDER BY slug, id LIMIT 12"],

    ["the key, with a condition", 400, "FROM posts WHERE score > 7 ORDER BY id LIMIT 14"],
    ["rows behind others", 40, "FROM posts ORDER BY id LIMIT 20 OFFSET 9000"],
    ["rows behind others, from behind", 40, "FROM posts ORDER BY id DESC LIMIT 5 OFFSET 17"],
    ["a row", 60, "FROM posts WHERE (id, score) > (9000, 3) ORDER BY id, score LIMIT 10"],
    [
      "a row, from behind",
      60,
      "FROM posts WHERE (id, score) <= (9000, 3) ORDER BY id DESC LIMIT 9",
    ],
    ["a row of texts", 60, "FROM posts WHERE (slug, id) > ('p5', 3) ORDER BY slug, id LIMIT 10"],
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

  test("first rows are read in any order if few rows pass the conditions, or some are NULL", async () => {
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

  test("first rows after the last one are none", async () => {
    const sql = "SELECT id FROM posts ORDER BY id LIMIT 20 OFFSET $1";
    for (const offset of [0, 19_700, 19_720, 30_000]) {
      await engine.rows(sql, { params: [offset] });
      expect(await engine.rows(sql, { params: [offset] })).toEqual(
        await engine.rows(sql.replace("BY id", "BY 0 + id"), { params: [offset] }),
      );
    }
  });

  test("first rows are none for a bound that is NULL, or LIMIT 0", async () => {
    const sql = "SELECT id FROM posts WHERE id > $1 ORDER BY id LIMIT $2";
    for (const params of [
      [null, 3],
      [5, 0],
    ]) {
      await engine.rows(sql, { params: [5, 3] });
      expect(await engine.rows(sql, { params })).toEqual([]);
    }
  });

  test("first rows include the changes of a transaction", async () => {
    const first = "SELECT id FROM posts ORDER BY id LIMIT 3";
    await readOf(first);
    const { results } = await engine.ask(
      `BEGIN; INSERT INTO posts VALUES (-5, 'new', 1, '2026-01-01', 1); DELETE FROM posts WHERE id = 1; ${first}; ROLLBACK`,
    );
    expect(results.at(-2)?.rows).toEqual([[-5], [2], [3]]);
  });
});

describe("rows between two values of the first column of a key are read by the key", () => {
  beforeAll(async () => {
    await engine.run(
      "CREATE TABLE words (w TEXT PRIMARY KEY, v INT);" +
        "CREATE TABLE lines (room BIGINT, line BIGINT, v INT, PRIMARY KEY (room, line));" +
        "CREATE TABLE rooms (id BIGINT PRIMARY KEY);" +
        "INSERT INTO words SELECT md5(g::text), g FROM generate_series(1, 20000) g;" +
        "INSERT INTO words VALUES ('abc', 1), ('abcé', 2), ('ab%', 3), ('abd', 4), ('ab\u{10ffff}x', 5), ('ab\\c', 6);" +
        "INSERT INTO lines SELECT g * 37 % 500, g, g % 9 FROM generate_series(1, 20000) g;" +
        "INSERT INTO rooms SELECT g * 10 FROM generate_series(1, 9) g;" +
        "STORAGE FLUSH TABLE words; STORAGE FLUSH TABLE lines;" +
        "DELETE FROM words WHERE v % 50 = 0; UPDATE lines SET v = 100 WHERE line % 60 = 0;" +
        "INSERT INTO words VALUES ('abcd', 7); INSERT INTO lines VALUES (70, 0, 5)",
    );
  });

  test.each([
    ["words", 200, "w LIKE '7f3%'"],
    ["words", 200, "w LIKE 'abc'"],
    ["words", 200, "w LIKE 'ab\\\\c'"],
    ["words", 200, "w LIKE '\\\\7f%'"],
    ["words", 200, "w LIKE '7f' || 3 || '%'"],
    ["words", 200, "starts_with(w, '7f3')"],
    ["words", 200, "w ^@ '7f3'"],
    ["words", 300, "w LIKE 'ab_%'"],
    ["words", 300, "w LIKE 'ab%' AND v < 100"],
    ["words", 200, "w LIKE 'ab\u{10ffff}%'"],
    ["words", 900, "w BETWEEN '30' AND '31' AND v > 5"],
    ["words", 200, "w > 'ffa'"],
    ["lines", 500, "room = 70"],
    ["lines", 600, "room > 40 AND room <= 44 AND v < 7"],
  ])("are found by their order in %s, at most %i for %s", async (table, rowsMax, condition) => {
    const sql = `SELECT * FROM ${table} WHERE ${condition} ORDER BY 1, 2`;
    expect((await engine.rows(`EXPLAIN ${sql}`)).join("\n")).toMatch(
      /access: key_range; ranges: |access: index; index: lines_pkey/,
    );
    expect(await readOf(sql)).toBeLessThanOrEqual(rowsMax);
    const hidden = condition
      .replaceAll(/\bw\b/g, "(w || '')")
      .replaceAll(/\broom\b/g, "(0 + room)");
    expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace(condition, hidden)));
  });

  test.each(shareOf(["w LIKE '%f3'", "w NOT LIKE '7f3%'", "w LIKE NULL", "w > '3'"], { oneOf: 2 }))(
    "all rows are scanned for %s",
    async (condition) => {
      const sql = `SELECT * FROM words WHERE ${condition} ORDER BY 1`;
      expect(await readOf(sql)).toBeGreaterThan(19_000);
      const hidden = condition.replace("w ", "(w || '') ");
      expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace(condition, hidden)));
    },
  );

  test("rows in a key range arrive in the order in which they were written, if the query orders them by it", async () => {
    const sql = "SELECT line FROM lines WHERE room = 70 ORDER BY _seq";
    await readOf(sql);
    expect(await engine.rows(sql)).toEqual(
      await engine.rows("SELECT line FROM lines WHERE 0 + room = 70 ORDER BY _seq"),
    );
  });

  test("rows in a key range are found for each row of a lateral query, and for the keys of a join", async () => {
    const lateral =
      "SELECT id, line FROM rooms, LATERAL (SELECT line FROM lines WHERE room = id ORDER BY line DESC LIMIT 1) l ORDER BY id";
    await engine.run(lateral);
    const [entry] = await engine.run(`EXPLAIN ANALYZE ${lateral}`);
    const text = (entry?.rows ?? []).join("\n");
    expect(
      Number(/(?:Table|Index) Scan on default.lines .* rows: (\d+);/.exec(text)?.[1]),
    ).toBeLessThan(4000);
    expect(await engine.rows(lateral)).toEqual(
      await engine.rows(
        "SELECT room, max(line) FROM lines JOIN rooms ON 0 + room = id GROUP BY 1 ORDER BY 1",
      ),
    );
    const join = "SELECT room, line FROM rooms JOIN lines ON room = id WHERE id > 60 ORDER BY 1, 2";
    await engine.run(join);
    const [joined] = await engine.run(`EXPLAIN ANALYZE ${join}`);
    const joinText = (joined?.rows ?? []).join("\n");
    expect(Number(/Table Scan on default.lines .* rows: (\d+);/.exec(joinText)?.[1])).toBeLessThan(
      1000,
    );
    expect(await engine.rows(join)).toEqual(
      await engine.rows(join.replace("ON room = id", "ON 0 + room = id")),
    );
  });
});

describe("rows are read in the order of _seq", () => {
  async function sorts(sql: string): Promise<boolean> {
    const [entry] = await engine.run(`EXPLAIN ${sql}`);
    return (entry?.rows ?? []).some(([line]) => String(line).trimStart().startsWith("Sort"));
  }

  test.each([
    ["all of them", false, "FROM posts ORDER BY _seq"],
    ["the first ones", false, "FROM posts ORDER BY _seq LIMIT 30 OFFSET 7"],
    ["those that pass a condition", false, "FROM posts WHERE score % 7 = 3 ORDER BY _seq LIMIT 50"],
    ["those above a position", false, "FROM posts WHERE _seq > 7 AND id > 40 ORDER BY _seq"],
    [
      "those within a range of the key",
      false,
      "FROM posts WHERE id BETWEEN 7 AND 90 ORDER BY _seq",
    ],
    ["those of a query within", false, "FROM (SELECT *, _seq FROM posts) AS posts ORDER BY _seq"],
    ["rows of the caller", false, "FROM mine WHERE v < 5 ORDER BY _seq LIMIT 80"],
    ["deleted ones, too", false, "FROM posts WHERE _deleted IS NOT NULL ORDER BY _seq"],
    ["NULL first", true, "FROM posts ORDER BY _seq NULLS FIRST"],
    ["from behind", true, "FROM posts ORDER BY _seq DESC LIMIT 30"],
    ["rows of a list of keys", true, "FROM posts WHERE id IN (90, 7, 400, 31) ORDER BY _seq"],
    ["pairs", true, "FROM posts JOIN mine USING (id) ORDER BY posts._seq"],
    ["a further key", true, "FROM posts ORDER BY _seq, id"],
    [
      "an alias that hides it",
      true,
      "FROM (SELECT id, -score AS _seq FROM posts) AS p ORDER BY _seq",
    ],
  ])("%s", async (_, isSorted, from) => {
    const sql = `SELECT id ${from}`;
    expect(await sorts(sql)).toBe(isSorted);
    expect(await engine.rows(sql)).toEqual(
      await engine.rows(sql.replace(/ORDER BY (\S+)/, "ORDER BY 0 + $1")),
    );
  });

  test("rows that a transaction has staged come last", async () => {
    const sql = "SELECT id FROM mine WHERE id > 8990 OR id < 3 ORDER BY _seq";
    expect(await sorts(sql)).toBe(false);
    const entries = await engine.run(
      "BEGIN; UPDATE mine SET v = v + 1 WHERE id = 1; INSERT INTO mine VALUES (0, 0);" +
        `DELETE FROM mine WHERE id = 9000; ${sql}; ROLLBACK`,
    );
    const ids = entries.at(-2)?.rows?.map(([id]) => id) ?? [];
    expect(ids.slice(0, -2)).toEqual([2, 8991, 8992, 8993, 8994, 8995, 8996, 8997, 8998, 8999]);
    expect(new Set(ids.slice(-2))).toEqual(new Set([0, 1]));
  });
});
