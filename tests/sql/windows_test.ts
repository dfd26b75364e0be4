/**
 * Tests window calls: the results match PostgreSQL's, invalid calls are refused, and the cost
 * grows with the number of rows rather than with the size of the frames.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { withArrayTexts } from "../support/slt_arrays.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  const config = "performance.query_memory_bytes = 16777216\nlimits.max_timeout_ms = 20000";
  engine = await TestEngine.open({ clock: systemClock, config });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, g TEXT, x INT, d DATE);" +
      "INSERT INTO t VALUES (1, 'a', 10, '2024-01-01'), (2, 'a', 20, '2024-01-02'), (3, 'a', 20, '2024-01-04'), " +
      "(4, 'b', NULL, '2024-02-01'), (5, 'b', 5, NULL), (6, NULL, 7, '2024-02-10')",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const ANSWERS: readonly (readonly [sql: string, rows: readonly unknown[][]])[] = [
  // Calls that number and rank rows. Peer rows share a rank.
  [
    "SELECT id, row_number() OVER w, rank() OVER (w), dense_rank() OVER w FROM t WINDOW w AS (ORDER BY x DESC NULLS LAST) ORDER BY x DESC NULLS LAST, 2",
    [
      [2, 1, 1, 1],
      [3, 2, 1, 1],
      [1, 3, 3, 2],
      [6, 4, 4, 3],
      [5, 5, 5, 4],
      [4, 6, 6, 5],
    ],
  ],
  [
    "SELECT id, percent_rank() OVER (ORDER BY x), cume_dist() OVER (ORDER BY x) FROM t WHERE g = 'a' ORDER BY id",
    [
      [1, 0, 0.3333333333333333],
      [2, 0.5, 1],
      [3, 0.5, 1],
    ],
  ],
  [
    "SELECT id, ntile(4) OVER (ORDER BY id), ntile(2) OVER (PARTITION BY g ORDER BY id), ntile(99) OVER (ORDER BY id), ntile(NULL) OVER () FROM t ORDER BY id",
    [
      [1, 1, 1, 1, null],
      [2, 1, 1, 2, null],
      [3, 2, 2, 3, null],
      [4, 2, 1, 4, null],
      [5, 3, 2, 5, null],
      [6, 4, 1, 6, null],
    ],
  ],
  ["SELECT percent_rank() OVER (), cume_dist() OVER () FROM t WHERE id = 1", [[0, 1]]],
  [
    "SELECT v, ntile(nullif(v, 1)) OVER (ORDER BY v) FROM (VALUES (1), (2), (3), (4), (5)) q(v) ORDER BY v",
    [
      [1, null],
      [2, 1],
      [3, 1],
      [4, 1],
      [5, 2],
    ],
  ],
  // Calls that return values from other rows.
  [
    "SELECT id, lag(x) OVER w, lead(x, 2) OVER w, lag(x, 1, 0) OVER w, lead(x, -1) OVER w, lag(x, 0) OVER w, lag(x, NULL) OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY id) ORDER BY id",
    [
      [1, null, 20, 0, null, 10, null],
      [2, 10, null, 10, 10, 20, null],
      [3, 20, null, 20, 20, 20, null],
      [4, null, null, 0, null, null, null],
      [5, null, null, null, null, 5, null],
      [6, null, null, 0, null, 7, null],
    ],
  ],
  [
    "SELECT id, lag(id, 1, 0.5) OVER (ORDER BY id) FROM t ORDER BY id LIMIT 2",
    [
      [1, "0.5"],
      [2, "1"],
    ],
  ],
  [
    "SELECT id, first_value(x) OVER w, last_value(x) OVER w, nth_value(x, 2) OVER w, nth_value(x, id) OVER w FROM t WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) ORDER BY id",
    [
      [1, 10, 20, 20, 10],
      [2, 10, null, 20, 20],
      [3, 20, 5, 20, null],
      [4, 20, 7, null, 7],
      [5, null, 7, 5, null],
      [6, 5, 7, 7, null],
    ],
  ],
  [
    "SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w FROM t WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) ORDER BY id",
    [
      [1, 2, 2, null],
      [2, 1, 3, 3],
      [3, 2, 4, 4],
      [4, 3, 5, 5],
      [5, 4, 6, 6],
      [6, 5, 5, null],
    ],
  ],
  // Calls with the default frame, which ends with the last peer of the current row.
  [
    "SELECT id, sum(x) OVER (PARTITION BY g ORDER BY x), sum(x) OVER (PARTITION BY g), count(*) OVER (), max(x) OVER (ORDER BY id) FROM t ORDER BY id",
    [
      [1, 10, 50, 6, 10],
      [2, 50, 50, 6, 20],
      [3, 50, 50, 6, 20],
      [4, 5, 5, 6, 20],
      [5, 5, 5, 6, 20],
      [6, 7, 7, 6, 20],
    ],
  ],
  [
    "SELECT id, last_value(id) OVER (ORDER BY g, id RANGE CURRENT ROW), count(*) OVER (ORDER BY g RANGE CURRENT ROW) FROM t ORDER BY id",
    [
      [1, 1, 3],
      [2, 2, 3],
      [3, 3, 3],
      [4, 4, 2],
      [5, 5, 2],
      [6, 6, 1],
    ],
  ],
  // Calls with ROWS frames.
  [
    "SELECT id, sum(id) OVER (ORDER BY id ROWS 2 PRECEDING), sum(id) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING), sum(id) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) FROM t ORDER BY id",
    [
      [1, 1, null, 7],
      [2, 3, null, 9],
      [3, 6, 1, 11],
      [4, 9, 3, 6],
      [5, 12, 5, null],
      [6, 15, 7, null],
    ],
  ],
  [
    "SELECT id, min(x) OVER w, max(x) OVER w, avg(x) OVER w, count(x) OVER w FROM t WINDOW w AS (ORDER BY id DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY id",
    [
      [1, 10, 20, 15, 2],
      [2, 20, 20, 20, 2],
      [3, 20, 20, 20, 1],
      [4, 5, 5, 5, 1],
      [5, 5, 7, 6, 2],
      [6, 7, 7, 7, 1],
    ],
  ],
  [
    "SELECT id, min(x) OVER w, string_agg(g, '') OVER w, bool_and(x > 6) OVER w FROM t WINDOW w AS (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) ORDER BY id",
    [
      [1, 5, "aaabb", false],
      [2, 5, "aabb", false],
      [3, 5, "abb", false],
      [4, 5, "bb", false],
      [5, 5, "b", false],
      [6, 7, null, true],
    ],
  ],
  [
    "SELECT id, array_agg(id) OVER (ORDER BY id), (sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) FROM t ORDER BY id LIMIT 3",
    [
      [1, "{1}", null],
      [2, "{1,2}", 1],
      [3, "{1,2,3}", 3],
    ],
  ],
  // Calls with RANGE frames. NULLs are peers of each other, and no offset includes them.
  [
    "SELECT id, count(*) OVER (ORDER BY x RANGE BETWEEN 5 PRECEDING AND 3 FOLLOWING), count(*) OVER (ORDER BY x DESC RANGE BETWEEN 5 PRECEDING AND 3 FOLLOWING), count(*) OVER (ORDER BY x NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING), count(*) OVER (ORDER BY x RANGE BETWEEN 3 FOLLOWING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id",
    [
      [1, 3, 2, 4, 3],
      [2, 2, 2, 6, 1],
      [3, 2, 2, 6, 1],
      [4, 1, 1, 1, 1],
      [5, 2, 3, 3, 4],
      [6, 3, 3, 4, 4],
    ],
  ],
  [
    "SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN '1 day' PRECEDING AND INTERVAL '1 month' FOLLOWING) FROM t ORDER BY id",
    [
      [1, 4],
      [2, 4],
      [3, 2],
      [4, 2],
      [5, 1],
      [6, 1],
    ],
  ],
  [
    "SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 0.05 PRECEDING AND 0.05 FOLLOWING) FROM (VALUES (1.00), (1.05), (1.101), (2)) q(v) ORDER BY v",
    [
      ["1.00", 2],
      ["1.05", 2],
      ["1.101", 1],
      ["2", 1],
    ],
  ],
  [
    "SELECT v::text, count(*) OVER (ORDER BY v RANGE BETWEEN '2 hours' PRECEDING AND '2 hours' FOLLOWING) FROM (VALUES (TIME '00:30'), (TIME '02:30'), (TIME '23:30')) q(v) ORDER BY v",
    [
      ["00:30:00", 2],
      ["02:30:00", 2],
      ["23:30:00", 1],
    ],
  ],
  [
    "SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN 9223372036854775807 PRECEDING AND 1 FOLLOWING) FROM (VALUES (9223372036854775807), (-9223372036854775807), (0)) q(v) ORDER BY v",
    [
      ["-9223372036854775807", 1],
      [0, 2],
      ["9223372036854775807", 2],
    ],
  ],
  // An infinite offset from an infinite value reaches all finite numbers, but not NaN.
  ...["DOUBLE PRECISION", "REAL", "NUMERIC"].flatMap((type) =>
    (
      [
        ["'inf' PRECEDING AND 'inf' FOLLOWING", "", "3 3 3 1"],
        ["'inf' PRECEDING AND 'inf' PRECEDING", "", "1 1 3 1"],
        ["'inf' FOLLOWING AND 'inf' FOLLOWING", "", "3 1 1 1"],
        ["'inf' PRECEDING AND 'inf' PRECEDING", "DESC", "3 1 1 1"],
        ["1 PRECEDING AND 'inf' FOLLOWING", "", "3 2 1 1"],
      ] as const
    ).map(([frame, order, counts]): [string, string[][]] => [
      `SELECT string_agg(n::TEXT, ' ' ORDER BY v) FROM (SELECT v, count(*) OVER (ORDER BY v ${order} RANGE BETWEEN ${frame}) AS n FROM (VALUES ('-inf'::${type}), (2), ('inf'), ('NaN')) q(v)) r`,
      [[counts]],
    ]),
  ),
  // Calls with GROUPS frames, and frames from which EXCLUDE omits rows.
  [
    "SELECT id, sum(id) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW), sum(id) OVER (ORDER BY x GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM t ORDER BY id",
    [
      [1, 7, 9],
      [2, 6, 4],
      [3, 6, 4],
      [4, 9, null],
      [5, 5, 7],
      [6, 11, 6],
    ],
  ],
  [
    "SELECT id, sum(id) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW), sum(id) OVER (w RANGE UNBOUNDED PRECEDING EXCLUDE GROUP), sum(id) OVER (w RANGE UNBOUNDED PRECEDING EXCLUDE CURRENT ROW), sum(id) OVER (w RANGE UNBOUNDED PRECEDING EXCLUDE TIES), max(id) OVER (w GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP), sum(id) OVER (w GROUPS CURRENT ROW EXCLUDE NO OTHERS) FROM t WINDOW w AS (ORDER BY x) ORDER BY id",
    [
      [1, 8, 11, 11, 12, 6, 1],
      [2, 4, 12, 15, 14, 4, 5],
      [3, 6, 12, 14, 15, 4, 5],
      [4, 3, 17, 17, 21, 3, 4],
      [5, 6, null, null, 5, 6, 5],
      [6, 6, 5, 5, 11, 5, 6],
    ],
  ],
  [
    "SELECT v, sum(v) OVER (ORDER BY v GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES), count(*) OVER (ORDER BY v GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) FROM (VALUES (1), (1), (1), (2)) q(v) ORDER BY v",
    [
      [1, 3, 1],
      [1, 3, 1],
      [1, 3, 1],
      [2, 5, 3],
    ],
  ],
  // Calls with FILTER, and calls over aggregates.
  [
    "SELECT id, count(*) FILTER (WHERE x > 6) OVER (ORDER BY id), sum(x) FILTER (WHERE g = 'a') OVER () FROM t ORDER BY id",
    [
      [1, 1, 50],
      [2, 2, 50],
      [3, 3, 50],
      [4, 3, 50],
      [5, 3, 50],
      [6, 4, 50],
    ],
  ],
  [
    "SELECT g, sum(x), sum(sum(x)) OVER (ORDER BY g), rank() OVER (ORDER BY count(*) DESC, g) FROM t GROUP BY g ORDER BY g",
    [
      ["a", 50, "50", 1],
      ["b", 5, "55", 2],
      [null, 7, "62", 3],
    ],
  ],
  [
    "SELECT g, count(*) OVER () FROM t GROUP BY g HAVING count(*) > 1 ORDER BY rank() OVER (ORDER BY g DESC)",
    [
      ["b", 2],
      ["a", 2],
    ],
  ],
  // Queries that extend named windows.
  [
    "SELECT id, sum(id) OVER (p ORDER BY id), sum(id) OVER (o ROWS 1 PRECEDING), count(*) OVER p FROM t WINDOW p AS (PARTITION BY g), o AS (p ORDER BY id DESC) ORDER BY id",
    [
      [1, 1, 3, 3],
      [2, 3, 5, 3],
      [3, 6, 3, 3],
      [4, 4, 9, 2],
      [5, 9, 5, 2],
      [6, 6, 6, 1],
    ],
  ],
  // Queries with window calls in each clause that allows them.
  [
    "SELECT DISTINCT count(*) OVER (PARTITION BY g) FROM t ORDER BY count(*) OVER (PARTITION BY g)",
    [[1], [2], [3]],
  ],
  [
    "SELECT DISTINCT ON (rank() OVER (ORDER BY g)) id FROM t ORDER BY rank() OVER (ORDER BY g), id DESC",
    [[3], [5], [6]],
  ],
  ["SELECT id FROM t ORDER BY lag(id, 1, 99) OVER (ORDER BY id) DESC LIMIT 2", [[1], [6]]],
  [
    "SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY x DESC NULLS LAST, id) AS n FROM t) q WHERE n = 1 ORDER BY id",
    [
      [2, 1],
      [5, 1],
      [6, 1],
    ],
  ],
  [
    "SELECT id, (SELECT max(n) FROM (SELECT row_number() OVER () AS n FROM t i WHERE i.g = t.g) q) FROM t ORDER BY id",
    [
      [1, 3],
      [2, 3],
      [3, 3],
      [4, 2],
      [5, 2],
      [6, null],
    ],
  ],
  [
    "SELECT id, (SELECT r FROM (SELECT id, rank() OVER (ORDER BY x) AS r FROM t i) q WHERE q.id = t.id) FROM t ORDER BY id",
    [
      [1, 3],
      [2, 4],
      [3, 4],
      [4, 6],
      [5, 1],
      [6, 2],
    ],
  ],
  [
    "SELECT id, (SELECT sum(i.id) OVER (ORDER BY i.id DESC) FROM t i WHERE i.g = t.g ORDER BY i.id LIMIT 1) FROM t ORDER BY id",
    [
      [1, 6],
      [2, 6],
      [3, 6],
      [4, 9],
      [5, 9],
      [6, null],
    ],
  ],
  [
    "SELECT id, sum((SELECT count(*) FROM t i WHERE i.g = t.g)) OVER (ORDER BY id) FROM t ORDER BY id",
    [
      [1, "3"],
      [2, "6"],
      [3, "9"],
      [4, "11"],
      [5, "13"],
      [6, "13"],
    ],
  ],
  [
    "SELECT count(*) OVER (PARTITION BY 'k' ORDER BY 1), row_number() OVER (ORDER BY NULL) > 0 FROM t LIMIT 1",
    [[6, true]],
  ],
  ["SELECT row_number() OVER () FROM t WHERE FALSE", []],
  ["SELECT 1 + count(*) OVER ()", [[2]]],
];

test.each(ANSWERS.map(([sql, rows]) => ({ sql, rows })))("$sql", async ({ rows, sql }) => {
  // Runs the statement both through the plan cache and on the general path.
  expect(await engine.printed(sql)).toEqual(rows as unknown[][]);
  const [, entry] = await engine.run(`BEGIN; ${sql}; COMMIT`);
  expect(withArrayTexts(entry?.rows ?? [], entry?.schema ?? [])).toEqual(rows as unknown[][]);
});

const FAILURES: readonly (readonly [sql: string, failure: string])[] = [
  // Queries with window calls in clauses that refuse them.
  ["SELECT id FROM t WHERE rank() OVER (ORDER BY id) = 1", "INVALID_QUERY@1:23"],
  ["SELECT id FROM t GROUP BY rank() OVER (ORDER BY id)", "INVALID_QUERY@1:26"],
  ["SELECT rank() OVER (ORDER BY id) AS r FROM t GROUP BY r", "INVALID_QUERY@1:54"],
  ["SELECT count(*) FROM t HAVING rank() OVER () = 1", "INVALID_QUERY@1:30"],
  ["SELECT 1 FROM t a JOIN t b ON rank() OVER () = 1", "INVALID_QUERY@1:30"],
  ["SELECT sum(rank() OVER ()) FROM t", "INVALID_QUERY@1:11"],
  ["SELECT sum(rank() OVER ()) OVER () FROM t", "INVALID_QUERY@1:11"],
  ["SELECT rank() OVER (ORDER BY rank() OVER ()) FROM t", "INVALID_QUERY@1:29"],
  ["SELECT 1 LIMIT rank() OVER ()", "INVALID_QUERY@1:15"],
  ["UPDATE t SET x = rank() OVER ()", "INVALID_QUERY@1:17"],
  ["VALUES (rank() OVER ())", "INVALID_QUERY@1:8"],
  // Combinations of clauses that window calls refuse.
  ["SELECT rank() FROM t", "INVALID_QUERY@1:7"],
  ["SELECT upper(g) OVER () FROM t", "INVALID_QUERY@1:7"],
  ["SELECT nothing(g) OVER () FROM t", "FUNCTION_NOT_FOUND@1:7"],
  ["SELECT rank() FILTER (WHERE TRUE) OVER () FROM t", "INVALID_QUERY@1:7"],
  ["SELECT lag(DISTINCT x) OVER () FROM t", "INVALID_QUERY@1:7"],
  ["SELECT count(DISTINCT x) OVER () FROM t", "UNSUPPORTED_FEATURE@1:7"],
  ["SELECT string_agg(g, ',' ORDER BY x) OVER () FROM t", "UNSUPPORTED_FEATURE@1:7"],
  ["SELECT mode() WITHIN GROUP (ORDER BY x) OVER () FROM t", "UNSUPPORTED_FEATURE@1:7"],
  ["SELECT sum(x) FILTER (WHERE count(*) > 1) OVER () FROM t", "INVALID_QUERY@1:28"],
  ["SELECT rank(x) OVER () FROM t", "FUNCTION_NOT_FOUND@1:7"],
  ["SELECT lag() OVER () FROM t", "FUNCTION_NOT_FOUND@1:7"],
  ["SELECT lag(x, 'a') OVER () FROM t", "INVALID_VALUE@1:14"],
  ["SELECT lag(x, 1, g) OVER () FROM t", "TYPE_MISMATCH@1:11"],
  ["SELECT x, sum(id) OVER () FROM t GROUP BY g", "INVALID_QUERY@1:7"],
  ["SELECT g, rank() OVER (ORDER BY x) FROM t GROUP BY g", "INVALID_QUERY@1:32"],
  // Window definitions that are contradictory or incomplete.
  ["SELECT rank() OVER w FROM t", "INVALID_QUERY@1:19"],
  ["SELECT rank() OVER w FROM t WINDOW w AS (), w AS ()", "INVALID_QUERY@1:44"],
  ["SELECT rank() OVER w FROM t WINDOW w AS (v), v AS ()", "INVALID_QUERY@1:41"],
  ["SELECT rank() OVER (w PARTITION BY g) FROM t WINDOW w AS ()", "INVALID_QUERY@1:19"],
  ["SELECT rank() OVER (w ORDER BY g) FROM t WINDOW w AS (ORDER BY x)", "INVALID_QUERY@1:19"],
  ["SELECT rank() OVER (w) FROM t WINDOW w AS (ROWS 1 PRECEDING)", "INVALID_QUERY@1:19"],
  ["SELECT 1 FROM t WINDOW w AS (ORDER BY nothing)", "COLUMN_NOT_FOUND@1:38"],
  // Invalid frames.
  ["SELECT sum(x) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t", "INVALID_QUERY@1:20"],
  ["SELECT sum(x) OVER (ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW) FROM t", "INVALID_QUERY@1:20"],
  ["SELECT sum(x) OVER (ROWS 1 FOLLOWING) FROM t", "INVALID_QUERY@1:20"],
  ["SELECT sum(x) OVER (ROWS UNBOUNDED FOLLOWING) FROM t", "INVALID_SQL@1:25"],
  ["SELECT sum(x) OVER (GROUPS 1 PRECEDING) FROM t", "INVALID_QUERY@1:20"],
  ["SELECT sum(x) OVER (RANGE 1 PRECEDING) FROM t", "INVALID_QUERY@1:26"],
  ["SELECT sum(x) OVER (ORDER BY x, id RANGE 1 PRECEDING) FROM t", "INVALID_QUERY@1:41"],
  ["SELECT sum(x) OVER (ORDER BY g RANGE 1 PRECEDING) FROM t", "TYPE_MISMATCH@1:37"],
  ["SELECT sum(x) OVER (ORDER BY d RANGE 1 PRECEDING) FROM t", "TYPE_MISMATCH@1:37"],
  ["SELECT sum(x) OVER (ORDER BY id ROWS x PRECEDING) FROM t", "COLUMN_NOT_FOUND@1:37"],
  ["SELECT sum(x) OVER (ORDER BY id ROWS sum(1) PRECEDING) FROM t", "INVALID_QUERY@1:37"],
  ["SELECT sum(x) OVER (ORDER BY id ROWS -1 PRECEDING) FROM t", "VALUE_OUT_OF_RANGE@1"],
  ["SELECT sum(x) OVER (ORDER BY id ROWS NULL::int PRECEDING) FROM t", "VALUE_OUT_OF_RANGE@1"],
  ["SELECT sum(x) OVER (ORDER BY id ROWS 1.5 PRECEDING) FROM t", "TYPE_MISMATCH@1:37"],
  ["SELECT sum(x) OVER (ORDER BY d RANGE '-1 day' PRECEDING) FROM t", "VALUE_OUT_OF_RANGE@1"],
  ["SELECT ntile(0) OVER () FROM t", "VALUE_OUT_OF_RANGE@1"],
  ["SELECT nth_value(x, 0) OVER () FROM t", "VALUE_OUT_OF_RANGE@1"],
];

test.each(FAILURES.map(([sql, failure]) => ({ sql, failure })))(
  "$sql",
  async ({ failure, sql }) => {
    expect(await engine.failure(sql)).toBe(failure);
  },
);

test("a plain SELECT with a window does not return system columns", async () => {
  const names = async (sql: string): Promise<unknown> =>
    (await engine.run(sql))[0]?.schema?.map(({ name }) => name);
  expect(await names("SELECT *, rank() OVER () AS r FROM t")).toEqual(["id", "g", "x", "d", "r"]);
  expect(await names("SELECT * FROM t ORDER BY rank() OVER ()")).toEqual(["id", "g", "x", "d"]);
  expect(await names("SELECT * FROM t ORDER BY id")).toEqual([
    "id",
    "g",
    "x",
    "d",
    "_seq",
    "_deleted",
  ]);
});

test("parameters may be arguments, offsets and defaults", async () => {
  const sql =
    "SELECT lag(id, $1, $2) OVER w, sum(id) OVER (w ROWS $1 PRECEDING) FROM t WINDOW w AS (ORDER BY id)";
  const rows = await engine.printed(`${sql} LIMIT 4`, { params: [2, -1] });
  expect(rows).toEqual([
    [-1, 1],
    [-1, 3],
    [1, 6],
    [2, 9],
  ]);
});

describe("window functions work over many rows", () => {
  const COUNT = 20_000;

  beforeAll(async () => {
    await engine.run("CREATE TABLE n (id INT PRIMARY KEY, x INT, d DOUBLE)");
    for (let start = 0; start < COUNT; start += 5000) {
      const rows = Array.from({ length: 5000 }, (_, i) => {
        const id = start + i;
        return `(${id}, ${(id * 7919) % 1009}, ${id % 16})`;
      });
      await engine.run(`INSERT INTO n VALUES ${rows.join(", ")}`);
    }
  });

  /** Returns the results of a window call for all rows, in row order. */
  async function valuesOf(call: string): Promise<unknown[]> {
    const sql = `SELECT v FROM (SELECT id, ${call} AS v FROM n) q WHERE id % 97 = 0 ORDER BY id`;
    return (await engine.printed(sql)).map(([value]) => value);
  }

  const x = (id: number): number => (id * 7919) % 1009;
  const ids = Array.from({ length: COUNT }, (_, id) => id).filter((id) => id % 97 === 0);

  /** Computes window values over a ROWS frame directly from the definition of the frame. */
  function framed(before: number, after: number, fold: (values: readonly number[]) => number) {
    return ids.map((id) => {
      const start = Math.max(0, id - before);
      const end = Math.min(COUNT, id + after + 1);
      return fold(Array.from({ length: Math.max(0, end - start) }, (_, i) => x(start + i)));
    });
  }

  const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

  test("sliding frames give the same result as frames that are read again", async () => {
    const rows = "OVER (ORDER BY id ROWS BETWEEN 500 PRECEDING AND 300 FOLLOWING";
    expect(await valuesOf(`sum(x) ${rows})`)).toEqual(framed(500, 300, sum));
    expect(await valuesOf(`max(x) ${rows})`)).toEqual(framed(500, 300, (v) => Math.max(...v)));
    expect(await valuesOf(`min(x) ${rows})`)).toEqual(framed(500, 300, (v) => Math.min(...v)));
    const others = await valuesOf(`sum(x) ${rows} EXCLUDE CURRENT ROW)`);
    expect(others).toEqual(framed(500, 300, sum).map((all, i) => all - x(ids[i] ?? 0)));
  });

  test("frames with an open side need a single pass", async () => {
    // If each call read every frame anew, it would visit 400 million rows.
    const calls = ["sum(x)", "avg(d)", "max(x)", "stddev(x)", "count(*)", "bool_or(x > 5)"];
    for (const frame of ["UNBOUNDED PRECEDING", "BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]) {
      for (const call of calls) {
        const values = await valuesOf(`${call} OVER (ORDER BY id ROWS ${frame})`);
        expect(values).toHaveLength(ids.length);
      }
    }
    const last = await engine.printed(
      "SELECT s FROM (SELECT id, sum(x) OVER (ORDER BY id DESC) AS s FROM n) q WHERE id = 0",
    );
    expect(last).toEqual(await engine.printed("SELECT sum(x) FROM n"));
  });

  test("windows are limited by the memory and the time of the statement", async () => {
    const wide = "SELECT count(*) FROM (SELECT array_agg(id) OVER (ORDER BY id) FROM n) q(a)";
    expect(await engine.failure("SELECT *, rank() OVER (ORDER BY a.x) FROM n a, n b")).toBe(
      "MEMORY_EXCEEDED@1",
    );
    expect(await engine.failure(`${wide} WHERE a IS NOT NULL`, { timeoutMs: 200 })).toBe(
      "STATEMENT_TIMEOUT@1",
    );
  });
});
