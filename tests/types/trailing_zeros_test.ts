/**
 * Verifies that trailing zeros are removed from digits and from fractions, and that no other zeros
 * are. A long run of zeros in the middle is read only once.
 */
import { expect, test } from "bun:test";
import { withoutFractionZeros, withoutTrailingZeros } from "../../src/types/mod.ts";

test.each([
  ["", ""],
  ["0", ""],
  ["000", ""],
  ["100", "1"],
  ["0010", "001"],
  ["12", "12"],
])("withoutTrailingZeros(%p) returns %p", (digits, kept) => {
  expect(withoutTrailingZeros(digits)).toBe(kept);
});

test.each([
  ["100", "100"],
  ["1.50", "1.5"],
  ["1.00", "1"],
  ["-0.0", "-0"],
  ["10.", "10"],
  ["0.001", "0.001"],
])("withoutFractionZeros(%p) returns %p", (number, kept) => {
  expect(withoutFractionZeros(number)).toBe(kept);
});

test("withoutTrailingZeros reads a megabyte of digits once", () => {
  const digits = `${"0".repeat(1 << 20)}1`;
  expect(withoutTrailingZeros(digits)).toBe(digits);
});
