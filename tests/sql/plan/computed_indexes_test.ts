/**
 * Verifies that partial indexes and indexes on expressions find rows, reject duplicates, and never
 * change a result. The tests examine plans and the number of rows they read, and compare
 * statements on two tables with the same rows, only one of which has indexes. Index keys are
 * computed in memory, in files, in transactions, when an index is built later, and after a
 * restart.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

const ROWS = 20_000;
const COLUMNS =
  "(id INT PRIMARY KEY, email VARCHAR(40), data JSONB, n INT, state TEXT NOT NULL, done BOOLEAN, deleted_at TIMESTAMP)";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(`CREATE TABLE jobs ${COLUMNS}; CREATE TABLE plain ${COLUMNS}`);
  await engine.run(
    "CREATE INDEX jobs_lower ON jobs (lower(email), n); CREATE INDEX ON jobs ((data->>'k'));" +
      "CREATE INDEX jobs_sum ON jobs ((n + id)); CREATE UNIQUE INDEX jobs_active ON jobs (email) WHERE deleted_at IS NULL;" +
      "CREATE INDEX jobs_open ON jobs (id) WHERE state = 'open'; CREATE INDEX jobs_large ON jobs (n) WHERE n > 4900",
  );
  for (const table of ["jobs", "plain"]) {
    await engine.run(
      `INSERT INTO ${table} SELECT i, 'E' || i, jsonb_build_object('k', 'v' || i % 7000), i % 5000,` +
        " CASE WHEN i % 400 = 0 THEN 'open' ELSE 'shut' END, i % 3 = 0," +
        ` CASE WHEN i % 2 = 0 THEN '2026-01-01'::timestamp END FROM generate_series(1, ${ROWS}) i;` +
        `STORAGE FLUSH TABLE ${table};` +
        `UPDATE ${table} SET email = 'X' || id, data = NULL WHERE id % 1000 = 0;` +
        `UPDATE ${table} SET state = 'open' WHERE id = 77; DELETE FROM ${table} WHERE id % 700 = 0`,
    );
  }
  await engine.run(
    "CREATE INDEX jobs_done ON jobs (id) WHERE NOT done AND state IN ('open', 'new')",
  );
  await engine.run("CREATE INDEX jobs_date ON jobs (date_trunc('month', deleted_at))");
});
afterAll(() => engine[Symbol.asyncDispose]());

type Parameters = readonly (null | boolean | string | number)[];

async function planOf(sql: string, params: Parameters = []): Promise<string> {
  return (await engine.rows(`EXPLAIN ANALYZE ${sql}`, { params })).join("\n");
}

function mostRows(plan: string): number {
  return Math.max(...Array.from(plan.matchAll(/; rows: (\d+)/g), ([, rows]) => Number(rows)));
}

/** Returns the error message with which a request fails. */
async function messageOf(of: TestEngine, sql: string): Promise<string> {
  const { error } = await of.ask(sql);
  return error === undefined ? "none" : `${error.code}: ${error.message}`;
}

/**
 * Asserts that a query returns the same rows as on the table without indexes. Returns these rows.
 */
async function requireSame(
  sql: string,
  params: Parameters = [],
): Promise<readonly (readonly unknown[])[]> {
  const found = await engine.rows(sql, { params });
  expect(found).toEqual(await engine.rows(sql.replace("jobs", "plain"), { params }));
  return found;
}

