/**
 * Tests statements that wait for a reader: their order, the rows they read once they begin, and
 * the events that end their wait. The only reader is occupied until a test releases it.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type LogFields, silentLog } from "../../../src/base/log.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { WAITING_PER_USER_MAX } from "../../../src/sql/readers/reader_pool.ts";
import { HeldReaders } from "../../support/held_readers.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { type RequestParts, TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

let clock: ManualClock;
let readers: HeldReaders;
let engine: TestEngine;
let warnings: string[];

beforeEach(async () => {
  clock = new ManualClock();
  readers = new HeldReaders();
  warnings = [];
  engine = await TestEngine.open({
    clock,
    config: "server.workers = 1",
    heldReaders: readers,
    readsElsewhere: true,
    log: { ...silentLog, warn: (text: string, _fields?: LogFields) => void warnings.push(text) },
  });
  await engine.run(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH (TYPE = 'SHARED');" +
      "CREATE TABLE u (id INT PRIMARY KEY, v INT) WITH (TYPE = 'SHARED');" +
      "INSERT INTO t VALUES (1, 10), (2, 20);" +
      "CREATE USER ann INTERNAL ROLE dba;" +
      "CREATE USER ben INTERNAL ROLE dba",
  );
});
afterEach(() => engine[Symbol.asyncDispose]());

/** The names of the statements, in the order in which they ended. */
let ends: string[] = [];
beforeEach(() => {
  ends = [];
});

/**
 * Sends a statement of a user. The first statement gets the reader, and later statements have to
 * wait.
 */
function send(
  sql: string,
  { name = sql, userId = "root", ...parts }: RequestParts & { name?: string; userId?: string } = {},
): Promise<SqlResponse> {
  engine.userId = userId;
  const answer = engine.ask(sql, parts).finally(() => ends.push(name));
  engine.userId = "root";
  return answer;
}

/** Returns the rows of a response, which must not be an error. */
function rowsOf({ error, results }: SqlResponse): unknown {
  expect(error?.message).toBeUndefined();
  return results.at(-1)?.rows;
}

const SUM = "SELECT sum(v) FROM t";

function counts(): { waiting: number; waited: number } {
  const { waited = -1, waiting = -1 } = engine.database.readerCounts() ?? {};
  return { waiting, waited };
}

/** Occupies the only reader with a statement, so that other statements wait. */
async function busy(): Promise<{ readonly answer: Promise<SqlResponse> }> {
  readers.hold();
  const answer = send(SUM, { name: "first" });
  await until(() => engine.database.readerCounts()?.busy === 1);
  return { answer };
}

async function queryId(like: string): Promise<string> {
  // A query that may sleep begins on the event loop, even if all readers are busy.
  const { error, results } = await engine.ask(
    `SELECT query_id, state, pg_sleep(0) FROM system.queries WHERE sql LIKE '${like}'`,
  );
  expect(error).toBeUndefined();
  const [[id, state] = []] = results.at(-1)?.rows ?? [];
  expect(state).toBe("waiting");
  return String(id);
}

