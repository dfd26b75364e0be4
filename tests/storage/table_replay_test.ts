/**
 * Verifies that startup restores memtables from the log: the values, keys and replacements that
 * existed when the previous process was cut off.
 */
import { expect, test } from "bun:test";
import type { LocalStore, TableDefinition } from "../../src/storage/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  DOUBLE,
  decimalType,
  INT,
  JSON_TEXT,
  type Row,
  TEXT,
} from "../../src/types/mod.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commit, defineTable, openStore, readRows } from "../support/store_fixture.ts";

/**
 * Opens a store in the state that a new process would find if the current process were cut off
 * now.
 */
function afterCrash(
  { disk, manifest }: { disk: SimulatedDisk; manifest: MemoryManifest },
  definitions: readonly TableDefinition[],
): Promise<LocalStore> {
  return openStore({
    disk: disk.crash({ keep: "none" }),
    manifest: manifest.restart(),
    definitions,
  });
}

test("a replayed row has the committed values, in every form", async () => {
  const types = [BIGINT, INT, DOUBLE, BOOLEAN, TEXT, JSON_TEXT, BYTES, decimalType(30, 2)];
  const table = defineTable(1, types);
  const rows: Row[] = [
    [1, 0, 0.5, true, "", "{}", new Uint8Array([0, 255]), 12],
    [2, -1, -0, false, "déjà 日本 🦭", '{"a":1}', new Uint8Array(0), 10n ** 25n],
    [3, null, null, null, null, null, null, null],
    [4, 2 ** 31 - 1, 1e300, true, "x".repeat(300), `["${"ü".repeat(90)}"]`, new Uint8Array(9), -7],
    [2n ** 60n, 255, 1, false, "after a wide key", "1", new Uint8Array(1), 0],
    [5, 256, 2, null, "é", "null", null, 99],
  ];
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [table] });
  await commit(store, 1, "insert", rows.slice(0, 2));
  await commit(store, 1, "insert", rows.slice(2));
  const before = readRows(store, table);
  expect(before.map(([, ...row]) => row)).toEqual(rows.map((row) => row.slice()));

  const again = await afterCrash({ disk, manifest }, [table]);
  expect(readRows(again, table)).toEqual(before);
  const key = { owner: 0, key: [2n ** 60n], upTo: again.visibleSeq, columnIds: [5] };
  expect(again.lookup(1, key)).toEqual(["after a wide key"]);
  await again.close();
  await store.close();
});

test("writes to one table with different columns each time are replayed between those to another", async () => {
  const narrow = defineTable(1, [BIGINT, TEXT, decimalType(9, 1)]);
  const other = defineTable(2, [TEXT, BIGINT]);
  const [id, text, amount] = narrow.columns;
  if (id === undefined || text === undefined || amount === undefined) throw new Error("three");
  const wide: TableDefinition = {
    ...narrow,
    columns: [
      id,
      { ...amount, type: decimalType(12, 3) },
      { columnId: 4, name: "c4", type: TEXT, missing: "nöw" },
    ],
  };
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [narrow, other] });
  await commit(store, 1, "insert", [[1, "dropped", 15]]);
  await commit(store, 2, "insert", [["a", 1]]);
  await commit(store, 1, "insert", [[2, null, null]]);
  store.defineTable(wide);
  await commit(store, 1, "insert", [[3, 4500, "own"]]);
  await commit(store, 2, "insert", [["b", 2]]);
  await commit(store, 1, "insert", [[4, 5, null]]);

  const again = await afterCrash({ disk, manifest }, [wide, other]);
  expect(readRows(again, wide).map(([, ...row]) => row)).toEqual([
    [1, 1500, "nöw"],
    [2, null, "nöw"],
    [3, 4500, "own"],
    [4, 5, null],
  ]);
  expect(readRows(again, other).map(([, ...row]) => row)).toEqual([
    ["a", 1],
    ["b", 2],
  ]);
  await again.close();
  await store.close();
});

test("replacements and deletions are replayed for keys of text and of two columns", async () => {
  const words = defineTable(1, [TEXT, INT]);
  const pairs = defineTable(2, [TEXT, INT, TEXT], [1, 2]);
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [words, pairs] });
  await commit(store, 1, "insert", [
    ["å", 1],
    ["b", 2],
  ]);
  await commit(store, 1, "update", [["å", 10]]);
  await commit(store, 1, "delete", [["b", 2]]);
  await commit(store, 2, "insert", [["k", 1, "one"]], 7);
  await commit(store, 2, "insert", [["k", 2, "two"]], 7);
  await commit(store, 2, "update", [["k", 1, "uno"]], 7);
  const versions = { withTombstones: true };
  const before = [readRows(store, words, versions), readRows(store, pairs, { owner: 7 })];

  const again = await afterCrash({ disk, manifest }, [words, pairs]);
  expect([readRows(again, words, versions), readRows(again, pairs, { owner: 7 })]).toEqual(before);
  expect(() =>
    again.apply({ writes: [{ tableId: 1, owner: 0, operation: "insert", rows: [["å", 3]] }] }),
  ).toThrow("å");
  await commit(again, 1, "insert", [["b", 3]]);
  await commit(again, 2, "update", [["k", 2, "dos"]], 7);
  expect(readRows(again, words).map(([, ...row]) => row)).toEqual([
    ["å", 10],
    ["b", 3],
  ]);
  await again.close();
  await store.close();
});

test("rows that are in a segment are skipped, and later ones are replayed", async () => {
  const table = defineTable(1, [BIGINT, TEXT]);
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const store = await openStore({ disk, manifest, definitions: [table] });
  await commit(store, 1, "insert", [[1, "flushed"]], 3);
  await store.flush(1);
  await commit(store, 1, "insert", [[2, "of another owner"]], 4);
  const again = await afterCrash({ disk, manifest }, [table]);
  expect(readRows(again, table, { owner: 3 }).map(([, ...row]) => row)).toEqual([[1, "flushed"]]);
  expect(readRows(again, table, { owner: 4 }).map(([, ...row]) => row)).toEqual([
    [2, "of another owner"],
  ]);
  await again.close();
  await store.close();
});