describe("an index on an expression finds rows", () => {
  test.each<[string, string, number, Parameters?]>([
    ["lower(email) = 'e5'", "jobs_lower (lower(email) = 'e5')", 1],
    ["lower(email) = $1 AND n = 5", "jobs_lower (lower(email) = 'e5' AND n = 5)", 1, ["e5"]],
    ["lower(email) IN ('e5', 'e6', 'e7')", "jobs_lower (lower(email) any of 3)", 3],
    ["lower(email) = ANY ($1)", "jobs_lower", 2, ["{e5,e6}"]],
    ["lower(email) LIKE 'e1999%'", "jobs_lower (lower(email) LIKE 'e1999%')", 12],
    ["lower(email) >= 'e1999' AND lower(email) < 'e19991'", "jobs_lower", 2],
    ["lower(email) = 'e5' OR lower(email) = 'e6'", "jobs_lower (lower(email) any of 2)", 2],
    ["data->>'k' = 'v12'", "jobs_expr_idx (data->>'k' = 'v12')", 3],
    ["n + id > 24990", "jobs_sum (n + id > 24990)", 20],
    ["email = 'E5' AND deleted_at IS NULL", "jobs_active (email = 'E5')", 1],
    ["email = $1 AND deleted_at IS NULL AND n = 5", "jobs_active (email = 'E5')", 1, ["E5"]],
    ["state = 'open'", "jobs_open", 60],
    ["state = 'open' AND id > 19000", "jobs_open (id > 19000)", 4],
    ["state = $1", "jobs_open", 60, ["open"]],
    ["n > 4990", "jobs_large (n > 4990)", 40],
    ["n > $1", "jobs_large (n > 4990)", 40, [4990]],
    ["n = 4950 AND email > 'E'", "jobs_large (n = 4950)", 4],
    ["n BETWEEN 4990 AND 4992", "jobs_large (n >= 4990 AND n <= 4992)", 12],
    ["state = 'open' AND done = false", "jobs_done", 60],
    ["state = 'open' AND done IS FALSE AND id < 2000", "jobs_done (id < 2000)", 6],
    ["state IN ('open', 'new') AND NOT done AND id < 2000", "jobs_done (id < 2000)", 6],
  ])("%s", async (condition, index, rowsMax, params = []) => {
    const plan = await planOf(`SELECT id FROM jobs WHERE ${condition}`, params);
    expect(plan).toContain(index);
    expect(mostRows(plan)).toBeLessThanOrEqual(rowsMax);
    const sql = `SELECT id, email, n FROM jobs WHERE ${condition} ORDER BY id`;
    expect((await requireSame(sql, params)).length).toBeGreaterThan(0);
  });

  test.each<[string, Parameters?]>([
    ["data->>'other' = 'v12'"],
    ["upper(email) = 'E5'"],
    ["email = 'E4'"],
    ["email = 'E4' AND deleted_at IS NOT NULL"],
    ["state = 'shut' AND id < 20"],
    ["state = $1 AND id < 20", ["shut"]],
    ["n > 4800"],
    ["n > $1", [4800]],
    ["n >= 4900"],
    ["state = 'open' AND done"],
    ["state = 'open' AND (done IS NULL OR NOT done)"],
    ["state = 'open' AND NOT (done IS TRUE)"],
    ["state IN ('open', 'shut') AND NOT done AND id < 900"],
    ["lower(email) = NULL"],
    ["data->>'k' IS NULL"],
    ["lower(email) > 'e' OR n = 1"],
  ])("%s is answered like a scan", async (condition, params = []) => {
    await requireSame(`SELECT id FROM jobs WHERE ${condition} ORDER BY id`, params);
  });

  test("rows are found in the order of an expression, and of a partial index", async () => {
    for (const [sql, rowsMax] of [
      ["SELECT id FROM jobs ORDER BY lower(email) LIMIT 5", 10],
      ["SELECT id FROM jobs ORDER BY lower(email) DESC, n DESC LIMIT 5", 40],
      ["SELECT id FROM jobs WHERE state = 'open' ORDER BY id LIMIT 3", 200],
      ["SELECT id FROM jobs WHERE state = 'open' ORDER BY id DESC LIMIT 3", 200],
      ["SELECT id FROM jobs WHERE n > 4900 ORDER BY n DESC, id LIMIT 3", 400],
      ["SELECT min(id), max(id) FROM jobs WHERE state = 'open'", 60],
      ["SELECT max(n) FROM jobs WHERE n > 4950", 200],
      ["SELECT id FROM jobs WHERE deleted_at IS NULL ORDER BY email DESC LIMIT 4", 20000],
    ] as const) {
      const plan = await planOf(sql);
      expect(mostRows(plan) <= rowsMax ? "few rows" : plan).toBe("few rows");
      await requireSame(sql);
    }
  });

  test("rows are found by joins and changes", async () => {
    const join =
      "SELECT j.id FROM jobs j JOIN (VALUES ('e5'), ('e6')) v (e) ON lower(j.email) = v.e ORDER BY 1";
    await requireSame(join);
    for (const table of ["jobs", "plain"]) {
      await engine.run(`UPDATE ${table} SET n = n + 1 WHERE lower(email) = 'e9'`);
      await engine.run(`DELETE FROM ${table} WHERE data->>'k' = 'v13' AND n < 50`);
    }
    await requireSame("SELECT id, n FROM jobs WHERE lower(email) = 'e9' OR n = 13 ORDER BY id");
  });
});

