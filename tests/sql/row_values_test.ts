/**
 * Tests row values: in clients' cells, in readers, on disk and in live queries.
 * `cases/row_values.slt` compares their meaning with PostgreSQL's.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";

const MIB = 1024 * 1024;

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE SHARED TABLE t (id INT PRIMARY KEY, note TEXT, price DECIMAL(6,2))");
  await engine.run("INSERT INTO t VALUES (1, 'a \"b\"', 1.5), (2, NULL, NULL)");
});

afterAll(() => engine[Symbol.asyncDispose]());

test("a row is sent as the text of a JSON object, and an array of rows as a list", async () => {
  const [answer] = await engine.run("SELECT t, ARRAY[t] AS list FROM t ORDER BY id");
  expect(answer?.schema?.map(({ data_type }) => data_type)).toEqual(["Json", { Array: "Json" }]);
  const first = String.raw`{"id":1,"note":"a \"b\"","price":1.50}`;
  const second = '{"id":2,"note":null,"price":null}';
  expect(answer?.rows).toEqual([
    [first, [first]],
    [second, [second]],
  ]);
});

test("a reader returns the same rows", async () => {
  await using elsewhere = await TestEngine.open({ readsElsewhere: true });
  const rows = "SELECT ROW(n, ARRAY[ROW(n, 'x')]) AS r FROM generate_series(1, 3) g(n)";
  const sql = `SELECT r, r::text AS form FROM (${rows}) s WHERE (r).f1 > 1 ORDER BY r DESC`;
  const answer = await elsewhere.rows(sql);
  expect(answer).toEqual(await engine.rows(sql));
  expect(answer[0]).toEqual(['{"f1":3,"f2":[{"f1":3,"f2":"x"}]}', String.raw`(3,"{""(3,x)""}")`]);
});

testThoroughly("rows beyond the memory of a statement are sorted and grouped on disk", async () => {
  await using small = await TestEngine.open({
    config: `performance.query_memory_bytes = ${MIB}`,
  });
  const rows = "SELECT ROW(n % 50, repeat('x', 60), n) AS r FROM generate_series(1, 20000) g(n)";
  const sorted = `SELECT (r).f1, (r).f3 FROM (${rows}) s ORDER BY r DESC LIMIT 3 OFFSET 19997`;
  expect(await small.rows(sorted)).toEqual([
    [0, 150],
    [0, 100],
    [0, 50],
  ]);
  const grouped = `SELECT count(*) FROM (SELECT DISTINCT r FROM (${rows}) s) d`;
  expect(await small.rows(grouped)).toEqual([[20_000]]);
});

test("no column can store rows", async () => {
  expect(await engine.failure("CREATE SHARED TABLE u (id INT PRIMARY KEY, r RECORD)")).toBe(
    "UNSUPPORTED_TYPE@1:45",
  );
  expect(await engine.failure("UPDATE t SET price = ROW(1)")).toBe("TYPE_MISMATCH@1:21");
  const price = "SELECT price FROM t ORDER BY id";
  expect(await engine.rows(price)).toEqual([["1.50"], [null]]);
});

test("a string is not accepted as a row", async () => {
  expect(await engine.failure("SELECT ROW(1) = '(1)'")).toBe("INVALID_VALUE@1:16");
});

test("a row is copied in PostgreSQL's form", async () => {
  const [answer] = await engine.run("SELECT t::text, concat(t) FROM t WHERE id = 1");
  const text = '(1,"a ""b""",1.50)';
  expect(answer?.rows).toEqual([[text, text]]);
});
