/**
 * Verifies that a query that lists the keys of its rows looks these keys up, and has the same
 * result as a scan. The tests examine the plan, and compare random key lists with the same
 * condition on an expression that hides the column.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf } from "../support/thoroughness.ts";

let engine: TestEngine;

function countedUpTo(count: number): string {
  return Array.from({ length: count }, (_, i) => i).join(", ");
}

/**
 * Returns `count` ascending keys: (0, 0), which `lines` does not contain, and then the first keys
 * of `lines`.
 */
function firstKeys(count: number): (readonly [number, number])[] {
  return Array.from({ length: count }, (_, i) => [Math.floor(i / 3), i % 3]);
}

function pairs(count: number, order = "o, l"): string {
  return firstKeys(count)
    .map(([o, l]) => (order === "o, l" ? `(${o}, ${l})` : `(${l}, ${o})`))
    .join(", ");
}

function alternatives(count: number): string {
  return firstKeys(count)
    .map(([o, l], i) => (i % 2 === 0 ? `(o = ${o} AND l = ${l})` : `(${l} = l AND o = ${o})`))
    .join(" OR ");
}

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE parts (id INT PRIMARY KEY, v INT);" +
      "CREATE TABLE lines (o BIGINT, l INT, v INT, PRIMARY KEY (o, l));" +
      "CREATE TABLE words (w TEXT PRIMARY KEY, v INT);" +
      "INSERT INTO parts SELECT g, g % 7 FROM generate_series(1, 5000) g;" +
      "INSERT INTO lines SELECT g / 3, g % 3, g FROM generate_series(1, 6000) g;" +
      "INSERT INTO words SELECT 'w' || g, g FROM generate_series(1, 3000) g;" +
      "STORAGE FLUSH TABLE parts; STORAGE FLUSH TABLE lines;" +
      "UPDATE parts SET v = 100 WHERE id % 50 = 0; DELETE FROM parts WHERE id % 70 = 0",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

async function planText(sql: string): Promise<string> {
  const [entry] = await engine.run(`EXPLAIN ANALYZE ${sql}`);
  return (entry?.rows ?? []).map(([line]) => String(line)).join("\n");
}

