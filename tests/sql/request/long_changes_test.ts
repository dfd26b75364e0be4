/**
 * Tests changes that take more than a tick of the event loop. Each change is one commit or none,
 * whatever other requests write in the meantime, and can be stopped.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import type { SqlResponse, StatementResult } from "../../../src/sql/mod.ts";
import { HastyClock } from "../../support/hasty_clock.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

/** The number of rows in the table, more than fit into a time slice. */
const ROWS = 20_000;

/** The number of rows with a value of each type, more than fit into a time slice. */
const WIDE_ROWS = 8000;

let engine: TestEngine;

beforeAll(async () => {
  const config = "performance.query_memory_bytes = 1073741824";
  engine = await TestEngine.open({ clock: systemClock, config });
});
afterAll(() => engine[Symbol.asyncDispose]());

beforeEach(async () => {
  await engine.run(
    "DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS u;" +
      "CREATE TABLE t (id INT PRIMARY KEY, v BIGINT NOT NULL); CREATE TABLE u (id INT PRIMARY KEY, v BIGINT);" +
      `INSERT INTO t SELECT g, 0 FROM generate_series(1, ${ROWS}) g`,
  );
});

async function totals(table = "t"): Promise<readonly unknown[]> {
  const [row] = await engine.rows(`SELECT COUNT(*), SUM(v) FROM ${table}`);
  return row ?? [];
}

/** Starts a statement that must not end within its first time slice. */
function begin(sql: string): { isOver: () => boolean; ended: Promise<SqlResponse> } {
  let isOver = false;
  const ended = engine.ask(sql).finally(() => {
    isOver = true;
  });
  return { isOver: () => isOver, ended };
}

async function errorCodeOf({
  ended,
}: {
  ended: Promise<SqlResponse>;
}): Promise<string | undefined> {
  return (await ended).error?.code;
}

async function killTheOther(): Promise<void> {
  const sql = "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.queries%'";
  for (;;) {
    const [queryId] = (await engine.rows(sql)).flat().map((id) => String(id));
    if (queryId === undefined) {
      await systemClock.yield();
      continue;
    }
    await engine.run(`KILL QUERY '${queryId}'`);
    return;
  }
}

/** Returns a VALUES list with `count` rows for table `u`, followed by the given rows. */
function listed(count: number, ...last: readonly string[]): string {
  const rows = Array.from({ length: count }, (_, index) => `(${index + 1}, 2)`);
  return `INSERT INTO u VALUES ${[...rows, ...last].join(", ")}`;
}

const CHANGES: readonly (readonly [string, string])[] = [
  ["UPDATE", "UPDATE t SET v = v + 1"],
  ["UPDATE … FROM", "UPDATE t SET v = t.v + s.v + 1 FROM t s WHERE s.id = t.id"],
  ["DELETE", "DELETE FROM t"],
  ["DELETE … USING", "DELETE FROM t USING t s WHERE s.id = t.id"],
  ["INSERT … SELECT", "INSERT INTO u SELECT id, v FROM t"],
  ["an upsert", "INSERT INTO t SELECT id, 7 FROM t ON CONFLICT (id) DO UPDATE SET v = excluded.v"],
  ["RETURNING", "UPDATE t SET v = v + 1 RETURNING id, _seq"],
  ["a transaction", "BEGIN; UPDATE t SET v = v + 1; INSERT INTO u SELECT id, v FROM t; COMMIT"],
  ["a VALUES list", listed(ROWS)],
];

describe("long changes that are killed change nothing", () => {
  for (const [name, sql] of shareOf(CHANGES, { oneOf: 7 })) {
    test(`the killed change ${name} has changed nothing`, async () => {
      const long = begin(sql);
      await killTheOther();
      expect(await errorCodeOf(long)).toBe("CANCELLED");
      expect([await totals(), await totals("u")]).toEqual([
        [ROWS, "0"],
        [0, null],
      ]);
      await engine.restart();
      expect(await totals()).toEqual([ROWS, "0"]);
    });
  }
});

