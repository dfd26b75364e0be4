/**
 * Verifies that a number that looks like milliseconds or seconds, as from `Date.now()`, is stored
 * in a timestamp column as microseconds, and that a notice in the response shows the stored
 * timestamp. If a date or time type does not accept such a number, the error shows the form to
 * send instead.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

const MILLISECONDS = 1_795_900_848_777;
const STORED = "1970-01-21 18:51:40.848777";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP, tz TIMESTAMPTZ, n BIGINT, d DATE, clock TIME); INSERT INTO t VALUES (1)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function noticesOf(sql: string, params?: readonly number[]): Promise<readonly string[]> {
  const { error, results } = await engine.ask(sql, params === undefined ? {} : { params });
  expect(error).toBeUndefined();
  return results.at(-1)?.notices ?? [];
}

describe("a notice points out milliseconds", () => {
  test.each([
    ["INSERT INTO t (id, at) VALUES (2, $1)", "at"],
    ["INSERT INTO t (id, tz) VALUES (3, $1) RETURNING id", "tz"],
    ["INSERT INTO t (id, at) SELECT 4, $1", "at"],
    ["INSERT INTO t (id, at) VALUES (5, NULL), (6, $1)", "at"],
    ["INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET at = $1", "at"],
    ["UPDATE t SET at = $1 WHERE id = 1", "at"],
    ["UPDATE t SET (tz, n) = ($1, 7) WHERE id = 1", "tz"],
    ["BEGIN; UPDATE t SET tz = $1 WHERE id = 2; COMMIT", "tz"],
  ])("in a parameter of %s", async (sql, column) => {
    const { error, results } = await engine.ask(sql, { params: [MILLISECONDS] });
    expect(error).toBeUndefined();
    const notices = results.flatMap((result) => result.notices ?? []);
    expect(notices).toHaveLength(1);
    expect(notices[0]).toStartWith(`Column "${column}" contains ${STORED}: `);
    expect(notices[0]).toContain(`$1, which is ${MILLISECONDS}, looks like milliseconds`);
  });

  test("a notice points out milliseconds in literals, but only a few times", async () => {
    const one = await noticesOf(`UPDATE t SET at = ${MILLISECONDS} WHERE id = 1`);
    expect(one).toHaveLength(1);
    expect(one[0]).toContain(`but ${MILLISECONDS} looks like milliseconds`);
    const rows = Array.from({ length: 9 }, (_, i) => `(${i + 20}, ${MILLISECONDS + i})`);
    expect(await noticesOf(`INSERT INTO t (id, at) VALUES ${rows.join(", ")}`)).toHaveLength(3);
  });
});

test("a notice points out seconds", async () => {
  for (const sql of [
    "UPDATE t SET at = $1 WHERE id = 1",
    "INSERT INTO t (id, tz) VALUES (7, $1)",
  ]) {
    const [notice] = await noticesOf(sql, [1_795_900_848]);
    expect(notice).toEndWith(
      "contains 1970-01-01 00:29:55.900848: a number in this column counts microseconds, but $1, which is 1795900848, looks like seconds; multiply it by 1000000, or send a string such as '2026-01-31T14:30:00Z'",
    );
  }
  const [notice] = await noticesOf("UPDATE t SET at = 1795900848 WHERE id = 1");
  expect(notice).toContain("but 1795900848 looks like seconds");
});

test.each([
  [
    "UPDATE t SET d = $1",
    "VALUE_OUT_OF_RANGE",
    `Cannot convert ${MILLISECONDS} to a date: the number would count days since 1970, and the year must be between 1 and 9999; send a string such as '2026-01-31' (column "d", parameter $1)`,
    undefined,
  ],
  [
    "UPDATE t SET clock = $1",
    "VALUE_OUT_OF_RANGE",
    `Cannot convert ${MILLISECONDS} to a time of day: the number must be between 0 and 86400000000 microseconds; send a string such as '14:30:00' (column "clock", parameter $1)`,
    undefined,
  ],
  [
    "UPDATE t SET at = $1 * 1000000",
    "VALUE_OUT_OF_RANGE",
    `Cannot convert ${MILLISECONDS}000000 to a timestamp: the number would count microseconds since 1970, and the year must be between 1 and 9999; send a string such as '2026-01-31T14:30:00Z' (column "at")`,
    undefined,
  ],
  [
    "SELECT $1::timestamp",
    "TYPE_MISMATCH",
    "Cannot convert a value of type bigint to timestamp without time zone",
    "send a string such as '2026-01-31T14:30:00Z', or call to_timestamp with a number of seconds",
  ],
  [
    "SELECT $1::date",
    "TYPE_MISMATCH",
    "Cannot convert a value of type bigint to date",
    "send a string such as '2026-01-31'",
  ],
  [
    "SELECT $1::time",
    "TYPE_MISMATCH",
    "Cannot convert a value of type bigint to time without time zone",
    "send a string such as '14:30:00'",
  ],
  [
    "SELECT id FROM t WHERE at > $1",
    "TYPE_MISMATCH",
    "Cannot apply > to values of type timestamp without time zone and bigint",
    "send a string such as '2026-01-31T14:30:00Z', or call to_timestamp with a number of seconds",
  ],
  [
    "SELECT coalesce(at, $1) FROM t",
    "TYPE_MISMATCH",
    "Cannot combine the types timestamp without time zone and bigint in COALESCE",
    "send a string such as '2026-01-31T14:30:00Z', or call to_timestamp with a number of seconds",
  ],
])("%s refuses milliseconds, and names the form to send", async (sql, code, message, hint) => {
  const { error } = await engine.ask(sql, { params: [MILLISECONDS] });
  expect([error?.code, error?.message, error?.hint]).toEqual([code as never, message, hint]);
});

test.each([
  ["INSERT INTO t (id, at) VALUES (40, $1)", [MILLISECONDS * 1000]],
  ["INSERT INTO t (id, at) VALUES (41, $1)", [0]],
  ["UPDATE t SET n = $1 WHERE id = 1", [MILLISECONDS]],
  ["UPDATE t SET at = now() WHERE n = $1", [MILLISECONDS]],
  ["UPDATE t SET at = $1 WHERE id = -1", [MILLISECONDS]],
  ["UPDATE t SET at = to_timestamp($1 / 1000) WHERE id = 1", [MILLISECONDS]],
])("%s with %p has none", async (sql, params) => {
  expect(await noticesOf(sql, params)).toEqual([]);
});
