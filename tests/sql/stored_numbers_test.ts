/**
 * Goal: a number that looks like milliseconds, as from `Date.now()`, is stored in a timestamp
 * column as microseconds, as the wire contract says, and a notice in the answer names the stored
 * timestamp.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

const MILLISECONDS = 1_795_900_848_777;
const STORED = "1970-01-21 18:51:40.848777";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP, tz TIMESTAMPTZ, n BIGINT); INSERT INTO t VALUES (1)",
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
    expect(notices[0]).toStartWith(`Column "${column}" holds ${STORED}: `);
    expect(notices[0]).toContain(`$1, which is ${MILLISECONDS}, looks like milliseconds`);
  });

  test("in a number of the text, a few times at most", async () => {
    const one = await noticesOf(`UPDATE t SET at = ${MILLISECONDS} WHERE id = 1`);
    expect(one).toHaveLength(1);
    expect(one[0]).toContain(`and ${MILLISECONDS} looks like milliseconds`);
    const rows = Array.from({ length: 9 }, (_, i) => `(${i + 20}, ${MILLISECONDS + i})`);
    expect(await noticesOf(`INSERT INTO t (id, at) VALUES ${rows.join(", ")}`)).toHaveLength(3);
  });
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
