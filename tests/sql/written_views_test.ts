/** Tests INSERT, UPDATE and DELETE through views, and WITH CHECK OPTION. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { TestEngine } from "../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(
    "CREATE NAMESPACE app;" +
      "CREATE USER ann INTERNAL ROLE user;" +
      "CREATE TABLE app.t (a INT PRIMARY KEY, b TEXT DEFAULT 'none', c INT);" +
      "CREATE VIEW app.v AS SELECT a, b FROM app.t WHERE a > 0;" +
      "CREATE VIEW app.r AS SELECT b AS bb, a AS aa, a + 100 AS big, lower(b) AS low" +
      " FROM app.t x WHERE x.a < 10;" +
      "CREATE VIEW app.k AS SELECT * FROM app.r WHERE aa > 5 WITH CHECK OPTION;" +
      "CREATE VIEW app.l AS SELECT * FROM app.v WHERE b <> 'x' WITH LOCAL CHECK OPTION",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() =>
  engine.run(
    "DELETE FROM app.t WHERE true; INSERT INTO app.t VALUES (-1,'A',1), (1,'B',2), (2,'C',3)",
  ),
);

const all = (): Promise<unknown> => engine.rows("SELECT a, b, c FROM app.t ORDER BY a");

test("UPDATE and DELETE find only the rows of the view", async () => {
  await engine.run("UPDATE app.v SET b = b || '!'; DELETE FROM app.v WHERE a IN (-1, 2)");
  expect(await all()).toEqual([
    [-1, "A", 1],
    [1, "B!", 2],
  ]);
});

test("INSERT fills the columns of the view in its order, and the others with their defaults", async () => {
  expect(await engine.rows("INSERT INTO app.v VALUES (3, 'D') RETURNING *")).toEqual([[3, "D"]]);
  await engine.run("INSERT INTO app.v (a) VALUES (4); INSERT INTO app.r (aa, bb) SELECT 5, 'E'");
  expect(await engine.rows("SELECT a, b, c FROM app.t WHERE a > 2 ORDER BY a")).toEqual([
    [3, "D", null],
    [4, "none", null],
    [5, "E", null],
  ]);
});

test("renamed and computed columns are read in SET, WHERE and RETURNING", async () => {
  expect(
    await engine.rows("UPDATE app.r SET bb = low || aa WHERE big = 101 RETURNING r.*"),
  ).toEqual([["b1", 1, 101, "b1"]]);
  expect(await engine.rows("DELETE FROM app.r AS z WHERE z.low = 'c' RETURNING z.aa")).toEqual([
    [2],
  ]);
});

test.each([
  "INSERT INTO app.r VALUES ('z', 9, 1)",
  "INSERT INTO app.r (big) VALUES (1)",
  "UPDATE app.r SET big = 1",
  "UPDATE app.r SET (bb, big) = ('z', 1)",
])("%s is refused, because the view computes the column", async (sql) => {
  const { error } = await engine.ask(sql);
  expect(error?.code).toBe("INVALID_OPERATION");
  expect(error?.message).toBe(
    'Cannot write to column "big" of view app.r: the view computes this column',
  );
});

test("FROM, ON CONFLICT and a changing WITH can be used with a view", async () => {
  await engine.run(
    "UPDATE app.v SET b = s.x FROM (VALUES (1, 'from')) AS s (n, x) WHERE v.a = s.n",
  );
  await engine.run(
    "INSERT INTO app.v VALUES (2, 'new') ON CONFLICT (a) DO UPDATE SET b = excluded.b || v.b",
  );
  expect(
    await engine.rows(
      "WITH x AS (UPDATE app.v SET b = b || '+' RETURNING *) SELECT * FROM x ORDER BY a",
    ),
  ).toEqual([
    [1, "from+"],
    [2, "newC+"],
  ]);
});

test("a view of a USER table writes the rows of the caller", async () => {
  await engine.run(
    "CREATE USER TABLE app.own (id INT PRIMARY KEY, v INT);" +
      "CREATE VIEW app.own_low AS SELECT * FROM app.own WHERE v < 10;" +
      "INSERT INTO app.own VALUES (1, 1)",
  );
  await engine.run(
    "EXECUTE AS USER 'ann' (INSERT INTO app.own_low VALUES (1, 2)); EXECUTE AS USER 'ann' (UPDATE app.own_low SET v = 3)",
  );
  expect(await engine.rows("SELECT v FROM app.own")).toEqual([[1]]);
});

test("policies of the table hold for writes through a view", async () => {
  await engine.run(
    "CREATE TABLE app.posts (id INT PRIMARY KEY, author TEXT, text TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED');" +
      "CREATE POLICY mine ON app.posts USING (author = CURRENT_USER);" +
      "CREATE VIEW app.short AS SELECT id, author, text FROM app.posts WHERE length(text) < 5;" +
      "INSERT INTO app.posts VALUES (1, 'ann', 'a'), (2, 'ben', 'b')",
  );
  await engine.run("EXECUTE AS USER 'ann' (UPDATE app.short SET text = 'z')");
  expect(
    await engine.failure("EXECUTE AS USER 'ann' (INSERT INTO app.short VALUES (3, 'ben', 'c'))"),
  ).toStartWith("PERMISSION_DENIED");
  expect(await engine.rows("SELECT id, text FROM app.posts ORDER BY id")).toEqual([
    [1, "z"],
    [2, "b"],
  ]);
});

test("an error of a view's condition reveals no row that a policy hides", async () => {
  await engine.run(
    "CREATE TABLE app.readers (author TEXT, reader TEXT, PRIMARY KEY (author, reader));" +
      "INSERT INTO app.readers VALUES ('ann', 'ann'), ('ben', 'ben');" +
      "CREATE TABLE app.sizes (id INT PRIMARY KEY, author TEXT, size INT) WITH (ACCESS_LEVEL = 'RESTRICTED');" +
      "CREATE POLICY read_sizes ON app.sizes USING (EXISTS (SELECT 1 FROM app.readers r" +
      " WHERE r.author = author AND r.reader = CURRENT_USER()));" +
      "CREATE VIEW app.large AS SELECT * FROM app.sizes WHERE 10 / size < 5;" +
      "INSERT INTO app.sizes VALUES (1, 'ann', 5), (2, 'ben', 0)",
  );
  for (const change of ["UPDATE app.large SET size = 6", "DELETE FROM app.large"]) {
    await engine.run(`EXECUTE AS USER 'ann' (${change} WHERE id = 2)`);
    await engine.run(`EXECUTE AS USER 'ann' (${change} WHERE id > 0)`);
    expect(await engine.failure(change)).toStartWith("DIVISION_BY_ZERO");
  }
  expect(await engine.rows("SELECT id FROM app.sizes")).toEqual([[2]]);
});

test("a query in a view does not read an entry of WITH of the statement that writes the view", async () => {
  await engine.run(
    "CREATE TABLE allowed (id INT PRIMARY KEY); INSERT INTO allowed VALUES (1);" +
      "CREATE VIEW app.w AS SELECT a, b FROM app.t WHERE a IN (SELECT id FROM allowed)" +
      " WITH CHECK OPTION",
  );
  const shadow = "WITH allowed AS (SELECT 2 AS id)";
  const inserted = await engine.ask(
    "WITH allowed AS (SELECT 99 AS id) INSERT INTO app.w SELECT id, 'x' FROM allowed",
  );
  expect(inserted.error?.code).toBe("CHECK_VIOLATION");
  await engine.run(
    `${shadow} UPDATE app.w SET b = 'mine'; ${shadow} DELETE FROM app.w WHERE a > 1`,
  );
  expect(await all()).toEqual([
    [-1, "A", 1],
    [1, "mine", 2],
    [2, "C", 3],
  ]);
});

describe("a column that a view shows twice", () => {
  beforeAll(() => engine.run("CREATE VIEW app.d AS SELECT a, b, b AS b2, a AS a2 FROM app.t"));
  afterAll(() => engine.run("DROP VIEW app.d"));

  test.each([
    "INSERT INTO app.d VALUES (7, 'x', 'y')",
    "INSERT INTO app.d (a, b2, b) VALUES (7, 'x', 'y')",
    "UPDATE app.d SET b = 'x', b2 = 'y'",
    "UPDATE app.d SET (b2, b) = (SELECT 'x', 'y')",
  ])("gets no two values by %s", async (sql) => {
    const before = await all();
    const { error } = await engine.ask(sql);
    expect(`${error?.code}: ${error?.message}`).toMatch(
      /^INVALID_QUERY: Cannot assign to column "b2?" twice in the same statement/,
    );
    expect(await all()).toEqual(before);
  });

  test("is written by each of its names", async () => {
    expect(await engine.rows("INSERT INTO app.d VALUES (7, 'x') RETURNING *")).toEqual([
      [7, "x", "x", 7],
    ]);
    expect(await engine.rows("INSERT INTO app.d (a2, b2) VALUES (8, 'y') RETURNING a, b")).toEqual([
      [8, "y"],
    ]);
    const set = async (sets: string): Promise<unknown> =>
      await engine.rows(`UPDATE app.d SET ${sets} WHERE a = 7 RETURNING b`);
    expect(await set("b = b2 || '1'")).toEqual([["x1"]]);
    expect(await set("b2 = b || '2', a2 = a")).toEqual([["x12"]]);
    expect(await engine.rows("UPDATE app.d SET a2 = 9 WHERE a = 8 RETURNING a")).toEqual([[9]]);
    expect(
      await engine.rows(
        "INSERT INTO app.d VALUES (7, 'z') ON CONFLICT (a2)" +
          " DO UPDATE SET b = excluded.b || excluded.b2 || d.b2 RETURNING b",
      ),
    ).toEqual([["zzx12"]]);
  });
});

test("ON CONFLICT reads the columns that the view computes from the stored and the proposed row", async () => {
  const rows = await engine.rows(
    "INSERT INTO app.r (aa, bb) VALUES (1, 'NEW'), (2, 'Q') ON CONFLICT (aa)" +
      " DO UPDATE SET bb = excluded.low || r.low || excluded.big WHERE excluded.low <> 'q' RETURNING bb, low",
  );
  expect(rows).toEqual([["newb101", "newb101"]]);
  expect(await engine.rows("SELECT a, b FROM app.t WHERE a > 0 ORDER BY a")).toEqual([
    [1, "newb101"],
    [2, "C"],
  ]);
});

test("ON CONFLICT finds an index of an expression by the column names of the view", async () => {
  await engine.run(
    "CREATE TABLE app.mail (id INT PRIMARY KEY, address TEXT);" +
      "CREATE UNIQUE INDEX address_once ON app.mail ((lower(address)));" +
      "CREATE VIEW app.people AS SELECT id AS n, address AS contact FROM app.mail;" +
      "INSERT INTO app.people VALUES (1, 'Ann')",
  );
  expect(
    await engine.rows(
      "INSERT INTO app.people VALUES (2, 'ANN') ON CONFLICT (lower(contact))" +
        " DO UPDATE SET contact = excluded.contact || '!' RETURNING *",
    ),
  ).toEqual([[1, "ANN!"]]);
});

describe("views WITH CHECK OPTION test the rows that are written", () => {
  test.each([
    ["a row beyond the view", "INSERT INTO app.k (aa, bb) VALUES (2, 'x')", "app.k"],
    ["a row beyond a view in it", "INSERT INTO app.k (aa, bb) VALUES (1000, 'x')", "app.r"],
    ["LOCAL tests the view itself", "UPDATE app.l SET b = 'x' WHERE a = 1", "app.l"],
    ["NULL is not true", "INSERT INTO app.l VALUES (7, NULL)", "app.l"],
  ])("%s", async (_what, sql, view) => {
    const before = await all();
    const { error } = await engine.ask(sql);
    expect(error?.code).toBe("CHECK_VIOLATION");
    expect(error?.message).toContain(`the condition of view ${view},`);
    expect(await all()).toEqual(before);
  });

  test("ON CONFLICT tests the rows that it writes, not those that it only proposes", async () => {
    const upsert = (b: string, action: string): string =>
      `INSERT INTO app.l VALUES (1, '${b}') ON CONFLICT (a) DO ${action} RETURNING b`;
    expect(await engine.rows(upsert("x", "NOTHING"))).toEqual([]);
    expect(await engine.rows(upsert("x", "UPDATE SET b = excluded.b || 'y'"))).toEqual([["xy"]]);
    expect(await engine.failure(upsert("x", "UPDATE SET b = excluded.b"))).toStartWith(
      "CHECK_VIOLATION",
    );
    expect(
      await engine.failure("INSERT INTO app.l VALUES (9, 'x') ON CONFLICT (a) DO NOTHING"),
    ).toStartWith("CHECK_VIOLATION");
  });

  test("CHECK_OPTION is also an option of the view, which SET and RESET change", async () => {
    await engine.run(
      "CREATE VIEW app.o WITH (check_option = local) AS SELECT a, b FROM app.v WHERE b <> 'x'",
    );
    const kept = "SELECT check_option FROM information_schema.views WHERE table_name = 'o'";
    expect(await engine.failure("INSERT INTO app.o VALUES (5, 'x')")).toStartWith("CHECK");
    await engine.run(
      "INSERT INTO app.o VALUES (-5, 'y'); ALTER VIEW app.o SET (check_option = cascaded)",
    );
    expect(await engine.rows(kept)).toEqual([["CASCADED"]]);
    expect(await engine.failure("INSERT INTO app.o VALUES (-6, 'y')")).toStartWith("CHECK");
    await engine.run("ALTER VIEW app.o RESET (check_option); INSERT INTO app.o VALUES (6, 'x')");
    expect(await engine.rows(kept)).toEqual([["NONE"]]);
    for (const sql of [
      "CREATE VIEW app.p WITH (check_option = local) AS SELECT a FROM app.v LIMIT 1",
      "CREATE VIEW app.p AS SELECT DISTINCT a FROM app.v WITH CHECK OPTION",
    ]) {
      expect(await engine.failure(sql)).toStartWith("INVALID_DEFINITION");
    }
    const both = "CREATE VIEW app.p WITH (check_option = local) AS TABLE app.v WITH CHECK OPTION";
    expect(await engine.failure(both)).toStartWith("INVALID_OPTION");
    await engine.run("DROP VIEW app.o; DELETE FROM app.t WHERE a IN (-5, 6)");
  });

  test("rows that meet the conditions are written, and LOCAL tests no view in the view", async () => {
    await engine.run(
      "INSERT INTO app.k (aa, bb) VALUES (8, 'H'); INSERT INTO app.l VALUES (-7, 'G')",
    );
    await engine.run("UPDATE app.k SET bb = 'I' WHERE low = 'h'");
    expect(await engine.rows("SELECT b FROM app.t WHERE a IN (8, -7) ORDER BY a")).toEqual([
      ["G"],
      ["I"],
    ]);
  });
});

describe("writes through a view that cannot be written are refused", () => {
  test.each([
    ["SELECT DISTINCT a FROM app.t", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT count(*) AS n FROM app.t", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT a FROM app.t GROUP BY a", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT a FROM app.t LIMIT 1", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT a, row_number() OVER () AS n FROM app.t", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT a, generate_series(1, 2) AS n FROM app.t", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT t.a FROM app.t, app.v", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT a FROM app.t UNION SELECT 1", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["WITH w AS (SELECT 1) SELECT a FROM app.t", "DELETE FROM app.bad", "READ_ONLY_OBJECT"],
    ["SELECT a FROM app.t", "UPDATE app.bad SET c = 1", "COLUMN_NOT_FOUND"],
    ["SELECT a, b || 'x' AS d FROM app.t", "UPDATE app.bad SET d = 'y'", "INVALID_OPERATION"],
    [
      "SELECT b || 'x' AS d, a FROM app.t",
      "INSERT INTO app.bad VALUES ('y', 9)",
      "INVALID_OPERATION",
    ],
    ["SELECT a FROM app.t", "INSERT INTO app.bad (a) VALUES (9) RETURNING c", "COLUMN_NOT_FOUND"],
    [
      "SELECT a FROM app.t",
      "MERGE INTO app.bad USING app.t ON bad.a = t.a WHEN MATCHED THEN DELETE",
      "READ_ONLY_OBJECT",
    ],
  ])("%s: %s", async (query, sql, code) => {
    await engine.run(`DROP VIEW IF EXISTS app.bad; CREATE VIEW app.bad AS ${query}`);
    expect(await engine.failure(sql)).toStartWith(code);
  });
});

test("a view that runs with the rights of its owner is not written, nor a view of it", async () => {
  await engine.run(
    "CREATE VIEW app.owned WITH (security_invoker = false) AS SELECT a, b FROM app.t;" +
      "CREATE VIEW app.over AS SELECT * FROM app.owned",
  );
  for (const view of ["owned", "over"]) {
    const { error } = await engine.ask(`DELETE FROM app.${view}`);
    expect([error?.code, error?.message]).toEqual([
      "READ_ONLY_OBJECT",
      "Cannot write to view app.owned: the view runs with the rights of its owner",
    ]);
  }
});

test("information_schema names the views and columns that can be written", async () => {
  const views = "SELECT table_name, is_updatable, check_option FROM information_schema.views";
  expect(await engine.rows(`${views} WHERE table_name IN ('v', 'k', 'l') ORDER BY 1`)).toEqual([
    ["k", "YES", "CASCADED"],
    ["l", "YES", "LOCAL"],
    ["v", "YES", "NONE"],
  ]);
  expect(
    await engine.rows(
      "SELECT column_name, is_updatable FROM information_schema.columns" +
        " WHERE table_name = 'r' ORDER BY ordinal_position",
    ),
  ).toEqual([
    ["bb", "YES"],
    ["aa", "YES"],
    ["big", "NO"],
    ["low", "NO"],
  ]);
});

test("the DEFAULT of a view's column outlasts a restart, and takes no numbers from a sequence", async () => {
  await engine.run(
    "CREATE VIEW app.given AS SELECT a, b FROM app.t; CREATE SEQUENCE app.counting;" +
      "ALTER VIEW app.given ALTER COLUMN b SET DEFAULT 'kept'",
  );
  await engine.restart();
  await engine.run("INSERT INTO app.given (a) VALUES (70); INSERT INTO app.t (a) VALUES (71)");
  expect(await engine.rows("SELECT a, b FROM app.t WHERE a >= 70 ORDER BY a")).toEqual([
    [70, "kept"],
    [71, "none"],
  ]);
  const numbered = "ALTER VIEW app.given ALTER COLUMN a SET DEFAULT nextval('app.counting')";
  expect(await engine.failure(numbered)).toStartWith("UNSUPPORTED_FEATURE");
  engine.userId = "ann";
  const denied = "ALTER VIEW app.given ALTER COLUMN b SET DEFAULT 'hers'";
  expect(await engine.failure(denied)).toStartWith("PERMISSION_DENIED");
  engine.userId = "root";
  await engine.run("DROP VIEW app.given");
});
