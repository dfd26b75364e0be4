/**
 * Tests queries that the real process divides among its reader threads. They return correct
 * results while their table changes. Whatever ends a statement ends all of its parts.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { amountOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

const MS_MAX = 180_000;

const ROW_COUNT = 300_000;

/**
 * Sums `a` and `b` by group. The two sums are equal after every statement. The query takes long
 * enough to be divided.
 */
const SUMS = "SELECT k, sum(a), sum(b), count(*), max(id::TEXT) FROM d.t GROUP BY k ORDER BY k";

/**
 * Returns a query that compares each row with `otherCount` other rows. With a large `otherCount`,
 * it compares 6 billion pairs, more than the readers can process during a test.
 */
function pairs(otherCount: number): string {
  return `SELECT count(*) FROM d.t x, d.few y WHERE x.a + y.id = -1 AND y.id <= ${otherCount}`;
}

const STEPS = amountOf({ usual: 1, thorough: 20 });

let server: ServerProcess;
/** The number of times that the short form of the endless query has run. */
let pairRuns = 0;

beforeAll(async () => {
  server = await startReadyServer({ config: { server: { workers: 2 } } });
  await server.rows("CREATE NAMESPACE d");
  await server.rows("CREATE SHARED TABLE d.t (id INT PRIMARY KEY, k INT, a INT, b INT)");
  await server.rows("CREATE SHARED TABLE d.few (id INT PRIMARY KEY)");
  await server.rows("INSERT INTO d.few SELECT g FROM generate_series(1, 20000) AS x(g)");
  for (let first = 1; first <= ROW_COUNT; first += 100_000) {
    await server.rows(
      `INSERT INTO d.t SELECT g, g % 3, 0, 0 FROM generate_series(${first}, ${first + 99_999}) AS x(g)`,
    );
  }
}, MS_MAX);

afterAll(async () => {
  await server.stop();
});

const busyCount = (): Promise<number> => server.metric("tidemark_readers_busy");

/**
 * Runs the endless query, and calls `end` while both readers are working on it. Returns the
 * query's error.
 */
async function endedBy(
  fields: Readonly<Record<string, unknown>>,
  end?: () => Promise<void>,
): Promise<readonly unknown[]> {
  // The server divides a plan only after it has run several times and taken long enough.
  for (; pairRuns < 5; pairRuns += 1) await server.rows(pairs(200));
  const running = server.sql(pairs(20_000), { fields });
  await until(async () => (await busyCount()) === 2);
  await end?.();
  const { body } = await running;
  await until(async () => (await busyCount()) === 0);
  return [body.error?.code, body.error?.reason];
}

describe("a query that two reader threads divide", () => {
  test(
    "a divided query sees every change as a whole",
    async () => {
      for (let step = 1; step <= STEPS; step += 1) {
        const first = step * 14_000;
        const changing = server.rows(
          `UPDATE d.t SET a = a + ${step}, b = b + ${step} WHERE id BETWEEN ${first} AND ${first + 5000}`,
        );
        const seen = await Promise.all([server.rows(SUMS), server.rows(SUMS)]);
        for (const [, sumA, sumB, count] of seen.flat()) {
          expect([sumA, count]).toEqual([sumB, ROW_COUNT / 3]);
        }
        await changing;
        if (step % 4 === 0) await server.rows("STORAGE FLUSH TABLE d.t");
      }
    },
    MS_MAX,
  );

  testThoroughly(
    "a divided query ends in both threads after KILL",
    async () => {
      const kill = async (): Promise<void> => {
        const [[queryId] = []] = await server.rows(
          "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.%'",
        );
        await server.rows(`KILL QUERY '${String(queryId)}'`);
      };
      expect(await endedBy({}, kill)).toEqual(["SQL_EXECUTION_ERROR", "cancelled"]);
    },
    MS_MAX,
  );

  testThoroughly(
    "a divided query ends in both threads at its time limit",
    async () => {
      expect(await endedBy({ timeout_ms: 1500 })).toEqual(["QUERY_TIMEOUT", undefined]);
    },
    MS_MAX,
  );

  testThoroughly(
    "a divided query fails with the error of one thread, and leaves both ready for the next query",
    async () => {
      const sums = (zero: number): string =>
        `SELECT sum(10 / (id - ${zero})), max(id::TEXT) FROM d.t`;
      await server.rows(sums(400_000));
      const { body } = await server.sql(sums(250_000));
      expect(body.error?.message).toContain("Cannot divide by zero");
      await until(async () => (await busyCount()) === 0);
      const [[count] = []] = await server.rows("SELECT count(*) FROM d.t");
      expect(count).toBe(ROW_COUNT);
    },
    MS_MAX,
  );
});
