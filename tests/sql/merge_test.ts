/**
 * Tests MERGE: RETURNING, long statements, transactions, owners, foreign keys and refusals. The
 * cases in `merges.slt` have PostgreSQL's results.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { BATCH_ROWS_MAX } from "../../src/base/limits.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT, twice INT GENERATED ALWAYS AS (v * 2) STORED);" +
      "CREATE TABLE child (id INT PRIMARY KEY, t_id INT REFERENCES t ON DELETE CASCADE);" +
      "CREATE USER TABLE notes (id INT PRIMARY KEY, body TEXT);" +
      "CREATE STREAM TABLE seen (id INT) WITH (TTL_SECONDS = 60);" +
      "CREATE USER bob INTERNAL ROLE user",
  );
});
beforeEach(async () => {
  await engine.run("TRUNCATE child, t; TRUNCATE notes; INSERT INTO t VALUES (1, 10), (2, 20)");
});
afterAll(() => engine[Symbol.asyncDispose]());

const ALL = "SELECT id, v, twice FROM t ORDER BY id";

test("RETURNING lists source and target, and merge_action() names the change", async () => {
  const [merged] = await engine.run(
    "MERGE INTO t USING (VALUES (1, 11), (2, 0), (3, 33)) AS s (k, n) ON t.id = s.k " +
      "WHEN MATCHED AND s.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.n " +
      "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.k, s.n) " +
      "RETURNING merge_action(), lower(merge_action()) || k AS what, t.id, v, twice, s.n",
  );
  expect(merged?.rowCount).toBe(3);
  expect(merged?.schema?.map(({ name }) => name)).toEqual(
    "merge_action what id v twice n".split(" "),
  );
  expect(merged?.rows?.toSorted()).toEqual([
    ["DELETE", "delete2", 2, 20, 40, 0],
    ["INSERT", "insert3", 3, 33, 66, 33],
    ["UPDATE", "update1", 1, 11, 22, 11],
  ]);
  expect(await engine.rows(ALL)).toEqual([
    [1, 11, 22],
    [3, 33, 66],
  ]);
});

test("RETURNING * returns the columns of the source before those of the target", async () => {
  const [merged] = await engine.run(
    "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = 5 RETURNING *",
  );
  expect(merged?.schema?.slice(0, 4).map(({ name }) => name)).toEqual(["k", "id", "v", "twice"]);
  expect(merged?.rows?.[0]?.slice(0, 4)).toEqual([1, 1, 5, 10]);
});

test("rows that MERGE leaves unchanged are not counted", async () => {
  const [merged] = await engine.run(
    "MERGE INTO t USING (VALUES (1), (2), (9)) AS s (k) ON t.id = s.k WHEN MATCHED AND k = 2 THEN DELETE WHEN NOT MATCHED THEN DO NOTHING",
  );
  expect(merged).toMatchObject({ rowCount: 1, message: "Merged 1 row(s)" });
});

test("a condition is evaluated once for each row, even if it is random", async () => {
  await engine.run("INSERT INTO t (id, v) SELECT i, 1 FROM generate_series(3, 400) AS g (i)");
  await engine.run(
    "MERGE INTO t USING (SELECT id AS k FROM t) AS s ON t.id = s.k WHEN MATCHED AND random() < 0.5 THEN UPDATE SET v = -1 WHEN MATCHED THEN UPDATE SET v = -2",
  );
  expect(await engine.rows("SELECT count(*) FROM t WHERE v IS NULL OR v > -1")).toEqual([[0]]);
});

test("MERGE writes more rows than fit into one tick in one commit", async () => {
  const rowCount = 2 * BATCH_ROWS_MAX + 10;
  const [merged] = await engine.run(
    `MERGE INTO t USING generate_series(1, ${rowCount}) AS s (k) ON t.id = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, k)`,
  );
  expect(merged?.rowCount).toBe(rowCount);
  expect(await engine.rows("SELECT count(*), min(id), sum(twice - 2 * v) FROM t")).toEqual([
    [rowCount - 2, 3, 0],
  ]);
});

test("a transaction merges into rows that it has written itself", async () => {
  const results = await engine.run(
    "BEGIN; INSERT INTO t VALUES (3, 30); MERGE INTO t USING (VALUES (3), (4)) AS s (k) ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = 31 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, 40);" +
      `${ALL}; ROLLBACK; ${ALL}`,
  );
  expect(results[3]?.rows).toHaveLength(4);
  expect(results[3]?.rows).toContainEqual([3, 31, 62]);
  expect(results[5]?.rows).toHaveLength(2);
});

test("rows that refer to a deleted row are deleted with it", async () => {
  await engine.run("INSERT INTO child VALUES (1, 1), (2, 2)");
  await engine.run(
    "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.id = s.k WHEN MATCHED THEN DELETE",
  );
  expect(await engine.rows("SELECT id, t_id FROM child")).toEqual([[2, 2]]);
});

test("each user merges only their own rows", async () => {
  const merge =
    "MERGE INTO notes USING (VALUES (1, 'new')) AS s (k, b) ON id = k WHEN MATCHED THEN UPDATE SET body = body || '!' WHEN NOT MATCHED THEN INSERT VALUES (k, b) RETURNING merge_action(), body";
  expect(await engine.rows(merge)).toEqual([["INSERT", "new"]]);
  expect(await engine.rows(`EXECUTE AS USER 'bob' (${merge})`)).toEqual([["INSERT", "new"]]);
  expect(await engine.rows(merge)).toEqual([["UPDATE", "new!"]]);
});

test("MERGE may also be part of a statement", async () => {
  const rows = await engine.rows(
    "WITH m AS (MERGE INTO t USING (VALUES (1), (5)) AS s (k) ON t.id = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, 50) RETURNING merge_action() AS a, t.id) SELECT a, id FROM m ORDER BY id",
  );
  expect(rows).toEqual([
    ["DELETE", 1],
    ["INSERT", 5],
  ]);
});

const SOURCE = "MERGE INTO t USING (VALUES (1, 'x')) AS s (k, w) ON t.id = s.k";

test.each([
  [`${SOURCE} WHEN MATCHED THEN UPDATE SET twice = 1`, "INVALID_OPERATION@1:100"],
  [`${SOURCE} WHEN MATCHED THEN UPDATE SET id = 2`, "DUPLICATE_KEY@1"],
  [`${SOURCE} WHEN MATCHED THEN UPDATE SET v = w`, "TYPE_MISMATCH@1:96"],
  [`${SOURCE} WHEN MATCHED THEN UPDATE SET v = merge_action()`, "INVALID_QUERY@1:96"],
  [`${SOURCE} WHEN MATCHED THEN DELETE RETURNING merge_action(1)`, "FUNCTION_NOT_FOUND@1:98"],
  [
    "MERGE INTO seen USING (SELECT 1 AS k) AS s ON seen.id = s.k WHEN MATCHED THEN DELETE",
    "INVALID_OPERATION@1:0",
  ],
  [
    "MERGE INTO t USING (VALUES (2), (2)) AS s (k) ON t.id = s.k WHEN MATCHED THEN DELETE",
    "CARDINALITY_VIOLATION@1",
  ],
])("%s is refused, and nothing is changed", async (sql, failure) => {
  expect(await engine.failure(sql)).toBe(failure);
  expect(await engine.rows(ALL)).toEqual([
    [1, 10, 20],
    [2, 20, 40],
  ]);
});
