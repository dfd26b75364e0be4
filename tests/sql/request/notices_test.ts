/**
 * Tests which results contain the notices that programs raise while a statement runs: triggers of a
 * plain change, functions that a query calls for each row, and triggers deferred to the commit.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({});
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v TEXT); CREATE TABLE plain (id INT PRIMARY KEY);" +
      "CREATE TABLE child (id INT PRIMARY KEY, t INT REFERENCES t ON DELETE CASCADE);" +
      "CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
      "RAISE NOTICE '% % %', TG_NAME, TG_OP, COALESCE(NEW.id, OLD.id); RETURN COALESCE(NEW, OLD); END $$;" +
      "CREATE TRIGGER early BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION told();" +
      "CREATE TRIGGER gone AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION told();" +
      "CREATE CONSTRAINT TRIGGER late AFTER DELETE ON t DEFERRABLE INITIALLY DEFERRED " +
      "FOR EACH ROW EXECUTE FUNCTION told();" +
      "CREATE FUNCTION f(i INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'f %', i; RETURN i; END $$",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  await engine.run("DELETE FROM child; DELETE FROM t; INSERT INTO t VALUES (1, 'a'), (2, 'b')");
});

async function notices(sql: string): Promise<unknown> {
  return (await engine.run(sql)).map(({ notices: raised }) => raised);
}

test("a change returns the notices of its triggers, once per row", async () => {
  expect(await notices("INSERT INTO t VALUES (3, 'c')")).toEqual([["NOTICE: early INSERT 3"]]);
  expect(await notices("INSERT INTO t VALUES (4, 'd') RETURNING id")).toEqual([
    ["NOTICE: early INSERT 4"],
  ]);
  expect(await notices("UPDATE t SET v = 'x' WHERE id < 3")).toEqual([
    ["NOTICE: early UPDATE 1", "NOTICE: early UPDATE 2"],
  ]);
  const merge =
    "MERGE INTO t USING (SELECT 9 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (9, '')";
  expect(await notices(merge)).toEqual([["NOTICE: early INSERT 9"]]);
  expect(await notices("INSERT INTO plain VALUES (1)")).toEqual([undefined]);
});

test("each statement of a request has its own notices", async () => {
  expect(
    await notices(
      "BEGIN; INSERT INTO t VALUES (5, ''); SELECT 1; UPDATE t SET v = '' WHERE id = 5; COMMIT",
    ),
  ).toEqual([
    undefined,
    ["NOTICE: early INSERT 5"],
    undefined,
    ["NOTICE: early UPDATE 5"],
    undefined,
  ]);
});

test("the actions of foreign keys, and triggers deferred to the commit, raise notices, too", async () => {
  await engine.run("INSERT INTO child VALUES (10, 1)");
  expect(await notices("DELETE FROM t WHERE id = 1")).toEqual([
    ["NOTICE: gone DELETE 10", "NOTICE: late DELETE 1"],
  ]);
  expect(await notices("BEGIN; DELETE FROM t WHERE id = 2; COMMIT")).toEqual([
    undefined,
    undefined,
    ["NOTICE: late DELETE 2"],
  ]);
  await engine.run("INSERT INTO t VALUES (2, '')");
  expect(
    await notices("BEGIN; DELETE FROM t WHERE id = 2; SET CONSTRAINTS ALL IMMEDIATE; COMMIT"),
  ).toEqual([undefined, undefined, ["NOTICE: late DELETE 2"], undefined]);
});

test("a query returns the notices of a function that it calls for each row", async () => {
  expect(await notices("SELECT f(id) FROM t ORDER BY id")).toEqual([
    ["WARNING: f 1", "WARNING: f 2"],
  ]);
  expect(await notices("INSERT INTO plain SELECT 100 + f(id) FROM t WHERE id = 2")).toEqual([
    ["WARNING: f 2"],
  ]);
});

test("at most a hundred notices are returned, and the others are counted", async () => {
  const [raised] = (await notices(
    "INSERT INTO t SELECT i, '' FROM generate_series(1001, 1120) i",
  )) as string[][];
  expect(raised).toHaveLength(101);
  expect(raised?.at(-1)).toBe("20 more notice(s)");
});