describe("statements that find no reader free wait", () => {
  test("waiting statements run in turn by user, and those of one user in the order of arrival", async () => {
    readers.hold();
    const answers = [
      ...[1, 2, 3].map((at) => send(SUM, { name: `root${at}` })),
      ...[1, 2].map((at) => send(SUM, { name: `ann${at}`, userId: "ann" })),
      send("UPDATE u SET v = v + 1", { name: "ben1", userId: "ben" }),
    ];
    await until(() => counts().waiting === 5);
    readers.release();
    for (const answer of answers) expect((await answer).error?.message).toBeUndefined();
    expect(ends).toEqual(["root1", "ann1", "ben1", "root2", "ann2", "root3"]);
    expect(counts()).toEqual({ waiting: 0, waited: 5 });
  });

  test("waiting statements read the newest state when they begin, or that of their transaction", async () => {
    const first = await busy();
    const query = send(SUM);
    const inTransaction = send(`BEGIN READ ONLY; ${SUM}; COMMIT`);
    const change = send("INSERT INTO u SELECT * FROM t");
    await until(() => counts().waiting === 3);
    await engine.run("INSERT INTO t VALUES (3, 70)");
    readers.release();
    expect(rowsOf(await first.answer)).toEqual([[30]]);
    expect(rowsOf(await query)).toEqual([[100]]);
    expect((await inTransaction).results[1]?.rows).toEqual([[30]]);
    expect((await change).results[0]?.rowCount).toBe(3);
  });

  test("waiting statements are bound again if a definition has changed", async () => {
    const first = await busy();
    const statements = [
      send("SELECT v, id FROM t ORDER BY id"),
      send("SELECT * FROM t ORDER BY id"),
      send("SELECT sum(v) FROM u"),
      send("UPDATE u SET v = 1"),
      send("DELETE FROM t WHERE v > 10"),
    ];
    await until(() => counts().waiting === 5);
    await engine.run("ALTER TABLE t ADD COLUMN w INT DEFAULT 5; DROP TABLE u");
    readers.release();
    await first.answer;
    const answers = await Promise.all(statements);
    expect(answers.map(({ error }) => error?.code)).toEqual([
      undefined,
      undefined,
      "TABLE_NOT_FOUND",
      "TABLE_NOT_FOUND",
      undefined,
    ]);
    const rows = answers[1]?.results[0]?.rows?.map((row) => row.slice(0, 3));
    expect(rows).toEqual([
      [1, 10, 5],
      [2, 20, 5],
    ]);
    expect(answers[4]?.results[0]?.rowCount).toBe(1);
  });
});

describe("several events end the wait for a reader", () => {
  test("KILL ends a wait", async () => {
    const first = await busy();
    const killed = [send("SELECT max(v) FROM t"), send("UPDATE t SET v = 0")];
    await until(() => counts().waiting === 2);
    await engine.run(`KILL QUERY '${await queryId("%max%")}'`);
    await engine.run(`KILL QUERY '${await queryId("UPDATE%")}'`);
    const conditions = (await Promise.all(killed)).map(({ error }) => error?.code);
    expect(conditions).toEqual(["CANCELLED", "CANCELLED"]);
    expect([readers.jobCount, counts().waiting]).toEqual([1, 0]);
    readers.release();
    expect(rowsOf(await first.answer)).toEqual([[30]]);
  });

  test("a deadline ends a wait exactly at that moment", async () => {
    const first = await busy();
    const late = send("SELECT max(v) FROM t", { timeoutMs: 700 });
    await until(() => counts().waiting === 1);
    clock.advance(699);
    for (let turn = 0; turn < 20; turn += 1) await clock.yield();
    expect(counts().waiting).toBe(1);
    clock.advance(1);
    expect((await late).error?.code).toBe("STATEMENT_TIMEOUT");
    readers.release();
    await first.answer;
  });

  test("a client that disconnects ends a wait", async () => {
    const first = await busy();
    let leave: (() => void) | undefined;
    const left = send(SUM, { reader: { onLeave: (callback) => (leave = callback) } });
    await until(() => counts().waiting === 1);
    leave?.();
    expect((await left).error?.code).toBe("CANCELLED");
    readers.release();
    await first.answer;
  });

  test("the end of the server ends a wait", async () => {
    const first = await busy();
    const waiting = send("SELECT max(v) FROM t");
    await until(() => counts().waiting === 1);
    await engine.database.close();
    expect((await waiting).error?.code).toBe("SHUTTING_DOWN");
    await first.answer;
    await engine.reopen();
  });
});

test("statements whose reader fails continue in the next one", async () => {
  const first = await busy();
  const waiting = [send("SELECT max(v) FROM t"), send("INSERT INTO u SELECT * FROM t")];
  await until(() => counts().waiting === 2);
  readers.failAll();
  readers.release();
  expect((await first.answer).error?.code).toBe("INTERNAL_ERROR");
  const [max, insert] = await Promise.all(waiting);
  expect([max?.results[0]?.rows, insert?.results[0]?.rowCount]).toEqual([[[20]], 2]);
});