test("duplicates are refused only among the rows in the index", async () => {
  await using own = await TestEngine.open({ clock: systemClock });
  await own.run(
    "CREATE TABLE u (id INT PRIMARY KEY, email TEXT, gone TIMESTAMP);" +
      "CREATE UNIQUE INDEX u_email ON u (lower(email)) WHERE gone IS NULL;" +
      "INSERT INTO u VALUES (1, 'Ada@x', NULL), (2, 'ADA@x', now()), (3, 'ada@X', now())",
  );
  const duplicate =
    "DUPLICATE_KEY: Cannot insert into default.u: key (lower(email)) = ('ada@x') already exists in unique index \"u_email\"";
  const insert = "INSERT INTO u VALUES (4, 'ada@x', NULL)";
  expect(await messageOf(own, insert)).toStartWith(duplicate);
  expect(await messageOf(own, `BEGIN; ${insert}; COMMIT`)).toStartWith(duplicate);
  expect(await messageOf(own, "UPDATE u SET gone = NULL WHERE id = 2")).toStartWith(
    "DUPLICATE_KEY",
  );
  await own.run("STORAGE FLUSH TABLE u");
  expect(await messageOf(own, insert)).toStartWith(duplicate);
  await own.restart();
  expect(await messageOf(own, insert)).toStartWith(duplicate);
  await own.run(
    "BEGIN; UPDATE u SET gone = now() WHERE id = 1; INSERT INTO u VALUES (4, 'ADA@X', NULL); COMMIT",
  );
  expect(await own.rows("SELECT id FROM u WHERE lower(email) = 'ada@x' AND gone IS NULL")).toEqual([
    [4],
  ]);
  await own.run("UPDATE u SET gone = now()");
  await own.run("UPDATE u SET gone = NULL WHERE id = 2");
  await own.run("STORAGE FLUSH TABLE u; STORAGE COMPACT TABLE u");
  expect(await own.rows("SELECT id FROM u WHERE lower(email) = 'ada@x' AND gone IS NULL")).toEqual([
    [2],
  ]);
});

test("ON CONFLICT may name expressions and conditions", async () => {
  await using own = await TestEngine.open({ clock: systemClock });
  await own.run(
    "CREATE TABLE u (id INT PRIMARY KEY, email TEXT, k JSONB, state TEXT, v INT DEFAULT 0);" +
      "CREATE UNIQUE INDEX ON u (lower(email)); CREATE UNIQUE INDEX ON u ((k->>'a')) WHERE state = 'on';" +
      `INSERT INTO u VALUES (1, 'Ada', '{"a": "x"}', 'on'), (2, NULL, '{"a": "x"}', 'off')`,
  );
  await own.run(
    "INSERT INTO u VALUES (3, 'ADA', NULL, NULL) ON CONFLICT (lower(email)) DO UPDATE SET v = u.v + 1",
  );
  await own.run(
    "INSERT INTO u VALUES (4, 'aDA', NULL, NULL) ON CONFLICT ((lower(email))) DO UPDATE SET v = u.v + 10",
  );
  const second = `INSERT INTO u VALUES (5, 'b', '{"a": "x"}', 'on') ON CONFLICT ((k->>'a')) WHERE state = 'on'`;
  await own.run(`${second} AND v = v DO UPDATE SET v = u.v + 100 WHERE u.state = 'on'`);
  await own.run(`${second} DO NOTHING`);
  await own.run(
    `INSERT INTO u VALUES (6, 'c', '{"a": "x"}', 'off') ON CONFLICT ((k->>'a')) WHERE state = 'on' DO NOTHING`,
  );
  await own.run(`INSERT INTO u VALUES (7, 'd', '{"a": "x"}', 'on') ON CONFLICT DO NOTHING`);
  expect(await own.rows("SELECT id, v FROM u ORDER BY id")).toEqual([
    [1, 111],
    [2, 0],
    [6, 0],
  ]);
  for (const target of [
    "(email)",
    "((k->>'a'))",
    "((k->>'b')) WHERE state = 'on'",
    "((k->>'a')) WHERE state = 'off'",
  ]) {
    expect(
      await messageOf(
        own,
        `INSERT INTO u VALUES (9, 'x', NULL, NULL) ON CONFLICT ${target} DO NOTHING`,
      ),
    ).toMatch(/^INVALID_QUERY: .*\(lower\(email\)\)\) or \(\(k->>'a'\)\) WHERE state = 'on'/);
  }
});

