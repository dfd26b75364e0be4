/** Tests "Did you mean": the choice of the known name that a mistyped name most likely means. */
import { expect, test } from "bun:test";
import { nearestName } from "../../src/base/nearest_name.ts";

const NAMES = ["orders", "customers", "id", "created_at"];

test.each([
  ["order", "orders"],
  ["ODRERS", "orders"],
  ["costomer", "customers"],
  ["craeted_at", "created_at"],
  ["costomerz", "customers"],
  ["kostomerz", undefined],
  ["x", undefined],
  ["di", "id"],
  ["", undefined],
  // The name is so short that it allows only a single edit.
  ["ordre", undefined],
  ["iq", "id"],
])("nearestName suggests for %p the name %p", (given, expected) => {
  expect(nearestName(given, NAMES)).toBe(expected);
});

test("nearestName measures a dotted name by the length of its last part", () => {
  const names = ["app.t1", "app.orders"];
  expect(nearestName("app.x", names)).toBeUndefined();
  expect(nearestName("app.t2", names)).toBe("app.t1");
  expect(nearestName("apq.ordres", names)).toBe("app.orders");
});

test("nearestName accepts names at the maximum distance, and none beyond it", () => {
  expect(nearestName("kostomerz", NAMES, 3)).toBe("customers");
  expect(nearestName("kostomerz", NAMES, 2)).toBeUndefined();
  expect(nearestName("orders", NAMES, 0)).toBe("orders");
});

test("nearestName returns the first of several equally near names", () => {
  expect(nearestName("cat", ["bat", "hat"])).toBe("bat");
});