test("statements run on the event loop if no reader can be opened, with one warning", async () => {
  readers.isRefusing = true;
  const answers = await Promise.all([send(SUM), send(SUM), send("INSERT INTO u SELECT * FROM t")]);
  expect(answers.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
  expect(await engine.rows("SELECT sum(v) FROM u")).toEqual([[30]]);
  expect([readers.jobCount, counts().waited]).toEqual([0, 0]);
  expect(warnings.filter((text) => text.includes("reader thread"))).toHaveLength(1);
});

test("statements run on the event loop if no reader starts, with one warning", async () => {
  readers.isFailingStarts = true;
  const answers = await Promise.all([send(SUM), send(SUM), send("INSERT INTO u SELECT * FROM t")]);
  expect(answers.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
  expect(await engine.rows("SELECT sum(v) FROM u")).toEqual([[30]]);
  expect(warnings.filter((text) => text.includes("reader thread"))).toHaveLength(1);
  // The pool tries again later to start the reader.
  readers.isFailingStarts = false;
  clock.advance(2000);
  expect(await engine.rows(SUM)).toEqual([[30]]);
  expect(readers.jobCount).toBe(1);
});

test("statements wait for a reader that starts slowly, even after another one was ended", async () => {
  readers.isHoldingStarts = true;
  readers.hold();
  const first = send(SUM, { timeoutMs: 100 });
  await until(() => engine.database.readerCounts()?.busy === 1);
  clock.advance(200);
  expect((await first).error?.code).toBe("STATEMENT_TIMEOUT");
  const next = send(SUM);
  // Ten seconds are too short for a reader that has not started to count as hanging.
  clock.advance(10_000);
  expect([counts().waiting, warnings]).toEqual([1, []]);
  readers.release();
  expect(rowsOf(await next)).toEqual([[30]]);
  expect(readers.jobCount).toBe(2);
});

test("waiting statements run on the event loop once no more readers can be opened", async () => {
  const first = await busy();
  const waiting = send("SELECT max(v) FROM t");
  await until(() => counts().waiting === 1);
  readers.isRefusing = true;
  readers.failAll();
  expect((await first.answer).error?.code).toBe("INTERNAL_ERROR");
  expect(rowsOf(await waiting)).toEqual([[20]]);
});

test("a query that lists the running statements does not wait for them", async () => {
  const first = await busy();
  const waiting = send("SELECT max(v) FROM t");
  await until(() => counts().waiting === 1);
  const inspecting = engine.rows(
    "SELECT state FROM system.queries q JOIN t ON true WHERE q.sql LIKE 'SELECT max%'",
  );
  await until(() => engine.database.readerCounts()?.busy === 2);
  const another = engine.rows("SELECT count(*) FROM system.tables");
  await until(() => counts().waiting === 2);
  // Every user may read `system.my_jobs`, so a query on it gets no reserved reader.
  const own = send("SELECT count(*) FROM system.my_jobs");
  await until(() => counts().waiting === 3);
  readers.release();
  expect(await inspecting).toHaveLength(2);
  expect(await another).toHaveLength(1);
  for (const answer of [first.answer, waiting, own]) expect((await answer).error).toBeUndefined();
  expect(engine.database.readerCounts()).toMatchObject({ open: 2, busy: 0, waiting: 0 });
});

test("only a limited number of statements of one user wait", async () => {
  const first = await busy();
  const sent = Array.from({ length: WAITING_PER_USER_MAX }, () => send(SUM, { userId: "ann" }));
  await until(() => counts().waiting === WAITING_PER_USER_MAX);
  const { error } = await send(SUM, { userId: "ann" });
  expect([error?.code, error?.hint]).toEqual([
    "LIMIT_EXCEEDED",
    "send fewer long-running statements at a time, or raise server.workers",
  ]);
  // Statements of other users are not affected.
  const other = send("SELECT max(v) FROM t", { name: "other", userId: "ben" });
  readers.release();
  await first.answer;
  expect(rowsOf(await other)).toEqual([[20]]);
  expect(ends.indexOf("other")).toBeLessThan(4);
  for (const answer of sent) expect(rowsOf(await answer)).toEqual([[30]]);
});
