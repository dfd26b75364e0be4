/**
 * Tests GENERATED ALWAYS AS (…) STORED: values always follow the columns from which they are
 * computed, however a row is written, and definitions that would break this are refused.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;
let count = 0;
let t: string;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(async () => {
  count += 1;
  t = `app.t${count}`;
  await engine.run(
    `CREATE TABLE ${t} (id INT PRIMARY KEY, price INT, n INT DEFAULT 1,
       total BIGINT GENERATED ALWAYS AS (price * n) STORED CHECK (total < 1000000000),
       label TEXT NOT NULL GENERATED ALWAYS AS ('#' || id) STORED)`,
  );
});

function all(): Promise<readonly (readonly unknown[])[]> {
  return engine.rows(`SELECT id, price, n, total, label FROM ${t} ORDER BY id`);
}

test("INSERT, UPDATE, upsert and INSERT … SELECT compute the values", async () => {
  await engine.run(`INSERT INTO ${t} (id, price) VALUES (1, 5)`);
  await engine.run(`INSERT INTO ${t} VALUES (2, 5, 2, DEFAULT, DEFAULT)`);
  await engine.run(
    `INSERT INTO ${t} (id, price, n) SELECT g, g, g FROM generate_series(3, 4) x(g)`,
  );
  await engine.run(`UPDATE ${t} SET n = 10, total = DEFAULT WHERE id = 1`);
  const upsert = `INSERT INTO ${t} (id, price) VALUES (2, 7), (5, NULL) ON CONFLICT (id) DO UPDATE SET price = excluded.price, n = excluded.total RETURNING id, total`;
  expect(await engine.rows(upsert)).toEqual([
    [2, 49],
    [5, null],
  ]);
  expect(await all()).toEqual([
    [1, 5, 10, 50, "#1"],
    [2, 7, 7, 49, "#2"],
    [3, 3, 3, 9, "#3"],
    [4, 4, 4, 16, "#4"],
    [5, null, 1, null, "#5"],
  ]);
});

test("a long list, a long change and a transaction compute the values", async () => {
  const list = Array.from({ length: 3000 }, (_, i) => `(${i}, ${i})`).join(", ");
  await engine.run(`INSERT INTO ${t} (id, price) VALUES ${list}`);
  await engine.run(
    `INSERT INTO ${t} (id, price) SELECT g, g FROM generate_series(3000, 29999) x(g)`,
  );
  await engine.run(`UPDATE ${t} SET n = 2`);
  await engine.run(`BEGIN; UPDATE ${t} SET n = 3 WHERE id < 10; COMMIT`);
  expect(
    await engine.rows(
      `SELECT count(*), count(*) FILTER (WHERE total = price * n), sum(total) FROM ${t}`,
    ),
  ).toEqual([[30_000, 30_000, "899970045"]]);
});

test("explicit values, violations and faults are refused, and nothing is written", async () => {
  for (const [sql, code] of [
    [`INSERT INTO ${t} VALUES (1, 2, 3, 6)`, "INVALID_OPERATION"],
    [`INSERT INTO ${t} (id, total) OVERRIDING SYSTEM VALUE VALUES (1, 6)`, "INVALID_OPERATION"],
    [`INSERT INTO ${t} (id, price, n) VALUES (1, 100000, 10000)`, "CHECK_VIOLATION"],
    [`INSERT INTO ${t} (id, price, n) VALUES (1, 2000000000, 2)`, "VALUE_OUT_OF_RANGE"],
  ] as const) {
    expect([sql, (await engine.failure(sql)).split("@")[0]]).toEqual([sql, code]);
  }
  const { error } = await engine.ask(`INSERT INTO ${t} (id, price, n) VALUES (1, 2000000000, 2)`);
  expect(error?.message).toContain(`generated column "total" of ${t}`);
  await engine.run(`INSERT INTO ${t} (id, price) VALUES (1, 2)`);
  expect(await engine.failure(`UPDATE ${t} SET total = 4`)).toStartWith("INVALID_OPERATION");
  expect(await all()).toEqual([[1, 2, 1, 2, "#1"]]);
});

describe("generated columns can be altered", () => {
  test.each([
    "x INT GENERATED ALWAYS AS (random()) STORED",
    "x BIGINT GENERATED ALWAYS AS (SNOWFLAKE_ID()) STORED",
    "x TIMESTAMP GENERATED ALWAYS AS (now()) STORED",
    "x DATE GENERATED ALWAYS AS ('today'::date) STORED",
    "y INT GENERATED ALWAYS AS (id) STORED, x INT GENERATED ALWAYS AS (y) STORED",
    "x INT DEFAULT 3 GENERATED ALWAYS AS (id) STORED",
    "x INT GENERATED ALWAYS AS (id) STORED, PRIMARY KEY (id, x)",
  ])("%s is INVALID_DEFINITION", async (column) => {
    const key = column.includes("PRIMARY") ? "" : " PRIMARY KEY";
    const sql = `CREATE TABLE ${t}x (id INT${key}, ${column})`;
    expect(await engine.failure(sql)).toStartWith("INVALID_DEFINITION");
  });

  test.each([
    ["x INT GENERATED ALWAYS AS (nothing) STORED", "COLUMN_NOT_FOUND"],
    ["x INT GENERATED ALWAYS AS (id || 'a') STORED", "TYPE_MISMATCH"],
    ["x INT GENERATED ALWAYS AS ((SELECT 1)) STORED", "INVALID_DEFINITION"],
    ["x INT GENERATED ALWAYS AS (id) VIRTUAL", "UNSUPPORTED_FEATURE"],
  ])("%s is %s", async (column, code) => {
    expect(await engine.failure(`CREATE TABLE ${t}x (id INT PRIMARY KEY, ${column})`)).toStartWith(
      code,
    );
  });

  test("columns from which values are computed can be renamed, but dropped only with CASCADE", async () => {
    await engine.run(`INSERT INTO ${t} (id, price) VALUES (1, 5)`);
    await engine.run(`ALTER TABLE ${t} RENAME price TO "Price"; UPDATE ${t} SET n = 2`);
    expect(await engine.rows(`SELECT total FROM ${t}`)).toEqual([[10]]);
    expect(await engine.failure(`ALTER TABLE ${t} DROP COLUMN n`)).toStartWith("DEPENDENT_OBJECTS");
    expect(await engine.failure(`ALTER TABLE ${t} ALTER n TYPE BIGINT`)).toStartWith(
      "DEPENDENT_OBJECTS",
    );
    await engine.run(`ALTER TABLE ${t} DROP COLUMN n CASCADE`);
    expect(await engine.rows(`SELECT * FROM ${t}`)).toEqual([
      [1, 5, "#1", expect.anything(), false],
    ]);
  });

  test("ADD COLUMN computes later rows and the rows that exist", async () => {
    await engine.run(`ALTER TABLE ${t} ADD COLUMN half INT GENERATED ALWAYS AS (price / 2) STORED`);
    expect(await engine.rows(`INSERT INTO ${t} (id, price) VALUES (1, 9) RETURNING half`)).toEqual([
      [4],
    ]);
    await engine.run(
      `ALTER TABLE ${t} ADD COLUMN third INT GENERATED ALWAYS AS (price / 3) STORED`,
    );
    expect(await engine.rows(`SELECT third FROM ${t}`)).toEqual([[3]]);
  });

  test("DROP EXPRESSION turns a generated column into an ordinary one, and keeps its values", async () => {
    await engine.run(`INSERT INTO ${t} (id, price) VALUES (1, 5)`);
    await engine.run(`ALTER TABLE ${t} ALTER total DROP EXPRESSION`);
    await engine.run(`ALTER TABLE ${t} ALTER total DROP EXPRESSION IF EXISTS`);
    expect(await engine.failure(`ALTER TABLE ${t} ALTER total DROP EXPRESSION`)).toStartWith(
      "INVALID_OPERATION",
    );
    await engine.run(`UPDATE ${t} SET n = 9; INSERT INTO ${t} (id, total) VALUES (2, 77)`);
    expect(await engine.rows(`SELECT total FROM ${t} ORDER BY id`)).toEqual([[5], [77]]);
  });

  test("information_schema and DESCRIBE show the expression of a generated column, even after a restart", async () => {
    await engine.restart();
    const name = t.slice(4);
    expect(
      await engine.rows(
        `SELECT column_name, is_generated, generation_expression, is_identity FROM information_schema.columns WHERE table_name = '${name}' AND column_name IN ('id', 'total') ORDER BY 1`,
      ),
    ).toEqual([
      ["id", "NEVER", null, "NO"],
      ["total", "ALWAYS", "price * n", "NO"],
    ]);
    const described = await engine.rows(`DESCRIBE ${t}`);
    expect(described.find(([column]) => column === "total")?.[6]).toBe(
      "GENERATED ALWAYS AS (price * n) STORED",
    );
  });
});
