/**
 * Tests CREATE, ALTER, DROP and SHOW POLICY: the definitions that are possible, and what happens
 * to policies when the tables that they read change.
 */
import { afterAll, beforeEach, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeEach(async () => {
  await engine?.[Symbol.asyncDispose]();
  engine = await TestEngine.open();
  await engine.run(`
    CREATE NAMESPACE app; CREATE NAMESPACE mine AUTHORIZATION root;
    CREATE USER ann INTERNAL; CREATE USER sam INTERNAL ROLE service;
    CREATE TABLE app.members (room INT, user_id TEXT, PRIMARY KEY (room, user_id));
    CREATE TABLE app.open (id INT PRIMARY KEY);
    CREATE USER TABLE app.own (id INT PRIMARY KEY);
    CREATE VIEW app.seen AS SELECT * FROM app.members;
    CREATE TABLE app.rooms (room INT PRIMARY KEY, name TEXT, owner TEXT)
      WITH (ACCESS_LEVEL = 'RESTRICTED');
    INSERT INTO app.members VALUES (1, 'ann');
    INSERT INTO app.rooms VALUES (1, 'hall', 'root'), (2, 'attic', 'ann')`);
});
afterAll(() => engine[Symbol.asyncDispose]());

const MEMBERSHIP =
  "EXISTS (SELECT 1 FROM app.members m WHERE m.room = room AND m.user_id = CURRENT_USER())";

async function annSees(sql = "SELECT room FROM app.rooms ORDER BY room"): Promise<unknown> {
  engine.userId = "ann";
  const { error, results } = await engine.ask(sql);
  engine.userId = "root";
  return error?.code ?? results.at(-1)?.rows?.flat();
}

test("a table without a policy is hidden, each policy shows rows, and dropping it hides them again", async () => {
  expect(await annSees()).toBe("TABLE_NOT_FOUND");
  const [created] = await engine.run(`CREATE POLICY members ON app.rooms USING (${MEMBERSHIP})`);
  expect(created?.message).toBe("Policy members on app.rooms created");
  expect(await annSees()).toEqual([1]);
  await engine.run(
    "CREATE POLICY owners ON app.rooms AS PERMISSIVE FOR ALL TO PUBLIC USING (owner = CURRENT_USER())",
  );
  expect(await annSees()).toEqual([1, 2]);
  await engine.run(
    "ALTER POLICY owners ON app.rooms RENAME TO own; ALTER POLICY own ON app.rooms TO service",
  );
  expect(await annSees()).toEqual([1]);
  await engine.run("DROP POLICY members ON app.rooms");
  expect(await annSees()).toBe("TABLE_NOT_FOUND");
  await engine.run("ALTER POLICY own ON app.rooms TO user USING (room = 1)");
  expect(await annSees()).toEqual([1]);
  const [dropped] = await engine.run("DROP POLICY IF EXISTS members ON app.rooms");
  expect(dropped?.message).toBe("Policy members on app.rooms does not exist");
});

test("m.room = room compares with the column of the policy's table", async () => {
  await engine.run(`CREATE POLICY members ON app.rooms FOR SELECT USING (${MEMBERSHIP})`);
  const [row] = await engine.rows("SHOW POLICIES ON app.rooms");
  expect(row?.slice(0, 7)).toEqual([
    "app.rooms",
    "members",
    "select",
    "public",
    expect.stringContaining("m.room = rooms.room"),
    null,
    "root",
  ]);
  await engine.run("INSERT INTO app.rooms VALUES (3, 'cellar', 'x')");
  expect(await annSees()).toEqual([1]);
});

test("policies may use IN over a query, CURRENT_ROLE() and CLAIM()", async () => {
  await engine.run(
    "CREATE POLICY listed ON app.rooms USING (room IN (SELECT room FROM app.members WHERE user_id = CURRENT_USER()))",
  );
  expect(await annSees()).toEqual([1]);
  await engine.run("ALTER POLICY listed ON app.rooms USING (CURRENT_ROLE() = 'user' AND room = 2)");
  expect(await annSees()).toEqual([2]);
  await engine.run("ALTER POLICY listed ON app.rooms USING (CLAIM('team') = name)");
  expect(await annSees()).toEqual([]);
  const { database } = engine;
  const principal = {
    ...engine.principal,
    userId: "ann",
    role: "user",
    claims: { team: "attic" },
  } as const;
  const { results } = await database.sql.execute(principal, {
    sql: "SELECT room, CLAIM('team'), CLAIM('toString') FROM app.rooms",
    params: [],
  });
  expect(results[0]?.rows).toEqual([[2, "attic", null]]);
});

test("a policy that reads its own table does not apply to that read", async () => {
  await engine.run(`
    ALTER TABLE app.members SET (ACCESS_LEVEL = 'RESTRICTED');
    INSERT INTO app.members VALUES (1, 'ben'), (2, 'ben');
    CREATE POLICY fellows ON app.members USING (EXISTS (
      SELECT 1 FROM app.members me WHERE me.room = room AND me.user_id = CURRENT_USER()))`);
  expect(await annSees("SELECT user_id FROM app.members ORDER BY 1")).toEqual(["ann", "ben"]);
});

test("policies survive renames, flushes and a restart", async () => {
  await engine.run(`
    CREATE POLICY members ON app.rooms USING (${MEMBERSHIP});
    ALTER TABLE app.rooms RENAME COLUMN room TO number;
    ALTER TABLE app.members RENAME COLUMN user_id TO who;
    ALTER TABLE app.members RENAME TO people;
    CREATE TABLE app.members (room INT, user_id TEXT, PRIMARY KEY (room, user_id));
    INSERT INTO app.members VALUES (2, 'ann');
    ALTER TABLE app.rooms ADD COLUMN user_id TEXT DEFAULT 'ann';
    STORAGE FLUSH ALL`);
  const sees = "SELECT number FROM app.rooms";
  expect(await annSees(sees)).toEqual([1]);
  await engine.restart();
  expect(await annSees(sees)).toEqual([1]);
});

test("an object that a policy reads can be dropped only with CASCADE, which drops the policy", async () => {
  const failure = async (sql: string) => (await engine.ask(sql)).error?.code;
  await engine.run(`
    CREATE POLICY members ON app.rooms USING (${MEMBERSHIP});
    CREATE POLICY owners ON app.rooms USING (owner = CURRENT_USER())`);
  expect(await failure("DROP TABLE app.members")).toBe("DEPENDENT_OBJECTS");
  expect(await failure("ALTER TABLE app.rooms DROP COLUMN owner")).toBe("DEPENDENT_OBJECTS");
  await engine.run("DROP VIEW app.seen; ALTER TABLE app.rooms DROP COLUMN name");
  await engine.run("ALTER TABLE app.rooms DROP COLUMN owner CASCADE");
  expect(await engine.rows("SELECT policy_name FROM system.policies")).toEqual([["members"]]);
  await engine.run("DROP TABLE app.members CASCADE");
  expect(await engine.rows("SHOW POLICIES")).toEqual([]);
  expect(await annSees()).toBe("TABLE_NOT_FOUND");
  await engine.run(`
    CREATE TABLE mine.lists (id INT PRIMARY KEY);
    CREATE POLICY listed ON app.rooms USING (room IN (SELECT id FROM mine.lists));
    DROP NAMESPACE mine CASCADE`);
  expect(await engine.rows("SHOW POLICIES")).toEqual([]);
  await engine.run("CREATE POLICY p ON app.rooms USING (true); DROP TABLE app.rooms");
  expect(await engine.rows("SHOW POLICIES")).toEqual([]);
});

/** Refused definitions, each with its error code and a part of the message. */
const REFUSED: readonly (readonly [string, string, string])[] = [
  ["CREATE POLICY p ON app.nope USING (true)", "TABLE_NOT_FOUND", "app.nope"],
  ["CREATE POLICY p ON app.open USING (true)", "INVALID_OPERATION", "ACCESS_LEVEL is 'PRIVATE'"],
  ["CREATE POLICY p ON app.own USING (true)", "INVALID_OPERATION", "own rows"],
  ["CREATE POLICY p ON app.rooms", "INVALID_DEFINITION", "is missing"],
  ["CREATE POLICY p ON app.rooms FOR INSERT USING (true)", "INVALID_DEFINITION", "WITH CHECK"],
  [
    "CREATE POLICY p ON app.rooms FOR SELECT USING (true) WITH CHECK (true)",
    "INVALID_DEFINITION",
    "USING",
  ],
  ["CREATE POLICY p ON app.rooms FOR DELETE WITH CHECK (true)", "INVALID_DEFINITION", "USING"],
  ["CREATE POLICY p ON app.rooms TO dba USING (true)", "INVALID_DEFINITION", "every row"],
  ["CREATE POLICY p ON app.rooms TO nobody USING (true)", "INVALID_VALUE", "no such role"],
  ["CREATE POLICY p ON app.rooms USING (nope = 1)", "COLUMN_NOT_FOUND", "nope"],
  ["CREATE POLICY p ON app.rooms USING (room)", "TYPE_MISMATCH", ""],
  ["CREATE POLICY p ON app.rooms USING (_seq > 1)", "COLUMN_NOT_FOUND", "_seq"],
  ["CREATE POLICY p ON app.rooms USING (count(*) > 1)", "INVALID_QUERY", ""],
  [
    "CREATE POLICY p ON app.rooms USING (random() < 1)",
    "INVALID_DEFINITION",
    "the condition calls a volatile function",
  ],
  [
    "CREATE POLICY p ON app.rooms USING (room IN (SELECT id FROM app.own))",
    "INVALID_DEFINITION",
    "USER table",
  ],
  [
    "CREATE POLICY p ON app.rooms USING (room IN (SELECT room FROM app.seen))",
    "INVALID_DEFINITION",
    "a view",
  ],
  [
    "CREATE POLICY p ON app.rooms USING (EXISTS (SELECT 1 FROM system.users))",
    "INVALID_DEFINITION",
    "a view",
  ],
  [
    "CREATE POLICY p ON app.rooms USING (room IN (SELECT room FROM app.members FOR SYSTEM_TIME AS OF 1))",
    "INVALID_DEFINITION",
    "earlier state",
  ],
  [
    "CREATE POLICY p ON app.rooms USING (EXISTS (SELECT 1 FROM app.rooms WHERE rooms.room = room))",
    "INVALID_DEFINITION",
    "compares a column with itself",
  ],
  [
    "CREATE POLICY p ON app.rooms AS RESTRICTIVE USING (true)",
    "UNSUPPORTED_FEATURE",
    "RESTRICTIVE",
  ],
  ["ALTER POLICY p ON app.rooms USING (true)", "OBJECT_NOT_FOUND", 'policy "p"'],
  ["DROP POLICY p ON app.rooms", "OBJECT_NOT_FOUND", 'policy "p"'],
  ["ALTER POLICY p ON app.rooms", "INVALID_SQL", "RENAME TO"],
];

test.each(REFUSED)("%s is refused", async (sql, code, part) => {
  const { error } = await engine.ask(sql);
  expect<string | undefined>(error?.code).toBe(code);
  expect(error?.message).toContain(part);
  expect(await engine.rows("SHOW POLICIES")).toEqual([]);
});

test("parameters in a policy, a duplicate name and a policy by an unauthorized user are refused", async () => {
  const { error } = await engine.ask("CREATE POLICY p ON app.rooms USING (room = $1)", {
    params: [1],
  });
  expect(error).toBeDefined();
  await engine.run("CREATE POLICY p ON app.rooms USING (true)");
  expect(await engine.failure("CREATE POLICY p ON app.rooms USING (false)")).toStartWith(
    "ALREADY_EXISTS@1",
  );
  for (const userId of ["ann", "sam"]) {
    engine.userId = userId;
    for (const sql of [
      "CREATE POLICY q ON app.rooms USING (true)",
      "ALTER POLICY p ON app.rooms USING (false)",
      "DROP POLICY p ON app.rooms",
    ]) {
      expect((await engine.ask(sql)).error?.code, `${userId}: ${sql}`).toBe("PERMISSION_DENIED");
    }
    expect(await engine.rows("SHOW POLICIES")).toEqual([]);
  }
});

test("the owner of a namespace can write policies only over its own tables", async () => {
  await engine.run(`
    CREATE NAMESPACE anns AUTHORIZATION ann;
    CREATE TABLE anns.a (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED');
    CREATE TABLE anns.b (id INT PRIMARY KEY);
    CREATE POLICY p ON app.rooms USING (true)`);
  engine.userId = "ann";
  await engine.run("CREATE POLICY p ON anns.a USING (id IN (SELECT id FROM anns.b))");
  const { error } = await engine.ask(
    "CREATE POLICY q ON anns.a USING (id IN (SELECT room FROM app.rooms))",
  );
  expect(error?.message).toContain("policies hide some rows of this table from you");
});

test("OWNER_COLUMN is equivalent to four policies", async () => {
  await engine.run(`
    CREATE TABLE app.posts (id INT PRIMARY KEY, author TEXT DEFAULT CURRENT_USER(), body TEXT)
      WITH (OWNER_COLUMN = 'author');
    INSERT INTO app.posts VALUES (1, 'root', 'first')`);
  expect(
    await engine.rows(
      "SELECT policy_name, command, using_expression, check_expression FROM system.policies",
    ),
  ).toEqual([
    ["everybody_reads", "select", "TRUE", null],
    ["owner_inserts", "insert", null, "author = CURRENT_USER"],
    ["owner_updates", "update", "author = CURRENT_USER", "author = CURRENT_USER"],
    ["owner_deletes", "delete", "author = CURRENT_USER", null],
  ]);
  engine.userId = "ann";
  const counts = async (sql: string) => (await engine.ask(sql)).results.at(-1)?.rowCount;
  expect(await counts("INSERT INTO app.posts (id, body) VALUES (2, 'mine')")).toBe(1);
  expect((await engine.ask("INSERT INTO app.posts VALUES (3, 'root', 'x')")).error?.message).toBe(
    "Cannot write a row to app.posts: the new row meets none of the INSERT policies (owner_inserts)",
  );
  expect(await counts("UPDATE app.posts SET body = 'x'")).toBe(1);
  expect(await counts("DELETE FROM app.posts WHERE id = 1")).toBe(0);
  expect(await engine.rows("SELECT id, body FROM app.posts ORDER BY id")).toEqual([
    [1, "first"],
    [2, "x"],
  ]);
  engine.userId = "root";
  for (const [options, code] of [
    ["OWNER_COLUMN = 'nope'", "COLUMN_NOT_FOUND"],
    ["OWNER_COLUMN = 'id'", "INVALID_OPTION"],
    ["OWNER_COLUMN = 'author', ACCESS_LEVEL = 'PUBLIC'", "INVALID_OPTION"],
    ["OWNER_COLUMN = 'author', TYPE = 'USER'", "INVALID_OPTION"],
  ] as const) {
    const sql = `CREATE TABLE app.bad (id INT PRIMARY KEY, author TEXT) WITH (${options})`;
    expect((await engine.ask(sql)).error?.code, options).toBe(code);
  }
  engine.userId = "sam";
  const sql =
    "CREATE TABLE app.sams (id INT PRIMARY KEY, author TEXT) WITH (OWNER_COLUMN = 'author')";
  expect((await engine.ask(sql)).error?.code).toBe("PERMISSION_DENIED");
});
