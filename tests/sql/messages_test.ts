/**
 * What statements answer in words: the messages of definitions, and of errors the message, the
 * place in the text and the hint.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RequestParts, TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app");
  await engine.run(
    "CREATE TABLE app.people (id INT PRIMARY KEY, name TEXT NOT NULL, born DATE, code VARCHAR(3)," +
      " share NUMERIC(5,2), small SMALLINT, j JSON, country TEXT, since TIMESTAMP)",
  );
  await engine.run("INSERT INTO app.people (id, name) VALUES (1, 'a')");
});
afterAll(() => engine[Symbol.asyncDispose]());

/** The message of a text that must fail, what stands at its position, and its hint. */
async function refusal(
  sql: string,
  parts: RequestParts = {},
): Promise<{ message: string; at: string | undefined; hint: string | undefined }> {
  const { error } = await engine.ask(sql, { namespace: "app", ...parts });
  if (error === undefined) throw new Error(`succeeded: ${sql}`);
  const { hint, message, position } = error;
  const at = position === undefined ? undefined : /^\S*/.exec(sql.slice(position))?.[0];
  return { message, at, hint };
}

describe("DROP … IF EXISTS", () => {
  test("says which tables are dropped, and which were not there", async () => {
    await engine.run("CREATE TABLE app.e1 (id INT PRIMARY KEY)");
    const [dropped] = await engine.run("DROP TABLE IF EXISTS app.nope, app.e1");
    expect(dropped?.message).toBe("Table app.e1 dropped; table app.nope does not exist");
    const [none] = await engine.run("DROP TABLE IF EXISTS app.nope, app.e1");
    expect(none?.message).toBe("Table app.nope does not exist; table app.e1 does not exist");
  });

  test("says which views are dropped, and which were not there", async () => {
    await engine.run("CREATE VIEW app.v1 AS SELECT 1 AS n");
    const [dropped] = await engine.run("DROP VIEW IF EXISTS app.nope, app.v1");
    expect(dropped?.message).toBe("View app.v1 dropped; view app.nope does not exist");
  });
});

test("CHECK_VIOLATION names the check and the columns that it reads", async () => {
  await engine.run(
    "CREATE TABLE app.checked (id INT PRIMARY KEY, low INT CONSTRAINT above CHECK (low > 0)," +
      " high INT, CONSTRAINT ordered CHECK (high >= low))",
  );
  expect((await refusal("INSERT INTO checked VALUES (1, 0, 5)")).message).toBe(
    'Cannot write a row of app.checked: it violates check "above" of column "low"',
  );
  expect((await refusal("INSERT INTO checked VALUES (1, 3, 2)")).message).toBe(
    'Cannot write a row of app.checked: it violates check "ordered" of columns "low", "high"',
  );
});
