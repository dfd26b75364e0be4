/**
 * Tests queries in the VALUES, ON CONFLICT and RETURNING clauses of a change. A reader runs such a
 * query if it takes a long time. Its result is the same as on the event loop, which stays free in
 * the meantime.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { HeldReaders } from "../../support/held_readers.ts";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

const SETUP = `CREATE NAMESPACE e;
  CREATE TABLE e.t (id INT PRIMARY KEY, v INT DEFAULT 7, s TEXT) WITH (TYPE = 'SHARED');
  CREATE TABLE e.u (id INT PRIMARY KEY, n INT CHECK (n < 100000), f FILE) WITH (TYPE = 'SHARED');
  CREATE TABLE e.k (n INT, s TEXT) WITH (TYPE = 'STREAM', TTL_SECONDS = 86400);
  INSERT INTO e.t SELECT g, g % 5, 's' || g FROM generate_series(1, 900) g;
  INSERT INTO e.u SELECT g, g FROM generate_series(1, 300) g`;

function file(name: string): RequestParts {
  const bytes = new TextEncoder().encode(`bytes of ${name}`);
  return { files: new Map([[name, { name: `${name}.txt`, mime: "text/plain", bytes }]]) };
}

describe("evaluations in a reader have the result of the event loop", () => {
  let here: TestEngine;
  let elsewhere: TestEngine;

  beforeAll(async () => {
    here = await TestEngine.open({ readsElsewhere: false });
    elsewhere = await TestEngine.open({ readsElsewhere: true });
    await here.run(SETUP);
    await elsewhere.run(SETUP);
  });
  afterAll(async () => {
    await here[Symbol.asyncDispose]();
    await elsewhere[Symbol.asyncDispose]();
  });

  /** Runs SQL on both engines. The results and the remaining rows must be the same. */
  async function both(sql: string, parts: RequestParts = {}): Promise<void> {
    const told = async (engine: TestEngine): Promise<unknown> => {
      const { error, results } = await engine.ask(sql, parts);
      const failure = error && [error.code, error.message, error.position];
      return [failure, results.map(({ rows, schema, rowCount }) => [rows, schema, rowCount])];
    };
    expect([sql, await told(elsewhere)]).toEqual([sql, await told(here)]);
    for (const rows of [
      "SELECT id, v, s FROM e.t ORDER BY _seq",
      "SELECT id, n, f IS NULL FROM e.u ORDER BY id",
      "SELECT n, s FROM e.k ORDER BY _seq",
    ]) {
      expect([sql, await elsewhere.rows(rows)]).toEqual([sql, await here.rows(rows)]);
    }
    expect(elsewhere.storedFiles().length).toBe(here.storedFiles().length);
  }

  test.each([
    "INSERT INTO e.t VALUES ((SELECT max(id) + 1 FROM e.t), DEFAULT, 'a'), (-1, (SELECT count(*) FROM e.u), (SELECT max(s) FROM e.t))",
    "INSERT INTO e.t (s, id) VALUES ((SELECT min(s) FROM e.t), -2) RETURNING id, v, s",
    "INSERT INTO e.t VALUES (-3, 1, 'x'), (-4, 2, 'y') RETURNING id, (SELECT count(*) FROM e.t), (SELECT count(*) FROM e.u WHERE u.id <= t.v)",
    "INSERT INTO e.t SELECT id + 5000, v, s FROM e.t WHERE id > 0 RETURNING id, (SELECT count(*) FROM e.t o WHERE o.id = t.id - 5000), (SELECT max(n) FROM e.u)",
    "INSERT INTO e.k VALUES (1, 'a'), ((SELECT max(id) FROM e.t), 'b') RETURNING n, (SELECT count(*) FROM e.k)",
    "UPDATE e.t SET v = v + 1 WHERE id < 700 RETURNING id, v, (SELECT sum(o.v) FROM e.t o WHERE o.id = t.id), v + (SELECT min(n) FROM e.u)",
    "UPDATE e.t SET v = u.n FROM e.u WHERE u.id = t.id RETURNING t.id, u.n, (SELECT max(id) FROM e.t o WHERE o.v = u.n)",
    "DELETE FROM e.t WHERE id > 5000 RETURNING id, (SELECT count(*) FROM e.t o WHERE o.id >= t.id), ARRAY(SELECT n FROM e.u WHERE n < 4 ORDER BY n)",
    "DELETE FROM e.k WHERE n = 1 RETURNING (SELECT count(*) FROM e.k)",
    // In RETURNING, `_seq` is that of the new version, but a subquery still reads the earlier
    // rows.
    "UPDATE e.t SET v = 3 WHERE id BETWEEN 10 AND 500 RETURNING id, (SELECT count(*) FROM e.t o WHERE o._seq < t._seq), _seq IS NULL, _deleted",
    "INSERT INTO e.t VALUES (1, 90, 'up'), (-9, 1, 'new') ON CONFLICT (id) DO UPDATE SET v = (SELECT count(*) FROM e.u), s = excluded.s || (SELECT max(o.s) FROM e.t o WHERE o.v = t.v) RETURNING id, v, s, _seq IS NULL",
    "INSERT INTO e.t SELECT id + 2, 50, NULL FROM e.t ON CONFLICT (id) DO UPDATE SET v = (SELECT max(n) FROM e.u WHERE u.id = excluded.id - 2), s = DEFAULT WHERE EXISTS (SELECT FROM e.u WHERE u.id = t.id) RETURNING id, v, s, (SELECT sum(v) FROM e.t)",
    "INSERT INTO e.t SELECT id, 50, NULL FROM e.t ON CONFLICT (id) DO UPDATE SET v = 0 WHERE t.v > (SELECT max(n) FROM e.u)",
    "INSERT INTO e.t SELECT id, 50, NULL FROM e.t ON CONFLICT (id) DO NOTHING RETURNING (SELECT 1 / 0)",
    // Rows that precede the first conflict are written before the rows that follow it.
    `INSERT INTO e.k SELECT g, (SELECT max(s) FROM e.t WHERE id < g) FROM generate_series(1, 300) g RETURNING n, (SELECT min(id) FROM e.t)`,
    `INSERT INTO e.t (id) VALUES ${Array.from({ length: 600 }, (_, i) => `(${700 - i})`).join(", ")}
      ON CONFLICT (id) DO UPDATE SET v = (SELECT max(n) FROM e.u) + excluded.id RETURNING id, v, (SELECT count(*) FROM e.u)`,
    // A subquery that is not evaluated for any row does not fail.
    "INSERT INTO e.t VALUES (-20, 1, 'x') ON CONFLICT (id) DO UPDATE SET v = (SELECT 1 / 0)",
    "INSERT INTO e.t VALUES (-20, 1, 'x') ON CONFLICT (id) DO UPDATE SET v = 8 WHERE t.v = 1 OR (SELECT 1 / 0) = 1",
    "INSERT INTO e.t VALUES (-20, 1, 'x') ON CONFLICT (id) DO UPDATE SET v = (SELECT 1 / (t.v - 8))",
    "INSERT INTO e.t VALUES (-20, 1, 'x') ON CONFLICT (id) DO UPDATE SET v = (SELECT id FROM e.t)",
    "UPDATE e.t SET v = 1 WHERE id = 77777 RETURNING (SELECT 1 / 0)",
    "UPDATE e.t SET v = 1 WHERE id < 4 RETURNING CASE WHEN id > 3 THEN (SELECT 1 / 0) ELSE (SELECT 5) END",
    "UPDATE e.t SET v = 1 WHERE id < 4 RETURNING (SELECT 1 / (t.id - 3))",
    "DELETE FROM e.t WHERE id < 4 RETURNING (SELECT id FROM e.t)",
    "INSERT INTO e.t VALUES (-30, (SELECT 1), 'x'), (-31, (SELECT 2), 'x'), (-32, (SELECT 99999999999), 'x')",
    "INSERT INTO e.t VALUES (-30, (SELECT 1), 'x'), (-31, (SELECT id FROM e.t), 'x')",
    "INSERT INTO e.u VALUES (-30, (SELECT 99999), NULL), (-31, (SELECT 100000), NULL)",
    "INSERT INTO e.t VALUES (-40, (SELECT 1), 'x'), (-40, (SELECT 1), 'y')",
    // A transaction sees what its earlier statements have staged.
    `BEGIN; DELETE FROM e.t WHERE id < 100;
      INSERT INTO e.t VALUES (-50, (SELECT count(*) FROM e.t), 'x'), (100, 0, (SELECT min(s) FROM e.t))
        ON CONFLICT (id) DO UPDATE SET v = (SELECT count(*) + 1 FROM e.t) RETURNING *, (SELECT count(*) FROM e.t);
      UPDATE e.t SET v = 0 WHERE id < 110 RETURNING id, (SELECT count(*) FROM e.t o WHERE o.v = 0), _seq; COMMIT`,
    "BEGIN; INSERT INTO e.u VALUES ((SELECT 5000), 1, NULL) RETURNING (SELECT count(*) FROM e.u); ROLLBACK",
    "EXPLAIN INSERT INTO e.u VALUES ((SELECT 5000), 1, NULL) RETURNING (SELECT count(*) FROM e.u)",
  ])("%s", (sql) => both(sql));

  test("a change with files has the same result", async () => {
    const insert = "INSERT INTO e.u VALUES (-1, (SELECT count(*) FROM e.t), FILE('a'))";
    await both(`${insert} RETURNING id, n, (SELECT max(id) FROM e.u)`, file("a"));
    await both(insert, file("a"));
    await both(
      "UPDATE e.u SET f = FILE('b') WHERE id = 4 RETURNING id, (SELECT count(*) FROM e.t), (SELECT 1 / (u.id - 4))",
      file("b"),
    );
    await both("UPDATE e.u SET f = FILE('b') WHERE n IN (SELECT v FROM e.t) AND n = 3", file("b"));
    await both("UPDATE e.u SET f = FILE('c') WHERE id < 3", file("c"));
    await both(
      "INSERT INTO e.u VALUES (9, 1, NULL) ON CONFLICT (id) DO UPDATE SET f = FILE('d'), n = (SELECT max(n) FROM e.u) RETURNING n",
      file("d"),
    );
    await both(
      "BEGIN; INSERT INTO e.u VALUES (-5, (SELECT count(*) FROM e.u), FILE('e')); COMMIT",
      file("e"),
    );
  });

  test("ids come from the event loop, and each row has its own", async () => {
    const rows = await elsewhere.rows(
      "INSERT INTO e.k VALUES (1, (SELECT SNOWFLAKE_ID())), (2, (SELECT SNOWFLAKE_ID()::TEXT)) RETURNING s, (SELECT SNOWFLAKE_ID() + k.n * 0)::TEXT",
    );
    expect(new Set(rows.flat()).size).toBe(4);
  });

  test("EXPLAIN ANALYZE counts the reader", async () => {
    const [[text] = []] = await elsewhere.rows(
      "EXPLAIN (ANALYZE, FORMAT JSON) INSERT INTO e.t VALUES (-60, (SELECT 1), 'x') RETURNING (SELECT count(*) FROM e.t)",
    );
    expect(JSON.parse(String(text))).toMatchObject({ node: "Insert", rows: 1, readers: [{}] });
  });
});

