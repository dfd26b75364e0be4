/**
 * Tests views that run with their owner's rights: the callers who may read them, and the rows that
 * they show to each caller. No user can use a view to show others more than that user may read.
 *
 * Ann is a user, Sam a service and Dora a dba. Ned is a user who owns the namespace ned. Only Dora
 * and root may read the salaries in app.people.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../../support/sql_engine.ts";

const SETUP = `
  CREATE NAMESPACE app; CREATE NAMESPACE open;
  CREATE USER ann INTERNAL; CREATE USER ben INTERNAL; CREATE USER ned INTERNAL;
  CREATE USER sam INTERNAL ROLE service; CREATE USER dora INTERNAL ROLE dba;
  CREATE NAMESPACE ned AUTHORIZATION ned;
  CREATE TABLE app.people (id INT PRIMARY KEY, name TEXT, salary INT, team TEXT)
    WITH (ACCESS_LEVEL = 'DBA');
  INSERT INTO app.people VALUES (1, 'Ada', 100, 'red'), (2, 'Bo', 200, 'blue'), (3, 'Cy', 300, 'red');
  CREATE USER TABLE app.notes (id INT PRIMARY KEY, note TEXT);
  INSERT INTO app.notes VALUES (1, 'of root');
  CREATE TABLE app.posts (id INT PRIMARY KEY, author TEXT, body TEXT)
    WITH (ACCESS_LEVEL = 'RESTRICTED');
  INSERT INTO app.posts VALUES (1, 'ann', 'a'), (2, 'ned', 'n'), (3, 'sam', 's'), (4, 'dora', 'd');
  CREATE POLICY authors ON app.posts FOR SELECT TO user USING (author = CURRENT_USER());
`;

/** The options of a view that everybody may read and that runs with its owner's rights. */
const OWN = "WITH (security_invoker = false, access_level = 'PUBLIC')";

let engine: TestEngine;

