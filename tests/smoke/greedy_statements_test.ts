/**
 * Tests short statements that demand huge resources. The server refuses each one within its time
 * and memory limits, and serves other statements immediately afterwards.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import {
  AS_FOR_USERS,
  type ServerProcess,
  type SqlAnswer,
  startReadyServer,
} from "../support/server_process.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";

/** The memory limit for the server process in bytes, far below what the statements demand. */
const MEMORY_BYTES_MAX = 1_200_000_000;

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({
    config: { performance: { request_timeout: 2, query_memory_bytes: 33_554_432 } },
    env: AS_FOR_USERS,
  });
  await server.rows(
    "CREATE TABLE default.t (id INT PRIMARY KEY, v TEXT); " +
      "CREATE TABLE default.o (id BIGINT PRIMARY KEY, v TEXT)",
  );
  const values = Array.from({ length: 3000 }, (_, id) => `(${id}, '${"v".repeat(100)}')`);
  await server.rows(`INSERT INTO t VALUES ${values.join(",")}`);
});

afterAll(async () => {
  expect(server.output).not.toMatch(/stopping because of a bug/);
  expect(await server.rows("SELECT COUNT(*) FROM o")).toEqual([[0]]);
  const status = await Bun.file(`/proc/${server.pid}/status`).text();
  const kib = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]);
  expect(kib * 1024).toBeLessThan(MEMORY_BYTES_MAX);
  await server.stop();
});

const PAIRS = "t AS a JOIN t AS b ON a.id % 2 = b.id % 2";

const MUCH: readonly (readonly [of: string, sql: string, reason: string])[] = [
  ["rows to insert", `INSERT INTO o SELECT a.id * 10000 + b.id, a.v FROM ${PAIRS}`, "memory"],
  ["texts to join", `SELECT STRING_AGG(a.v, ',') FROM ${PAIRS}`, "memory"],
  ["values to collect", `SELECT ARRAY_AGG(a.v) FROM ${PAIRS}`, "memory"],
  ["numbers to sort", `SELECT MEDIAN(a.id) FROM ${PAIRS} JOIN t AS c ON c.id < 9`, "memory"],
  ["a text replaced", "SELECT REPLACE(REPEAT('a', 1000000), 'a', REPEAT('b', 100000))", "type"],
  ["a text padded", "SELECT FORMAT('%1000000000s', 'x')", "type"],
  [
    "texts put together",
    `SELECT ${Array.from({ length: 200 }, () => "REPEAT('x', 16000000)").join(" || ")}`,
    "type",
  ],
];

test.each(shareOf(MUCH, { oneOf: 2 }))("too much of %s", async (_name, sql, reason) => {
  // The timeout is so long that the statement reaches the limit under test first, even on a slow
  // machine.
  const { status, body } = await server.sql(sql, { fields: { timeout_ms: 20_000 } });
  expect([status, body.error?.code, body.error?.reason]).toEqual([
    400,
    "SQL_EXECUTION_ERROR",
    reason,
  ]);
});

const LONG: readonly (readonly [what: string, sql: string])[] = [
  ["a count", "SELECT COUNT(*) FROM t a CROSS JOIN t b CROSS JOIN t c"],
  ["long numbers", "SELECT COUNT(*) FROM generate_series(1::numeric, 1e131071::numeric)"],
  [
    "long numbers beside each row",
    "SELECT COUNT(*) FROM t, generate_series(t.id + 1e131070::numeric, 1e131071::numeric) s",
  ],
  [
    "a sum of long numbers",
    "SELECT SUM(n) > 0 FROM (SELECT ('1' || REPEAT('9', 130000))::numeric AS n OFFSET 0) x, t a, t b",
  ],
  [
    "a variance of long numbers",
    "SELECT VARIANCE(n) > 0 FROM (SELECT ('1' || REPEAT('9', 60000))::numeric AS n OFFSET 0) x, t a, t b",
  ],
  [
    "rows to insert, of which there are none",
    "INSERT INTO o SELECT a.id, a.v FROM t a CROSS JOIN t b CROSS JOIN t c WHERE a.v || b.v || c.v = 'x'",
  ],
];

test.each(shareOf(LONG, { oneOf: 3 }))("too much time for %s", async (_name, sql) => {
  const { status, body } = await server.sql(sql, { fields: { timeout_ms: 300 } });
  expect([status, body.error?.code]).toEqual([400, "QUERY_TIMEOUT"]);
});

test("too many rows of a response are sent as they are produced until the time limit", async () => {
  let answer: SqlAnswer | undefined;
  // A busy machine takes longer to produce the first rows. If the timeout comes earlier, the whole
  // statement fails.
  for (let ms = 300; ms < 60_000 && answer?.status !== 200; ms *= 2) {
    answer = await server.sql(`SELECT a.v, b.v FROM ${PAIRS}`, { fields: { timeout_ms: ms } });
  }
  expect([answer?.status, answer?.body.status, answer?.body.error?.code]).toEqual([
    200,
    "error",
    "QUERY_TIMEOUT",
  ]);
});

const LONG_ROWS = amountOf({ usual: 20, thorough: 60 });

testThoroughly(
  "a rewrite whose USING takes long for each row leaves time for other statements",
  async () => {
    await server.rows(
      "CREATE TABLE default.long_numbers (id INT PRIMARY KEY, v NUMERIC); INSERT INTO long_numbers " +
        `SELECT g, REPEAT('9', 30000 + g)::numeric FROM generate_series(1, ${LONG_ROWS}) g`,
    );
    const altering = { isRunning: true };
    const altered = server
      .sql("ALTER TABLE long_numbers ALTER v TYPE TEXT USING (v * v)::text", {
        fields: { timeout_ms: 20_000 },
      })
      .finally(() => {
        altering.isRunning = false;
      });
    let served = 0;
    while (altering.isRunning) {
      await server.rows("SELECT 1");
      served += 1;
    }
    expect((await altered).body.status).toBe("success");
    expect(served).toBeGreaterThan(10);
  },
);