/** A query that takes longer than any test waits. */
const ENDLESS = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
const ENDLESS_OF = (value: string): string => `${ENDLESS} WHERE a.a + b.b > ${value}`;

const FORMS: readonly (readonly [string, string, RequestParts?])[] = [
  ["rows of VALUES", `INSERT INTO e.t VALUES (-1, 1, 'x'), (-2, (${ENDLESS}), 'y')`],
  ["VALUES with DEFAULT", `INSERT INTO e.t VALUES (-1, DEFAULT, (${ENDLESS}))`],
  ["VALUES with FILE", `INSERT INTO e.u VALUES (-1, (${ENDLESS}), FILE('a'))`, file("a")],
  ["RETURNING of VALUES", `INSERT INTO e.t VALUES (-1, 1, 'x') RETURNING (${ENDLESS})`],
  [
    "RETURNING of VALUES, for each row",
    `INSERT INTO e.t VALUES (-1, 1, 'x') RETURNING (${ENDLESS_OF("t.id")})`,
  ],
  [
    "RETURNING of INSERT … SELECT",
    `INSERT INTO e.t SELECT id + 1000, 1, s FROM e.t RETURNING (${ENDLESS})`,
  ],
  ["RETURNING of UPDATE", `UPDATE e.t SET v = 9 WHERE id = 1 RETURNING (${ENDLESS_OF("t.v")})`],
  ["RETURNING with _seq", `UPDATE e.t SET v = 9 RETURNING (${ENDLESS_OF("t._seq")})`],
  ["RETURNING of DELETE", `DELETE FROM e.t WHERE id < 50 RETURNING (${ENDLESS_OF("t.v")})`],
  ["DO UPDATE SET", `INSERT INTO e.t VALUES (1) ON CONFLICT (id) DO UPDATE SET v = (${ENDLESS})`],
  [
    "DO UPDATE … WHERE",
    `INSERT INTO e.t SELECT id, 8 FROM e.t ON CONFLICT (id) DO UPDATE SET v = 9 WHERE t.v < (${ENDLESS_OF("excluded.v")})`,
  ],
  [
    "a transaction",
    `BEGIN; DELETE FROM e.t; INSERT INTO e.t VALUES ((${ENDLESS}), 1), (2, 1); COMMIT`,
  ],
];

