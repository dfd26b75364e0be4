/**
 * Verifies that conditions, orders and joins read a table through its secondary indexes, with the
 * same results as a scan. The tests examine plans and the number of rows they read, and compare
 * random statements on two tables with the same rows, only one of which has indexes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { amountOf } from "../../support/thoroughness.ts";

const ROWS = 20_000;
const COLUMNS =
  "(id INT PRIMARY KEY, email TEXT, room INT, ts TIMESTAMPTZ, n BIGINT, score DOUBLE, note TEXT)";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    `CREATE TABLE posts ${COLUMNS}; CREATE TABLE plain ${COLUMNS}; CREATE USER TABLE mine ${COLUMNS};` +
      "CREATE TABLE few (id INT PRIMARY KEY, email TEXT, room INT, n INT);" +
      "INSERT INTO few SELECT i, 'e' || i * 37, i, i * 3 FROM generate_series(1, 5) i",
  );
  for (const table of ["posts", "mine"]) {
    await engine.run(
      `CREATE UNIQUE INDEX ${table}_email_key ON ${table} (email);` +
        `CREATE INDEX ${table}_room_ts ON ${table} (room, ts);` +
        `CREATE INDEX ${table}_n ON ${table} (n); CREATE INDEX ${table}_ts_id ON ${table} (ts, id)`,
    );
  }
  for (const table of ["posts", "plain", "mine"]) {
    await engine.run(
      `INSERT INTO ${table} SELECT i, 'e' || i, i % 40, '2026-01-01'::timestamptz + i / 3 * INTERVAL '1 minute',` +
        ` nullif(i % 500, 7), i / 8.0, 'x' || i % 9 FROM generate_series(1, ${ROWS}) i;` +
        `STORAGE FLUSH TABLE ${table};` +
        `UPDATE ${table} SET room = 3 WHERE id % 1000 = 0; DELETE FROM ${table} WHERE id % 700 = 0;` +
        `INSERT INTO ${table} (id, email, room) VALUES (90001, NULL, 3), (90002, 'zz', NULL)`,
    );
  }
});
afterAll(() => engine[Symbol.asyncDispose]());

type Parameters = readonly (null | boolean | string | number)[];

async function planOf(sql: string, params: Parameters = []): Promise<string> {
  return (await engine.rows(`EXPLAIN ANALYZE ${sql}`, { params })).join("\n");
}

/** Returns the largest number of rows that any node of a plan yields. */
function mostRows(plan: string): number {
  return Math.max(...Array.from(plan.matchAll(/; rows: (\d+)/g), ([, rows]) => Number(rows)));
}

