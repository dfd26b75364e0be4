/**
 * Tests the statements for storages, the errors that they can raise, and tables whose storage
 * exists or is missing.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

let root: string;
let engine: TestEngine;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "tidemark-storages-"));
  engine = await TestEngine.open({ config: `storage.allowed_roots = [${JSON.stringify(root)}]` });
});

afterEach(async () => {
  await engine[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

const TABLE = "(id INT PRIMARY KEY, v TEXT)";

function create(storageId: string, rest = ""): string {
  return `CREATE STORAGE ${storageId} TYPE filesystem PATH '${root}/${storageId}' ${rest}`;
}

/** Returns the names of the segment files in a storage. */
function segmentsIn(storageId: string): string[] {
  const names = readdirSync(join(root, storageId, "segments"), { recursive: true }) as string[];
  return names.filter((name) => /\.(?:seg|dv)$/.test(name)).toSorted();
}

async function messageOf(sql: string): Promise<string | undefined> {
  return (await engine.ask(sql)).error?.message;
}

test("a table has all its segments and deletion vectors in its storage", async () => {
  await engine.run(create("fast"));
  await engine.run(
    `CREATE TABLE t ${TABLE} WITH (STORAGE_ID = 'fast'); CREATE USER TABLE u ${TABLE} WITH (STORAGE_ID = 'fast')`,
  );
  await engine.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'); INSERT INTO u VALUES (1, 'c')");
  await engine.run("STORAGE FLUSH ALL; UPDATE t SET v = 'd' WHERE id = 1; STORAGE FLUSH TABLE t");
  expect(segmentsIn("fast")).toEqual([
    "default/t/1/1.1.dv",
    "default/t/1/1.seg",
    "default/t/1/3.seg",
    "default/u/users/2/2.seg",
  ]);
  expect(readdirSync(join(engine.dataPath, "segments"), { recursive: true })).toEqual([]);
  expect(readdirSync(join(root, "fast", "tmp"))).toEqual([]);
  await engine.restart();
  expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
    [1, "d"],
    [2, "b"],
  ]);
  const placed = "SELECT DISTINCT table_name, storage_id FROM system.segments ORDER BY 1";
  expect(await engine.rows(placed)).toEqual([
    ["t", "fast"],
    ["u", "fast"],
  ]);
  await engine.run("STORAGE COMPACT TABLE t; DROP TABLE u");
  await until(() => !segmentsIn("fast").some((name) => name.startsWith("default/u")));
  expect(await engine.rows("SELECT v FROM t WHERE id = 2")).toEqual([["b"]]);
});

test("SHOW STORAGES and system.storages list local and the others, with paths for callers who may see them", async () => {
  await engine.run(
    create(
      "fast",
      `NAME 'Fast disk' DESCRIPTION 'NVMe' SHARED_TABLES_TEMPLATE 'x/{tableName}.{namespace}'`,
    ),
  );
  const shown = "SELECT storage_id, storage_name, description, storage_type, base_directory, ";
  const templates = "shared_tables_template, user_tables_template FROM system.storages";
  expect((await engine.rows(`${shown}${templates}`))[1]).toEqual([
    "fast",
    "Fast disk",
    "NVMe",
    "filesystem",
    `${root}/fast`,
    "x/{tableName}.{namespace}",
    "{namespace}/{tableName}/{userId}",
  ]);
  expect((await engine.rows("SHOW STORAGES")).map(([id]) => id)).toEqual(["local", "fast"]);
  const total = "SELECT metric_value FROM system.stats WHERE metric_name = 'total_storages'";
  expect(await engine.rows(total)).toEqual([["2"]]);
  await engine.run("CREATE USER eve INTERNAL");
  engine.userId = "eve";
  expect((await engine.rows("SHOW STORAGES")).map((row) => row[4])).toEqual([null, null]);
});

