/**
 * Tests FILE('part') in INSERT, UPDATE and upserts: it takes effect completely or not at all, both
 * on disk and in the file list.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE TABLE doc (id INT PRIMARY KEY, n INT CHECK (n < 10), f FILE, g FILE); CREATE TABLE plain (id INT PRIMARY KEY, j JSON)",
  );
  await engine.run("INSERT INTO doc VALUES (1, 1, FILE('a'), NULL)", parts("a"));
});
afterAll(() => engine[Symbol.asyncDispose]());

function parts(...names: readonly string[]): RequestParts {
  const file = (name: string): { name: string; mime: string; bytes: Uint8Array } => ({
    name: `${name}.txt`,
    mime: "text/plain",
    bytes: new TextEncoder().encode(`bytes of ${name}`),
  });
  return { files: new Map(names.map((name) => [name, file(name)])) };
}

const REFUSED: readonly (readonly [string, readonly string[], string])[] = [
  ["INSERT INTO doc VALUES (2, 1, FILE('a'), FILE('b'))", ["a"], "MISSING_FILE@1"],
  ["INSERT INTO doc VALUES (2, 1, FILE('a'), NULL)", ["a", "b"], "EXTRA_FILE@1"],
  ["SELECT 1", ["a"], "EXTRA_FILE@1"],
  ["INSERT INTO doc VALUES (1, 1, FILE('a'), NULL)", ["a"], "DUPLICATE_KEY@1"],
  [
    "INSERT INTO doc VALUES (2, 1, FILE('a'), NULL), (3, 99, NULL, NULL)",
    ["a"],
    "CHECK_VIOLATION@1",
  ],
  ["UPDATE doc SET f = FILE('a'), n = 99 WHERE id = 1", ["a"], "CHECK_VIOLATION@1"],
  ["UPDATE doc SET f = FILE('a') WHERE id = 1 RETURNING 1 / (id - 1)", ["a"], "DIVISION_BY_ZERO@1"],
  [
    "INSERT INTO doc VALUES (1, 1, NULL, NULL) ON CONFLICT (id) DO UPDATE SET f = FILE('a'), n = 99",
    ["a"],
    "CHECK_VIOLATION@1",
  ],
  ["INSERT INTO plain VALUES (1, FILE('a'))", ["a"], "TYPE_MISMATCH@1"],
  ["SELECT FILE('a')", ["a"], "INVALID_"],
  ["DELETE FROM doc WHERE f = FILE('a')", ["a"], "INVALID_"],
  ["INSERT INTO doc VALUES (2, 1, FILE('a'), NULL); SELECT 1", ["a"], "INVALID_INPUT@1"],
  ["INSERT INTO nope VALUES (FILE('a'))", ["a"], "TABLE_NOT_FOUND@1"],
];

describe("an upload that fails leaves nothing behind", () => {
  test.each(REFUSED)("the failed upload leaves nothing behind: %s", async (sql, names, failure) => {
    const before = [
      engine.storedFiles(),
      engine.database.catalog.files.all(),
      await engine.rows("SELECT * FROM doc"),
    ];
    expect(await engine.failure(sql, parts(...names))).toStartWith(failure);
    expect([
      engine.storedFiles(),
      engine.database.catalog.files.all(),
      await engine.rows("SELECT * FROM doc"),
    ]).toEqual(before);
  });
});

test("FILE without a multipart request is refused, and text never becomes a file", async () => {
  expect(await engine.failure("INSERT INTO doc VALUES (2, 1, FILE('a'), NULL)")).toBe(
    "INVALID_INPUT@1",
  );
  for (const forged of [`'{"id":"1"}'`, "'x'::file", "'{}'::jsonb"]) {
    expect(await engine.failure(`INSERT INTO doc VALUES (2, 1, ${forged}, NULL)`)).toMatch(
      /^(INVALID_VALUE|TYPE_MISMATCH)@1/,
    );
  }
});

test("an update that matches no row, and an upsert that touches none, keep no file", async () => {
  const before = engine.storedFiles();
  await engine.run("UPDATE doc SET f = FILE('a') WHERE id = 77", parts("a"));
  await engine.run(
    "INSERT INTO doc VALUES (1, 1, FILE('a'), NULL) ON CONFLICT DO NOTHING",
    parts("a"),
  );
  expect(engine.storedFiles()).toEqual(before);
});

test("JSON operators read the properties of an uploaded file", async () => {
  await engine.run("INSERT INTO doc VALUES (5, 1, FILE('x'), FILE('y'))", parts("x", "y"));
  const rows = await engine.rows(
    "SELECT f ->> 'name', g ->> 'mime', (g ->> 'size')::int FROM doc WHERE id = 5",
  );
  expect(rows).toEqual([["x.txt", "text/plain", 10]]);
});

test("a damaged entry in the file list does not affect uploads or owners of other files", async () => {
  await using other = await TestEngine.open();
  await other.run(
    "CREATE TABLE doc (id INT PRIMARY KEY, f FILE); CREATE TABLE gone (id INT PRIMARY KEY)",
  );
  await other.run("CREATE USER ann INTERNAL ROLE service");
  await other.run("INSERT INTO doc VALUES (1, FILE('a'))", parts("a"));
  await other.database.close();
  const catalog = new Database(join(other.dataPath, "catalog.sqlite"), { readwrite: true });
  catalog.run("UPDATE files SET checksum = checksum + 1");
  catalog.close();
  await other.reopen();

  await other.run("INSERT INTO doc VALUES (2, FILE('b'))", parts("b"));
  await other.run("DROP TABLE gone");
  other.userId = "ann";
  await other.run("CREATE USER TABLE mine (id INT PRIMARY KEY, f FILE)");
  await other.run("INSERT INTO mine VALUES (1, FILE('c'))", parts("c"));
  expect(await other.rows("SELECT name, table_name FROM system.my_files")).toEqual([
    ["c.txt", "mine"],
  ]);
});
