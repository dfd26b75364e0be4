/**
 * Tests when memory is released, how often it is released if little can be freed, and when work
 * has to wait.
 */
import { expect, test } from "bun:test";
import { MemoryPressure } from "../../src/base/memory_pressure.ts";
import { ManualClock } from "../support/manual_clock.ts";

/** Simulates the memory use of a process that may use 100 bytes. */
class Usage {
  readonly clock: ManualClock = new ManualClock();
  used = 0;
  /**
   * The amount of memory that remains in use after a release; undefined if a release frees
   * nothing.
   */
  least: number | undefined;
  /** The amounts of memory in use at the times when new work had to wait. */
  readonly tightAt: number[] = [];
  readonly pressure: MemoryPressure = new MemoryPressure({
    clock: this.clock,
    bytesMax: 100,
    usedBytes: () => this.used,
    giveBack: () => {
      this.used = this.least ?? this.used;
    },
    onTight: (used) => this.tightAt.push(used),
  });

  /** Checks the memory in use. Returns how many times memory has been released so far. */
  countWith(used: number): number {
    this.used = used;
    this.pressure.look();
    return this.pressure.givenBackCount;
  }
}

test("memory is released above the bound, but not at it", () => {
  const usage = new Usage();
  usage.least = 40;
  expect([usage.countWith(70), usage.countWith(71), usage.used]).toEqual([0, 1, 40]);
});

test("memory is not released again before a pause, which doubles while little is freed", () => {
  const usage = new Usage();
  const givenBackAtMs: number[] = [];
  for (let ms = 0; ms <= 40_000; ms += 500) {
    const before = usage.pressure.givenBackCount;
    if (usage.countWith(75) > before) givenBackAtMs.push(ms);
    usage.clock.advance(500);
  }
  expect(givenBackAtMs).toEqual([0, 1000, 3000, 7000, 15_000, 31_000]);
  // Once memory use has fallen below the limit, the next release is not delayed.
  usage.clock.advance(20_000);
  usage.countWith(50);
  usage.least = 60;
  const before = usage.countWith(75);
  usage.clock.advance(500);
  expect(usage.countWith(75)).toBe(before + 1);
});

test("the pause ends once the memory has grown by more than a twentieth", () => {
  const usage = new Usage();
  expect([75, 78, 80, 81, 84, 86].map((used) => usage.countWith(used))).toEqual([1, 1, 1, 2, 2, 2]);
  // Growth is measured from the lowest memory use since the last release.
  expect([72, 77, 78].map((used) => usage.countWith(used))).toEqual([2, 2, 3]);
});

test("work waits once memory exceeds the upper bound, until it falls below the lower one", () => {
  const usage = new Usage();
  const isTight = [85, 86, 81, 80, 84].map((used) => {
    usage.countWith(used);
    return usage.pressure.isTight;
  });
  expect(isTight).toEqual([false, true, true, false, false]);
  expect(usage.tightAt).toEqual([86]);
});

test("work does not wait if releasing memory was enough", () => {
  const usage = new Usage();
  usage.least = 60;
  usage.countWith(99);
  expect(usage.pressure.isTight).toBe(false);
});

test("memory is checked more often while usage is high, and no longer after the end", () => {
  const usage = new Usage();
  let lookCount = 0;
  const pressure = new MemoryPressure({
    clock: usage.clock,
    bytesMax: 100,
    usedBytes() {
      lookCount += 1;
      return usage.used;
    },
    giveBack: () => undefined,
    onTight: () => undefined,
  });
  const end = pressure.start();
  usage.clock.advance(2000);
  const slowCount = lookCount;
  usage.used = 60;
  usage.clock.advance(1500);
  expect([slowCount, lookCount]).toEqual([5, 26]);
  end();
  usage.clock.advance(10_000);
  expect([lookCount, usage.clock.timerCount]).toEqual([26, 0]);
});

test("watched memory is checked after many bytes were allocated", () => {
  const usage = new Usage();
  usage.used = 90;
  usage.least = 60;
  const counts: number[] = [];
  const note = (bytes: number): void => {
    usage.pressure.noteAllocated(bytes);
    counts.push(usage.pressure.givenBackCount);
  };
  note(50);
  const end = usage.pressure.start();
  usage.used = 90;
  // The threshold below which an amount counts as "little" is exactly a twentieth.
  for (const bytes of [3, 2, 1]) note(bytes);
  usage.used = 90;
  for (const bytes of [5, 1]) note(bytes);
  end();
  usage.used = 90;
  note(50);
  expect(counts).toEqual([0, 1, 1, 2, 2, 3, 3]);
  expect(usage.pressure.isTight).toBe(false);
});
