/**
 * Tests queries that read a single row by its key under further conditions. Such queries use no
 * operators, but must find the same rows as operators would. The tests compare each query with one
 * whose key the planner does not recognise.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../../support/sql_engine.ts";
import { shareOf } from "../../../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; " +
      "CREATE TABLE app.rows (id INT PRIMARY KEY, room INT, author TEXT, body TEXT); " +
      "CREATE TABLE app.members (room INT, name TEXT, rank INT, PRIMARY KEY (room, name)); " +
      "INSERT INTO app.rows VALUES (1, 1, 'root', 'a'), (2, 2, 'ann', 'b'), (3, NULL, NULL, NULL), (4, 4, 'ann', '7'); " +
      "STORAGE FLUSH TABLE app.rows; " +
      "INSERT INTO app.members VALUES (1, 'root', 1), (2, 'ann', 2), (4, 'root', NULL); " +
      "DELETE FROM app.rows WHERE id = 4; INSERT INTO app.rows VALUES (5, 1, 'ann', 'e')",
  );
});

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
});

const OF_MEMBER = "SELECT 1 FROM app.members m WHERE m.room = rows.room AND m.name";

const CONDITIONS: readonly string[] = [
  "room = 1",
  "room > 1 AND author = 'ann'",
  "room = 1 OR author = 'ann'",
  "NOT (room = 1)",
  "author = CURRENT_USER()",
  "author IS NULL",
  "length(body) = 1",
  "body::int = 7",
  "1 / (room - 1) = 1",
  "_deleted = true",
  `EXISTS (${OF_MEMBER} = 'root')`,
  `EXISTS (${OF_MEMBER} = CURRENT_USER())`,
  `EXISTS (${OF_MEMBER} = rows.author)`,
  `EXISTS (${OF_MEMBER} = lower(rows.author) AND m.rank > 1)`,
  `NOT EXISTS (${OF_MEMBER} = 'root')`,
  `author = 'ann' OR EXISTS (${OF_MEMBER} = 'root')`,
  `author = 'ann' AND (room = 7 OR NOT EXISTS (${OF_MEMBER} = 'root'))`,
  `EXISTS (${OF_MEMBER} = 'root') AND EXISTS (${OF_MEMBER} = 'ann')`,
  `EXISTS (${OF_MEMBER} = 'root' AND EXISTS (SELECT 1 FROM app.rows r WHERE r.id = m.room))`,
  "EXISTS (SELECT 1 FROM app.members m WHERE m.room = rows.room)",
  "room IN (SELECT m.room FROM app.members m WHERE m.name = 'root')",
  "(SELECT m.rank FROM app.members m WHERE m.room = rows.room AND m.name = 'root') = 1",
  "random() < 2",
];

/** Statements that run before the query in the same transaction. */
const BEFORE: readonly string[] = [
  "",
  "UPDATE app.rows SET room = 2, author = 'root' WHERE id = 1; ",
  "DELETE FROM app.rows WHERE id = 2; INSERT INTO app.rows VALUES (4, 1, 'ann', 'n'); ",
  "DELETE FROM app.members WHERE room = 1; INSERT INTO app.members VALUES (2, 'root', 5); ",
];

test.each(shareOf(CONDITIONS, { oneOf: 4 }))(
  "WHERE id = … AND %s finds the same rows by key as by a scan",
  async (condition) => {
    for (const before of BEFORE) {
      for (let id = 0; id < 6; id += 1) {
        const found: unknown[] = [];
        for (const key of [`id = ${id}`, `id + 0 = ${id}`]) {
          const sql = `SELECT body, id FROM app.rows WHERE ${key} AND (${condition})`;
          const { error, results } = await engine.ask(`BEGIN; ${before}${sql}; ROLLBACK`);
          found.push({ code: error?.code, rows: results.flatMap(({ rows = [] }) => rows) });
        }
        expect(found[0], `${before}${id}`).toEqual(found[1]);
      }
    }
  },
);

test.each(shareOf(CONDITIONS, { oneOf: 4 }))(
  "without a transaction, a read by key and a scan find the same rows: %s",
  async (condition) => {
    for (let id = 0; id < 6; id += 1) {
      const found: unknown[] = [];
      for (const key of [`id = ${id}`, `id + 0 = ${id}`]) {
        const sql = `SELECT body, id FROM app.rows WHERE ${key} AND (${condition})`;
        const { error, results } = await engine.ask(sql);
        found.push({ code: error?.code, rows: results.flatMap(({ rows = [] }) => rows) });
      }
      expect(found[0], String(id)).toEqual(found[1]);
    }
  },
);

test("a condition that is the same for all rows comes before a key that may fail", async () => {
  for (const condition of ["$1 <> 0 AND id = 10 / $1", "id = 10 / $1 AND $1 <> 0"]) {
    const sql = `SELECT id FROM app.rows WHERE ${condition}`;
    expect(await engine.rows(sql, { params: [0] })).toEqual([]);
    expect(await engine.rows(sql, { params: [5] })).toEqual([[2]]);
  }
});

test("the error of a condition that is the same for all rows is raised only for a row", async () => {
  const sql = "SELECT id FROM app.rows WHERE id = $2 AND 10 / $1 > 1";
  expect(await engine.rows(sql, { params: [0, 99] })).toEqual([]);
  const { error } = await engine.ask(sql, { params: [0, 2] });
  expect(error?.code).toBe("DIVISION_BY_ZERO");
});
