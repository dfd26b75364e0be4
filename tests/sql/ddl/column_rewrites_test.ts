/**
 * Tests ALTER TABLE with changes that rewrite rows: types that do not widen, USING, generated
 * columns, and DEFAULTs that differ from row to row.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

let engine: TestEngine;
let count = 0;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app;" +
      "CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER ben INTERNAL ROLE user",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

const WHERE = ["in memory", "in a segment", "after a restart"] as const;

async function filled(where: string, columns: string, rows: string): Promise<string> {
  count += 1;
  const table = `app.w${count}`;
  await engine.run(`CREATE TABLE ${table} (${columns}); INSERT INTO ${table} VALUES ${rows}`);
  if (where === "in a segment") await engine.run(`STORAGE FLUSH TABLE ${table}`);
  return table;
}

/**
 * Alters a table. If `where` names a restart, restarts the database afterwards, which replays the
 * rows from the log.
 */
async function alter(where: string, sql: string): Promise<void> {
  await engine.run(sql);
  if (where === "after a restart") await engine.restart();
}

describe.each(WHERE)("rows are rewritten correctly %s", (where) => {
  test("text becomes numbers with USING, and NULL stays NULL", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, v TEXT, w INT", "(1,'10',5),(2,NULL,6)");
    await alter(where, `ALTER TABLE ${table} ALTER v TYPE INTEGER USING v::integer`);
    await engine.run(`INSERT INTO ${table} VALUES (3, 7, 8)`);
    expect(await engine.rows(`SELECT id, v + 1, w FROM ${table} ORDER BY id`)).toEqual([
      [1, 11, 5],
      [2, null, 6],
      [3, 8, 8],
    ]);
    expect(await engine.rows(`SELECT id FROM ${table} WHERE v < 10`)).toEqual([[3]]);
  });

  test("USING reads the columns as they were before the statement", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, a INT, b INT", "(1,10,20),(2,30,40)");
    await alter(
      where,
      `ALTER TABLE ${table} ALTER a TYPE TEXT USING 'b' || b, ALTER b TYPE TEXT USING 'a' || a`,
    );
    expect(await engine.rows(`SELECT a, b FROM ${table} ORDER BY id`)).toEqual([
      ["b20", "a10"],
      ["b40", "a30"],
    ]);
  });

  test("a narrower type is applied to each row", async () => {
    const table = await filled(
      where,
      "id INT PRIMARY KEY, m DECIMAL(8,3), t TIMESTAMP",
      "(1, 1.255, '2026-01-31 12:00:00')",
    );
    await alter(where, `ALTER TABLE ${table} ALTER m TYPE DECIMAL(5,1), ALTER t TYPE DATE`);
    expect(await engine.rows(`SELECT m::text, t::text FROM ${table}`)).toEqual([
      ["1.3", "2026-01-31"],
    ]);
  });

  test("a generated column is computed for the rows that exist", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, v INT", "(1, 10), (2, NULL)");
    await alter(where, `ALTER TABLE ${table} ADD d INT GENERATED ALWAYS AS (v * 2) STORED`);
    await engine.run(`UPDATE ${table} SET v = 4 WHERE id = 2`);
    expect(await engine.rows(`SELECT id, d FROM ${table} ORDER BY id`)).toEqual([
      [1, 20],
      [2, 8],
    ]);
  });

  test("a DEFAULT that differs from row to row gives each row its own value", async () => {
    const table = await filled(where, "id INT PRIMARY KEY", "(1), (2), (3)");
    await alter(where, `ALTER TABLE ${table} ADD u UUID NOT NULL DEFAULT gen_random_uuid()`);
    expect(await engine.rows(`SELECT count(DISTINCT u) FROM ${table}`)).toEqual([[3]]);
  });

  test("a SERIAL column numbers the rows that exist, and continues after them", async () => {
    const table = await filled(where, "id INT PRIMARY KEY", "(10), (20)");
    await alter(where, `ALTER TABLE ${table} ADD n SERIAL`);
    await engine.run(`INSERT INTO ${table} (id) VALUES (30)`);
    expect(await engine.rows(`SELECT id, n FROM ${table} ORDER BY id`)).toEqual([
      [10, 1],
      [20, 2],
      [30, 3],
    ]);
  });

  test("an index of the column finds the new values", async () => {
    const table = await filled(where, "id INT PRIMARY KEY, v TEXT", "(1,'10'),(2,'9'),(3,'10')");
    await engine.run(`CREATE INDEX ON ${table} (v)`);
    await alter(where, `ALTER TABLE ${table} ALTER v TYPE INT USING v::int`);
    expect(await engine.rows(`SELECT id FROM ${table} WHERE v = 10 ORDER BY id`)).toEqual([
      [1],
      [3],
    ]);
    expect(await engine.rows(`SELECT v FROM ${table} ORDER BY v LIMIT 1`)).toEqual([[9]]);
  });
});

