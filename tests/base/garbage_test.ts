/**
 * Goal: memory that was let go is collected when it is much, and small pieces cost no collection
 * each. What the runtime is asked is written down instead of done.
 */
import { expect, spyOn, test } from "bun:test";
import { collectAfterTurn, collectSoon } from "../../src/base/garbage.ts";
import { heapOf, MIB } from "../support/heap_usage.ts";
import { ManualClock } from "../support/manual_clock.ts";

test("collectSoon waits until the heap has grown, and again after the collector had its own turn", () => {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  const asked = (bytes: number): number => {
    usage.mockImplementation(heapOf(bytes));
    const before = collect.mock.calls.length;
    collectSoon();
    return collect.mock.calls.length - before;
  };
  // Where earlier tests of the process left it.
  asked(10 * MIB);
  expect([17, 18, 20, 25, 26].map((mib) => asked(mib * MIB))).toEqual([0, 1, 0, 0, 1]);
  expect([12, 19, 20].map((mib) => asked(mib * MIB))).toEqual([0, 0, 1]);
});

test("collectSoon holds nobody up for a large heap: the collector begins beside the work", () => {
  using usage = spyOn(process, "memoryUsage");
  using collect = spyOn(Bun, "gc").mockImplementation(() => undefined);
  for (const mib of [0, 90, 200]) {
    usage.mockImplementation(heapOf(mib * MIB));
    collectSoon();
  }
  expect(collect.mock.calls.slice(-2)).toEqual([[true], [false]]);
});

test("collectAfterTurn collects once for all that end in a turn, and not before the heap has grown", async () => {
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
