/**
 * Tests row policies: the rows that each kind of statement reads and writes under them.
 *
 * Ann and Ben are members of room 1, Cat is a member of room 2, and Sam is a service to which no
 * policy applies.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

const SETUP = `
  CREATE NAMESPACE app;
  CREATE USER ann INTERNAL; CREATE USER ben INTERNAL; CREATE USER cat INTERNAL;
  CREATE USER dora INTERNAL ROLE dba; CREATE USER sam INTERNAL ROLE service;
  CREATE TABLE app.members (room INT, user_id TEXT, PRIMARY KEY (room, user_id));
  INSERT INTO app.members VALUES (1, 'ann'), (1, 'ben'), (2, 'cat');
  CREATE TABLE app.messages (
    id INT PRIMARY KEY, room INT NOT NULL, author TEXT NOT NULL DEFAULT CURRENT_USER(), body TEXT,
    slug TEXT UNIQUE
  ) WITH (ACCESS_LEVEL = 'RESTRICTED');
  INSERT INTO app.messages VALUES
    (1, 1, 'ann', 'hello', 'a'), (2, 1, 'ben', 'hi', 'b'), (3, 2, 'cat', 'secret', 'c');
  CREATE POLICY members_read ON app.messages FOR SELECT TO user
    USING (EXISTS (SELECT 1 FROM app.members m WHERE m.room = room AND m.user_id = CURRENT_USER()));
  CREATE POLICY members_write ON app.messages FOR INSERT TO user
    WITH CHECK (author = CURRENT_USER() AND EXISTS (
      SELECT 1 FROM app.members m WHERE m.room = room AND m.user_id = CURRENT_USER()));
  CREATE POLICY authors_change ON app.messages FOR UPDATE TO user
    USING (author = CURRENT_USER()) WITH CHECK (author = CURRENT_USER());
  CREATE POLICY authors_delete ON app.messages FOR DELETE TO user USING (author = CURRENT_USER());
  CREATE VIEW app.bodies AS SELECT id, body FROM app.messages;
  CREATE TABLE app.notes (id INT PRIMARY KEY, message INT REFERENCES app.messages)
    WITH (ACCESS_LEVEL = 'RESTRICTED');
  CREATE POLICY all_notes ON app.notes USING (true);
`;

let engine: TestEngine;

/** Replaces the database with a new one. Tests that change no rows share one. */
async function begin(): Promise<void> {
  await engine?.[Symbol.asyncDispose]();
  engine = await TestEngine.open();
  await engine.run(SETUP);
}

afterAll(() => engine[Symbol.asyncDispose]());

/** Runs a statement as a user. Returns its rows, or the number of rows it changed. */
async function as(
  userId: string,
  sql: string,
  params: readonly (string | number)[] = [],
): Promise<unknown> {
  engine.userId = userId;
  const { error, results } = await engine.ask(sql, { params });
  engine.userId = "root";
  if (error !== undefined) return error.code;
  const last = results.at(-1);
  return last?.rows ?? last?.rowCount;
}

const MEMBERS_SEE = "SELECT id FROM app.messages ORDER BY id";

