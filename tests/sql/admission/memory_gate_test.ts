/**
 * Tests the memory gate: the statements that wait, the time that they wait, and the ways in which
 * the wait ends.
 */
import { afterAll, expect, spyOn, test } from "bun:test";
import { MemoryGate } from "../../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { laterErrorCodeOf } from "../../support/error_codes.ts";
import { endingAt, NEVER } from "../../support/ledgers.ts";
import { freshDirectory, removeDirectories } from "../../support/maintenance.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { principalFor } from "../../support/principal_for.ts";

afterAll(removeDirectories);

function gateOf(clock: ManualClock, pressure: { isTight: boolean }): MemoryGate {
  return new MemoryGate(clock, Object.assign(pressure, { noteAllocated: () => undefined }));
}

/** Advances a clock in steps. In between, waiting statements may run. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 20) {
    clock.advance(20);
    await clock.yield();
  }
}

test("an open gate makes no statement wait", async () => {
  const clock = new ManualClock();
  await gateOf(clock, { isTight: false }).opened(endingAt(NEVER));
  expect(clock.timerCount).toBe(0);
});

test("a statement waits until memory is free again", async () => {
  const clock = new ManualClock();
  const pressure = { isTight: true };
  const order: string[] = [];
  const waiting = gateOf(clock, pressure)
    .opened(endingAt(NEVER))
    .then(() => order.push("through"));
  await pass(clock, 1000);
  order.push("free");
  pressure.isTight = false;
  await pass(clock, 20);
  await waiting;
  expect(order).toEqual(["free", "through"]);
});

test("a statement that waits too long is refused for lack of memory", async () => {
  const clock = new ManualClock();
  const waiting = laterErrorCodeOf(() => gateOf(clock, { isTight: true }).opened(endingAt(NEVER)));
  await pass(clock, 10_000);
  expect(await waiting).toBe("MEMORY_EXCEEDED");
});

test("a part of a response may wait beyond the deadline of its statement, and ends when the statement is killed", async () => {
  const clock = new ManualClock();
  const pressure = { isTight: true };
  const gate = gateOf(clock, pressure);
  const late = endingAt(100);
  const killed = endingAt(NEVER);
  const waiting = gate.openedForPart(late).then(() => "through");
  const ended = laterErrorCodeOf(() => gate.openedForPart(killed));
  await pass(clock, 500);
  killed.cancelledBy = "kill";
  await pass(clock, 20);
  expect(await ended).toBe("CANCELLED");
  pressure.isTight = false;
  await pass(clock, 20);
  expect(await waiting).toBe("through");
});

test("a waiting statement ends at its deadline, and when it is killed", async () => {
  const clock = new ManualClock();
  const gate = gateOf(clock, { isTight: true });
  const late = laterErrorCodeOf(() => gate.opened(endingAt(100)));
  const killed = endingAt(NEVER);
  const ended = laterErrorCodeOf(() => gate.opened(killed));
  killed.cancelledBy = "kill";
  await pass(clock, 200);
  expect([await late, await ended]).toEqual(["STATEMENT_TIMEOUT", "CANCELLED"]);
});

test("statements on rows wait for memory, but definitions and statements about the server do not", async () => {
  const clock = new ManualClock();
  const GIB = 2 ** 30;
  const config = `${SMALL_FILES}\nperformance.memory_bytes = ${16 * GIB}`;
  const database = await openAt(freshDirectory(), { clock, config });
  database.watchMemory();
  const ended: string[] = [];
  const run = async (name: string, sql: string): Promise<void> => {
    const request = { sql, params: [] };
    const { error } = await database.sql.execute(principalFor(database, "root"), request);
    ended.push(error === undefined ? name : error.message);
  };
  await run("create", "CREATE TABLE t (id INT PRIMARY KEY)");
  using resident = spyOn(process.memoryUsage, "rss").mockImplementation(() => 15 * GIB);
  clock.advance(500);
  const waiting = [run("insert", "INSERT INTO t VALUES (1)"), run("select", "SELECT id FROM t")];
  await run("create", "CREATE TABLE u (id INT PRIMARY KEY)");
  await run("look", "SELECT part FROM system.memory");
  expect(ended).toEqual(["create", "create", "look"]);
  resident.mockImplementation(() => GIB);
  await pass(clock, 300);
  await Promise.all(waiting);
  expect(ended.slice(3).toSorted()).toEqual(["insert", "select"]);
  await database.close();
});
