/**
 * Tests array elements and slices, OVERLAPS, comparisons of rows with rows and queries, and counts
 * of distinct rows.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT);" +
      "INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y'), (3, NULL, 'z')",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const SPAN = "(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-10')";

/** Expressions, each with PostgreSQL's result. */
const VALUES: readonly (readonly [string, unknown])[] = [
  ["((ARRAY[5,6,7])[1:3])[2]", 6],
  ["((ARRAY[[1,2],[3,4]])[1:2])[2][1]", 3],
  ["((ARRAY[[1,2],[3,4]])[1:2])[2:2][1:1]", "{{3}}"],
  ["(ARRAY[[1,2],[3,4]])[1:2][1]", "{{1},{3}}"],
  ["(ARRAY[1,2,3])[2:3]", "{2,3}"],
  // A row without fields satisfies both IS NULL and IS NOT NULL.
  ["ROW() IS NULL", true],
  ["ROW() IS NOT NULL", true],
  ["(SELECT q IS NULL AND q IS NOT NULL FROM (SELECT) q)", true],
  ["(SELECT count(*) FROM (SELECT FROM t) q WHERE q IS NULL)", 3],
  ["ROW() IS DISTINCT FROM ROW()", false],
  ["ROW() IS NOT DISTINCT FROM ROW()", true],
  ["(ARRAY[1,2,3])[:2]", "{1,2}"],
  ["(ARRAY[1,2,3])[2:]", "{2,3}"],
  ["(ARRAY[1,2,3])[:]", "{1,2,3}"],
  ["(ARRAY[1,2,3])[-5:1]", "{1}"],
  ["(ARRAY[1,2,3])[3:9]", "{3}"],
  ["(ARRAY[1,2,3])[3:2]", "{}"],
  ["(ARRAY[1,2,3])[0:0]", "{}"],
  ["(ARRAY['a','b','c'])[2:3][1:1]", "{}"],
  ["(ARRAY[1,2,3])[NULL:2]", null],
  ["(ARRAY[1,2,3])[1:NULL]", null],
  ["(NULL::int[])[1:2]", null],
  ["(ARRAY(SELECT id FROM t ORDER BY id))[2:]", "{2,3}"],
  ["(SELECT max((ARRAY[10,20,30])[a:id]) FROM t WHERE id = 2)", "{10,20}"],
  // A subscript is converted as in an assignment to a column: a larger type is narrowed, and a
  // fraction is rounded.
  ["(ARRAY['a','b','c'])[7::bigint % 3 + 1]", "b"],
  [
    "(SELECT max((ARRAY['a','b','c'])[count % 3]) FROM (SELECT count(*) FROM t WHERE id < 3) c)",
    "b",
  ],
  ["(ARRAY[0,1,2,3,4,5,6])[extract(dow FROM DATE '2024-06-08') + 1]", 6],
  ["(ARRAY[1,2,3])[1.6]", 2],
  ["(ARRAY[1,2,3])[1.4::double precision:2::bigint]", "{1,2}"],
  ["(ARRAY[1,2,3])['2']", 2],
  [`${SPAN} OVERLAPS (TIMESTAMP '2024-01-09', TIMESTAMP '2024-02-01')`, true],
  [`${SPAN} OVERLAPS (TIMESTAMP '2024-01-10', TIMESTAMP '2024-02-01')`, false],
  [`${SPAN} OVERLAPS (TIMESTAMP '2024-02-01', TIMESTAMP '2024-01-05')`, true],
  [`${SPAN} OVERLAPS (TIMESTAMP '2024-01-09', INTERVAL '1 day')`, true],
  [`(DATE '2024-01-01', INTERVAL '9 days') OVERLAPS (DATE '2024-01-10', DATE '2024-01-11')`, false],
  [`(DATE '2024-01-01', INTERVAL '1 day') OVERLAPS (DATE '2024-01-01', INTERVAL '5 days')`, true],
  ["(TIME '10:00', TIME '12:00') OVERLAPS (TIME '11:00', TIME '13:00')", true],
  [`${SPAN} OVERLAPS (TIMESTAMP '2024-01-05', NULL)`, true],
  [`${SPAN} OVERLAPS (NULL::timestamp, NULL)`, null],
  // DISTINCT compares entire rows: two NULLs are equal, and a row of NULLs counts as one row.
  ["(SELECT count(DISTINCT (a, id > 2)) FROM t)", 2],
  ["(SELECT count(DISTINCT (g % 2, nullif(g % 3, 0))) FROM generate_series(1, 30) g)", 6],
  ["(SELECT count(DISTINCT (nullif(a, a), NULL::int)) FROM t)", 1],
  ["(SELECT count(DISTINCT (a, b)) FILTER (WHERE id < 3) FROM t)", 2],
  ["(SELECT count(DISTINCT (id * 0.0::float8, -id * 0.0::float8)) FROM t)", 1],
  ["(SELECT count(DISTINCT t) + count(DISTINCT t.*) FROM t)", 6],
  ["(SELECT count(DISTINCT u) FROM t LEFT JOIN (SELECT a FROM t WHERE id = 1) u ON u.a = id)", 1],
  [
    "(SELECT string_agg(c::text, ',' ORDER BY c) FROM (SELECT count(DISTINCT (b, 1)) c FROM t GROUP BY a) q)",
    "1,2",
  ],
  ["(1, 'x') < (SELECT a, b FROM t WHERE id = 2)", true],
  ["(1, 'y') < (SELECT a, b FROM t WHERE id = 2)", false],
  ["(1, 'y') <= (SELECT a, b FROM t WHERE id = 2)", true],
  ["(2, 'a') > (SELECT a, b FROM t WHERE id = 2)", true],
  ["(1, 'a') >= (SELECT a, b FROM t WHERE id = 3)", null],
  ["(1, 'a') < (SELECT a, b FROM t WHERE id = 9)", null],
  ["(SELECT count(*) FROM t o WHERE (o.a, o.b) < (SELECT a, b FROM t i WHERE i.id = o.id + 1))", 1],
];

