/**
 * Tests namespaces: options and owners, the owner's rights, and which namespaces each caller sees.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { CountingClock } from "../../support/counting_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.run(`
    CREATE USER dora INTERNAL ROLE dba; CREATE USER sam INTERNAL ROLE service;
    CREATE USER uma INTERNAL; CREATE USER eve INTERNAL`);
});
afterAll(() => engine[Symbol.asyncDispose]());

async function failureOf(user: string, sql: string): Promise<string> {
  engine.userId = user;
  try {
    return await engine.failure(sql);
  } finally {
    engine.userId = "root";
  }
}

async function messageOf(user: string, sql: string): Promise<string | undefined> {
  engine.userId = user;
  try {
    return (await engine.run(sql)).at(-1)?.message;
  } finally {
    engine.userId = "root";
  }
}

async function namesSeenBy(user: string): Promise<unknown[]> {
  engine.userId = user;
  try {
    return (await engine.rows("SHOW NAMESPACES")).map(([name]) => name);
  } finally {
    engine.userId = "root";
  }
}

test("ALTER NAMESPACE … SET OPTIONS merges strings, numbers and booleans, even across a restart", async () => {
  await engine.run("CREATE NAMESPACE merged");
  expect(
    await messageOf("root", "ALTER NAMESPACE merged SET OPTIONS (a = 'x', B = -1.5, c = true)"),
  ).toBe("Namespace merged altered");
  await engine.run(`ALTER SCHEMA merged SET OPTIONS (c = FALSE, d = word, "__proto__" = 7)`);

  await engine.restart();
  const [row] = await engine.rows("SELECT options FROM system.namespaces WHERE name = 'merged'");
  expect(row).toEqual(['{"a":"x","b":-1.5,"c":false,"d":"word","__proto__":7}']);
});

test("ALTER NAMESPACE … SET OPTIONS refuses invalid options, and changes nothing", async () => {
  await engine.run("CREATE NAMESPACE kept; ALTER NAMESPACE kept SET OPTIONS (a = 1)");
  for (const [options, failure] of [
    ["b = 2, b = 3", "INVALID_OPTION@1:41"],
    ["b = NULL", "INVALID_OPTION@1:34"],
    ["b = X'00'", "INVALID_OPTION@1:34"],
    ["b = 9007199254740993", "INVALID_OPTION@1:34"],
    ["b = 1 + 1", "INVALID_SQL@1:38"],
    ["", "INVALID_SQL@1:34"],
  ] as const) {
    expect(await engine.failure(`ALTER NAMESPACE kept SET OPTIONS (${options})`), options).toBe(
      failure,
    );
  }
  expect(await engine.rows("SELECT options FROM system.namespaces WHERE name = 'kept'")).toEqual([
    ['{"a":1}'],
  ]);
});

test("ALTER NAMESPACE refuses reserved and unknown namespaces and unknown users", async () => {
  await engine.run("CREATE NAMESPACE known");
  for (const [sql, failure] of [
    ["ALTER NAMESPACE default SET OPTIONS (a = 1)", "RESERVED_NAME@1:16"],
    ["ALTER NAMESPACE default OWNER TO uma", "RESERVED_NAME@1:16"],
    ["ALTER NAMESPACE system OWNER TO uma", "RESERVED_NAME@1:16"],
    ["ALTER NAMESPACE nowhere SET OPTIONS (a = 1)", "NAMESPACE_NOT_FOUND@1:16"],
    ["ALTER NAMESPACE nowhere OWNER TO uma", "NAMESPACE_NOT_FOUND@1:16"],
    ["ALTER NAMESPACE known OWNER TO nobody", "USER_NOT_FOUND@1:31"],
    ["CREATE NAMESPACE fresh AUTHORIZATION nobody", "USER_NOT_FOUND@1:37"],
    ["BEGIN READ ONLY; ALTER NAMESPACE known OWNER TO uma; COMMIT", "INVALID_OPERATION@2:17"],
  ] as const) {
    expect(await engine.failure(sql), sql).toBe(failure);
  }
});

test("the owner sets options, and only dba and system name another owner", async () => {
  await engine.run("CREATE NAMESPACE hers AUTHORIZATION uma");
  const options = "ALTER NAMESPACE hers SET OPTIONS (a = 1)";
  const owner = "ALTER NAMESPACE hers OWNER TO uma";

  for (const user of ["uma", "dora", "root"]) {
    expect(await messageOf(user, options), user).toBe("Namespace hers altered");
  }
  for (const user of ["sam", "eve"]) {
    expect(await failureOf(user, options), user).toBe("PERMISSION_DENIED@1:0");
  }
  for (const user of ["uma", "sam", "eve"]) {
    expect(await failureOf(user, owner), user).toBe("PERMISSION_DENIED@1:0");
    expect(await failureOf(user, "DROP NAMESPACE hers"), user).toBe("PERMISSION_DENIED@1:0");
  }
  expect(await messageOf("dora", owner)).toBe("Namespace hers belongs to uma");
});

test("ALTER NAMESPACE … OWNER TO transfers the rights on SHARED tables at once", async () => {
  await engine.run(`CREATE NAMESPACE moved AUTHORIZATION uma;
    CREATE SHARED TABLE moved.t (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'DBA')`);
  const read = "SELECT * FROM moved.t";
  const write = "INSERT INTO moved.t VALUES (1) ON CONFLICT DO NOTHING";
  expect(await messageOf("uma", write)).toBe("Inserted 1 row(s)");
  expect(await failureOf("eve", read)).toStartWith("TABLE_NOT_FOUND");

  await engine.run("ALTER NAMESPACE moved OWNER TO eve");
  expect(await failureOf("uma", read)).toStartWith("TABLE_NOT_FOUND");
  expect(await failureOf("uma", write)).toStartWith("TABLE_NOT_FOUND");
  expect(await messageOf("eve", "ALTER TABLE moved.t ADD COLUMN v INT")).toStartWith("Table moved");
  expect(await messageOf("eve", "CREATE VIEW moved.v AS SELECT id FROM moved.t")).toBe(
    "View moved.v created",
  );
  expect(await failureOf("uma", "DROP VIEW moved.v")).toStartWith("PERMISSION_DENIED");
});

test("DROP USER leaves nothing of a namespace to a later user with the same name", async () => {
  await engine.run(`CREATE USER kim INTERNAL; CREATE NAMESPACE kims AUTHORIZATION kim;
    CREATE SHARED TABLE kims.t (id INT PRIMARY KEY); DROP USER kim; CREATE USER kim INTERNAL`);

  expect(await failureOf("kim", "SELECT * FROM kims.t")).toStartWith("TABLE_NOT_FOUND");
  expect(await failureOf("kim", "DROP TABLE kims.t")).toStartWith("PERMISSION_DENIED");
  expect(await engine.rows("SELECT owner FROM system.namespaces WHERE name = 'kims'")).toEqual([
    [null],
  ]);
});

test("SHOW NAMESPACES shows users only the namespaces that they can use, and administrators all", async () => {
  await engine.run(`CREATE NAMESPACE empty; CREATE NAMESPACE umas AUTHORIZATION uma;
    CREATE NAMESPACE closed; CREATE SHARED TABLE closed.t (id INT PRIMARY KEY);
    CREATE NAMESPACE open; CREATE USER TABLE open.t (id INT PRIMARY KEY)`);
  const all = (await engine.rows("SELECT name FROM system.namespaces")).map(([name]) => name);

  for (const user of ["root", "dora", "sam"]) expect(await namesSeenBy(user), user).toEqual(all);
  const seen = await namesSeenBy("uma");
  expect(seen).toContain("default");
  expect(seen).toContain("umas");
  expect(seen).toContain("open");
  expect(seen).not.toContain("empty");
  expect(seen).not.toContain("closed");
});

test("CREATE NAMESPACE creates all of its objects, or none, and they last", async () => {
  await using fresh = await TestEngine.open();
  const [created] = await fresh.run(`CREATE SCHEMA shop
    CREATE VIEW cheap AS SELECT id FROM goods WHERE price < 10
    CREATE USER TABLE goods (id INT PRIMARY KEY, price INT)
    CREATE SEQUENCE numbers START 5`);
  expect(created?.message).toBe("Namespace shop created with 3 objects");
  await fresh.run("INSERT INTO shop.goods VALUES (1, 5), (2, 50)");

  const sql = "CREATE SCHEMA broken CREATE TABLE t (a INT) CREATE VIEW v AS SELECT missing FROM t";
  expect(await fresh.failure(sql)).toBe("COLUMN_NOT_FOUND@1:68");
  await fresh.run("BEGIN; CREATE SCHEMA wrapped CREATE TABLE t (a INT); COMMIT");
  await fresh.run("BEGIN; CREATE SCHEMA undone CREATE TABLE t (a INT); ROLLBACK");

  await fresh.restart();
  const names = await fresh.rows("SELECT name FROM system.namespaces ORDER BY name");
  expect(names.flat()).toEqual(["default", "public", "shop", "wrapped"]);
  expect(await fresh.rows("SELECT id FROM shop.cheap")).toEqual([[1]]);
  expect(await fresh.rows("SELECT nextval('shop.numbers')")).toEqual([[5]]);
});

test("CREATE NAMESPACE with definitions requires the right to create namespaces", async () => {
  const sql = "CREATE SCHEMA AUTHORIZATION uma CREATE USER TABLE own (id INT PRIMARY KEY)";
  expect(await failureOf("uma", sql)).toBe("PERMISSION_DENIED@1:0");
  expect(await messageOf("dora", sql)).toBe("Namespace uma created with 1 object");
  expect(await messageOf("uma", "CREATE VIEW uma.mine AS SELECT id FROM uma.own")).toBe(
    "View uma.mine created",
  );
  await engine.run("DROP NAMESPACE uma CASCADE");
});

test("DROP NAMESPACE CASCADE yields between tables, and also drops tables that are created meanwhile", async () => {
  const clock = new CountingClock();
  await using many = await TestEngine.open({ clock });
  const tables = Array.from(
    { length: 40 },
    (_, i) => `CREATE SHARED TABLE many.t${i} (id INT PRIMARY KEY)`,
  );
  await many.run(`CREATE NAMESPACE many; CREATE NAMESPACE other; ${tables.join("; ")}`);
  await many.run("CREATE VIEW other.early AS SELECT id FROM many.t39");
  const { yieldCount } = clock;
  const dropped = many.run("DROP NAMESPACE many CASCADE");
  while (clock.yieldCount < yieldCount + 2) await clock.yield();
  await many.run(`
    CREATE SHARED TABLE many.late (id INT PRIMARY KEY);
    CREATE VIEW other.late AS SELECT id FROM many.t38`);
  expect((await dropped).map(({ message }) => message)).toEqual(["Namespace many dropped"]);
  expect(clock.yieldCount).toBeGreaterThanOrEqual(yieldCount + 5);
  const { catalog } = many.database;
  expect(catalog.tables().filter(({ namespace }) => namespace === "many")).toEqual([]);
  expect(catalog.views()).toEqual([]);
  expect(catalog.namespace("many")).toBeUndefined();
});

test("DROP NAMESPACE CASCADE stops between two tables when the server stops", async () => {
  const clock = new CountingClock();
  await using many = await TestEngine.open({ clock });
  const tables = Array.from(
    { length: 40 },
    (_, i) => `CREATE TABLE many.t${i} (id INT PRIMARY KEY)`,
  );
  await many.run(`CREATE NAMESPACE many; ${tables.join("; ")}`);
  const { yieldCount } = clock;
  const failure = many.failure("DROP NAMESPACE many CASCADE");
  while (clock.yieldCount < yieldCount + 2) await clock.yield();
  expect(many.database.sql.shutDown()).toBe(1);
  expect(await failure).toStartWith("SHUTTING_DOWN");
  const { catalog } = many.database;
  const leftCount = catalog.tables().filter(({ namespace }) => namespace === "many").length;
  expect(leftCount).toBeGreaterThan(0);
  expect(leftCount).toBeLessThan(40);
  expect(catalog.namespace("many")).toBeDefined();
});
