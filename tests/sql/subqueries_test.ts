/**
 * Tests the results of subqueries in edge cases, and the errors of subqueries that are refused.
 * Each query runs several times, to verify that no run affects the next.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  const config = "performance.query_memory_bytes = 8388608\nlimits.max_timeout_ms = 30000";
  engine = await TestEngine.open({ clock: systemClock, config });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, x INT, y TEXT); CREATE TABLE s (id INT PRIMARY KEY, x INT, y TEXT);" +
      "CREATE TABLE none (id INT PRIMARY KEY, x INT);" +
      "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, NULL, 'c'), (4, 1, NULL);" +
      "INSERT INTO s VALUES (1, 1, 'a'), (2, 1, 'b'), (3, NULL, 'c'), (4, 7, 'd')",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const ANSWERS: readonly (readonly [sql: string, rows: readonly unknown[][]])[] = [
  // IN and NOT IN: a NULL among the rows turns false into NULL, and over an empty set the result
  // is never NULL.
  ["SELECT id FROM t WHERE x IN (SELECT x FROM s) ORDER BY 1", [[1], [4]]],
  ["SELECT id FROM t WHERE x NOT IN (SELECT x FROM s)", []],
  ["SELECT id FROM t WHERE x NOT IN (SELECT x FROM s WHERE x IS NOT NULL)", [[2]]],
  ["SELECT id FROM t WHERE x NOT IN (SELECT x FROM none) ORDER BY 1", [[1], [2], [3], [4]]],
  ["SELECT NULL IN (SELECT x FROM none), NULL NOT IN (SELECT x FROM none)", [[false, true]]],
  [
    "SELECT NULL IN (SELECT 1), 1 IN (SELECT NULL::int), 1 IN (SELECT 1 UNION SELECT NULL)",
    [[null, null, true]],
  ],
  ["SELECT id FROM t WHERE (x, y) IN (SELECT x, y FROM s) ORDER BY 1", [[1]]],
  ["SELECT (2, NULL) NOT IN (SELECT 1, 1), (1, NULL) NOT IN (SELECT 1, 1)", [[true, null]]],
  [
    "SELECT id, x IN (SELECT s.x FROM s WHERE s.y = t.y) FROM t ORDER BY 1",
    [
      [1, true],
      [2, false],
      [3, null],
      [4, false],
    ],
  ],
  ["SELECT 1.0 IN (SELECT 1), '1' IN (SELECT 1), 1 IN (SELECT 1.5)", [[true, true, false]]],
  // ANY and ALL with an empty set, with NULLs and with strings.
  ["SELECT 1 = ANY (SELECT x FROM none), 1 > ALL (SELECT x FROM none)", [[false, true]]],
  [
    "SELECT 9 > ALL (SELECT x FROM s), 0 > ALL (SELECT x FROM s), 9 < ANY (SELECT x FROM s)",
    [[null, false, null]],
  ],
  ["SELECT 1 <> ANY (SELECT x FROM s), 1 = ALL (SELECT 1 UNION ALL SELECT 1)", [[true, true]]],
  ["SELECT id FROM t WHERE x >= SOME (SELECT s.x FROM s WHERE s.id = t.id) ORDER BY 1", [[1], [2]]],
  // Rows are compared by their first unequal pair. A NULL before that pair makes the result NULL.
  ["SELECT id FROM t WHERE (x, y) < ANY (SELECT 1, 'b') ORDER BY 1", [[1]]],
  [
    "SELECT id, (x, y) >= ALL (SELECT x, y FROM s WHERE id < 3) FROM t ORDER BY 1",
    [
      [1, false],
      [2, true],
      [3, null],
      [4, null],
    ],
  ],
  [
    "SELECT (1, 2.5, 'x') > ANY (VALUES (1, 2, 'z'), (1, 3, 'a')), (1, 2) <= ALL (SELECT 1, NULL::int), (1, NULL) < ANY (SELECT 2, 0)",
    [[true, null, true]],
  ],
  // A WITH entry that reads outer columns and is used in an inner query.
  [
    "SELECT id, (WITH c AS (SELECT t.x AS v) SELECT (SELECT max(v) + count(*) FROM c)) FROM t ORDER BY 1",
    [
      [1, 2],
      [2, 3],
      [3, null],
      [4, 2],
    ],
  ],
  [
    "SELECT id, (WITH c AS (SELECT t.x AS v), d AS (SELECT v * 2 AS w FROM c) SELECT sum((SELECT max(w) + u.id FROM d)) FROM s u WHERE u.id <= t.id) FROM t WHERE id < 3 ORDER BY 1",
    [
      [1, 3],
      [2, 11],
    ],
  ],
  // A name in a WITH entry is resolved where the entry is defined, not where the entry is used.
  [
    "SELECT id, (WITH c AS (SELECT t.x AS v) SELECT (SELECT max(v) FROM c) FROM s AS t WHERE t.id = 4) FROM t WHERE id < 3 ORDER BY 1",
    [
      [1, 1],
      [2, 2],
    ],
  ],
  [
    "SELECT id, (WITH RECURSIVE r AS (SELECT t.id AS n UNION ALL SELECT n + t.id FROM r WHERE n < 10) SELECT (SELECT count(*) FROM r)) FROM t ORDER BY 1",
    [
      [1, 10],
      [2, 5],
      [3, 4],
      [4, 3],
    ],
  ],
  // EXISTS never evaluates the select list of its subquery.
  [
    "SELECT EXISTS (SELECT 1 / 0), EXISTS (SELECT FROM none), EXISTS (SELECT count(*) FROM none)",
    [[true, false, true]],
  ],
  [
    "SELECT EXISTS (SELECT 1 LIMIT 0), EXISTS (SELECT DISTINCT x FROM s OFFSET 3)",
    [[false, false]],
  ],
  ["SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.x = t.x) ORDER BY 1", [[2], [3]]],
  // Scalar subqueries: without a row, the result is NULL. An aggregate returns a row even for a
  // key that no row has.
  ["SELECT (SELECT x FROM none), (SELECT count(*) FROM none)", [[null, 0]]],
  [
    "SELECT id, (SELECT count(*) FROM s WHERE s.x = t.x) FROM t ORDER BY 1",
    [
      [1, 2],
      [2, 0],
      [3, 0],
      [4, 2],
    ],
  ],
  [
    "SELECT id, (SELECT sum(s.id) FROM s WHERE s.x = t.x HAVING count(*) > 1) FROM t ORDER BY 1",
    [
      [1, 3],
      [2, null],
      [3, null],
      [4, 3],
    ],
  ],
  [
    "SELECT id, (SELECT y FROM s WHERE s.x = t.x ORDER BY id DESC LIMIT 1) FROM t ORDER BY 1",
    [
      [1, "b"],
      [2, null],
      [3, null],
      [4, "b"],
    ],
  ],
  [
    "SELECT id, (SELECT y FROM s WHERE s.x = t.x ORDER BY id OFFSET 1) FROM t WHERE id < 3 ORDER BY 1",
    [
      [1, "b"],
      [2, null],
    ],
  ],
  [
    "SELECT id, ARRAY(SELECT s.id FROM s WHERE s.x = t.x ORDER BY 1 DESC) FROM t WHERE id < 3 ORDER BY 1",
    [
      [1, [2, 1]],
      [2, []],
    ],
  ],
  ["SELECT id FROM t WHERE (x, y) = (SELECT s.x, s.y FROM s WHERE s.id = t.id)", [[1]]],
  // An expression that would fail for an inner row must not fail the statement if no outer row
  // needs that row.
  [
    "SELECT (SELECT 1 / (s.x - 7) FROM s WHERE s.id = t.x AND s.y = t.y) FROM t WHERE id = 1",
    [[0]],
  ],
  // Subqueries may be correlated at any depth, and in every clause.
  [
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND EXISTS (SELECT 1 FROM s u WHERE u.y = t.y AND u.x = s.x))",
    [[1], [2]],
  ],
  [
    "SELECT id FROM t ORDER BY (SELECT s.y FROM s WHERE s.id = t.id) DESC LIMIT (SELECT 2)",
    [[4], [3]],
  ],
  [
    "SELECT x, count(*) FROM t GROUP BY x HAVING count(*) > (SELECT count(*) FROM s WHERE s.x = t.x) ORDER BY 1",
    [
      [2, 1],
      [null, 1],
    ],
  ],
  [
    "SELECT x, (SELECT max(s.y) FROM s WHERE s.x = t.x) FROM t GROUP BY x ORDER BY 1",
    [
      [1, "b"],
      [2, null],
      [null, null],
    ],
  ],
  ["SELECT sum((SELECT count(*) FROM s WHERE s.x = t.x)) FROM t", [["4"]]],
  [
    "SELECT a.id FROM t a LEFT JOIN s b ON b.id = (SELECT max(id) FROM s WHERE s.x = a.x) WHERE b.id IS NULL ORDER BY 1",
    [[2], [3]],
  ],
  // An aggregate whose arguments are only outer columns belongs to the outer query.
  ["SELECT (SELECT max(t.id) + s.id FROM s WHERE s.id = 1) FROM t", [[5]]],
  [
    "SELECT y FROM t GROUP BY y HAVING EXISTS (SELECT 1 FROM s WHERE s.id = sum(t.x)) ORDER BY 1",
    [["a"], ["b"], [null]],
  ],
  // A column name refers to the nearest definition.
  ["SELECT (SELECT count(*) FROM s WHERE x = 1) FROM t WHERE id = 2", [[2]]],
  ["SELECT count(*) FROM none WHERE x IN (SELECT x)", [[0]]],
  // Set operations: NULLs are equal, and ALL keeps duplicates.
  ["SELECT x FROM t INTERSECT ALL SELECT x FROM s ORDER BY 1", [[1], [1], [null]]],
  ["SELECT x FROM t INTERSECT SELECT x FROM s ORDER BY 1", [[1], [null]]],
  ["SELECT x FROM s EXCEPT ALL SELECT x FROM t WHERE id <= 2 ORDER BY 1", [[1], [7], [null]]],
  ["SELECT x FROM s EXCEPT SELECT x FROM t WHERE id <= 2 ORDER BY 1", [[7], [null]]],
  ["SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 ORDER BY 1", [[1]]],
  ["(SELECT 1 UNION ALL SELECT 1) EXCEPT ALL SELECT 1", [[1]]],
  [
    "(SELECT id FROM t ORDER BY id DESC LIMIT 1) UNION ALL (SELECT id FROM s ORDER BY id LIMIT 1)",
    [[4], [1]],
  ],
  [
    "SELECT NULL UNION SELECT 2 UNION ALL SELECT '3' ORDER BY 1 DESC NULLS LAST LIMIT 2",
    [[3], [2]],
  ],
  ["SELECT id AS a FROM t UNION SELECT 1.5 ORDER BY a LIMIT 2", [["1"], ["1.5"]]],
  ["SELECT id FROM t WHERE id IN (SELECT x FROM s UNION SELECT t.x + 1) ORDER BY 1", [[1]]],
  ["SELECT count(*) FROM (SELECT FROM t UNION ALL SELECT FROM s) q", [[8]]],
  ["SELECT EXISTS (SELECT), (SELECT count(*) FROM (SELECT UNION ALL SELECT) q)", [[true, 2]]],
  // The following queries use LATERAL.
  [
    "SELECT t.id, q.n FROM t, LATERAL (SELECT count(*) AS n FROM s WHERE s.x = t.x) q WHERE q.n > 0 ORDER BY 1",
    [
      [1, 2],
      [4, 2],
    ],
  ],
  [
    "SELECT t.id, q.id FROM t LEFT JOIN LATERAL (SELECT s.id FROM s WHERE s.x = t.x ORDER BY 1 LIMIT 1) q ON true ORDER BY 1",
    [
      [1, 1],
      [2, null],
      [3, null],
      [4, 1],
    ],
  ],
  [
    "SELECT t.id, q.v, p.w FROM t, LATERAL (VALUES (t.x + 1)) q(v), LATERAL (SELECT q.v * t.id) p(w) WHERE t.id < 3 ORDER BY 1",
    [
      [1, 2, 2],
      [2, 3, 6],
    ],
  ],
  ["SELECT a.id FROM t a, s b JOIN LATERAL (SELECT a.id + b.id AS v) q ON q.v = 8", [[4]]],
  [
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s, LATERAL (SELECT t.x + s.x AS v) q WHERE q.v = 9)",
    [[2]],
  ],
  // The following queries use WITH.
  [
    "WITH a AS (SELECT x FROM t), b(n) AS (SELECT count(*) FROM a) SELECT n, (SELECT count(*) FROM a WHERE x = 1) FROM b",
    [[4, 2]],
  ],
  ["WITH t AS (SELECT 5 AS id) SELECT id FROM t", [[5]]],
  ["WITH a AS (SELECT id FROM t) SELECT p.id FROM a p, a q WHERE p.id = q.id + 3", [[4]]],
  ["WITH r AS (SELECT random() AS v) SELECT (SELECT v FROM r) = (SELECT v FROM r)", [[true]]],
  ["SELECT (WITH a AS (SELECT t.x + 1 AS v) SELECT v FROM a) FROM t WHERE id = 2", [[3]]],
  ["SELECT id FROM t WHERE id IN (WITH a AS (SELECT 2 AS v) SELECT v FROM a)", [[2]]],
  [
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
    [[15]],
  ],
  [
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION SELECT (i + 1) % 3 FROM n) SELECT i FROM n ORDER BY 1",
    [[0], [1], [2]],
  ],
  [
    "WITH RECURSIVE a AS (SELECT 1 AS i), n AS (SELECT i FROM a UNION ALL SELECT n.i + a.i FROM n, a WHERE n.i < 3) SELECT count(*) FROM n",
    [[3]],
  ],
  [
    "SELECT (WITH a AS (SELECT t.x + 1 AS v) SELECT p.v + q.v FROM a p, a q) FROM t ORDER BY id",
    [[4], [6], [null], [4]],
  ],
  [
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL (WITH m AS (SELECT i FROM n) SELECT a.i + 1 FROM m a, m b WHERE a.i < 4)) SELECT sum(i) FROM n",
    [[10]],
  ],
  ["WITH RECURSIVE n AS (SELECT NULL AS i UNION SELECT 2) SELECT max(i) FROM n", [[2]]],
  // A subquery that reads the rows of a recursive step, at any depth, runs again in each step.
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND EXISTS (SELECT * FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND n IN (SELECT * FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND n = (SELECT max(n) FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS MATERIALIZED (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND n = (SELECT max(n) FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS NOT MATERIALIZED (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND n = (SELECT max(n) FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a) SELECT a.n+1 FROM a JOIN b ON a.n = b.n WHERE a.n < 5 AND EXISTS (SELECT * FROM b))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t), b AS (SELECT 1 WHERE EXISTS (SELECT * FROM a WHERE n < 5)) SELECT a.n+1 FROM a WHERE EXISTS (SELECT * FROM b))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a x WHERE n < 5 AND EXISTS (SELECT * FROM a WHERE a.n = x.n))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a x WHERE n < 5 AND EXISTS (SELECT * FROM a WHERE a.n <= x.n))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT i+1 FROM (VALUES (1),(2),(3),(4)) v(i) WHERE i IN (SELECT n FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT i+1 FROM (VALUES (1),(2),(3),(4)) v(i) WHERE EXISTS (SELECT 1 FROM a WHERE n = i))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) (SELECT n+1 FROM a WHERE n < 5 UNION SELECT n+1 FROM a WHERE n < 5 AND EXISTS (SELECT * FROM a)))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND EXISTS (SELECT * FROM a y WHERE EXISTS (SELECT * FROM a z WHERE z.n = y.n)))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND n = ANY (SELECT n FROM a) AND n >= ALL (SELECT n FROM a) AND n = (ARRAY(SELECT n FROM a))[1])) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT (SELECT max(n) FROM a)+1 FROM a WHERE n < 5)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT a.n+1 FROM a JOIN (VALUES (1),(2),(3),(4)) v(i) ON v.i = a.n AND EXISTS (SELECT * FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT a.n+1 FROM a, LATERAL (SELECT count(*) c FROM a b WHERE b.n = a.n) l WHERE l.c = 1 AND n < 5)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "SELECT x, (WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT t.n, x FROM t) SELECT n+1 FROM a WHERE n < 5 AND EXISTS (SELECT * FROM a))) SELECT count(*) FROM t) FROM (VALUES (1),(2)) o(x)",
    [
      [1, 5],
      [2, 5],
    ],
  ],
  [
    "SELECT x, (WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT t.n FROM t) SELECT n+1 FROM a WHERE n < x AND EXISTS (SELECT * FROM a))) SELECT count(*) FROM t) FROM (VALUES (1),(2)) o(x)",
    [
      [1, 1],
      [2, 2],
    ],
  ],
  [
    "SELECT x, (WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT t.n FROM t WHERE n < x) SELECT n+1 FROM a WHERE EXISTS (SELECT * FROM a WHERE a.n < x))) SELECT count(*) FROM t) FROM (VALUES (1),(2)) o(x)",
    [
      [1, 1],
      [2, 2],
    ],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT a.n+1 FROM a LEFT JOIN a b ON a.n = b.n WHERE a.n < 5)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 INTERSECT SELECT n+1 FROM a)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND NOT EXISTS (SELECT * FROM a WHERE n > 3))) SELECT * FROM t",
    [[1], [2], [3], [4]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH RECURSIVE u(m) AS (SELECT n FROM t UNION ALL (WITH c AS (SELECT * FROM u) SELECT m+1 FROM c WHERE m < 3 AND EXISTS (SELECT * FROM c))) SELECT m+1 FROM u WHERE m < 5 AND EXISTS (SELECT * FROM u))) SELECT * FROM t",
    [[1], [2], [3], [4], [3], [4], [5], [4], [4], [5], [5], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t), RECURSIVEx AS (SELECT 1) SELECT n+1 FROM a WHERE n < 5 ORDER BY (SELECT max(n) FROM a) LIMIT (SELECT count(*) FROM a))) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE CASE WHEN n < 5 THEN EXISTS (SELECT * FROM a) ELSE false END)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT n+1 FROM a WHERE n < 5 AND (SELECT count(*) FROM (WITH d AS (SELECT * FROM a) SELECT * FROM d x JOIN d y ON x.n=y.n) q) = 1)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n+1 FROM t WHERE n < 5 AND EXISTS (WITH a AS (SELECT 1) SELECT * FROM a, a b)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  [
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT * FROM t) SELECT s.n+1 FROM (SELECT n, (SELECT max(n) FROM a) m FROM a) s WHERE s.n < 5 AND s.m = s.n)) SELECT * FROM t",
    [[1], [2], [3], [4], [5]],
  ],
  // Entries of WITH RECURSIVE may also read later entries.
  [
    "WITH RECURSIVE a AS (SELECT x + 1 AS x FROM b), b AS (SELECT x * 2 AS x FROM c), c AS (SELECT 5 AS x) SELECT a.x, b.x, c.x FROM a, b, c",
    [[11, 10, 5]],
  ],
  [
    "WITH RECURSIVE n(i) AS (SELECT x FROM b UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT x FROM b) + 2), b AS (SELECT 7 AS x) SELECT i FROM n",
    [[7], [8], [9]],
  ],
  [
    "WITH RECURSIVE a AS (WITH b AS (SELECT 7 AS x) SELECT x FROM b), b AS (SELECT x FROM a) SELECT x FROM b",
    [[7]],
  ],
  ["WITH RECURSIVE a AS (SELECT x FROM t), t AS (SELECT 8 AS x) SELECT x FROM a", [[8]]],
];

test.each(ANSWERS.map(([sql, rows]) => ({ sql, rows })))("$sql", async ({ rows, sql }) => {
  // No run may affect the next one, so the statement runs twice through the plan cache and once on
  // the general path.
  expect(await engine.rows(sql)).toEqual(rows as unknown[][]);
  expect(await engine.rows(sql)).toEqual(rows as unknown[][]);
  expect((await engine.run(`BEGIN; ${sql}; COMMIT`))[1]?.rows).toEqual(rows as unknown[][]);
});

const FAILURES: readonly (readonly [sql: string, failure: string])[] = [
  ["SELECT (SELECT id FROM t)", "CARDINALITY_VIOLATION@1:8"],
  ["SELECT id, (SELECT s.id FROM s WHERE s.x = t.x) FROM t", "CARDINALITY_VIOLATION@1:12"],
  ["SELECT (SELECT 1, 2)", "INVALID_QUERY@1:8"],
  ["SELECT 1 IN (SELECT 1, 2)", "INVALID_QUERY@1:13"],
  ["SELECT (1, 2) IN (SELECT 1)", "INVALID_QUERY@1:18"],
  ["SELECT true IN (SELECT 1)", "TYPE_MISMATCH@1:7"],
  ["SELECT 1 WHERE EXISTS (SELECT q FROM t)", "COLUMN_NOT_FOUND@1:30"],
  ["SELECT 1 WHERE EXISTS (SELECT s.id FROM t)", "TABLE_NOT_FOUND@1:30"],
  ["SELECT y FROM t GROUP BY y HAVING (SELECT t.x) > 1", "INVALID_QUERY@1:42"],
  ["SELECT id FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = sum(t.x))", "INVALID_QUERY@1:60"],
  ["SELECT * FROM s WHERE EXISTS (SELECT 1 FROM gone)", "TABLE_NOT_FOUND@1:44"],
  ["SELECT 1 UNION SELECT 1, 2", "INVALID_QUERY@1:15"],
  ["SELECT 1 UNION SELECT true", "TYPE_MISMATCH@1:15"],
  ["SELECT 1 AS a UNION SELECT 2 ORDER BY a + 1", "INVALID_QUERY@1:38"],
  ["SELECT 1 UNION SELECT 2 FETCH FIRST 1 ROW WITH TIES", "INVALID_QUERY@1:24"],
  ["WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1", "INVALID_QUERY@1:22"],
  ["WITH a (p, q) AS (SELECT 1) SELECT 1 FROM a", "INVALID_QUERY@1:5"],
  ["WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1 FROM a", "TABLE_NOT_FOUND@1:25"],
  ["WITH RECURSIVE a AS (SELECT * FROM a) SELECT 1 FROM a", "INVALID_QUERY@1:35"],
  [
    "WITH RECURSIVE n AS (SELECT 1 AS i), a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT 1 FROM n",
    "INVALID_QUERY@1:37",
  ],
  ["WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT 1 FROM a", "TABLE_NOT_FOUND@1:25"],
  [
    "WITH RECURSIVE a AS (SELECT 1 AS i UNION SELECT count(*) FROM a) SELECT 1 FROM a",
    "INVALID_QUERY@1:41",
  ],
  [
    "WITH RECURSIVE a AS (SELECT 1 AS i UNION SELECT 2 FROM a, a b) SELECT 1 FROM a",
    "INVALID_QUERY@1:41",
  ],
  [
    "WITH RECURSIVE a AS (SELECT 1 AS i UNION SELECT 2 WHERE EXISTS (SELECT 1 FROM a)) SELECT 1 FROM a",
    "INVALID_QUERY@1:78",
  ],
  ["CREATE TABLE c (id INT PRIMARY KEY, v INT CHECK (v IN (SELECT 1)))", "INVALID_DEFINITION@1:55"],
  ["CREATE TABLE c (id INT PRIMARY KEY, v INT DEFAULT (SELECT 1))", "INVALID_DEFINITION@1:51"],
];

test.each(FAILURES.map(([sql, failure]) => ({ sql, failure })))(
  "$sql",
  async ({ failure, sql }) => {
    expect(await engine.failure(sql)).toBe(failure);
  },
);

describe("subqueries in statements that change rows read the right state", () => {
  test("subqueries in a change read the state before the statement", async () => {
    await engine.run(
      "CREATE TABLE c (id INT PRIMARY KEY, v INT); INSERT INTO c VALUES (1, 1), (2, 2)",
    );
    await engine.run("INSERT INTO c SELECT id + 10, (SELECT count(*) FROM c) FROM c");
    await engine.run("UPDATE c SET v = (SELECT sum(v) FROM c d WHERE d.id <> c.id) WHERE id < 10");
    await engine.run("INSERT INTO c VALUES (3, (SELECT max(v) FROM c))");
    await engine.run("UPDATE c SET (v) = (SELECT 0) WHERE id = 2");
    expect(await engine.rows("SELECT id, v FROM c ORDER BY id")).toEqual([
      [1, 6],
      [2, 0],
      [3, 6],
      [11, 2],
      [12, 2],
    ]);
    const upsert =
      "INSERT INTO c VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET v = (SELECT count(*) FROM c) + excluded.v RETURNING v, (SELECT min(v) FROM c)";
    expect(await engine.rows(upsert)).toEqual([[14, 0]]);
    await engine.run("DELETE FROM c WHERE v = (SELECT min(v) FROM c)");
    await engine.run(
      "WITH old AS (SELECT id FROM c WHERE id > 10) DELETE FROM c WHERE id IN (SELECT id FROM old)",
    );
    await engine.run("WITH n AS (SELECT 7 AS id) INSERT INTO c SELECT id, NULL FROM n");
    expect(await engine.rows("SELECT id, v FROM c ORDER BY id")).toEqual([
      [1, 14],
      [3, 6],
      [7, null],
    ]);
  });

  test("subqueries in a transaction see its own rows", async () => {
    const results = await engine.run(
      "BEGIN; INSERT INTO none VALUES (1, 5); SELECT (SELECT sum(x) FROM none), 5 IN (SELECT x FROM none); ROLLBACK; SELECT EXISTS (SELECT 1 FROM none)",
    );
    expect(results[2]?.rows).toEqual([[5, true]]);
    expect(results[4]?.rows).toEqual([[false]]);
  });
});

test("a query may read a table that the same text creates", async () => {
  const text =
    "CREATE TABLE made (id INT PRIMARY KEY); SELECT EXISTS (SELECT 1 FROM made); WITH m AS (SELECT id FROM made) INSERT INTO made SELECT 1 UNION SELECT id FROM m; SELECT id FROM t WHERE id IN (SELECT id FROM made)";
  expect(await engine.rows(text)).toEqual([[1]]);
});

test("deeply nested queries are bound and planned in time proportional to their text", async () => {
  const nest = (depth: number, around: (inner: string) => string): string =>
    Array.from({ length: depth }).reduce((inner: string) => around(inner), "1");
  const texts = [
    `SELECT ${nest(40, (inner) => `(SELECT max(${inner}) FROM t)`)}`,
    `SELECT ${nest(40, (inner) => `(SELECT ${inner} FROM s WHERE s.id = 1 AND s.id = t.id)`)} FROM t WHERE t.id = 1`,
    `SELECT ${nest(40, (inner) => `(WITH RECURSIVE a AS (SELECT ${inner} AS v UNION SELECT 1) SELECT max(v) FROM a)`)}`,
    `SELECT ${nest(40, (inner) => `(SELECT q.v FROM (SELECT t.id, ${inner} AS v) q)`)} FROM t WHERE t.id = 1`,
  ];
  for (const text of texts) expect(await engine.rows(text)).toEqual([[1]]);
  const chain = Array.from(
    { length: 40 },
    (_, i) => `a${i + 1} AS (SELECT p.v FROM a${i} p, a${i} q)`,
  );
  for (const first of ["SELECT 1 AS v", "SELECT t.id AS v"]) {
    const text = `SELECT (WITH a0 AS (${first}), ${chain.join(", ")} SELECT v FROM a40) FROM t WHERE id = 1`;
    expect(await engine.rows(text)).toEqual([[1]]);
  }
});

test("one plan serves many callers, each with their own rows", async () => {
  await engine.run(
    "CREATE USER TABLE mine (id INT PRIMARY KEY, v TEXT); CREATE USER ann INTERNAL; CREATE USER ben INTERNAL; CREATE USER cid INTERNAL",
  );
  const statements: readonly (readonly [string, (name: string) => unknown])[] = [
    ["SELECT (SELECT max(v) FROM mine)", (name) => name],
    [
      "SELECT v FROM (VALUES (1)) k(id), mine WHERE EXISTS (SELECT 1 FROM mine m WHERE m.v = mine.v)",
      (name) => name,
    ],
    ["SELECT (SELECT m.v FROM mine m WHERE m.id = k.id) FROM (VALUES (1)) k(id)", (name) => name],
    ["WITH a AS MATERIALIZED (SELECT v FROM mine) SELECT p.v FROM a p, a q", (name) => name],
    ["SELECT v FROM mine UNION SELECT v FROM mine", (name) => name],
  ];
  for (const name of ["ann", "ben"]) {
    engine.userId = name;
    await engine.run(`INSERT INTO mine VALUES (1, '${name}')`);
  }
  for (const name of ["ann", "ben", "ann", "cid"]) {
    engine.userId = name;
    for (const [sql, wanted] of statements) {
      const [[value = null] = []] = await engine.rows(sql);
      expect(value, sql).toBe(name === "cid" ? null : wanted(name));
    }
  }
  engine.userId = "root";
});

describe("subqueries are limited in time and memory", () => {
  beforeAll(async () => {
    await engine.run("CREATE TABLE big (id INT PRIMARY KEY, v INT)");
    const rows = Array.from({ length: 20_000 }, (_, id) => `(${id}, ${id % 5000})`);
    await engine.run(`INSERT INTO big VALUES ${rows.join(", ")}`);
  });

  test("an equality in a subquery is found by hash, not by comparing all pairs", async () => {
    const sql =
      "SELECT count(*) FROM big a WHERE EXISTS (SELECT 1 FROM big b WHERE b.v = a.id) AND (SELECT count(*) FROM big c WHERE c.v = a.v) = 4";
    expect(await engine.rows(sql)).toEqual([[5000]]);
  });

  test("a subquery that takes too long is stopped, and yields to other work in the meantime", async () => {
    const started = systemClock.monotonicMs();
    const slow = engine.failure(
      "SELECT count(*) FROM big a WHERE EXISTS (SELECT 1 FROM big b WHERE b.v + a.id < 0)",
      { timeoutMs: 300 },
    );
    expect(await engine.rows("SELECT id FROM t WHERE id = 1")).toHaveLength(1);
    expect(await slow).toBe("STATEMENT_TIMEOUT@1");
    expect(systemClock.monotonicMs() - started).toBeLessThan(3000);
    expect(
      await engine.failure("SELECT (SELECT count(*) FROM big a, big b WHERE a.v < b.v)", {
        timeoutMs: 200,
      }),
    ).toBe("STATEMENT_TIMEOUT@1");
  });

  test("rows that are materialised for a subquery count as memory", async () => {
    const many = "SELECT a.id::text || repeat('x', 400) AS v FROM big a";
    expect(await engine.failure(`SELECT 'y' IN (${many})`)).toBe("MEMORY_EXCEEDED@1");
    // Unlike the rows of IN, the rows of a WITH entry and of a join can be written to disk.
    expect(
      await engine.rows(`WITH a AS (${many}) SELECT count(*) FROM a, a b WHERE a.v = b.v`),
    ).toEqual([[20_000]]);
    // Each of the many evaluations of this subquery releases its memory when it ends.
    const sql =
      "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM big b WHERE b.id + t.id < 0 ORDER BY v OFFSET 1)";
    expect(await engine.rows(sql)).toEqual([[0]]);
  });

  test("a step of a recursion releases the memory of its subqueries and WITH entries", async () => {
    const sql =
      "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL (WITH a AS (SELECT n, repeat('x', 200000) AS s FROM t) SELECT n + 1 FROM a WHERE n < 200 AND s IN (SELECT s FROM a))) SELECT count(*) FROM t";
    expect(await engine.rows(sql)).toEqual([[200]]);
  });

  test("an infinite recursion is stopped", async () => {
    const sql =
      "WITH RECURSIVE n AS (SELECT 1 AS i FROM generate_series(1, 100) UNION ALL SELECT i FROM n) SELECT count(*) FROM n";
    expect(await engine.failure(sql, { timeoutMs: 60_000 })).toBe("LIMIT_EXCEEDED@1");
  });
});

// Verifies EXISTS with keys that are computed on both sides of the join. Each computed key becomes
// a column of its own. The test compares the result with that of the same condition used as a
// value, which is evaluated row by row.
test.each([
  "s.c = t.c AND upper(s.c) = upper(t.c)",
  "s.b = t.b AND abs(s.a) = abs(t.a)",
  "s.a = t.a AND upper(s.c) = upper(t.c) AND s.b + 1 > t.b",
  "s.a = t.a AND length(s.c) = length(t.c)",
  "s.c = t.c AND length(s.c) = length(t.c)",
])("EXISTS over %s finds the same as row by row", async (condition) => {
  await using own = await TestEngine.open({ clock: systemClock });
  const rows = "(1, 1, 0, 'x'), (2, 2, 2, 'y'), (3, NULL, 3, NULL), (4, 4, 0, '10')";
  for (const table of ["t", "s"]) {
    await own.run(`CREATE TABLE ${table} (id INT PRIMARY KEY, a INT, b INT, c TEXT)`);
    await own.run(`INSERT INTO ${table} VALUES ${rows}`);
  }
  await own.run("UPDATE s SET c = 'other', b = 7 WHERE id = 2");
  for (const word of ["EXISTS", "NOT EXISTS"]) {
    const exists = `${word} (SELECT 1 FROM s WHERE ${condition})`;
    const asked = await own.rows(`SELECT id, ${exists} FROM t ORDER BY id`);
    const expected = asked.filter(([, isThere]) => isThere === true).map(([id]) => [id]);
    expect(await own.rows(`SELECT id FROM t WHERE ${exists} ORDER BY id`)).toEqual(expected);
  }
});