describe("long changes that are completed are exact", () => {
  const COMPLETED = [
    ["UPDATE", "UPDATE t SET v = v + 1", [ROWS, String(ROWS)], [0, null]],
    ["UPDATE … FROM", CHANGES[1]?.[1] ?? "", [ROWS, String(ROWS)], [0, null]],
    ["DELETE", "DELETE FROM t WHERE id > 10", [10, "0"], [0, null]],
    ["DELETE … USING", CHANGES[3]?.[1] ?? "", [0, null], [0, null]],
    ["INSERT … SELECT", "INSERT INTO u SELECT id, 2 FROM t", [ROWS, "0"], [ROWS, String(2 * ROWS)]],
    ["a VALUES list", listed(ROWS), [ROWS, "0"], [ROWS, String(2 * ROWS)]],
    ["a VALUES list that fits a turn", listed(16_384), [ROWS, "0"], [16_384, "32768"]],
    ["an upsert", CHANGES[5]?.[1] ?? "", [ROWS, String(7 * ROWS)], [0, null]],
    ["a transaction", CHANGES[7]?.[1] ?? "", [ROWS, String(ROWS)], [ROWS, String(ROWS)]],
  ] as const;

  test.each(shareOf(COMPLETED, { oneOf: 6 }))(
    "%s is there, also after a restart",
    async (_name, sql, t, u) => {
      await engine.run(sql);
      expect([await totals(), await totals("u")]).toEqual([[...t], [...u]]);
      await engine.restart();
      expect([await totals(), await totals("u")]).toEqual([[...t], [...u]]);
    },
  );

  test("RETURNING returns each row with its final _seq", async () => {
    const returned = await engine.rows("UPDATE t SET v = v + id RETURNING id, v, _seq");
    expect(returned).toHaveLength(ROWS);
    expect(returned).toEqual([...(await engine.rows("SELECT id, v, _seq FROM t ORDER BY _seq"))]);
  });

  test("a long change is one commit", async () => {
    const [result] = (await engine.run("UPDATE t SET v = 1")) as [StatementResult];
    expect(result.rowCount).toBe(ROWS);
    expect(await engine.rows("SELECT MAX(_seq) FROM t")).toEqual([[result.lastSeq]]);
  });
});

/** The type of each column, and an expression that computes its value from the row number `g`. */
const VALUES = [
  ["BIGINT", "CASE WHEN g % 3 = 0 THEN 9007199254740993 + g ELSE g END"],
  ["DOUBLE", "CASE WHEN g % 7 = 0 THEN NULL ELSE g * 0.5::double END"],
  ["DECIMAL(30,2)", "(g * 100000000000000000000.25)::decimal(30,2)"],
  ["TEXT", "CASE WHEN g % 11 = 0 THEN NULL WHEN g % 2 = 0 THEN 'é' || g ELSE '' END"],
  ["BOOLEAN", "g % 2 = 0"],
  ["JSON", "('{\"a\": ' || g || '}')::json"],
  ["BYTES", "CASE WHEN g % 5 = 0 THEN NULL ELSE ('\\x' || lpad(to_hex(g), 8, '0'))::bytes END"],
  ["TIMESTAMP", "'2026-01-01'::timestamp + g * INTERVAL '1 second'"],
  ["TEXT", "'the same'"],
] as const;

