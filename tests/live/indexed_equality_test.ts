/**
 * Verifies that a condition `column = constant` is not evaluated again if a feed's index has
 * already decided it, whatever the type, and that the rest of the filter is evaluated only if the
 * condition holds. Rows enter, stay in and leave the results of several live queries. At the end,
 * the results are compared with those of ordinary queries.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Database } from "../../src/database.ts";
import { openAt, SMALL_FILES } from "../support/database.ts";
import { RecordingSink, subscriber } from "../support/live_fixture.ts";
import { rowsOf } from "../support/rows_of.ts";
import { until } from "../support/until.ts";

const directory = mkdtempSync(join(tmpdir(), "tidemark-indexed-"));
const root = { ...subscriber("root", 1), role: "system" } as const;
let database: Database;

beforeAll(async () => {
  database = await openAt(directory, { config: SMALL_FILES });
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

function follow(id: string, sql: string): RecordingSink {
  const sink = new RecordingSink();
  database.live.subscribe({ principal: root, spec: { id, sql }, sink });
  return sink;
}

/** Returns the ids of the rows in a result, derived from its change messages. */
function idsIn(sink: RecordingSink): number[] {
  const ids = new Set<number>();
  for (const { change_type, old_values, rows } of sink.changes()) {
    if (change_type === "delete") for (const row of old_values ?? []) ids.delete(Number(row["id"]));
    else for (const row of rows) ids.add(Number(row["id"]));
  }
  return [...ids].toSorted((left, right) => left - right);
}

/** Column types, each with two values. A value may have several spellings. */
const TYPES: readonly (readonly [string, readonly [string, ...string[]], string])[] = [
  ["INT", ["7"], "8"],
  ["SMALLINT", ["7"], "-8"],
  ["BIGINT", ["9007199254740993"], "9007199254740992"],
  ["REAL", ["0.1", "0.10"], "0.2"],
  ["DOUBLE", ["0.0", "-0.0"], "1e300"],
  ["DECIMAL(12, 3)", ["1.5", "1.500"], "1.501"],
  ["TEXT", ["'tide'"], "'Tide'"],
  ["BOOLEAN", ["TRUE"], "FALSE"],
  ["TIMESTAMP", ["'2026-01-02T03:04:05Z'", "'2026-01-02 03:04:05'"], "'2026-01-02T03:04:06Z'"],
  ["DATE", ["'2026-01-02'"], "'2026-01-03'"],
  ["TIME", ["'03:04:05'"], "'03:04:06'"],
  [
    "UUID",
    ["'0b5e8a4e-6f0c-4c35-9d35-111111111111'", "'0B5E8A4E-6F0C-4C35-9D35-111111111111'"],
    "'0b5e8a4e-6f0c-4c35-9d35-222222222222'",
  ],
  ["JSON", ["'[1,2]'", "'[1, 2]'", "'[1.0, 2]'"], "'[2, 1]'"],
];

test.each(TYPES)("%s: rows enter and leave by this condition alone", async (type, equal, other) => {
  const table = `default.t${TYPES.findIndex(([name]) => name === type)}`;
  await run(`CREATE TABLE ${table} (id INT PRIMARY KEY, c ${type})`);
  const where = [...equal, other].map((value) => `c = ${value}`);
  const queries = where.flatMap((condition) => [
    `SELECT id FROM ${table} WHERE ${condition}`,
    `SELECT id FROM ${table} WHERE id < 7 AND ${condition}`,
  ]);
  const sinks = queries.map((sql, index) => follow(`q${index}`, sql));
  const everything = follow("all", `SELECT id FROM ${table}`);
  const values = [...equal, other, "NULL"];
  let id = 0;
  const moves = values.flatMap((from) => values.map((to) => ({ id: (id += 1), from, to })));
  for (const move of moves) await run(`INSERT INTO ${table} VALUES (${move.id}, ${move.from})`);
  // Rows are first written together in one commit, and then one at a time.
  for (const to of values) {
    const ids = moves.filter((move) => move.to === to).map((move) => move.id);
    await run(`UPDATE ${table} SET c = ${to} WHERE id IN (${ids.slice(1).join()})`);
    await run(`UPDATE ${table} SET c = ${to} WHERE id = ${ids[0]}`);
  }
  await run(`DELETE FROM ${table} WHERE id % 5 = 0`);
  await run(`INSERT INTO ${table} VALUES (1000, ${other})`);
  await until(() => idsIn(everything).includes(1000));
  for (const [index, sql] of queries.entries()) {
    const expected = (await run(`${sql} ORDER BY id`)).map(([each]) => Number(each));
    expect([sql, idsIn(sinks[index] ?? everything)]).toEqual([sql, expected]);
  }
});

test("the rest of a filter is not evaluated on a version that fails the condition", async () => {
  await run("CREATE TABLE default.rooms (id INT PRIMARY KEY, room TEXT, n INT)");
  const inA = follow("a", "SELECT id FROM default.rooms WHERE 12 / n > 1 AND room = 'a'");
  const inB = follow("b", "SELECT id FROM default.rooms WHERE room = 'b'");
  await run("INSERT INTO default.rooms VALUES (1, 'a', 3), (2, 'a', 4), (3, 'b', 0), (4, NULL, 0)");
  await run("UPDATE default.rooms SET room = 'b', n = 0 WHERE id = 1");
  await run("UPDATE default.rooms SET room = 'a', n = 5 WHERE id >= 3");
  await run("INSERT INTO default.rooms VALUES (9, 'b', 0)");
  await until(() => idsIn(inB).includes(9));
  expect(inA.messages.filter(({ type }) => type === "error")).toEqual([]);
  expect(idsIn(inA)).toEqual([2, 3, 4]);
  expect(idsIn(inB)).toEqual([1, 9]);
});
