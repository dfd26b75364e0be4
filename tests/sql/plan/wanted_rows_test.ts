/**
 * Verifies that a WITH query that is referred to several times computes only the rows that the
 * references need. `tests/sql/cases/wanted.slt` compares the results with PostgreSQL's.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, who INT, year INT, v INT);" +
      "INSERT INTO t SELECT i, i % 20, i % 10, i FROM generate_series(1, 5000) i",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Returns the number of rows that the table scan, or the filter directly above it, yields. */
async function rowsRead(sql: string): Promise<number> {
  const lines = (await engine.rows(`EXPLAIN ANALYZE ${sql}`)).map(([line]) => String(line));
  const at = lines.findIndex((line) => line.includes("Table Scan on default.t"));
  const above = lines[at - 1] ?? "";
  const read = above.includes("Filter") ? above : (lines[at] ?? "");
  return Number(/; rows: (\d+)/.exec(read)?.[1]);
}

const GROUPS = "WITH c AS (SELECT who, year, sum(v) AS s FROM t GROUP BY who, year)";
const UNION =
  "WITH c AS (SELECT who, year, 'a' AS part, sum(v) AS s FROM t GROUP BY who, year UNION ALL SELECT 0, 0, 'b', 0)";

test.each([
  [GROUPS, "c x JOIN c y ON y.who = x.who WHERE x.year = 1 AND y.year = 2", 1000],
  [GROUPS, "c x JOIN c y ON y.who = x.who WHERE x.year = 1 AND y.year = 1 + 1 AND x.s > 0", 1000],
  [GROUPS, "c x LEFT JOIN c y ON y.who = x.who AND y.year = 2 WHERE x.year = 1", 1000],
  [GROUPS, "c x, c y, c z WHERE x.year = 1 AND y.year = 2 AND z.year < 2", 1500],
  [UNION, "c x, c y WHERE x.year = 1 AND x.part = 'a' AND y.year = 2 AND y.s > 0", 1000],
  [GROUPS, "c x WHERE (x.year = 1 AND x.s > 9) OR (x.year = 2 AND x.s > 8)", 1000],
])("%s SELECT count(*) FROM %s reads %d rows", async (entry, from, expected) => {
  expect(await rowsRead(`${entry} SELECT count(*) FROM ${from}`)).toBe(expected);
});

test.each([
  [GROUPS, "c x JOIN c y ON y.who = x.who WHERE x.year = 1"],
  [
    GROUPS,
    "c x LEFT JOIN c y ON y.who = x.who WHERE x.year = 1 AND (y.year = 2 OR y.year IS NULL)",
  ],
  [GROUPS, "c x, c y WHERE x.year = 1 AND y.year = 2 AND x.s > (SELECT min(s) FROM c)"],
  [GROUPS, "c x, c y WHERE x.year = 1 AND y.s > 5"],
  [
    GROUPS.replace("AS (", "AS MATERIALIZED ("),
    "c x JOIN c y ON y.who = x.who WHERE x.year = 1 AND y.year = 2",
  ],
])("a reader may want all rows: %s SELECT count(*) FROM %s", async (entry, from) => {
  expect(await rowsRead(`${entry} SELECT count(*) FROM ${from}`)).toBe(5000);
});
