/**
 * Goal: a sort in pieces gives what one sort gives, and no step of it is long. Method: random keys
 * with many equal ones, sizes around those of a piece.
 */
import { expect, test } from "bun:test";
import { sortSteps } from "../../src/base/stepwise_sort.ts";
import { SeededRandom } from "../support/seeded_random.ts";

test.each([0, 1, 2, 8191, 8192, 8193, 30_000, 65_537])("%p rows", (count) => {
  const random = new SeededRandom(count);
  const keys = Array.from({ length: count }, () => random.below(50));
  let compared = 0;
  const compare = (left: number, right: number): number => {
    compared += 1;
    return (keys[left] ?? 0) - (keys[right] ?? 0) || left - right;
  };
  const steps = sortSteps(count, compare);
  let comparedMax = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) {
    comparedMax = Math.max(comparedMax, compared);
    compared = 0;
  }
  const order = step.value;
  expect([...order]).toEqual(Array.from({ length: count }, (_, i) => i).toSorted(compare));
  expect(comparedMax).toBeLessThan(8192 * 16);
});
