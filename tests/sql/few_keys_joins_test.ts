/**
 * Verifies that a join with few keys on one side reads the other side by these keys, and has the
 * same result as a join that scans both. The tests check the number of rows read in EXPLAIN
 * ANALYZE, and compare random joins with equivalent ones on an expression that hides the column.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock: systemClock });
  await engine.run(
    "CREATE TABLE users (id INT PRIMARY KEY, boss INT, name TEXT);" +
      "CREATE TABLE lines (o BIGINT, l INT, v INT, PRIMARY KEY (o, l));" +
      "CREATE TABLE words (w TEXT PRIMARY KEY, v INT);" +
      "CREATE TABLE asks (id INT PRIMARY KEY, u INT, o INT, l INT, w TEXT);" +
      "INSERT INTO users SELECT g, nullif(g / 3, 0), 'n' || g FROM generate_series(1, 5000) g;" +
      "INSERT INTO lines SELECT g / 3, g % 3, g FROM generate_series(1, 6000) g;" +
      "INSERT INTO words SELECT 'w' || g, g FROM generate_series(1, 3000) g;" +
      "INSERT INTO asks SELECT g, nullif(g * 37 % 6000, 74), g * 11 % 2200, g % 4," +
      " CASE WHEN g % 9 > 0 THEN 'w' || g * 53 % 3300 END FROM generate_series(1, 400) g;" +
      "STORAGE FLUSH TABLE users; STORAGE FLUSH TABLE lines;" +
      "UPDATE users SET name = 'new' WHERE id % 50 = 0; DELETE FROM users WHERE id % 70 = 0",
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

/** Returns the number of rows read from a table. */
async function readOf(table: string, sql: string): Promise<number> {
  const [entry] = await engine.run(`EXPLAIN ANALYZE ${sql}`);
  const lines = (entry?.rows ?? []).map(([line]) => String(line));
  const scan = lines.find((line) => line.includes(`Table Scan on default.${table} `)) ?? "";
  return Number(/ rows: (\d+); loops/.exec(scan)?.[1]);
}

const FEW = "FROM asks a JOIN users u ON u.id = a.u WHERE a.id BETWEEN 10 AND 14";

