/**
 * Goal: a plan is found again for the same request, and for no other.
 */
import { expect, test } from "bun:test";
import { planKeyOf, RecentPlans } from "../../src/live/recent_plans.ts";
import type { SubscriptionSpec } from "../../src/protocol/mod.ts";
import type { LivePlan } from "../../src/sql/mod.ts";
import { subscriber } from "../support/live_fixture.ts";

const SPEC: SubscriptionSpec = { id: "a", sql: "SELECT * FROM t WHERE n = $1", params: [1] };

function keyOf(change: Partial<SubscriptionSpec>, user = "ann"): string {
  return planKeyOf(subscriber(user, 1), { ...SPEC, ...change });
}

test("id and options are not part of the request; text, parameters and caller are", () => {
  expect(keyOf({ id: "b", options: null })).toBe(keyOf({}));
  const others = [
    keyOf({}, "bob"),
    keyOf({ sql: "SELECT * FROM t WHERE n = $1 " }),
    keyOf({ namespace_id: "app" }),
    ...[[], [2], ["1"], [null], [Number.NaN], [1n], ["1n"], [true], [[1n]], [1, 1]].map((params) =>
      keyOf({ params }),
    ),
    planKeyOf({ ...subscriber("ann", 1), role: "dba" }, SPEC),
  ];
  expect(new Set([keyOf({}), ...others]).size).toBe(others.length + 1);
});

function plan(mayRead: boolean): LivePlan {
  return { mayRead: () => mayRead } as LivePlan;
}

test("a plan is found while its group is open and the caller may read", () => {
  const plans = new RecentPlans();
  const [readable, refused] = [plan(true), plan(false)];
  plans.remember("a", readable);
  expect(plans.find("a", (it) => it === readable)).toBe(readable);
  expect(plans.find("b", () => true)).toBeUndefined();
  expect(plans.find("a", () => false)).toBeUndefined();
  expect(plans.find("a", () => true)).toBeUndefined();
  plans.remember("a", refused);
  expect(plans.find("a", () => true)).toBeUndefined();
});

test("the oldest of too many is forgotten", () => {
  const plans = new RecentPlans();
  for (let i = 0; i < 257; i += 1) plans.remember(String(i), plan(true));
  expect(plans.find("0", () => true)).toBeUndefined();
  expect(plans.find("1", () => true)).toBeDefined();
  expect(plans.find("256", () => true)).toBeDefined();
});
