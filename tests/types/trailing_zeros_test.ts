/**
 * Zeros are removed from the end of digits and of fractions, and from nowhere else. A long run of
 * them in the middle is read once.
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
])("withoutTrailingZeros(%p) is %p", (digits, kept) => {
  expect(withoutTrailingZeros(digits)).toBe(kept);
});

test.each([
  ["100", "100"],
  ["1.50", "1.5"],
  ["1.00", "1"],
  ["-0.0", "-0"],
  ["10.", "10"],
  ["0.001", "0.001"],
])("withoutFractionZeros(%p) is %p", (number, kept) => {
  expect(withoutFractionZeros(number)).toBe(kept);
});

test("withoutTrailingZeros reads digits of a megabyte once", () => {
  const digits = `${"0".repeat(1 << 20)}1`;
  expect(withoutTrailingZeros(digits)).toBe(digits);
});
