/**
 * Verifies the snapshot of a table in which nearly all versions have been replaced: it yields to
 * other work repeatedly, examines each version once, and is correct. The tests use a store in
 * which each batch takes time, whether or not it contains visible rows.
 */
import { expect, test } from "bun:test";
import { RowPage } from "../../../src/live/mod.ts";
import { SnapshotReader } from "../../../src/live/snapshot/snapshot_reader.ts";
import type { Scan } from "../../../src/storage/mod.ts";
import {
  ANN,
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  settle,
} from "../../support/live_fixture.ts";
import { programFor, tickOf } from "../../support/live_parts.ts";

const EVERYTHING = "SELECT * FROM chat.messages";

/** The number of replaced versions before the live rows, and again after them. */
const HIDDEN = 700;
const BATCH_MS = 1;

interface Slow {
  readonly fixture: LiveFixture;
  /** The number of batches read so far, and of the scans that read them. */
  readonly counts: { batches: number; scans: number };
}

/** Returns a fixture with the rows 1 to 3, of which row 2 has been changed very often. */
function slowFixture(): Slow {
  const fixture = liveFixture();
  const { clock, store } = fixture;
  const write = (operation: "insert" | "update", id: number, n: number): void =>
    void store.write({ tableId: MESSAGES, owner: 1, operation, rows: [message(id, "lobby", n)] });
  write("insert", 1, 0);
  write("insert", 2, 0);
  for (let n = 1; n <= HIDDEN; n += 1) write("update", 2, n);
  write("insert", 3, 0);
  const counts = { batches: 0, scans: 0 };
  const scanOf = store.scan.bind(store);
  store.scan = (...asked): Scan => {
    const scan = scanOf(...asked);
    counts.scans += 1;
    const next: Scan["next"] = () => {
      counts.batches += 1;
      clock.advance(BATCH_MS);
      return scan.next();
    };
    return { groupsRead: 0, groupsPruned: 0, next, close: () => scan.close() };
  };
  return { fixture, counts };
}

function readerOf(
  { clock, sql, store }: LiveFixture,
  lastRows?: number,
): {
  reader: SnapshotReader;
  replan: () => void;
} {
  const plan = sql.planLive(ANN, { sql: EVERYTHING, params: [] });
  let program = programFor(plan);
  const reader = new SnapshotReader({
    store,
    clock,
    program: () => program,
    boundary: store.visibleSeq,
    batchSize: 1000,
    frameBytesMax: 1 << 20,
    lastRows,
    onArrived: () => undefined,
  });
  const replan = (): void => {
    program = programFor(plan);
  };
  return { reader, replan };
}

/**
 * Reads a snapshot to its end. Returns the values of column `n`, and the number of ticks taken.
 */
function readAll(reader: SnapshotReader, onTurn: () => void = () => undefined) {
  for (let ticks = 1; ; ticks += 1) {
    const step = reader.next(tickOf(2 * 1000 * BATCH_MS));
    if (step === undefined) {
      onTurn();
      continue;
    }
    if (step === "waiting" || !(step.rows instanceof RowPage)) throw new Error("no page");
    return { ticks, n: step.rows.rows().map((row) => row["n"]) };
  }
}

test.each([
  ["all rows", undefined],
  ["the last rows", 3],
])("SnapshotReader yields to other work among rows that are not current: %s", (_what, lastRows) => {
  const { counts, fixture } = slowFixture();
  const { reader } = readerOf(fixture, lastRows);
  const { n, ticks } = readAll(reader);
  expect(n).toEqual([0, HIDDEN, 0]);
  expect(ticks).toBeGreaterThan(HIDDEN / 7 / 4);
  // The search for the last rows examines each version once, and reading these rows examines each
  // version once more.
  expect(counts.batches).toBeLessThan((HIDDEN / 7 + 5) * (lastRows === undefined ? 1 : 2));
  expect(counts.scans).toBeLessThan(6);
  expect(fixture.store.openScanCount).toBe(0);
});

test("SnapshotReader restarts a scan if its plan was replaced during a pause", () => {
  const { counts, fixture } = slowFixture();
  const { reader, replan } = readerOf(fixture);
  let ticks = 0;
  const { n } = readAll(reader, () => {
    ticks += 1;
    if (ticks === 10) replan();
    expect(fixture.store.openScanCount).toBeLessThanOrEqual(1);
  });
  expect(n).toEqual([0, HIDDEN, 0]);
  expect(counts.batches).toBeGreaterThan(HIDDEN / 7 + 10);
  expect(fixture.store.openScanCount).toBe(0);
});

test("SnapshotReader.release releases a paused scan without losing rows", () => {
  const { fixture } = slowFixture();
  const { reader } = readerOf(fixture);
  let ticks = 0;
  const { n } = readAll(reader, () => {
    ticks += 1;
    if (ticks !== 10) return;
    reader.release();
    expect(fixture.store.openScanCount).toBe(0);
  });
  expect(n).toEqual([0, HIDDEN, 0]);
});

test("a subscription that ends during a snapshot leaves no scan open", async () => {
  const { fixture } = slowFixture();
  const { sink, subscription } = fixture.open(EVERYTHING);
  expect(sink.batches()).toEqual([]);
  expect(fixture.store.openScanCount).toBe(1);
  subscription.close();
  expect(fixture.store.openScanCount).toBe(0);
  await settle();
  expect(sink.batches()).toEqual([]);
});