test("CREATE STORAGE accepts BASE_DIRECTORY for PATH, creates the directory, and uses its templates", async () => {
  const template = "SHARED_TABLES_TEMPLATE 'of-{namespace}/{tableName}/here'";
  await engine.run(
    `CREATE STORAGE slow TYPE filesystem ${template} BASE_DIRECTORY '${root}/slow'; ` +
      `CREATE TABLE t ${TABLE} WITH (STORAGE_ID = 'slow'); INSERT INTO t VALUES (1, 'a'); STORAGE FLUSH TABLE t`,
  );
  expect(segmentsIn("slow")).toEqual(["of-default/t/here/1/1.seg"]);
  // The option is fixed when the table is created.
  await engine.run("ALTER TABLE t SET (COMPRESSION = 'none'); INSERT INTO t VALUES (2, 'b')");
  await engine.run("STORAGE FLUSH TABLE t");
  expect(segmentsIn("slow")).toHaveLength(2);
});

const REFUSED: readonly (readonly [sql: string, failure: string, message: RegExp])[] = [
  ["CREATE STORAGE s TYPE s3 BUCKET 'b'", "UNSUPPORTED_FEATURE@1:22", /TYPE s3/],
  ["CREATE STORAGE s TYPE tape PATH '/x'", "UNSUPPORTED_FEATURE@1:22", /TYPE tape/],
  ["CREATE STORAGE s TYPE filesystem", "INVALID_OPTION@1:0", /PATH is missing/],
  ["CREATE STORAGE s TYPE filesystem BUCKET 'b'", "INVALID_OPTION@1:33", /TYPE s3/],
  [
    "CREATE STORAGE s TYPE filesystem SIZE 'b'",
    "INVALID_OPTION@1:33",
    /the options are BASE_DIRECTORY/,
  ],
  ["CREATE STORAGE \"a b\" TYPE filesystem PATH '/x'", "INVALID_NAME@1:15", /a b/],
  ["CREATE STORAGE local TYPE filesystem PATH '/x'", "ALREADY_EXISTS@1:15", /already exists/],
  [
    "CREATE STORAGE s TYPE filesystem PATH '/x' BASE_DIRECTORY '/y'",
    "INVALID_OPTION@1:43",
    /are the same option/,
  ],
  ["ALTER STORAGE local SET NAME 'x'", "INVALID_OPERATION@1:14", /data directory/],
  ["ALTER STORAGE nope SET NAME 'x'", "OBJECT_NOT_FOUND@1:14", /"nope"/],
  ["ALTER STORAGE nope SET PATH '/x'", "INVALID_OPTION@1:23", /SET|set PATH/i],
  ["DROP STORAGE local", "INVALID_OPERATION@1:13", /data directory/],
  ["DROP STORAGE nope", "OBJECT_NOT_FOUND@1:13", /"nope"/],
  ["STORAGE CHECK nope", "OBJECT_NOT_FOUND@1:14", /"nope"/],
  [`CREATE TABLE t ${TABLE} WITH (STORAGE_ID = 'nope')`, "OBJECT_NOT_FOUND@1:50", /"nope"/],
  [
    `CREATE STREAM TABLE t ${TABLE} WITH (TTL_SECONDS = 9, STORAGE_ID = 'local')`,
    "INVALID_OPTION@1:74",
    /STORAGE_ID/,
  ],
];

describe("storages are refused with position and reason", () => {
  test.each(REFUSED)("this storage is refused: %s", async (sql, failure, message) => {
    expect(await engine.failure(sql)).toBe(failure);
    expect(await messageOf(sql)).toMatch(message);
  });
});