describe("long changes are computed column by column", () => {
  const names = VALUES.map((_, at) => `c${at}`);
  const shown = names.map((name) => `${name}::text`).join(", ");
  const made = (g: string): string =>
    VALUES.map(([type, value]) => `(${value.replaceAll(/\bg\b/g, g)})::${type}::text`).join(", ");
  const rowsOf = (from: string): Promise<readonly unknown[]> =>
    engine.rows(`SELECT id, ${shown} FROM ${from} ORDER BY id`);
  const expectRows = async (expected: readonly unknown[], from = "m"): Promise<void> => {
    // Strings are compared, because printing the differences between so many rows would take
    // minutes.
    expect(JSON.stringify(await rowsOf(from)) === JSON.stringify(expected)).toBe(true);
  };

  beforeEach(async () => {
    const columns = VALUES.map(([type], at) => `c${at} ${type}`).join(", ");
    await engine.run(
      `DROP TABLE IF EXISTS m; CREATE TABLE m (id INT PRIMARY KEY, ${columns}, d TEXT DEFAULT 'given' || 1);` +
        `INSERT INTO m (c8, id, ${names.slice(0, 8).join(", ")}) SELECT ${VALUES[8][1]}, g, ` +
        `${VALUES.slice(0, 8)
          .map(([, value]) => value)
          .join(", ")} FROM generate_series(1, ${WIDE_ROWS}) g`,
    );
  });

  test("each type is stored unchanged, even after a restart and in a segment", async () => {
    const expected = await engine.rows(
      `SELECT g, ${made("g")} FROM generate_series(1, ${WIDE_ROWS}) g ORDER BY 1`,
    );
    await expectRows(expected);
    await engine.restart();
    await expectRows(expected);
    await engine.run("STORAGE FLUSH TABLE m");
    await expectRows(expected);
    expect(await engine.rows("SELECT DISTINCT d FROM m")).toEqual([["given1"]]);
  });

  testThoroughly(
    "an UPDATE changes the named values, and no row that would stay the same",
    async () => {
      const before = await engine.rows("SELECT id, _seq FROM m WHERE id % 3 > 0 ORDER BY id");
      const sets = names.map((name, at) => {
        const [type, value] = VALUES[at] ?? VALUES[0];
        return `${name} = CASE WHEN id % 3 > 0 THEN ${name} ELSE (${value.replaceAll(/\bg\b/g, "(id + 1)")})::${type} END`;
      });
      const [updated] = await engine.run(`UPDATE m SET ${sets.join(", ")}, d = DEFAULT`);
      expect(updated?.rowCount).toBe(WIDE_ROWS);
      const g = "(CASE WHEN g % 3 > 0 THEN g ELSE g + 1 END)";
      const expected = await engine.rows(
        `SELECT g, ${made(g)} FROM generate_series(1, ${WIDE_ROWS}) g ORDER BY 1`,
      );
      await expectRows(expected);
      const after = await engine.rows("SELECT id, _seq FROM m WHERE id % 3 > 0 ORDER BY id");
      expect(JSON.stringify(after) === JSON.stringify(before)).toBe(true);
      await engine.restart();
      await expectRows(expected);
    },
  );

  testThoroughly("a DELETE frees its keys, and moves the last values to history", async () => {
    await engine.run("DELETE FROM m WHERE id % 2 = 0");
    expect(await engine.rows("SELECT count(*), min(id) FROM m")).toEqual([[WIDE_ROWS / 2, 1]]);
    await engine.run(
      `INSERT INTO m (id, c3) SELECT g, 'new' FROM generate_series(2, ${WIDE_ROWS}, 2) g`,
    );
    await engine.restart();
    const counted = "SELECT count(*), count(CASE WHEN c3 = 'new' THEN 1 END) FROM m";
    expect(await engine.rows(counted)).toEqual([[WIDE_ROWS, WIDE_ROWS / 2]]);
  });

  testThoroughly("a table without a key can be changed", async () => {
    await engine.run(
      `DROP TABLE IF EXISTS k; CREATE STREAM TABLE k (a INT, b TEXT) WITH (TTL_SECONDS = 3600); INSERT INTO k SELECT g % 10, 'b' FROM generate_series(1, ${ROWS}) g;` +
        "DELETE FROM k WHERE a > 0",
    );
    expect(await engine.rows("SELECT count(*), max(a) FROM k")).toEqual([[ROWS / 10, 0]]);
  });

  const CONSTRAINTS = [
    ["a CHECK", "CHECK (v <> 15000)", "CHECK_VIOLATION@1"],
    ["NOT NULL", "NOT NULL", "NOT_NULL_VIOLATION@1"],
  ] as const;

  test.each(shareOf(CONSTRAINTS, { oneOf: 2 }))(
    "%s refuses the first faulty row",
    async (_, constraint, code) => {
      await engine.run(
        `DROP TABLE IF EXISTS k; CREATE TABLE k (id INT PRIMARY KEY, v INT ${constraint})`,
      );
      const value = "CASE WHEN g = 18000 THEN NULL ELSE g END";
      const sql = `INSERT INTO k SELECT g, ${value} FROM generate_series(1, ${ROWS}) g`;
      expect(await engine.failure(sql)).toBe(code);
      expect(await engine.rows("SELECT count(*) FROM k")).toEqual([[0]]);
    },
  );
});

