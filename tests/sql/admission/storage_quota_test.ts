/**
 * Tests the limit `limits.storage_bytes_per_user`: the bytes that count, the statements that are
 * refused, and the ways to free space.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { SEQ_EPOCH_MS } from "../../../src/base/seq.ts";
import { FullDisk } from "../../support/full_disk.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { isThorough } from "../../support/thoroughness.ts";

const LIMIT = 20_000;

/** Returns the size of a row of `t`: a header, a number and a string. */
const rowBytes = (text: string): number => 16 + 9 + 1 + Buffer.byteLength(text);

let clock: ManualClock;
let engine: TestEngine;

beforeEach(async () => {
  clock = new ManualClock(SEQ_EPOCH_MS + 1_000_000_000);
  engine = await open(LIMIT);
  await engine.run(
    "CREATE USER TABLE t (id BIGINT PRIMARY KEY, v TEXT); " +
      "CREATE USER TABLE u (id INT PRIMARY KEY, v TEXT, f FILE); " +
      "CREATE STREAM TABLE s (id INT PRIMARY KEY, v TEXT) WITH (TTL_SECONDS = 60); " +
      "CREATE SHARED TABLE shared (id INT PRIMARY KEY, v TEXT); " +
      "CREATE USER ann INTERNAL ROLE service; " +
      "CREATE USER bob INTERNAL ROLE user",
  );
  engine.userId = "ann";
});
afterEach(() => engine[Symbol.asyncDispose]());

function open(limit: number): Promise<TestEngine> {
  return TestEngine.open({ clock, config: `[limits]\nstorage_bytes_per_user = ${limit}` });
}

/** Returns a user's usage according to `system.users`, as an administrator sees it. */
async function used(userId = "ann"): Promise<unknown> {
  const before = engine.userId;
  engine.userId = "root";
  const sql = `SELECT storage_bytes FROM system.users WHERE user_id = '${userId}'`;
  const [[bytes] = []] = await engine.rows(sql);
  engine.userId = before;
  return bytes;
}

/** Returns the usage that a restarted server computes from the tables alone. */
async function counted(): Promise<unknown> {
  await engine.restart();
  return await used();
}

const text = (length: number): string => `repeat('x', ${length})`;

test("every kind of change counts added bytes and releases freed bytes", async () => {
  await engine.run("INSERT INTO t VALUES (1, 'é'), (2, NULL)");
  expect(await used()).toBe(rowBytes("é") + rowBytes(""));
  const changes = [
    "INSERT INTO t SELECT g, 'text' || g FROM generate_series(3, 100) AS g(g)",
    "UPDATE t SET v = v || 'longer' WHERE id < 50",
    "UPDATE t SET v = 'x' WHERE id BETWEEN 10 AND 20",
    "UPDATE t SET v = v",
    "DELETE FROM t WHERE id BETWEEN 30 AND 40",
    "INSERT INTO t VALUES (1, 'again'), (500, 'new') ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    "INSERT INTO t VALUES (1, 'not') ON CONFLICT DO NOTHING",
    "INSERT INTO u VALUES (1, 'a', NULL); INSERT INTO s VALUES (1, 'b'), (2, 'c')",
    "DELETE FROM s WHERE id = 1",
    "BEGIN; INSERT INTO t VALUES (600, 'six'), (601, 'gone'); UPDATE t SET v = 'seven' WHERE id = 600;" +
      " DELETE FROM t WHERE id = 601; DELETE FROM t WHERE id = 2; INSERT INTO u VALUES (2, 'b', NULL); COMMIT",
    "BEGIN; INSERT INTO t VALUES (700, 'back'); ROLLBACK",
  ];
  for (const [index, sql] of changes.entries()) {
    await engine.run(sql);
    if (!isThorough && index % 3 !== 1) continue;
    const known = await used();
    expect([sql, known]).toEqual([sql, await counted()]);
  }
  await engine.run("STORAGE FLUSH TABLE t; STORAGE COMPACT TABLE t");
  expect(await used()).toBe(await counted());
  await engine.run("DELETE FROM t; DELETE FROM u; DELETE FROM s");
  expect([await used(), await counted()]).toEqual([0, 0]);
});

test("a definition in a transaction rewrites rows of users who have reached the limit, and counts them", async () => {
  await engine.run(`INSERT INTO t VALUES (1, ${text(15_000)})`);
  engine.userId = "root";
  await engine.run("BEGIN; ALTER TABLE t ALTER COLUMN v TYPE TEXT USING v || v; COMMIT");
  engine.userId = "ann";
  expect(await engine.failure("INSERT INTO t VALUES (2, 'x')")).toStartWith("LIMIT_EXCEEDED@1");
  expect(await used()).toBe(rowBytes("x".repeat(30_000)));
  expect(await counted()).toBe(rowBytes("x".repeat(30_000)));
});

