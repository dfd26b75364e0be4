/**
 * Verifies that a cached plan is reused only for SQL with the same meaning.
 *
 * Every statement runs twice: alone, which uses the cache, and within a longer request, which does
 * not. Both results must be the same, whatever ran before.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE a; CREATE NAMESPACE b; CREATE TABLE a.t (id INT PRIMARY KEY, v TEXT); CREATE TABLE b.t (id TEXT PRIMARY KEY, v INT);" +
      "INSERT INTO a.t VALUES (1, 'one'), (2, 'two'); INSERT INTO b.t VALUES ('1', 100);" +
      "CREATE USER TABLE a.u (id INT PRIMARY KEY, v TEXT); CREATE USER ann INTERNAL; CREATE USER sam INTERNAL ROLE service",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/**
 * Runs a statement through the plan cache, asserts that the general path gives the same result,
 * and returns the result.
 */
async function answer(sql: string, parts: RequestParts = {}): Promise<unknown> {
  const alone = await engine.ask(sql, parts);
  const inText = await engine.ask(`BEGIN; ${sql}; COMMIT`, parts);
  const shown = ({ error, results }: typeof alone, at: number): unknown =>
    error?.code ?? results[at]?.rows;
  expect(shown(inText, 1), sql).toEqual(shown(alone, 0));
  return shown(alone, 0);
}

test("a text with literals of other values and types has its own result", async () => {
  const wanted: readonly (readonly [string, unknown])[] = [
    ["1", [[1, "Int"]]],
    ["2147483648", [[2147483648, "BigInt"]]],
    ["9223372036854775808", [["9223372036854775808", "Decimal"]]],
    ["1.50", [["1.50", "Decimal"]]],
    ["2.5", [["2.5", "Decimal"]]],
    ["'x'", [["x", "Text"]]],
    ["''", [["", "Text"]]],
    ["-3", [[-3, "Int"]]],
    ["1", [[1, "Int"]]],
  ];
  for (const [literal, [[cell, word] = []]] of wanted as readonly [string, unknown[][]][]) {
    const sql = `SELECT ${literal} AS c`;
    expect(await answer(sql)).toEqual([[cell]]);
    const [entry] = await engine.run(sql);
    expect(JSON.stringify(entry?.schema?.[0]?.data_type)).toContain(String(word));
  }
});

test("equal literals may or may not be one expression", async () => {
  const sql = (a: number, b: number): string =>
    `SELECT id + ${a}, count(*) FROM a.t GROUP BY id + ${b} ORDER BY id + ${b}`;
  expect(await answer(sql(1, 1))).toEqual([
    [2, 1],
    [3, 1],
  ]);
  expect(await answer(sql(5, 5))).toEqual([
    [6, 1],
    [7, 1],
  ]);
  expect(await answer(sql(1, 2))).toBe("INVALID_QUERY");
  expect(await answer(sql(1, 1))).toEqual([
    [2, 1],
    [3, 1],
  ]);
});

test("ordinals, LIMIT, scales of casts and lengths of types are not plain literals", async () => {
  expect(await answer("SELECT v, id FROM a.t ORDER BY 1 DESC")).toEqual([
    ["two", 2],
    ["one", 1],
  ]);
  expect(await answer("SELECT v, id FROM a.t ORDER BY 2")).toEqual([
    ["one", 1],
    ["two", 2],
  ]);
  expect(await answer("SELECT id FROM a.t ORDER BY id LIMIT 1")).toEqual([[1]]);
  expect(await answer("SELECT id FROM a.t ORDER BY id LIMIT 2")).toEqual([[1], [2]]);
  expect(await answer("SELECT 1.239::DECIMAL(10,2)")).toEqual([["1.24"]]);
  expect(await answer("SELECT 1.239::DECIMAL(10,1)")).toEqual([["1.2"]]);
  expect(await answer("SELECT 'abc'::VARCHAR(2)")).toEqual([["ab"]]);
  expect(await answer("SELECT 'abc'::VARCHAR(1)")).toEqual([["a"]]);
  expect(await answer("SELECT round(2.345, 1)")).toEqual([["2.3"]]);
  expect(await answer("SELECT round(2.345, 2)")).toEqual([["2.35"]]);
  expect(await answer("SELECT INTERVAL '1 day'")).toEqual([["1 day"]]);
  expect(await answer("SELECT INTERVAL '2 days'")).toEqual([["2 days"]]);
});

