/**
 * Verifies that conditions on views, derived tables and WITH entries restrict the tables below
 * them, but stay above wherever moving them could change a result or reveal a row.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const ROWS = 2000;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE items (id INT PRIMARY KEY, room INT, note TEXT, n INT); CREATE INDEX items_room ON items (room);" +
      "CREATE TABLE few (id INT PRIMARY KEY, item INT); INSERT INTO few VALUES (1, 5), (2, 6), (3, 9000);" +
      "INSERT INTO items SELECT i, i % 200, 'x' || i, i % 7 FROM generate_series(1, 2000) i;" +
      "STORAGE FLUSH TABLE items; DELETE FROM items WHERE id = 77;" +
      "CREATE VIEW busy AS SELECT id AS k, room, note, n + 1 AS m FROM items WHERE n > 0;" +
      "CREATE VIEW rooms AS SELECT room, count(*) AS items FROM items GROUP BY room;" +
      "CREATE VIEW parts AS SELECT id, 'one' AS part FROM items UNION ALL SELECT id, 'two' FROM items;" +
      "CREATE VIEW outer_view AS SELECT k AS key, note FROM busy",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

function cellText(cell: unknown): string {
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}

/** Returns each row of a result as text, such as `5|null`. */
async function rowsOf(sql: string): Promise<string[]> {
  const rows = await engine.rows(sql);
  return rows.map((row) => row.map((cell) => cellText(cell)).join("|"));
}

async function planOf(sql: string): Promise<string> {
  return (await engine.rows(`EXPLAIN ANALYZE ${sql}`)).join("\n");
}

/** Returns the largest number of rows that any node of a plan yields. */
function mostRows(plan: string): number {
  return Math.max(...Array.from(plan.matchAll(/; rows: (\d+)/g), ([, rows]) => Number(rows)));
}

describe("a condition finds the rows below", () => {
  test.each<[string, string, string, string[]]>([
    ["a view", "SELECT note, m FROM busy WHERE k = 5", "key: id = 5", ["x5|6"]],
    ["a view of a view", "SELECT note FROM outer_view WHERE key = 5", "key: id = 5", ["x5"]],
    ["a row that the view hides", "SELECT note FROM busy WHERE k = 7", "key: id = 7", []],
    ["a derived table", "SELECT note FROM (SELECT * FROM items) q WHERE id = 5", "id = 5", ["x5"]],
    ["WITH", "WITH c AS (SELECT * FROM items) SELECT note FROM c WHERE id = 5", "id = 5", ["x5"]],
    ["groups", "SELECT items FROM rooms WHERE room = 3 AND items > 1", "items_room (", ["10"]],
    ["UNION ALL", "SELECT part FROM parts WHERE id = 5 AND part = 'two'", "never: ", ["two"]],
    [
      "UNION",
      "SELECT id FROM (SELECT id FROM items UNION SELECT item FROM few) q WHERE id = 9000",
      "key: id = 9000",
      ["9000"],
    ],
    [
      "EXCEPT",
      "SELECT id FROM (SELECT id FROM items EXCEPT SELECT item FROM few) q WHERE id IN (5, 8)",
      "key: any of 2",
      ["8"],
    ],
    [
      "DISTINCT ON",
      "SELECT id FROM (SELECT DISTINCT ON (room) room, id FROM items ORDER BY room, id DESC) q WHERE room = 3",
      "items_room (",
      ["1803"],
    ],
    [
      "a window",
      "SELECT id FROM (SELECT room, id, rank() OVER (PARTITION BY room ORDER BY id) r FROM items) q WHERE room = 3 AND r = 2",
      "items_room (",
      ["203"],
    ],
    [
      "table functions",
      "SELECT g FROM (SELECT id, generate_series(1, n) g FROM items) q WHERE id = 9 AND g > 1",
      "key: id = 9",
      ["2"],
    ],
    [
      "a join",
      "SELECT b.note FROM few JOIN busy b ON b.k = few.item ORDER BY 1",
      "look up",
      ["x5", "x6"],
    ],
    [
      "a left join",
      "SELECT few.id, b.note FROM few LEFT JOIN busy b ON b.k = few.item AND b.k = 5 ORDER BY 1",
      "key: id = 5",
      ["1|x5", "2|null", "3|null"],
    ],
    [
      "a subquery",
      "SELECT (SELECT note FROM busy b WHERE b.k = few.item) FROM few ORDER BY few.id",
      "key: id = outer",
      ["x5", "x6", "null"],
    ],
  ])("of %s", async (_, sql, access, rows) => {
    expect(await rowsOf(sql)).toEqual(rows);
    const plan = await planOf(sql);
    expect(plan).toContain(access);
    expect(mostRows(plan)).toBeLessThan(ROWS / 10);
  });
});