test("values of each type count the same when written as when read", async () => {
  engine.userId = "root";
  await engine.run(
    "CREATE USER TABLE w (id INT PRIMARY KEY, a BOOLEAN, b SMALLINT, c BIGINT, d DECIMAL(30, 2), " +
      "e REAL, f DOUBLE, g DATE, h TIMESTAMP, i TIME, j UUID, k JSONB, l BYTES, m TEXT, n EMBEDDING(3))",
  );
  engine.userId = "ann";
  await engine.run(
    "INSERT INTO w VALUES (1, true, 2, 9223372036854775807, 1234567890123456789012.34, 0.5, 0.25, " +
      "'2026-01-02', '2026-01-02 03:04:05', '03:04:05', '00000000-0000-0000-0000-000000000001', " +
      `'{"b": 1, "a": [1, 2]}', '\\x0102', 'ü', '[1, 2, 3]')`,
  );
  await engine.run("INSERT INTO w (id) SELECT g FROM generate_series(2, 50) AS g(g)");
  await engine.run("UPDATE w SET m = 'same' WHERE id > 10; UPDATE w SET c = id WHERE id > 20");
  const known = await used();
  expect(known).toBeGreaterThan(50 * 40);
  expect(await counted()).toBe(known);
  await engine.run("STORAGE FLUSH TABLE w");
  expect(await counted()).toBe(known);
});

test("a statement that would exceed the limit is refused with the reason, and changes nothing", async () => {
  await engine.run(`INSERT INTO t VALUES (1, ${text(15_000)})`);
  const before = rowBytes("x".repeat(15_000));
  const row = rowBytes("x".repeat(6000));
  const statements = [
    `INSERT INTO t VALUES (2, '${"x".repeat(6000)}')`,
    `INSERT INTO t VALUES (2, ${text(6000)})`,
    `INSERT INTO t VALUES (2, ${text(6000)}) RETURNING id`,
    `INSERT INTO t SELECT 2, ${text(6000)}`,
    `UPDATE t SET v = v || ${text(6000)}`,
    `INSERT INTO t VALUES (1, '') ON CONFLICT (id) DO UPDATE SET v = ${text(21_000)}`,
    `INSERT INTO u VALUES (2, ${text(6000)}, NULL)`,
    `INSERT INTO s VALUES (2, ${text(6000)})`,
    `BEGIN; INSERT INTO t VALUES (2, ${text(3000)}); INSERT INTO u VALUES (2, ${text(3000)}, NULL); COMMIT`,
    `INSERT INTO t SELECT g, 'much' FROM generate_series(2, 20000) AS g(g)`,
    `BEGIN; INSERT INTO t SELECT g, 'much' FROM generate_series(2, 9000) AS g(g); COMMIT`,
  ];
  for (const sql of statements) {
    const { error } = await engine.ask(sql);
    expect([sql, error?.code]).toEqual([sql, "LIMIT_EXCEEDED"]);
    expect(error?.hint).toContain("limits.storage_bytes_per_user");
    expect(await used()).toBe(before);
  }
  const { error } = await engine.ask(statements[0] ?? "");
  expect(error?.message).toBe(
    `Cannot write: the user's rows and files take ${before} bytes, the statement would add ` +
      `${row} bytes, and the limit is ${LIMIT} bytes`,
  );
  expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[1]]);
  // The limit is exact to the byte, so a row of exactly the remaining size is accepted.
  const left = LIMIT - before - rowBytes("");
  expect(await engine.failure(`INSERT INTO t VALUES (2, ${text(left + 1)})`)).toStartWith("LIMIT");
  await engine.run(`INSERT INTO t VALUES (2, ${text(left)})`);
  expect(await used()).toBe(LIMIT);
});

test("each user has a limit, and a deleted row frees space at once, even in a transaction", async () => {
  const big = `INSERT INTO t VALUES (1, ${text(15_000)})`;
  await engine.run(big);
  engine.userId = "bob";
  await engine.run(big);
  expect(await engine.failure(`INSERT INTO t VALUES (2, ${text(6000)})`)).toStartWith("LIMIT");
  await engine.run("DELETE FROM t WHERE id = 1");
  await engine.run(`INSERT INTO t VALUES (2, ${text(15_000)})`);
  await engine.run(
    `BEGIN; INSERT INTO t VALUES (3, ${text(15_000)}); DELETE FROM t WHERE id = 2; COMMIT`,
  );
  expect(await used("bob")).toBe(await used("ann"));
  engine.userId = "ann";
  expect(await engine.failure(`INSERT INTO t VALUES (2, ${text(6000)})`)).toStartWith("LIMIT");
});