describe("rows are found by an index", () => {
  test.each<[string, string, number, Parameters?]>([
    ["email = 'e5'", "posts_email_key (email = 'e5')", 1],
    ["email = $1", "posts_email_key (email = 'e5')", 1, ["e5"]],
    ["email = $1::text", "posts_email_key (email = 'e5')", 1, ["e5"]],
    ["n = 4.0::int", "posts_n (n = ", 45],
    ["n = $1::int", "posts_n (n = '4')", 45, ["4"]],
    ["email IN ('e5', 'e6', NULL)", "posts_email_key (email any of 3)", 2],
    [
      "email = ANY ($1)",
      "posts_email_key (email any of the elements of '{e5,e6}')",
      2,
      ["{e5,e6}"],
    ],
    ["n = ANY (ARRAY[4, 5])", "posts_n (n any of 2)", 90],
    ["n = ANY (string_to_array($1, ',')::int[])", "posts_n (n any of the elements", 90, ["4,5"]],
    ["email = 'e5' OR email = 'e6'", "posts_email_key (email any of 2)", 2],
    ["email LIKE 'e1999%'", "posts_email_key (email LIKE 'e1999%')", 12],
    ["email LIKE $1 || '%'", "posts_email_key (email LIKE 'e1999' || '%')", 12, ["e1999"]],
    ["starts_with(email, 'e1999')", "posts_email_key (starts_with(email, 'e1999'))", 12],
    ["email > 'e1999' AND email <= 'e1999z'", "(email > 'e1999' AND email <= 'e1999z')", 12],
    ["n BETWEEN 3 AND 5", "posts_n (n >= 3 AND n <= 5)", 130],
    ["room = 3 AND ts < '2026-01-01 10:00'", "posts_room_ts (room = 3 AND ts < ", 60],
    ["room IN (3, 4) AND ts < '2026-01-01 10:00'", "posts_room_ts (room any of 2 AND ts <", 100],
    ["ts > '2026-01-05 15:00'::timestamptz - INTERVAL '1 hour'", "posts_ts_id (ts > ", 400],
    ["ts::timestamp > '2026-01-05 14:00'", "posts_ts_id (ts > ", 400],
    [
      "(room, ts) IN ((3, '2026-01-01 00:01'), (4, '2026-01-01 00:01'))",
      "((room, ts) any of 2)",
      2,
    ],
    [
      "(ts, id) < ('2026-01-01 00:10', 30)",
      "posts_ts_id ((ts, id) < ('2026-01-01 00:10', 30))",
      31,
    ],
    ["(ts, id) >= ($1, $2)", "posts_ts_id ((ts, id) >= ", 400, ["2026-01-05 14:00", 3]],
    ["room = 3 AND n = 43", "posts_room_ts (room = 3) or posts_n (n = 43)", 60],
    ["n IS NULL", "posts_n (n IS NULL)", 45],
    ["n IS NULL AND room = 7", "posts_n (n IS NULL)", 45],
    ["room = 3 AND ts IS NULL", "posts_room_ts (room = 3 AND ts IS NULL)", 1],
    ["n = 4 OR n IS NULL", "posts_n (n any of 2)", 90],
    ["n IS NULL AND id < 1000", "posts_n (n IS NULL)", 45],
    ["email = (SELECT max(email) FROM few)", "posts_email_key (email = SCALAR", 5],
  ])("%s", async (condition, index, rowsMax, params = []) => {
    const plan = await planOf(`SELECT id FROM posts WHERE ${condition}`, params);
    expect(plan).toContain(`Index Scan on default.posts  (access: index; index: `);
    expect(plan).toContain(index);
    expect(mostRows(plan)).toBeLessThanOrEqual(rowsMax);
    const sql = `SELECT id, email, room, n FROM posts WHERE ${condition} ORDER BY id`;
    const found = await engine.rows(sql, { params });
    expect(found.length).toBeGreaterThan(0);
    expect(found).toEqual(await engine.rows(sql.replace("posts", "plain"), { params }));
  });

  test("rows are not looked up by a primary key that is NULL", async () => {
    for (const condition of ["id IS NULL", "id IS NULL AND n = 3", "id IS NULL OR id = 7"]) {
      const sql = `SELECT id FROM posts WHERE ${condition}`;
      expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace("posts", "plain")));
    }
  });

  test("rows are not looked up if they are many, or for NULL, or for a value that cannot be computed", async () => {
    const many = await planOf("SELECT id FROM posts WHERE n > 3");
    expect(many).toMatch(/Index Scan .*; rows: 19\d\d\d; .*segments read: 1/);
    expect(await planOf("SELECT id FROM posts WHERE email = NULL")).toContain("never");
    expect(await engine.rows("SELECT id FROM posts WHERE email = $1", { params: [null] })).toEqual(
      [],
    );
    const failing = (before: string): string =>
      `SELECT id FROM posts WHERE ${before} n = 1 / $1::int`;
    expect(await engine.failure(failing(""), { params: [0] })).toStartWith("DIVISION_BY_ZERO");
    expect(await engine.rows(failing("id < 0 AND"), { params: [0] })).toEqual([]);
  });

  test("changes also find rows through an index", async () => {
    for (const [change, back] of [
      [
        "UPDATE posts SET note = 'y' WHERE email = 'e8'",
        "UPDATE posts SET note = 'x8' WHERE id = 8",
      ],
      ["DELETE FROM posts WHERE email IN ('none')", "SELECT 1"],
      [
        "UPDATE posts SET note = 'y' FROM few WHERE few.email = posts.email AND few.id = 1",
        "SELECT 1",
      ],
    ] as const) {
      const plan = await planOf(change);
      expect(plan).toMatch(/Index Scan|by index/);
      expect(mostRows(plan)).toBeLessThan(10);
      await engine.run(back);
    }
    expect(await engine.rows("SELECT note FROM posts WHERE email = 'e37'")).toEqual([["y"]]);
    await engine.run("UPDATE posts SET note = 'x1' WHERE id = 37");
  });

  test("rows of the caller are found through an index", async () => {
    const plan = await planOf("SELECT id FROM mine WHERE email = 'e5'");
    expect(plan).toContain("index: mine_email_key");
    expect(mostRows(plan)).toBe(1);
  });
});

