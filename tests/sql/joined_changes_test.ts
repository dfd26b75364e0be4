/**
 * Tests changes that read other rows: UPDATE … FROM, DELETE … USING, INSERT with a query, and
 * subqueries in every clause of a change.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT DEFAULT 'none');" +
      "CREATE TABLE s (k INT PRIMARY KEY, v INT, w TEXT);" +
      "CREATE TABLE pair (x INT, y TEXT, n INT, PRIMARY KEY (x, y))",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  await engine.run(
    "DELETE FROM t; INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three');" +
      "DELETE FROM s; INSERT INTO s VALUES (2, 200, 'zwei'), (3, 300, 'drei'), (4, 400, 'vier');" +
      "DELETE FROM pair; INSERT INTO pair VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3)",
  );
});

const all = () => engine.rows("SELECT id, a, b FROM t ORDER BY id");

describe("UPDATE with FROM changes matching rows", () => {
  test("UPDATE … FROM uses the values of the matching row, and leaves other rows unchanged", async () => {
    const [entry] = await engine.run("UPDATE t SET a = v, b = w FROM s WHERE k = id");
    expect([entry?.rowCount, entry?.message]).toEqual([2, "Updated 2 row(s)"]);
    expect(await all()).toEqual([
      [1, 10, "one"],
      [2, 200, "zwei"],
      [3, 300, "drei"],
    ]);
  });

  test("RETURNING can name both sides: the new row, and the other row as it was joined", async () => {
    const rows = await engine.rows(
      "UPDATE t SET a = t.a + s.v FROM s WHERE s.k = t.id RETURNING t.*, s.v, s.*, upper(w) || a",
    );
    expect(rows.map((row) => row.toSpliced(3, 2))).toEqual([
      [2, 220, "two", 200, 2, 200, "zwei", expect.anything(), false, "ZWEI220"],
      [3, 330, "three", 300, 3, 300, "drei", expect.anything(), false, "DREI330"],
    ]);
  });

  test("RETURNING * returns the columns of the table, then those of FROM, then the system columns", async () => {
    const [entry] = await engine.run(
      "UPDATE t SET a = 0 FROM (VALUES (1, 'x')) f (k, x) WHERE k = id RETURNING *",
    );
    expect(entry?.schema?.map(({ name }) => name)).toEqual([
      "id",
      "a",
      "b",
      "k",
      "x",
      "_seq",
      "_deleted",
    ]);
    expect(entry?.rows?.[0]?.slice(0, 5)).toEqual([1, 0, "one", 1, "x"]);
  });

  test("UPDATE … FROM changes a row once even if it has several matches", async () => {
    const [entry] = await engine.run(
      "UPDATE t SET a = t.a + 1 FROM pair, s WHERE pair.x = t.id RETURNING id, a",
    );
    expect([entry?.rowCount, entry?.rows]).toEqual([
      2,
      [
        [1, 11],
        [2, 21],
      ],
    ]);
    // The UPDATE compares both columns of the key.
    const [second] = await engine.run("UPDATE pair SET n = n + 10 FROM s");
    expect(second?.rowCount).toBe(3);
    expect(await engine.rows("SELECT n FROM pair ORDER BY n")).toEqual([[11], [12], [13]]);
  });

  test("UPDATE accepts joins in FROM, a query in FROM, WITH, and the table itself under another name", async () => {
    await engine.run(
      "UPDATE t SET b = coalesce(y, 'alone') FROM s LEFT JOIN pair ON pair.x = s.k WHERE s.k = t.id",
    );
    expect(await all()).toEqual([
      [1, 10, "one"],
      [2, 20, "a"],
      [3, 30, "alone"],
    ]);
    await engine.run(
      "UPDATE t SET a = total FROM (SELECT x, sum(n) AS total FROM pair GROUP BY x) q WHERE q.x = t.id",
    );
    expect(await engine.rows("SELECT a FROM t ORDER BY id")).toEqual([[3], [3], [30]]);
    await engine.run(
      "WITH twice AS (SELECT id, a * 2 AS a FROM t) UPDATE t SET a = twice.a FROM twice WHERE twice.id = t.id",
    );
    expect(await engine.rows("SELECT a FROM t ORDER BY id")).toEqual([[6], [6], [60]]);
    await engine.run("UPDATE t SET a = o.a FROM t o WHERE o.id = t.id % 3 + 1");
    expect(await engine.rows("SELECT a FROM t ORDER BY id")).toEqual([[6], [60], [6]]);
  });

  test("DEFAULT, row assignments and subqueries can read the joined row", async () => {
    const rows = await engine.rows(
      "UPDATE t SET b = DEFAULT, a = (SELECT count(*) FROM pair WHERE n < s.v / 100) FROM s " +
        "WHERE s.k = t.id RETURNING id, a, b, (SELECT max(n) FROM pair WHERE x = k)",
    );
    expect(rows).toEqual([
      [2, 1, "none", 3],
      [3, 2, "none", null],
    ]);
    expect(
      await engine.rows(
        "UPDATE t SET (a, b) = (SELECT v + t.a, w || f.m FROM s WHERE k = t.id) " +
          "FROM (VALUES ('!')) f (m) WHERE t.id = 2 RETURNING a, b",
      ),
    ).toEqual([[201, "zwei!"]]);
  });

  test("UPDATE … FROM sees own writes and tombstones as SELECT does", async () => {
    const results = await engine.run(
      "BEGIN; INSERT INTO t VALUES (4, 40, 'new'); DELETE FROM s WHERE k = 2;" +
        "UPDATE t SET a = v FROM s WHERE k = id RETURNING id, a; SELECT id, a FROM t ORDER BY id; COMMIT",
    );
    expect(results[3]?.rows).toEqual([
      [3, 300],
      [4, 400],
    ]);
    expect(results[4]?.rows).toEqual([
      [1, 10],
      [2, 20],
      [3, 300],
      [4, 400],
    ]);
    expect(
      await engine.rows("UPDATE t SET b = w FROM s WHERE k = id AND s._deleted RETURNING id, b"),
    ).toEqual([[2, "zwei"]]);
  });

  test("UPDATE … FROM that runs again changes nothing and writes no version", async () => {
    const sql = "UPDATE t SET a = v FROM s WHERE k = id";
    await engine.run(sql);
    const before = await engine.rows("SELECT id, _seq FROM t ORDER BY id");
    const [entry] = await engine.run(sql);
    expect([entry?.rowCount, entry?.lastSeq]).toEqual([2, null]);
    expect(await engine.rows("SELECT id, _seq FROM t ORDER BY id")).toEqual(before);
  });
});

describe("DELETE with USING deletes matching rows", () => {
  test("DELETE … USING counts each row once, and RETURNING can name both sides", async () => {
    const [entry] = await engine.run("DELETE FROM t USING pair WHERE pair.x = t.id RETURNING t.id");
    expect([entry?.rowCount, entry?.rows]).toEqual([2, [[1], [2]]]);
    expect(
      await engine.rows(
        "DELETE FROM t AS d USING s JOIN (VALUES (3, 'three')) f (k, x) USING (k) " +
          "WHERE k = d.id RETURNING d.b = f.x, s.w, d._deleted, k",
      ),
    ).toEqual([[true, "drei", true, 3]]);
    expect(await all()).toEqual([]);
  });

  test("DELETE … USING returns rows in ascending order of their versions", async () => {
    await engine.run("UPDATE t SET a = 0 WHERE id = 1; STORAGE FLUSH TABLE t");
    await engine.run("UPDATE t SET a = 0 WHERE id = 2");
    expect(await engine.rows("DELETE FROM t USING s WHERE s.k > 2 RETURNING id")).toEqual([
      [3],
      [1],
      [2],
    ]);
  });
});

describe("INSERT with a query adds the rows of the query", () => {
  const insert = async (sql: string) => {
    await engine.run("DELETE FROM t");
    await engine.run(sql);
    return all();
  };

  test("INSERT accepts every form of query", async () => {
    const rows = [
      [2, 200, "zwei"],
      [3, 300, "drei"],
      [4, 400, "vier"],
    ];
    for (const sql of [
      "INSERT INTO t SELECT k, v, w FROM s",
      "INSERT INTO t SELECT * FROM s",
      "INSERT INTO t TABLE s",
      "INSERT INTO t (SELECT k, v, w FROM s)",
      "INSERT INTO t (id, b, a) SELECT k, w, v FROM s ORDER BY v DESC",
      "INSERT INTO t SELECT DISTINCT k, v, w FROM s, pair",
      "INSERT INTO t SELECT k, max(v), min(w) FROM s GROUP BY k",
      "INSERT INTO t WITH q AS (SELECT * FROM s) SELECT * FROM q",
      "WITH q AS (SELECT * FROM s) INSERT INTO t SELECT * FROM q",
      "INSERT INTO t SELECT * FROM s WHERE k < 4 UNION ALL SELECT * FROM s WHERE k = 4",
      "INSERT INTO t SELECT * FROM s UNION SELECT * FROM s",
      "INSERT INTO t VALUES (2, 200, 'zwei'), (3, 300, 'drei') UNION VALUES (4, 400, 'vier')",
      "INSERT INTO t WITH RECURSIVE r (n) AS (VALUES (2) UNION ALL SELECT n + 1 FROM r WHERE n < 4) " +
        "SELECT n, v, w FROM r JOIN s ON k = n",
    ]) {
      expect(await insert(sql), sql).toEqual(rows);
    }
  });

  test("ORDER BY and LIMIT after VALUES determine the rows and their order", async () => {
    const few = "VALUES (2, 0, 'b'), (4, 0, 'd'), (3, 0, 'c')";
    const many = `VALUES ${Array.from({ length: 200 }, (_, i) => `(${i + 2}, 0, 'x')`).join(", ")}`;
    for (const [sql, keys] of [
      [`INSERT INTO t ${few} LIMIT 1`, [2]],
      [`INSERT INTO t ${few} OFFSET 1`, [4, 3]],
      [`INSERT INTO t ${few} FETCH FIRST 2 ROWS ONLY`, [2, 4]],
      [`INSERT INTO t ${few} LIMIT 0`, []],
      [`INSERT INTO t ${few} ORDER BY 1 DESC`, [4, 3, 2]],
      [`INSERT INTO t (${few}) ORDER BY column1 LIMIT 2`, [2, 3]],
      [`INSERT INTO t (${few} LIMIT 1)`, [2]],
      [`WITH q AS (SELECT 1) INSERT INTO t ${few} LIMIT 1`, [2]],
      [`INSERT INTO t ${many} ORDER BY 1 DESC LIMIT 2`, [201, 200]],
      [`INSERT INTO t ${many} EXCEPT (${many} OFFSET 2) ORDER BY 1`, [2, 3]],
    ] as const) {
      await engine.run("DELETE FROM t WHERE id > 1");
      expect((await engine.rows(`${sql} RETURNING id`)).flat(), sql).toEqual([...keys]);
    }
    expect(await engine.failure(`INSERT INTO t VALUES (2, DEFAULT, 'b') LIMIT 1`)).toBe(
      "INVALID_QUERY@1:25",
    );
  });

  test("INSERT from a query with fewer columns uses defaults for the others", async () => {
    expect(await insert("INSERT INTO t SELECT k FROM s WHERE k = 2")).toEqual([[2, null, "none"]]);
    expect(await insert("INSERT INTO t (b, id) SELECT w, k FROM s WHERE k = 2")).toEqual([
      [2, null, "zwei"],
    ]);
  });

  test("INSERT … query reads the state before the statement", async () => {
    const [entry] = await engine.run("INSERT INTO t SELECT id + 10, a, b FROM t");
    expect(entry?.rowCount).toBe(3);
    expect(
      await engine.rows(
        "INSERT INTO t SELECT id, -a, b FROM t ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING a",
      ),
    ).toEqual([[-10], [-20], [-30], [-10], [-20], [-30]]);
  });

  test("subqueries are allowed in VALUES, in ON CONFLICT and in RETURNING", async () => {
    expect(
      await engine.rows(
        "INSERT INTO t VALUES ((SELECT max(k) FROM s), (SELECT count(*) FROM pair), 'new')," +
          "(1, 0, 'old') ON CONFLICT (id) DO UPDATE SET a = (SELECT sum(v) FROM s WHERE k > t.id) " +
          "WHERE EXISTS (SELECT 1 FROM pair WHERE x = excluded.id) " +
          "RETURNING id, a, (SELECT w FROM s WHERE k = id)",
      ),
    ).toEqual([
      [4, 3, "vier"],
      [1, 900, null],
    ]);
  });
});

const REFUSED: readonly (readonly [string, string])[] = [
  ["UPDATE t SET a = 1 FROM t WHERE true", "INVALID_QUERY"],
  ["UPDATE t SET a = 1 FROM s, s WHERE true", "INVALID_QUERY"],
  ["UPDATE t SET v = 1 FROM s WHERE k = id", "COLUMN_NOT_FOUND@1:13"],
  ["UPDATE t SET a = nope FROM s", "COLUMN_NOT_FOUND@1:17"],
  ["UPDATE t SET a = x.v FROM s", "TABLE_NOT_FOUND@1:17"],
  ["UPDATE t x SET a = t.a FROM s", "TABLE_NOT_FOUND@1:19"],
  ["UPDATE t SET a = 1 FROM (SELECT t.a) q", "TABLE_NOT_FOUND@1:32"],
  ["UPDATE t SET a = 1 FROM LATERAL (SELECT t.a) q", "TABLE_NOT_FOUND@1:40"],
  ["UPDATE t SET a = 1 FROM nope", "TABLE_NOT_FOUND@1:24"],
  ["UPDATE t SET a = w FROM s WHERE k = id", "TYPE_MISMATCH@1:17"],
  ["UPDATE t SET a = 1 / (v - 200) FROM s WHERE k = id", "DIVISION_BY_ZERO@1:17"],
  ["UPDATE t SET a = 9 FROM s WHERE k = id RETURNING 1 / (v - 300)", "DIVISION_BY_ZERO@1"],
  ["UPDATE t SET a = 1 FROM t o WHERE a = 1", "AMBIGUOUS_COLUMN@1:34"],
  ["DELETE FROM t USING t WHERE true", "INVALID_QUERY"],
  ["DELETE FROM t USING s WHERE nope = 1", "COLUMN_NOT_FOUND@1:28"],
  ["DELETE FROM t USING s WHERE k = id RETURNING 1 / (v - 200)", "DIVISION_BY_ZERO@1"],
  ["INSERT INTO t (id, a) SELECT k FROM s", "INVALID_QUERY@1:22"],
  ["INSERT INTO t SELECT k, v, w, k FROM s", "INVALID_QUERY@1:14"],
  ["INSERT INTO t SELECT k, w, v FROM s", "TYPE_MISMATCH"],
  ["INSERT INTO t VALUES ((SELECT k FROM s), 1, 'x')", "CARDINALITY_VIOLATION@1"],
];

describe("joined changes with a fault are refused", () => {
  test.each(REFUSED)("the joined change %s is refused with %s", async (sql, failure) => {
    const before = await engine.rows("SELECT *, _seq FROM t");
    expect(await engine.failure(sql)).toStartWith(failure);
    expect(await engine.rows("SELECT *, _seq FROM t")).toEqual(before);
  });

  test("a table in FROM must be readable", async () => {
    await engine.run("CREATE TABLE hidden (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PRIVATE')");
    await engine.run("CREATE USER TABLE mine (id INT PRIMARY KEY, a INT)");
    await engine.run("CREATE USER reader INTERNAL ROLE user");
    for (const sql of [
      "UPDATE mine SET a = 1 FROM hidden WHERE hidden.id = mine.id",
      "DELETE FROM mine USING hidden WHERE true",
      "INSERT INTO mine (id) SELECT id FROM hidden",
      "UPDATE mine SET a = (SELECT max(id) FROM hidden)",
    ]) {
      const failure = await engine.failure(`EXECUTE AS USER 'reader' (${sql})`);
      expect(failure, sql).toStartWith("TABLE_NOT_FOUND");
    }
  });
});

test("limits.require_where refuses a change to all rows, whatever is joined", async () => {
  await using strict = await TestEngine.open({ config: "limits.require_where = true" });
  await strict.run("CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1)");
  for (const sql of [
    "UPDATE t SET a = 2",
    "DELETE FROM t",
    "UPDATE t SET a = 2 FROM (VALUES (1)) f (k)",
    "DELETE FROM t USING (VALUES (1)) f (k)",
    "WITH w AS (SELECT 1) DELETE FROM t",
  ]) {
    expect(await strict.failure(sql), sql).toStartWith("WHERE_REQUIRED@1");
  }
  expect(await strict.rows("UPDATE t SET a = 2 WHERE true RETURNING a")).toEqual([[2]]);
});