test("rows of SHARED tables count for no user, and those written by EXECUTE AS for the user acted for", async () => {
  await engine.run(`INSERT INTO shared VALUES (1, ${text(50_000)})`);
  expect(await used()).toBe(0);
  const asBob = (sql: string): string => `EXECUTE AS USER 'bob' (${sql})`;
  await engine.run(asBob(`INSERT INTO t VALUES (1, ${text(15_000)})`));
  expect([await used(), await used("bob")]).toEqual([0, rowBytes("x".repeat(15_000))]);
  const refused = await engine.failure(asBob(`INSERT INTO t VALUES (2, ${text(6000)})`));
  expect(refused).toStartWith("LIMIT_EXCEEDED");
  await engine.run(`INSERT INTO t VALUES (1, ${text(15_000)})`);
});

test("two concurrent commits of one user never use the same free space", async () => {
  const answers = await Promise.all(
    [1, 2, 3, 4].map((id) => engine.ask(`INSERT INTO t VALUES (${id}, ${text(9000)})`)),
  );
  const errorCodes = answers.map(({ error }) => error?.code);
  expect(errorCodes.filter((each) => each === undefined)).toHaveLength(2);
  expect(errorCodes.filter((each) => each === "LIMIT_EXCEEDED")).toHaveLength(2);
  const long = [1, 2].map((n) =>
    engine.ask(
      `INSERT INTO u SELECT g, NULL, NULL FROM generate_series(${n}, ${n + 5000}) AS g(g)`,
    ),
  );
  await Promise.all(long);
  expect(await used()).toBe(await counted());
});

test("expired rows, dropped tables and shorter rows free space", async () => {
  await engine.run(`INSERT INTO s VALUES (1, ${text(15_000)})`);
  expect(await engine.failure(`INSERT INTO t VALUES (1, ${text(15_000)})`)).toStartWith("LIMIT");
  clock.advance(61_000);
  await engine.run(`INSERT INTO t VALUES (1, ${text(15_000)})`);
  expect(await engine.failure(`INSERT INTO u VALUES (1, ${text(9000)}, NULL)`)).toStartWith(
    "LIMIT",
  );
  engine.userId = "root";
  await engine.run("DROP TABLE t");
  engine.userId = "ann";
  await engine.run(`INSERT INTO u VALUES (1, ${text(9000)}, NULL)`);
  expect(await engine.failure(`INSERT INTO u VALUES (2, ${text(15_000)}, NULL)`)).toStartWith(
    "LIMIT",
  );
  await engine.run("UPDATE u SET v = ''");
  await engine.run(`INSERT INTO u VALUES (2, ${text(15_000)}, NULL)`);
});

test("a transaction can use space that has become free without a deletion", async () => {
  await engine.run(`INSERT INTO s VALUES (1, ${text(15_000)})`);
  clock.advance(61_000);
  await engine.run(`BEGIN; INSERT INTO t VALUES (1, ${text(15_000)}); COMMIT`);
  expect(await used()).toBe(rowBytes("x".repeat(15_000)));
});

/**
 * Inserts a row with a file of the given size. @param key If given, the request is a transaction.
 */
function withFile(sql: string, size: number, key?: string): ReturnType<TestEngine["ask"]> {
  const bytes = new Uint8Array(size);
  return engine.ask(sql, {
    files: new Map([["f", { name: "a.bin", mime: "x/y", bytes }]]),
    ...(key !== undefined && { idempotency: { key, digest: sql } }),
  });
}

test("files count from the moment they are listed", async () => {
  const insert = (id: number): string => `INSERT INTO u VALUES (${id}, NULL, FILE('f'))`;
  expect((await withFile(insert(1), 12_000)).error).toBeUndefined();
  const one = Number(await used());
  expect(one).toBeGreaterThan(12_000);
  const { error } = await withFile(insert(2), 12_000);
  expect(error?.code).toBe("LIMIT_EXCEEDED");
  const inTransaction = await withFile(insert(2), 12_000, "first");
  expect(inTransaction.error?.code).toBe("LIMIT_EXCEEDED");
  expect(engine.database.catalog.files.all()).toHaveLength(1);
  expect(engine.storedFiles()).toHaveLength(1);
  expect([await used(), await counted()]).toEqual([one, one]);
  expect((await withFile(insert(3), 2000, "second")).error).toBeUndefined();
  const known = await used();
  expect([known, await counted()]).toEqual([known, known]);
  expect(await engine.failure(`INSERT INTO t VALUES (1, ${text(9000)})`)).toStartWith("LIMIT");
});