test("the rows of every owner of a USER table are rewritten", async () => {
  await engine.run("CREATE USER TABLE app.notes (id INT PRIMARY KEY, v TEXT)");
  for (const user of ["ann", "ben"]) {
    await engine.run(`EXECUTE AS USER '${user}' (INSERT INTO app.notes VALUES (1, '3'))`);
  }
  await engine.run("ALTER TABLE app.notes ALTER v TYPE INT USING v::int");
  const [ann, ben] = await Promise.all(
    ["ann", "ben"].map((user) =>
      engine.run(`EXECUTE AS USER '${user}' (SELECT v + 1 FROM app.notes)`),
    ),
  );
  expect([ann?.[0]?.rows, ben?.[0]?.rows]).toEqual([[[4]], [[4]]]);
});

test("a row whose value cannot be computed leaves the table as it was", async () => {
  const table = await filled("in memory", "id INT PRIMARY KEY, v TEXT", "(1,'10'),(2,'ten')");
  const before = await engine.rows(`SELECT _seq FROM ${table} ORDER BY id`);
  const failing = `ALTER TABLE ${table} ALTER v TYPE INT USING v::int`;
  expect(await engine.failure(failing)).toBe("INVALID_VALUE@1:33");
  expect(await engine.rows(`SELECT _seq FROM ${table} ORDER BY id`)).toEqual(before);
  expect(await engine.rows(`SELECT v FROM ${table} ORDER BY id`)).toEqual([["10"], ["ten"]]);
});

describe("type changes that would break another object are refused", () => {
  test.each([
    ["a cast that only USING may make", "v TEXT", "ALTER v TYPE INT", "TYPE_MISMATCH"],
    [
      "a check that new values violate",
      "v TEXT, CHECK (v <> '7')",
      "ALTER v TYPE INT USING 7",
      "CHECK_VIOLATION",
    ],
    [
      "NULL in a NOT NULL column",
      "v TEXT NOT NULL",
      "ALTER v TYPE INT USING NULL",
      "NOT_NULL_VIOLATION",
    ],
    ["a key", "v TEXT, PRIMARY KEY (v)", "ALTER v TYPE INT USING v::int", "UNSUPPORTED_FEATURE"],
    ["a unique column", "v TEXT UNIQUE", "ALTER v TYPE INT USING v::int", "DEPENDENT_OBJECTS"],
    ["a subquery", "v TEXT", "ALTER v TYPE INT USING (SELECT 1)", "INVALID_DEFINITION"],
    ["SERIAL", "v INT", "ALTER v TYPE SERIAL", "INVALID_DEFINITION"],
    [
      "a DEFAULT that does not fit",
      "v TEXT DEFAULT 'x'",
      "ALTER v TYPE INT USING 1",
      "INVALID_DEFINITION",
    ],
  ])("%s", async (_what, columns, action, code) => {
    const table = await filled("in memory", columns, columns === "v INT" ? "(1)" : "('1')");
    expect(await engine.failure(`ALTER TABLE ${table} ${action}`)).toStartWith(code);
  });

  test("the type of a column that a view, a policy, a foreign key or a generated column needs cannot change", async () => {
    await engine.run(
      "CREATE TABLE app.parents (id INT PRIMARY KEY, v INT UNIQUE);" +
        "CREATE TABLE app.children (id INT PRIMARY KEY, p INT REFERENCES app.parents (v)," +
        " a INT, b INT GENERATED ALWAYS AS (a + 1) STORED, c INT);" +
        "CREATE VIEW app.shown AS SELECT c FROM app.children",
    );
    for (const column of ["p", "a", "b", "c"]) {
      const sql = `ALTER TABLE app.children ALTER ${column} TYPE TEXT USING 'x'`;
      expect(await engine.failure(sql)).toMatch(/^(?:DEPENDENT_OBJECTS|INVALID_OPERATION)/);
    }
  });
});

