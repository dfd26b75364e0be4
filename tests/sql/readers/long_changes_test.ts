/**
 * Tests changes whose rows are read by a reader, while other requests write rows or cancel the
 * change, or its own write fails. Each change is one commit or none, and the reader sees later
 * changes correctly.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { FullDisk } from "../../support/full_disk.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";

/** The number of rows in the table, more than can be staged in one tick. */
const ROWS = 20_000;

let disk: FullDisk;
let engine: TestEngine;

beforeEach(async () => {
  disk = new FullDisk(bunDisk);
  const config = "performance.query_memory_bytes = 1073741824";
  engine = await TestEngine.open({ clock: systemClock, disk, config, readsElsewhere: true });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT NOT NULL, s TEXT, d DECIMAL(30,2));" +
      "CREATE TABLE u (id INT PRIMARY KEY, v BIGINT, s TEXT, d DECIMAL(30,2));" +
      `INSERT INTO t SELECT g, 0, 's' || g, g FROM generate_series(1, ${ROWS}) g`,
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

async function totals(table = "t"): Promise<readonly unknown[]> {
  const [row] = await engine.rows(`SELECT COUNT(*), SUM(v) FROM ${table}`);
  return row ?? [];
}

/** Starts a statement, and returns once its job has been sent to a reader. */
function begin(sql: string): { isOver: () => boolean; ended: Promise<SqlResponse> } {
  let isOver = false;
  const ended = engine.ask(sql).finally(() => {
    isOver = true;
  });
  return { isOver: () => isOver, ended };
}

const CHANGES: readonly (readonly [string, string])[] = [
  ["UPDATE", "UPDATE t SET v = v + 1"],
  ["DELETE … USING", "DELETE FROM t USING t s WHERE s.id = t.id"],
  ["INSERT … SELECT", "INSERT INTO u SELECT * FROM t"],
  ["an upsert", "INSERT INTO t SELECT id, 7 FROM t ON CONFLICT (id) DO UPDATE SET v = excluded.v"],
  ["a transaction", "BEGIN; UPDATE t SET v = v + 1; INSERT INTO u SELECT * FROM t; COMMIT"],
];

describe("long changes that are ended early change nothing", () => {
  test.each(shareOf(CHANGES, { oneOf: 2 }))(
    "after KILL, %s has changed nothing",
    async (_name, sql) => {
      const long = begin(sql);
      const running = "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.queries%'";
      const [queryId] = (await engine.rows(running)).flat();
      await engine.run(`KILL QUERY '${String(queryId)}'`);
      expect((await long.ended).error?.code).toBe("CANCELLED");
      expect([await totals(), await totals("u")]).toEqual([
        [ROWS, "0"],
        [0, null],
      ]);
      // After the change has ended, the reader is free for the next statement.
      await engine.run("UPDATE t SET v = 3 WHERE id < 9000");
      expect(await totals()).toEqual([ROWS, String(3 * 8999)]);
    },
  );

  test.each(shareOf(CHANGES, { oneOf: 2 }))(
    "at its time limit, %s has changed nothing",
    async (_name, sql) => {
      const { error } = await engine.ask(sql, { timeoutMs: 5 });
      expect(error?.code).toBe("STATEMENT_TIMEOUT");
      expect([await totals(), await totals("u")]).toEqual([
        [ROWS, "0"],
        [0, null],
      ]);
    },
  );
});

describe("concurrent writes during a change are detected", () => {
  test("a change runs again on the new rows if others write its rows", async () => {
    const long = begin("UPDATE t SET v = v + 1");
    await Promise.all([
      engine.run("INSERT INTO t VALUES (5, 1000) ON CONFLICT (id) DO UPDATE SET v = excluded.v"),
      engine.run("INSERT INTO t VALUES (0, 5)"),
    ]);
    expect((await long.ended).error).toBeUndefined();
    expect(await engine.rows("SELECT v FROM t WHERE id = 5")).toEqual([[1001]]);
    expect(await totals()).toEqual([ROWS + 1, String(ROWS + 1 + 1000 + 5)]);
  });

  test("two changes that repeatedly write the same row both succeed", async () => {
    const long = begin("UPDATE t SET v = v + 1000000");
    let count = 0;
    while (!long.isOver()) {
      count += 1;
      const upsert = `INSERT INTO t VALUES (5, 0) ON CONFLICT (id) DO UPDATE SET v = t.v + 1`;
      await engine.run(upsert);
      await systemClock.yield();
    }
    expect((await long.ended).error).toBeUndefined();
    expect(await engine.rows("SELECT v FROM t WHERE id = 5")).toEqual([[1_000_000 + count]]);
  });

  test("a change in a transaction fails if others write its rows", async () => {
    const long = begin("BEGIN; UPDATE t SET v = v + 1; COMMIT");
    await systemClock.yield();
    await engine.run("INSERT INTO t VALUES (5, 1) ON CONFLICT (id) DO UPDATE SET v = 1000");
    expect((await long.ended).error?.code).toBe("SERIALIZATION_FAILURE");
    expect(await totals()).toEqual([ROWS, "1000"]);
  });
});

test("rows that were rolled back appear in no change, and later ones as written", async () => {
  disk.isFull = true;
  const lost = begin("INSERT INTO t VALUES (-1, 100, 'lost', 12345678901234567890.12)");
  const copied = begin("INSERT INTO u SELECT * FROM t");
  expect((await lost.ended).error?.code).toBe("DISK_FULL");
  expect((await copied.ended).error).toBeUndefined();
  expect(await totals("u")).toEqual([ROWS, "0"]);
  await engine.run("INSERT INTO t VALUES (-2, 1, 'a longer text', 98765432109876543210.98)");
  await engine.run("INSERT INTO t VALUES (-3, 1, NULL, NULL)");
  const kept = [
    [-3, 1, null, null],
    [-2, 1, "a longer text", "98765432109876543210.98"],
  ];
  expect(await engine.rows("SELECT id, v, s, d FROM t WHERE id < 0 ORDER BY id")).toEqual(kept);
  await engine.run("INSERT INTO u SELECT * FROM t WHERE id < 0");
  expect(await engine.rows("SELECT id, v, s, d FROM u WHERE id < 0 ORDER BY id")).toEqual(kept);
});
