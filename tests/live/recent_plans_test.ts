/** Verifies that a plan is reused for an identical request, and for no other. */
import { expect, test } from "bun:test";
import type { TokenScope } from "../../src/auth/mod.ts";
import { planKeyOf, RecentPlans } from "../../src/live/recent_plans.ts";
import type { SubscriptionSpec } from "../../src/protocol/mod.ts";
import type { LivePlan } from "../../src/sql/mod.ts";
import { subscriber } from "../support/live_fixture.ts";

const SPEC: SubscriptionSpec = { id: "a", sql: "SELECT * FROM t WHERE n = $1", params: [1] };

const SCOPES: readonly TokenScope[] = [
  { tokenName: "t", rights: undefined, namespaces: undefined },
  { tokenName: "u", rights: undefined, namespaces: undefined },
  { tokenName: "t", rights: new Set(["read"]), namespaces: undefined },
  { tokenName: "t", rights: undefined, namespaces: new Set(["app"]) },
  { tokenName: "t", rights: undefined, namespaces: new Set(["app", "shop"]) },
];

function keyOf(change: Partial<SubscriptionSpec>, user = "ann"): string {
  return planKeyOf(subscriber(user, 1), { ...SPEC, ...change });
}

test("id and options are not part of the key of a request; text, parameters and caller are", () => {
  expect(keyOf({ id: "b", options: null })).toBe(keyOf({}));
  const others = [
    keyOf({}, "bob"),
    keyOf({ sql: "SELECT * FROM t WHERE n = $1 " }),
    keyOf({ namespace_id: "app" }),
    ...[[], [2], ["1"], [null], [Number.NaN], [1n], ["1n"], [true], [[1n]], [1, 1]].map((params) =>
      keyOf({ params }),
    ),
    planKeyOf({ ...subscriber("ann", 1), role: "dba" }, SPEC),
    ...SCOPES.map((tokenScope) => planKeyOf({ ...subscriber("ann", 1), tokenScope }, SPEC)),
  ];
  expect(new Set([keyOf({}), ...others]).size).toBe(others.length + 1);
});

test("the key of a request is short however long the parameters are, and still distinguishes them", () => {
  const long = "x".repeat(500_000);
  const keys = [
    [long],
    [`${long} `],
    [long, 1],
    ["\ud800".repeat(1000)],
    ["\ud801".repeat(1000)],
  ].map((params) => keyOf({ params }));
  for (const key of keys) expect(key.length).toBeLessThan(64);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keyOf({ params: [long] })).toBe(keys[0] ?? "");
});

function plan(mayRead: boolean): LivePlan {
  return { mayRead: () => mayRead } as LivePlan;
}

test("a plan is found while its group is open and the caller may still read the table", () => {
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

test("the oldest plan is dropped if there are too many", () => {
  const plans = new RecentPlans();
  const open = Array.from({ length: 257 }, () => plan(true));
  for (const [i, each] of open.entries()) plans.remember(String(i), each);
  expect(plans.find("0", () => true)).toBeUndefined();
  expect(plans.find("1", () => true)).toBe(open[1] as LivePlan);
  expect(plans.find("256", () => true)).toBe(open[256] as LivePlan);
});

test("the cache alone does not keep a plan alive", async () => {
  const plans = new RecentPlans();
  const kept = plan(true);
  plans.remember("kept", kept);
  for (let i = 0; i < 100; i += 1) plans.remember(String(i), plan(true));
  await Bun.sleep(0);
  Bun.gc(true);
  const found = Array.from({ length: 100 }, (_, i) => plans.find(String(i), () => true));
  // The garbage collector may still find references to some plans on the stack, so a few plans may
  // survive.
  expect(found.filter((it) => it !== undefined).length).toBeLessThan(50);
  expect(plans.find("kept", () => true)).toBe(kept);
});
