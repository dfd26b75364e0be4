/** Tests PREPARE, EXECUTE and DEALLOCATE within a single request. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE TABLE people (id INT PRIMARY KEY, name TEXT)");
});
afterAll(() => engine[Symbol.asyncDispose]());

test("a prepared statement runs with each list of values", async () => {
  const results = await engine.run(
    "PREPARE put (int, text) AS INSERT INTO people VALUES ($1, $2);" +
      "EXECUTE put (1, 'ada'); EXECUTE put ('2', 'ben'); EXECUTE put (3, NULL);" +
      "PREPARE find AS SELECT name FROM people WHERE id = $1 OR name = $2 ORDER BY id LIMIT $3;" +
      "EXECUTE find (1, 'ben', 2); EXECUTE find (1, 'ben', 1); DEALLOCATE ALL",
  );
  expect(results[0]?.message).toBe("Statement put prepared");
  expect(results[5]?.rows).toEqual([["ada"], ["ben"]]);
  expect(results[6]?.rows).toEqual([["ada"]]);
  expect(results[7]?.message).toBe("All statements deallocated");
  expect(await engine.rows("SELECT count(*) FROM people")).toEqual([[3]]);
});

test("a parameter may occur anywhere and several times, and has its declared type", async () => {
  const text =
    "PREPARE p (bigint) AS SELECT $1, pg_typeof($1), ARRAY[$1, $1 + 1], (SELECT max(x) FROM (VALUES ($1)) AS v (x)); EXECUTE p (7)";
  const [row] = await engine.printed(text);
  expect(row).toEqual([7, "bigint", "{7,8}", 7]);
  expect(await engine.rows("PREPARE q AS SELECT 'x'; EXECUTE q")).toEqual([["x"]]);
});

test("a name can be used again after DEALLOCATE", async () => {
  const text = "PREPARE p AS SELECT 1; DEALLOCATE PREPARE p; PREPARE p AS SELECT 2; EXECUTE p";
  expect(await engine.rows(text)).toEqual([[2]]);
});

test("EXECUTE runs in the enclosing transaction", async () => {
  await engine.run(
    "PREPARE put AS INSERT INTO people VALUES ($1, 'gone'); BEGIN; EXECUTE put (50); ROLLBACK",
  );
  expect(await engine.rows("SELECT * FROM people WHERE id = 50")).toEqual([]);
});

test.each([
  ["EXECUTE p (1)", "OBJECT_NOT_FOUND@1:8"],
  ["DEALLOCATE p", "OBJECT_NOT_FOUND@1:11"],
  ["PREPARE p AS SELECT 1; PREPARE p AS SELECT 2", "ALREADY_EXISTS@2:31"],
  ["PREPARE p AS SELECT 1; DEALLOCATE ALL; EXECUTE p", "OBJECT_NOT_FOUND@3:47"],
  ["PREPARE p AS SELECT $1; EXECUTE p", "INVALID_PARAMETER@2:24"],
  ["PREPARE p AS SELECT $1; EXECUTE p (1, 2)", "INVALID_PARAMETER@2:24"],
  ["PREPARE p AS SELECT * FROM missing; EXECUTE p", "TABLE_NOT_FOUND@2:36"],
  ["PREPARE p AS SELECT $1; EXECUTE p (random())", "UNSUPPORTED_FEATURE@2:35"],
  ["PREPARE p AS BEGIN", "UNSUPPORTED_FEATURE@1:13"],
  ["EXECUTE AS USER root (EXECUTE p)", "PERMISSION_DENIED@1:22"],
])("%s is refused, and nothing before it runs", async (sql, failure) => {
  expect(await engine.failure(`INSERT INTO people VALUES (99, 'x'); ${sql}`)).toBe(
    failure.replace(/@(\d+):(\d+)/, (_, index: string, position: string) => {
      return `@${Number(index) + 1}:${Number(position) + 37}`;
    }),
  );
  expect(await engine.rows("SELECT * FROM people WHERE id = 99")).toEqual([]);
});

test("a value that does not fit the declared type fails at EXECUTE", async () => {
  const text = "PREPARE p (int) AS SELECT $1; EXECUTE p ('x')";
  expect(await engine.failure(text)).toBe("INVALID_VALUE@2:41");
});

test("a prepared statement cannot use the parameters of the request", async () => {
  const parts = { params: [1] };
  const text = "BEGIN; PREPARE p AS SELECT $1 + $2; SELECT $1; EXECUTE p (5, 6); COMMIT";
  expect((await engine.run(text, parts))[3]?.rows).toEqual([[11]]);
});

test("a short text cannot run any number of long prepared statements", async () => {
  const long = `PREPARE p AS SELECT '${"x".repeat(100_000)}'`;
  const { error } = await engine.ask(`${long}${"; EXECUTE p".repeat(400)}`);
  expect(error).toMatchObject({ code: "INVALID_SQL", hint: "split the request into several" });
  expect(error?.message).toContain('Cannot execute "p"');
  expect(await engine.rows(`${long}; EXECUTE p; EXECUTE p`)).toHaveLength(1);
});
