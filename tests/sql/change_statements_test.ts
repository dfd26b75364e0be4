/**
 * Verifies that INSERT, UPDATE and DELETE take effect completely or not at all, and tests `_seq`
 * and RETURNING.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a < 100), b VARCHAR(3) NOT NULL DEFAULT 'x')",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  await engine.run("DELETE FROM t; INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two')");
});

test("a key column that is set to itself stays unchanged", async () => {
  await engine.run("UPDATE t SET id = id, a = 5 WHERE id = 1; UPDATE t SET id = t.id WHERE id = 2");
  await engine.run(
    "INSERT INTO t VALUES (2, 7, 'z') ON CONFLICT (id) DO UPDATE SET id = EXCLUDED.id, a = EXCLUDED.a",
  );
  expect(await engine.rows("SELECT id, a, b FROM t ORDER BY id")).toEqual([
    [1, 5, "one"],
    [2, 7, "two"],
  ]);
});

test("a key that is computed anew and stays the same leaves its row unchanged", async () => {
  const before = await engine.rows("SELECT *, _seq FROM t ORDER BY id");
  await engine.run(
    "UPDATE t SET id = id + 0; UPDATE t SET id = u.id FROM t AS u WHERE u.a = t.a;" +
      "INSERT INTO t VALUES (2, 2, 'z') ON CONFLICT (id) DO UPDATE SET id = EXCLUDED.a",
  );
  expect(await engine.rows("SELECT *, _seq FROM t ORDER BY id")).toEqual(before);
});

const REFUSED: readonly (readonly [string, string])[] = [
  ["INSERT INTO t VALUES (3, 3, 'x'), (4, 400, 'x')", "CHECK_VIOLATION@1"],
  ["INSERT INTO t VALUES (3, 3, 'x'), (3, 4, 'x')", "DUPLICATE_KEY@1"],
  ["INSERT INTO t VALUES (3, 3, 'x'), (1, 4, 'x')", "DUPLICATE_KEY@1"],
  ["INSERT INTO t VALUES (3, 3, 'x'), (4, 3, NULL)", "NOT_NULL_VIOLATION@1"],
  ["INSERT INTO t VALUES (3, 3, 'x'), (4, 3, 'long')", "VALUE_TOO_LONG@1:41"],
  ["INSERT INTO t VALUES (3, 3, 'x'), (NULL, 3, 'x')", "NOT_NULL_VIOLATION@1"],
  ["INSERT INTO t VALUES (3, 300, 'x'), (4, 3, NULL)", "CHECK_VIOLATION@1"],
  ["INSERT INTO t VALUES (3, 3, NULL), (4, 300, 'x')", "NOT_NULL_VIOLATION@1"],
  [
    "INSERT INTO t SELECT g, g * 50, CASE WHEN g < 9 THEN 'x' END FROM generate_series(3, 9) g",
    "CHECK_VIOLATION@1",
  ],
  ["INSERT INTO t VALUES (3, 3, 'x'), (4, 99999999999, 'x')", "VALUE_OUT_OF_RANGE@1:38"],
  ["INSERT INTO t VALUES ((SELECT 3), 99999999999, 'x')", "VALUE_OUT_OF_RANGE@1:34"],
  ["INSERT INTO t VALUES (3, 1, 'x') RETURNING 1 / (a - 1)", "DIVISION_BY_ZERO@1"],
  ["INSERT INTO t SELECT id + 1, a, b FROM t", "DUPLICATE_KEY@1"],
  ["INSERT INTO t (id, nope) VALUES (3, 1)", "COLUMN_NOT_FOUND@1:19"],
  ["INSERT INTO t (id, id) VALUES (3, 1)", "INVALID_QUERY@1:19"],
  ["INSERT INTO t (id, _seq) VALUES (3, 1)", "SYSTEM_COLUMN@1:19"],
  ["INSERT INTO t (id) VALUES (3, 1)", "INVALID_QUERY@1:19"],
  ["INSERT INTO t (id, a) VALUES (3)", "INVALID_QUERY@1:22"],
  ["INSERT INTO t VALUES (3, 1, 'x') ON CONFLICT (a) DO NOTHING", "INVALID_QUERY@1:33"],
  ["INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET id = 2", "DUPLICATE_KEY@1"],
  ["INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT DO UPDATE SET a = 5", "INVALID_QUERY@1:33"],
  [
    "INSERT INTO t VALUES (1, 3, 'x'), (5, 1, 'x'), (5, 2, 'x') ON CONFLICT (id) DO UPDATE SET a = 9",
    "CARDINALITY_VIOLATION@1",
  ],
  [
    "INSERT INTO t VALUES (3, 3, 'x'), (1, 0, 'x') ON CONFLICT (id) DO UPDATE SET a = 100",
    "CHECK_VIOLATION@1",
  ],
  [
    "INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET a = a + 1",
    "AMBIGUOUS_COLUMN@1:68",
  ],
  [
    "INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET a = (SELECT a)",
    "AMBIGUOUS_COLUMN@1:76",
  ],
  [
    "INSERT INTO t AS s VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET a = 5 WHERE b = 'one'",
    "AMBIGUOUS_COLUMN@1:81",
  ],
  ["UPDATE t SET a = a + 98", "CHECK_VIOLATION@1"],
  ["UPDATE t SET b = NULL WHERE id = 2", "NOT_NULL_VIOLATION@1"],
  ["UPDATE t SET a = 10 / (a - 2)", "DIVISION_BY_ZERO@1:17"],
  ["UPDATE t SET a = 9 RETURNING 1 / (id - 2)", "DIVISION_BY_ZERO@1"],
  ["UPDATE t SET id = 3", "DUPLICATE_KEY@1"],
  ["UPDATE t SET id = NULL", "NOT_NULL_VIOLATION@1"],
  ["UPDATE t SET _deleted = TRUE", "SYSTEM_COLUMN@1:13"],
  ["UPDATE t SET a = 1, a = 2", "INVALID_QUERY@1:20"],
  ["UPDATE t SET a = b", "TYPE_MISMATCH@1:17"],
  ["DELETE FROM t WHERE 1 / (id - 2) = 1", "DIVISION_BY_ZERO@1"],
  ["DELETE FROM t RETURNING 1 / (id - 2)", "DIVISION_BY_ZERO@1"],
  ["INSERT INTO system.users VALUES (1)", "READ_ONLY_OBJECT@1:12"],
  ["INSERT INTO generate_series(1, 2) VALUES (1)", "READ_ONLY_OBJECT@1:12"],
  ["UPDATE generate_series(1, 2) SET a = 1", "READ_ONLY_OBJECT@1:7"],
  ["UPDATE unnest(ARRAY[1]) AS u SET a = 1", "READ_ONLY_OBJECT@1:7"],
  ["DELETE FROM generate_series(1, 2) g WHERE g = 1", "READ_ONLY_OBJECT@1:12"],
  ["DELETE FROM information_schema.tables", "READ_ONLY_OBJECT@1:12"],
];

describe("a change that fails leaves no effect", () => {
  test.each(REFUSED)("the statement %s fails with %s", async (sql, failure) => {
    const before = await engine.rows("SELECT *, _seq FROM t");
    expect(await engine.failure(sql)).toBe(failure);
    expect(await engine.rows("SELECT *, _seq FROM t")).toEqual(before);
    // A statement that follows another one in the same request takes the general path.
    const text = `SELECT 1; ${sql}`;
    expect((await engine.failure(text)).split(":")[0]).toBe(
      failure.split(":")[0]?.replace("@1", "@2") ?? "",
    );
    expect(await engine.rows("SELECT *, _seq FROM t")).toEqual(before);
  });

  test("a failed change in a transaction also undoes the statements before it", async () => {
    const before = await engine.rows("SELECT *, _seq FROM t");
    for (const [sql, failure] of REFUSED) {
      const text = `BEGIN; DELETE FROM t WHERE id = 99; ${sql}; COMMIT`;
      expect(await engine.failure(text), sql).toStartWith(failure.split("@")[0] ?? "");
    }
    expect(await engine.rows("SELECT *, _seq FROM t")).toEqual(before);
  });

  test("a failed change in a text keeps the statements before it, and none after it runs", async () => {
    const text =
      "INSERT INTO t VALUES (3, 3, 'x'); UPDATE t SET a = 100; INSERT INTO t VALUES (4, 4, 'x')";
    const { error, results } = await engine.ask(text);
    expect(results).toHaveLength(1);
    expect([error?.code, error?.statementIndex]).toEqual(["CHECK_VIOLATION", 1]);
    expect(await engine.rows("SELECT id FROM t ORDER BY id")).toEqual([[1], [2], [3]]);
  });
});

describe("_seq has the right value in statements that change rows", () => {
  test("_seq stays the same in a row that UPDATE does not change, and RETURNING shows this", async () => {
    const before = await engine.rows("SELECT id, _seq FROM t");
    expect(await engine.rows("UPDATE t SET a = a, b = b RETURNING id, _seq")).toEqual(before);
    const [entry] = await engine.run("UPDATE t SET a = a");
    expect([entry?.rowCount, entry?.lastSeq]).toEqual([2, null]);
    expect(await engine.rows("SELECT id, _seq FROM t")).toEqual(before);
  });

  test.each([1, amountOf({ usual: 5000, thorough: 20_000 })])(
    "NaN stays the same in UPDATE, and 0 differs from -0: %i rows",
    async (count) => {
      await engine.run(`CREATE TABLE f (id INT PRIMARY KEY, d DOUBLE, list DOUBLE[]);
      INSERT INTO f SELECT n, 'NaN', ARRAY['NaN'::DOUBLE] FROM generate_series(1, ${count}) AS g(n)`);
      const [same] = await engine.run("UPDATE f SET d = 'NaN', list = ARRAY['NaN'::DOUBLE]");
      expect([same?.rowCount, same?.lastSeq]).toEqual([count, null]);
      await engine.run("UPDATE f SET d = 0, list = ARRAY[0::DOUBLE]");
      await engine.run("UPDATE f SET d = '-0', list = ARRAY['-0'::DOUBLE]");
      expect(await engine.rows("SELECT DISTINCT d::TEXT, list::TEXT FROM f")).toEqual([
        ["-0", "{-0}"],
      ]);
      await engine.run("DROP TABLE f");
    },
  );

  test("_seq changes only in the rows that a statement changes", async () => {
    const [[, first] = []] = await engine.rows("SELECT id, _seq FROM t");
    const returned = await engine.rows("UPDATE t SET a = 2 RETURNING id, _seq");
    expect(returned).toEqual(await engine.rows("SELECT id, _seq FROM t ORDER BY id"));
    expect(returned[0]?.[1]).toBeGreaterThan(Number(first));
  });

  test("_seq stays the same in an upsert that changes nothing, and conditions can read it", async () => {
    const [[seq] = []] = await engine.rows("SELECT _seq FROM t WHERE id = 1");
    const upsert = "INSERT INTO t VALUES (1, 1, 'one') ON CONFLICT (id) DO UPDATE SET a =";
    expect(await engine.rows(`${upsert} t.a RETURNING _seq`)).toEqual([[seq]]);
    expect(
      await engine.rows(`${upsert} 7 WHERE _seq = ${Number(seq)} AND NOT t._deleted RETURNING a`),
    ).toEqual([[7]]);
    expect(await engine.rows(`${upsert} 8 WHERE _seq = ${Number(seq)} RETURNING a`)).toEqual([]);
  });

  test("_seq is NULL for a transaction's own changes, and unchanged rows have their stored one", async () => {
    const [[seq] = []] = await engine.rows("SELECT _seq FROM t WHERE id = 1");
    const results = await engine.run(
      "BEGIN; UPDATE t SET a = CASE id WHEN 1 THEN a ELSE 9 END RETURNING id, _seq;" +
        "SELECT id, _seq FROM t; COMMIT",
    );
    expect(results[1]?.rows).toEqual([
      [1, seq],
      [2, null],
    ]);
    expect(results[2]?.rows).toEqual([
      [1, seq],
      [2, null],
    ]);
  });
});

describe("_deleted can be read in queries and in statements that change rows", () => {
  test("_deleted in WHERE makes tombstones readable, but never changeable", async () => {
    await engine.run("DELETE FROM t WHERE id = 2");
    expect(
      await engine.rows("SELECT id, _deleted FROM t WHERE _deleted = TRUE AND id = 2"),
    ).toEqual([[2, true]]);
    expect(
      await engine.rows("SELECT id FROM t WHERE _deleted IS NOT NULL AND id < 3 ORDER BY id"),
    ).toEqual([[1], [2]]);
    for (const sql of [
      "UPDATE t SET a = 9 WHERE _deleted",
      "UPDATE t SET a = 9 WHERE id = 2 AND _deleted = TRUE",
      "DELETE FROM t WHERE _deleted OR id = 2",
    ]) {
      expect((await engine.run(sql))[0]?.rowCount, sql).toBe(0);
    }
    expect(await engine.rows("SELECT id, _deleted FROM t")).toEqual([[1, false]]);
  });

  test("_deleted in WHERE above an outer join has an effect", async () => {
    await engine.run("DELETE FROM t WHERE id = 2");
    const sql =
      "SELECT l.id, r.id FROM t l LEFT JOIN t r ON l.a < r.a + 100 WHERE r._deleted AND r.id = 2";
    expect(await engine.rows(sql)).toEqual([[1, 2]]);
  });

  test("_deleted is TRUE in the rows that DELETE returns, with the _seq of the tombstone", async () => {
    const [entry] = await engine.run("DELETE FROM t WHERE id = 1 RETURNING id, a, _seq, _deleted");
    expect(entry?.rows).toEqual([[1, 1, entry?.lastSeq, true]]);
  });

  test("_deleted in a transaction lists deleted rows, but no key that the transaction inserted", async () => {
    await engine.run("DELETE FROM t WHERE id = 1");
    const gone = "SELECT id, a, _seq IS NULL FROM t WHERE _deleted AND id IN (1, 2, 9) ORDER BY id";
    const results = await engine.run(
      `BEGIN; UPDATE t SET a = 7 WHERE id = 2; DELETE FROM t WHERE id = 2; ${gone};` +
        `INSERT INTO t VALUES (1, 5, 'new'), (9, 9, 'nil'); ${gone};` +
        `DELETE FROM t WHERE id IN (1, 9); ${gone}; COMMIT`,
    );
    const rows = results.map((entry) => entry.rows);
    expect(rows[3]).toEqual([
      [1, 1, false],
      [2, 2, true],
    ]);
    expect(rows[5]).toEqual([[2, 2, true]]);
    expect(rows[7]).toEqual(rows[3] ?? []);
    expect(await engine.rows("SELECT id, a FROM t WHERE _deleted AND id < 3 ORDER BY id")).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  test("_deleted rows are hidden from callers who may not read history", async () => {
    await engine.run(
      "CREATE USER sam INTERNAL ROLE service; CREATE TABLE h (id INT PRIMARY KEY);" +
        "INSERT INTO h VALUES (1), (2); DELETE FROM h WHERE id = 1",
    );
    engine.userId = "sam";
    expect(await engine.rows("SELECT id FROM h WHERE _deleted IS NOT NULL")).toEqual([[2]]);
    engine.userId = "root";
    expect(await engine.rows("SELECT id FROM h WHERE _deleted")).toEqual([[1]]);
  });
});

test("a deleted key may be inserted again without a conflict", async () => {
  await engine.run("DELETE FROM t WHERE id = 1; STORAGE FLUSH TABLE t");
  const sql =
    "INSERT INTO t VALUES (1, 50, 'new') ON CONFLICT (id) DO UPDATE SET a = 60 RETURNING a";
  expect(await engine.rows(sql)).toEqual([[50]]);
  expect(await engine.rows(sql)).toEqual([[60]]);
});

test("INSERT … SELECT from its own table reads the state before the statement", async () => {
  expect((await engine.run("INSERT INTO t SELECT id + 10, a, b FROM t"))[0]?.rowCount).toBe(2);
});