describe("the event loop stays free during long evaluations", () => {
  let engine: TestEngine;

  beforeAll(async () => {
    const config = "server.workers = 1";
    engine = await TestEngine.open({ clock: systemClock, inThreads: true, config });
    await engine.run(SETUP);
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  const state = (): Promise<readonly (readonly unknown[])[]> =>
    engine.rows(
      "SELECT count(*), sum(v), max(_seq) FROM e.t UNION ALL SELECT count(*), 0, 0 FROM e.u",
    );

  test.each(shareOf(FORMS, { oneOf: 4 }))(
    "the event loop stays free for KILL, next to %s",
    async (_name, sql, parts = {}) => {
      const before = await state();
      const ended: Promise<SqlResponse> = engine.ask(sql, parts);
      const running = "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.queries%'";
      const [queryId] = (await engine.rows(running)).flat();
      await engine.run(`KILL QUERY '${String(queryId)}'`);
      expect((await ended).error?.code).toBe("CANCELLED");
      expect(await state()).toEqual(before);
      expect(engine.storedFiles()).toEqual([]);
    },
  );

  test.each(shareOf(FORMS, { oneOf: 6 }))(
    "the event loop stays free, and %s ends at its time limit",
    async (_name, sql, parts = {}) => {
      const before = await state();
      const { error } = await engine.ask(sql, { ...parts, timeoutMs: 30 });
      expect(error?.code).toBe("STATEMENT_TIMEOUT");
      expect(await state()).toEqual(before);
    },
  );

  test("the only reader is free again afterwards", async () => {
    const rows = await engine.rows(
      "UPDATE e.t SET v = 9 WHERE id < 3 RETURNING id, (SELECT count(*) FROM generate_series(1, 300000) g WHERE g % 7 = t.id)",
    );
    expect(rows).toEqual([
      [1, 42858],
      [2, 42857],
    ]);
    expect(engine.database.readerCounts()).toMatchObject({ busy: 0, waiting: 0 });
  });
});

describe("a reader thread that fails does not fail the change", () => {
  const upsert =
    "INSERT INTO e.t VALUES (1, 5, 'x') ON CONFLICT (id) DO UPDATE SET v = (SELECT count(*) FROM e.u) + t.v RETURNING v, (SELECT count(*) FROM e.t)";

  test("a reader that exits early ends the change, which has written nothing", async () => {
    const heldReaders = new HeldReaders();
    await using engine = await TestEngine.open({ heldReaders, readsElsewhere: true });
    await engine.run(SETUP);
    heldReaders.hold();
    const { jobCount } = heldReaders;
    const ended = engine.ask(upsert);
    await until(() => heldReaders.jobCount > jobCount);
    heldReaders.failAll();
    expect((await ended).error?.code).toBe("INTERNAL_ERROR");
    heldReaders.release();
    expect(await engine.rows("SELECT v FROM e.t WHERE id = 1")).toEqual([[1]]);
    expect(await engine.rows(upsert)).toEqual([[301, 900]]);
  });

  test("a reader that cannot start leaves the change to the event loop", async () => {
    const heldReaders = new HeldReaders();
    heldReaders.isRefusing = true;
    await using engine = await TestEngine.open({ heldReaders, readsElsewhere: true });
    await engine.run(SETUP);
    expect(await engine.rows(upsert)).toEqual([[301, 900]]);
    heldReaders.isRefusing = false;
    heldReaders.isFailingStarts = true;
    expect(await engine.rows(upsert)).toEqual([[601, 900]]);
  });

  test("a reader evaluates rows again that were changed in the meantime", async () => {
    const heldReaders = new HeldReaders();
    await using engine = await TestEngine.open({ heldReaders, readsElsewhere: true });
    await engine.run(SETUP);
    heldReaders.hold();
    const { jobCount } = heldReaders;
    const ended = engine.ask(upsert);
    await until(() => heldReaders.jobCount > jobCount);
    await engine.run("INSERT INTO e.t VALUES (1, 5, 'x') ON CONFLICT (id) DO UPDATE SET v = 1000");
    heldReaders.release();
    expect((await ended).results.at(-1)?.rows).toEqual([[1300, 900]]);
  });
});
