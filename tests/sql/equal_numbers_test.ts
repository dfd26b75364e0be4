/**
 * Verifies that equal numbers with different scales count as one value wherever rows are grouped,
 * joined or compared, in memory and on disk, and that the same holds for NaN and each infinity.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;
let small: TestEngine;

/** Rows that contain each value twice, with different scales where the value has a scale. */
const ROWS =
  "(1, 1.5), (2, 1.50), (3, 'NaN'), (4, 'NaN'), (5, 'Infinity'), (6, 'Infinity'), (7, '-Infinity'), " +
  "(8, '-Infinity'), (9, NULL), (10, NULL), (11, 0), (12, 0.00), (13, -1.5), (14, -1.50)";

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`CREATE NAMESPACE x; CREATE TABLE x.n (id INT PRIMARY KEY, v NUMERIC);
    INSERT INTO x.n VALUES ${ROWS}`);
  small = await TestEngine.open({
    clock: systemClock,
    config: `performance.query_memory_bytes = ${1024 * 1024}`,
    disk: bunDisk,
  });
  await small.run("CREATE TABLE many (id INT PRIMARY KEY, v NUMERIC)");
  // Each value occurs in two rows that are far apart. In one of them, it has trailing zeros.
  for (let first = 0; first < 16_000; first += 2000) {
    await small.run(
      `INSERT INTO many SELECT n, CASE WHEN n < 8000 THEN n / 8::NUMERIC(20, 3) ELSE (n - 8000) / 8::NUMERIC(20, 3) * 1.0000 END
       FROM generate_series(${first}, ${first + 1999}) n`,
    );
  }
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  await small[Symbol.asyncDispose]();
});

test.each([
  ["SELECT count(*) FROM (SELECT DISTINCT v FROM x.n) t", 7],
  ["SELECT count(*) FROM (SELECT DISTINCT v, v AS w FROM x.n) t", 7],
  ["SELECT count(*) FROM (SELECT DISTINCT ON (v) v, id FROM x.n ORDER BY v, id) t", 7],
  ["SELECT count(*) FROM (SELECT DISTINCT ARRAY[v] FROM x.n) t", 7],
  ["SELECT count(*) FROM (SELECT DISTINCT ROW(v) FROM x.n) t", 7],
  ["SELECT min(n) FROM (SELECT count(*) AS n FROM x.n GROUP BY v) t", 2],
  ["SELECT count(*) FROM (SELECT v FROM x.n GROUP BY GROUPING SETS ((v), ())) t", 8],
  ["SELECT count(DISTINCT v) FROM x.n", 6],
  ["SELECT count(*) FROM x.n a JOIN x.n b ON a.v = b.v", 24],
  ["SELECT count(*) FROM x.n a JOIN x.n b ON a.v = b.v AND a.id < b.id", 6],
  ["SELECT count(*) FROM x.n a FULL JOIN x.n b ON a.v = b.v", 28],
  ["SELECT count(*) FROM x.n a JOIN x.n b ON (a.v, a.v) = (b.v, b.v)", 24],
  ["SELECT count(*) FROM x.n a NATURAL JOIN (SELECT 1.500::NUMERIC AS v) b", 2],
  ["SELECT count(*) FROM x.n JOIN (SELECT 1.5::FLOAT8 AS f) b ON v = f", 2],
  ["SELECT count(*) FROM x.n JOIN (SELECT 1.5::NUMERIC(5, 2) AS f) b ON v = f", 2],
  ["SELECT count(*) FROM x.n WHERE v IN (1.500, 'Infinity')", 4],
  ["SELECT count(*) FROM x.n WHERE v = ANY (ARRAY[1.500, 'NaN']::NUMERIC[])", 4],
  ["SELECT count(*) FROM x.n WHERE v IN (SELECT v FROM x.n WHERE id IN (2, 3, 5))", 6],
  ["SELECT count(*) FROM x.n WHERE v NOT IN (SELECT v FROM x.n WHERE id IN (2, 3, 5))", 6],
  [
    "SELECT count(*) FROM x.n a WHERE EXISTS (SELECT FROM x.n b WHERE b.v = a.v AND b.id <> a.id)",
    12,
  ],
  ["SELECT count(*) FROM (SELECT v FROM x.n UNION SELECT v FROM x.n) t", 7],
  [
    "SELECT count(*) FROM (SELECT v FROM x.n INTERSECT ALL SELECT v FROM x.n WHERE id % 2 = 0) t",
    7,
  ],
  ["SELECT count(*) FROM (SELECT v FROM x.n EXCEPT SELECT v FROM x.n WHERE id % 2 = 0) t", 0],
  ["SELECT min(n) FROM (SELECT count(*) OVER (PARTITION BY v) AS n FROM x.n) t", 2],
  ["SELECT max(n) FROM (SELECT dense_rank() OVER (ORDER BY v) AS n FROM x.n) t", 7],
  ["SELECT count(*) FROM (SELECT id FROM x.n ORDER BY v FETCH FIRST 1 ROW WITH TIES) t", 2],
  [
    "WITH RECURSIVE r AS (SELECT 1.5::TEXT::NUMERIC AS v UNION SELECT v + 0.0 FROM r) SELECT count(*) FROM r",
    1,
  ],
])("%s is %d", async (sql, wanted) => {
  expect(await engine.rows(sql)).toEqual([[wanted]]);
});

describe("on disk", () => {
  test.each([
    ["SELECT count(*) FROM (SELECT DISTINCT v, repeat('x', 300) FROM many) t", 8000],
    ["SELECT min(n) FROM (SELECT count(*) AS n, max(repeat('x', 300)) FROM many GROUP BY v) t", 2],
    [
      "SELECT count(*) FROM (SELECT v, repeat('x', 100) AS t FROM many) a JOIN (SELECT v, repeat('y', 100) AS t FROM many) b ON a.v = b.v",
      32_000,
    ],
    [
      "SELECT count(*) FROM (SELECT v, repeat('x', 99) FROM many WHERE id < 8000 EXCEPT SELECT v, repeat('x', 99) FROM many WHERE id >= 8000) t",
      0,
    ],
    [
      "SELECT min(n) FROM (SELECT count(*) OVER (PARTITION BY v) AS n, repeat('x', 200) FROM many) t",
      2,
    ],
  ])("%s is %d", async (sql, wanted) => {
    expect(await small.rows(sql)).toEqual([[wanted]]);
  });

  test("rows are sorted", async () => {
    const sql = "SELECT id, repeat('x', 100) FROM many ORDER BY v, id LIMIT 3 OFFSET 10000";
    expect((await small.rows(sql)).map(([id]) => id)).toEqual([5000, 13_000, 5001]);
  });
});
