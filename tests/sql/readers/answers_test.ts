/**
 * Tests statements in a reader that need rows that only the event loop has: system views, rows
 * staged by the transaction, and ids. The results are the same as on the event loop, and arrive in
 * several answers.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { JobAnswers, type JobAnswersOptions } from "../../../src/sql/readers/answers.ts";
import { TEXT } from "../../../src/types/mod.ts";
import { HeldReaders } from "../../support/held_readers.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

/** A number of rows too large for one answer. */
const MANY = 1300;

describe("a statement in a reader has the same result as on the event loop", () => {
  let here: TestEngine;
  let elsewhere: TestEngine;
  let divided: TestEngine;

  beforeAll(async () => {
    here = await TestEngine.open({ readsElsewhere: false });
    elsewhere = await TestEngine.open({ readsElsewhere: true });
    divided = await TestEngine.open({ divides: true });
    const columns = Array.from({ length: 60 }, (_, i) => `c${i} TEXT`).join(", ");
    for (const engine of [here, elsewhere, divided]) {
      await engine.run(`CREATE NAMESPACE a; CREATE USER ann INTERNAL ROLE user;
        CREATE TABLE a.t (id INT PRIMARY KEY, n INT, s TEXT) WITH (TYPE = 'SHARED');
        CREATE TABLE a.own (id INT PRIMARY KEY, s TEXT) WITH (TYPE = 'USER');
        CREATE VIEW a.names AS SELECT table_name AS name, count(*) AS columns
          FROM information_schema.columns GROUP BY table_name;
        INSERT INTO a.t SELECT g, g % 7, 'stored ' || g FROM generate_series(1, ${MANY}) AS x(g);
        INSERT INTO a.own SELECT g, 'stored ' || g FROM generate_series(1, 50) AS x(g)`);
      const tables = Array.from(
        { length: 12 },
        (_, i) => `CREATE TABLE a.wide${i} (id INT PRIMARY KEY, ${columns})`,
      );
      await engine.run(tables.join(";"));
    }
  });
  afterAll(async () => {
    for (const engine of [here, elsewhere, divided]) await engine[Symbol.asyncDispose]();
  });

  /**
   * Runs SQL on all three engines, two of which use readers. Returns the rows of all result
   * entries.
   */
  async function all(sql: string): Promise<readonly (readonly unknown[])[]> {
    const expected = await here.ask(sql);
    const told = ({ error, results }: typeof expected): unknown => [
      error?.code,
      error?.message,
      results.map(({ rows }) => rows),
    ];
    for (const engine of [elsewhere, divided]) {
      const before = engine.database.readerCounts()?.queries ?? 0;
      expect([sql, told(await engine.ask(sql))]).toEqual([sql, told(expected)]);
      expect(engine.database.readerCounts()?.queries).toBeGreaterThan(before);
    }
    return expected.results.flatMap(({ rows }) => rows ?? []);
  }

  test.each([
    "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY 1, 2",
    "SELECT data_type, count(*) FROM system.columns GROUP BY 1 ORDER BY 1",
    "SELECT name, columns FROM a.names ORDER BY name",
    "SELECT c.table_name, t.id FROM system.columns c JOIN a.t ON t.id = c.ordinal ORDER BY 1, 2 LIMIT 900",
    "SELECT t.id FROM a.t WHERE s IN (SELECT 'stored ' || ordinal FROM system.columns) ORDER BY 1",
    "SELECT t.id, (SELECT count(*) FROM system.columns c WHERE c.ordinal = t.n) FROM a.t ORDER BY 1",
    "SELECT count(*) FROM system.columns a, system.columns b WHERE a.ordinal = b.ordinal",
    "SELECT n, count(*) FROM a.t JOIN system.columns c ON c.ordinal = t.id GROUP BY n ORDER BY n",
    "SELECT user_id, storage_bytes FROM system.users ORDER BY 1",
    "SELECT table_name FROM system.columns WHERE 1 / (ordinal - 40) > 5",
    "WITH RECURSIVE w(i) AS (SELECT min(ordinal) FROM system.columns UNION ALL SELECT i + 1 FROM w WHERE i < 5) SELECT * FROM w",
  ])("over system views: %s", async (sql) => {
    await all(sql);
  });

  test("a reader sees system views as each caller sees them", async () => {
    for (const engine of [here, elsewhere, divided]) engine.userId = "ann";
    expect(await all("SELECT user_id, role FROM system.my_account")).toEqual([["ann", "user"]]);
    for (const engine of [here, elsewhere, divided]) {
      expect(await engine.failure("SELECT user_id FROM system.users")).toStartWith("PERMISSION");
      engine.userId = "root";
    }
  });

  test("a reader may repeatedly leave a view before its end", async () => {
    const sql =
      "SELECT t.id, (SELECT s.column_name FROM system.columns s WHERE s.ordinal > t.n LIMIT 1) FROM a.t WHERE id < 40 ORDER BY 1";
    await all(sql);
    await all("SELECT count(*) FROM (SELECT 1 FROM system.columns LIMIT 3) AS few");
  });

  const WRITES =
    "BEGIN; DELETE FROM a.t WHERE id % 3 = 0; UPDATE a.t SET s = 'staged ' || id WHERE id % 5 = 0;" +
    `INSERT INTO a.t SELECT g, g % 4, 'new ' || g FROM generate_series(2000, ${2000 + MANY}) AS x(g);` +
    "INSERT INTO a.t VALUES (5000, 1, 'gone'); DELETE FROM a.t WHERE id = 5000; INSERT INTO a.t VALUES (3, 3, 'again');" +
    "INSERT INTO a.own VALUES (60, 'mine'); DELETE FROM a.own WHERE id < 10;";

  const OVER_STAGED_ROWS = [
    "SELECT id, n, s FROM a.t ORDER BY id",
    "SELECT n, count(*), min(s), max(s) FROM a.t GROUP BY n ORDER BY n",
    "SELECT id, s FROM a.t WHERE id IN (3, 5, 6, 7, 2001, 5000) ORDER BY id",
    "SELECT s FROM a.t WHERE id = 2005",
    "SELECT x.id, y.s FROM a.t x JOIN a.t y ON y.id = x.id + 5 WHERE x.n = 1 ORDER BY 1",
    "SELECT o.id, o.s, t.s FROM a.own o LEFT JOIN a.t ON t.id = o.id ORDER BY 1",
    "SELECT id, _deleted FROM a.t WHERE _deleted ORDER BY id",
    "SELECT DISTINCT n FROM a.t ORDER BY n",
    "SELECT id FROM a.t ORDER BY s DESC, id LIMIT 7",
    "SELECT count(*) FROM a.t WHERE EXISTS (SELECT 1 FROM a.own o WHERE o.id = t.id)",
    "SELECT count(*) FROM a.t, system.columns c WHERE c.ordinal = t.id",
    "UPDATE a.t SET n = n + 100 WHERE id % 2 = 1 RETURNING id, n, s",
    "INSERT INTO a.t SELECT id + 10000, n, s FROM a.t ORDER BY id RETURNING id",
    "DELETE FROM a.t USING a.own o WHERE o.id = t.id RETURNING t.id",
    "INSERT INTO a.t SELECT id, 0, 'more' FROM a.t ON CONFLICT (id) DO UPDATE SET s = excluded.s RETURNING id, s",
    "UPDATE a.t SET n = 1 / (id - 2100)",
  ];

  test.each(shareOf(OVER_STAGED_ROWS, { oneOf: 6 }))("over staged rows: %s", async (sql) => {
    await all(`${WRITES} ${sql}; SELECT id, n, s FROM a.t ORDER BY id; ROLLBACK`);
  });

  test("a reader sees the staged rows of a transaction once they are committed", async () => {
    await all(`${WRITES} UPDATE a.t SET n = n + 1; COMMIT; SELECT id, n, s FROM a.t ORDER BY _seq`);
  });

  test.each([
    "INSERT INTO a.t SELECT 4000 + ordinal, count(*), max(column_name) FROM system.columns GROUP BY ordinal RETURNING id, n, s",
    "UPDATE a.t SET s = c.column_name FROM system.columns c WHERE c.ordinal = t.id AND c.table_name = 'wide3' RETURNING t.id, t.s",
    "DELETE FROM a.t WHERE id IN (SELECT ordinal FROM system.columns) RETURNING id",
  ])("with a change that reads a system view: %s", async (sql) => {
    await all(sql);
    await all("SELECT id, n, s FROM a.t ORDER BY _seq");
  });
});