test("names of output columns do not come from lifted literals", async () => {
  for (const literal of ["1", "'x'", "2.5"]) {
    const [entry] = await engine.run(`SELECT ${literal}`);
    expect(entry?.schema?.[0]?.name).toBe("?column?");
  }
});

test("a text with parameters of other types has its own result", async () => {
  const sql = "SELECT v FROM a.t WHERE id = $1";
  expect(await answer(sql, { params: [1] })).toEqual([["one"]]);
  expect(await answer(sql, { params: ["2"] })).toEqual([["two"]]);
  expect(await answer(sql, { params: [1.5] })).toEqual([]);
  expect(await answer(sql, { params: [null] })).toEqual([]);
  expect(await answer(sql, { params: [true] })).toBe("TYPE_MISMATCH");
  expect(await answer(sql, { params: ["x"] })).toBe("INVALID_VALUE");
  expect(await answer(sql, { params: [9_007_199_254_740_992] })).toEqual([]);
  expect(await answer(sql, { params: [1] })).toEqual([["one"]]);
});

test("the number of parameters must match the text", async () => {
  for (const params of [[], [1, 2]]) {
    expect(await answer("SELECT v FROM a.t WHERE id = $1", { params })).toBe("INVALID_PARAMETER");
  }
  expect(await answer("SELECT 1", { params: [1] })).toBe("INVALID_PARAMETER");
  expect(await engine.failure("SELECT 1; SELECT $1", { params: [1] })).toStartWith(
    "PARAMS_WITH_BATCH",
  );
});

test("a text in another namespace has its own result", async () => {
  const sql = "SELECT v FROM t WHERE id = '1'";
  expect(await answer(sql, { namespace: "a" })).toEqual([["one"]]);
  expect(await answer(sql, { namespace: "b" })).toEqual([[100]]);
  expect(await answer(sql)).toBe("TABLE_NOT_FOUND");
  expect(await engine.rows(`USE b; ${sql}`)).toEqual([[100]]);
  expect(await answer(sql, { namespace: "a" })).toEqual([["one"]]);
});

test("a text of another caller has that caller's rights and rows", async () => {
  const shared = "SELECT count(*) FROM a.t";
  const own = "SELECT v FROM a.u WHERE id = 1";
  await engine.run("INSERT INTO a.u VALUES (1, 'of root')");
  expect(await answer(shared)).toEqual([[2]]);
  expect(await answer(own)).toEqual([["of root"]]);
  engine.userId = "ann";
  expect(await answer(shared)).toBe("TABLE_NOT_FOUND");
  expect(await answer(own)).toEqual([]);
  expect(await answer("SELECT CURRENT_USER")).toEqual([["ann"]]);
  engine.userId = "sam";
  expect(await answer("SELECT CURRENT_USER")).toEqual([["sam"]]);
  expect(await answer(shared)).toEqual([[2]]);
  engine.userId = "root";
});

test("a text after a change to its table has a new result", async () => {
  await engine.run("CREATE TABLE a.d (id INT PRIMARY KEY, v INT); INSERT INTO a.d VALUES (1, 1)");
  expect(await answer("SELECT v FROM a.d")).toEqual([[1]]);
  expect(await answer("SELECT id, v FROM a.d WHERE v = 1")).toEqual([[1, 1]]);
  await engine.run("ALTER TABLE a.d DROP COLUMN v");
  expect(await answer("SELECT v FROM a.d")).toBe("COLUMN_NOT_FOUND");
  await engine.run("ALTER TABLE a.d ADD COLUMN v TEXT DEFAULT 'new'");
  expect(await answer("SELECT v FROM a.d")).toEqual([["new"]]);
  await engine.run("DROP TABLE a.d");
  expect(await answer("SELECT v FROM a.d")).toBe("TABLE_NOT_FOUND");
  await engine.run(
    "CREATE TABLE a.d (id INT PRIMARY KEY, v BOOLEAN); INSERT INTO a.d VALUES (1, TRUE)",
  );
  expect(await answer("SELECT v FROM a.d")).toEqual([[true]]);
});

