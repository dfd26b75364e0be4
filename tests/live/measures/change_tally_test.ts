/** Verifies that the counters of a subscription's changes add up, and that its rate decays. */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import { ChangeTally } from "../../../src/live/measures/change_tally.ts";

function seq(value: number): Seq {
  return value as Seq;
}

test("a tally counts changes and remembers the last one", () => {
  const tally = new ChangeTally();
  tally.add(seq(5), 2, 1000);
  tally.add(seq(9), 3, 4000);

  expect(tally.count).toBe(5);
  expect(tally.lastSeq).toBe(seq(9));
  expect(tally.lastMs).toBe(4000);
});

test("the rate of a tally falls while no changes arrive", () => {
  const tally = new ChangeTally();
  expect(tally.perSecond(0)).toBe(0);

  tally.add(seq(1), 60, 100_000);
  expect(tally.perSecond(100_000)).toBe(1);
  expect(tally.perSecond(160_000)).toBeCloseTo(Math.exp(-1));
});

test("a tally refuses changes that do not ascend", () => {
  const tally = new ChangeTally();
  tally.add(seq(5), 1, 0);
  expect(() => tally.add(seq(4), 1, 0)).toThrow("changes are not in ascending order of seq");
});