beforeEach(async () => {
  await engine?.[Symbol.asyncDispose]();
  engine = await TestEngine.open();
  await engine.run(SETUP);
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Runs a statement as a user. Returns its rows, or its error as "CODE: message". */
async function as(userId: string, sql: string): Promise<unknown> {
  engine.userId = userId;
  const { error, results } = await engine.ask(sql);
  engine.userId = "root";
  if (error !== undefined) return `${error.code}: ${error.message}`;
  return results.at(-1)?.rows ?? results.at(-1)?.message;
}

/** Creates a view as a user. */
async function create(userId: string, view: string): Promise<void> {
  expect(await as(userId, `CREATE VIEW ${view}`)).toStartWith("View ");
}

describe("a view can have the rights of its owner", () => {
  const NAMES = [
    [1, "Ada"],
    [2, "Bo"],
    [3, "Cy"],
  ];

  test("a view shows columns of a table that its readers may not read", async () => {
    await create("dora", `open.names ${OWN} AS SELECT id, name FROM app.people`);
    for (const reader of ["ann", "sam", "dora", "root"]) {
      expect(await as(reader, "SELECT * FROM open.names ORDER BY id")).toEqual(NAMES);
    }
    expect(await as("ann", "SELECT name FROM open.names WHERE id = 2")).toEqual([["Bo"]]);
    expect(await as("sam", "EXECUTE AS USER 'ann' (SELECT count(*) FROM open.names)")).toEqual([
      [3],
    ]);
    expect(await as("ann", "SELECT salary FROM open.names")).toStartWith("COLUMN_NOT_FOUND");
    expect(await as("ann", "SELECT * FROM app.people")).toBe(
      "TABLE_NOT_FOUND: Cannot find table app.people",
    );
    await engine.restart();
    expect(await as("ann", "SELECT * FROM open.names ORDER BY id")).toEqual(NAMES);
  });

  test("a view hides the rows that it excludes from conditions that fail", async () => {
    await create("dora", `open.red ${OWN} AS SELECT id, name FROM app.people WHERE team = 'red'`);
    for (const condition of ["1 / (id - 2) < 5", "name::int = 1 AND id = 2"]) {
      const answer = await as("ann", `SELECT count(*) FROM open.red WHERE ${condition}`);
      expect(answer, condition).toEqual([[condition.startsWith("1") ? 2 : 0]]);
    }
  });

  test("a view is readable for the roles of its access level, and for the owner of its namespace", async () => {
    const readers = async (): Promise<string> => {
      const names: string[] = [];
      for (const reader of ["ann", "ned", "sam", "dora"]) {
        const answer = await as(reader, "SELECT count(*) FROM ned.v");
        if (Array.isArray(answer)) names.push(reader);
        else expect(answer).toBe("TABLE_NOT_FOUND: Cannot find table ned.v");
        const listed = await as(reader, "SHOW TABLES IN ned");
        expect(listed, reader).toHaveLength(Array.isArray(answer) ? 1 : 0);
      }
      return names.join(" ");
    };
    const view = "ned.v WITH (security_invoker = off) AS SELECT id FROM app.people";
    await create("dora", view);
    expect(await readers()).toBe("ned sam dora");
    await as("dora", "ALTER VIEW ned.v SET (access_level = 'DBA')");
    expect(await readers()).toBe("ned dora");
    await as("dora", "ALTER VIEW ned.v SET (ACCESS_LEVEL = public)");
    expect(await readers()).toBe("ann ned sam dora");
    await as("dora", "ALTER VIEW ned.v RESET (access_level)");
    expect(await readers()).toBe("ned sam dora");
    await as("dora", "ALTER VIEW ned.v RESET (security_invoker)");
    expect(await readers()).toBe("dora");
  });

  test("a view shows each reader the reader's own rows of USER tables", async () => {
    await as("ann", "INSERT INTO app.notes VALUES (1, 'of ann')");
    await create(
      "dora",
      `open.both ${OWN} AS SELECT note, name FROM app.notes n JOIN app.people p ON p.id = n.id`,
    );
    expect(await as("ann", "SELECT * FROM open.both")).toEqual([["of ann", "Ada"]]);
    expect(await as("root", "SELECT * FROM open.both")).toEqual([["of root", "Ada"]]);
    expect(await as("dora", "SELECT * FROM open.both")).toEqual([]);
  });

  test("a view applies its owner's policies with the id of the reader", async () => {
    await create("ned", `ned.mine ${OWN} AS SELECT id, CURRENT_USER() FROM app.posts`);
    expect(await as("ann", "TABLE ned.mine")).toEqual([[1, "ann"]]);
    expect(await as("sam", "TABLE ned.mine")).toEqual([[3, "sam"]]);
    expect(await as("dora", "TABLE ned.mine")).toEqual([[4, "dora"]]);
    expect(await as("ann", "EXPLAIN TABLE ned.mine")).toStartWith("PERMISSION_DENIED");
    expect(String(await as("root", "EXPLAIN EXECUTE AS USER 'ann' (TABLE ned.mine)"))).toContain(
      "author = current_user",
    );
    await create("dora", `open.posts ${OWN} AS SELECT id FROM app.posts`);
    expect(await as("ann", "SELECT count(*) FROM open.posts")).toEqual([[4]]);
    // The same query twice: with the reader's own rights, and through both views.
    const both =
      "SELECT (SELECT count(*) FROM app.posts), (SELECT count(*) FROM open.posts), (SELECT count(*) FROM ned.mine)";
    expect(await as("ben", both)).toEqual([[0, 4, 0]]);
    expect(await as("ann", both)).toEqual([[1, 4, 1]]);
    expect(await as("dora", both)).toEqual([[4, 4, 1]]);
  });

  test("a view reads earlier states with the rights of its owner", async () => {
    await create(
      "dora",
      `open.then ${OWN} AS SELECT id FROM app.people FOR SYSTEM_TIME AS OF NOW()`,
    );
    await create("dora", `open.log ${OWN} AS SELECT op FROM changes('app.people', 0)`);
    expect(await as("ann", "SELECT count(*) FROM open.then")).toEqual([[3]]);
    expect(await as("ann", "SELECT DISTINCT op FROM open.log")).toEqual([["insert"]]);
  });

  test("a view of a system view requires the reader's right to that system view", async () => {
    await create("dora", `open.users ${OWN} AS SELECT user_id FROM system.users`);
    expect(await as("ann", "SELECT * FROM open.users")).toStartWith("PERMISSION_DENIED");
  });
});

describe("views can read other views", () => {
  test("a view with the rights of its reader has them within any other view", async () => {
    await create("dora", "app.plain AS SELECT id FROM app.people");
    await create("dora", `open.outer ${OWN} AS SELECT id FROM app.plain`);
    expect(await as("dora", "SELECT count(*) FROM open.outer")).toEqual([[3]]);
    expect(await as("ann", "SELECT count(*) FROM open.outer")).toBe(
      "TABLE_NOT_FOUND: Cannot find table open.outer",
    );
  });

  test("each view with the rights of its owner has those of its own owner", async () => {
    await create("root", `app.inner ${OWN} AS SELECT id FROM app.people`);
    await create("ned", `ned.outer ${OWN} AS SELECT id FROM app.inner`);
    await create("ned", "ned.plain AS SELECT id FROM ned.outer");
    expect(await as("ann", "SELECT count(*) FROM ned.plain")).toEqual([[3]]);
    // As a user, Ned may no longer read the inner view.
    await as("root", "ALTER VIEW app.inner SET (access_level = 'PRIVATE')");
    for (const view of ["ned.outer", "ned.plain"]) {
      expect(await as("sam", `SELECT count(*) FROM ${view}`)).toBe(
        "PERMISSION_DENIED: Cannot read view ned.outer: it runs with the rights of its owner, who no longer has the necessary rights",
      );
    }
    expect(await as("sam", "SELECT count(*) FROM app.inner")).toEqual([[3]]);
  });
});

describe("a view depends on the rights of its owner", () => {
  const STATE =
    "SELECT table_name, security_invoker, access_level, view_owner, is_in_force FROM information_schema.views";

  test.each(["ALTER USER dora SET ROLE user", "DROP USER dora"])(
    "a view is unusable once its owner has lost the rights: %s",
    async (statement) => {
      await create("dora", `open.names ${OWN} AS SELECT id, name FROM app.people`);
      const sql = "SELECT count(*) FROM open.names";
      expect(await as("ann", sql)).toEqual([[3]]);
      expect(await as("root", STATE)).toEqual([["names", false, "PUBLIC", "dora", true]]);
      await engine.run(statement);
      for (const reader of ["ann", "root"]) {
        expect(await as(reader, sql)).toBe(
          "PERMISSION_DENIED: Cannot read view open.names: it runs with the rights of its owner, who no longer has the necessary rights",
        );
      }
      expect(await as("root", STATE)).toEqual([["names", false, "PUBLIC", "dora", false]]);
      await engine.run("ALTER VIEW open.names SET (security_invoker = false)");
      expect(await as("ann", sql)).toEqual([[3]]);
      expect(await as("ann", STATE)).toEqual([["names", false, "PUBLIC", null, true]]);
      expect(await as("root", STATE)).toEqual([["names", false, "PUBLIC", "root", true]]);
    },
  );

  test("the owner of a view is the user who wrote the text, so nobody uses the rights of a former owner", async () => {
    await create("dora", `ned.ids ${OWN} AS SELECT id FROM app.people`);
    expect(
      await as(
        "ned",
        `CREATE OR REPLACE VIEW ned.ids ${OWN} AS SELECT id, id AS x FROM app.people`,
      ),
    ).toBe("TABLE_NOT_FOUND: Cannot find table app.people");
    await create("dora", "ned.plain AS SELECT id FROM app.people");
    for (const view of ["ned.ids", "ned.plain"]) {
      expect(await as("ned", `ALTER VIEW ${view} SET (security_invoker = false)`)).toBe(
        `PERMISSION_DENIED: Cannot alter view ${view}: it would run with your rights, but you are not allowed to read all objects that it reads`,
      );
    }
    expect(await as("ned", "ALTER VIEW ned.ids SET (security_invoker = true)")).toBe(
      "View ned.ids altered",
    );
    expect(await as("ann", "ALTER VIEW ned.ids SET (security_invoker = true)")).toStartWith(
      "PERMISSION_DENIED: Cannot run ALTER VIEW on ned.ids",
    );
  });

  test("the owner of a view is the user who replaced the text, and options that are not repeated are lost", async () => {
    await create("dora", `open.names ${OWN} AS SELECT id FROM app.people`);
    await engine.run(`CREATE OR REPLACE VIEW open.names ${OWN} AS SELECT id, name FROM app.people`);
    expect(await as("root", STATE)).toEqual([["names", false, "PUBLIC", "root", true]]);
    await engine.run("CREATE OR REPLACE VIEW open.names AS SELECT id, name FROM app.people");
    expect(await as("root", STATE)).toEqual([["names", true, null, null, true]]);
    expect(await as("ann", "SELECT * FROM open.names")).toStartWith("TABLE_NOT_FOUND");
  });
});

test("a view keeps its owner and its level when it is renamed or gets a comment", async () => {
  await create("dora", `open.names ${OWN} AS SELECT id FROM app.people`);
  await engine.run("ALTER VIEW open.names RENAME TO ids; COMMENT ON VIEW open.ids IS 'numbers'");
  await engine.run("ALTER TABLE app.people RENAME TO staff");
  expect(await as("ann", "SELECT count(*) FROM open.ids")).toEqual([[3]]);
  const [row] = (await as("ann", "SHOW TABLES IN open")) as unknown[][];
  expect([row?.[1], row?.[3], row?.[6], row?.[9]]).toEqual(["ids", "VIEW", "numbers", "PUBLIC"]);
});

test("options that PostgreSQL writes are accepted with the same meaning", async () => {
  await engine.run(
    "CREATE VIEW open.a WITH (security_invoker='true') AS SELECT id FROM app.people;" +
      "CREATE VIEW open.b WITH (security_barrier = true) AS SELECT id FROM app.people;" +
      "CREATE VIEW open.c WITH (security_barrier='true', security_invoker='false') AS SELECT id FROM app.people",
  );
  expect(
    await engine.rows(
      "SELECT table_name, security_invoker FROM information_schema.views ORDER BY 1",
    ),
  ).toEqual([
    ["a", true],
    ["b", true],
    ["c", false],
  ]);
});

test.each([
  [
    "SET (access_level = 'PUBLIC')",
    "Cannot set ACCESS_LEVEL on a view that runs with its reader's rights: the tables that it reads",
  ],
  [
    "SET (security_invoker = false, access_level = 'RESTRICTED')",
    "it must be one of 'PUBLIC', 'PRIVATE', 'DBA'",
  ],
  ["SET (security_invoker = maybe)", `Cannot set SECURITY_INVOKER to "maybe"`],
  ["SET (security_barrier = 7)", "Cannot set SECURITY_BARRIER to"],
  ["SET (check_option = some)", `Cannot set CHECK_OPTION to "some": it must be one of 'local'`],
  [
    "SET (fillfactor = 7)",
    `Cannot set option "fillfactor" on a view: the options are SECURITY_INVOKER, SECURITY_BARRIER`,
  ],
  ["SET (security_invoker = true, security_invoker = false)", "Cannot set SECURITY_INVOKER twice"],
  ["RESET (ttl_seconds)", `Cannot set option "ttl_seconds" on a view`],
])("ALTER VIEW … %s is refused", async (change, message) => {
  await create("dora", "open.v AS SELECT id FROM app.people");
  const answer = await as("dora", `ALTER VIEW open.v ${change}`);
  expect(answer).toStartWith("INVALID_OPTION: ");
  expect(answer).toContain(message);
  if (!change.startsWith("SET")) return;
  const options = change.slice("SET ".length);
  expect(await as("dora", `CREATE VIEW open.w WITH ${options} AS SELECT 1 AS one`)).toBe(answer);
});
