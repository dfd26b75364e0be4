/**
 * Tests statements that read versions that merges have moved to history, because their transaction
 * is older than the changes or because `_deleted` selects deleted rows. The statements run on the
 * event loop, in a reader, divided among several readers, and in threads.
 */
import { expect, test } from "bun:test";
import { ManualClock } from "../../support/manual_clock.ts";
import { type EngineOptions, TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

const ROWS = 400;

const FILL = `CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (TYPE = 'SHARED');
  INSERT INTO t SELECT g, g FROM generate_series(1, ${ROWS}) AS x(g); STORAGE FLUSH TABLE t`;

/**
 * Changes that update or delete most rows, and insert some of the deleted rows again. A merge
 * covers only some of these changes.
 */
const CHANGES = [
  "UPDATE t SET v = -v WHERE id % 3 = 0",
  "DELETE FROM t WHERE id % 4 = 0",
  "STORAGE FLUSH TABLE t",
  "STORAGE COMPACT TABLE t",
  "INSERT INTO t SELECT g * 4, 0 FROM generate_series(1, 50) AS x(g)",
  "STORAGE FLUSH TABLE t",
];

const SUMS = "SELECT count(*), sum(id), sum(v), min(v) FROM t";
const BEFORE = [[ROWS, (ROWS * (ROWS + 1)) / 2, (ROWS * (ROWS + 1)) / 2, 1]];

const DELETED = ROWS / 4 - 50;

const PLACES: readonly (readonly [string, EngineOptions])[] = [
  ["on the event loop", { readsElsewhere: false }],
  ["in a reader", { readsElsewhere: true }],
  ["in three readers", { divides: true }],
  ["in threads", { inThreads: true }],
];

for (const [place, options] of shareOf(PLACES, { oneOf: 2 })) {
  test(`a transaction ${place} reads the state at its beginning`, async () => {
    const clock = new ManualClock();
    await using engine = await TestEngine.open({ clock, ...options });
    await engine.run(FILL);
    const { timerCount } = clock;
    const change = "UPDATE t SET v = 1 WHERE id = 204";
    const changing = engine.ask(`BEGIN; ${SUMS}; SELECT pg_sleep(1); ${change}; COMMIT`);
    const reading = engine.ask(
      `BEGIN; ${SUMS}; SELECT pg_sleep(1); ${SUMS};
        SELECT id, v FROM t ORDER BY _seq;
        SELECT v FROM t WHERE id = 3;
        SELECT v FROM t WHERE id = 4; COMMIT`,
    );
    await until(() => clock.timerCount > timerCount + 1);
    for (const sql of CHANGES) await engine.run(sql);
    expect(kindsOf(engine)).toContain("history");
    clock.advance(1000);
    const { error, results } = await reading;
    expect(error).toBeUndefined();
    const [, first, , again, all, updated, deleted] = results.map(({ rows }) => rows);
    expect(first).toEqual(BEFORE);
    expect(again).toEqual(BEFORE);
    expect(all).toEqual(Array.from({ length: ROWS }, (_, index) => [index + 1, index + 1]));
    expect([updated, deleted]).toEqual([[[3]], [[4]]]);
    // Another request has deleted the row that the transaction updates, and the tombstone is
    // already in history.
    expect((await changing).error?.code).toBe("SERIALIZATION_FAILURE");
  });

  test(`deleted rows are found ${place}, except those whose key was inserted again`, async () => {
    await using engine = await TestEngine.open(options);
    await engine.run(FILL);
    for (const sql of CHANGES) await engine.run(sql);
    expect(kindsOf(engine)).toContain("history");
    for (const sql of [
      "SELECT count(*), min(id) FROM t WHERE _deleted",
      "WITH d AS (SELECT id FROM t WHERE _deleted) SELECT count(*), min(id) FROM d",
      "SELECT (SELECT count(*) FROM t WHERE _deleted), (SELECT min(id) FROM t WHERE _deleted)",
    ]) {
      expect([sql, await engine.rows(sql)]).toEqual([sql, [[DELETED, 204]]]);
    }
    const all = ROWS - ROWS / 4 + 50 + DELETED;
    expect(await engine.rows("SELECT count(*) FROM t WHERE _deleted IS NOT NULL")).toEqual([[all]]);
  });
}

function kindsOf({ database }: TestEngine): unknown[] {
  return database.store.segments().map(({ kind }) => kind);
}
