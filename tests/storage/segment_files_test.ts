/**
 * Files of segments that nobody lists any more go one at a time, off the event loop where the disk
 * does that, and before the store is closed.
 */
import { expect, test } from "bun:test";
import { DiskError } from "../../src/base/errors.ts";
import { ForwardingDisk } from "../support/forwarding_disk.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commit, DATA_PATH, defineTable, openStore } from "../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }]);

/** Removes only when it is told to. */
class SlowDisk extends ForwardingDisk {
  readonly asked: string[] = [];
  #finish: (() => void) | undefined;

  override removeSoon(path: string): Promise<void> | undefined {
    this.asked.push(path);
    const { promise, reject, resolve } = Promise.withResolvers<void>();
    this.#finish = () => {
      if (path.endsWith("2.seg")) return reject(new DiskError("EIO", path, "remove"));
      this.remove(path);
      return resolve();
    };
    return promise;
  }

  /** Lets the removal under way end; returns once what comes next was asked for. */
  async finish(): Promise<void> {
    this.#finish?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("the segments of a dropped table are removed one after the other, and close waits for them", async () => {
  const disk = new SlowDisk(new SimulatedDisk());
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
  // One that the disk refuses keeps no other from going.
  await disk.finish();
  expect([disk.asked.length, isClosed]).toEqual([3, false]);
  await disk.finish();
  await closing;
  expect(names()).toEqual(["2.seg"]);
});
