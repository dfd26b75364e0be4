/**
 * Verifies that a reader keeps the newest plans, limited by their number and by the length of their
 * texts.
 */
import { expect, test } from "bun:test";
import { KeptPlans } from "../../../src/sql/readers/kept_plans.ts";
import type { QueryStatement } from "../../support/parsed.ts";

function statementOf(textLength: number): QueryStatement {
  const _location = { start: 100, end: 100 + textLength };
  return { type: "select", columns: [], _location };
}

/** Returns which of the numbers 0 to 299 were kept. */
const kept = (plans: KeptPlans<string>): number[] =>
  Array.from({ length: 300 }, (_, number) => number).filter((number) => plans.has(number));

test("KeptPlans keeps the newest 200 short plans", () => {
  const plans = new KeptPlans<string>();
  for (let number = 0; number < 250; number += 1) plans.add(number, "p", statementOf(10));
  expect(kept(plans)).toEqual(Array.from({ length: 200 }, (_, i) => 50 + i));
});

test("KeptPlans drops the oldest plans beyond 512 Ki characters, but always keeps the newest", () => {
  const plans = new KeptPlans<string>();
  for (let number = 0; number < 10; number += 1) plans.add(number, "p", statementOf(100 * 1024));
  expect(kept(plans)).toEqual([5, 6, 7, 8, 9]);
  plans.add(20, "long", statementOf(2 ** 21));
  expect(kept(plans)).toEqual([20]);
  plans.add(21, "p", statementOf(10));
  expect(kept(plans)).toEqual([21]);
});

test("KeptPlans.delete frees space, and add replaces a plan", () => {
  const plans = new KeptPlans<string>();
  for (const number of [1, 2, 3, 4, 5]) plans.add(number, "p", statementOf(100 * 1024));
  plans.delete(3);
  plans.delete(3);
  plans.add(6, "p", statementOf(100 * 1024));
  expect(kept(plans)).toEqual([1, 2, 4, 5, 6]);
  plans.add(1, "new", statementOf(10));
  expect(plans.get(1)).toBe("new");
  plans.add(7, "p", statementOf(100 * 1024));
  expect(kept(plans)).toEqual([1, 2, 4, 5, 6, 7]);
});