describe("a change that is refused in the middle leaves nothing", () => {
  test.each([
    [
      "a duplicate",
      "INSERT INTO t SELECT g, 1 FROM generate_series(12001, 30000) g UNION ALL SELECT 5, 1",
      "DUPLICATE_KEY@1",
    ],
    [
      "a NULL",
      `UPDATE t SET v = CASE WHEN id = ${ROWS} THEN NULL ELSE 1 END`,
      "NOT_NULL_VIOLATION@1",
    ],
    ["a division", `UPDATE t SET v = 1 / (${ROWS} - id)`, "DIVISION_BY_ZERO@1"],
    [
      "what RETURNING raises",
      `UPDATE t SET v = 1 RETURNING 1 / (${ROWS} - id)`,
      "DIVISION_BY_ZERO@1",
    ],
  ])("by %s, it has changed nothing", async (_name, sql, code) => {
    expect(await engine.failure(sql)).toStartWith(code);
    expect(await totals()).toEqual([ROWS, "0"]);
  });

  test.each([
    ["a cell that cannot be cast", "('x', 1)", "INVALID_VALUE"],
    ["a NULL in its key", "(NULL, 1)", "NOT_NULL_VIOLATION"],
    ["a key that it has already", "(7, 1)", "DUPLICATE_KEY"],
  ])("by %s, a list has the error of a short one and leaves nothing", async (_name, row, is) => {
    const { error: short } = await engine.ask(listed(200, row));
    const { error: long } = await engine.ask(listed(ROWS, row));
    expect(long?.code).toBe(is as never);
    const message = short?.message.replace("row 201)", `row ${ROWS + 1})`);
    expect(long?.message).toBe(message ?? "");
    const cell = short?.position === undefined ? undefined : listed(ROWS, row).lastIndexOf("'x'");
    expect(long?.position).toBe(cell);
    expect(await totals("u")).toEqual([0, null]);
  });
});

describe("concurrent writes during a long change are detected", () => {
  test("a change runs again on the new rows if others write its rows", async () => {
    const long = begin("UPDATE t SET v = v + 1");
    // A short statement runs in the tick in which it is sent.
    await Promise.all([
      engine.run("UPDATE t SET v = 1000 WHERE id = 5"),
      engine.run("DELETE FROM t WHERE id = 6"),
    ]);
    expect(await errorCodeOf(long)).toBeUndefined();
    expect(await engine.rows("SELECT v FROM t WHERE id = 5")).toEqual([[1001]]);
    expect(await totals()).toEqual([ROWS - 1, String(ROWS - 1 + 1000)]);
  });

  test("a change continues if others write other rows and other tables", async () => {
    const long = begin("UPDATE t SET v = v + 1 WHERE id > 10");
    await Promise.all([
      engine.run("UPDATE t SET v = 100 WHERE id = 5"),
      engine.run("INSERT INTO u VALUES (1, 1)"),
    ]);
    expect(await errorCodeOf(long)).toBeUndefined();
    expect(await totals()).toEqual([ROWS, String(ROWS - 10 + 100)]);
  });

  test("two changes that repeatedly write the same row both succeed", async () => {
    const long = begin("UPDATE t SET v = v + 1000000");
    let count = 0;
    while (!long.isOver()) {
      await engine.run("UPDATE t SET v = v + 1 WHERE id = 5");
      count += 1;
      await systemClock.yield();
    }
    expect(await errorCodeOf(long)).toBeUndefined();
    expect(await engine.rows("SELECT v FROM t WHERE id = 5")).toEqual([[1_000_000 + count]]);
  });

  test("a key that others insert meanwhile is a duplicate for INSERT, but not for an upsert", async () => {
    const select = `SELECT g, 1 FROM generate_series(1, ${ROWS}) g`;
    const long = begin(`INSERT INTO u ${select}`);
    await engine.run("INSERT INTO u VALUES (9, 9)");
    expect(await errorCodeOf(long)).toBe("DUPLICATE_KEY");
    const list = begin(listed(ROWS).replaceAll("(9, 2), ", ""));
    await engine.run(listed(0, ...Array.from({ length: 200 }, (_, i) => `(${ROWS - i}, 1)`)));
    expect(await errorCodeOf(list)).toBe("DUPLICATE_KEY");
    await engine.run("DELETE FROM u WHERE id <> 9");
    const upsert = begin(`INSERT INTO u ${select} ON CONFLICT (id) DO UPDATE SET v = u.v + 1`);
    await engine.run("INSERT INTO u VALUES (10, 50)");
    expect(await errorCodeOf(upsert)).toBeUndefined();
    expect(await engine.rows("SELECT id, v FROM u WHERE v <> 1 ORDER BY id")).toEqual([
      [9, 10],
      [10, 51],
    ]);
  });

  test("a change in a transaction fails if others write its rows", async () => {
    const long = begin("BEGIN; UPDATE t SET v = v + 1; COMMIT");
    await systemClock.yield();
    await engine.run("UPDATE t SET v = 1000 WHERE id = 5");
    expect(await errorCodeOf(long)).toBe("SERIALIZATION_FAILURE");
    expect(await totals()).toEqual([ROWS, "1000"]);
  });

  test("a change to a table that is altered meanwhile runs on the altered table", async () => {
    const long = begin("UPDATE t SET v = v + 1");
    await engine.run("ALTER TABLE t ADD COLUMN w INT DEFAULT 3");
    expect(await errorCodeOf(long)).toBeUndefined();
    expect(await engine.rows("SELECT COUNT(*), SUM(v), SUM(w) FROM t")).toEqual([
      [ROWS, String(ROWS), 3 * ROWS],
    ]);
  });

  test("a change to a table that is dropped meanwhile fails", async () => {
    const long = begin("UPDATE t SET v = v + 1");
    await engine.run("DROP TABLE t");
    expect((await long.ended).error).toMatchObject({
      code: "TABLE_NOT_FOUND",
      message: "Cannot find table default.t",
    });
  });
});

