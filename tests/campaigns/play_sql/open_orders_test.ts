/** Verifies which other results the player asks PostgreSQL for. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { postgresPrograms } from "../../support/postgres.ts";
import { OpenOrders } from "./open_orders.ts";
import type { Played } from "./played.ts";
import { openPostgresPlayer, type PostgresPlayer } from "./postgres_player.ts";

const isInstalled = postgresPrograms() !== undefined;
let postgres: PostgresPlayer;

beforeAll(async () => {
  if (isInstalled) postgres = await openPostgresPlayer();
});
afterAll(async () => {
  if (isInstalled) await postgres[Symbol.asyncDispose]();
});

function run(sql: string): Promise<Played> {
  return postgres.play({ sql, line: 0 });
}

/** Returns the different results of a query over its tables in other orders. */
async function resultsOf(sql: string): Promise<ReadonlySet<string>> {
  const results = new Set<string>();
  for await (const played of new OpenOrders(postgres).resultsOf(sql)) {
    results.add(played.kind === "rows" ? played.rows.join(" ") : played.message);
  }
  return results;
}

test.skipIf(!isInstalled)("a window has all orders of rows with equal keys", async () => {
  await run("CREATE TABLE t (a INT, b INT)");
  await run("INSERT INTO t VALUES (1, 1), (1, 2), (2, 3)");
  const first = "SELECT first_value(b) OVER (ORDER BY a) FROM t";
  expect(await resultsOf(first)).toEqual(new Set(["1 1 1", "2 2 2"]));
  expect(await resultsOf("SELECT a FROM t ORDER BY a")).toEqual(new Set(["1 1 2"]));
  expect(await run("SELECT * FROM t")).toEqual({
    kind: "rows",
    rows: [
      ["1", "1"],
      ["1", "2"],
      ["2", "3"],
    ],
  });
});

test.skipIf(!isInstalled)("an open transaction continues, with its temporary tables", async () => {
  await run("BEGIN");
  await run("CREATE TEMP TABLE inside AS SELECT 1 AS a UNION SELECT 2");
  expect(await resultsOf("SELECT a FROM inside LIMIT 1")).toEqual(new Set(["1", "2"]));
  expect(await run("SELECT count(*) FROM inside")).toEqual({ kind: "rows", rows: [["2"]] });
  await run("ROLLBACK");
  expect((await run("SELECT count(*) FROM inside")).kind).toBe("failure");
});

test.skipIf(!isInstalled)("a cursor has the rows of its query as of its declaration", async () => {
  const orders = new OpenOrders(postgres);
  await run("CREATE TABLE u AS SELECT 1 AS a");
  await run("BEGIN");
  await orders.before("DECLARE c CURSOR FOR SELECT a FROM u FOR UPDATE");
  await run("INSERT INTO u VALUES (2)");
  expect(orders.cursorOf("FETCH ALL FROM c")?.rows).toEqual({ kind: "rows", rows: [["1"]] });
  expect(orders.cursorOf("FETCH ALL FROM d")).toBeUndefined();
  await run("ROLLBACK");
});
