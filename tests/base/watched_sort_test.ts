/**
 * Verifies that a long sort checks the clock repeatedly, and ends if the check throws. The tests
 * sort random keys with many duplicates and count the comparisons.
 */
import { expect, test } from "bun:test";
import { sortedNumbers } from "../../src/base/watched_sort.ts";
import { SeededRandom } from "../support/seeded_random.ts";

interface Watched {
  readonly compare: (left: number, right: number) => number;
  comparedCount: number;
}

function watchedKeys(count: number): Watched {
  const random = new SeededRandom(count);
  const keys = Array.from({ length: count }, () => random.below(50));
  const found: Watched = {
    comparedCount: 0,
    compare: (left, right) => {
      found.comparedCount += 1;
      return (keys[left] ?? 0) - (keys[right] ?? 0) || left - right;
    },
  };
  return found;
}

test.each([0, 1, 2, 30_000, 65_537])("sortedNumbers sorts %p numbers", (count) => {
  const { compare } = watchedKeys(count);
  const order = sortedNumbers(count, compare, () => undefined);
  expect([...order]).toEqual(Array.from({ length: count }, (_, i) => i).toSorted(compare));
});

test("sortedNumbers checks the clock every 16,384 comparisons", () => {
  const keys = watchedKeys(50_000);
  let lookCount = 0;
  sortedNumbers(50_000, keys.compare, () => {
    lookCount += 1;
  });
  expect(lookCount).toBeGreaterThan(20);
  expect(lookCount).toBe(Math.floor(keys.comparedCount / 16_384));
});

test("sortedNumbers ends when the check of the clock throws", () => {
  const keys = watchedKeys(50_000);
  const over = new Error("over");
  const sort = (): unknown =>
    sortedNumbers(50_000, keys.compare, () => {
      throw over;
    });
  expect(sort).toThrow(over);
  expect(keys.comparedCount).toBeLessThanOrEqual(16_384);
});
