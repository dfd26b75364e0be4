/**
 * Verifies that a garbage collection follows once a lot of memory has been released, and that
 * small amounts do not each cause a collection. The tests record the calls to the runtime instead
 * of making them.
 */
import { expect, spyOn, test } from "bun:test";
import {
  collectAfterTurn,
  collectArrays,
  collectSoon,
  IdleCollection,
} from "../../src/base/garbage.ts";
import { heapOf, MIB } from "../support/heap_usage.ts";
import { ManualClock } from "../support/manual_clock.ts";

test("collectSoon collects once the heap has grown, and again after the runtime's own collection", () => {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  const asked = (bytes: number): number => {
    usage.mockImplementation(heapOf(bytes));
    const before = collect.mock.calls.length;
    collectSoon();
    return collect.mock.calls.length - before;
  };
  // Earlier tests in this process have raised the counter to this value.
  asked(10 * MIB);
  expect([17, 18, 20, 25, 26].map((mib) => asked(mib * MIB))).toEqual([0, 1, 0, 0, 1]);
  expect([12, 19, 20].map((mib) => asked(mib * MIB))).toEqual([0, 0, 1]);
});

test("collectSoon begins a concurrent collection of a large heap instead of blocking", () => {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  for (const mib of [0, 90, 200]) {
    usage.mockImplementation(heapOf(mib * MIB));
    collectSoon();
  }
  expect(collect.mock.calls.slice(-2)).toEqual([[true], [false]]);
});

test("collectAfterTurn collects once for all work that ends in a tick, if the heap has grown", async () => {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  const clock = new ManualClock();
  const asked = async (bytes: number): Promise<number> => {
    usage.mockImplementation(heapOf(bytes));
    const before = collect.mock.calls.length;
    for (let ended = 0; ended < 3; ended += 1) collectAfterTurn(clock);
    expect(collect.mock.calls.length).toBe(before);
    await clock.yield();
    return collect.mock.calls.length - before;
  };
  await asked(10 * MIB);
  const counts: number[] = [];
  for (const mib of [0, 7, 9, 10, 300]) counts.push(await asked(mib * MIB));
  expect(counts).toEqual([0, 0, 1, 0, 1]);
  expect(collect.mock.calls.slice(-2)).toEqual([[true], [false]]);
});

test("collectArrays collects once the arrays have grown beyond their last minimum", () => {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  const collected = (mib: number): number => {
    // Earlier tests in this process may have left mapped files, which are not counted.
    usage.mockImplementation(heapOf(0, 2 ** 40 + mib * MIB));
    const before = collect.mock.calls.length;
    collectArrays(10 * MIB);
    return collect.mock.calls.length - before;
  };
  collected(0);
  expect([0, 9, 10, 19, 20].map(collected)).toEqual([0, 0, 1, 0, 1]);
  expect([5, 14, 15].map(collected)).toEqual([0, 0, 1]);
  expect(collect.mock.calls.every(([isFull]) => isFull === true)).toBe(true);
});

test("IdleCollection collects once after a thread becomes idle, and again after more work", () => {
  const clock = new ManualClock();
  let count = 0;
  const collection = new IdleCollection(clock, () => {
    count += 1;
  });
  const counts = [900, 900, 999, 1, 5000].map((ms, index) => {
    if (index < 3) collection.noteWork();
    clock.advance(ms);
    return count;
  });
  expect(counts).toEqual([0, 0, 0, 1, 1]);
  collection.noteWork();
  clock.advance(1000);
  expect([count, clock.timerCount]).toEqual([2, 0]);
});