test("a user above the limit may read, delete and shrink rows, but not add any", async () => {
  await engine.run(`INSERT INTO t SELECT g, ${text(100)} FROM generate_series(1, 100) AS g(g)`);
  engine.userId = "root";
  await engine.run(`ALTER TABLE t ADD COLUMN w TEXT DEFAULT '${"y".repeat(200)}'`);
  engine.userId = "ann";
  expect(await engine.failure("INSERT INTO t VALUES (101, 'x', 'x')")).toStartWith("LIMIT");
  expect(await engine.rows("SELECT count(*) FROM t")).toEqual([[100]]);
  expect(await used()).toBe(100 * (rowBytes("x".repeat(100)) + 201));
  await engine.run("UPDATE t SET v = 'z' WHERE id = 1; DELETE FROM t WHERE id = 2");
  await engine.run("UPDATE t SET w = NULL");
  await engine.run("INSERT INTO t VALUES (101, 'x', 'x')");
  expect(await used()).toBe(await counted());
});

test("nothing is counted without a limit", async () => {
  await using other = await TestEngine.open({ clock });
  await other.run("CREATE USER TABLE t (id BIGINT PRIMARY KEY, v TEXT)");
  await other.run(`INSERT INTO t VALUES (1, ${text(90_000)})`);
  for (const view of ["users", "my_account"]) {
    const sql = `SELECT storage_bytes, storage_bytes_max FROM system.${view} WHERE user_id = 'root'`;
    expect(await other.rows(sql)).toEqual([[null, null]]);
  }
});

test("every user can read their own usage, which is 0 before the first write", async () => {
  const mine = "SELECT storage_bytes, storage_bytes_max FROM system.my_account";
  await engine.run("INSERT INTO t VALUES (1, 'x')");
  expect(await engine.rows(mine)).toEqual([[rowBytes("x"), LIMIT]]);
  engine.userId = "bob";
  expect(await engine.rows(mine)).toEqual([[0, LIMIT]]);
});

test("uploads and long changes can use space that has become free without a deletion", async () => {
  await engine.run(`INSERT INTO s VALUES (1, ${text(15_000)})`);
  clock.advance(61_000);
  const { error } = await withFile("INSERT INTO u VALUES (1, NULL, FILE('f'))", 12_000);
  expect(error).toBeUndefined();
  await using other = await TestEngine.open({
    clock,
    config: "[limits]\nstorage_bytes_per_user = 1000000",
  });
  await other.run(
    "CREATE USER TABLE t (id BIGINT PRIMARY KEY, v TEXT); " +
      "CREATE STREAM TABLE s (id INT PRIMARY KEY, v TEXT) WITH (TTL_SECONDS = 60)",
  );
  const long = "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 9000) AS g(g)";
  await other.run(`INSERT INTO s VALUES (1, ${text(900_000)})`);
  expect(await other.failure(long)).toStartWith("LIMIT_EXCEEDED");
  clock.advance(61_000);
  await other.run(long);
  const [[bytes] = []] = await other.rows("SELECT storage_bytes FROM system.my_account");
  expect(bytes).toBe(9000 * rowBytes("x"));
});

test("rows that were rolled back because the disk was full are subtracted again", async () => {
  const disk = new FullDisk(bunDisk);
  const config = `[limits]\nstorage_bytes_per_user = ${LIMIT}`;
  await using other = await TestEngine.open({ clock, config, disk });
  await other.run(
    "CREATE USER TABLE t (id BIGINT PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'x')",
  );
  const insert = `INSERT INTO t VALUES (2, ${text(15_000)})`;
  disk.isFull = true;
  expect(await other.failure(insert)).toStartWith("DISK_FULL");
  await other.run(insert);
  const [[bytes] = []] = await other.rows("SELECT storage_bytes FROM system.my_account");
  expect(bytes).toBe(rowBytes("x") + rowBytes("x".repeat(15_000)));
});

test("the file of a deleted row counts until a sweep has removed it", async () => {
  await using other = await TestEngine.open({
    clock,
    config: `limits.storage_bytes_per_user = ${LIMIT}\nstorage.history_hours = 1`,
  });
  await other.run("CREATE USER TABLE u (id INT PRIMARY KEY, f FILE)");
  const upload = async (id: number): Promise<string | undefined> => {
    const files = new Map([["f", { name: "a", mime: "x/y", bytes: new Uint8Array(15_000) }]]);
    const { error } = await other.ask(`INSERT INTO u VALUES (${id}, FILE('f'))`, { files });
    return error?.code;
  };
  expect(await upload(1)).toBeUndefined();
  await other.run("DELETE FROM u");
  expect(await upload(2)).toBe("LIMIT_EXCEEDED");
  while (other.database.catalog.files.all().length > 0) {
    clock.advance(3_600_000);
    await clock.yield();
  }
  expect(await upload(3)).toBeUndefined();
});
