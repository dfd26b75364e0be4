/**
 * Tests the evaluation of materialised queries at earlier seqs, on the event loop and in readers,
 * by keys, indexes and stored orders. An evaluation returns the rows that the query had at the
 * given seq, or reports that the history is gone.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import type { ResultPlan } from "../../../src/sql/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { type EngineOptions, TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";

const PLACES: readonly (readonly [string, EngineOptions])[] = [
  ["on the event loop", { readsElsewhere: false }],
  ["in a reader", { readsElsewhere: true }],
  ["in three readers", { divides: true }],
];

const QUERIES = [
  "SELECT r.name, count(i.id), max(i.v) FROM rooms r LEFT JOIN items i ON i.room = r.id GROUP BY r.id, r.name ORDER BY 1",
  "SELECT i.id, r.name FROM items i JOIN rooms r ON r.id = i.room WHERE i.v = 7 ORDER BY i.id",
  "SELECT id, v FROM items ORDER BY v DESC, id LIMIT 5",
  "SELECT (SELECT v FROM items WHERE id = 40), (SELECT count(*) FROM rooms)",
  "SELECT id FROM items WHERE v BETWEEN 3 AND 5 AND id NOT IN (SELECT id FROM rooms) ORDER BY v, id",
];

function plansOf(engine: TestEngine): ResultPlan[] {
  return QUERIES.map((sql) => {
    const { principal } = engine;
    const { plan, way } = engine.database.sql.planFollowed(principal, {
      sql,
      namespace: "app",
      params: [],
    });
    if (way !== "result") throw new Error("the query is materialised");
    return plan;
  });
}

for (const [place, options] of shareOf(PLACES, { oneOf: 3 })) {
  test(`an evaluation ${place} at an earlier seq returns the rows of that seq`, async () => {
    await using engine = await TestEngine.open({ clock: new ManualClock(), ...options });
    await engine.run(
      "CREATE NAMESPACE app; USE app; CREATE TABLE rooms (id INT PRIMARY KEY, name TEXT);" +
        "CREATE TABLE items (id INT PRIMARY KEY, room INT, v INT);" +
        "INSERT INTO rooms SELECT g, 'room ' || g FROM generate_series(1, 4) g;" +
        "INSERT INTO items SELECT g, g % 4 + 1, g % 10 FROM generate_series(1, 100) g",
    );
    const changes = [
      "UPDATE items SET v = v + 1 WHERE id % 3 = 0",
      "DELETE FROM items WHERE id % 5 = 0; STORAGE FLUSH TABLE items",
      "CREATE INDEX ON items (v); INSERT INTO items VALUES (40, 2, 7), (200, 3, 7)",
      "BEGIN; DELETE FROM rooms WHERE id = 4; UPDATE items SET room = 1 WHERE room = 4; COMMIT",
      "STORAGE FLUSH TABLE items; STORAGE FLUSH TABLE rooms; STORAGE COMPACT TABLE items",
      "UPDATE items SET v = 100 - v WHERE TRUE; STORAGE FLUSH TABLE items",
    ];
    const states: { seq: Seq; rows: unknown[] }[] = [];
    for (const change of ["SELECT 1", ...changes]) {
      await engine.run(`USE app; ${change}`);
      const rows: unknown[] = [];
      for (const plan of plansOf(engine)) rows.push((await plan.evaluate().result).rows);
      states.push({ seq: engine.database.store.visibleSeq, rows });
    }
    const plans = plansOf(engine);
    for (const { rows, seq } of states) {
      const found: unknown[] = [];
      for (const plan of plans) found.push((await plan.evaluate(seq).result).rows);
      expect([seq, found]).toEqual([seq, rows]);
    }
    const [first, second] = states;
    const within = (second?.seq ?? 0) - 1;
    const evaluated = await plans[0]?.evaluate(within as Seq).result;
    expect(evaluated?.rows).toEqual(first?.rows[0] as never);
  });
}

test("an evaluation is refused if its history is gone", async () => {
  const clock = new ManualClock();
  await using engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE NAMESPACE app; USE app; CREATE TABLE rooms (id INT PRIMARY KEY, name TEXT);" +
      "CREATE TABLE items (id INT PRIMARY KEY, room INT, v INT) WITH (DELETED_RETENTION_HOURS = 1);" +
      "INSERT INTO items VALUES (1, 1, 1)",
  );
  const { visibleSeq } = engine.database.store;
  await engine.run("DELETE FROM app.items WHERE id = 1; STORAGE FLUSH TABLE app.items");
  clock.advance(3 * 3_600_000);
  await engine.run("INSERT INTO app.items VALUES (2, 1, 1); STORAGE FLUSH TABLE app.items");
  await engine.run("STORAGE COMPACT TABLE app.items");
  const [plan] = plansOf(engine);
  const failure = await plan?.evaluate(visibleSeq).result.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ code: "HISTORY_TOO_OLD" });
});
