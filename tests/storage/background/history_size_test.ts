/**
 * Tests the job that limits the size of history: it yields to other work, never runs two checks at
 * a time, and checks less often if nothing can be discarded.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../../src/base/clock.ts";
import { silentLog } from "../../../src/base/log.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { CountingClock } from "../../support/counting_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { commit, defineTable, openStore } from "../../support/store_fixture.ts";

/** Each table has one segment, so a check takes two steps per table. */
const TABLES = Array.from({ length: 10 }, (_, index) =>
  defineTable(index + 1, [{ kind: "int" }, { kind: "text" }]),
);

/** The number of times that a check of all tables pauses. */
const PAUSES = 2;

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

interface Opened {
  readonly clock: CountingClock;
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  readonly store: LocalStore;
}

const OPTIONS = { historyBytesMax: 1 };

/** Opens a store in which one row of each table has been replaced. */
async function openWithHistory(): Promise<Opened> {
  const clock = new CountingClock();
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ clock, disk, manifest, definitions: TABLES, options: OPTIONS });
  for (const { tableId } of TABLES) {
    await commit(store, tableId, "insert", [
      [1, "old"],
      [2, "old"],
    ]);
    await store.flush(tableId);
    await commit(store, tableId, "update", [[1, "new"]]);
  }
  await settled();
  clock.yieldCount = 0;
  return { clock, disk, manifest, store };
}

test("boundHistory yields to other work, never runs two checks at once, and waits where nothing can be discarded", async () => {
  const { clock, store } = await openWithHistory();
  store.boundHistory();
  store.boundHistory();
  await settled();
  expect(clock.yieldCount).toBe(PAUSES);
  clock.advance(299_999);
  store.boundHistory();
  await settled();
  expect(clock.yieldCount).toBe(PAUSES);
  clock.advance(1);
  store.boundHistory();
  await settled();
  expect(clock.yieldCount).toBe(2 * PAUSES);
  clock.advance(2 * HOUR_MS);
  store.boundHistory();
  await settled();
  for (const { tableId } of TABLES) expect(store.earliestSeq(tableId, 0)).toBeGreaterThan(0);
  await store.close();
});

test("boundHistory ends when its store is closed", async () => {
  const { clock, store } = await openWithHistory();
  clock.advance(2 * HOUR_MS);
  store.boundHistory();
  await store.close();
  await settled();
  expect(clock.yieldCount).toBeLessThan(PAUSES);
});

test("boundHistory reports a deletion vector that cannot be opened, and tries again", async () => {
  const { clock, disk, manifest, store } = await openWithHistory();
  for (const { tableId } of TABLES) await store.flush(tableId);
  await store.close();
  const errors: string[] = [];
  const log = { ...silentLog, error: (message: string) => void errors.push(message) };
  const again = await openStore({
    clock,
    disk,
    log,
    manifest,
    definitions: TABLES,
    options: OPTIONS,
  });
  disk.faultPlan = (_operation, path) => (path.endsWith(".dv") ? { code: "EMFILE" } : undefined);
  again.boundHistory();
  await settled();
  expect(errors).toContain("cannot limit the size of the history; the server will try again");
  disk.faultPlan = undefined;
  clock.advance(2 * HOUR_MS);
  again.boundHistory();
  await settled();
  expect(again.earliestSeq(10, 0)).toBeGreaterThan(0);
  await again.close();
});