describe("an error reveals no row that a policy hides", () => {
  beforeAll(begin);

  test.each([
    "SELECT id FROM app.messages WHERE id = $id AND room = 1/0",
    "SELECT id FROM app.messages WHERE id = $id AND body = repeat('x', 100000000)",
    "SELECT id FROM app.messages WHERE id = $id AND (room = 1/0 OR body = 'x')",
    "SELECT id FROM app.messages WHERE id = $id AND room = '1x'::text::int",
    "SELECT id FROM app.messages WHERE id = $id AND room = 99999999999::int",
    "SELECT id FROM app.messages WHERE id = $id AND (1 = 0 OR room = 1/0)",
    "UPDATE app.messages SET body = 'x' WHERE id = $id AND room = 1/0",
    "DELETE FROM app.messages WHERE id = $id AND room = 1/0",
    "SELECT n.id FROM app.notes n JOIN app.messages m ON m.id = n.message AND m.room = 1/0 WHERE m.id = $id",
  ])("a hidden row and a missing one give the same answer: %s", async (sql) => {
    const hidden = await as("ann", sql.replace("$id", "3"));
    expect(hidden).toEqual(await as("ann", sql.replace("$id", "99")));
  });

  test("a hidden row and a missing one give the same answer to a parameter that cannot be cast", async () => {
    const sql = "SELECT id FROM app.messages WHERE id = $1 AND room = $2::int";
    const hidden = await as("ann", sql, [3, "x"]);
    expect(hidden).toEqual(await as("ann", sql, [99, "x"]));
    expect(await as("ann", sql, [1, "1"])).toEqual([[1]]);
  });

  test.each([
    ["CASE WHEN 0 = 0 THEN true ELSE room > 10/0 END", []],
    ["CASE WHEN $1 = 0 THEN true ELSE room > 10/$1 END", [0]],
    ["$1 = 0 OR room = 10/$1", [0]],
    ["coalesce(id > 0, room = 10/$1)", [0]],
  ])("a part that need not be computed raises no error: %s", async (condition, params) => {
    const sql = `SELECT id FROM app.messages WHERE ${condition} ORDER BY id`;
    expect(await as("ann", sql, params)).toEqual([[1], [2]]);
  });

  test("a part that reads an outer row raises no error for a row that does not need it", async () => {
    const sql = `SELECT o.y FROM (VALUES (0), (10), (4)) o(y) WHERE EXISTS (
      SELECT 1 FROM app.messages m WHERE o.y = 0 OR m.room = 10/o.y) ORDER BY y`;
    expect(await as("ann", sql)).toEqual([[0], [10]]);
  });

  test("a part that reads an outer row raises no error for an outer row without a match", async () => {
    const sql = `SELECT (SELECT m.id FROM app.messages m WHERE m.id = o.y AND m.room >= 1/o.y)
      FROM (VALUES (0), (1)) o(y) ORDER BY y`;
    expect(await as("ann", sql)).toEqual([[null], [1]]);
  });

  test("a part that reads an outer row finds its rows by key, and fails also for a hidden row", async () => {
    const sql = (x: number, y: number): string =>
      `SELECT (SELECT m.id FROM app.messages m WHERE m.id = o.y / o.x) FROM (VALUES (${x}, ${y})) o(x, y)`;
    const plan = await engine.rows(`EXPLAIN EXECUTE AS USER 'ann' (${sql(1, 2)})`);
    expect(String(plan)).toContain("Key Lookup on app.messages");
    expect(await as("ann", sql(1, 2))).toEqual([[2]]);
    expect(await as("ann", sql(1, 3))).toEqual([[null]]);
    for (const y of [3, 99]) expect(await as("ann", sql(0, y))).toBe("DIVISION_BY_ZERO");
  });

  test.each([
    ["id = $1", [3]],
    ["id = 3", []],
    ["slug = 'a' OR id = 2", []],
    ["id = $1::int", ["3"]],
  ])("a condition that reveals nothing finds its rows by key: %s", async (condition, params) => {
    const sql = `EXPLAIN EXECUTE AS USER 'ann' (SELECT id FROM app.messages WHERE ${condition})`;
    expect(String(await engine.rows(sql, { params }))).toMatch(
      /on app\.messages {2}\(access: (key|index);/,
    );
  });

  test("a time that is computed first still finds its rows", async () => {
    const sql = "SELECT count(*) FROM app.messages WHERE id > extract(year FROM now()) - 100000";
    expect(await as("ann", sql)).toEqual([[2]]);
  });
});

describe("policies apply to every kind of read", () => {
  beforeAll(begin);

  const READS: readonly (readonly [string, unknown, unknown])[] = [
    ["SELECT body FROM app.messages WHERE id = 3", [], [["secret"]]],
    ["SELECT body FROM app.messages WHERE id IN (1, 3)", [["hello"]], [["secret"]]],
    ["SELECT id FROM app.messages WHERE slug = 'c'", [], [[3]]],
    [
      "SELECT count(*), max(id), min(body) FROM app.messages",
      [[2, 2, "hello"]],
      [[1, 3, "secret"]],
    ],
    ["SELECT room, count(*) FROM app.messages GROUP BY room", [[1, 2]], [[2, 1]]],
    ["SELECT id, body FROM app.bodies WHERE id = 3", [], [[3, "secret"]]],
    ["WITH m AS (SELECT * FROM app.messages) SELECT id FROM m WHERE id > 1", [[2]], [[3]]],
    ["SELECT (SELECT body FROM app.messages WHERE id = 3)", [[null]], [["secret"]]],
    ["SELECT EXISTS (SELECT 1 FROM app.messages WHERE id = 3)", [[false]], [[true]]],
    ["SELECT 3 IN (SELECT id FROM app.messages)", [[false]], [[true]]],
    [
      "SELECT v, id FROM (VALUES (1), (3)) x(v) LEFT JOIN app.messages ON id = v ORDER BY v",
      [
        [1, 1],
        [3, null],
      ],
      [
        [1, null],
        [3, 3],
      ],
    ],
    [
      "SELECT v, id FROM app.messages RIGHT JOIN (VALUES (3)) x(v) ON id = v",
      [[3, null]],
      [[3, 3]],
    ],
    ["SELECT a.id FROM app.messages a JOIN app.messages b ON b.id = a.id + 1", [[1]], []],
    [
      "SELECT v, body FROM (VALUES (3)) x(v), LATERAL (SELECT body FROM app.messages WHERE id = v) l",
      [],
      [[3, "secret"]],
    ],
    ["SELECT id FROM app.messages UNION SELECT 9 ORDER BY 1", [[1], [2], [9]], [[3], [9]]],
    ["TABLE app.messages ORDER BY id LIMIT 1", expect.anything(), expect.anything()],
    ["SELECT id FROM app.messages ORDER BY id DESC LIMIT 1", [[2]], [[3]]],
    [
      "SELECT id, row_number() OVER (ORDER BY id) FROM app.messages WHERE id > 1",
      [[2, 1]],
      [[3, 1]],
    ],
    [
      `WITH RECURSIVE r(id) AS (
        SELECT id FROM app.messages WHERE id = 3
        UNION SELECT m.id FROM app.messages m JOIN r ON m.id = r.id - 1
      ) SELECT id FROM r`,
      [],
      [[3]],
    ],
  ];

  test.each(READS)("a policy applies to: %s", async (sql, ann, cat) => {
    expect(await as("ann", sql)).toEqual(ann);
    expect(await as("cat", sql)).toEqual(cat);
  });
});

describe("policies restrict the rows that are read", () => {
  beforeEach(begin);

  test("a member of a room sees its messages, and nobody else does", async () => {
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2]]);
    expect(await as("cat", MEMBERS_SEE)).toEqual([[3]]);
    expect(await as("dora", MEMBERS_SEE)).toEqual([[1], [2], [3]]);
    expect(await as("sam", MEMBERS_SEE)).toBe("TABLE_NOT_FOUND");
  });

  /** Each kind of read, with the rows that ann and cat see. */
  test("a condition that fails only for hidden rows reveals nothing about them", async () => {
    expect(
      await as("ann", "SELECT id FROM app.messages WHERE 1 / (id - 3) < 0 ORDER BY id"),
    ).toEqual([[2]]);
    expect(await as("cat", "SELECT id FROM app.messages WHERE 1 / (id - 3) < 0")).toBe(
      "DIVISION_BY_ZERO",
    );
    const guess = "SELECT id FROM app.messages WHERE CAST(body AS INT) > 0";
    expect(await as("sam", guess)).toBe("TABLE_NOT_FOUND");
    await engine.run("CREATE POLICY none ON app.messages FOR SELECT TO service USING (id > 9)");
    expect(await as("sam", guess)).toEqual([]);
  });

  test("earlier states, tombstones and EXPLAIN remain reserved for callers who may read every row", async () => {
    await engine.run("DELETE FROM app.messages WHERE id = 1");
    expect(await as("ann", "SELECT id FROM app.messages WHERE _deleted = true")).toEqual([]);
    expect(await as("ann", "SELECT id FROM app.messages FOR SYSTEM_TIME AS OF 1")).toBe(
      "PERMISSION_DENIED",
    );
    expect(await as("ann", "SELECT * FROM changes('app.messages', 0)")).toBe("PERMISSION_DENIED");
  });

  test("the users of a role share a plan, and another role gets its own", async () => {
    for (const _ of [1, 2, 3]) {
      expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2]]);
      expect(await as("root", MEMBERS_SEE)).toEqual([[1], [2], [3]]);
      expect(await as("cat", MEMBERS_SEE)).toEqual([[3]]);
      expect(await as("sam", MEMBERS_SEE)).toBe("TABLE_NOT_FOUND");
    }
  });

  test("membership counts from the commit that adds or removes it", async () => {
    await engine.run("DELETE FROM app.members WHERE user_id = 'ann'");
    expect(await as("ann", MEMBERS_SEE)).toEqual([]);
    await engine.run("INSERT INTO app.members VALUES (2, 'ann')");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[3]]);
  });
});

