/**
 * Tests large and long-running statements: they succeed or stop at their limit, and yield to other
 * work in the meantime.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { testThoroughly } from "../support/requirements.ts";
import { TestEngine } from "../support/sql_engine.ts";
import { shareOf } from "../support/thoroughness.ts";

const ROWS = 10_000;
let engine: TestEngine;

beforeAll(async () => {
  const config =
    "performance.query_memory_bytes = 4194304\nperformance.query_temporary_bytes = 0\nlimits.max_result_rows = 20000\nlimits.max_timeout_ms = 30000";
  engine = await TestEngine.open({ clock: systemClock, config, inThreads: true });
  const rows = Array.from({ length: ROWS }, (_, id) => `(${id}, ${id % 10})`);
  await engine.run(
    "CREATE TABLE big (id INT PRIMARY KEY, g INT); CREATE TABLE few (id INT PRIMARY KEY, v TEXT, n INT)",
  );
  await engine.run(
    `INSERT INTO big VALUES ${rows.join(", ")}; INSERT INTO few VALUES (3, 'three', 3), (-1, 'none', 0)`,
  );
});
afterAll(() => engine[Symbol.asyncDispose]());

describe.each(shareOf(["in memory", "in a segment"], { oneOf: 2 }))(
  "statements change many rows in batches of %s rows",
  (where) => {
    beforeAll(async () => {
      if (where === "in a segment") await engine.run("STORAGE FLUSH TABLE big");
    });

    testThoroughly("a join returns more than one batch of rows without a match", async () => {
      const join = "FROM big LEFT JOIN few ON few.id = big.id";
      expect(await engine.rows(`SELECT count(*), count(few.n), sum(big.g) ${join}`)).toEqual([
        [ROWS, 1, 45_000],
      ]);
      const rows = await engine.rows(`SELECT big.id, few.v, few.n ${join} ORDER BY big.id`);
      expect(rows.map(([id]) => id)).toEqual(Array.from({ length: ROWS }, (_, id) => id));
      expect(rows.filter(([, v, n]) => v !== null || n !== null)).toEqual([[3, "three", 3]]);
      expect(
        await engine.rows(
          `SELECT g, few.v, count(*) ${join} WHERE big.g = 3 GROUP BY g, few.v ORDER BY 2`,
        ),
      ).toEqual([
        [3, "three", 1],
        [3, null, 999],
      ]);
    });

    test("a join on a condition without a key returns all pairs", async () => {
      const sql =
        "SELECT count(*), count(few.v) FROM big LEFT JOIN few ON few.id < big.id AND few.v = 'three' AND big.g = 1";
      expect(await engine.rows(sql)).toEqual([[ROWS, 999]]);
    });

    test("LIMIT, OFFSET, WITH TIES and DISTINCT work across batches", async () => {
      expect(await engine.rows(`SELECT id FROM big LIMIT 2 OFFSET 4095`)).toEqual([[4095], [4096]]);
      expect(
        await engine.rows(`SELECT id FROM big ORDER BY id DESC LIMIT 2 OFFSET ${ROWS - 2}`),
      ).toEqual([[1], [0]]);
      const ties = await engine.rows(
        "SELECT g, id FROM big ORDER BY g OFFSET 4 FETCH FIRST 1 ROW WITH TIES",
      );
      expect(ties).toHaveLength(996);
      expect(ties.every(([g, id]) => g === 0 && Number(id) % 10 === 0)).toBe(true);
      expect(await engine.rows("SELECT DISTINCT g FROM big ORDER BY g LIMIT 3")).toEqual([
        [0],
        [1],
        [2],
      ]);
    });

    test("INSERT … SELECT, UPDATE and DELETE change more rows than a batch holds", async () => {
      await engine.run("CREATE TABLE copy (id INT PRIMARY KEY, g INT)");
      expect((await engine.run("INSERT INTO copy SELECT id, g FROM big"))[0]?.rowCount).toBe(ROWS);
      expect((await engine.run("UPDATE copy SET g = g + 1 WHERE g < 5"))[0]?.rowCount).toBe(
        ROWS / 2,
      );
      expect((await engine.run("DELETE FROM copy WHERE g = 5"))[0]?.rowCount).toBe(ROWS / 5);
      expect(await engine.rows("SELECT sum(g), count(*) FROM copy")).toEqual([[40_000, 8000]]);
      await engine.run("DROP TABLE copy");
    });
  },
);

describe("a cross join that takes long can be interrupted", () => {
  const product = "SELECT count(*) FROM big a, big b, big c WHERE a.g + b.g + c.g < 0";

  test("a long cross join ends at its time limit, and yields to other work", async () => {
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    const failing = engine.failure(product, { timeoutMs: 400 });
    expect(await engine.rows("SELECT v FROM few WHERE id = 3")).toEqual([["three"]]);
    expect(await failing).toBe("STATEMENT_TIMEOUT@1");
    clearInterval(timer);
    // If the statement occupied the event loop until its timeout, the timer would run at most
    // once.
    expect(turns).toBeGreaterThan(1);
  });

  test.each([
    "UPDATE few SET v = 'x' WHERE id IN (1)",
    "INSERT INTO few SELECT a.id + b.id, 'x' FROM big a, big b, big c WHERE a.g < b.g - 100",
  ])("inside %s ends at its time and changes nothing", async (sql) => {
    const answer = await engine.failure(sql, { timeoutMs: 300 });
    expect(answer).toMatch(/^(STATEMENT_TIMEOUT@1|succeeded)/);
    expect(await engine.rows("SELECT count(*) FROM few")).toEqual([[2]]);
  });
});

test("a change counts more memory for each row than its cells take", async () => {
  await engine.run("CREATE TABLE filled (id INT PRIMARY KEY)");
  const fill = (count: number): string =>
    `INSERT INTO filled SELECT g FROM generate_series(1, ${count}) g`;
  // Each row takes 16 bytes for its cell and another 48 bytes. The limit is 4 MiB.
  expect(await engine.failure(fill(90_000))).toBe("MEMORY_EXCEEDED@1");
  expect(await engine.rows("SELECT count(*) FROM filled")).toEqual([[0]]);
  await engine.run(fill(40_000));
  expect(await engine.rows("SELECT count(*) FROM filled")).toEqual([[40_000]]);
  await engine.run("DROP TABLE filled");
});

test("of several windows, one with long values is computed last", async () => {
  // Each window keeps the values of the windows before it. These texts have 9 MB in total.
  const sql =
    "SELECT max(length(texts)), max(place) FROM (SELECT string_agg('a', '-') OVER (ORDER BY g) AS texts," +
    " row_number() OVER (ORDER BY g DESC) AS place FROM generate_series(1, 3000) AS t(g)) AS q";
  expect(await engine.rows(sql)).toEqual([[5999, 3000]]);
});

testThoroughly("the memory of a statement is limited even if it may not use the disk", async () => {
  const text = "repeat('x', 700)";
  for (const sql of [
    `SELECT id FROM big ORDER BY ${text} || id`,
    `SELECT count(*) FROM (SELECT DISTINCT ${text} || id FROM big) q`,
    `SELECT ${text} || id, count(*) FROM big GROUP BY 1`,
    `SELECT count(*) FROM few LEFT JOIN (SELECT ${text} || id AS k FROM big) q ON q.k = few.v`,
    `SELECT string_agg(${text}, ',' ORDER BY a.id) FROM big a JOIN few ON few.id >= -1`,
  ]) {
    expect(await engine.failure(sql), sql).toBe("MEMORY_EXCEEDED@1");
  }
  expect(
    await engine.rows(
      "SELECT a.id FROM big a, few b, few c ORDER BY repeat('x', 40) || a.id LIMIT 1",
    ),
  ).toEqual([[0]]);
});

test("a result above limits.max_result_rows is an error, and is not truncated", async () => {
  expect(await engine.failure("SELECT a.id FROM big a, few b, few c")).toBe("RESULT_TOO_LARGE@1");
  expect(await engine.rows("SELECT count(*) FROM big a, few b, few c")).toEqual([[4 * ROWS]]);
});

test("SHOW and DESCRIBE also return at most limits.max_result_rows rows", async () => {
  await using few = await TestEngine.open({ config: "limits.max_result_rows = 4" });
  await few.run("CREATE TABLE narrow (id INT PRIMARY KEY, a INT)");
  expect(await few.rows("DESCRIBE narrow")).toHaveLength(4);
  await few.run("ALTER TABLE narrow ADD COLUMN b INT");
  expect(await few.failure("DESCRIBE narrow")).toBe("RESULT_TOO_LARGE@1");
  expect(await few.failure("SHOW COLUMNS FROM narrow")).toBe("RESULT_TOO_LARGE@1");
  expect(await few.rows("SHOW TABLES IN default")).toHaveLength(1);
});

test("a change that would return more than limits.max_result_rows rows changes none", async () => {
  await engine.run("CREATE TABLE returned (id INT PRIMARY KEY)");
  const insert = "INSERT INTO returned SELECT * FROM generate_series(1, $1)";
  const refused = `${insert} RETURNING id`;
  expect(await engine.failure(refused, { params: [20_001] })).toStartWith("RESULT_TOO_LARGE@1");
  const inTransaction = `BEGIN; ${refused}; COMMIT`;
  expect(await engine.failure(inTransaction, { params: [20_001] })).toBe("RESULT_TOO_LARGE@2");
  expect(await engine.rows("SELECT count(*) FROM returned")).toEqual([[0]]);
  expect(await engine.rows(refused, { params: [20_000] })).toHaveLength(20_000);
  await engine.run("DELETE FROM returned");
  await engine.run(insert, { params: [20_001] });
  expect(await engine.failure("DELETE FROM returned RETURNING 1")).toBe("RESULT_TOO_LARGE@1");
  expect(await engine.rows("SELECT count(*) FROM returned")).toEqual([[20_001]]);
});

testThoroughly("an IN list of 100,000 values is accepted", async () => {
  const list = Array.from({ length: 100_000 }, (_, i) => i * 2 - 50_000).join(", ");
  expect(await engine.rows(`SELECT count(*) FROM big WHERE id IN (${list})`)).toEqual([[ROWS / 2]]);
  expect(await engine.rows(`SELECT count(*) FROM big WHERE id NOT IN (${list})`)).toEqual([
    [ROWS / 2],
  ]);
  expect(await engine.rows(`SELECT count(*) FROM big WHERE id NOT IN (${list}, NULL)`)).toEqual([
    [0],
  ]);
});

testThoroughly(
  "chains of 10,000 operands and nesting up to the limit are accepted, and more is refused clearly",
  async () => {
    const chain = Array.from({ length: 10_000 }, (_, i) => `id = ${i}`).join(" OR ");
    expect(await engine.rows(`SELECT count(*) FROM few WHERE ${chain}`)).toEqual([[1]]);
    const sum = Array.from({ length: 10_000 }, () => "1").join(" + ");
    const answer = await engine.failure(`SELECT ${sum}`);
    expect(answer).toMatch(/^(INVALID_SQL@1|succeeded with .*10000)/);
    const nested = (depth: number): string => `SELECT ${"(".repeat(depth)}1${")".repeat(depth)}`;
    expect(await engine.rows(nested(100))).toEqual([[1]]);
    expect(await engine.failure(nested(200))).toStartWith("INVALID_SQL@1:");
    const derived = (depth: number): string =>
      `SELECT * FROM ${"(SELECT * FROM ".repeat(depth)}(VALUES (1)) v${") q".repeat(depth)}`;
    expect(await engine.rows(derived(40))).toEqual([[1]]);
    expect(await engine.failure(derived(200))).toStartWith("INVALID_SQL@1:");
  },
);

test("a text just below limits.max_sql_bytes is accepted, and one above it is refused", async () => {
  const text = (bytes: number): string => `SELECT length('${"ü".repeat(bytes / 2)}')`;
  expect(await engine.rows(text(1_000_000))).toEqual([[500_000]]);
  expect(await engine.failure(text(1_100_000))).toStartWith("INVALID_SQL@1");
});

testThoroughly("comparing two long alternatives does not take quadratic time", async () => {
  const all = (from: number): string =>
    Array.from({ length: 8000 }, (_, i) => `n <> ${from + i}`).join(" AND ");
  const sql = `SELECT count(*) FROM few WHERE (${all(10)}) OR (${all(5)})`;
  expect(await engine.rows(sql)).toEqual([[2]]);
});

test("rows of 256 values can be compared, and longer rows are refused", async () => {
  const row = (count: number, last: number): string =>
    `(${Array.from({ length: count }, (_, i) => (i === count - 1 ? last : 1)).join(",")})`;
  expect(await engine.rows(`SELECT ${row(256, 1)} < ${row(256, 2)}`)).toEqual([[true]]);
  for (const count of [257, 100_000]) {
    const answer = await engine.failure(`SELECT ${row(count, 1)} < ${row(count, 2)}`);
    expect(answer).toStartWith("LIMIT_EXCEEDED@1");
  }
});

test("the columns of all branches of a set operation count towards one limit", async () => {
  const arms = Array.from({ length: 200 }, () => `SELECT ${"1,".repeat(899)}1`).join(" UNION ALL ");
  expect(await engine.failure(arms)).toStartWith("LIMIT_EXCEEDED");
});

test("aggregates that differ only in their order are distinct", async () => {
  const lists = Array.from({ length: 300 }, (_, i) => `string_agg(x, '' ORDER BY y * ${i - 1})`);
  const [row] = await engine.rows(
    `SELECT ${lists.join(",")} FROM (VALUES ('a', 1), ('b', 2)) v(x, y)`,
  );
  expect(row).toEqual(["ba", "ab", ...Array<string>(298).fill("ab")]);
});

describe("a select list may have many outputs", () => {
  const listed = (count: number): string => Array.from({ length: count }, () => "1").join(",");

  test("a select list may have 4096 outputs", async () => {
    const [row] = await engine.rows(`SELECT ${listed(4096)}`);
    expect(row?.length).toBe(4096);
  });

  test("a select list beyond the limit is refused with the position", async () => {
    expect(await engine.failure(`SELECT ${listed(4097)}`)).toStartWith("LIMIT_EXCEEDED");
    const inner = `SELECT count(*) FROM (SELECT ${listed(4097)}) AS q`;
    expect(await engine.failure(inner)).toStartWith("LIMIT_EXCEEDED");
  });

  test("a select list may compute over 256 windows, and not more", async () => {
    const over = (count: number): string => {
      const calls = Array.from({ length: count }, (_, i) => `count(*) OVER (ORDER BY x + ${i})`);
      return `SELECT ${calls.join(",")} FROM (VALUES (1)) v(x)`;
    };
    expect(await engine.rows(over(256))).toEqual([Array(256).fill(1)]);
    expect(await engine.failure(over(257))).toStartWith("LIMIT_EXCEEDED@1");
  });

  testThoroughly("a repeated expression is found among thousands of outputs", async () => {
    const keys = Array.from({ length: 3000 }, (_, i) => `x + ${i}`);
    const sql = `SELECT x + 2999, sum(y), avg(y + x) + sum(y) FROM (VALUES (1, 5), (1, 6)) v(x, y) GROUP BY ${keys.join(",")}`;
    expect(await engine.rows(`${sql} ORDER BY x + 1500, sum(y)`)).toEqual([[3000, 11, 17.5]]);
    const sums = keys.map((key) => `sum(${key})`);
    const [row] = await engine.rows(
      `SELECT ${sums.join(",")} FROM (VALUES (1), (2)) v(x) ORDER BY sum(x + 7)`,
    );
    expect(row).toEqual(keys.map((_, i) => 3 + 2 * i));
    const [captured] = await engine.rows(
      `SELECT (SELECT v.x + v.y + v.x) FROM (VALUES (1, 5)) v(x, y)`,
    );
    expect(captured).toEqual([7]);
  });

  test("a select list is also limited when each * is expanded", async () => {
    const named = Array.from({ length: 4096 }, (_, i) => `${i} AS c${i}`).join(",");
    const stars = (count: number): string =>
      `SELECT ${Array.from({ length: count }, () => "q.*").join(",")} FROM (SELECT ${named}) AS q`;
    const [row] = await engine.rows(stars(4));
    expect(row?.length).toBe(16_384);
    expect(await engine.failure(stars(5))).toStartWith("LIMIT_EXCEEDED@1:");
    expect(await engine.failure(stars(4096))).toStartWith("LIMIT_EXCEEDED@1:");
  });
});