test("staged rows of a table that was dropped in the meantime are read to the end", async () => {
  const readers = new HeldReaders();
  await using engine = await TestEngine.open({ heldReaders: readers, readsElsewhere: true });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY) WITH (TYPE = 'SHARED'); INSERT INTO t VALUES (1)",
  );
  readers.hold();
  const { jobCount } = readers;
  const answer = engine.ask("BEGIN; INSERT INTO t VALUES (2); SELECT sum(id) FROM t; COMMIT");
  await until(() => readers.jobCount > jobCount);
  await engine.run("DROP TABLE t");
  readers.release();
  const { error } = await answer;
  expect([error?.code, error?.statementIndex]).toEqual(["SERIALIZATION_FAILURE", 3]);
});

describe("a query in a reader can create ids", () => {
  let engine: TestEngine;

  beforeEach(async () => {
    engine = await TestEngine.open({ readsElsewhere: true });
    await engine.run(
      `CREATE TABLE t (id INT PRIMARY KEY, v BIGINT); INSERT INTO t SELECT g, 0 FROM generate_series(1, ${MANY}) AS x(g)`,
    );
  });
  afterEach(() => engine[Symbol.asyncDispose]());

  async function idsOf(sql: string): Promise<number[]> {
    return (await engine.rows(sql)).map(([id]) => Number(id));
  }

  test("ids ascend in each statement, and from one to the next, even across a restart", async () => {
    const ids: number[] = [];
    for (const restarts of [false, true, false]) {
      if (restarts) await engine.restart();
      ids.push(...(await idsOf("SELECT snowflake_id() FROM t")));
      ids.push(...(await idsOf("SELECT snowflake_id()")));
    }
    expect(ids).toHaveLength(3 * (MANY + 1));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  });

  test("ids are written by the change that takes them", async () => {
    await engine.run("UPDATE t SET v = snowflake_id()");
    await engine.run("INSERT INTO t SELECT id + 10000, snowflake_id() FROM t");
    expect(await engine.rows("SELECT count(*), count(DISTINCT v), min(v) > 0 FROM t")).toEqual([
      [2 * MANY, 2 * MANY, true],
    ]);
  });
});