describe("a change that ends at its second time slice releases its files", () => {
  let hasty: TestEngine;

  beforeEach(async () => {
    hasty = await TestEngine.open({
      clock: new HastyClock(),
      config: "performance.request_timeout = 0",
    });
    await hasty.run(
      "CREATE TABLE read (id INT PRIMARY KEY, v INT); CREATE TABLE written (id INT PRIMARY KEY);" +
        "INSERT INTO read SELECT g, g FROM generate_series(1, 5000) g; STORAGE FLUSH TABLE read;" +
        "INSERT INTO written VALUES (1)",
    );
  });
  afterEach(() => hasty[Symbol.asyncDispose]());

  /**
   * Drops the table, and asserts that its files disappear. The files would be kept if a query
   * still read them.
   */
  async function expectNothingKept(): Promise<void> {
    const segments = join(hasty.dataPath, "segments");
    await hasty.run("DROP TABLE read");
    await until(() => filesBelow(segments).length === 0);
    expect(filesBelow(segments)).toEqual([]);
  }

  function filesBelow(path: string): string[] {
    return readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".seg"),
    );
  }

  test.each([
    ["an INSERT of a key that is there", "INSERT INTO written SELECT id FROM read"],
    ["what RETURNING fails on", "UPDATE read SET v = 0 RETURNING 1 / (id - 1)"],
  ])("by %s", async (_, sql) => {
    expect((await hasty.ask(sql)).error).toBeDefined();
    await expectNothingKept();
  });

  const LIMITED = [
    "UPDATE read SET v = v + 1",
    "DELETE FROM read",
    "INSERT INTO written SELECT id + 1 FROM read",
  ];

  test.each(shareOf(LIMITED, { oneOf: 3 }))("the time limit ends a change: %s", async (sql) => {
    // Some of these changes time out before the first time slice, and others in later ones.
    for (let timeoutMs = 1; timeoutMs <= 201; timeoutMs += 20) {
      const { error } = await hasty.ask(`BEGIN; ${sql}; ROLLBACK`, { timeoutMs });
      if (error === undefined) break;
      expect(error.code).toBe("STATEMENT_TIMEOUT");
    }
    await expectNothingKept();
  });
});
