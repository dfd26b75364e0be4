/**
 * Tests STREAM tables: rows are inserted and deleted, belong to their writer, and expire after
 * their time to live. Expired rows disappear from reads immediately, and from disk soon after.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { SEQ_EPOCH_MS, SEQ_ZERO } from "../../src/base/seq.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock(SEQ_EPOCH_MS + 1_000_000_000);
  engine = await TestEngine.open({ clock });
  await engine.run("CREATE STREAM TABLE s (who TEXT, n INT) WITH (TTL_SECONDS = 10)");
  await engine.run(
    "CREATE STREAM TABLE k (id INT PRIMARY KEY, v TEXT) WITH (TTL_SECONDS = 10, TYPE = 'STREAM')",
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

async function count(table: string): Promise<unknown> {
  return (await engine.rows(`SELECT count(*) FROM ${table}`))[0]?.[0];
}

/** Runs all pending work, including that of the disk, until a condition holds. */
async function settled(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve));
}

test("a row vanishes TTL_SECONDS after its commit, to the millisecond", async () => {
  await engine.run("INSERT INTO s VALUES ('a', 1)");
  clock.advance(4000);
  await engine.run("INSERT INTO s VALUES ('b', 2)");
  clock.advance(5999);
  expect(await count("s")).toBe(2);
  clock.advance(1);
  expect(await engine.rows("SELECT who FROM s")).toEqual([["b"]]);
  const [[logical] = []] = (await engine.rows("SHOW STATS FOR TABLE s")).map((row) => [row[3]]);
  expect(logical).toBe(1);
  clock.advance(4000);
  expect(await count("s")).toBe(0);
});

test("DELETE on a table without a key deletes only the rows that match", async () => {
  await engine.run("INSERT INTO s VALUES ('a', 1), ('a', 1), ('b', 2), ('b', 3)");
  const [entry] = await engine.run("DELETE FROM s WHERE who = 'b' AND n > 2 RETURNING n");
  expect(entry?.rows).toEqual([[3]]);
  expect(await engine.rows("SELECT who, n FROM s ORDER BY n")).toEqual([
    ["a", 1],
    ["a", 1],
    ["b", 2],
  ]);
  const [first] = await engine.rows("SELECT min(_seq) FROM s");
  await engine.run(`DELETE FROM s WHERE _seq = ${String(first?.[0])}`);
  expect(await engine.rows("SELECT who FROM s ORDER BY n")).toEqual([["a"], ["b"]]);
  await engine.restart();
  expect(await engine.rows("SELECT who FROM s ORDER BY n")).toEqual([["a"], ["b"]]);
});

test("RETURNING of DELETE … USING can read the joined rows, although there is no _deleted", async () => {
  await engine.run("INSERT INTO s VALUES ('a', 1), ('b', 2); INSERT INTO k VALUES (1, 'one')");
  expect(
    await engine.rows(
      "DELETE FROM s USING k WHERE k.id = s.n RETURNING s.*, k.v, k.id, s._seq > 0",
    ),
  ).toEqual([["a", 1, expect.anything(), "one", 1, true]]);
  expect(
    await engine.rows(
      "DELETE FROM s USING (VALUES ('x', 2)) f (x, m) WHERE m = n RETURNING x, who",
    ),
  ).toEqual([["x", "b"]]);
  expect(await engine.failure("DELETE FROM s RETURNING _deleted")).toStartWith("COLUMN_NOT_FOUND");
});

test("a key is unique among the rows that have not expired", async () => {
  await engine.run("INSERT INTO k VALUES (1, 'first')");
  expect(await engine.failure("INSERT INTO k VALUES (1, 'again')")).toStartWith("DUPLICATE_KEY");
  clock.advance(10_000);
  expect(await engine.rows("SELECT v FROM k WHERE id = 1")).toEqual([]);
  await engine.run("INSERT INTO k VALUES (1, 'second')");
  expect(await engine.rows("SELECT v FROM k WHERE id = 1")).toEqual([["second"]]);
  expect(await count("k")).toBe(1);
  await engine.run("DELETE FROM k WHERE id = 1");
  await engine.run("INSERT INTO k VALUES (1, 'third')");
  expect(await engine.rows("SELECT v FROM k")).toEqual([["third"]]);
});

test("a STREAM table refuses statements that it does not support", async () => {
  const refusals: [string, string][] = [
    ["UPDATE s SET who = 'c'", "INVALID_OPERATION@1:0"],
    ["INSERT INTO k VALUES (1, 'a') ON CONFLICT DO NOTHING", "INVALID_OPERATION"],
    ["BEGIN; INSERT INTO s VALUES ('a', 1); COMMIT", "INVALID_OPERATION@2"],
    ["STORAGE FLUSH TABLE s", "INVALID_OPERATION@1:0"],
    ["STORAGE COMPACT TABLE s", "INVALID_OPERATION@1:0"],
    ["CREATE STREAM TABLE x (id INT)", "INVALID_OPTION"],
    ["CREATE STREAM TABLE x (id INT) WITH (TTL_SECONDS = 0)", "INVALID_OPTION"],
    ["CREATE STREAM TABLE x (f FILE) WITH (TTL_SECONDS = 5)", "UNSUPPORTED_TYPE"],
    [
      "CREATE STREAM TABLE x (a INT) WITH (TTL_SECONDS = 5, FLUSH_POLICY = 'rows:5')",
      "INVALID_OPTION",
    ],
    ["SELECT _deleted FROM s", "COLUMN_NOT_FOUND"],
    ["SELECT who, n FROM s GROUP BY who", "INVALID_QUERY"],
  ];
  for (const [sql, code] of refusals) {
    expect(await engine.failure(sql), sql).toStartWith(code);
  }
});