describe("the first rows in an order are read from an index", () => {
  test.each([
    ["WHERE room = 3 ORDER BY ts DESC LIMIT 5", "posts_room_ts", 7],
    ["WHERE room = 3 ORDER BY ts LIMIT 5", "posts_room_ts", 7],
    ["WHERE room = 3 ORDER BY room, ts DESC LIMIT 5", "posts_room_ts", 7],
    ["WHERE room = 3 AND ts > '2026-01-02' ORDER BY ts, id LIMIT 5", "posts_room_ts", 12],
    ["ORDER BY ts DESC, id DESC LIMIT 5", "posts_ts_id", 7],
    ["ORDER BY ts, id LIMIT 5 OFFSET 900", "posts_ts_id", 907],
    ["WHERE (ts, id) > ('2026-01-03', 9000) ORDER BY ts, id LIMIT 5", "posts_ts_id", 7],
    ["WHERE (ts, id) < ('2026-01-03', 9000) ORDER BY ts DESC, id DESC LIMIT 5", "posts_ts_id", 7],
    ["ORDER BY email LIMIT 5", "posts_email_key", 7],
    ["ORDER BY email DESC LIMIT 5", "posts_email_key", 7],
    ["WHERE id % 2 = 0 ORDER BY email LIMIT 3", "posts_email_key", 30],
  ])("%s", async (rest, index, rowsMax) => {
    const sql = `SELECT id, ts, email FROM posts ${rest}`;
    const plan = await planOf(sql);
    expect(plan).toContain(`may read in order of: ${index}`);
    expect(mostRows(plan)).toBeLessThanOrEqual(rowsMax);
    expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace("posts", "plain")));
  });

  test.each([
    "ORDER BY email NULLS FIRST LIMIT 5",
    "ORDER BY ts, id DESC LIMIT 5",
    "WHERE room IN (3, 4) ORDER BY ts LIMIT 5",
    "WHERE email = 'e5' ORDER BY ts LIMIT 5",
    "ORDER BY score LIMIT 5",
  ])("but not for %s", async (rest) => {
    const sql = `SELECT id, ts, email FROM posts ${rest}`;
    expect(await planOf(sql)).not.toMatch(/may read in order of: posts_(email_key|room_ts)/);
    expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace("posts", "plain")));
  });
});

describe("the minimum and maximum are the first values in the order of an index", () => {
  test.each([
    ["max(ts)", "", "posts_ts_id", 3],
    ["min(ts), max(ts), max(email)", "", "posts_ts_id, posts_ts_id, posts_email_key", 9],
    ["max(n)", "", "posts_n", 3],
    ["min(ts)", "WHERE room = 3", "posts_room_ts", 3],
    ["max(ts)", "WHERE room = 3 AND ts < '2026-01-02'", "posts_room_ts", 3],
    ["max(email)", "WHERE id % 5 = 0", "posts_email_key", 30],
  ])("%s %s", async (results, where, indexes, rowsMax) => {
    const sql = `SELECT ${results} FROM posts ${where}`;
    const plan = await planOf(sql);
    expect(plan).toContain(`may read in order of: ${indexes}`);
    expect(mostRows(plan)).toBeLessThanOrEqual(rowsMax);
    expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace("posts", "plain")));
  });

  test.each([
    "SELECT max(ts) FROM posts WHERE id < 0",
    "SELECT max(ts) FROM posts WHERE room = 99",
    "SELECT max(email) FROM posts WHERE note = 'none'",
    "SELECT max(ts), count(*) FROM posts",
    "SELECT room, max(ts) FROM posts GROUP BY room ORDER BY room",
    "SELECT max(ts) FILTER (WHERE id < 9) FROM posts",
    "SELECT max(score), min(n) FROM posts",
  ])("and the same without one: %s", async (sql) => {
    expect(await engine.rows(sql)).toEqual(await engine.rows(sql.replace("posts", "plain")));
  });
});

test("ORDER BY _seq sorts rows that an index finds, and otherwise reads rows in that order", async () => {
  const few = "SELECT id FROM posts WHERE email IN ('e90', 'e9', 'e70') ORDER BY _seq LIMIT 2";
  expect(await planOf(few)).toContain("Index Scan");
  expect(await engine.rows(few)).toEqual([[9], [70]]);
  const many = "SELECT id FROM posts WHERE n > 3 AND id > 100 AND _seq > 5 ORDER BY _seq LIMIT 20";
  const plan = await planOf(many);
  expect(Number(/Index Scan .*?; rows: (\d+)/.exec(plan)?.[1])).toBeLessThan(5000);
  expect(await engine.rows(many)).toEqual(await engine.rows(many.replace("posts", "plain")));
});

