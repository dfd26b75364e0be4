/**
 * Verifies that a statement reads nothing if no row can satisfy its conditions, joins columns that
 * are equal only through other columns, and computes LATERAL rows directly above the rows on which
 * they depend. The tests check plans; `tests/sql/cases/planned.slt` compares the results with
 * PostgreSQL's.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, g INT, v INT, s TEXT);" +
      "CREATE TABLE d (g INT PRIMARY KEY, n TEXT);" +
      "INSERT INTO t SELECT i, i % 100, i, 'x' || i FROM generate_series(1, 5000) i;" +
      "INSERT INTO d SELECT i, 'n' || i FROM generate_series(0, 99) i",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

type Parameters = readonly (null | boolean | string | number)[];

async function planOf(sql: string, params: Parameters = []): Promise<string> {
  const rows = await engine.rows(`EXPLAIN ANALYZE ${sql}`, { params });
  return rows.join("\n");
}

describe("conditions that no row satisfies read no rows", () => {
  test.each([
    "1 = 0",
    "NULL",
    "false",
    "NULL::boolean",
    "v > 5 AND 1 = 0",
    "NULL AND v = 1",
    "false AND 1 / 0 = 1",
    "1 = 0 OR false",
    "NOT true",
    "(1 = 0) IS TRUE",
    "1 + 1 = 3",
    "'a' = 'b'",
    "abs(-1) = 2",
    "coalesce(NULL, false)",
    "CASE WHEN 1 = 1 THEN false ELSE v / 0 = 1 END",
    "1 IN (2, 3)",
    "v = NULL",
    "v <> NULL",
    "v IN (NULL)",
    "v = ANY ('{}')",
    "v = 1 AND v = 2",
    "v > 5 AND v < 3",
    "v > 5 AND v <= 5",
    "v BETWEEN 5 AND 3",
    "v IN (1, 2) AND v = 3",
    "id = 1 AND id = 2",
    "s = 'a' AND s = 'b'",
  ])("%s reads nothing", async (condition) => {
    for (const sql of [
      `SELECT * FROM t WHERE ${condition}`,
      `SELECT count(*) FROM t WHERE ${condition}`,
      `SELECT t.id FROM t JOIN d ON d.g = t.g WHERE ${condition.replaceAll(/\b(v|id|s)\b/g, "t.$1")}`,
      `WITH c AS (SELECT * FROM t) SELECT * FROM c WHERE ${condition}`,
      `DELETE FROM t WHERE ${condition}`,
    ]) {
      const plan = await planOf(sql);
      expect(plan, sql).toContain("never: ");
      expect(plan, sql).not.toMatch(/Scan|Lookup/);
    }
    expect(await engine.rows(`SELECT count(*) FROM t WHERE ${condition}`)).toEqual([[0]]);
  });

  test("an unsatisfiable condition skips the rows that can have no match or group", async () => {
    expect(await planOf("SELECT * FROM t JOIN d ON 1 = 0")).not.toContain("Scan");
    expect(await planOf("SELECT g FROM t GROUP BY g HAVING 1 = 0")).not.toContain("Scan");
    const open = await planOf("SELECT count(*) FROM t LEFT JOIN d ON t.g = d.g AND false");
    expect(open).toContain("Table Scan on default.t");
    expect(open).not.toContain("default.d");
  });

  test("a condition that depends on parameters is evaluated once, before any row is read", async () => {
    for (const [condition, params] of [
      ["$1", [false]],
      ["$1 = 1", [0]],
      ["$1 IS NOT NULL AND v > 0", [null]],
      ["$1 > $2", [1, 2]],
    ] as const) {
      const plan = await planOf(`SELECT * FROM t WHERE ${condition}`, params);
      expect(plan).toContain("asked: once");
      expect(plan, condition).toMatch(/Table Scan .* rows: 0; loops: 0;/);
    }
    expect(await engine.rows("SELECT count(*) FROM t WHERE $1 = 1", { params: [1] })).toEqual([
      [5000],
    ]);
  });

  test("a condition that cannot be computed fails when a row evaluates it", async () => {
    expect(await engine.failure("SELECT * FROM t WHERE 1 / 0 = 1")).toStartWith("DIVISION_BY_ZERO");
    expect(await engine.rows("SELECT * FROM t WHERE v < 0 AND 1 / 0 = 1")).toEqual([]);
  });
});

describe("columns are equal through other columns", () => {
  test("equal columns join six readers of a WITH entry without a cross product", async () => {
    const entry = "WITH c AS (SELECT id, g, v FROM t WHERE v > 5)";
    const readers = "c c1, c c2, c c3, c c4, c c5, c c6";
    const conditions = [2, 3, 4, 5, 6].map((n) => `c1.id = c${n}.id`).join(" AND ");
    const plan = await planOf(`${entry} SELECT count(*) FROM ${readers} WHERE ${conditions}`);
    expect(plan).not.toContain("Nested Loop");
    expect(plan).not.toContain("id = id AND id = id");
    expect(plan.match(/CTE Scan on c {2}\(access: scan; estimated rows: 1667/g)).toHaveLength(6);
    expect(
      await engine.rows(`${entry} SELECT count(*) FROM ${readers} WHERE ${conditions}`),
    ).toEqual([[4995]]);
  });

  test("equal columns are read by the constant that one of them equals", async () => {
    const sql =
      "SELECT count(*) FROM t a JOIN t b USING (id) JOIN t c ON c.id = b.id WHERE a.id = 7";
    const plan = await planOf(sql);
    expect(plan.match(/Key Lookup on default.t .* key: id = 7;/g)).toHaveLength(3);
    const listed = await planOf(
      "SELECT count(*) FROM t JOIN d ON d.g = t.id WHERE t.id IN (5, 6, 700)",
    );
    expect(listed.match(/Key Lookup .* key: any of 3;/g)).toHaveLength(2);
  });

  test("equal columns are also compared within a relation", async () => {
    const plan = await planOf("SELECT count(*) FROM t, d WHERE t.g = d.g AND t.v = d.g");
    expect(plan).toContain("Filter  (filter: g = v;");
    expect(await engine.rows("SELECT count(*) FROM t, d WHERE t.g = d.g AND t.v = d.g")).toEqual([
      [99],
    ]);
  });
});

describe("LATERAL joins with rows of expressions become projections", () => {
  test.each([
    ["SELECT count(*) FROM t, LATERAL (VALUES (t.v), (t.g)) x(y)", "VALUES(v, g)"],
    [
      "SELECT count(*) FROM t, LATERAL (VALUES (t.v, 'v'), (t.g, 'g')) x(y, n) JOIN d ON d.g = x.y",
      "Hash Join",
    ],
    ["SELECT count(*) FROM t LEFT JOIN LATERAL (VALUES (t.v + 1)) x(y) ON true", "Project"],
    ["SELECT count(*) FROM t, LATERAL (SELECT t.v + 1 AS y) x WHERE y = 6", "Project"],
    ["SELECT count(*) FROM t JOIN LATERAL (VALUES (t.v), (t.g)) x(y) ON y > 5", "VALUES(v, g)"],
  ])("%s is not a lateral join", async (sql, shown) => {
    const plan = await planOf(sql);
    expect(plan).not.toMatch(/Lateral|Nested Loop/);
    expect(plan).toContain(shown);
  });

  test("LATERAL rows stay a lateral join if rows may be missing", async () => {
    expect(
      await planOf("SELECT count(*) FROM t LEFT JOIN LATERAL (VALUES (t.v)) x(y) ON y > 5"),
    ).toContain("Lateral Join");
  });
});

describe("LATERAL joins with aggregates become grouped joins", () => {
  // A subquery in the condition keeps the planner from rewriting LATERAL as a grouped join.
  const hidden = (sql: string): string => sql.replaceAll("= d.g", "+ 0 * (SELECT 1) = d.g");

  test.each([
    "SELECT d.g, c FROM d, LATERAL (SELECT count(*) AS c FROM t WHERE t.v = d.g) x",
    "SELECT d.g, c, m FROM d LEFT JOIN LATERAL (SELECT count(v) AS c, coalesce(sum(v * 2), -1) AS m FROM t WHERE t.g = d.g AND t.v > 4950) x ON true",
    "SELECT d.g, c FROM d JOIN LATERAL (SELECT sum(v) AS c FROM t WHERE t.v = d.g) x ON c > 90",
    "SELECT d.g, x.* FROM d CROSS JOIN LATERAL (SELECT max(s), array_agg(v ORDER BY v DESC), count(DISTINCT g), count(*) FILTER (WHERE v > 300) + 1 FROM t WHERE t.g = d.g) x WHERE d.n <> 'n3'",
    "SELECT d.g, y.c FROM d, LATERAL (SELECT count(*) AS c FROM t WHERE t.v = d.g) x, LATERAL (SELECT max(v) AS c FROM t WHERE t.v = d.g AND t.g = x.c) y",
    "SELECT count(*) FROM d WHERE EXISTS (SELECT 1 FROM d e, LATERAL (SELECT count(*) AS c FROM t WHERE t.v + 0 = d.g) x WHERE x.c = 1 AND e.g = d.g)",
  ])("%s are grouped once", async (sql) => {
    const plan = await planOf(sql);
    if (!sql.includes("EXISTS")) expect(plan).not.toContain("Lateral");
    expect(await planOf(hidden(sql))).toContain("Lateral");
    expect(await engine.rows(`${sql} ORDER BY 1`)).toEqual(
      await engine.rows(`${hidden(sql)} ORDER BY 1`),
    );
  });

  test.each([
    [
      "few rows by their key",
      "SELECT c FROM d, LATERAL (SELECT count(*) AS c FROM t WHERE t.id = d.g) x WHERE d.g IN (3, 4)",
    ],
    [
      "another comparison",
      "SELECT c FROM d, LATERAL (SELECT count(*) AS c FROM t WHERE t.g = d.g AND t.v < d.g) x",
    ],
    ["a limit", "SELECT v FROM d, LATERAL (SELECT v FROM t WHERE t.g = d.g ORDER BY v LIMIT 1) x"],
    [
      "a condition that may fail",
      "SELECT c FROM d, LATERAL (SELECT count(*) AS c FROM t WHERE t.g = d.g AND 10 / (t.g + 1) > 0) x",
    ],
    [
      "HAVING",
      "SELECT c FROM d, LATERAL (SELECT count(*) AS c FROM t WHERE t.g = d.g HAVING count(*) > 3) x",
    ],
    [
      "a left join on a condition",
      "SELECT c FROM d LEFT JOIN LATERAL (SELECT count(*) AS c FROM t WHERE t.g = d.g) x ON d.g < 5",
    ],
  ])("with %s stay a query for each row", async (_, sql) => {
    expect(await planOf(sql)).toContain("Lateral");
    expect((await engine.rows(sql)).length).toBeGreaterThan(0);
  });
});