test("long lists of values have the same meaning as short ones", async () => {
  await engine.run(
    "CREATE TABLE a.l (id INT PRIMARY KEY, s SMALLINT DEFAULT 7, m DECIMAL(6,2), d DATE, v VARCHAR(4), b BOOLEAN)",
  );
  const cells = [
    "-32768, 1.005, '2024-02-29', 'abcd', TRUE",
    "DEFAULT, -1, NULL, '', FALSE",
    "NULL, '3.1', '1969-12-31', 'ü', 'yes'",
  ];
  for (const count of [3, 3000]) {
    const rows = Array.from({ length: count }, (_, id) => `(${id}, ${cells[id % 3] ?? ""})`);
    await engine.run(`DELETE FROM a.l; INSERT INTO a.l VALUES ${rows.join(", ")}`);
    const sql = "SELECT DISTINCT s, m, d, v, b FROM a.l ORDER BY m";
    expect(await engine.rows(sql)).toEqual([
      [7, "-1.00", null, "", false],
      [-32768, "1.01", 19782, "abcd", true],
      [null, "3.10", -1, "ü", true],
    ]);
    const faulty = [...rows, `(${count}, 40000, 1, NULL, '', NULL)`].join(", ");
    expect(await engine.failure(`INSERT INTO a.l VALUES ${faulty}`)).toStartWith(
      "VALUE_OUT_OF_RANGE@1",
    );
  }
});

test("a DECIMAL compared with FLOAT becomes the nearest FLOAT, but one compared with DOUBLE does not", async () => {
  const compared = (number: string): Promise<unknown> =>
    answer(`SELECT 0.1::real = ${number}, id FROM a.t WHERE id = 1`);
  expect(await compared("0.1")).toEqual([[true, 1]]);
  expect(await compared("-(-0.1)")).toEqual([[true, 1]]);
  expect(await compared("0.1::numeric")).toEqual([[true, 1]]);
  expect(await compared("0.1::numeric(5,2)")).toEqual([[true, 1]]);
  expect(await compared("(SELECT 0.1)")).toEqual([[true, 1]]);
  expect(await compared("0.1::float8")).toEqual([[false, 1]]);
});

test("literals that determine the digits of a result are not lifted", async () => {
  const sql =
    "VALUES (round(42.4382, 2), trunc(42.4382, 1), trim_scale(1.500), to_number('12.345', '99.999'))";
  expect(await answer(sql)).toEqual([["42.44", "42.4", "1.5", "12.345"]]);
  expect(await answer("SELECT * FROM (VALUES (round(2.55, 1)), (7)) AS v(x)")).toEqual([
    ["2.6"],
    ["7"],
  ]);
});

test("plans count by the lengths of their texts, and a very long text evicts no other", async () => {
  await using small = await TestEngine.open({
    config: "[performance]\nmemory_bytes = 268435456",
  });
  const plansBytes = async (column = "used_bytes"): Promise<number> => {
    const sql = `SELECT ${column} FROM system.memory WHERE part = 'plans'`;
    return Number((await small.rows(sql))[0]?.[0]);
  };
  const bytesMax = await plansBytes("allowed_bytes");
  const outputs = (count: number, name: string): string =>
    `SELECT ${Array.from({ length: count }, () => name).join(", ")} FROM (SELECT 7 AS ${name})`;
  await plansBytes();
  const grownBy = async (sql: string): Promise<number> => {
    const before = await plansBytes();
    await small.run(sql);
    return (await plansBytes()) - before;
  };
  const ofShort = await grownBy(outputs(1, "column_0"));
  const ofLong = await grownBy(outputs(1000, "column_1"));
  expect(ofShort).toBeGreaterThan(0);
  expect(ofLong).toBeGreaterThan(20 * ofShort);
  expect(await grownBy(outputs(4000, "column_2"))).toBe(0);
  for (let i = 3; i < 20; i += 1) await small.run(outputs(1000, `column_${i}`));
  expect(await plansBytes()).toBeWithin(bytesMax - 2 * ofLong, bytesMax + 1);
});
