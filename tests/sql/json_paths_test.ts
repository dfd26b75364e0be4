/**
 * Tests the limits of JSON paths, and their printed form. The expected results are in
 * `cases/json_paths.slt`.
 */
import { expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

async function refusal(engine: TestEngine, sql: string): Promise<string> {
  const { error } = await engine.ask(sql);
  return `${error?.code}: ${error?.message}`;
}

test.each([
  [
    `SELECT '${"(".repeat(150)}1${")".repeat(150)}'::jsonpath`,
    "the path is nested more than 100 levels deep",
  ],
  [`SELECT '${"- ".repeat(150)}1'::jsonpath`, "the path is nested more than 100 levels deep"],
  [`SELECT '$${".a".repeat(1500)}'::jsonpath`, "the path has more than 1000 parts"],
])("a path is limited, so that following it ends: case %#", async (sql, why) => {
  await using engine = await TestEngine.open();
  const said = await refusal(engine, sql);
  expect(said).toStartWith("INVALID_SQL: Cannot read ");
  expect(said).toEndWith(why);
});

test("a path that visits very many items is refused with LIMIT_EXCEEDED", async () => {
  await using engine = await TestEngine.open();
  const list = `[${Array.from({ length: 3000 }, (_, i) => i).join(",")}]`;
  const sql = `SELECT jsonb_path_exists('${list}', '$[*] ? (exists($[*].a))')`;
  expect(await refusal(engine, sql)).toStartWith(
    "LIMIT_EXCEEDED: Cannot evaluate the JSON path: it visits more than 4194304 items",
  );
});

test("the printed form of a condition with an accessor can be parsed again", async () => {
  await using engine = await TestEngine.open();
  const path = `'$ ? (($ like_regex "a").type() starts with "b")'::jsonpath`;
  const rows = await engine.rows(`SELECT ${path}::text::jsonpath::text = ${path}::text`);
  expect(rows).toEqual([[true]]);
});

test("a statement with an invalid path changes no row", async () => {
  await using engine = await TestEngine.open();
  await engine.ask("CREATE TABLE t (id INT PRIMARY KEY, path JSONPATH)");
  await engine.ask("INSERT INTO t VALUES (1, '$.a')");
  expect(await refusal(engine, "INSERT INTO t VALUES (2, '$.b'), (3, '$ +')")).toBe(
    'INVALID_SQL: Cannot read "$ +" as jsonpath: it ends too early',
  );
  expect(await refusal(engine, "UPDATE t SET path = '@'")).toStartWith("INVALID_SQL");
  const rows = await engine.rows("SELECT id, path FROM t");
  expect(rows).toEqual([[1, '$."a"']]);
});
