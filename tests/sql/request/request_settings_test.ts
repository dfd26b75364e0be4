/**
 * SET and SHOW: what holds for the rest of a request and what for its transaction, which values are
 * taken, and that a statement has no more time than SET gave it.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";

/** Every look at it takes a millisecond, so work takes time however fast it is. */
function tickingClock(): Clock & { elapsedMs: number } {
  const start = new ManualClock();
  return {
    elapsedMs: 0,
    nowMs: () => start.nowMs(),
    monotonicMs(): number {
      this.elapsedMs += 1;
      return this.elapsedMs;
    },
    after: (delayMs, callback) => start.after(delayMs, callback),
    yield: () => systemClock.yield(),
  };
}

const clock = tickingClock();
let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ clock, config: "performance.request_timeout = 30" });
  await engine.run("CREATE USER dora INTERNAL ROLE dba; CREATE USER sam INTERNAL ROLE service");
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
});

/** What SHOW tells of a setting behind a text. */
async function shownAfter(sql: string, name: string): Promise<unknown> {
  return (await engine.rows(`${sql}; SHOW ${name}`))[0]?.[1];
}

test("SET holds for the rest of the request, and not for the next", async () => {
  const [set] = await engine.run("SET application_name = 'shop'");
  expect(set).toMatchObject({ rowCount: 0, message: 'Setting application_name set to "shop"' });

  expect(await shownAfter("SET application_name = 'shop'; SELECT 1", "application_name")).toBe(
    "shop",
  );
  expect(await shownAfter("SELECT 1", "application_name")).toBe("");
  expect(
    await shownAfter(
      "SET application_name = a; SET application_name TO DEFAULT",
      "application_name",
    ),
  ).toBe("");
});

test.each([
  ["SET statement_timeout = 250", "statement_timeout", "250"],
  ["SET SESSION statement_timeout TO '2s'", "statement_timeout", "2000"],
  ["SET statement_timeout = '0.5 min'", "statement_timeout", "30000"],
  ["SET statement_timeout = 30000", "statement_timeout", "30000"],
  ["SET statement_timeout = 5; SET statement_timeout = DEFAULT", "statement_timeout", "30000"],
  ["SET timezone = 'utc'", "timezone", "UTC"],
  ["SET TimeZone TO UTC", `"TIMEZONE"`, "UTC"],
  ["SET TIME ZONE 'UTC'", "timezone", "UTC"],
  ["SET TIME ZONE LOCAL", "timezone", "UTC"],
  ["SET application_name = word", "application_name", "word"],
  ["SET application_name = 12", "application_name", "12"],
])("%s is taken", async (sql, name, value) => {
  expect(await shownAfter(sql, name)).toBe(value);
});

test.each([
  ["SET statement_timeout = 30001", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = '1h'", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = 0", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = -1", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = 'soon'", "INVALID_OPTION@1:0"],
  ["SET statement_timeout = NULL", "INVALID_OPTION@1:0"],
  ["SET timezone = 'Europe/Berlin'", "INVALID_OPTION@1:0"],
  ["SET TIME ZONE 'Europe/Berlin'", "INVALID_OPTION@1:0"],
  ["SET application_name = X'00'", "INVALID_OPTION@1:0"],
  ["SET limits.max_sql_bytes = 5", "INVALID_OPTION@1:0"],
  ["SET work_mem = DEFAULT", "INVALID_OPTION@1:0"],
  ["SET LOCAL application_name = 'x'", "TRANSACTION_REQUIRED@1:0"],
])("%s is refused", async (sql, failure) => {
  expect(await engine.failure(sql)).toBe(failure);
});

test("a long value that cannot be set is refused at once, with the beginning of it", async () => {
  const text = `1${" ".repeat(500_000)}x`;
  for (const name of ["statement_timeout", "timezone"]) {
    const { error } = await engine.ask(`SET ${name} = '${text}'`);
    expect(error?.condition, name).toBe("INVALID_OPTION");
    expect(error?.message, name).toContain(`Cannot set ${name} to "1   `);
    expect(error?.message.length, name).toBeLessThan(300);
  }
});

test("a value that cannot be set is found before anything of the text runs", async () => {
  await engine.run("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
  const text = "INSERT INTO app.t VALUES (1); SET timezone = 'Mars'";
  expect(await engine.failure(text)).toBe("INVALID_OPTION@2:30");
  expect(await engine.rows("SELECT * FROM app.t")).toEqual([]);
});

test("SET is for dba and above, as SHOW of a setting is", async () => {
  for (const sql of ["SET timezone = 'UTC'", "SET TIME ZONE 'UTC'", "SHOW timezone", "SHOW ALL"]) {
    engine.userId = "sam";
    expect(await engine.failure(sql), sql).toBe("PERMISSION_DENIED@1:0");
    engine.userId = "dora";
    expect(await engine.run(sql), sql).toHaveLength(1);
  }
});

test("COMMIT keeps what SET changed and ends what SET LOCAL did, ROLLBACK undoes both", async () => {
  const change =
    "SET application_name = 'a'; BEGIN; SET application_name = 'b'; SET LOCAL application_name = 'c'";
  expect(await shownAfter(change, "application_name; COMMIT")).toBeUndefined();
  const inside = await engine.run(`${change}; SHOW application_name; COMMIT`);
  expect(inside[4]?.rows?.[0]?.[1]).toBe("c");
  expect(await shownAfter(`${change}; COMMIT`, "application_name")).toBe("b");
  expect(await shownAfter(`${change}; ROLLBACK`, "application_name")).toBe("a");
});

test("SHOW ALL tells of every setting, and of what SET can change", async () => {
  const shown = await engine.rows("SET statement_timeout = 7; SHOW ALL");
  const settings = await engine.rows(
    "SELECT name, value, description, category FROM system.settings",
  );
  expect(shown.slice(0, settings.length)).toEqual(settings as unknown[][]);
  expect(shown.slice(settings.length).map(([name, value]) => [name, value])).toEqual([
    ["statement_timeout", "7"],
    ["timezone", "UTC"],
    ["application_name", ""],
  ]);
  expect(await engine.failure("SHOW nothing")).toBe("OBJECT_NOT_FOUND@1:0");
});

test("a statement ends at the time of SET, and the request goes by its own", async () => {
  const endless = "SELECT count(*) FROM generate_series(1, 1000000000)";
  const start = clock.elapsedMs;
  expect(await engine.failure(`SET statement_timeout = 40; SELECT 1; ${endless}`)).toBe(
    "STATEMENT_TIMEOUT@3",
  );
  expect(clock.elapsedMs - start).toBeLessThan(1000);

  // Each statement has its time anew, and all of them that of the request.
  const selects = Array.from({ length: 200 }, () => "SELECT 1").join(";");
  await engine.run(`SET statement_timeout = 40; ${selects}`);
  expect(
    await engine.failure(`SET statement_timeout = 40; ${selects}`, { timeoutMs: 100 }),
  ).toStartWith("STATEMENT_TIMEOUT@");
});