const BAD_TEMPLATES: readonly (readonly [name: string, value: string])[] = [
  ["SHARED_TABLES_TEMPLATE", ""],
  ["SHARED_TABLES_TEMPLATE", "{namespace}"],
  ["SHARED_TABLES_TEMPLATE", "{namespace}/{tableName}/{userId}"],
  ["SHARED_TABLES_TEMPLATE", "/{namespace}/{tableName}"],
  ["SHARED_TABLES_TEMPLATE", "{namespace}/{tableName}/"],
  ["SHARED_TABLES_TEMPLATE", "../{namespace}/{tableName}"],
  ["SHARED_TABLES_TEMPLATE", "{namespace}/./{tableName}"],
  ["SHARED_TABLES_TEMPLATE", "{namespace}//{tableName}"],
  ["SHARED_TABLES_TEMPLATE", "{namespace}/{tableName}/{other}"],
  ["SHARED_TABLES_TEMPLATE", `{namespace}/{tableName}/${"x".repeat(200)}`],
  ["SHARED_TABLES_TEMPLATE", "{namespace}{tableName}{tableName}{tableName}"],
  ["USER_TABLES_TEMPLATE", "{namespace}/{tableName}"],
  ["USER_TABLES_TEMPLATE", "{tableName}/{userId}"],
];

test.each(BAD_TEMPLATES)("CREATE STORAGE refuses %s '%s'", async (name, value) => {
  expect(await engine.failure(create("s", `${name} '${value}'`))).toStartWith("INVALID_OPTION@1:");
  expect(existsSync(join(root, "s"))).toBe(false);
});

test("a table with the longest names can be flushed to a storage with the longest path and template", async () => {
  const deep = join(root, ...Array.from({ length: 8 }, () => "d".repeat(240)));
  mkdirSync(deep, { recursive: true });
  const path = `${deep}/${"e".repeat(2048 - deep.length - 1)}`;
  const long = `CREATE STORAGE s TYPE filesystem PATH '${path}`;
  expect(await engine.failure(`${long}e'`)).toBe("INVALID_OPTION@1:33");
  expect(await messageOf(`${long}e'`)).toMatch(/longer than 2048 bytes/);
  const template = `{namespace}{tableName}${"{tableName}/".repeat(13)}yyyyyy`;
  await engine.run(`${long}' SHARED_TABLES_TEMPLATE '${template}'`);
  const [space, table] = ["n".repeat(64), "t".repeat(64)];
  await engine.run(`CREATE NAMESPACE ${space}`);
  const name = `${space}.${table}`;
  await engine.run(`CREATE TABLE ${name} ${TABLE} WITH (STORAGE_ID = 's')`);
  await engine.run(`INSERT INTO ${name} VALUES (1, 'a'); STORAGE FLUSH TABLE ${name}`);
  expect(await engine.rows("SELECT storage_id FROM system.segments")).toEqual([["s"]]);
  await engine.database.close();
  const segments = join(path, "segments");
  const names = readdirSync(segments, { recursive: true }) as string[];
  const flushed = names.find((found) => found.endsWith(".seg")) ?? "";
  writeFileSync(join(segments, flushed, "../99.seg"), "");
  await engine.reopen();
  expect(readdirSync(join(path, "lost+found"))).toEqual(["1-99.seg"]);
});

test("CREATE STORAGE refuses directories that are not allowed, not empty, or in another storage", async () => {
  await engine.run(create("fast"));
  mkdirSync(join(root, "full"));
  writeFileSync(join(root, "full", "file"), "x");
  symlinkSync("/", join(root, "link"));
  writeFileSync(join(root, "plain"), "x");
  const paths: readonly (readonly [string, string, RegExp])[] = [
    ["/", "INVALID_OPTION", /must be absolute/],
    ["relative", "INVALID_OPTION", /must be absolute/],
    [`${root}/a/../b`, "INVALID_OPTION", /must be absolute/],
    ["/elsewhere", "INVALID_OPTION", /allows/],
    [root, "INVALID_OPTION", /allowed_roots itself/],
    [`${root}/link/x`, "INVALID_OPTION", /leads through a symbolic link to/],
    [`${root}/no/parent`, "INVALID_OPTION", /no directory/],
    [`${root}/full`, "INVALID_OPTION", /not empty/],
    [`${root}/fast`, "INVALID_OPTION", /storage fast is in/],
    [`${root}/fast/segments/x`, "INVALID_OPTION", /storage fast is in/],
    [`${root}/plain`, "STORAGE_UNAVAILABLE", /ENOTDIR/],
  ];
  for (const [path, code, message] of paths) {
    const sql = `CREATE STORAGE other TYPE filesystem PATH '${path}'`;
    expect(await engine.failure(sql), path).toStartWith(`${code}@1`);
    expect(await messageOf(sql)).toMatch(message);
  }
  expect(await engine.failure(create("fast"))).toBe("ALREADY_EXISTS@1:15");
  // The removal of unused segment files would delete a backup at this path.
  expect(await engine.failure(`BACKUP DATABASE TO '${root}/fast/segments/b'`)).toStartWith(
    "INVALID_OPTION@1",
  );
});

