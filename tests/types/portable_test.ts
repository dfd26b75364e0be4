/**
 * Verifies that moving a batch to another thread leaves its original memory intact, even if that
 * memory is part of a file.
 */
import { expect, test } from "bun:test";
import { type Batch, portableBatch, valueAt } from "../../src/types/mod.ts";

test("the bytes of a file that contain a batch stay in place", () => {
  const read = Buffer.from([0, 0, 1, 1, 0, 1, 97, 98, 99]);
  const nulls = read.subarray(0, 3);
  const batch: Batch = {
    rowCount: 3,
    columns: [
      { kind: "bool", length: 3, values: read.subarray(3, 6), nulls },
      {
        kind: "utf8",
        length: 3,
        bytes: read.subarray(6),
        offsets: Uint32Array.of(0, 1, 2, 3),
        nulls,
      },
      { kind: "dict", length: 3, codes: read.subarray(3, 6), values: ["x", "y"], nulls },
    ],
  };
  const { batch: sent, moved } = portableBatch(batch, 3);
  const { columns } = structuredClone(sent, { transfer: [...moved] });
  expect(columns.map((column) => [0, 1, 2].map((row) => valueAt(column, row)))).toEqual([
    [true, false, null],
    ["a", "b", null],
    ["y", "x", null],
  ]);
  expect([...read]).toEqual([0, 0, 1, 1, 0, 1, 97, 98, 99]);
});