test("rows belong to the user who wrote them, and the catalog shows the kind of the table", async () => {
  await engine.run("CREATE USER ann INTERNAL; INSERT INTO s VALUES ('root', 1)");
  await engine.run("EXECUTE AS USER 'ann' (INSERT INTO s VALUES ('ann', 1))");
  expect(await engine.rows("SELECT who FROM s")).toEqual([["root"]]);
  expect(await engine.rows("EXECUTE AS USER 'ann' (SELECT who FROM s)")).toEqual([["ann"]]);
  expect(await engine.rows("SELECT table_type FROM system.tables WHERE table_name = 's'")).toEqual([
    ["STREAM"],
  ]);
  const columns = await engine.rows(
    "SELECT column_name FROM information_schema.columns WHERE table_name = 's' ORDER BY ordinal_position",
  );
  expect(columns).toEqual([["who"], ["n"], ["_seq"]]);
});

test("a longer TTL restores no expired row, and a shorter one applies at once", async () => {
  await engine.run("INSERT INTO s VALUES ('old', 1)");
  clock.advance(8000);
  await engine.run("INSERT INTO s VALUES ('young', 1)");
  clock.advance(3000);
  await engine.run("ALTER TABLE s SET (TTL_SECONDS = 100)");
  expect(await engine.rows("SELECT who FROM s")).toEqual([["young"]]);
  await engine.restart();
  expect(await engine.rows("SELECT who FROM s")).toEqual([["young"]]);
  clock.advance(50_000);
  expect(await count("s")).toBe(1);
  await engine.run("ALTER TABLE s SET (TTL_SECONDS = 20)");
  expect(await count("s")).toBe(0);
  await engine.run("ALTER TABLE s SET (TTL_SECONDS = 200)");
  expect(await count("s")).toBe(0);
});

test("segments of expired rows are removed, and half-expired ones are rewritten", async () => {
  const { store, catalog } = engine.database;
  const tableId = catalog.table("default", "s")?.tableId ?? 0;
  const insert = async (n: number): Promise<void> => {
    await engine.run(`INSERT INTO s VALUES ('x', ${n}), ('y', ${n})`);
  };
  await insert(1);
  await engine.run("DELETE FROM s WHERE who = 'y'");
  await store.flush(tableId);
  clock.advance(5000);
  await insert(2);
  await store.flush(tableId);
  clock.advance(5000);
  expect(store.stats(tableId)).toMatchObject({ segments: 2, liveRows: 2 });
  await settled(() => store.stats(tableId).segments === 1);
  clock.advance(10_000);
  await settled(() => store.stats(tableId).segments === 0);
  expect(store.earliestSeq(tableId, 1)).toBe(SEQ_ZERO);

  await engine.run("ALTER TABLE s SET (TTL_SECONDS = 100)");
  await insert(3);
  clock.advance(60_000);
  await insert(4);
  await store.flush(tableId);
  const before = store.stats(tableId).bytes;
  // Half of the interval between two checks has passed. The next check comes within ten seconds.
  clock.advance(80_000);
  await settled(() => store.stats(tableId).bytes < before);
  expect(await engine.rows("SELECT n FROM s")).toEqual([[4], [4]]);
  expect(store.segments().map(({ rowCount }) => rowCount)).toEqual([2]);
  expect(store.earliestSeq(tableId, 1)).toBe(SEQ_ZERO);
});

test("a clock that is set back restores no row next to the one that replaced it", async () => {
  await engine.run("INSERT INTO k VALUES (1, 'old'), (2, 'other')");
  clock.advance(11_000);
  await engine.run("INSERT INTO k VALUES (1, 'new')");
  clock.setWall(clock.nowMs() - 5000);
  expect(await engine.rows("SELECT id, v FROM k")).toEqual([[1, "new"]]);
  expect(await count("k")).toBe(1);
  await engine.restart();
  expect(await engine.rows("SELECT id, v FROM k")).toEqual([[1, "new"]]);
  await engine.run("INSERT INTO k VALUES (2, 'again')");
  expect(await engine.rows("SELECT id, v FROM k ORDER BY id")).toEqual([
    [1, "new"],
    [2, "again"],
  ]);
});

test("expired rows do not reappear when the clock is set back, and new rows do not vanish with them", async () => {
  await engine.run("INSERT INTO k VALUES (1, 'old')");
  const nowMs = clock.nowMs();
  clock.advance(11_000);
  expect(await count("k")).toBe(0);
  clock.setWall(nowMs);
  expect(await count("k")).toBe(0);
  await engine.run("INSERT INTO k VALUES (1, 'new')");
  expect(await engine.rows("SELECT id, v FROM k")).toEqual([[1, "new"]]);
  await engine.restart();
  expect(await engine.rows("SELECT id, v FROM k")).toEqual([[1, "new"]]);
});

test("a changed TTL restores no row while the clock is behind the newest row", async () => {
  await engine.run("INSERT INTO k VALUES (1, 'old'), (2, 'old')");
  const nowMs = clock.nowMs();
  clock.advance(20_000);
  await engine.run("INSERT INTO k VALUES (1, 'new')");
  clock.setWall(nowMs);
  await engine.run("ALTER TABLE k SET (TTL_SECONDS = 7200)");
  expect(await engine.rows("SELECT id, v FROM k")).toEqual([[1, "new"]]);
  await engine.restart();
  expect(await engine.rows("SELECT id, v FROM k")).toEqual([[1, "new"]]);
});
