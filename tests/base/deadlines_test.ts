/** Verifies that a list of deadlines calls each of its items once, on time and in order. */
import { expect, test } from "bun:test";
import { Deadlines, type TimedItem } from "../../src/base/deadlines.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";

class Item implements TimedItem {
  heapIndex = -1;
  readonly dueMs: number;
  readonly #ended: number[];

  constructor(dueMs: number, ended: number[]) {
    this.dueMs = dueMs;
    this.#ended = ended;
  }

  onDue(): void {
    this.#ended.push(this.dueMs);
  }
}

test("Deadlines calls each item once, in the order of deadlines, and skips removed items", () => {
  const random = new SeededRandom(1);
  const clock = new ManualClock();
  const startMs = clock.monotonicMs();
  const deadlines = new Deadlines<Item>(clock);
  const ended: number[] = [];
  const expected: number[] = [];
  for (let count = 0; count < 500; count += 1) {
    const item = new Item(startMs + 1 + random.below(1000), ended);
    deadlines.add(item);
    if (random.chance(0.5)) {
      const leaving = random.pick(deadlines.items);
      deadlines.remove(leaving);
      deadlines.remove(leaving);
      expect(leaving.heapIndex).toBe(-1);
    }
  }
  for (const { dueMs } of deadlines.items) expected.push(dueMs);
  expected.sort((left, right) => left - right);
  expect(expected.length).toBeGreaterThan(100);
  clock.advance(500);
  expect(ended).toEqual(expected.filter((dueMs) => dueMs <= startMs + 500));
  clock.advance(501);
  expect(ended).toEqual(expected);
  expect(deadlines.items).toEqual([]);
});

test("Deadlines serves an earlier deadline that is added while it waits for a later one", () => {
  const clock = new ManualClock();
  const startMs = clock.monotonicMs();
  const deadlines = new Deadlines<Item>(clock);
  const ended: number[] = [];
  deadlines.add(new Item(startMs + 100, ended));
  deadlines.add(new Item(startMs + 10, ended));
  clock.advance(10);
  expect(ended).toEqual([startMs + 10]);
  clock.advance(90);
  expect(ended).toEqual([startMs + 10, startMs + 100]);
});

test("Deadlines serves an item that is added while another item is being ended", () => {
  const clock = new ManualClock();
  const startMs = clock.monotonicMs();
  const deadlines = new Deadlines<TimedItem>(clock);
  const ended: number[] = [];
  const first: TimedItem = {
    dueMs: startMs + 10,
    heapIndex: -1,
    onDue: () => deadlines.add(new Item(startMs + 20, ended)),
  };
  deadlines.add(first);
  clock.advance(10);
  expect(ended).toEqual([]);
  clock.advance(10);
  expect(ended).toEqual([startMs + 20]);
});