test("writes wait for the rewrite, and are rewritten or made with the new type", async () => {
  const table = await filled("in memory", "id INT PRIMARY KEY, v TEXT", "(0, '0')");
  await engine.run(`INSERT INTO ${table} SELECT g, g::text FROM generate_series(1, 9000) g`);
  const [, ...written] = await Promise.all([
    engine.run(`ALTER TABLE ${table} ALTER v TYPE INT USING v::int`),
    ...[10001, 10002, 10003].map((id) => engine.run(`INSERT INTO ${table} VALUES (${id}, '5')`)),
  ]);
  expect(written.length).toBe(3);
  expect(await engine.rows(`SELECT count(*), sum(v) FROM ${table}`)).toEqual([[9004, 40504515]]);
});

test("a table dropped during its rewrite is named in the error", async () => {
  const table = await filled("in memory", "id INT PRIMARY KEY, v TEXT", "(0, '0')");
  await engine.run(`INSERT INTO ${table} SELECT g, g::text FROM generate_series(1, 20000) g`);
  const altered = engine.ask(`ALTER TABLE ${table} ALTER v TYPE INT USING v::int`);
  const running = "SELECT 1 FROM system.jobs WHERE job_type = 'rewrite' AND status = 'running'";
  await until(async () => (await engine.rows(running)).length > 0);
  await engine.run(`DROP TABLE ${table}`);
  expect((await altered).error).toMatchObject({
    code: "TABLE_NOT_FOUND",
    message: `Cannot alter table ${table}: it was dropped in the meantime`,
  });
});

test("a view or a policy that needs a retyped column has to be dropped first, for which CASCADE is not a hint", async () => {
  const table = await filled("in memory", "id INT PRIMARY KEY, a TEXT, b TEXT", "(1, '1', '2')");
  await engine.run(
    `CREATE VIEW ${table}_view AS SELECT a FROM ${table};
     ALTER TABLE ${table} SET (ACCESS_LEVEL = 'RESTRICTED');
     CREATE POLICY p ON ${table} USING (b = CURRENT_USER())`,
  );
  for (const column of ["a", "b"]) {
    const sql = `ALTER TABLE ${table} ALTER ${column} TYPE INT USING ${column}::int`;
    expect((await engine.ask(sql)).error).toMatchObject({
      code: "DEPENDENT_OBJECTS",
      hint: "drop the dependent objects first, then create them again",
    });
  }
});

test("a string column becomes longer while an index is computed from it", async () => {
  await using own = await TestEngine.open();
  await own.run(
    `CREATE NAMESPACE app; CREATE TABLE app.named (id INT PRIMARY KEY, v VARCHAR(3), n INT);
     CREATE UNIQUE INDEX upper_v ON app.named (upper(v)) WHERE v <> '';
     CREATE INDEX twice_n ON app.named ((n * 2));
     INSERT INTO app.named VALUES (1, 'abc', 1); STORAGE FLUSH TABLE app.named;
     ALTER TABLE app.named ALTER COLUMN v TYPE VARCHAR(200)`,
  );
  await own.run("INSERT INTO app.named VALUES (2, 'abcdef', 1)");
  for (const type of ["VARCHAR(300)", "TEXT"]) {
    await own.run(`ALTER TABLE app.named ALTER COLUMN v TYPE ${type}`);
    const found = "SELECT id FROM app.named WHERE upper(v) = 'ABC' AND v <> ''";
    expect(await own.rows(found)).toEqual([[1]]);
    expect(await own.failure("INSERT INTO app.named VALUES (3, 'ABC', 1)")).toStartWith(
      "DUPLICATE_KEY",
    );
  }
  expect(await own.failure("ALTER TABLE app.named ALTER COLUMN n TYPE BIGINT")).toStartWith(
    "DEPENDENT_OBJECTS",
  );
});