describe("policies restrict the rows that are written", () => {
  beforeEach(begin);

  const INSERT = "INSERT INTO app.messages (id, room, body) VALUES";

  test("INSERT accepts only rows that WITH CHECK permits", async () => {
    expect(await as("ann", `${INSERT} (10, 1, 'mine')`)).toBe(1);
    expect(await as("ann", `${INSERT} (11, 2, 'not mine')`)).toBe("PERMISSION_DENIED");
    expect(await as("ann", `${INSERT} (11, 1, 'one'), (12, 2, 'two')`)).toBe("PERMISSION_DENIED");
    const forged = "INSERT INTO app.messages VALUES (11, 1, 'ben', 'as ben')";
    expect(await as("ann", forged)).toBe("PERMISSION_DENIED");
    const selected = "INSERT INTO app.messages (id, room) SELECT 11, 2";
    expect(await as("ann", selected)).toBe("PERMISSION_DENIED");
    expect(await as("ann", `BEGIN; ${INSERT} (11, 2, 'x'); COMMIT`)).toBe("PERMISSION_DENIED");
    expect(await as("root", "SELECT id FROM app.messages WHERE id > 9")).toEqual([[10]]);
    expect(await as("sam", `${INSERT} (11, 1, 'x')`)).toBe("TABLE_NOT_FOUND");
  });

  test("an INSERT that no policy permits is refused before keys and parents are looked up", async () => {
    expect(await as("ann", `${INSERT} (3, 2, 'taken')`)).toBe("PERMISSION_DENIED");
    expect(await as("ann", `${INSERT} (999, 2, 'free')`)).toBe("PERMISSION_DENIED");
  });

  test("UPDATE and DELETE find only rows that policies for SELECT and for the command permit", async () => {
    expect(await as("ann", "UPDATE app.messages SET body = 'x'")).toBe(1);
    expect(await as("ann", "UPDATE app.messages SET body = 'x' WHERE id IN (2, 3)")).toBe(0);
    expect(await as("ann", "DELETE FROM app.messages WHERE id <> 1")).toBe(0);
    expect(await as("ann", "UPDATE app.messages SET author = 'ben' WHERE id = 1")).toBe(
      "PERMISSION_DENIED",
    );
    // After the change, its author could no longer see the row.
    expect(await as("ann", "UPDATE app.messages SET room = 2 WHERE id = 1")).toBe(
      "PERMISSION_DENIED",
    );
    expect(await as("ann", "DELETE FROM app.messages RETURNING id")).toEqual([[1]]);
    expect(await as("root", "SELECT id, body FROM app.messages ORDER BY id")).toEqual([
      [2, "hi"],
      [3, "secret"],
    ]);
  });

  test("UPDATE … FROM and DELETE … USING read other tables under their policies", async () => {
    const update =
      "UPDATE app.messages SET body = o.body FROM app.messages o WHERE o.id = 3 AND messages.id = 1";
    expect(await as("ann", update)).toBe(0);
    const remove = "DELETE FROM app.messages USING app.messages o WHERE o.id = 3";
    expect(await as("ann", remove)).toBe(0);
  });

  test("ON CONFLICT refuses a stored row that is hidden, without reading it", async () => {
    const upsert = (id: number, set: string, where = "") =>
      `${INSERT} (${id}, 1, 'new') ON CONFLICT (id) DO UPDATE SET ${set} ${where}`;
    expect(await as("ann", upsert(1, "body = EXCLUDED.body"))).toBe(1);
    expect(await as("ann", upsert(3, "body = messages.body"))).toBe("PERMISSION_DENIED");
    expect(await as("ann", upsert(3, "body = (1 / (messages.room - 2))::TEXT"))).toBe(
      "PERMISSION_DENIED",
    );
    expect(await as("ann", upsert(3, "body = 'x'", "WHERE messages.body = 'no'"))).toBe(
      "PERMISSION_DENIED",
    );
    // Ann may see Ben's message, but only Ben may change it.
    expect(await as("ann", upsert(2, "body = 'x'"))).toBe("PERMISSION_DENIED");
    expect(await as("ann", upsert(20, "body = 'x'"))).toBe(1);
    expect(await as("ann", `${INSERT} (3, 1, 'x') ON CONFLICT DO NOTHING`)).toBe(0);
    expect(await as("ann", `${INSERT} (3, 2, 'x') ON CONFLICT DO NOTHING`)).toBe(
      "PERMISSION_DENIED",
    );
    expect(await as("root", "SELECT body FROM app.messages WHERE id IN (2, 3)")).toEqual([
      ["hi"],
      ["secret"],
    ]);
  });

  test("MERGE matches only visible rows, and is refused if a clause is not permitted", async () => {
    const merge = (id: number, clauses: string) =>
      `MERGE INTO app.messages t USING (VALUES (${id})) s(id) ON t.id = s.id ${clauses}`;
    const update = "WHEN MATCHED THEN UPDATE SET body = 'merged'";
    expect(await as("ann", merge(1, update))).toBe(1);
    expect(await as("ann", merge(3, update))).toBe(0);
    expect(await as("ann", merge(2, update))).toBe("PERMISSION_DENIED");
    expect(await as("ann", merge(2, "WHEN MATCHED THEN DELETE"))).toBe("PERMISSION_DENIED");
    const insert = "WHEN NOT MATCHED THEN INSERT (id, room, body) VALUES (s.id, 2, 'x')";
    expect(await as("ann", merge(30, insert))).toBe("PERMISSION_DENIED");
    expect(await as("ann", merge(30, insert.replace("2", "1")))).toBe(1);
    expect(await as("ann", merge(1, "WHEN MATCHED THEN DELETE"))).toBe(1);
  });

  test("RETURNING shows a new row only if a policy for SELECT permits it", async () => {
    await engine.run(
      "CREATE POLICY drop_box ON app.messages FOR INSERT TO user WITH CHECK (room = 7)",
    );
    expect(await as("ann", `${INSERT} (40, 7, 'dropped')`)).toBe(1);
    expect(await as("ann", `${INSERT} (41, 7, 'dropped') RETURNING id`)).toBe("PERMISSION_DENIED");
    expect(await as("ann", `${INSERT} (42, 1, 'seen') RETURNING id`)).toEqual([[42]]);
  });

  test("a change within WITH also obeys the policies", async () => {
    const sql = `WITH gone AS (DELETE FROM app.messages RETURNING id) SELECT id FROM gone`;
    expect(await as("ann", sql)).toEqual([[1]]);
    const moved = `WITH n AS (${INSERT} (50, 2, 'x') RETURNING id) SELECT id FROM n`;
    expect(await as("ann", moved)).toBe("PERMISSION_DENIED");
  });

  test("TRUNCATE deletes only rows that the caller may delete", async () => {
    await engine.run("DROP TABLE app.notes");
    expect(await as("ann", "TRUNCATE app.messages")).toBe(0);
    expect(await as("root", "SELECT id FROM app.messages ORDER BY id")).toEqual([[2], [3]]);
  });

  test("a hidden parent counts as missing", async () => {
    expect(await as("ann", "INSERT INTO app.notes VALUES (1, 1)")).toBe(1);
    expect(await as("ann", "INSERT INTO app.notes VALUES (2, NULL)")).toBe(1);
    const refused = async (sql: string): Promise<string> => {
      engine.userId = "ann";
      const { error } = await engine.ask(sql);
      return error?.message ?? "";
    };
    const hidden = await refused("INSERT INTO app.notes VALUES (3, 3)");
    const missing = await refused("INSERT INTO app.notes VALUES (3, 999)");
    expect(hidden).toContain("does not exist");
    expect(hidden.replace("(3)", "(999)")).toBe(missing);
    expect(await refused("UPDATE app.notes SET message = 3 WHERE id = 1")).toContain(
      "does not exist",
    );
    expect(await as("cat", "INSERT INTO app.notes VALUES (3, 3)")).toBe(1);
    // The reference remains, although ann cannot see the row it refers to.
    expect(await as("ann", "UPDATE app.notes SET id = id, message = message WHERE id = 3")).toBe(1);
  });

  test("a long INSERT … SELECT is tested row by row", async () => {
    await engine.run("CREATE POLICY box ON app.messages FOR INSERT TO user WITH CHECK (id < 5000)");
    const fill = (to: number) =>
      `INSERT INTO app.messages (id, room) SELECT i, 1 FROM generate_series(100, ${to}) g(i)`;
    await engine.run("DROP POLICY members_write ON app.messages");
    expect(await as("ann", fill(5000))).toBe("PERMISSION_DENIED");
    expect(await as("ann", fill(4999))).toBe(4900);
    expect(await as("ann", "UPDATE app.messages SET body = 'all' WHERE id >= 100")).toBe(4900);
  });
});

