/**
 * Tests tables without a primary key, and primary keys added later. Rows stay distinct, the hidden
 * key stays hidden, and statements that need a key report that the table has none.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run("CREATE NAMESPACE app; CREATE USER ann INTERNAL ROLE user");
});
afterAll(() => engine[Symbol.asyncDispose]());

const failureText = async (sql: string): Promise<string> => {
  const { error } = await engine.ask(sql);
  return error === undefined ? "succeeded" : `${error.code}: ${error.message}`;
};

test("a table without a primary key stores equal rows, each of which can be changed", async () => {
  await engine.run(
    "CREATE TABLE app.plain (a INT, b TEXT); INSERT INTO app.plain VALUES (1, 'x'), (1, 'x'), (2, NULL);" +
      "INSERT INTO app.plain SELECT a, b FROM app.plain WHERE a = 1",
  );
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(
      await engine.rows("SELECT a, b, count(*) FROM app.plain GROUP BY a, b ORDER BY a"),
    ).toEqual([
      [1, "x", 4],
      [2, null, 1],
    ]);
  }
  await engine.run("UPDATE app.plain SET b = 'y' WHERE a = 1");
  expect(
    await engine.rows("SELECT count(DISTINCT _key), count(*) FROM app.plain WHERE b = 'y'"),
  ).toEqual([[4, 4]]);
  await engine.run(
    "DELETE FROM app.plain WHERE _key = (SELECT min(_key) FROM app.plain WHERE a = 1)",
  );
  expect(await engine.rows("SELECT count(*) FROM app.plain WHERE a = 1")).toEqual([[3]]);
});

test("the hidden key is not among the columns of a table", async () => {
  await engine.run(
    "CREATE TABLE app.hidden (a INT, b INT); ALTER TABLE app.hidden ADD COLUMN c INT DEFAULT 7;" +
      "INSERT INTO app.hidden VALUES (1, 2, 3); CREATE VIEW app.shown AS SELECT * FROM app.hidden;" +
      "CREATE TABLE app.alike (LIKE app.hidden INCLUDING ALL)",
  );
  const [star] = await engine.run("SELECT * FROM app.hidden");
  expect(star?.schema?.map(({ name }) => name)).toEqual(["a", "b", "c", "_seq", "_deleted"]);
  for (const named of [
    "SELECT * FROM app.shown",
    "TABLE app.alike",
    "INSERT INTO app.alike VALUES (4, 5, 6) RETURNING *",
  ]) {
    const [result] = await engine.run(named);
    expect([
      named,
      result?.schema?.map(({ name }) => name).filter((name) => !name.startsWith("_")),
    ]).toEqual([named, ["a", "b", "c"]]);
    expect(result?.schema?.some(({ name }) => name === "_key")).toBe(false);
  }
  expect(await engine.rows("SELECT row_to_json(h)::text FROM app.hidden h")).toEqual([
    ['{"a":1,"b":2,"c":3}'],
  ]);
  const names = [
    "DESCRIBE app.hidden",
    "SELECT column_name FROM information_schema.columns WHERE table_name = 'hidden'",
    "SELECT column_name FROM system.columns WHERE table_name = 'hidden'",
  ];
  for (const sql of names) {
    expect(
      (await engine.rows(sql))
        .map(([name]) => name)
        .filter((name) => name !== "_seq" && name !== "_deleted"),
    ).toEqual(["a", "b", "c"]);
  }
  expect(
    await engine.rows(
      "SELECT constraint_name FROM information_schema.table_constraints WHERE table_name = 'hidden' " +
        "UNION ALL SELECT index_name FROM system.indexes WHERE table_name = 'hidden'",
    ),
  ).toEqual([]);
  expect(
    await engine.rows("SELECT a, _key > 0 FROM app.hidden NATURAL JOIN (SELECT 1 AS a) o"),
  ).toEqual([[1, true]]);
});

test("only the server writes the hidden key", async () => {
  await engine.run("CREATE TABLE app.own (a INT)");
  const texts = [
    "INSERT INTO app.own (_key, a) VALUES (1, 1)",
    "UPDATE app.own SET _key = 1",
    "ALTER TABLE app.own DROP COLUMN _key",
    "ALTER TABLE app.own RENAME COLUMN _key TO id",
    "ALTER TABLE app.own ALTER COLUMN _key TYPE TEXT",
  ];
  for (const sql of texts) {
    expect([sql, await failureText(sql)]).toEqual([
      sql,
      expect.stringMatching(
        /^SYSTEM_COLUMN: Cannot (write|alter) column "_key" of app.own: only the server assigns values to it$/,
      ),
    ]);
  }
  expect(await failureText("ALTER TABLE app.own DROP COLUMN a")).toStartWith("INVALID_OPERATION");
  expect(await failureText("COMMENT ON COLUMN app.own._key IS 'x'")).toStartWith(
    "COLUMN_NOT_FOUND",
  );
  expect(await failureText("CREATE INDEX ON app.own (_key)")).toStartWith("COLUMN_NOT_FOUND");
  expect(await failureText("INSERT INTO app.own VALUES (1, 2)")).toBe(
    "INVALID_QUERY: Cannot insert into app.own: there are more values (2) than columns (1)",
  );
  expect(await engine.rows("SELECT count(*) FROM app.own")).toEqual([[0]]);
});

test("UNIQUE, ON CONFLICT and foreign keys work on a table without a primary key", async () => {
  await engine.run(
    "CREATE TABLE app.mails (mail TEXT UNIQUE, n INT); CREATE TABLE app.sent (mail TEXT REFERENCES app.mails (mail) ON DELETE CASCADE);" +
      "INSERT INTO app.mails VALUES ('a', 1), ('b', 1); INSERT INTO app.sent VALUES ('a'), ('a'), ('b')",
  );
  await engine.run(
    "INSERT INTO app.mails VALUES ('a', 2) ON CONFLICT (mail) DO UPDATE SET n = EXCLUDED.n",
  );
  await engine.run("INSERT INTO app.mails VALUES ('a', 9), ('c', 3) ON CONFLICT DO NOTHING");
  expect(await engine.rows("SELECT mail, n FROM app.mails ORDER BY mail")).toEqual([
    ["a", 2],
    ["b", 1],
    ["c", 3],
  ]);
  expect(await failureText("INSERT INTO app.mails VALUES ('b', 2)")).toStartWith("DUPLICATE_KEY");
  await engine.run("DELETE FROM app.mails WHERE mail = 'a'");
  expect(await engine.rows("SELECT mail FROM app.sent")).toEqual([["b"]]);
  expect(await failureText("CREATE TABLE app.lost (m TEXT REFERENCES app.mails)")).toBe(
    "INVALID_DEFINITION: Cannot define the foreign key: app.mails has no primary key, so the " +
      "foreign key must name the columns of one of its unique indexes",
  );
  expect(
    await failureText("INSERT INTO app.mails VALUES ('z', 1) ON CONFLICT (n) DO NOTHING"),
  ).toEndWith(
    "the conflict target must be the primary key or the columns of a unique index; available targets: (mail)",
  );
  expect(
    await failureText("COPY app.mails FROM stdin WITH (ON_CONFLICT update);\nz\t1\n\\.\n"),
  ).toBe(
    "INVALID_QUERY: Cannot copy into app.mails with ON_CONFLICT update: the table has no primary key",
  );
});

test("rows of a USER table without a primary key belong to their owners", async () => {
  await engine.run("CREATE USER TABLE app.mine (a INT); INSERT INTO app.mine VALUES (1)");
  engine.userId = "ann";
  try {
    await engine.run("INSERT INTO app.mine VALUES (1), (1); UPDATE app.mine SET a = 2");
    expect(await engine.rows("SELECT a FROM app.mine")).toEqual([[2], [2]]);
  } finally {
    engine.userId = "root";
  }
  expect(await engine.rows("SELECT a FROM app.mine")).toEqual([[1]]);
});

test("ADD PRIMARY KEY on a table with rows applies to old and new rows", async () => {
  await engine.run(
    "CREATE TABLE app.dumped (id INT, room INT, t TEXT); INSERT INTO app.dumped VALUES (1, 1, 'a'), (2, 1, 'b')",
  );
  await engine.run("ALTER TABLE ONLY app.dumped ADD CONSTRAINT dumped_key PRIMARY KEY (id)");
  for (const restarts of [false, true]) {
    if (restarts) await engine.restart();
    expect(await failureText("INSERT INTO app.dumped VALUES (2, 1, 'c')")).toMatch(
      /^DUPLICATE_KEY.*dumped_key/,
    );
    expect(await failureText("INSERT INTO app.dumped VALUES (NULL, 1, 'c')")).toStartWith(
      "NOT_NULL_VIOLATION",
    );
  }
  await engine.run(
    "INSERT INTO app.dumped VALUES (2, 5, 'c') ON CONFLICT (id) DO UPDATE SET t = EXCLUDED.t",
  );
  await engine.run(
    "INSERT INTO app.dumped VALUES (2, 5, 'd') ON CONFLICT ON CONSTRAINT dumped_key DO NOTHING",
  );
  expect(await engine.rows("SELECT id, room, t FROM app.dumped GROUP BY id ORDER BY id")).toEqual([
    [1, 1, "a"],
    [2, 1, "c"],
  ]);
  expect(
    await engine.rows(
      "SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_name = 'dumped'",
    ),
  ).toEqual([["dumped_key", "PRIMARY KEY"]]);
  expect(
    await engine.rows(
      "SELECT column_name, primary_key, primary_key_pos FROM system.columns WHERE table_name = 'dumped' AND primary_key",
    ),
  ).toEqual([["id", true, 1]]);
  expect(
    await engine.rows(
      "SELECT index_name, is_primary, state FROM system.indexes WHERE table_name = 'dumped'",
    ),
  ).toEqual([["dumped_key", true, "ready"]]);
  await engine.run(
    "CREATE TABLE app.child (parent INT REFERENCES app.dumped); INSERT INTO app.child VALUES (1)",
  );
  expect(await failureText("INSERT INTO app.child VALUES (7)")).toStartWith(
    "FOREIGN_KEY_VIOLATION",
  );
  expect(await failureText("ALTER TABLE app.dumped ALTER COLUMN id DROP NOT NULL")).toStartWith(
    "INVALID_OPERATION",
  );
  expect(await failureText("ALTER TABLE app.dumped ADD PRIMARY KEY (room)")).toBe(
    "INVALID_DEFINITION: Cannot add a primary key to app.dumped: the table already has one",
  );
  expect(await failureText("ALTER TABLE app.dumped DROP CONSTRAINT dumped_key")).toStartWith(
    "DEPENDENT_OBJECTS",
  );
  await engine.run("CREATE TABLE app.copied (LIKE app.dumped INCLUDING INDEXES)");
  expect(
    await engine.rows("SELECT columns, is_primary FROM system.indexes WHERE table_name = 'copied'"),
  ).toEqual([["id", true]]);
  await engine.run("ALTER TABLE app.dumped DROP CONSTRAINT dumped_key CASCADE");
  await engine.run(
    "INSERT INTO app.dumped VALUES (1, 1, 'twice'); INSERT INTO app.child VALUES (7)",
  );
  expect(await failureText("INSERT INTO app.dumped VALUES (NULL, 1, 'x')")).toStartWith(
    "NOT_NULL_VIOLATION",
  );
});

test("ADD PRIMARY KEY reports duplicates and NULLs, and then leaves the table unchanged", async () => {
  await engine.run(
    "CREATE TABLE app.twice (id INT, part INT); INSERT INTO app.twice VALUES (1, 1), (1, 2), (NULL, 3)",
  );
  expect(await failureText("ALTER TABLE app.twice ADD PRIMARY KEY (id)")).toBe(
    'NOT_NULL_VIOLATION: Cannot make column "id" of app.twice NOT NULL: an existing row contains NULL',
  );
  await engine.run("DELETE FROM app.twice WHERE id IS NULL");
  expect(await failureText("ALTER TABLE app.twice ADD PRIMARY KEY (id)")).toMatch(
    /^DUPLICATE_KEY: .*twice_pkey/,
  );
  await engine.run(
    "INSERT INTO app.twice VALUES (NULL, 4), (1, 5); DELETE FROM app.twice WHERE id IS NULL",
  );
  expect(
    await engine.rows("SELECT index_name FROM system.indexes WHERE table_name = 'twice'"),
  ).toEqual([]);
  await engine.run("ALTER TABLE app.twice ADD PRIMARY KEY (id, part)");
  expect(await failureText("INSERT INTO app.twice VALUES (1, 5)")).toMatch(
    /^DUPLICATE_KEY.*twice_pkey/,
  );
});

test("ADD COLUMN can add a primary key to a table without rows", async () => {
  await engine.run(
    "CREATE TABLE app.late (a TEXT); ALTER TABLE app.late ADD COLUMN id SERIAL PRIMARY KEY",
  );
  await engine.run("INSERT INTO app.late (a) VALUES ('x'), ('y')");
  expect(await engine.rows("SELECT id, a FROM app.late ORDER BY id")).toEqual([
    [1, "x"],
    [2, "y"],
  ]);
  expect(await failureText("INSERT INTO app.late VALUES ('z', 2)")).toMatch(
    /^DUPLICATE_KEY.*late_pkey/,
  );
  expect(
    await failureText(
      "CREATE TABLE app.fixed (a INT PRIMARY KEY, b INT); ALTER TABLE app.fixed ADD PRIMARY KEY (b)",
    ),
  ).toStartWith("INVALID_DEFINITION");
});