test.each(VALUES)("%s returns %j", async (expression, value) => {
  expect(await engine.printed(`SELECT ${expression}`)).toEqual([[value]]);
});

describe("rare expressions with a fault are refused", () => {
  test.each([
    ["SELECT (5)[1:2]", "TYPE_MISMATCH"],
    ["SELECT ARRAY[NULL, string_to_array('a,b', ',')]", "INVALID_VALUE"],
    [
      "SELECT percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY ARRAY[id]) FROM t",
      "FUNCTION_NOT_FOUND",
    ],
    ["SELECT (ARRAY[1])['x':2]", "INVALID_VALUE"],
    ["SELECT (ARRAY[1])[2147483648]", "VALUE_OUT_OF_RANGE"],
    ["SELECT (ARRAY[1])[1:3e9::double precision]", "VALUE_OUT_OF_RANGE"],
    ["SELECT (ARRAY[1])['x']", "INVALID_VALUE"],
    ["SELECT (ARRAY[1])['1'::text]", "TYPE_MISMATCH"],
    ["SELECT (ARRAY[1])[true]", "TYPE_MISMATCH"],
    ["SELECT (ARRAY[1])[current_date]", "TYPE_MISMATCH"],
    ["SELECT (1, 2, 3) OVERLAPS (1, 2)", "INVALID_QUERY"],
    ["SELECT 1 OVERLAPS 2", "INVALID_QUERY"],
    ["SELECT (1, 2) OVERLAPS (1, 2)", "FUNCTION_NOT_FOUND"],
    ["SELECT (1, 2) < (SELECT 1)", "INVALID_QUERY"],
    ["SELECT ROW() = ROW()", "INVALID_QUERY@1:15"],
    ["SELECT ROW() IN (ROW())", "INVALID_QUERY@1:17"],
    ["SELECT ROW() < ROW()", "INVALID_QUERY@1:7"],
    ["SELECT ROW() IN (SELECT)", "INVALID_QUERY@1:7"],
    ["SELECT ROW() = (SELECT)", "INVALID_QUERY@1:7"],
    ["SELECT (1, 'x') < (SELECT a, b FROM t)", "CARDINALITY_VIOLATION"],
    ["SELECT B'02'", "INVALID"],
    ["SELECT 1 WHERE 1 = ANY ()", "INVALID"],
  ])("%s: %s", async (sql, code) => {
    expect(await engine.failure(sql)).toStartWith(code);
  });
});
