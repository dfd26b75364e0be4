/**
 * "Did you mean": which of the known names a mistyped one is taken for.
 */
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
  // A short name has few letters to be known by.
  ["ordre", undefined],
  ["iq", "id"],
])("nearestName(%p) is %p", (given, expected) => {
  expect(nearestName(given, NAMES)).toBe(expected);
});

test("nearestName of a name with dots goes by the length of its last part", () => {
  const names = ["app.t1", "app.orders"];
  expect(nearestName("app.x", names)).toBeUndefined();
  expect(nearestName("app.t2", names)).toBe("app.t1");
  expect(nearestName("apq.ordres", names)).toBe("app.orders");
});

test("nearestName takes names as far apart as it is told: at the bound, and not above", () => {
  expect(nearestName("kostomerz", NAMES, 3)).toBe("customers");
  expect(nearestName("kostomerz", NAMES, 2)).toBeUndefined();
  expect(nearestName("orders", NAMES, 0)).toBe("orders");
});

test("nearestName is the first of several that are as near", () => {
  expect(nearestName("cat", ["bat", "hat"])).toBe("bat");
});