test("CREATE STORAGE and BACKUP recognize links that lead into a storage or a backup", async () => {
  mkdirSync(join(root, "real"));
  symlinkSync(join(root, "real"), join(root, "link"));
  await engine.run(`CREATE STORAGE fast TYPE filesystem PATH '${root}/link/fast'`);
  await engine.run(`BACKUP DATABASE TO '${root}/real/backup'`);
  symlinkSync(join(root, "real", "backup"), join(root, "copied"));
  symlinkSync(join(root, "real", "fast", "segments"), join(root, "deep"));
  const refused: readonly (readonly [string, RegExp])[] = [
    [`${root}/real/fast`, /storage fast is in/],
    [`${root}/real/fast/x`, /storage fast is in/],
    [`${root}/deep/x`, /storage fast is in/],
    [`${root}/copied/x`, /inside the backup/],
  ];
  for (const [path, message] of refused) {
    const sql = `CREATE STORAGE other TYPE filesystem PATH '${path}'`;
    expect(await engine.failure(sql), path).toStartWith("INVALID_OPTION@1");
    expect(await messageOf(sql)).toMatch(message);
  }
  const backup = `BACKUP DATABASE TO '${root}/deep/b'`;
  expect(await engine.failure(backup)).toStartWith("INVALID_OPTION@1");
});

test("CREATE STORAGE says what to do about the remains of one that a crash interrupted", async () => {
  await engine.run(create("fast"));
  const files = readdirSync(join(root, "fast"));
  cpSync(join(root, "fast"), join(root, "made"), { recursive: true });
  const { error } = await engine.ask(create("made"));
  expect(error?.message).toMatch(/already a storage/);
  expect(error?.hint).toMatch(/empty it/);
  for (const name of files) rmSync(join(root, "made", name), { recursive: true });
  await engine.run(create("made"));
});

test("a dropped storage leaves its directory empty, and can be created there again", async () => {
  await engine.run(`${create("fast")}; CREATE TABLE t ${TABLE} WITH (STORAGE_ID = 'fast')`);
  expect(await engine.failure("DROP STORAGE fast")).toBe("DEPENDENT_OBJECTS@1:13");
  expect(await messageOf("DROP STORAGE fast")).toMatch(/1 table$/);
  const altered = "ALTER STORAGE fast SET SHARED_TABLES_TEMPLATE '{namespace}-{tableName}'";
  expect(await engine.failure(altered)).toBe("DEPENDENT_OBJECTS@1:14");
  await engine.run("ALTER STORAGE fast SET NAME 'a' SET DESCRIPTION 'b'");
  await engine.run("INSERT INTO t VALUES (1, 'a'); STORAGE FLUSH TABLE t; DROP TABLE t");
  await engine.run(altered);
  await engine.run("DROP STORAGE fast; DROP STORAGE IF EXISTS fast");
  expect(readdirSync(join(root, "fast"))).toEqual([]);
  await engine.run(create("fast"));
  expect(await engine.rows("SELECT storage_name FROM system.storages")).toEqual([
    ["local"],
    ["fast"],
  ]);
});

