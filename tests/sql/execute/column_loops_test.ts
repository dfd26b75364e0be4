/**
 * Verifies that a loop over an entire column computes the same values as row-by-row evaluation.
 * The tests run the same queries on a stored table, whose text arrives as undecoded bytes, and on
 * the same rows in a subquery, whose text arrives as strings. They also compare a top-n query with
 * a sort of all rows.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.rows("CREATE NAMESPACE n");
  await engine.rows(
    "CREATE SHARED TABLE n.t (id BIGINT PRIMARY KEY, s TEXT, at TIMESTAMP, d DOUBLE, k INT)",
  );
  await engine.rows(
    `INSERT INTO n.t SELECT g,
       CASE WHEN g % 50 = 0 THEN NULL WHEN g % 7 = 0 THEN 'Äpfel 😀 ' || g WHEN g % 11 = 0 THEN ''
         ELSE 'Row ' || (g * 7919) % 30011 END,
       TIMESTAMP '1969-12-25 00:00:00' + g * INTERVAL '37 minutes 3 seconds',
       CASE WHEN g % 13 = 0 THEN NULL ELSE (g * 31) % 1009 / 8.0 END, (g * 17) % 901
     FROM generate_series(1, 30000) AS s(g)`,
  );
  await engine.rows("STORAGE FLUSH TABLE n.t");
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

/** These values are decoded strings, because they come from a function that has no column loop. */
const STRINGS = "(SELECT id, reverse(reverse(s)) AS s, at, d, k FROM n.t) t";