describe("the effect of a policy depends on the caller", () => {
  beforeEach(begin);

  test("EXECUTE AS applies the policies of the user who is acted for", async () => {
    const inside = (user: string, sql: string) => `EXECUTE AS USER '${user}' (${sql})`;
    expect(await as("sam", inside("ann", "SELECT id FROM app.messages ORDER BY id"))).toEqual([
      [1],
      [2],
    ]);
    const insert = "INSERT INTO app.messages (id, room) VALUES (60,";
    expect(await as("sam", inside("ann", `${insert} 2)`))).toBe("PERMISSION_DENIED");
    expect(await as("sam", inside("ann", `${insert} 1)`))).toBe(1);
    expect(await as("root", "SELECT author FROM app.messages WHERE id = 60")).toEqual([["ann"]]);
    expect(await as("root", inside("cat", "SELECT id FROM app.messages"))).toEqual([[3]]);
  });

  test("the owner of a namespace may access every row of its tables", async () => {
    await engine.run("ALTER NAMESPACE app OWNER TO ann");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2], [3]]);
    await engine.run("ALTER NAMESPACE app OWNER TO root");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2]]);
  });

  test("a role without a policy does not see the table", async () => {
    for (const sql of [
      "SELECT 1 FROM app.messages",
      "DESCRIBE app.messages",
      "INSERT INTO app.messages (id, room) VALUES (70, 1)",
      "SELECT 1 FROM app.bodies",
    ]) {
      expect(await as("sam", sql), sql).toBe("TABLE_NOT_FOUND");
    }
    await engine.run("ALTER POLICY members_read ON app.messages TO user, service");
    expect(await as("sam", MEMBERS_SEE)).toEqual([]);
    expect(await as("sam", "ALTER TABLE app.messages SET ACCESS LEVEL public")).toBe(
      "PERMISSION_DENIED",
    );
    expect(await as("sam", "DROP POLICY members_read ON app.messages")).toBe("PERMISSION_DENIED");
  });

  test("a policy permits nothing once its owner has lost the right to the rows", async () => {
    await engine.run("CREATE USER eve INTERNAL ROLE dba");
    await as("eve", "CREATE POLICY eves ON app.messages FOR SELECT TO user USING (id = 3)");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2], [3]]);
    await engine.run("ALTER USER eve SET ROLE user");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2]]);
    await engine.run("ALTER USER eve SET ROLE dba");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2], [3]]);
    await engine.run("DROP USER eve");
    expect(await as("ann", MEMBERS_SEE)).toEqual([[1], [2]]);
  });

  test("row counts do not reveal hidden rows", async () => {
    const [stats] = (await as("ann", "SHOW STATS FOR TABLE app.messages")) as unknown[][];
    expect(stats?.slice(3, 6)).toEqual([null, null, null]);
    const manifest = (await as("ann", "SHOW MANIFEST")) as unknown[][];
    expect(manifest.map(([, name]) => name)).not.toContain("messages");
  });
});
