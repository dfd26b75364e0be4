/**
 * Verifies that a recursive query returns the values that its steps compute. Numbers are not
 * rounded to the digits of the first row, and strings are not truncated. The expected numbers were
 * compared with PostgreSQL 15.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
});
afterAll(() => engine[Symbol.asyncDispose]());

/**
 * Returns the values of column x, or of the expression `shown`, ordered by n and without trailing
 * zeros.
 */
async function values(first: string, next: string, shown = "x"): Promise<unknown[]> {
  const rows = await engine.rows(
    `WITH RECURSIVE r(n, x) AS (SELECT 1, ${first} UNION ALL SELECT n + 1, ${next}) ` +
      `SELECT ${shown} FROM r ORDER BY n`,
  );
  return rows.map(([value]) => {
    return typeof value === "string" && /^-?\d+\.\d+$/.test(value)
      ? value.replace(/\.?0+$/, "")
      : value;
  });
}

describe("a recursive query has column types that fit all its rows", () => {
  test.each([
    ["1.0", "x * 1.5 FROM r WHERE n < 4", ["1", "1.5", "2.25", "3.375"]],
    ["1.0", "x + 0.25 FROM r WHERE n < 4", ["1", "1.25", "1.5", "1.75"]],
    ["1.0", "x * 10 FROM r WHERE n < 5", ["1", "10", "100", "1000", "10000"]],
    ["1.0", "-x * 0.001 FROM r WHERE n < 4", ["1", "-0.001", "0.000001", "-0.000000001"]],
    ["1::numeric(10,2)", "x * 1.5 FROM r WHERE n < 4", ["1", "1.5", "2.25", "3.375"]],
    ["1::numeric", "x * 0.01 FROM r WHERE n < 7 AND n > 0", expectedPowers(7)],
    ["0.4", "x * 3.5 * (1 - x) FROM r WHERE n < 3", ["0.4", "0.84", "0.4704"]],
    ["99.9", "x * 2 FROM r WHERE n < 3", ["99.9", "199.8", "399.6"]],
    ["1.5", "2 FROM r WHERE n < 2", ["1.5", "2"]],
    [
      "12345678901234567890.0",
      "x * 2 FROM r WHERE n < 2",
      ["12345678901234567890", "24691357802469135780"],
    ],
    ["'a'::varchar(2)", "x || 'b' FROM r WHERE n < 4", ["a", "ab", "abb", "abbb"]],
    ["'a'::char(1)", "'bc'::varchar(5) FROM r WHERE n < 2", ["a", "bc"]],
  ])("from %s by %s gives %p", async (first, next, wanted) => {
    expect(await values(first, next)).toEqual(wanted);
  });

  test("keeps all fraction digits of quotients", async () => {
    expect(await values("1.0", "x / 3 FROM r WHERE n < 4", "round(x, 12)")).toEqual([
      "1",
      "0.333333333333",
      "0.111111111111",
      "0.037037037037",
    ]);
    const newton = await values("1.5", "(x + 2 / x) / 2 FROM r WHERE n < 6", "round(x, 12)");
    expect(newton.at(-1)).toBe("1.414213562373");
  });

  test("keeps the digits that its columns pass to each other", async () => {
    const rows = await engine.rows(
      "WITH RECURSIVE r(n, a, b, c) AS (SELECT 1, 1.0, 1.0, 1.0 UNION ALL " +
        "SELECT n + 1, b, c, a * 1.5 FROM r WHERE n < 8) SELECT a::float8 FROM r ORDER BY n",
    );
    expect(rows.flat()).toEqual([1, 1, 1, 1.5, 1.5, 1.5, 2.25, 2.25]);
  });

  test("leaves space for the product of two columns", async () => {
    const rows = await engine.rows(
      "WITH RECURSIVE r(n, x, y) AS (SELECT 1, 10.0, 1.0 UNION SELECT n + 1, x * 1.1, y * x FROM r " +
        "WHERE n < 4) SELECT x::float8, y::float8 FROM r ORDER BY n",
    );
    expect(rows).toEqual([
      [10, 1],
      [11, 10],
      [12.1, 110],
      [13.31, 1331],
    ]);
    const inArray = await engine.rows(
      "WITH RECURSIVE r(n, x, y) AS (SELECT 1, ARRAY[10.0], 1.0 UNION ALL SELECT n + 1, " +
        "ARRAY[x[1] * 1.1], y * x[1] FROM r WHERE n < 4) SELECT y::float8 FROM r ORDER BY n",
    );
    expect(inArray.flat()).toEqual([1, 10, 110, 1331]);
  });

  test("keeps the digits of timestamps and of array elements", async () => {
    expect(
      await values(
        "timestamp(0) '2020-01-01'",
        "x + interval '0.5 second' FROM r WHERE n < 2",
        "x::text",
      ),
    ).toEqual(["2020-01-01 00:00:00", "2020-01-01 00:00:00.5"]);
    expect(await values("ARRAY[1.0]", "x || (n * 1.25) FROM r WHERE n < 2", "x[2]")).toEqual([
      null,
      "1.25",
    ]);
  });

  test.each([
    "x || x[n] * 1.5",
    "array_append(x, x[n] * 1.5)",
    "x || ARRAY[x[n] * 1.5]",
    "CASE WHEN n > 0 THEN coalesce(x || x[n] * 1.5, x) END",
    "ARRAY[1.0, 1.5, 2.25, 3.375][1:n] || x[n] * 1.5",
    "(SELECT array_agg(y) FROM unnest(x || x[n] * 1.5) y)",
  ])("widens the elements of the array %s", async (next) => {
    for (const first of ["ARRAY[1.0]", "ARRAY[1::numeric]"]) {
      const found = await values(first, `${next} FROM r WHERE n < 5`, "x[n]");
      expect(found).toEqual(["1", "1.5", "2.25", "3.375", "5.0625"]);
    }
  });

  test("a recursive query keeps more digits than a DECIMAL has, in arrays too", async () => {
    for (const [first, next, shown] of [
      ["1.0", "x * 1.5", "x"],
      ["ARRAY[1.0]", "ARRAY[x[1] * 1.5]", "x[1]"],
    ]) {
      const rows = await engine.rows(
        `WITH RECURSIVE r(n, x) AS (SELECT 1, ${first} UNION ALL SELECT n + 1, ${next} FROM r WHERE n < 60)
          SELECT scale(${shown}), round(${shown}, 3) FROM r WHERE n = 60`,
      );
      expect(rows).toEqual([[60, "24512312477.955"]]);
    }
  });

  test("a recursive query is as exact without ALL, inside another query, and after its own WITH", async () => {
    const step = "SELECT n + 1, x * 1.5 FROM";
    for (const query of [
      `SELECT 1, 1.0 UNION ${step} r WHERE n < 4`,
      `VALUES (1, 1.0) UNION ALL SELECT DISTINCT n + 1, x * 1.5 FROM r WHERE n < 4`,
      `WITH s AS (SELECT 1 a, 1.0 b) SELECT a, b FROM s UNION ALL (WITH q AS (SELECT * FROM r) ${step} q WHERE n < 4)`,
      `SELECT 1, 1.0 UNION ALL (WITH RECURSIVE s(m, y) AS (SELECT n, x FROM r WHERE n < 4 ` +
        `UNION SELECT m + 1, y * 1.5 FROM s WHERE m < 4) SELECT m, y FROM s WHERE m > 1 AND m < 5 AND y > 3.3)`,
    ]) {
      const rows = await engine.rows(
        `WITH RECURSIVE r(n, x) AS (${query}) SELECT max(x)::float8 FROM r`,
      );
      expect(rows, query).toEqual([[3.375]]);
    }
  });

  test.each([
    ["1", "x * 1.5 FROM r WHERE n < 4", "integer", "numeric"],
    ["1", "x::bigint FROM r WHERE n < 4", "integer", "bigint"],
    ["1", "x + 0.5::float8 FROM r WHERE n < 4", "integer", "double precision"],
    ["1.0", "x * 1.1::float8 FROM r WHERE n < 4", "numeric", "double precision"],
    ["ARRAY[1]", "x || 2.5 FROM r WHERE n < 4", "integer[]", "numeric[]"],
    [
      "date '2020-01-01'",
      "x + interval '1 day' FROM r WHERE n < 4",
      "date",
      "timestamp without time zone",
    ],
  ])("from %s by %s is refused, as PostgreSQL refuses it", async (first, next, one, other) => {
    const { error } = await engine.ask(
      `WITH RECURSIVE r(n, x) AS (SELECT 1, ${first} UNION ALL SELECT n + 1, ${next}) SELECT * FROM r`,
    );
    expect(error?.code).toBe("TYPE_MISMATCH");
    expect(error?.message).toBe(
      `Cannot run recursive query "r": the type of column "x" is ${one} in its first part, ` +
        `but ${other} in its recursive part`,
    );
    expect(error?.hint).toContain(`in the first part, cast the column to ${other}`);
  });

  test("nested twenty deep is bound a bounded number of times", async () => {
    let query = "SELECT 1.0 AS x";
    for (let depth = 0; depth < 20; depth += 1) {
      query =
        `WITH RECURSIVE r${depth}(x) AS (SELECT 1.0 UNION ALL ` +
        `SELECT a.x * 1.5 FROM r${depth} a, (${query}) b WHERE a.x < 2) SELECT x FROM r${depth}`;
    }
    expect(await engine.failure(query)).toStartWith("LIMIT_EXCEEDED");
  });
});

function expectedPowers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => (i === 0 ? "1" : `0.${"0".repeat(2 * i - 1)}1`));
}
