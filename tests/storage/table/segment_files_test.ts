/**
 * Verifies that unlisted segment files are removed one at a time, off the event loop where the
 * disk supports it, and before the store is closed.
 */
import { expect, test } from "bun:test";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { SlowDisk } from "../../support/slow_disk.ts";
import { commit, DATA_PATH, defineTable, openStore } from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }]);

test("the segments of a dropped table are removed one after the other, and close waits for them", async () => {
  const simulated = new SimulatedDisk();
  simulated.faultPlan = (operation, path) =>
    operation === "remove" && path.endsWith("2.seg") ? { code: "EIO" } : undefined;
  const disk = new SlowDisk(simulated);
  const store = await openStore({ disk, definitions: [TABLE] });
  for (const id of [1, 2, 3]) {
    await commit(store, 1, "insert", [[id]]);
    await store.flush(1);
  }
  store.dropTable(1);
  const names = (): string[] => disk.list(`${DATA_PATH}/segments/1`).map(({ name }) => name);
  expect(disk.asked).toHaveLength(1);
  expect(names()).toHaveLength(3);
  await disk.finish();
  expect(disk.asked).toHaveLength(2);
  expect(names().toSorted()).toEqual(["2.seg", "3.seg"]);
  let isClosed = false;
  const closing = store.close().finally(() => {
    isClosed = true;
  });
  // The disk refuses to remove one file, but the others are removed.
  await disk.finish();
  expect([disk.asked.length, isClosed]).toEqual([3, false]);
  await disk.finish();
  await closing;
  expect(names()).toEqual(["2.seg"]);
});
