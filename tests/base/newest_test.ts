/** Tests maps that remember only their newest entries. */
import { expect, test } from "bun:test";
import { putNewest } from "../../src/base/newest.ts";

test("putNewest drops the oldest entry once there are more than the bound", () => {
  const map = new Map<string, number>();
  for (const [at, key] of ["a", "b", "c", "a", "d"].entries()) putNewest(map, [key, at], 3);
  expect([...map]).toEqual([
    ["c", 2],
    ["a", 3],
    ["d", 4],
  ]);
});
