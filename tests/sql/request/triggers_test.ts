/**
 * Tests triggers: the single commit of a statement and its triggers, failures, transactions,
 * savepoints, conflicts, policies, USER tables, definitions and restarts. `cases/triggers.slt` has
 * PostgreSQL's results for each timing, event, level and outcome.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user;" +
      "CREATE USER bob INTERNAL ROLE user;" +
      "CREATE TABLE app.t (id INT PRIMARY KEY, v INT);" +
      "CREATE TABLE app.log (id INT PRIMARY KEY, was INT, is_now INT);" +
      "CREATE TABLE app.total (id INT PRIMARY KEY, n INT NOT NULL);",
  );
  await engine.run(
    "CREATE FUNCTION app.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
      "INSERT INTO app.log VALUES (COALESCE(NEW.id, OLD.id), OLD.v, NEW.v); RETURN NULL; END $$",
  );
  await engine.run(
    "CREATE FUNCTION app.count_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
      "UPDATE app.total SET n = n + 1 WHERE id = 1; RETURN NULL; END $$",
  );
  await engine.run(
    "CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON app.t FOR EACH ROW EXECUTE FUNCTION app.note();" +
      "CREATE TRIGGER counted AFTER INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.count_up()",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(async () => {
  engine.userId = "root";
  await engine.run(
    "ALTER TABLE app.t DISABLE TRIGGER ALL; DELETE FROM app.t WHERE true; DELETE FROM app.log WHERE true;" +
      "DELETE FROM app.total WHERE true; INSERT INTO app.total VALUES (1, 0); ALTER TABLE app.t ENABLE TRIGGER ALL",
  );
});

async function codeOf(sql: string): Promise<string | undefined> {
  return (await engine.ask(sql)).error?.code;
}

const log = (): Promise<unknown> => engine.rows("SELECT id, was, is_now FROM app.log ORDER BY id");
const rows = (): Promise<unknown> => engine.rows("SELECT id, v FROM app.t ORDER BY id");
const total = async (): Promise<unknown> => (await engine.rows("SELECT n FROM app.total"))[0]?.[0];

describe("a statement and its triggers are one change", () => {
  test("they share one commit", async () => {
    const before = engine.database.store.appliedSeq;
    await engine.run("INSERT INTO app.t VALUES (1, 10), (2, 20)");
    const seqs = await engine.rows(
      `SELECT _seq FROM app.t UNION ALL SELECT _seq FROM app.log UNION ALL SELECT _seq FROM app.total`,
    );
    expect(seqs.every(([seq]) => Number(seq) > before)).toBe(true);
    const times = new Set(seqs.map(([seq]) => engine.database.store.commitMs(Number(seq))));
    expect(times.size).toBe(1);
    expect(await total()).toBe(2);
    expect(await log()).toEqual([
      [1, null, 10],
      [2, null, 20],
    ]);
  });

  test("a trigger that fails undoes the statement", async () => {
    await engine.run("INSERT INTO app.log VALUES (2, 0, 0)");
    expect(await codeOf("INSERT INTO app.t VALUES (1, 10), (2, 20)")).toBe("DUPLICATE_KEY");
    expect(await rows()).toEqual([]);
    expect(await total()).toBe(0);
    expect(await log()).toEqual([[2, 0, 0]]);
  });

  test("statements that run at the same time count every row once", async () => {
    await Promise.all(
      Array.from({ length: 8 }, (_, i) => engine.run(`INSERT INTO app.t VALUES (${i}, ${i})`)),
    );
    expect(await total()).toBe(8);
    expect(((await log()) as unknown[]).length).toBe(8);
  });
});

describe("triggers in a transaction", () => {
  test("their changes are committed and rolled back with it", async () => {
    await engine.run("BEGIN; INSERT INTO app.t VALUES (1, 10); ROLLBACK");
    expect(await log()).toEqual([]);
    await engine.run(
      "BEGIN; INSERT INTO app.t VALUES (1, 10); UPDATE app.total SET n = n + 5; COMMIT",
    );
    expect(await total()).toBe(6);
  });

  test("ROLLBACK TO undoes the changes of triggers", async () => {
    await engine.run(
      "BEGIN; INSERT INTO app.t VALUES (1, 10); SAVEPOINT s; INSERT INTO app.t VALUES (2, 20);" +
        "ROLLBACK TO s; INSERT INTO app.t VALUES (3, 30); COMMIT",
    );
    expect(await rows()).toEqual([
      [1, 10],
      [3, 30],
    ]);
    expect(await total()).toBe(2);
  });

  test("a handler in a trigger undoes only what its block has changed", async () => {
    await engine.run(
      "CREATE TABLE app.tried (id INT PRIMARY KEY);" +
        "CREATE FUNCTION app.try_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        "BEGIN INSERT INTO app.tried VALUES (NEW.id); INSERT INTO app.tried VALUES (NEW.id); " +
        "EXCEPTION WHEN unique_violation THEN INSERT INTO app.tried VALUES (NEW.id + 100); END; " +
        "RETURN NULL; END $$;" +
        "CREATE TRIGGER tries AFTER INSERT ON app.t FOR EACH ROW EXECUTE FUNCTION app.try_twice()",
    );
    await engine.run("BEGIN; SAVEPOINT a; INSERT INTO app.t VALUES (1, 1), (2, 2); COMMIT");
    expect(await engine.rows("SELECT id FROM app.tried ORDER BY id")).toEqual([[101], [102]]);
    expect(await codeOf("DROP FUNCTION app.try_twice")).toBe("DEPENDENT_OBJECTS");
    await engine.run("DROP FUNCTION app.try_twice CASCADE");
    await engine.run("INSERT INTO app.t VALUES (3, 3)");
    expect(await engine.rows("SELECT count(*) FROM app.tried")).toEqual([[2]]);
  });

  test("a constraint trigger runs at COMMIT, or when SET CONSTRAINTS says so", async () => {
    await engine.run(
      "CREATE TABLE app.late (id INT PRIMARY KEY, ok BOOLEAN);" +
        "CREATE FUNCTION app.must_be_ok() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        "IF NOT (SELECT ok FROM app.late WHERE id = NEW.id) THEN RAISE EXCEPTION 'not ok'; END IF; RETURN NULL; END $$;" +
        "CREATE CONSTRAINT TRIGGER late_ok AFTER INSERT ON app.late DEFERRABLE INITIALLY DEFERRED " +
        "FOR EACH ROW EXECUTE FUNCTION app.must_be_ok()",
    );
    await engine.run(
      "BEGIN; INSERT INTO app.late VALUES (1, false); UPDATE app.late SET ok = true; COMMIT",
    );
    const late = "BEGIN; INSERT INTO app.late VALUES (2, false); COMMIT";
    expect(await codeOf(late)).toBe("RAISE_EXCEPTION");
    const now =
      "BEGIN; INSERT INTO app.late VALUES (3, false); SET CONSTRAINTS late_ok IMMEDIATE; COMMIT";
    expect(await codeOf(now)).toBe("RAISE_EXCEPTION");
    await engine.run(
      "BEGIN; SAVEPOINT s; INSERT INTO app.late VALUES (4, false); ROLLBACK TO s; COMMIT",
    );
    expect(await engine.rows("SELECT id FROM app.late")).toEqual([[1]]);
  });
});

describe("a trigger runs with the rights of the user of the statement", () => {
  test("in a table of users, it sees the rows of that user", async () => {
    await engine.run(
      "CREATE USER TABLE app.own (id INT PRIMARY KEY, n INT);" +
        "CREATE FUNCTION app.number_own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        "NEW.n := (SELECT count(*) FROM app.own); RETURN NEW; END $$;" +
        "CREATE TRIGGER numbered BEFORE INSERT ON app.own FOR EACH ROW EXECUTE FUNCTION app.number_own()",
    );
    engine.userId = "ann";
    await engine.run("INSERT INTO app.own (id) VALUES (1), (2)");
    engine.userId = "bob";
    await engine.run("INSERT INTO app.own (id) VALUES (1)");
    expect(await engine.rows("SELECT id, n FROM app.own")).toEqual([[1, 0]]);
    engine.userId = "ann";
    expect(await engine.rows("SELECT id, n FROM app.own ORDER BY id")).toEqual([
      [1, 0],
      [2, 1],
    ]);
  });

  test("it cannot write a table that the user may not write", async () => {
    await engine.run(
      "CREATE TABLE app.secret (id INT PRIMARY KEY);" +
        "CREATE USER TABLE app.mine (id INT PRIMARY KEY);" +
        "CREATE FUNCTION app.write_secret() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        "INSERT INTO app.secret VALUES (NEW.id); RETURN NEW; END $$;" +
        "CREATE TRIGGER reveals AFTER INSERT ON app.mine FOR EACH ROW EXECUTE FUNCTION app.write_secret()",
    );
    engine.userId = "ann";
    expect(await codeOf("INSERT INTO app.mine VALUES (1)")).toBe("TABLE_NOT_FOUND");
    expect(await engine.rows("SELECT * FROM app.mine")).toEqual([]);
  });

  test("policies test the row that a BEFORE trigger has changed", async () => {
    await engine.run(
      "CREATE TABLE app.owned (id INT PRIMARY KEY, owner TEXT) WITH (OWNER_COLUMN = 'owner');" +
        "CREATE FUNCTION app.take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        "IF NEW.owner IS NULL THEN NEW.owner := current_user; ELSIF NEW.id < 0 THEN NEW.owner := 'bob'; END IF; RETURN NEW; END $$;" +
        "CREATE TRIGGER taken BEFORE INSERT ON app.owned FOR EACH ROW EXECUTE FUNCTION app.take()",
    );
    engine.userId = "ann";
    await engine.run("INSERT INTO app.owned (id) VALUES (1)");
    expect(await engine.rows("SELECT id, owner FROM app.owned")).toEqual([[1, "ann"]]);
    const other = "INSERT INTO app.owned VALUES (-1, 'ann')";
    expect(await codeOf(other)).toBe("PERMISSION_DENIED");
  });

  test("only a user who may alter the table may define its triggers", async () => {
    engine.userId = "ann";
    const define = "CREATE TRIGGER x AFTER INSERT ON app.t EXECUTE FUNCTION app.note()";
    expect(await codeOf(define)).toBe("PERMISSION_DENIED");
    expect(await codeOf("DROP TRIGGER noted ON app.t")).toBe("PERMISSION_DENIED");
  });
});

describe("definitions of triggers", () => {
  test("they survive a restart, and renamed tables, columns and functions", async () => {
    await engine.run(
      "CREATE TABLE app.kept (id INT PRIMARY KEY, v INT, w INT);" +
        "CREATE FUNCTION app.keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.w := 1; RETURN NEW; END $$;" +
        "CREATE TRIGGER keeps BEFORE UPDATE OF v ON app.kept FOR EACH ROW WHEN (new.v > old.v) EXECUTE FUNCTION app.keep();" +
        "INSERT INTO app.kept VALUES (1, 1, 0), (2, 2, 0);" +
        "ALTER TABLE app.kept RENAME TO kept2; ALTER TABLE app.kept2 RENAME COLUMN v TO value; ALTER FUNCTION app.keep RENAME TO keep2",
    );
    await engine.restart();
    await engine.run("UPDATE app.kept2 SET value = value + CASE id WHEN 1 THEN 1 ELSE -1 END");
    expect(await engine.rows("SELECT id, value, w FROM app.kept2 ORDER BY id")).toEqual([
      [1, 2, 1],
      [2, 1, 0],
    ]);
    expect(await codeOf("ALTER TABLE app.kept2 DROP COLUMN value")).toBe("DEPENDENT_OBJECTS");
    await engine.run("ALTER TABLE app.kept2 DROP COLUMN value CASCADE");
    expect(
      await engine.rows(
        "SELECT trigger_name FROM information_schema.triggers WHERE event_object_table = 'kept2'",
      ),
    ).toEqual([]);
    await engine.run("DROP FUNCTION app.keep2");
  });

  test("a plan that is known fires the triggers that exist when it runs", async () => {
    await engine.run("INSERT INTO app.t VALUES (1, 1)");
    await engine.run("DROP TRIGGER noted ON app.t");
    await engine.run("INSERT INTO app.t VALUES (2, 1)");
    await engine.run(
      "CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON app.t FOR EACH ROW EXECUTE FUNCTION app.note()",
    );
    await engine.run("INSERT INTO app.t VALUES (3, 1)");
    expect(await log()).toEqual([
      [1, null, 1],
      [3, null, 1],
    ]);
  });

  test("a trigger on a STREAM table is refused", async () => {
    await engine.run("CREATE STREAM TABLE app.stream (id INT PRIMARY KEY) WITH (TTL_SECONDS = 60)");
    const define = "CREATE TRIGGER x AFTER INSERT ON app.stream EXECUTE FUNCTION app.note()";
    expect(await codeOf(define)).toBe("UNSUPPORTED_FEATURE");
  });

  test("triggers that fire each other without end are refused", async () => {
    await engine.run(
      "CREATE TABLE app.endless (id INT PRIMARY KEY);" +
        "CREATE FUNCTION app.again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
        "INSERT INTO app.endless VALUES (NEW.id + 1); RETURN NULL; END $$;" +
        "CREATE TRIGGER again AFTER INSERT ON app.endless FOR EACH ROW EXECUTE FUNCTION app.again()",
    );
    expect(await codeOf("INSERT INTO app.endless VALUES (1)")).toBe("LIMIT_EXCEEDED");
    expect(await engine.rows("SELECT * FROM app.endless")).toEqual([]);
  });
});

describe("actions of foreign keys", () => {
  test("a row that a trigger skips makes the statement fail", async () => {
    await engine.run(
      "CREATE TABLE app.parent (id INT PRIMARY KEY);" +
        "CREATE TABLE app.child (id INT PRIMARY KEY, p INT REFERENCES app.parent ON DELETE CASCADE);" +
        "CREATE FUNCTION app.keep_child() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;" +
        "CREATE TRIGGER keeps BEFORE DELETE ON app.child FOR EACH ROW EXECUTE FUNCTION app.keep_child();" +
        "INSERT INTO app.parent VALUES (1); INSERT INTO app.child VALUES (1, 1)",
    );
    expect(await codeOf("DELETE FROM app.parent WHERE id = 1")).toBe("FOREIGN_KEY_VIOLATION");
    expect(await engine.rows("SELECT id, p FROM app.child")).toEqual([[1, 1]]);
  });
});