test("a key that cannot be computed makes its row, or the build of the index, fail", async () => {
  await using own = await TestEngine.open({ clock: systemClock });
  await own.run("CREATE TABLE d (id INT PRIMARY KEY, v INT); INSERT INTO d VALUES (1, 5), (2, 0)");
  expect(await messageOf(own, "CREATE INDEX d_part ON d ((100 / v))")).toStartWith(
    "DIVISION_BY_ZERO",
  );
  expect(await own.rows("SELECT count(*) FROM system.indexes WHERE table_name = 'd'")).toEqual([
    [1],
  ]);
  await own.run(
    "UPDATE d SET v = 20 WHERE id = 2; CREATE INDEX d_part ON d ((100 / v)) WHERE v <> 7",
  );
  expect(await messageOf(own, "INSERT INTO d VALUES (3, 1), (4, 0)")).toMatch(
    /^DIVISION_BY_ZERO.*index "d_part" of default\.d/,
  );
  expect(await messageOf(own, "UPDATE d SET v = 0 WHERE id = 1")).toStartWith("DIVISION_BY_ZERO");
  expect(await own.rows("SELECT id FROM d WHERE 100 / v = 5 AND v <> 7")).toEqual([[2]]);
  expect(await own.rows("SELECT id, v FROM d ORDER BY id")).toEqual([
    [1, 5],
    [2, 20],
  ]);
});

test.each([
  ["(now()::text)", "now"],
  ["(random())", "random"],
  ["((SELECT 1))", "quer"],
  ["(current_user)", "current_user"],
  ["(data)", "jsonb have no order"],
  ["(data->'k')", "jsonb have no order"],
  ["(nothing + 1)", "nothing"],
  ["(count(*))", "count"],
  ["id) WHERE (deleted_at > now()", "now"],
  ["id) WHERE (n", "boolean"],
])("%s is refused by name", async (part, named) => {
  expect(await messageOf(engine, `CREATE INDEX refused ON jobs (${part})`)).toContain(named);
});

test("columns that an index reads are protected from changes to their definition", async () => {
  await using own = await TestEngine.open({ clock: systemClock });
  await own.run(
    "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b INT, c INT);" +
      "CREATE INDEX t_low ON t (lower(t.a), b) WHERE t.c > 0; CREATE INDEX t_b ON t ((b + 1));" +
      "INSERT INTO t VALUES (1, 'X', 2, 3), (2, 'Y', 3, 0)",
  );
  await own.run(
    'ALTER TABLE t RENAME COLUMN a TO "A b"; ALTER TABLE t RENAME COLUMN c TO d; ALTER TABLE t RENAME TO s',
  );
  const defined = async (): Promise<unknown> =>
    own.rows(
      "SELECT index_name, columns, definition FROM system.indexes WHERE table_name = 's' AND NOT is_primary ORDER BY 1",
    );
  expect(await defined()).toEqual([
    ["t_b", "(b + 1)", "CREATE INDEX t_b ON default.s ((b + 1))"],
    [
      "t_low",
      '(lower("A b")), b',
      'CREATE INDEX t_low ON default.s ((lower("A b")), b) WHERE "d" > 0',
    ],
  ]);
  const found = `SELECT id FROM s WHERE lower("A b") = 'x' AND d > 0`;
  expect((await own.rows(`EXPLAIN ${found}`)).join("\n")).toContain("t_low");
  expect(await own.rows(found)).toEqual([[1]]);
  await own.restart();
  expect(await own.rows(found)).toEqual([[1]]);
  expect(await messageOf(own, "ALTER TABLE s ALTER COLUMN b TYPE BIGINT")).toMatch(
    /^DEPENDENT_OBJECTS: .*index "t_low" contains expressions that read the column/,
  );
  await own.run("CREATE TABLE copy (LIKE s INCLUDING ALL)");
  expect(
    await own.rows(
      "SELECT columns, definition FROM system.indexes WHERE table_name = 'copy' AND NOT is_primary ORDER BY 1",
    ),
  ).toEqual([
    ["(b + 1)", "CREATE INDEX copy_expr_idx ON default.copy ((b + 1))"],
    [
      '(lower("A b")), b',
      'CREATE INDEX copy_lower_b_idx ON default.copy ((lower("A b")), b) WHERE "d" > 0',
    ],
  ]);
  await own.run("ALTER TABLE s DROP COLUMN d");
  expect(await defined()).toHaveLength(1);
});
