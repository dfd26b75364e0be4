/**
 * Tests statements that change the primary keys of rows: in transactions, with concurrent writers,
 * in live queries, and in USER tables. `cases/key_changes.slt` has PostgreSQL's results.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER bob INTERNAL ROLE user;" +
      "CREATE TABLE app.p (id INT PRIMARY KEY, v TEXT UNIQUE);" +
      "CREATE TABLE app.c (id INT PRIMARY KEY, p INT REFERENCES app.p ON UPDATE CASCADE);" +
      "CREATE TABLE app.later (id INT PRIMARY KEY, p INT CONSTRAINT later_p REFERENCES app.p DEFERRABLE INITIALLY DEFERRED);" +
      "CREATE USER TABLE app.own (id INT PRIMARY KEY, v INT)",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(async () => {
  engine.userId = "root";
  await engine.run(
    "DELETE FROM app.c WHERE true; DELETE FROM app.later WHERE true; DELETE FROM app.p WHERE true;" +
      "INSERT INTO app.p VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO app.c VALUES (1, 1), (2, 2)",
  );
});

const parents = (): Promise<unknown> => engine.rows("SELECT id, v FROM app.p ORDER BY id");
const children = (): Promise<unknown> => engine.rows("SELECT id, p FROM app.c ORDER BY id");

describe("rows exchange and shift their keys in one statement", () => {
  test.each([
    [
      "UPDATE app.p SET id = 3 - id WHERE id < 3",
      [
        [1, "b"],
        [2, "a"],
        [3, "c"],
      ],
      [
        [1, 2],
        [2, 1],
      ],
    ],
    [
      "UPDATE app.p SET id = id + 1",
      [
        [2, "a"],
        [3, "b"],
        [4, "c"],
      ],
      [
        [1, 2],
        [2, 3],
      ],
    ],
    [
      "UPDATE app.p SET id = id % 3 + 1",
      [
        [1, "c"],
        [2, "a"],
        [3, "b"],
      ],
      [
        [1, 2],
        [2, 3],
      ],
    ],
  ])("%s", async (sql, expectedParents, expectedChildren) => {
    await engine.run(sql);
    expect(await parents()).toEqual(expectedParents);
    expect(await children()).toEqual(expectedChildren);
  });

  test("many rows that take each other's keys", async () => {
    await engine.run(
      "CREATE TABLE app.many (id INT PRIMARY KEY, v INT);" +
        "INSERT INTO app.many SELECT n, n FROM generate_series(1, 5000) AS g (n)",
    );
    const [changed] = await engine.run("UPDATE app.many SET id = id + 1");
    expect(changed?.rowCount).toBe(5000);
    expect(
      await engine.rows("SELECT count(*), min(id), max(id), sum(id - v) FROM app.many"),
    ).toEqual([[5000, 2, 5001, 5000]]);
    await engine.run("DROP TABLE app.many");
  });
});

test("a key that another row has is refused, and nothing changes", async () => {
  const { error } = await engine.ask("UPDATE app.p SET id = 3 WHERE id < 3");
  expect(error?.code).toBe("DUPLICATE_KEY");
  expect(error?.message).toContain("Cannot update app.p: key (id) = (3) already exists");
  expect(await parents()).toEqual([
    [1, "a"],
    [2, "b"],
    [3, "c"],
  ]);
});

describe("in a transaction, a row may move several times", () => {
  test.each([
    [
      "UPDATE app.p SET id = 7 WHERE id = 3; UPDATE app.p SET id = 3 WHERE id = 7",
      [
        [1, "a"],
        [2, "b"],
        [3, "c"],
      ],
    ],
    [
      "UPDATE app.p SET id = 7 WHERE id = 3; UPDATE app.p SET id = 8 WHERE id = 7",
      [
        [1, "a"],
        [2, "b"],
        [8, "c"],
      ],
    ],
    [
      "UPDATE app.p SET id = 7 WHERE id = 3; INSERT INTO app.p VALUES (3, 'new')",
      [
        [1, "a"],
        [2, "b"],
        [3, "new"],
        [7, "c"],
      ],
    ],
    [
      "UPDATE app.p SET id = 7 WHERE id = 3; DELETE FROM app.p WHERE id = 7",
      [
        [1, "a"],
        [2, "b"],
      ],
    ],
    [
      "DELETE FROM app.p WHERE id = 3; INSERT INTO app.p VALUES (9, 'n'); UPDATE app.p SET id = 3 WHERE id = 9",
      [
        [1, "a"],
        [2, "b"],
        [3, "n"],
      ],
    ],
    [
      "SAVEPOINT s; UPDATE app.p SET id = 7 WHERE id = 3; ROLLBACK TO s; UPDATE app.p SET v = 'z' WHERE id = 3",
      [
        [1, "a"],
        [2, "b"],
        [3, "z"],
      ],
    ],
  ])("%s", async (sql, expected) => {
    await engine.run(`BEGIN; ${sql}; COMMIT`);
    expect(await parents()).toEqual(expected);
  });

  test("ROLLBACK returns rows and references to their keys", async () => {
    await engine.run("BEGIN; UPDATE app.p SET id = id + 10; ROLLBACK");
    expect(await parents()).toEqual([
      [1, "a"],
      [2, "b"],
      [3, "c"],
    ]);
    expect(await children()).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });
});

test("a deferred reference of a moved row is checked at the COMMIT", async () => {
  const insert = "BEGIN; INSERT INTO app.later VALUES (0, 20); UPDATE app.later SET id = id + 1";
  expect(await engine.failure(`${insert}; COMMIT`)).toStartWith("FOREIGN_KEY_VIOLATION");
  await engine.run(`${insert}; INSERT INTO app.p VALUES (20, 'd'); COMMIT`);
  expect(await engine.rows("SELECT id, p FROM app.later")).toEqual([[1, 20]]);
});

test("ALTER CONSTRAINT changes when a foreign key is checked", async () => {
  const insert = "BEGIN; INSERT INTO app.later VALUES (5, 21)";
  const parent = "INSERT INTO app.p VALUES (21, 'e'); COMMIT";
  await engine.run("ALTER TABLE app.later ALTER CONSTRAINT later_p NOT DEFERRABLE");
  expect(await engine.failure(`${insert}; ${parent}`)).toStartWith("FOREIGN_KEY_VIOLATION@2");
  await engine.run("ALTER TABLE app.later ALTER CONSTRAINT later_p DEFERRABLE");
  expect(await engine.failure(`${insert}; ${parent}`)).toStartWith("FOREIGN_KEY_VIOLATION@2");
  await engine.run(`BEGIN; SET CONSTRAINTS later_p DEFERRED; ${insert.slice(7)}; ROLLBACK`);
  await engine.run("ALTER TABLE app.later ALTER CONSTRAINT later_p INITIALLY DEFERRED");
  await engine.run(`${insert}; ${parent}`);
  expect(await engine.failure("ALTER TABLE app.later ALTER CONSTRAINT x DEFERRABLE")).toStartWith(
    "OBJECT_NOT_FOUND",
  );
});

test("two owners may have the same key, and each moves only their own rows", async () => {
  for (const userId of ["ann", "bob"]) {
    engine.userId = userId;
    await engine.run("INSERT INTO app.own VALUES (1, 1), (2, 2)");
  }
  await engine.run("UPDATE app.own SET id = id + 1");
  expect(await engine.rows("SELECT id, v FROM app.own ORDER BY id")).toEqual([
    [2, 1],
    [3, 2],
  ]);
  engine.userId = "ann";
  expect(await engine.rows("SELECT id, v FROM app.own ORDER BY id")).toEqual([
    [1, 1],
    [2, 2],
  ]);
});

test("the history of the table has the deletion of the former key, and the insertion of the new one", async () => {
  const [before] = await engine.rows("SELECT max(_seq) FROM app.p");
  await engine.run("UPDATE app.p SET id = 30 WHERE id = 3");
  expect(
    await engine.rows(
      `SELECT op, key->>'id' FROM changes('app.p', ${String(before?.[0])}) ORDER BY op`,
    ),
  ).toEqual([
    ["delete", "3"],
    ["insert", "30"],
  ]);
});

test("the key of a row with files does not change", async () => {
  await engine.run("CREATE TABLE app.docs (id INT PRIMARY KEY, v INT, body FILE)");
  expect(await engine.failure("UPDATE app.docs SET id = 2")).toStartWith("INVALID_OPERATION");
  await engine.run("UPDATE app.docs SET id = id, v = 3; DROP TABLE app.docs");
});