describe("loops over whole columns return the same as loops over rows", () => {
  const EXPRESSIONS = [
    "length(s)",
    "upper(s)",
    "lower(s)",
    "substr(s, 2, 3)",
    "substr(s, -1, 4)",
    "substr(s, 6)",
    "substr(s, 3, 0)",
    "upper(substr(s, 1, 2))",
    "s = ''",
    "s <> 'Row 7919'",
    "s || '!'",
    "position('o' in s)",
    "CASE WHEN k < 100 THEN 'few' WHEN k < 500 THEN 'some' END",
    "CASE WHEN k < 100 THEN 'few' ELSE s END",
    "CASE WHEN k < 1000 THEN 'all' ELSE 'none' END",
  ];

  test.each(shareOf(EXPRESSIONS, { oneOf: 8 }))("%s", async (expression) => {
    const ask = (from: string): Promise<unknown> =>
      engine.rows(
        `SELECT ${expression} AS x, count(*), min(id) FROM ${from} GROUP BY 1 ORDER BY 3`,
      );
    const answer = await ask("n.t");
    expect(answer).toEqual(await ask(STRINGS));
  });

  test.each(["upper(s)", "lower(s)"])("%s of texts of ASCII", async (expression) => {
    const ask = (from: string): Promise<unknown> =>
      engine.rows(`SELECT id, ${expression} FROM ${from} WHERE s LIKE 'Row%' ORDER BY id`);
    expect(await ask("n.t")).toEqual(await ask(STRINGS));
  });

  // k ranges from 0 to 884, so 2147482763 is the largest number that can be added to every k.
  test.each([
    ["k + 2147482763", [2147482763, 2147483647]],
    ["2147482763 + k", [2147482763, 2147483647]],
    ["k - 2147483647", [-2147483647, -2147482763]],
    ["-2147483647 - 1 + k", [-2147483648, -2147482764]],
    ["k * -2429280", [-2147483520, 0]],
    ["k * k", [0, 781456]],
    ["CAST(k AS SMALLINT) + CAST(31883 AS SMALLINT)", [31883, 32767]],
  ])("%s is exact to the bounds of its type", async (expression, bounds) => {
    const [row] = await engine.rows(`SELECT min(${expression}), max(${expression}) FROM n.t`);
    expect(row).toEqual(bounds);
  });

  const OUTSIDE = [
    "k + 2147482764",
    "2147482764 + k",
    "-2147482765 - k",
    "k * 2429281",
    "CAST(k AS SMALLINT) + CAST(31884 AS SMALLINT)",
  ];

  test.each(shareOf(OUTSIDE, { oneOf: 2 }))(
    "%s leaves the range of its type",
    async (expression) => {
      expect(await engine.failure(`SELECT sum(${expression}) FROM n.t`)).toContain(
        "VALUE_OUT_OF_RANGE",
      );
      const [row] = await engine.rows(`SELECT sum(${expression}) FROM n.t WHERE k < 884`);
      expect(row).toHaveLength(1);
    },
  );

  test("a loop reports a negative number of characters for its row", async () => {
    expect(await engine.failure("SELECT substr(s, 1, -1) FROM n.t")).toBe("VALUE_OUT_OF_RANGE@1");
    expect(await engine.rows("SELECT substr(s, 1, -1) FROM n.t WHERE s IS NULL LIMIT 1")).toEqual([
      [null],
    ]);
  });

  test("a loop extracts hours and minutes, even before 1970", async () => {
    const [row] = await engine.rows(
      `SELECT count(*) FROM n.t WHERE extract(hour FROM at) <> to_char(at, 'HH24')::INT
         OR extract(minute FROM at) <> to_char(at, 'MI')::INT`,
    );
    expect(row).toEqual([0]);
  });

  test.each(shareOf(["=", "<>", "<", "<=", ">", ">="], { oneOf: 2 }))(
    "a loop selects the rows where k %s 450",
    async (operator) => {
      const chosen = await engine.rows(`SELECT count(*), sum(id) FROM n.t WHERE k ${operator} 450`);
      const told = await engine.rows(
        `SELECT sum(CASE WHEN x THEN 1 ELSE 0 END), sum(CASE WHEN x THEN id ELSE 0 END)
       FROM (SELECT id, k ${operator} 450 AS x FROM n.t) q`,
      );
      expect(chosen.map((row) => row.map(Number))).toEqual(told.map((row) => row.map(Number)));
    },
  );

  test("a loop sums selected rows of columns that were widened since they were stored", async () => {
    await engine.rows(
      "CREATE SHARED TABLE n.w (id INT PRIMARY KEY, a INT, b DECIMAL(9, 1), d DOUBLE)",
    );
    await engine.rows(
      `INSERT INTO n.w SELECT g, CASE WHEN g % 3 = 0 THEN NULL ELSE g % 200 END, g % 50,
         CASE WHEN g % 7 = 0 THEN NULL ELSE g / 4.0 END FROM generate_series(1, 5000) AS s(g)`,
    );
    await engine.rows("STORAGE FLUSH TABLE n.w");
    const ask = (from: string): Promise<unknown> =>
      engine.rows(`SELECT count(a), avg(a), sum(b), count(d), sum(d), max(id) FROM ${from}`);
    const [chosen, all] = ["n.w WHERE a < 20", "(SELECT * FROM n.w WHERE a < 20 ORDER BY d) q"];
    const before = await ask(chosen);
    expect(before).toEqual(await ask(all));
    await engine.rows("ALTER TABLE n.w ALTER COLUMN a TYPE BIGINT");
    expect(await ask(chosen)).toEqual(before);
    expect(await ask(chosen)).toEqual(await ask(all));
  });

  test("a loop sums selected rows, some of them beyond 2^53", async () => {
    await engine.rows("CREATE SHARED TABLE n.big (id INT PRIMARY KEY, a BIGINT)");
    await engine.rows(
      `INSERT INTO n.big SELECT g, CASE WHEN g % 5 = 0 THEN NULL ELSE 9007199254740993 + g END
         FROM generate_series(1, 1000) AS s(g)`,
    );
    const asked = "SELECT count(a), max(a), sum(a) FROM n.big WHERE id % 10 < 3";
    const before = await engine.rows(asked);
    await engine.rows("STORAGE FLUSH TABLE n.big");
    expect(await engine.rows(asked)).toEqual(before);
  });

  test("a sum of doubles is NULL only if no row has a value", async () => {
    const rows = await engine.rows(
      `SELECT k % 3 AS g, sum(d) FILTER (WHERE k % 3 = 1) IS NULL, sum(d) IS NULL,
         sum(CASE WHEN d IS NULL THEN d END) IS NULL FROM n.t GROUP BY 1 ORDER BY 1`,
    );
    expect(rows).toEqual([
      [0, true, false, true],
      [1, false, false, true],
      [2, true, false, true],
    ]);
  });
});

describe("sorts keep only the first rows if no others are needed", () => {
  test.each([
    "k, id",
    "k DESC, s DESC, id",
    "s, id",
    "s DESC NULLS FIRST, id",
    "s NULLS LAST, d DESC, id",
    "d DESC NULLS LAST, id DESC",
    "upper(s), k, id",
    "at DESC",
  ])("ORDER BY %s", async (order) => {
    const all = await engine.rows(`SELECT id, s, k FROM n.t ORDER BY ${order}`);
    for (const [limit, offset] of [
      [10, 0],
      [7, 100],
      [0, 5],
    ]) {
      const some = await engine.rows(
        `SELECT id, s, k FROM n.t ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}`,
      );
      expect(some).toEqual(all.slice(Number(offset), Number(offset) + Number(limit)));
    }
  });
});
