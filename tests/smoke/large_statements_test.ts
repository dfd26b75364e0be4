/**
 * Verifies that statements with thousands of values may share memory, but never values. The tests
 * run such statements concurrently and in succession, let some fail and repeat others, and compare
 * the rows of the table with the values that were sent.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

const ROWS = 1000;
const COUNTED = "SELECT COUNT(*), COUNT(DISTINCT body), MIN(body), MAX(body) FROM items";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows(
    "CREATE TABLE items (id BIGINT PRIMARY KEY, body TEXT); " +
      "CREATE TABLE wide (id INT PRIMARY KEY, a TEXT, b BIGINT, c TEXT, d DOUBLE, e BOOLEAN)",
  );
});

beforeEach(async () => {
  await server.rows("DELETE FROM items; DELETE FROM wide");
});

afterAll(async () => {
  await server.stop();
});

function bodyOf(id: number): string {
  return `text ${String(id).padStart(6, "0")} of many words`;
}

function insertOf(from: number, last = ""): string {
  const rows = Array.from({ length: ROWS }, (_, i) => `(${from + i}, '${bodyOf(from + i)}')`);
  return `INSERT INTO items (id, body) VALUES ${rows.join(", ")}${last}`;
}

/** Returns the expected result of COUNTED for `count` rows numbered from `first`. */
function countsOf(first: number, count: number): unknown[][] {
  return [[count, count, bodyOf(first), bodyOf(first + count - 1)]];
}

test("concurrent large statements each write their own rows", async () => {
  const starts = Array.from({ length: 8 }, (_, i) => i * ROWS);
  await Promise.all(starts.map((from) => server.rows(insertOf(from))));
  expect(await server.rows(COUNTED)).toEqual(countsOf(0, 8 * ROWS));
  const rows = await server.rows("SELECT id, body FROM items WHERE id % 997 = 0 ORDER BY id");
  expect(rows).toEqual(rows.map(([id]) => [id, bodyOf(Number(id))]));
});

test("a large statement that fails in the middle does not affect concurrent ones", async () => {
  const [good, taken, faulty, other] = await Promise.all([
    server.sql(insertOf(0)),
    server.sql(insertOf(5000, `, (5000, 'again')`)),
    server.sql(insertOf(7000, `, (true, 'no number')`)),
    server.sql(insertOf(ROWS)),
  ]);
  expect([good.status, other.status]).toEqual([200, 200]);
  expect([taken.body.error?.message, faulty.body.error?.message]).toEqual([
    expect.stringContaining("already exists"),
    expect.stringContaining("Cannot convert a value of type boolean to bigint"),
  ]);
  expect(await server.rows(COUNTED)).toEqual(countsOf(0, 2 * ROWS));
});

test("large statements with different numbers of columns reveal nothing about one another", async () => {
  const wide = Array.from({ length: ROWS }, (_, i) =>
    i % 3 === 0
      ? `(${i}, NULL, ${i}, 'c${i}', NULL, true)`
      : `(${i}, 'a${i}', NULL, NULL, 0.5, false)`,
  );
  for (const from of [0, ROWS]) {
    await server.rows(insertOf(from));
    await server.rows(`DELETE FROM wide; INSERT INTO wide VALUES ${wide.join(", ")}`);
  }
  expect(await server.rows(COUNTED)).toEqual(countsOf(0, 2 * ROWS));
  const rows = await server.rows("SELECT id, a, b, c, d, e FROM wide ORDER BY id");
  expect(rows).toEqual(
    Array.from({ length: ROWS }, (_, i) =>
      i % 3 === 0 ? [i, null, i, `c${i}`, null, true] : [i, `a${i}`, null, null, 0.5, false],
    ),
  );
});

test("several large statements in one text are a transaction, even with RETURNING", async () => {
  const [first, second] = [insertOf(0), insertOf(ROWS, " RETURNING id, body")];
  const { body } = await server.sql(`BEGIN; ${first}; ${second}; COMMIT`);
  expect(body.results[2]?.rows?.at(-1)).toEqual([2 * ROWS - 1, bodyOf(2 * ROWS - 1)]);
  const undone = await server.sql(`BEGIN; ${insertOf(2 * ROWS)}; ${first}; COMMIT`);
  expect(undone.body.error?.message).toContain("already exists");
  expect(await server.rows(COUNTED)).toEqual(countsOf(0, 2 * ROWS));
});

test("a large statement with an idempotency_key runs once, and is recognized again", async () => {
  const keyed = { fields: { idempotency_key: "large" } };
  const first = await server.sql(insertOf(0), keyed);
  const again = await server.sql(insertOf(0), keyed);
  expect(again.body.results).toEqual(first.body.results);
  const other = await server.sql(insertOf(ROWS), keyed);
  expect(other.body.error?.code).toBe("IDEMPOTENCY_CONFLICT");
  expect(await server.rows(COUNTED)).toEqual(countsOf(0, ROWS));
});