describe("queries look up a list of keys", () => {
  test.each([
    ["SELECT v FROM parts WHERE id IN (1, 2, 3, 2)", "any of 4", 3],
    ["SELECT v FROM parts WHERE id = ANY (ARRAY[1, 2, 9999])", "any of 3", 2],
    ["SELECT v FROM parts WHERE id = 1 OR id = 2 OR id IN (3, 4)", "any of 4", 4],
    ["SELECT v FROM parts WHERE id IN (1, NULL, 2)", "any of 3", 2],
    ["SELECT v FROM parts WHERE id IN (1, 3000000000, 9223372036854775807)", "any of 3", 1],
    ["SELECT v FROM parts WHERE id IN (1, 2) AND v = 2", "any of 2", 2],
    ["SELECT v FROM lines WHERE o IN (5, 6) AND l IN (0, 1)", "any of 4", 4],
    ["SELECT v FROM lines WHERE (o, l) IN ((1, 1), (2, 1), (2, 1))", "any of 3", 2],
    ["SELECT v FROM lines WHERE (o = 1 AND l = 1) OR (o = 2 AND l IN (0, 2))", "any of 3", 3],
    ["SELECT v FROM words WHERE w IN ('w1', 'w3000', 'x')", "any of 3", 2],
    // Keys are looked up as long as the table has more rows than the list has keys.
    [`SELECT v FROM parts WHERE id IN (${countedUpTo(4000)})`, "any of 4000", 3942],
    [`SELECT v FROM lines WHERE (o, l) IN (${pairs(1000)})`, "any of 1000", 999],
    [`SELECT v FROM lines WHERE (l, o) IN (${pairs(2000, "l, o")})`, "any of 2000", 1999],
    [`SELECT v FROM lines WHERE ${alternatives(1000)}`, "any of 1000", 999],
    [`SELECT v FROM lines WHERE (o, l) IN (${pairs(1000)}, (NULL, 1))`, "any of 1000", 999],
    // The elements of some of these arrays have a different integer type from the key.
    ["SELECT v FROM parts WHERE id = ANY ('{1,2,NULL}')", "any of the elements of '{1,2,NULL}'", 2],
    ["SELECT v FROM parts WHERE id = ANY (ARRAY[1, 2]::bigint[])", "any of 2", 2],
    ["SELECT v FROM parts WHERE id = ANY ('{1,2}'::smallint[])", "any of", 2],
    // Each row is found once, although both alternatives list the key (1, 1), and one of them
    // lists it twice.
    [
      "SELECT v FROM lines WHERE (o = 1 AND l IN (1, 2)) OR (o IN (1, 2, 1) AND l = 1)",
      "any of 5",
      3,
    ],
  ])("%s is looked up", async (sql, listed, readCount) => {
    const plan = await planText(sql);
    expect(plan).toContain(`key: ${listed}`);
    expect(plan).toMatch(new RegExp(`Key Lookup .* rows: ${readCount}; loops: 1`));
  });

  // If the keys were looked up again for each row, 200 rows with a list of 20 keys would cause
  // 4,000 lookups.
  test("a list that is the same for all rows of an outer query is read once", async () => {
    const listed = Array.from({ length: 20 }, (_, i) => 3 * i + 1).join(", ");
    const inner = `FROM parts p WHERE p.v = o.v AND p.id IN (${listed})`;
    const outer = "FROM lines o WHERE o.v <= 200";
    for (const sql of [
      `SELECT (SELECT max(p.id) ${inner}) ${outer}`,
      `SELECT EXISTS (SELECT 1 ${inner}) ${outer}`,
      `SELECT o.v ${outer} AND NOT EXISTS (SELECT 1 ${inner})`,
    ]) {
      expect(await planText(sql), sql).toMatch(/Key Lookup .* rows: 20; loops: 1;/);
    }
  });

  test("a list that depends on a row of an outer query is looked up for each row", async () => {
    const inner = "SELECT max(p.v) FROM parts p WHERE p.id IN (o.o, o.l, 4)";
    const plan = await planText(`SELECT (${inner}) FROM lines o WHERE o.v <= 10`);
    expect(plan).toMatch(/Key Lookup .* key: any of 3; .*loops: 10;/);
  });

  test.each([
    "SELECT v FROM parts WHERE id NOT IN (1, 2)",
    "SELECT v FROM parts WHERE id IN (1, v)",
    "SELECT v FROM parts WHERE id IN (1, 2) OR v = 3",
    `SELECT v FROM parts WHERE id IN (${countedUpTo(5001)})`,
  ])("%# is scanned if the keys are unknown or as many as the rows", async (sql) => {
    const [entry] = await engine.run(`EXPLAIN ${sql}`);
    expect(JSON.stringify(entry?.rows)).toContain("Table Scan");
  });

  test.each([
    ["SELECT v FROM parts WHERE id IN ($1::int, $2::bigint)", ["5", "6"], 2],
    ["SELECT v FROM parts WHERE id = CAST($1 AS INT) OR id = $2::int", ["5", "6"], 2],
    ["SELECT v FROM parts WHERE id = ANY ($1)", ["{5,6,NULL,99999}"], 2],
    ["SELECT v FROM parts WHERE id = ANY ($1::int[])", ["{5,6,5}"], 2],
    ["SELECT v FROM parts WHERE id = ANY (ARRAY[$1, $2]::int[])", ["5", "6"], 2],
    ["SELECT v FROM words WHERE w = ANY ($1::text[])", ["{w5,w6}"], 2],
    [
      "SELECT v FROM lines WHERE (o, l) IN (($1::bigint, $2::int), ($3::bigint, $4::int))",
      ["1", "1", "2", "1"],
      2,
    ],
  ])("in parameters, %s, is looked up", async (sql, params, readCount) => {
    const [entry] = await engine.run(`EXPLAIN ANALYZE ${sql}`, { params });
    const plan = (entry?.rows ?? []).join("\n");
    expect(plan).toMatch(new RegExp(`Key Lookup .* rows: ${readCount}; loops: 1`));
    expect(await engine.rows(sql, { params })).toHaveLength(2);
  });

  test.each([
    ["id IN (1, (SELECT max(v) FROM parts))", [], "any of 2", [[1], [2]]],
    ["id = ANY (string_to_array($1, ',')::int[])", ["1,2"], "any of the elements", [[1], [2]]],
    ["id IN ($1::numeric::int, length($2))", ["1", "ab"], "any of 2", [[1], [2]]],
  ] as const)("that is computed is looked up: %s", async (condition, params, listed, rows) => {
    const sql = `SELECT v FROM parts WHERE ${condition} ORDER BY v`;
    const plan = (await engine.rows(`EXPLAIN ${sql}`, { params })).join();
    expect(plan).toContain(`key: ${listed}`);
    expect((await engine.rows(sql, { params })).length).toBe(rows.length);
  });

  test("a list that cannot be computed fails once a row is compared with it", async () => {
    const condition = "id IN (1, 1 / $1::int)";
    const params = [0];
    expect(await engine.failure(`SELECT v FROM parts WHERE ${condition}`, { params })).toStartWith(
      "DIVISION_BY_ZERO",
    );
    expect(
      await engine.rows(`SELECT v FROM parts WHERE v < 0 AND ${condition}`, { params }),
    ).toEqual([]);
  });

  test("a list with as many elements as the table has rows is compared in a scan", async () => {
    const sql = "SELECT count(*) FROM parts WHERE id = ANY ($1)";
    const params = [`{${countedUpTo(6000)}}`];
    expect(await engine.rows(sql, { params })).toEqual(
      await engine.rows("SELECT count(*) FROM parts WHERE id < 6000"),
    );
  });

  test.each(["o IN (5, 6)", "(o = 1 AND l = 1) OR o = 2"])(
    "for the first column of a key is found by its index: %s",
    async (condition) => {
      const [entry] = await engine.run(`EXPLAIN SELECT v FROM lines WHERE ${condition}`);
      expect(JSON.stringify(entry?.rows)).toContain("access: index; index: lines_pkey");
    },
  );

  test("a list for the first column of a key determines which rows are read", async () => {
    const plan = await planText("SELECT v FROM lines WHERE o IN (5, 600, 1900) AND v > 0");
    expect(plan).toContain("access: index; index: lines_pkey (o");
    const listed = (condition: string): Promise<readonly (readonly unknown[])[]> =>
      engine.rows(`SELECT count(*), sum(v) FROM lines WHERE ${condition}`);
    for (const condition of ["# IN (5, 600, 1900)", "# = ANY ('{7,1900,NULL}')", "# IN (NULL)"]) {
      // The index on a column is created only when it is requested a second time.
      await listed(condition.replace("#", "o"));
      expect(await listed(condition.replace("#", "o")), condition).toEqual(
        await listed(condition.replace("#", "(o + 0)")),
      );
    }
  });

  test("a list for a table that many users share is looked up among the caller's rows", async () => {
    await engine.run(
      "CREATE USER TABLE own (id INT PRIMARY KEY);" +
        "INSERT INTO own SELECT g FROM generate_series(1, 9000) g",
    );
    for (const count of [32, 33, 1000, 8999]) {
      const sql = `SELECT id FROM own WHERE id IN (${countedUpTo(count)})`;
      expect(await planText(sql)).toContain(`any of ${count};`);
      expect(await engine.rows(`SELECT count(*) FROM (${sql}) s`)).toEqual([[count - 1]]);
    }
  });

  test("a list in the form x = ANY (ARRAY[…]) has its usual meaning next to other arrays", async () => {
    const sql =
      "SELECT NULL::int = ANY (ARRAY[]::int[]), 1 = ANY (ARRAY[NULL, 1]), 1 = ANY (ARRAY[2, NULL]), ";
    const others =
      "1 = ANY (ARRAY['1']::int[]), 'a' = ANY (ARRAY['b', 'a']), 2 = ANY (ARRAY[1.5, 2])";
    expect(await engine.rows(sql + others)).toEqual([[false, true, null, true, true, true]]);
  });

  test("a transaction finds the rows that it has written by a list of keys", async () => {
    const sql =
      "BEGIN; INSERT INTO parts VALUES (9001, 1); DELETE FROM parts WHERE id = 3;" +
      "SELECT id FROM parts WHERE id IN (3, 4, 9001) ORDER BY id; ROLLBACK";
    const entries = await engine.run(sql);
    expect(entries.find(({ rows }) => rows !== undefined && rows.length > 0)?.rows).toEqual([
      [4],
      [9001],
    ]);
  });

  test("changes find the same rows by a list of keys", async () => {
    await engine.run("UPDATE words SET v = 0 WHERE w IN ('w5', 'w6', 'w5', 'nobody')");
    await engine.run("DELETE FROM words WHERE w = 'w7' OR w = 'w8'");
    expect(await engine.rows("SELECT w FROM words WHERE v = 0 ORDER BY w")).toEqual([
      ["w5"],
      ["w6"],
    ]);
    expect(await engine.rows("SELECT count(*) FROM words")).toEqual([[2998]]);
  });

  test("random lists give the same result as a scan", async () => {
    for (let seed = 1; seed <= amountOf({ usual: 20, thorough: 60 }); seed += 1) {
      const random = new SeededRandom(seed);
      const list = (below: number): string =>
        Array.from({ length: 1 + random.below(8) }, () =>
          random.below(10) === 0 ? "NULL" : String(random.below(below)),
        ).join(", ");
      const keys = list(5200);
      const parts = "SELECT id, v FROM parts WHERE";
      expect(await engine.rows(`${parts} id IN (${keys}) ORDER BY id`)).toEqual(
        await engine.rows(`${parts} id + 0 IN (${keys}) ORDER BY id`),
      );
      const [orders, numbers] = [list(2100), list(4)];
      const lines = (o: string): string =>
        `SELECT o, l, v FROM lines WHERE ${o} IN (${orders}) AND l IN (${numbers}) ORDER BY o, l`;
      expect(await engine.rows(lines("o"))).toEqual(await engine.rows(lines("o + 0")));
    }
  });
});