describe("JobAnswers sends rows to a reader in portions", () => {
  const clock = new ManualClock();
  const options: JobAnswersOptions = {
    clock,
    store: { snowflakeId: () => 7 },
    sequences: undefined,
    objects: {
      named: () => null,
      withOid: (_, oid) => `${oid}-`,
      partitions: () => [],
      privilege: () => null,
      text: () => null,
    },
    settings: undefined,
    systemViews: new Map(),
    caller: { userId: "ann", role: "user", isImpersonated: false },
    stagedOf: () => [],
  };

  /**
   * Returns answers that serve the rows of the view `v`, and records whether its rows were
   * released.
   */
  function over(portions: () => Iterable<readonly (readonly (string | null)[])[]>): JobAnswers {
    const view = { columns: [{ name: "x", type: TEXT }], isOpen: true, rows: portions };
    return new JobAnswers({ ...options, systemViews: new Map([["s.v", view]]) });
  }

  const question = { kind: "system", reading: 1, name: "s.v", positions: [1] } as const;

  function lengthsOf(answers: JobAnswers): number[] {
    const lengths: number[] = [];
    for (
      let rows = answers.answer(question);
      Array.isArray(rows);
      rows = answers.answer(question)
    ) {
      lengths.push(rows.length);
    }
    return lengths;
  }

  test("JobAnswers splits a portion that is long or large, and joins short ones", () => {
    const row = ["a", "b"];
    const long = over(() => [Array.from({ length: 1100 }, () => row)]);
    expect(lengthsOf(long)).toEqual([512, 512, 76]);
    const heavy = over(() => [Array.from({ length: 5 }, () => ["a", "b".repeat(200_000)])]);
    expect(lengthsOf(heavy)).toEqual([2, 2, 1]);
    expect(lengthsOf(over(() => [[row], [], [row, row]]))).toEqual([3]);
    expect(lengthsOf(over(() => []))).toEqual([]);
  });

  test("JobAnswers returns the requested columns", () => {
    expect(over(() => [[["a", "b", "c"]]]).answer(question)).toEqual([["b"]]);
  });

  test("JobAnswers returns parts while rows arrive slowly", () => {
    const slow = over(function* () {
      for (let step = 0; step < 3; step += 1) {
        clock.advance(2);
        yield step === 1 ? [["a", "b"]] : [];
      }
    });
    expect(lengthsOf(slow)).toEqual([0, 1, 0]);
  });

  test("JobAnswers releases scans that are abandoned, and all of them at the end", () => {
    let open = 0;
    const answers = over(function* () {
      open += 1;
      try {
        for (;;) yield Array.from({ length: 600 }, () => ["a", "b"]);
      } finally {
        open -= 1;
      }
    });
    for (const reading of [1, 2, 3]) answers.answer({ ...question, reading });
    expect(open).toBe(3);
    answers.leave(2);
    answers.leave(9);
    expect(open).toBe(2);
    answers.close();
    expect(open).toBe(0);
  });

  test("JobAnswers returns staged rows as a scan does", () => {
    const staged: ReturnType<JobAnswersOptions["stagedOf"]> = [
      ["kept", { row: [1, "new"], isDeleted: false, stored: [1, "old"] }],
      ["gone", { row: [2, "new"], isDeleted: true, stored: [2, "old"] }],
      ["never", { row: [3, "new"], isDeleted: true, stored: undefined }],
    ];
    const answers = new JobAnswers({ ...options, stagedOf: () => staged });
    const about = { kind: "staged", reading: 1, tableId: 4 } as const;
    expect(answers.answer(about)).toEqual([
      ["kept", { row: [1, "new"], isDeleted: false, stored: undefined }],
      ["gone", { row: [2, "old"], isDeleted: true, stored: [2, "old"] }],
      ["never", { row: [], isDeleted: true, stored: undefined }],
    ]);
    expect(answers.answer(about)).toBeUndefined();
  });

  test("JobAnswers returns as many ids as requested, and fails if they cannot be reserved", () => {
    const answers = new JobAnswers(options);
    expect(answers.answer({ kind: "ids", count: 3 })).toEqual([7, 7, 7]);
    const full = new JobAnswers({
      ...options,
      store: {
        snowflakeId: () => {
          throw new DatabaseError("DISK_FULL", "Cannot reserve ids: the disk is full");
        },
      },
    });
    expect(() => full.answer({ kind: "ids", count: 1 })).toThrow("Cannot reserve ids");
  });
});
