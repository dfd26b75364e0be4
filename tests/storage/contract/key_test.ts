/**
 * Tests keys of every type and of several columns: a key's newest version is found in memory, in
 * segments and after a restart, and no two keys are mistaken for each other.
 */
import { expect, test } from "bun:test";
import { keyOfRow, keyOfValues } from "../../../src/storage/contract/key.ts";
import type { DataType, Row, Value } from "../../../src/types/mod.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { commit, defineTable, openStore } from "../../support/store_fixture.ts";

const CASES: readonly (readonly [types: readonly DataType[], keys: readonly Row[]])[] = [
  [[{ kind: "bigint" }], [[1], [-1], [0], [2 ** 40], [2n ** 60n], [2n ** 60n + 1n]]],
  [[{ kind: "boolean" }], [[true], [false]]],
  [[{ kind: "text" }], [["a"], ["A"], [""], ["1"], ["ünï€𝄞"], ["a,b"]]],
  [[{ kind: "bytes" }], [[Uint8Array.of()], [Uint8Array.of(0)], [Uint8Array.of(0, 255)]]],
  [
    [{ kind: "text" }, { kind: "int" }, { kind: "text" }],
    [
      ["a", 1, "b"],
      ["a", 11, "b"],
      ["a1", 1, "b"],
      ["a", 1, "1b"],
      ["", 1, ""],
      ["\u0000", 1, ""],
    ],
  ],
];

test.each(
  CASES.map(([types, keys]) => [types.map(({ kind }) => kind).join(), types, keys] as const),
)("the newest version of a key of %s is found wherever it is", async (_name, types, keys) => {
  const columnIds = types.map((_, index) => index + 1);
  const definition = defineTable(1, [...types, { kind: "text" }], columnIds);
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  let store = await openStore({ definitions: [definition], disk, manifest });
  const valueOf = (key: Row): Value | undefined =>
    store.lookup(1, {
      owner: 5,
      key,
      upTo: store.visibleSeq,
      columnIds: [columnIds.length + 1],
    })?.[0];
  const found = (): (Value | undefined)[] => keys.map((key) => valueOf(key));
  const write = async (text: string): Promise<string[]> => {
    const expected = keys.map((_, index) => `${text} ${index}`);
    const rows = keys.map((key, index) => [...key, expected[index] ?? ""]);
    await commit(store, 1, text === "first" ? "insert" : "update", rows, 5);
    return expected;
  };
  let expected = await write("first");
  expect(found()).toEqual(expected);
  await store.flush(1);
  expect(found()).toEqual(expected);
  expected = await write("second");
  expect(found()).toEqual(expected);
  await store.close();
  store = await openStore({ definitions: [definition], disk, manifest });
  expect(found()).toEqual(expected);
  await store.flush(1);
  await store.compact(1);
  expect(found()).toEqual(expected);
  const rows = [[...(keys[0] ?? []), "again"]];
  const again = { tableId: 1, owner: 5, operation: "insert", rows } as const;
  expect(() => store.apply({ writes: [again] })).toThrow("already");
  // The other owner has none of these rows.
  expect(store.liveRowCount(1, 4)).toBe(0);
  await store.close();
});

test("different keys are distinguished, whatever they contain", () => {
  const texts = ["", "a", "a,b", "1", '"', "\\", "\u0000", "null", "é", "e\u0301"];
  const values: Value[] = [...texts, 0, 1, -1, 0.5, 2 ** 53, true, false, null, 2n ** 70n];
  const pairs = texts.flatMap((left) => texts.map((right): Row => [left, right]));
  expect(new Set(pairs.map((pair) => keyOfValues(pair))).size).toBe(pairs.length);
  for (const value of values) {
    expect(keyOfRow([7, value], [1])).toBe(keyOfValues([value]));
    expect(keyOfRow([value, 7, "x"], [2, 0])).toBe(keyOfValues(["x", value]));
  }
  expect(keyOfValues([new Float32Array([1.5, -2])])).toBe("1.5,-2");
});
