/**
 * Tests INSTEAD OF triggers of views: the single commit of a statement and its triggers, failures,
 * transactions, the rights and rows of each user, definitions and restarts. `cases/views.slt` has
 * PostgreSQL's results for each event.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`
    CREATE NAMESPACE app;
    CREATE USER ann INTERNAL ROLE user; CREATE USER bob INTERNAL ROLE user;
    CREATE TABLE app.t (id INT PRIMARY KEY, v INT CHECK (v < 100));
    CREATE TABLE app.log (id INT PRIMARY KEY, said TEXT);
    CREATE VIEW app.doubled AS SELECT id, v * 2 AS twice FROM app.t;
    CREATE USER TABLE app.notes (id INT PRIMARY KEY, body TEXT);
    CREATE VIEW app.words AS SELECT id, upper(body) AS word FROM app.notes`);
  await engine.run(`CREATE FUNCTION app.halve() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN DELETE FROM app.t WHERE id = OLD.id; RETURN OLD; END IF;
    INSERT INTO app.t VALUES (NEW.id, NEW.twice / 2)
      ON CONFLICT (id) DO UPDATE SET v = excluded.v;
    INSERT INTO app.log VALUES (NEW.id, 'wrote') ON CONFLICT DO NOTHING;
    RETURN NEW; END $$`);
  await engine.run(`CREATE FUNCTION app.write_word() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO app.notes VALUES (NEW.id, lower(NEW.word)); RETURN NEW; END $$`);
  await engine.run(`
    CREATE TRIGGER halved INSTEAD OF INSERT OR UPDATE OR DELETE ON app.doubled
      FOR EACH ROW EXECUTE FUNCTION app.halve();
    CREATE TRIGGER written INSTEAD OF INSERT ON app.words
      FOR EACH ROW EXECUTE FUNCTION app.write_word()`);
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(async () => {
  engine.userId = "root";
  await engine.run("DELETE FROM app.t WHERE true; DELETE FROM app.log WHERE true");
});

const rows = (): Promise<unknown> => engine.rows("SELECT id, v FROM app.t ORDER BY id");

test("a statement and its INSTEAD OF triggers share one commit", async () => {
  const before = engine.database.store.appliedSeq;
  const [result] = await engine.run("INSERT INTO app.doubled VALUES (1, 10), (2, 20)");
  expect(result?.rowCount).toBe(2);
  const seqs = await engine.rows("SELECT _seq FROM app.t UNION ALL SELECT _seq FROM app.log");
  expect(seqs).toHaveLength(4);
  expect(seqs.every(([seq]) => Number(seq) > before)).toBe(true);
  const times = seqs.map(([seq]) => engine.database.store.commitMs(Number(seq)));
  expect(new Set(times).size).toBe(1);
});

test("if a trigger fails, nothing is changed", async () => {
  const sql = "INSERT INTO app.doubled VALUES (1, 10), (2, 2000)";
  expect(await engine.failure(sql)).toStartWith("CHECK_VIOLATION");
  expect(await rows()).toEqual([]);
  expect(await engine.rows("SELECT id FROM app.log")).toEqual([]);
});

test("a transaction sees the changes of triggers, and can undo them", async () => {
  const results = await engine.run(`BEGIN;
    INSERT INTO app.doubled VALUES (1, 10);
    SAVEPOINT s; DELETE FROM app.doubled WHERE twice = 10; ROLLBACK TO s;
    SELECT twice FROM app.doubled; ROLLBACK`);
  expect(results.find((each) => each.rows?.length === 1)?.rows).toEqual([[10]]);
  expect(await rows()).toEqual([]);
  const readOnly = "BEGIN READ ONLY; INSERT INTO app.doubled VALUES (1, 10)";
  expect(await engine.failure(readOnly)).toStartWith("INVALID_OPERATION");
});

test("triggers read and write the rows of the user who runs the statement", async () => {
  engine.userId = "ann";
  await engine.run("INSERT INTO app.words VALUES (1, 'HERS')");
  engine.userId = "bob";
  await engine.run("INSERT INTO app.words VALUES (1, 'HIS')");
  expect(await engine.rows("SELECT id, word FROM app.words")).toEqual([[1, "HIS"]]);
  expect(await engine.rows("SELECT id, body FROM app.notes")).toEqual([[1, "his"]]);
});

test("a user who may not read the view cannot write to it", async () => {
  engine.userId = "ann";
  const failure = await engine.failure("INSERT INTO app.doubled VALUES (1, 10)");
  expect(failure).toStartWith("TABLE_NOT_FOUND");
  engine.userId = "root";
  expect(await rows()).toEqual([]);
});

test("a trigger does not have the rights of the owner of its view", async () => {
  await engine.run(
    "CREATE VIEW app.open WITH (SECURITY_INVOKER = false, ACCESS_LEVEL = public)" +
      " AS SELECT id, v * 2 AS twice FROM app.t;" +
      "CREATE TRIGGER halved INSTEAD OF INSERT OR UPDATE OR DELETE ON app.open" +
      " FOR EACH ROW EXECUTE FUNCTION app.halve()",
  );
  await engine.run("INSERT INTO app.open VALUES (1, 10)");
  engine.userId = "ann";
  expect(await engine.rows("SELECT id, twice FROM app.open")).toEqual([[1, 10]]);
  expect((await engine.ask("UPDATE app.open SET twice = 2")).error?.code).toBe("TABLE_NOT_FOUND");
  engine.userId = "root";
  expect(await rows()).toEqual([[1, 5]]);
  await engine.run("DROP VIEW app.open");
});

test("only a user who may alter the view may define its triggers", async () => {
  engine.userId = "ann";
  const sql =
    "CREATE TRIGGER mine INSTEAD OF UPDATE ON app.words FOR EACH ROW EXECUTE FUNCTION app.halve()";
  expect(await engine.failure(sql)).toStartWith("PERMISSION_DENIED");
  expect(await engine.failure("DROP TRIGGER written ON app.words")).toStartWith(
    "PERMISSION_DENIED",
  );
});

test("COPY, and WITH that only reads, can be used with a view that has triggers", async () => {
  await engine.run(
    "WITH s AS (SELECT 3 AS id) INSERT INTO app.doubled SELECT id, 30 FROM s RETURNING id",
  );
  expect(await rows()).toEqual([[3, 15]]);
  const changing =
    "WITH i AS (INSERT INTO app.doubled VALUES (4, 8) RETURNING id) SELECT id FROM i";
  expect(await engine.failure(changing)).toStartWith("UNSUPPORTED_FEATURE");
  const parts = ["5\t10\n6\t12\n"].map((text) => new TextEncoder().encode(text));
  const body = { next: async () => parts.shift(), cancel: () => undefined };
  await engine.run("COPY app.doubled FROM STDIN", { copy: { body } });
  expect(await rows()).toEqual([
    [3, 15],
    [5, 5],
    [6, 6],
  ]);
  const merged = "MERGE INTO app.doubled d USING app.t ON d.id = t.id WHEN MATCHED THEN DELETE";
  expect(await engine.failure(merged)).toStartWith("READ_ONLY_OBJECT");
});

test("definitions in a transaction change the triggers of a view at its COMMIT", async () => {
  await engine.run(`BEGIN; CREATE VIEW app.later AS SELECT id, v AS twice FROM app.t LIMIT 9;
    CREATE TRIGGER halved INSTEAD OF INSERT ON app.later
      FOR EACH ROW EXECUTE FUNCTION app.halve();
    INSERT INTO app.later VALUES (7, 14); COMMIT`);
  expect(await rows()).toEqual([[7, 7]]);
  await engine.run("ALTER VIEW app.later RENAME TO last; INSERT INTO app.last VALUES (8, 16)");
  await engine.run("BEGIN; DROP TRIGGER halved ON app.last; ROLLBACK");
  await engine.run("INSERT INTO app.last VALUES (9, 18); DROP VIEW app.last");
  expect(await rows()).toEqual([
    [7, 7],
    [8, 8],
    [9, 9],
  ]);
});

test("the triggers of a view outlast a restart", async () => {
  await engine.restart();
  await engine.run("INSERT INTO app.doubled VALUES (1, 10); UPDATE app.doubled SET twice = 12");
  expect(await rows()).toEqual([[1, 6]]);
  const named = "SELECT trigger_name FROM information_schema.triggers ORDER BY 1";
  expect((await engine.rows(named)).flat()).toContain("written");
});