describe("joins look up few rows through an index", () => {
  test.each([
    "SELECT posts.id FROM few JOIN posts ON posts.email = few.email",
    "SELECT few.id, posts.id FROM few LEFT JOIN posts ON posts.email = few.email",
    "SELECT posts.id FROM few JOIN posts ON posts.room = few.room AND posts.ts = '2026-01-01 00:12'",
    "SELECT posts.id FROM few JOIN posts ON posts.n = few.n",
    "SELECT id FROM posts WHERE email IN (SELECT email FROM few)",
    "SELECT id FROM posts WHERE EXISTS (SELECT 1 FROM few WHERE few.email = posts.email)",
  ])("%s", async (sql) => {
    const plan = await planOf(sql);
    expect(plan).toContain("may look up: default.posts by index posts_");
    expect(mostRows(plan)).toBeLessThan(250);
    const ordered = `${sql} ORDER BY 1`;
    expect(await engine.rows(ordered)).toEqual(
      await engine.rows(ordered.replaceAll("posts", "plain")),
    );
  });

  test("correlated queries look up rows through an index for each outer row", async () => {
    for (const sql of [
      "SELECT few.id, (SELECT posts.id FROM posts WHERE posts.email = few.email) FROM few",
      "SELECT few.id, x.ts FROM few, LATERAL (SELECT ts FROM posts WHERE posts.room = few.room ORDER BY ts DESC LIMIT 1) x",
    ]) {
      const plan = await planOf(sql);
      expect(mostRows(plan)).toBeLessThan(20);
      expect(await engine.rows(`${sql} ORDER BY 1`)).toEqual(
        await engine.rows(`${sql.replaceAll("posts", "plain")} ORDER BY 1`),
      );
    }
  });
});

test("an index that is created or dropped between two runs takes effect at once", async () => {
  const sql = "SELECT id FROM plain WHERE note = 'only'";
  await engine.run("INSERT INTO plain (id, note) VALUES (91000, 'only')");
  expect(await planOf(sql)).toContain("Table Scan");
  expect(await engine.rows(sql)).toEqual([[91_000]]);
  await engine.run("CREATE INDEX plain_note ON plain (note)");
  expect(await engine.rows(sql)).toEqual([[91_000]]);
  expect(await planOf(sql)).toContain("index: plain_note (note = 'only')");
  await engine.run("DROP INDEX plain_note");
  expect(await planOf(sql)).toContain("Table Scan");
  expect(await engine.rows(sql)).toEqual([[91_000]]);
  await engine.run("DELETE FROM plain WHERE id = 91000");
});

test("a transaction finds its own rows through an index", async () => {
  const results = await engine.run(
    "BEGIN; INSERT INTO posts (id, email, room, ts) VALUES (95001, 'mine', 3, '2020-01-01');" +
      "UPDATE posts SET email = 'moved' WHERE id = 11; DELETE FROM posts WHERE email = 'e12';" +
      "SELECT id FROM posts WHERE email IN ('mine', 'moved', 'e11', 'e12', 'e13') ORDER BY id;" +
      "SELECT id FROM posts WHERE room = 3 ORDER BY ts LIMIT 1; ROLLBACK",
  );
  expect(results.at(-3)?.rows).toEqual([[11], [13], [95_001]]);
  expect(results.at(-2)?.rows).toEqual([[95_001]]);
  expect(await engine.rows("SELECT id FROM posts WHERE email IN ('mine', 'e11')")).toEqual([[11]]);
});

const ROUNDS = amountOf({ usual: 15, thorough: 200 });

test("random conditions and orders give the same results as without indexes", async () => {
  const random = new SeededRandom(33);
  const day = (): string => `'2026-01-0${random.between(1, 5)} ${random.between(10, 23)}:00'`;
  const comparison = (): string => random.pick(["<", "<=", ">", ">=", "="]);
  const terms = [
    () => `email ${comparison()} 'e${random.below(21_000)}'`,
    () => `email LIKE 'e${random.below(300)}%'`,
    () => `email IN ('e${random.below(9)}', 'zz', NULL, 'e${random.below(900)}')`,
    () => `room = ${random.below(45)}`,
    () => `room IN (${random.below(45)}, ${random.below(45)}, NULL)`,
    () => `n ${comparison()} ${random.below(510)}`,
    () => `ts ${comparison()} ${day()}`,
    () => `(ts, id) ${random.pick(["<", "<=", ">", ">="])} (${day()}, ${random.below(20_000)})`,
    () => `(room, ts) ${random.pick(["<", ">="])} (${random.below(40)}, ${day()})`,
    () => `(room, n) IN ((${random.below(40)}, ${random.below(500)}), (3, 43), (4, NULL))`,
    () => `score < ${random.below(2500)}`,
    () => `room IS ${random.pick(["", "NOT "])}NULL`,
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    const all = Array.from({ length: random.between(1, 3) }, () => random.pick(terms)());
    const where = all.join(random.chance(0.85) ? " AND " : " OR ");
    const direction = random.pick(["", " DESC"]);
    const keys = random.pick(["ts, id", "email, id", "n, id", "room, ts, id"]);
    const order = keys.replaceAll(/\w+/g, (key) => `${key}${direction}`);
    const limit = random.pick([
      "",
      ` LIMIT ${random.below(9)}`,
      ` LIMIT 4 OFFSET ${random.below(50)}`,
    ]);
    const sql = `SELECT id, email, room, ts, n FROM posts WHERE ${where} ORDER BY ${order}${limit}`;
    expect(await engine.rows(sql), sql).toEqual(await engine.rows(sql.replace("posts", "plain")));
  }
});
