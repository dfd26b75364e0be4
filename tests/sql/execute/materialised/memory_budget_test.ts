/**
 * Verifies that a statement's peak memory decides whether it counts as large, however the memory
 * was reserved. The tests reserve plain, nested and elastic parts of about a quarter of the
 * budget, and release them before the check.
 */
import { expect, test } from "bun:test";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";

const BYTES_MAX = 1000;

test("a statement was large if it held more than a quarter of the budget at a time", () => {
  const budget = new MemoryBudget(BYTES_MAX);
  for (let i = 0; i < 10; i += 1) {
    budget.take(BYTES_MAX / 4);
    budget.release(BYTES_MAX / 4);
  }
  expect(budget.wasLarge).toBe(false);
  budget.take(BYTES_MAX / 4 + 1);
  budget.close();
  expect([budget.bytes, budget.wasLarge]).toEqual([0, true]);
});

test.each(["nested", "elastic"] as const)(
  "the memory of a %s part counts towards the whole",
  (kind) => {
    const budget = new MemoryBudget(BYTES_MAX);
    const part = budget[kind]();
    part.take(BYTES_MAX / 2);
    part.close();
    expect([budget.bytes, budget.wasLarge]).toEqual([0, true]);
  },
);

test("a statement that was refused for lack of memory was large", () => {
  const budget = new MemoryBudget(BYTES_MAX);
  expect(() => budget.take(BYTES_MAX + 1)).toThrow(/more than/);
  expect(budget.wasLarge).toBe(true);
});
