/** Verifies that a damaged history segment is reported only to readers that need its rows. */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import type { LocalStore } from "../../../src/storage/mod.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  commit,
  DATA_PATH,
  defineTable,
  openStore,
  readChanges,
  readRows,
} from "../../support/store_fixture.ts";

const TABLE = defineTable(1, [{ kind: "int" }, { kind: "text" }]);

/**
 * Writes keys 0 to 9, updates 0 to 2, deletes 3 and 4, and damages the history of these changes.
 */
async function damaged(): Promise<{ store: LocalStore; firstSeq: Seq }> {
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const first = await openStore({ disk, manifest, definitions: [TABLE] });
  const rows = Array.from({ length: 10 }, (_, key): [number, string] => [key, "before"]);
  const { lastSeq: firstSeq } = await commit(first, 1, "insert", rows);
  await first.flush(1);
  await commit(
    first,
    1,
    "update",
    [0, 1, 2].map((key) => [key, "after"]),
  );
  await commit(first, 1, "delete", [rows[3] ?? [], rows[4] ?? []]);
  await first.flush(1);
  await first.compact(1);
  await first.close();
  const history = manifest.load().segments.find((entry) => entry.history !== undefined);
  disk.damage(`${DATA_PATH}/segments/1/${history?.segmentId ?? 0}.seg`, 3);
  return { store: await openStore({ disk, manifest, definitions: [TABLE] }), firstSeq };
}

test("live rows are read and written despite damaged history", async () => {
  const { store } = await damaged();
  const after = store.visibleSeq;
  expect(readRows(store, TABLE)).toHaveLength(8);
  await commit(store, 1, "insert", [[3, "again"]]);
  await commit(store, 1, "update", [[0, "again"]]);
  await commit(store, 1, "delete", [[5, "before"]]);
  await store.flush(1);
  expect(readRows(store, TABLE)).toHaveLength(8);
  expect(store.liveRowCount(1, 0)).toBe(8);
  const lookup = { owner: 0, upTo: store.visibleSeq, columnIds: [2] };
  expect(store.lookup(1, { ...lookup, key: [3] })).toEqual(["again"]);
  expect(store.lookup(1, { ...lookup, key: [4] })).toBeUndefined();
  expect(readChanges(store, TABLE, { after })).toHaveLength(3);
  expect(store.segments().map(({ status }) => status)).not.toContain("quarantined");
  await store.close();
});

test("reads that need damaged history are refused, and others continue", async () => {
  const reads: ((store: LocalStore, firstSeq: Seq) => unknown)[] = [
    (store, upTo) => readRows(store, TABLE, { upTo }),
    (store, upTo) => store.lookup(1, { owner: 0, key: [3], upTo, columnIds: [2] }),
    (store) => readChanges(store, TABLE),
    (store) => readRows(store, TABLE, { withTombstones: true }),
    (store, snapshotSeq) => {
      const rows = [[3, "again"]];
      return store.apply({
        writes: [{ tableId: 1, owner: 0, operation: "insert", rows }],
        snapshotSeq,
      });
    },
  ];
  for (const read of reads) {
    const { firstSeq, store } = await damaged();
    expect(() => read(store, firstSeq)).toThrow(/segment/);
    expect(store.segments().map(({ status }) => status)).toContain("quarantined");
    expect(() => read(store, firstSeq)).toThrow("is damaged and quarantined");
    expect(readRows(store, TABLE)).toHaveLength(8);
    await store.close();
  }
});