describe("a condition stays above", () => {
  test.each<[string, string, string[]]>([
    ["LIMIT", "SELECT id FROM (SELECT id FROM items ORDER BY id LIMIT 3) q WHERE id > 2", ["3"]],
    ["OFFSET", "SELECT id FROM (SELECT id FROM items ORDER BY id OFFSET 1) q WHERE id < 3", ["2"]],
    [
      "a window over other rows",
      "SELECT r FROM (SELECT id, row_number() OVER (ORDER BY id) r FROM items) q WHERE id = 78",
      ["77"],
    ],
    [
      "DISTINCT ON of another column",
      "SELECT id FROM (SELECT DISTINCT ON (room) room, id FROM items ORDER BY room, id DESC) q WHERE id = 3",
      [],
    ],
    ["an aggregate", "SELECT room FROM rooms WHERE items < 10", ["77"]],
    [
      "an aggregate of all rows",
      "SELECT x FROM (SELECT 1 AS x, count(*) FROM items) q WHERE x = 2",
      [],
    ],
    [
      "grouping sets",
      "SELECT items FROM (SELECT room, count(*) AS items FROM items GROUP BY ROLLUP (room)) q WHERE room IS NULL",
      ["1999"],
    ],
    [
      "a column of deleted rows",
      "SELECT count(*) FROM (SELECT id, _deleted FROM items) q WHERE _deleted",
      ["0"],
    ],
    [
      "a volatile output",
      "SELECT count(*) FROM (SELECT id, random() AS r FROM items) q WHERE r < 0 AND id > 0",
      ["0"],
    ],
    [
      "a kept entry",
      "WITH c AS MATERIALIZED (SELECT id, note FROM items) SELECT note FROM c WHERE id = 5",
      ["x5"],
    ],
  ])("%s", async (_, sql, rows) => {
    expect(await rowsOf(sql)).toEqual(rows);
    expect(mostRows(await planOf(sql))).toBeGreaterThan(2);
  });

  test("a full join", async () => {
    const rows = await rowsOf(
      "SELECT few.id FROM few FULL JOIN (SELECT id FROM items) q ON q.id = few.item WHERE q.id IS NULL",
    );
    expect(rows).toEqual(["3"]);
  });
});

describe("the error of a condition", () => {
  test("reveals no row that the query drops", async () => {
    expect(await rowsOf("SELECT k FROM busy WHERE 1 / (m - 1) = 1 AND k < 4")).toEqual(["1"]);
    expect(
      await rowsOf(
        "SELECT id FROM (SELECT id, n FROM items EXCEPT SELECT id, n FROM items WHERE n = 0) q" +
          " WHERE 1 / n = 1 AND id < 4",
      ),
    ).toEqual(["1"]);
  });

  test.each(["1 / 0", "'x'::text::int", "sqrt(-1)::int"])(
    "%s reveals no row that a join drops",
    async (value) => {
      const view = "(SELECT i.* FROM items i JOIN few ON few.item = i.id) q";
      expect(await rowsOf(`SELECT id FROM ${view} WHERE id = 7 AND n = ${value}`)).toEqual([]);
      expect(await rowsOf(`SELECT id FROM ${view} WHERE room = 7 AND n = ${value}`)).toEqual([]);
    },
  );

  test("is that of the rows if the query drops none", async () => {
    const sql = "SELECT note FROM (SELECT id, note FROM items) q WHERE note LIKE 'x199_'";
    expect(await rowsOf(`${sql} ORDER BY id LIMIT 1`)).toEqual(["x1990"]);
    expect(mostRows(await planOf(`SELECT * FROM (${sql}) r WHERE note <> 'x1991'`))).toBe(ROWS - 1);
  });
});

test("a sequence advances for each row of the query, whatever is tested above it", async () => {
  await engine.run("CREATE SEQUENCE counted");
  const sql = "SELECT count(*) FROM (SELECT id, nextval('counted') AS s FROM few) q WHERE id = 1";
  expect(await rowsOf(sql)).toEqual(["1"]);
  expect(await rowsOf("SELECT nextval('counted')")).toEqual(["4"]);
});

test.each([
  ["an aggregate", "SELECT id, sum(nextval('calls')) AS s FROM few GROUP BY id"],
  [
    "the filter of an aggregate",
    "SELECT id, count(*) FILTER (WHERE nextval('calls') > 0) AS s FROM few GROUP BY id",
  ],
  ["HAVING", "SELECT id, 1 AS s FROM few GROUP BY id HAVING nextval('calls') > 0"],
  ["a window", "SELECT id, sum(nextval('calls')) OVER (PARTITION BY id) AS s FROM few"],
])("a volatile expression in %s is computed for all rows", async (_what, query) => {
  await rowsOf("CREATE SEQUENCE calls");
  await rowsOf(`SELECT count(s) FROM (${query}) q WHERE id = 1`);
  expect(await rowsOf("SELECT nextval('calls')")).toEqual(["4"]);
  await rowsOf("DROP SEQUENCE calls");
});