test("a storage that is created while one with its name is dropped stays, or is refused", async () => {
  await engine.run(create("fast"));
  const another = `CREATE STORAGE fast TYPE filesystem PATH '${root}/another'`;
  const [, made] = await Promise.all([engine.ask("DROP STORAGE fast"), engine.ask(another)]);
  if (made.error !== undefined) {
    expect(made.error.message).toMatch(/already exists/);
    await engine.run(another);
  }
  expect((await engine.rows("STORAGE CHECK fast"))[0]?.[1]).toBe("healthy");
  expect(existsSync(join(root, "another", "STORAGE"))).toBe(true);
});

test("a table stays in its storage, and only a dba can create, change, check and drop one", async () => {
  await engine.run(`${create("fast")}; CREATE TABLE t ${TABLE} WITH (STORAGE_ID = 'fast')`);
  await engine.run(`CREATE TABLE here ${TABLE}`);
  await engine.run("ALTER TABLE t SET (STORAGE_ID = 'fast'); ALTER TABLE here RESET (STORAGE_ID)");
  for (const sql of [
    "ALTER TABLE t SET (STORAGE_ID = 'local')",
    "ALTER TABLE t RESET (STORAGE_ID)",
    "ALTER TABLE here SET (STORAGE_ID = 'fast')",
  ]) {
    expect(await engine.failure(sql)).toStartWith("UNSUPPORTED_FEATURE@1:");
  }
  const missing = "ALTER TABLE t SET (STORAGE_ID = 'nope')";
  expect(await engine.failure(missing)).toStartWith("OBJECT_NOT_FOUND@1:");
  await engine.run("CREATE USER sam INTERNAL ROLE service");
  engine.userId = "sam";
  for (const sql of [
    create("mine"),
    "ALTER STORAGE fast SET NAME 'x'",
    "DROP STORAGE fast",
    "STORAGE CHECK fast",
  ]) {
    expect(await engine.failure(sql)).toStartWith("PERMISSION_DENIED@1");
  }
});

test("STORAGE CHECK reports whether a storage can be used, and EXTENDED its sizes", async () => {
  await engine.run(create("fast"));
  const [id, status, ...rest] = (await engine.rows("STORAGE CHECK fast"))[0] ?? [];
  expect([id, status, ...rest.slice(0, 4)]).toEqual(["fast", "healthy", true, true, true, true]);
  expect(rest.slice(5, 8)).toEqual([null, null, null]);
  const [extended = []] = await engine.rows("STORAGE CHECK local EXTENDED");
  expect(extended[1]).toBe("healthy");
  expect(Number(extended[7])).toBeGreaterThan(Number(extended[8]));
  rmSync(join(root, "fast"), { recursive: true });
  const [gone = []] = await engine.rows("STORAGE CHECK fast EXTENDED");
  expect(gone.slice(1, 6)).toEqual(["unreachable", false, false, false, false]);
  expect(gone[9]).toMatch(/no directory/);
  await engine.run("DROP STORAGE fast");
});

