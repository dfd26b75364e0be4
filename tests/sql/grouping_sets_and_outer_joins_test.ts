/**
 * Tests full and right joins, grouping sets, and the order of rows within aggregates. The expected
 * results are PostgreSQL's.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { withArrayTexts } from "../support/slt_arrays.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, g TEXT, h INT, x INT);" +
      "INSERT INTO t VALUES (1, 'a', 1, 10), (2, 'a', 2, 20), (3, 'a', NULL, 20), (4, 'b', 1, NULL), (5, NULL, 2, 5);" +
      "CREATE TABLE s (id INT PRIMARY KEY, h INT, y TEXT);" +
      "INSERT INTO s VALUES (1, 1, 'p'), (2, 3, 'q'), (3, NULL, 'r'), (7, 2, 'z');" +
      "CREATE TABLE none (id INT PRIMARY KEY, x INT)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const ANSWERS: readonly (readonly [sql: string, rows: readonly unknown[][]])[] = [
  // The following queries have full and right joins.
  [
    "SELECT t.id, s.id FROM t FULL JOIN s ON t.h = s.h ORDER BY 1, 2",
    [
      [1, 1],
      [2, 7],
      [3, null],
      [4, 1],
      [5, 7],
      [null, 2],
      [null, 3],
    ],
  ],
  [
    "SELECT t.id, s.id FROM t RIGHT JOIN s ON t.h = s.h ORDER BY 2, 1",
    [
      [1, 1],
      [4, 1],
      [null, 2],
      [null, 3],
      [2, 7],
      [5, 7],
    ],
  ],
  [
    "SELECT t.id, s.id FROM t FULL JOIN s ON t.h = s.h AND t.id = s.id ORDER BY 1, 2",
    [
      [1, 1],
      [2, null],
      [3, null],
      [4, null],
      [5, null],
      [null, 2],
      [null, 3],
      [null, 7],
    ],
  ],
  [
    "SELECT t.id, s.id FROM t FULL JOIN s ON t.h = s.h WHERE t.id IS NULL OR s.id IS NULL ORDER BY 1, 2",
    [
      [3, null],
      [null, 2],
      [null, 3],
    ],
  ],
  [
    "SELECT t.id, none.id FROM t FULL JOIN none ON t.id = none.id WHERE t.id < 3 ORDER BY 1",
    [
      [1, null],
      [2, null],
    ],
  ],
  [
    "SELECT none.id, s.id FROM none FULL JOIN s ON TRUE ORDER BY 2",
    [
      [null, 1],
      [null, 2],
      [null, 3],
      [null, 7],
    ],
  ],
  ["SELECT count(*) FROM t FULL JOIN s ON FALSE", [[9]]],
  [
    "SELECT h, t.h, s.h FROM t FULL JOIN s USING (h) ORDER BY t.id, s.id",
    [
      [1, 1, 1],
      [2, 2, 2],
      [null, null, null],
      [1, 1, 1],
      [2, 2, 2],
      [3, null, 3],
      [null, null, null],
    ],
  ],
  [
    "SELECT h, t.id, y FROM t RIGHT JOIN s USING (h) ORDER BY s.id, t.id",
    [
      [1, 1, "p"],
      [1, 4, "p"],
      [3, null, "q"],
      [null, null, "r"],
      [2, 2, "z"],
      [2, 5, "z"],
    ],
  ],
  [
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) l(k, p) NATURAL FULL JOIN (VALUES (2, 'y'), (3, 'z')) r(k, q) ORDER BY k",
    [
      [1, "a", null],
      [2, "b", "y"],
      [3, null, "z"],
    ],
  ],
  [
    "SELECT k FROM (VALUES (1), (2)) a(k) FULL JOIN (VALUES (2), (3)) b(k) USING (k) FULL JOIN (VALUES (3), (4)) c(k) USING (k) ORDER BY k",
    [[1], [2], [3], [4]],
  ],
  [
    "SELECT h, count(*) FROM t FULL JOIN s USING (h) WHERE h > 1 GROUP BY h ORDER BY h",
    [
      [2, 2],
      [3, 1],
    ],
  ],
  [
    "SELECT t.id, u.id FROM t RIGHT JOIN (s LEFT JOIN t u ON u.h = s.h) ON t.h = u.h ORDER BY 1, 2",
    [
      [1, 1],
      [1, 4],
      [2, 2],
      [2, 5],
      [4, 1],
      [4, 4],
      [5, 2],
      [5, 5],
      [null, null],
      [null, null],
    ],
  ],
  [
    "SELECT t.id, (SELECT max(y) FROM s RIGHT JOIN (VALUES (t.h)) q(h) ON s.h = q.h) FROM t ORDER BY 1",
    [
      [1, "p"],
      [2, "z"],
      [3, null],
      [4, "p"],
      [5, "z"],
    ],
  ],
  // The following queries have grouping sets.
  [
    "SELECT g, h, count(*), GROUPING(g, h) FROM t GROUP BY ROLLUP (g, h) ORDER BY 4, 1, 2",
    [
      ["a", 1, 1, 0],
      ["a", 2, 1, 0],
      ["a", null, 1, 0],
      ["b", 1, 1, 0],
      [null, 2, 1, 0],
      ["a", null, 3, 1],
      ["b", null, 1, 1],
      [null, null, 1, 1],
      [null, null, 5, 3],
    ],
  ],
  [
    "SELECT g, h, sum(x), GROUPING(g), GROUPING(h) FROM t GROUP BY CUBE (g, h) HAVING GROUPING(g) = 1 ORDER BY 5, 2",
    [
      [null, 1, 10, 1, 0],
      [null, 2, 25, 1, 0],
      [null, null, 20, 1, 0],
      [null, null, 55, 1, 1],
    ],
  ],
  [
    "SELECT g, h, count(*) FROM t GROUP BY GROUPING SETS ((g, h), h, (), ()) ORDER BY 1, 2, 3",
    [
      ["a", 1, 1],
      ["a", 2, 1],
      ["a", null, 1],
      ["b", 1, 1],
      [null, 1, 2],
      [null, 2, 1],
      [null, 2, 2],
      [null, null, 1],
      [null, null, 5],
      [null, null, 5],
    ],
  ],
  [
    "SELECT g, h, count(*) FROM t GROUP BY g, ROLLUP (h) ORDER BY 1, 2, 3",
    [
      ["a", 1, 1],
      ["a", 2, 1],
      ["a", null, 1],
      ["a", null, 3],
      ["b", 1, 1],
      ["b", null, 1],
      [null, 2, 1],
      [null, null, 1],
    ],
  ],
  [
    "SELECT g, h, count(*) FROM t GROUP BY GROUPING SETS (CUBE (g), ROLLUP (h)) ORDER BY 1, 2, 3",
    [
      ["a", null, 3],
      ["b", null, 1],
      [null, 1, 2],
      [null, 2, 2],
      [null, null, 1],
      [null, null, 1],
      [null, null, 5],
      [null, null, 5],
    ],
  ],
  [
    "SELECT g, h, id > 2, count(*) FROM t GROUP BY ROLLUP ((g, h), id > 2) ORDER BY 1, 2, 3, 4",
    [
      ["a", 1, false, 1],
      ["a", 1, null, 1],
      ["a", 2, false, 1],
      ["a", 2, null, 1],
      ["a", null, true, 1],
      ["a", null, null, 1],
      ["b", 1, true, 1],
      ["b", 1, null, 1],
      [null, 2, true, 1],
      [null, 2, null, 1],
      [null, null, null, 5],
    ],
  ],
  [
    "SELECT coalesce(g, '-'), count(*) FROM t GROUP BY ROLLUP (1) ORDER BY 1, 2",
    [
      ["-", 1],
      ["a", 3],
      ["b", 1],
      [null, 5],
    ],
  ],
  [
    "SELECT g AS k, array_agg(id ORDER BY id DESC), count(DISTINCT h), max(x) FILTER (WHERE h = 1) FROM t GROUP BY CUBE (k) ORDER BY 1, 3",
    [
      ["a", "{3,2,1}", 2, 10],
      ["b", "{4}", 1, null],
      [null, "{5}", 1, null],
      [null, "{5,4,3,2,1}", 2, 10],
    ],
  ],
  ["SELECT count(*), sum(x) FROM none GROUP BY ()", [[0, null]]],
  ["SELECT x, count(*) FROM none GROUP BY ROLLUP (x)", [[null, 0]]],
  ["SELECT x, count(*) FROM none GROUP BY x, ROLLUP (x)", []],
  [
    "SELECT x, count(*) FROM none GROUP BY GROUPING SETS ((), (), (x))",
    [
      [null, 0],
      [null, 0],
    ],
  ],
  [
    "SELECT id, x, count(*) FROM t GROUP BY ROLLUP (x), id ORDER BY 1, 2",
    [
      [1, 10, 1],
      [1, null, 1],
      [2, 20, 1],
      [2, null, 1],
      [3, 20, 1],
      [3, null, 1],
      [4, null, 1],
      [4, null, 1],
      [5, 5, 1],
      [5, null, 1],
    ],
  ],
  [
    "SELECT g, GROUPING(g) FROM t GROUP BY g ORDER BY 1",
    [
      ["a", 0],
      ["b", 0],
      [null, 0],
    ],
  ],
  [
    "SELECT g, sum(count(*)) OVER (PARTITION BY GROUPING(g)) FROM t GROUP BY ROLLUP (g) ORDER BY 1, 2",
    [
      ["a", "5"],
      ["b", "5"],
      [null, "5"],
      [null, "5"],
    ],
  ],
  [
    "SELECT id, (SELECT count(*) FROM (SELECT 1 FROM s WHERE s.h = t.h GROUP BY ROLLUP (s.id)) q) FROM t ORDER BY 1",
    [
      [1, 2],
      [2, 2],
      [3, 1],
      [4, 2],
      [5, 2],
    ],
  ],
  // The following queries have ordered-set aggregates, or aggregates with an order.
  [
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC), mode() WITHIN GROUP (ORDER BY x) FROM t",
    [[15, 20, 20]],
  ],
  [
    "SELECT percentile_cont(ARRAY[0, 0.25, NULL, 1]) WITHIN GROUP (ORDER BY x), percentile_disc(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY g) FROM t",
    [["{5,8.75,NULL,20}", "{a,b}"]],
  ],
  [
    "SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FILTER (WHERE id <> 2) FROM t GROUP BY g ORDER BY g",
    [
      ["a", 1],
      ["b", 4],
      [null, 5],
    ],
  ],
  [
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x), percentile_disc(NULL) WITHIN GROUP (ORDER BY x) FROM none",
    [[null, null, null]],
  ],
  [
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY i)::text FROM (VALUES (INTERVAL '1 day'), (INTERVAL '3 days')) q(i)",
    [["1 day 12:00:00"]],
  ],
  [
    "SELECT h, percentile_disc(h / 2.0) WITHIN GROUP (ORDER BY id) FROM t WHERE h IS NOT NULL GROUP BY h ORDER BY h",
    [
      [1, 1],
      [2, 5],
    ],
  ],
  ["SELECT mode() WITHIN GROUP (ORDER BY h DESC) FROM t", [[2]]],
  [
    "SELECT array_agg(DISTINCT x), string_agg(DISTINCT g, ','), array_agg(DISTINCT h ORDER BY h DESC), sum(DISTINCT x) FROM t",
    [["{5,10,20,NULL}", "a,b", "{NULL,2,1}", 35]],
  ],
  [
    "SELECT string_agg(g, ',' ORDER BY x NULLS FIRST, id DESC), count(*) FILTER (WHERE x = 20) FROM t",
    [["b,a,a,a", 2]],
  ],
  [
    "SELECT DISTINCT count(*) FILTER (WHERE x > 5) FROM t GROUP BY g ORDER BY count(*) FILTER (WHERE x > 5)",
    [[0], [3]],
  ],
  // An expression written twice counts as one, even if it contains literals.
  [
    "SELECT (SELECT max(s.id) FROM s WHERE s.h = t.h) + 1, count(*) FROM t GROUP BY (SELECT max(s.id) FROM s WHERE s.h = t.h) ORDER BY 1",
    [
      [2, 2],
      [8, 2],
      [null, 1],
    ],
  ],
  [
    "SELECT (SELECT max(s.id) FROM s WHERE s.h = t.h + 1), count(*) FROM t GROUP BY (SELECT max(s.id) FROM s WHERE s.h = t.h + 1) ORDER BY 1",
    [
      [2, 2],
      [7, 2],
      [null, 1],
    ],
  ],
  [
    "SELECT h IN (SELECT h FROM s), count(*) FROM t GROUP BY h IN (SELECT h FROM s) ORDER BY 1",
    [
      [true, 4],
      [null, 1],
    ],
  ],
  [
    "SELECT DISTINCT (SELECT max(s.id) FROM s WHERE s.h = t.h) FROM t ORDER BY (SELECT max(s.id) FROM s WHERE s.h = t.h)",
    [[1], [7], [null]],
  ],
  [
    "SELECT (SELECT min(id) FROM s WHERE id > 1), (SELECT min(id) FROM s WHERE id > 2), (SELECT random()) = (SELECT random())",
    [[2, 3, false]],
  ],
];

test.each(ANSWERS.map(([sql, rows]) => ({ sql, rows })))("$sql", async ({ rows, sql }) => {
  // The statement runs both through the plan cache and on the general path.
  expect(await engine.printed(sql)).toEqual(rows as unknown[][]);
  const [, entry] = await engine.run(`BEGIN; ${sql}; COMMIT`);
  expect(withArrayTexts(entry?.rows ?? [], entry?.schema ?? [])).toEqual(rows as unknown[][]);
});

const FAILURES: readonly (readonly [sql: string, failure: string])[] = [
  ["SELECT * FROM t FULL JOIN LATERAL (SELECT t.id) q ON TRUE", "INVALID_QUERY@1:26"],
  ["SELECT * FROM t RIGHT JOIN LATERAL (SELECT t.id) q ON TRUE", "INVALID_QUERY@1:27"],
  ["SELECT id FROM t FULL JOIN t u USING (nothing)", "COLUMN_NOT_FOUND@1:38"],
  ["SELECT t.id FROM t FULL JOIN t ON TRUE", "INVALID_QUERY@1"],
  ["SELECT GROUPING(g) FROM t", "INVALID_QUERY@1:7"],
  ["SELECT g FROM t WHERE GROUPING(g) = 0 GROUP BY g", "INVALID_QUERY@1:22"],
  ["SELECT g FROM t GROUP BY g, GROUPING(g)", "INVALID_QUERY@1:28"],
  ["SELECT GROUPING(g), GROUPING(x) FROM t GROUP BY ROLLUP (g)", "INVALID_QUERY@1:20"],
  ["SELECT GROUPING() FROM t GROUP BY g", "INVALID_QUERY@1:7"],
  ["SELECT x FROM t GROUP BY ROLLUP (g)", "INVALID_QUERY@1:7"],
  ["SELECT x FROM t GROUP BY ROLLUP (id)", "INVALID_QUERY@1:7"],
  ["SELECT g FROM t GROUP BY ROLLUP (g, CUBE (x))", "INVALID_QUERY@1:36"],
  [
    "SELECT g FROM t GROUP BY CUBE (g, x, id, h, g, x, id, h, g, x, id, h, g)",
    "LIMIT_EXCEEDED@1:25",
  ],
  ["SELECT percentile_cont(0.5) FROM t", "INVALID_QUERY@1:7"],
  ["SELECT percentile_cont(0.5, x) FROM t", "INVALID_QUERY@1:7"],
  ["SELECT sum(x) WITHIN GROUP (ORDER BY x) FROM t", "INVALID_QUERY@1:7"],
  ["SELECT mode(DISTINCT x) WITHIN GROUP (ORDER BY x) FROM t", "INVALID_QUERY@1:7"],
  ["SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g) FROM t", "FUNCTION_NOT_FOUND@1:7"],
  ["SELECT percentile_cont(x) WITHIN GROUP (ORDER BY id) FROM t", "INVALID_QUERY@1:23"],
  ["SELECT percentile_cont(2) WITHIN GROUP (ORDER BY x) FROM t", "VALUE_OUT_OF_RANGE@1"],
  ["SELECT sum(x ORDER BY sum(x)) FROM t", "INVALID_QUERY@1:22"],
  ["SELECT upper(DISTINCT g) FROM t", "INVALID_QUERY@1:7"],
  // The error position is that of the column that is not grouped.
  ["SELECT t.id, u.id FROM t, t u GROUP BY t.id", "INVALID_QUERY@1:13"],
  ["SELECT upper(g), sum(x), x FROM t GROUP BY upper(g)", "INVALID_QUERY@1:25"],
  ["SELECT upper(g), lower(g) FROM t GROUP BY 1", "INVALID_QUERY@1:23"],
  ["SELECT count(*) OVER (ORDER BY x) FROM t GROUP BY g", "INVALID_QUERY@1:31"],
  ["SELECT g, count(*) FROM t GROUP BY g, 2", "INVALID_QUERY@1:38"],
  ["SELECT g, count(*) AS n FROM t GROUP BY g, n", "INVALID_QUERY@1:43"],
  // DISTINCT aggregates equal values once, so the other columns of their rows cannot order them.
  ["SELECT array_agg(DISTINCT g ORDER BY id) FROM t", "INVALID_QUERY@1:37"],
  ["SELECT string_agg(DISTINCT g, ',' ORDER BY g, upper(g)) FROM t", "INVALID_QUERY@1:46"],
  ["SELECT string_agg(DISTINCT x::TEXT, ',' ORDER BY x) FROM t", "INVALID_QUERY@1:49"],
  ["SELECT count(DISTINCT (g, x) ORDER BY g) FROM t", "INVALID_QUERY@1:38"],
  // A constant has no effect in GROUP BY or ORDER BY.
  ["SELECT g FROM t ORDER BY 'g'", "INVALID_QUERY@1:25"],
  ["SELECT g FROM t ORDER BY -1.5", "INVALID_QUERY@1:25"],
  ["SELECT count(*) FROM t GROUP BY ROLLUP (NULL)", "INVALID_QUERY@1:40"],
  ["SELECT DISTINCT ON (TRUE) g FROM t", "INVALID_QUERY@1:20"],
];

test.each(FAILURES.map(([sql, failure]) => ({ sql, failure })))(
  "$sql",
  async ({ failure, sql }) => {
    expect(await engine.failure(sql)).toBe(failure);
  },
);

test("a full join of many rows processes them batch by batch", async () => {
  await engine.run("CREATE TABLE a (id INT PRIMARY KEY); CREATE TABLE b (id INT PRIMARY KEY)");
  const values = (from: number): string =>
    Array.from({ length: 9000 }, (_, i) => `(${from + i})`).join(", ");
  await engine.run(`INSERT INTO a VALUES ${values(0)}; INSERT INTO b VALUES ${values(6000)}`);
  const sql = "SELECT count(*), count(a.id), count(b.id), sum(id) FROM a FULL JOIN b USING (id)";
  expect(await engine.printed(sql)).toEqual([[15_000, 9000, 9000, 112_492_500]]);
});

test.each([
  ["ROLLUP", rollup(361), rollup(362), 65_703],
  ["products of ROLLUP", `${rollup(40)}, ${rollup(39)}`, `${rollup(40)}, ${rollup(40)}`, 67_240],
])("the expressions in all sets of %s are bounded", async (_name, allowed, refused, count) => {
  const rows = await engine.printed(`SELECT count(*) FROM t WHERE x < 0 GROUP BY ${allowed}`);
  expect(rows).toEqual([[0]]);
  const { error } = await engine.ask(`SELECT 1 FROM t GROUP BY ${refused}`);
  expect(error).toMatchObject({
    code: "LIMIT_EXCEEDED",
    message: `Cannot use grouping sets: they contain ${count} expressions in total, but the maximum is 65536`,
  });
});

test("a CUBE with the maximum number of grouping sets runs", async () => {
  const cube = Array.from({ length: 12 }, (_, i) => `x + ${i}`).join(", ");
  const sql = `SELECT count(*) FROM (SELECT 1 FROM t WHERE x < 0 GROUP BY CUBE (${cube})) q`;
  expect(await engine.printed(sql)).toEqual([[1]]);
});

function rollup(count: number): string {
  return `ROLLUP (${Array.from({ length: count }, (_, i) => `x + ${i}`).join(", ")})`;
}