describe("a join with few keys reads only the rows with these keys", () => {
  test.each([
    ["users", 5, `SELECT a.id, u.name ${FEW}`],
    ["users", 4, "SELECT a.id FROM asks a LEFT JOIN users u ON u.id = a.u WHERE a.id < 6"],
    [
      "users",
      3,
      "SELECT id FROM asks a WHERE id < 5 AND EXISTS (SELECT 1 FROM users WHERE id = a.u)",
    ],
    [
      "users",
      3,
      "SELECT id FROM asks a WHERE id < 5 AND NOT EXISTS (SELECT 1 FROM users WHERE id = a.u)",
    ],
    [
      "users",
      5,
      "SELECT name FROM users WHERE id IN (SELECT u FROM asks WHERE id BETWEEN 10 AND 14)",
    ],
    ["words", 7, "SELECT w.v FROM asks a JOIN words w ON w.w = a.w WHERE a.id < 8"],
    ["lines", 3, "SELECT v FROM asks a JOIN lines x ON x.o = a.o AND x.l = a.l WHERE a.id < 5"],
    ["lines", 4, "SELECT v FROM asks a JOIN lines x ON x.o = a.o WHERE x.l = 1 AND a.id < 5"],
    [
      "users",
      4,
      `SELECT a.id FROM asks a, (SELECT id AS n, name FROM users) u WHERE u.n = a.u AND a.id < 6`,
    ],
    ["users", 0, "SELECT a.id FROM asks a LEFT JOIN users u ON u.id = a.u WHERE a.id < 0"],
    [
      "users",
      1,
      "SELECT v.x FROM (VALUES (7), (7), (NULL), (9999)) v(x) JOIN users u ON u.id = v.x",
    ],
  ])("of %s it reads %p: %s", async (table, count, sql) => {
    expect(await readOf(table, sql)).toBe(count);
  });

  test("a join in a recursion reads by key at each step", async () => {
    const sql =
      "WITH RECURSIVE up AS (SELECT id, boss FROM users WHERE id = 4999 UNION ALL " +
      "SELECT u.id, u.boss FROM users u JOIN up ON u.id = up.boss) SELECT id FROM up ORDER BY id";
    const [entry] = await engine.run(`EXPLAIN ANALYZE ${sql}`);
    expect(JSON.stringify(entry?.rows)).toMatch(
      /Table Scan on default.users [^"]* rows: 7; loops: 7/,
    );
    expect(await engine.rows(sql)).toEqual([[2], [6], [20], [61], [185], [555], [1666], [4999]]);
  });

  test.each([
    ["users", "SELECT a.id, u.name FROM asks a JOIN users u ON u.id = a.u"],
    ["users", "SELECT a.id, u.name FROM asks a LEFT JOIN users u ON u.id = a.u"],
    ["users", "SELECT a.id FROM asks a FULL JOIN users u ON u.id = a.u AND a.id < 5"],
  ])("a join scans %s where keys are many or incomplete: %s", async (table, sql) => {
    expect(await readOf(table, sql)).toBeGreaterThan(4000);
  });

  test("EXPLAIN names the table that is read by key", async () => {
    const [entry] = await engine.run(`EXPLAIN SELECT a.id ${FEW}`);
    expect(JSON.stringify(entry?.rows)).toContain("may look up: default.users");
  });
});

describe("joins can read one side by the keys of the other", () => {
  test("a join by keys sees what its transaction has written", async () => {
    const entries = await engine.run(
      "BEGIN; UPDATE users SET name = 'mine' WHERE id = 37; DELETE FROM users WHERE id = 74;" +
        "INSERT INTO users VALUES (6001, 1, 'fresh');" +
        "SELECT v.x, u.name FROM (VALUES (37), (74), (6001)) v(x) LEFT JOIN users u ON u.id = v.x" +
        " ORDER BY 1; ROLLBACK",
    );
    expect(entries.at(-2)?.rows).toEqual([
      [37, "mine"],
      [74, null],
      [6001, "fresh"],
    ]);
  });

  test("a join by keys reports failures of the side that is read first", async () => {
    const left = "SELECT id, u / (id - 5) AS k, u FROM asks WHERE id < 9";
    const sql = `SELECT a.k FROM (${left}) a LEFT JOIN users u ON u.id = a.u`;
    expect(await engine.failure(sql)).toContain("DIVISION_BY_ZERO");
    const exists = "EXISTS (SELECT 1 FROM users WHERE id = a.u AND 1 / (id - id + 1) = 1)";
    const choice = `SELECT a.k FROM (${left}) a WHERE ${exists}`;
    expect(await engine.failure(choice)).toContain("DIVISION_BY_ZERO");
  });

  test("a join by keys returns the same as scans, for random joins by a whole key", async () => {
    for (let seed = 1; seed <= amountOf({ usual: 8, thorough: 120 }); seed += 1) {
      const random = new SeededRandom(seed);
      const from = random.below(400);
      const few = `a.id BETWEEN ${from} AND ${from + random.below(60)}`;
      const of = (hidden: string): string => {
        const user = `u.id${hidden} = a.u`;
        const line = `x.o${hidden} = a.o AND x.l${hidden} = a.l`;
        const word = hidden === "" ? "w.w = a.w" : "w.w || '' = a.w";
        const one = `x.o${hidden} = a.o AND x.l${hidden} = ${seed % 3}`;
        const queries = [
          `SELECT a.id, u.name FROM asks a JOIN users u ON ${user} WHERE ${few}`,
          `SELECT a.id, u.name FROM asks a LEFT JOIN users u ON ${user} AND u.boss > 500 WHERE ${few}`,
          `SELECT a.id, v FROM asks a LEFT JOIN lines x ON ${line} AND v > a.id WHERE ${few}`,
          `SELECT a.id, v FROM asks a JOIN lines x ON ${one} WHERE ${few}`,
          `SELECT a.id, w.v FROM asks a JOIN words w ON ${word} WHERE ${few}`,
          `SELECT a.id FROM asks a WHERE EXISTS (SELECT 1 FROM users u WHERE ${user} AND u.boss <> a.l) AND ${few}`,
          `SELECT a.id FROM asks a WHERE NOT EXISTS (SELECT 1 FROM words w WHERE ${word}) AND ${few}`,
          `SELECT a.id FROM asks a WHERE NOT EXISTS (SELECT 1 FROM lines x WHERE ${one} AND v > a.id) AND ${few}`,
          `SELECT id FROM users u WHERE u.id${hidden} IN (SELECT a.u FROM asks a WHERE ${few})`,
        ];
        return `${queries[seed % queries.length]} ORDER BY 1`;
      };
      expect(await engine.rows(of(""))).toEqual(await engine.rows(of(" + 0")));
    }
  });
});

describe("a join in a step of a recursion is not built again", () => {
  /**
   * The number of recursive steps. The last steps have hundreds of rows, enough for a hash join.
   */
  const STEPS = 4;

  beforeAll(async () => {
    await engine.run(
      "CREATE TABLE links (id INT PRIMARY KEY, a INT, b INT, code TEXT UNIQUE);" +
        "CREATE TABLE doubles (a INT, b INT, v INT, PRIMARY KEY (a, b)); CREATE INDEX ON links (a, b);" +
        "INSERT INTO links SELECT g, g % 700, g * 7 % 900, 'c' || g FROM generate_series(1, 3000) g;" +
        "INSERT INTO doubles SELECT g / 2, g % 2, g * 13 % 1500 FROM generate_series(1, 3000) g;" +
        "STORAGE FLUSH TABLE links; STORAGE FLUSH TABLE doubles;" +
        "UPDATE links SET b = NULL WHERE id % 40 = 0; DELETE FROM links WHERE id % 55 = 0",
    );
  });

  /**
   * Joins of the working table w with a table x. A suffix appended to the columns hides them from
   * the planner.
   */
  const STEP_JOINS: readonly ((hidden: string) => string)[] = [
    (h) => `x.b FROM w JOIN links x ON x.id${h} = w.id`,
    (h) => `x.b FROM links x JOIN w ON x.id${h} = w.id AND x.b > w.n`,
    (h) => `x.b FROM w JOIN links x ON x.a${h} = w.id`,
    (h) => `x.b FROM w JOIN links x ON x.a${h} = w.id AND x.b${h} = w.id + 7`,
    (h) => `x.b FROM w JOIN links x ON x.a${h} = w.id AND x.id % 3 = w.n`,
    (h) => `x.v FROM w JOIN doubles x ON x.a${h} = w.id`,
    (h) => `x.v FROM w JOIN doubles x ON x.a${h} = w.id AND x.b${h} = 1`,
    (h) => `coalesce(x.b, w.id + 1) FROM w LEFT JOIN links x ON x.id${h} = w.id AND x.b < 800`,
    (h) => `coalesce(x.v, w.id + 1) FROM w LEFT JOIN doubles x ON x.a${h} = w.id AND x.v > 300`,
    (h) => `w.id + 3 FROM w WHERE EXISTS (SELECT 1 FROM links x WHERE x.a${h} = w.id)`,
    (h) => `w.id + 3 FROM w WHERE NOT EXISTS (SELECT 1 FROM links x WHERE x.id${h} = w.id)`,
    (h) => `y.v FROM w JOIN links x ON x.id${h} = w.id JOIN doubles y ON y.a${h} = x.b`,
    (h) => `x.id FROM w JOIN links x ON x.code = 'c' || (w.id${h} + 1)`,
    (h) => `x.id + 0 FROM w JOIN (SELECT id + 1 AS i, a AS k, id FROM links) x ON x.k${h} = w.id`,
  ];

  test.each(shareOf(STEP_JOINS, { oneOf: 3 }).map((join) => [join("")] as const))(
    "yields what a scan yields: %s",
    async (shown) => {
      const join = STEP_JOINS.find((each) => each("") === shown) ?? (() => shown);
      for (const first of ["WHERE id = 5", "WHERE id IN (3, 8, 700)", "WHERE id < 40"]) {
        const of = (hidden: string): string =>
          `WITH RECURSIVE w (id, n) AS (SELECT id, 0 FROM links ${first} UNION ` +
          `SELECT q.id, q.n FROM (SELECT ${join(hidden).replace(" FROM", " AS id, w.n + 1 AS n FROM")}) q ` +
          `WHERE q.n < ${STEPS}) SELECT id, n FROM w ORDER BY n, id`;
        const rows = await engine.rows(of(""));
        expect(rows).toEqual(await engine.rows(of(" + 0")));
        expect(rows.length).toBeGreaterThan(0);
        const inside = (hidden: string): string =>
          "BEGIN; UPDATE links SET b = id % 50 WHERE id < 60; INSERT INTO links VALUES (5000, 5, 6, 'n');" +
          `DELETE FROM doubles WHERE a = 6; ${of(hidden)}; ROLLBACK`;
        const [staged, scanned] = [await engine.run(inside("")), await engine.run(inside(" + 0"))];
        expect(staged[4]?.rows).toEqual(scanned[4]?.rows);
      }
    },
  );

  test("a recursion keeps the table of a hash join from step to step", async () => {
    await engine.run("CREATE SEQUENCE taken");
    const [entry] = await engine.run(
      "WITH RECURSIVE w (id, n, t) AS (SELECT 1, 0, 0::bigint UNION ALL SELECT x.v, n + 1, x.t FROM w JOIN " +
        "(SELECT k, v, nextval('taken') AS t FROM (VALUES (1, 2), (2, 3), (3, 1)) y(k, v)) x ON x.k = w.id" +
        " WHERE n < 10) SELECT id, t FROM w ORDER BY n",
    );
    // Each row on the right side got its number when the first step read it.
    const expected = Array.from({ length: 11 }, (_, n) => [
      1 + (n % 3),
      n === 0 ? 0 : 1 + ((n + 2) % 3),
    ]);
    expect(entry?.rows).toEqual(expected);
  });
});

describe("a join can use the first column of a key", () => {
  const days = "CREATE TABLE days (d DATE, n INT, v DECIMAL(8,2), PRIMARY KEY (d, n))";
  const sums = "CREATE TABLE sums (k DECIMAL(8,2), n INT, PRIMARY KEY (k, n))";
  const half = (from: number): string =>
    `INSERT INTO days SELECT DATE '2020-01-01' + g / 2, g % 2, g / 4.0 FROM generate_series(${from}, ${from + 1999}) g;` +
    `INSERT INTO sums SELECT g / 4.0, g % 3 FROM generate_series(${from}, ${from + 1999}) g;` +
    "STORAGE FLUSH TABLE days; STORAGE FLUSH TABLE sums";

  beforeAll(async () => {
    for (const sql of [days, sums, half(0), half(2000)]) await engine.run(sql);
    await engine.run(
      "INSERT INTO days VALUES (DATE '2030-01-01', 1, 1000), (DATE '1900-01-01', 1, 2)",
    );
  });

  test.each([
    ["days", "SELECT x.n FROM asks a JOIN days x ON x.d = DATE '2020-01-01' + a.id WHERE a.id < 9"],
    [
      "days",
      "SELECT a.id FROM asks a LEFT JOIN days x ON x.d = DATE '2024-01-01' + a.id WHERE a.id < 9",
    ],
    ["sums", "SELECT n FROM sums WHERE k IN (SELECT v FROM days WHERE d = DATE '2020-01-05')"],
  ])("reads of %s only rows that may have its values: %s", async (table, sql) => {
    expect(await readOf(table, sql)).toBeLessThan(100);
  });

  test("a join by the first column returns the same as scans, for random joins", async () => {
    for (let seed = 1; seed <= amountOf({ usual: 4, thorough: 60 }); seed += 1) {
      const random = new SeededRandom(seed);
      const from = random.below(400);
      const few = `a.id BETWEEN ${from} AND ${from + random.below(60)}`;
      const of = (asked: string, day: string, sum: string): string => {
        const queries = [
          `SELECT a.id, x.n FROM asks a JOIN days x ON ${day} = DATE '2020-01-01' + a.u WHERE ${asked}`,
          `SELECT a.id, x.n FROM asks a LEFT JOIN days x ON ${day} = DATE '2022-06-01' + a.id WHERE ${asked}`,
          `SELECT a.id, y.n FROM asks a JOIN sums y ON ${sum} = a.u / 4.0 WHERE ${asked}`,
          `SELECT a.id FROM asks a WHERE NOT EXISTS (SELECT 1 FROM sums y WHERE ${sum} = a.o AND y.n <> a.l) AND ${asked}`,
          `SELECT v FROM days x WHERE ${day} IN (SELECT DATE '2020-01-01' + a.u FROM asks a WHERE ${asked})`,
        ];
        return `${queries[seed % queries.length]} ORDER BY 1, ${seed % 5 < 3 ? 2 : 1}`;
      };
      expect(await engine.rows(of(few, "x.d", "y.k"))).toEqual(
        await engine.rows(of(few, "(x.d + 0)", "(y.k + 0)")),
      );
    }
  });
});