describe("a storage that is missing affects only its own tables", () => {
  const away = (): string => join(root, "away");

  async function withTables(): Promise<void> {
    await engine.run(`${create("fast")}; CREATE TABLE t ${TABLE} WITH (STORAGE_ID = 'fast')`);
    await engine.run(`CREATE TABLE here ${TABLE}; INSERT INTO here VALUES (1, 'x')`);
    await engine.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'); STORAGE FLUSH TABLE t");
    await engine.run("UPDATE t SET v = 'c' WHERE id = 1");
  }

  test("a missing storage makes only its tables unavailable, and has everything when it is back", async () => {
    await withTables();
    await engine.database.close();
    renameSync(join(root, "fast"), away());
    await engine.reopen();
    for (const sql of [
      "SELECT * FROM t",
      "SELECT v FROM t WHERE id = 1",
      "INSERT INTO t VALUES (3, 'c')",
      "UPDATE t SET v = 'x'",
      "DELETE FROM t WHERE id = 2",
      "STORAGE COMPACT TABLE t",
      `CREATE TABLE more ${TABLE} WITH (STORAGE_ID = 'fast')`,
    ]) {
      expect(await engine.failure(sql), sql).toStartWith("STORAGE_UNAVAILABLE@1");
    }
    expect(await messageOf("SELECT count(*) FROM t")).toMatch(
      /storage fast: there is no directory/,
    );
    for (const sql of [
      "SELECT * FROM system.tables",
      "SELECT * FROM system.manifest",
      "SELECT * FROM system.stats",
      "SHOW MANIFEST",
      "SHOW TABLES",
      "DESCRIBE t",
    ]) {
      expect(await engine.rows(sql), sql).not.toEqual([]);
    }
    const status = "SELECT status FROM system.segments WHERE table_name = 't'";
    expect(await engine.rows(status)).toEqual([["quarantined"]]);
    expect(await engine.rows("SELECT v FROM here")).toEqual([["x"]]);
    await engine.run("INSERT INTO here VALUES (2, 'y'); STORAGE FLUSH TABLE here");
    expect(existsSync(join(root, "fast"))).toBe(false);
    await engine.database.close();
    renameSync(away(), join(root, "fast"));
    await engine.reopen();
    expect(await engine.rows("SELECT id, v FROM t ORDER BY id")).toEqual([
      [1, "c"],
      [2, "b"],
    ]);
    await engine.run("STORAGE FLUSH TABLE t");
    expect(segmentsIn("fast")).toHaveLength(3);
  });

  test("a missing storage is not confused with another one in its place, and its tables can be dropped", async () => {
    await withTables();
    await engine.run(create("other"));
    await engine.database.close();
    renameSync(join(root, "fast"), away());
    renameSync(join(root, "other"), join(root, "fast"));
    await engine.reopen();
    expect(await messageOf("SELECT * FROM t")).toMatch(/belongs to a different storage/);
    expect((await engine.rows("STORAGE CHECK other"))[0]?.[1]).toBe("unreachable");
    await engine.run("DROP TABLE t; DROP STORAGE fast; DROP STORAGE other");
    expect(existsSync(join(root, "fast", "STORAGE"))).toBe(true);
    expect(await engine.rows("SELECT v FROM here")).toEqual([["x"]]);
  });

  test("a missing storage loses nothing to a flush, and refuses its tables after a failed read", async () => {
    await withTables();
    await engine.run(`CREATE TABLE unread ${TABLE} WITH (STORAGE_ID = 'fast')`);
    await engine.run("INSERT INTO unread VALUES (1, 'z'); STORAGE FLUSH TABLE unread");
    renameSync(join(root, "fast"), away());
    expect(await engine.failure("STORAGE FLUSH TABLE t")).toStartWith("STORAGE_UNAVAILABLE@1");
    expect(existsSync(join(root, "fast"))).toBe(false);
    // No file of `unread` has ever been opened, but files of `t` have.
    expect(await engine.failure("SELECT * FROM unread")).toStartWith("STORAGE_UNAVAILABLE@1");
    expect(await engine.failure("SELECT * FROM t")).toStartWith("STORAGE_UNAVAILABLE@1");
    await engine.database.close();
    renameSync(away(), join(root, "fast"));
    await engine.reopen();
    expect(await engine.rows("SELECT v FROM t ORDER BY id")).toEqual([["c"], ["b"]]);
    expect(await engine.rows("SELECT v FROM unread")).toEqual([["z"]]);
  });
});

test("DROP USER … PURGE erases rows in a storage", async () => {
  await engine.run(`${create("fast")}; CREATE USER TABLE u ${TABLE} WITH (STORAGE_ID = 'fast')`);
  await engine.run("CREATE USER eve INTERNAL; EXECUTE AS 'eve' (INSERT INTO u VALUES (1, 'e'))");
  await engine.run("INSERT INTO u VALUES (1, 'r'); STORAGE FLUSH TABLE u");
  await engine.run("DROP USER eve PURGE");
  const counted = "SELECT sum(row_count) FROM system.segments WHERE table_name = 'u'";
  expect(await engine.rows(counted)).toEqual([["1"]]);
  await until(() => segmentsIn("fast").length === 1);
  expect(await engine.rows("SELECT v FROM u")).toEqual([["r"]]);
});
