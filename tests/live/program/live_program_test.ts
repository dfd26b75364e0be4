/**
 * Verifies how a live query handles rows that may each take a long time: it reads and evaluates
 * them one group at a time, charges their time, and may end the tick after any group. The test
 * controls the pace and the clock.
 */
import { expect, test } from "bun:test";
import { RowPage } from "../../../src/live/mod.ts";
import { LiveProgram } from "../../../src/live/program/live_program.ts";
import type { LivePace } from "../../../src/sql/mod.ts";
import { ANN, KnownQueries, liveFixture, MESSAGES, message } from "../../support/live_fixture.ts";
import { snapshotReader, tickOf } from "../../support/live_parts.ts";

const COMPUTED = "SELECT n * 2 AS twice FROM chat.messages WHERE n > 5";

interface Costs {
  /** The number of rows in each group that has been evaluated so far. */
  readonly groups: number[];
  readonly pace: LivePace;
}

/**
 * Returns a program in which each group takes as long as the test specifies. The test also
 * determines the size of the next group.
 */
function paced(
  tookMs: (groupIndex: number) => number,
  rowsMaxAfter: (groupIndex: number) => number,
): Costs {
  const groups: number[] = [];
  let nowMs = 0;
  let isRunning = false;
  const rows = {
    rowsMax: rowsMaxAfter(-1),
    note: ({ rowCount }: { rowCount: number }): void => {
      rows.rowsMax = rowsMaxAfter(groups.length);
      groups.push(rowCount);
    },
  };
  const monotonicMs = (): number => {
    if (isRunning) nowMs += tookMs(groups.length);
    isRunning = !isRunning;
    return nowMs;
  };
  return { groups, pace: { rows, monotonicMs } };
}

function programOf(sql: string, pace: LivePace | undefined): LiveProgram {
  const queries = new KnownQueries();
  queries.pace = pace;
  return new LiveProgram(queries.planLive(ANN, { sql, params: [] }));
}

test("portion evaluates all rows at once if none takes long", () => {
  const program = programOf(COMPUTED, undefined);
  const budget = tickOf(10);
  const portion = program.portion({ rowCount: 1000, budget }, (count) => [count]);
  expect(portion).toEqual({ rowCount: 1000, result: [1000] });
  expect(budget.left).toBe(10);
  expect(program.rowsAtOnce(1024)).toBe(1024);
});

test("portion evaluates as many rows as the pace allows, and charges their time", () => {
  const { groups, pace } = paced(
    () => 2,
    (index) => (index < 0 ? 8 : 3),
  );
  const program = programOf(COMPUTED, pace);
  const budget = tickOf(10_000);
  expect(program.portion({ rowCount: 100, budget }, (count) => [count]).result).toEqual([8]);
  expect(program.portion({ rowCount: 92, budget }, (count) => [count]).result).toEqual([3]);
  expect(program.portion({ rowCount: 2, budget }, (count) => [count]).result).toEqual([2]);
  expect(groups).toEqual([8, 3, 2]);
  expect(budget.left).toBe(4000);
});

test.each([
  { rowsMax: 1, read: 16 },
  { rowsMax: 100, read: 100 },
  { rowsMax: 2000, read: 1024 },
])("rowsAtOnce reads $read rows if at most $rowsMax are evaluated", ({ read, rowsMax }) => {
  const { pace } = paced(
    () => 0,
    () => rowsMax,
  );
  expect(programOf(COMPUTED, pace).rowsAtOnce(1024)).toBe(read);
});

test("a snapshot ends its tick after a row whose fields take long, and continues after that row", () => {
  const { store, clock } = liveFixture();
  const ids = [1, 2, 3, 4, 5, 6];
  const rows = ids.map((id) => message(id, "lobby", 10 + id));
  store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  // At first, the filter evaluates all rows quickly. Later, each row takes longer than a tick.
  const { groups, pace } = paced(
    (index) => (index === 0 ? 0 : 5),
    (index) => (index < 0 ? 6 : 1),
  );
  const program = programOf(COMPUTED, pace);
  const reader = snapshotReader({
    store,
    clock,
    program: () => program,
    boundary: store.visibleSeq,
    batchSize: 100,
    frameBytesMax: 1 << 20,
    lastRows: undefined,
    onArrived: () => undefined,
  });
  expect(reader.next(tickOf(100))).toBeUndefined();
  expect(groups).toEqual([6, 1]);
  let step = reader.next(tickOf(100));
  while (step === undefined) step = reader.next(tickOf(100));
  if (step === "waiting" || !(step.rows instanceof RowPage)) throw new Error("no page");
  expect(step.isLast).toBe(true);
  expect(step.rows.rows().map((row) => row["twice"])).toEqual([22, 24, 26, 28, 30, 32]);
});
