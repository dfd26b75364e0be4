/**
 * Tests `changes('ns.t', from_seq [, to_seq])`, which returns every version of a table between two
 * seqs. The tests read on the event loop and in readers, from memory, segments and history. They
 * also cover the rights that callers need, and seqs whose history is gone.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ManualClock } from "../support/manual_clock.ts";
import { type EngineOptions, TestEngine } from "../support/sql_engine.ts";

const PLACES: readonly (readonly [string, EngineOptions])[] = [
  ["on the event loop", { readsElsewhere: false }],
  ["in a reader", { readsElsewhere: true }],
  ["in three readers", { divides: true }],
  ["in threads", { inThreads: true }],
];

const READ = "SELECT op, key->>'id', old->>'v', new->>'v' FROM changes('app.t', $1)";

const EXPECTED = [
  ["insert", "1", null, "one"],
  ["insert", "2", null, "two"],
  ["update", "1", "one", "ONE"],
  ["update", "2", "two", "TWO"],
  ["delete", "2", "TWO", null],
  ["insert", "2", null, "again"],
];

for (const [place, options] of PLACES) {
  test(`changes() ${place} returns all versions, wherever they are stored`, async () => {
    await using engine = await TestEngine.open({ clock: new ManualClock(), ...options });
    await engine.run("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v TEXT)");
    const start = engine.database.store.visibleSeq;
    const read = (from: number, to?: number): Promise<readonly (readonly unknown[])[]> =>
      to === undefined
        ? engine.rows(READ, { params: [from] })
        : engine.rows(READ.replace("$1", "$1, $2"), { params: [from, to] });
    await engine.run("INSERT INTO app.t VALUES (1, 'one'), (2, 'two')");
    const inserted = engine.database.store.visibleSeq;
    await engine.run("UPDATE app.t SET v = upper(v) WHERE TRUE");
    expect(await read(start)).toEqual(EXPECTED.slice(0, 4));
    await engine.run("STORAGE FLUSH TABLE app.t");
    await engine.run("DELETE FROM app.t WHERE id = 2");
    await engine.run("STORAGE FLUSH TABLE app.t; STORAGE COMPACT TABLE app.t");
    await engine.run("INSERT INTO app.t VALUES (2, 'again')");
    expect(await read(start)).toEqual(EXPECTED);
    expect(await read(inserted)).toEqual(EXPECTED.slice(2));
    expect(await read(inserted - 1)).toEqual(EXPECTED.slice(1));
    const seqs = await engine.rows("SELECT _seq FROM changes('app.t', $1)", { params: [start] });
    const third = Number(seqs[2]?.[0]);
    expect(await read(inserted - 1, third)).toEqual(EXPECTED.slice(1, 3));
    expect(await read(inserted - 1, third - 1)).toEqual(EXPECTED.slice(1, 2));
    expect(await read(inserted, inserted)).toEqual([]);
    const counts = await engine.rows(
      "SELECT op, count(*), min(_seq) > $1 FROM changes('app.t', $1) GROUP BY op ORDER BY op",
      { params: [start] },
    );
    expect(counts).toEqual([
      ["delete", 1, true],
      ["insert", 3, true],
      ["update", 2, true],
    ]);
  });
}

describe("the table function changes() returns versions", () => {
  let engine: TestEngine;

  beforeAll(async () => {
    engine = await TestEngine.open();
    await engine.run(
      "CREATE NAMESPACE app; CREATE TABLE app.t (a INT, b TEXT, n NUMERIC(5,1), PRIMARY KEY (a, b))" +
        " WITH (ACCESS_LEVEL = 'PUBLIC'); CREATE TABLE app.bare (v INT);" +
        "CREATE USER TABLE app.mine (id INT PRIMARY KEY);" +
        "CREATE STREAM TABLE app.feed (id INT) WITH (TTL_SECONDS = 60);" +
        "CREATE VIEW app.seen AS SELECT * FROM app.t; CREATE USER alice WITH INTERNAL;" +
        "INSERT INTO app.t VALUES (1, 'x', 2.5); INSERT INTO app.bare VALUES (7);" +
        "INSERT INTO app.mine VALUES (1)",
    );
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  test("changes() has the declared columns as JSON, the time of the commit, and names from the alias", async () => {
    expect(
      await engine.rows(
        "SELECT c.key, c.new, c.old, c.changed_at = seq_time(c._seq) FROM changes('app.t', 0) AS c",
      ),
    ).toEqual([['{"a": 1, "b": "x"}', '{"a": 1, "b": "x", "n": 2.5}', null, true]]);
    expect(await engine.rows("SELECT new FROM changes('app.bare', 0)")).toEqual([['{"v": 7}']]);
    expect(await engine.rows("SELECT o FROM changes('app.t', 0) AS c (s, o)")).toEqual([
      ["insert"],
    ]);
    expect(
      await engine.rows(
        "USE app; SELECT t.a, c.op FROM t JOIN changes('T', 0) c ON (c.key->>'a')::int = t.a",
      ),
    ).toEqual([[1, "insert"]]);
  });

  test("changes() does not include uncommitted changes of a transaction", async () => {
    const results = await engine.run(
      "BEGIN; INSERT INTO app.bare VALUES (8); SELECT count(*) FROM changes('app.bare', 0); ROLLBACK",
    );
    expect(results.at(-2)?.rows).toEqual([[1]]);
  });

  test("changes() is available to the owner of the rows, and to administrators of the table", async () => {
    engine.userId = "alice";
    const shared = await engine.failure("SELECT * FROM changes('app.t', 0)");
    const own = await engine.rows("SELECT * FROM changes('app.mine', 0)");
    engine.userId = "root";
    expect([shared, own]).toEqual(["PERMISSION_DENIED@1", []]);
    expect(await engine.rows("SELECT key FROM changes('app.mine', 0)")).toEqual([['{"id": 1}']]);
  });

  test.each([
    ["changes('app.t')", "INVALID_QUERY@1:14"],
    ["changes()", "INVALID_QUERY@1:14"],
    ["changes($1, 0)", "INVALID_QUERY@1:14"],
    ["changes('app.t', 0, 1, 2)", "INVALID_QUERY@1:14"],
    ["changes('app.nothing', 0)", "TABLE_NOT_FOUND@1:22"],
    ["changes('a.b.c', 0)", "INVALID_NAME@1"],
    ["changes('app.feed', 0)", "INVALID_OPERATION@1:22"],
    ["changes('app.seen', 0)", "INVALID_OPERATION@1:22"],
    ["changes('system.tables', 0)", "INVALID_OPERATION@1:22"],
    ["changes('app.t', TRUE)", "TYPE_MISMATCH@1:31"],
    ["changes('app.t', -1)", "VALUE_OUT_OF_RANGE@1"],
    ["changes('app.t', NULL::bigint)", "VALUE_OUT_OF_RANGE@1"],
    ["changes('app.t', 9007199254740991)", "VALUE_OUT_OF_RANGE@1"],
    ["changes('app.t', 0, 9007199254740991)", "VALUE_OUT_OF_RANGE@1"],
    ["changes('app.t', 0) WITH ORDINALITY", "INVALID_QUERY@1:14"],
    ["ROWS FROM (changes('app.t', 0))", "INVALID_QUERY@1:25"],
  ])("%s is refused", async (call, failure) => {
    expect(
      await engine.failure(`SELECT * FROM ${call}`, {
        params: ["app.t"].slice(0, call.includes("$1") ? 1 : 0),
      }),
    ).toBe(failure);
  });
});

test("changes() is refused, rather than read in part, if history was discarded", async () => {
  const clock = new ManualClock();
  await using engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (DELETED_RETENTION_HOURS = 1);" +
      "INSERT INTO t VALUES (1, 1); UPDATE t SET v = 2 WHERE id = 1; STORAGE FLUSH TABLE t",
  );
  clock.advance(3 * 3_600_000);
  await engine.run("INSERT INTO t VALUES (3, 3); STORAGE FLUSH TABLE t; STORAGE COMPACT TABLE t");
  const sql = "SELECT op, new->>'id' FROM changes('t', $1)";
  const { error } = await engine.ask(sql, { params: [0] });
  expect(error?.code).toBe("HISTORY_TOO_OLD");
  expect(await engine.rows(sql, { params: [error?.earliestSeq ?? 0] })).toEqual([["insert", "3"]]);
});
