/**
 * Tests RENAME of tables, constraints and indexes: references to the table remain valid, even
 * after a restart, and a refused rename changes nothing.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user");
});
afterAll(() => engine[Symbol.asyncDispose]());

test("rows, keys, checks, computed columns, indexes and sequences stay with a renamed table", async () => {
  await engine.run(
    "CREATE TABLE app.a (id SERIAL PRIMARY KEY, v INT UNIQUE CHECK (a.v > 0), " +
      "twice INT GENERATED ALWAYS AS (a.v * 2) STORED);" +
      "CREATE INDEX by_twice ON app.a (twice); INSERT INTO app.a (v) VALUES (10), (20)",
  );
  await engine.run("ALTER TABLE app.a RENAME TO b");
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await engine.failure("SELECT * FROM app.a")).toStartWith("TABLE_NOT_FOUND");
    expect(await engine.failure("INSERT INTO app.b (v) VALUES (0)")).toStartWith("CHECK_VIOLATION");
    expect(await engine.failure("INSERT INTO app.b (v) VALUES (10)")).toStartWith("DUPLICATE_KEY");
    expect(await engine.rows("SELECT id, v FROM app.b WHERE twice = 40")).toEqual([[2, 20]]);
  }
  expect(
    await engine.rows(
      "SELECT constraint_name FROM information_schema.table_constraints WHERE table_name = 'b' ORDER BY 1",
    ),
  ).toEqual([["a_pkey"], ["a_v_check"], ["a_v_key"]]);
  await engine.run("INSERT INTO app.b (v) VALUES (30)");
  expect(await engine.rows("SELECT id > 2, v, twice FROM app.b WHERE v = 30")).toEqual([
    [true, 30, 60],
  ]);
  await engine.run("CREATE TABLE app.a (id SERIAL PRIMARY KEY); INSERT INTO app.a DEFAULT VALUES");
  expect(await engine.rows("SELECT id FROM app.a")).toEqual([[1]]);
});

test("a foreign key follows both of its tables when they are renamed", async () => {
  await engine.run(
    "CREATE TABLE app.parents (id INT PRIMARY KEY);" +
      "CREATE TABLE app.children (id INT PRIMARY KEY, of INT REFERENCES app.parents ON DELETE CASCADE);" +
      "INSERT INTO app.parents VALUES (1); INSERT INTO app.children VALUES (1, 1);" +
      "ALTER TABLE app.parents RENAME TO elders; ALTER TABLE app.children RENAME TO kids",
  );
  expect(await engine.failure("INSERT INTO app.kids VALUES (2, 2)")).toStartWith(
    "FOREIGN_KEY_VIOLATION",
  );
  await engine.run("DELETE FROM app.elders WHERE id = 1");
  expect(await engine.rows("SELECT count(*) FROM app.kids")).toEqual([[0]]);
});

test("a view keeps reading the table that it named, even if another table takes the name", async () => {
  await engine.run(
    "CREATE TABLE app.notes (id INT PRIMARY KEY, n INT); INSERT INTO app.notes VALUES (1, 5);" +
      "CREATE VIEW app.seen AS SELECT notes.id, n FROM app.notes;" +
      "CREATE VIEW app.seen_twice AS SELECT seen.n FROM app.seen, app.notes AS x WHERE x.id = seen.id;" +
      "ALTER TABLE app.notes RENAME TO old_notes;" +
      "ALTER TABLE app.old_notes RENAME TO older_notes;" +
      "CREATE VIEW app.notes AS SELECT 77 AS id, 78 AS n",
  );
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await engine.rows("SELECT * FROM app.seen")).toEqual([[1, 5]]);
    expect(await engine.rows("SELECT n FROM app.seen_twice")).toEqual([[5]]);
    expect(await engine.failure("DROP TABLE app.older_notes")).toStartWith("DEPENDENT_OBJECTS");
  }
  await engine.run("DROP VIEW app.notes; CREATE TABLE app.notes (id INT PRIMARY KEY)");
  expect(await engine.rows("SELECT * FROM app.seen")).toEqual([[1, 5]]);
  await engine.run("ALTER TABLE app.older_notes DROP COLUMN n CASCADE");
  expect(await engine.failure("SELECT * FROM app.seen")).toStartWith("TABLE_NOT_FOUND");
});

test("two tables can exchange their names, within one text and with IF EXISTS", async () => {
  await engine.run(
    "CREATE TABLE app.x (id INT PRIMARY KEY); CREATE TABLE app.y (id INT PRIMARY KEY);" +
      "INSERT INTO app.x VALUES (1); INSERT INTO app.y VALUES (2);" +
      "CREATE VIEW app.both AS SELECT x.id AS x, y.id AS y FROM app.x, app.y;" +
      "ALTER TABLE IF EXISTS app.x RENAME TO z; ALTER TABLE app.y RENAME TO x;" +
      "ALTER TABLE app.z RENAME TO y; ALTER TABLE IF EXISTS app.nothing RENAME TO something",
  );
  expect(await engine.rows("SELECT x.id, y.id, x, y FROM app.x, app.y, app.both")).toEqual([
    [2, 1, 1, 2],
  ]);
});

test("the source of a topic keeps its condition when the table is renamed", async () => {
  await engine.run(
    "CREATE TABLE app.stock (id INT PRIMARY KEY, n INT); CREATE TOPIC app.low;" +
      "ALTER TOPIC app.low ADD SOURCE app.stock ON INSERT WHERE stock.n < 3;" +
      "ALTER TABLE app.stock RENAME TO goods",
  );
  const [source] = engine.database.catalog.topic("app", "low")?.sources ?? [];
  expect(source).toMatchObject({ where: "n < 3" });
  expect(source).not.toHaveProperty("toSeq");
  await engine.run("ALTER TABLE app.goods RENAME COLUMN n TO amount");
});

test("a new name that is taken, unchanged or invalid is refused", async () => {
  await engine.run(
    "CREATE TABLE app.here (id INT PRIMARY KEY); CREATE TABLE app.there (id SERIAL PRIMARY KEY);" +
      "CREATE VIEW app.shown AS SELECT 1 AS one; CREATE TOPIC app.topical",
  );
  for (const name of ["here", "there", "there_id_seq", "shown", "topical"]) {
    expect(await engine.failure(`ALTER TABLE app.here RENAME TO ${name}`)).toStartWith(
      "ALREADY_EXISTS",
    );
  }
  expect(await engine.failure('ALTER TABLE app.here RENAME TO "no name"')).toStartWith(
    "INVALID_NAME",
  );
  expect(await engine.failure("ALTER TABLE app.missing RENAME TO found")).toStartWith(
    "TABLE_NOT_FOUND",
  );
  engine.userId = "ann";
  const denied = await engine.failure("ALTER TABLE app.here RENAME TO found");
  engine.userId = "root";
  expect(denied).toStartWith("PERMISSION_DENIED");
  expect(await engine.rows("SELECT count(*) FROM app.here")).toEqual([[0]]);
});

test("a new table under a former name gets a different name for its key", async () => {
  await engine.run(
    "CREATE TABLE app.m (id INT PRIMARY KEY); ALTER TABLE app.m RENAME TO m_old;" +
      "CREATE TABLE app.m (id INT PRIMARY KEY); INSERT INTO app.m VALUES (1);" +
      "INSERT INTO app.m VALUES (1) ON CONFLICT ON CONSTRAINT m_pkey1 DO NOTHING",
  );
  expect(
    await engine.rows(
      "SELECT table_name, constraint_name FROM information_schema.table_constraints WHERE table_name LIKE 'm%' ORDER BY 1",
    ),
  ).toEqual([
    ["m", "m_pkey1"],
    ["m_old", "m_pkey"],
  ]);
});

test("constraints and indexes get new names, which survive a restart", async () => {
  await engine.run(
    "CREATE TABLE app.owners (id INT PRIMARY KEY);" +
      "CREATE TABLE app.named (id INT PRIMARY KEY, v INT CONSTRAINT positive CHECK (v > 0), u INT UNIQUE, " +
      "o INT CONSTRAINT of_owner REFERENCES app.owners); CREATE INDEX by_v ON app.named (v);" +
      "COMMENT ON CONSTRAINT positive ON app.named IS 'above zero';" +
      "ALTER TABLE app.named RENAME CONSTRAINT positive TO above, RENAME CONSTRAINT named_pkey TO key_of," +
      " RENAME CONSTRAINT named_u_key TO once, RENAME CONSTRAINT of_owner TO owned;" +
      "ALTER INDEX app.by_v RENAME TO sorted; ALTER INDEX app.once RENAME TO unique_u;" +
      "ALTER INDEX app.key_of RENAME TO first_key;" +
      "ALTER INDEX IF EXISTS app.by_v RENAME TO anything",
  );
  await engine.restart();
  expect(
    await engine.rows(
      "SELECT constraint_name FROM information_schema.table_constraints WHERE table_name = 'named' ORDER BY 1",
    ),
  ).toEqual([["above"], ["first_key"], ["owned"], ["unique_u"]]);
  const { error } = await engine.ask("INSERT INTO app.named VALUES (1, 0, 1, NULL)");
  expect(error?.message).toContain('"above"');
  expect(engine.database.catalog.table("app", "named")?.checks).toMatchObject([
    { name: "above", comment: "above zero" },
  ]);
  await engine.run("DROP INDEX app.sorted; ALTER TABLE app.named DROP CONSTRAINT unique_u");
});

test("a constraint or an index cannot be renamed to a taken name, or if it is missing", async () => {
  await engine.run(
    "CREATE TABLE app.r (id INT PRIMARY KEY, v INT CHECK (v > 0)); CREATE INDEX r_by_v ON app.r (v)",
  );
  const refused = {
    "ALTER TABLE app.r RENAME CONSTRAINT r_v_check TO r_pkey": "ALREADY_EXISTS",
    "ALTER TABLE app.r RENAME CONSTRAINT r_v_check TO r_by_v": "ALREADY_EXISTS",
    'ALTER TABLE app.r RENAME CONSTRAINT r_v_check TO "x y"': "INVALID_NAME",
    "ALTER TABLE app.r RENAME CONSTRAINT r_by_v TO other": "OBJECT_NOT_FOUND",
    "ALTER INDEX app.r_by_v RENAME TO r": "ALREADY_EXISTS",
    'ALTER INDEX app.r_by_v RENAME TO "x y"': "INVALID_NAME",
    "ALTER INDEX app.r_pkey RENAME TO r_by_v": "ALREADY_EXISTS",
    "ALTER INDEX app.missing RENAME TO other": "OBJECT_NOT_FOUND",
    "ALTER INDEX app.r_by_v SET (fillfactor = 70)": "UNSUPPORTED_FEATURE",
  };
  for (const [sql, code] of Object.entries(refused)) {
    expect([sql, await engine.failure(sql)]).toEqual([
      sql,
      expect.stringMatching(new RegExp(`^${code}@`)),
    ]);
  }
  engine.userId = "ann";
  for (const name of ["r_by_v", "r_pkey"]) {
    expect(await engine.failure(`ALTER INDEX app.${name} RENAME TO mine`)).toStartWith(
      "PERMISSION_DENIED",
    );
  }
  engine.userId = "root";
});
