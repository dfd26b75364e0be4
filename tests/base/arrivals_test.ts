/**
 * Verifies that received data that stays in memory triggers garbage collections, and that a larger
 * heap is collected less often. The tests record the calls to the runtime instead of making them.
 */
import { expect, spyOn, test } from "bun:test";
import { Arrivals } from "../../src/base/arrivals.ts";
import { heapOf, MIB } from "../support/heap_usage.ts";

/** Returns the numbers of the arrivals that start a collection in a heap of the given size. */
function collectionsAt(heapBytes: number, arrivalCount: number): number[] {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  usage.mockImplementation(heapOf(heapBytes));
  const arrivals = new Arrivals();
  const at: number[] = [];
  for (let count = 1; count <= arrivalCount; count += 1) {
    const before = collect.mock.calls.length;
    arrivals.add(1);
    if (collect.mock.calls.length > before) at.push(count);
  }
  expect(collect.mock.calls).toEqual(at.map(() => [false]));
  return at;
}

test("Arrivals collects after every 500 arrivals in a heap of up to 16 MiB", () => {
  expect(collectionsAt(1 * MIB, 1500)).toEqual([500, 1000, 1500]);
  expect(collectionsAt(16 * MIB, 1499)).toEqual([500, 1000]);
});

test("Arrivals collects less often in a larger heap", () => {
  expect(collectionsAt(16 * MIB + 1, 2000)).toEqual([1000, 2000]);
  expect(collectionsAt(160 * MIB, 10_000)).toEqual([5000, 10_000]);
});
