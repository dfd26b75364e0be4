/**
 * Verifies that decimals are exact, and that each whole number has a single representation,
 * whatever its size. The tests compare random operands from both sides of 2^53 with bigint
 * arithmetic. To reproduce a failure: SEED=<n> bun test tests/types
 */
import { expect, test } from "bun:test";
import { decimalFromDouble } from "../../src/types/decimal.ts";
import {
  addWhole,
  decimalFromText,
  digitsFromText,
  divideDecimal,
  divideWhole,
  doubleFromDecimal,
  fitDecimal,
  multiplyWhole,
  remainderWhole,
  rescale,
  roundedQuotient,
  subtractWhole,
  textFromDecimal,
  truncateScale,
  typeName,
  valueFromNumberText,
  type Whole,
  wholeFromBigint,
} from "../../src/types/mod.ts";
import { randomFrom, seedOf } from "./random.ts";

const seed = seedOf();

function randomWhole(random: () => number): Whole {
  const bits = Math.floor(random() * 100);
  let value = 0n;
  for (let bit = 0; bit < bits; bit += 1) value = value * 2n + (random() < 0.5 ? 1n : 0n);
  return wholeFromBigint(random() < 0.5 ? value : -value);
}

/**
 * Asserts that a whole number is in its only allowed representation: a bigint only beyond 2^53,
 * and never -0.
 */
function expectWhole(actual: Whole, expected: bigint, what: string): void {
  const wanted = wholeFromBigint(expected);
  if (!Object.is(actual, wanted)) expect(`${what}: ${actual}`).toBe(`${what}: ${wanted}`);
}

function roundedHalfAway(left: bigint, right: bigint): bigint {
  const sign = left < 0n === right < 0n ? 1n : -1n;
  const a = left < 0n ? -left : left;
  const b = right < 0n ? -right : right;
  return sign * ((2n * a + b) / (2n * b));
}

test("arithmetic on whole numbers equals that of bigint, in one form", () => {
  const random = randomFrom(seed);
  for (let round = 0; round < 20_000; round += 1) {
    const left = randomWhole(random);
    const right = randomWhole(random);
    const a = BigInt(left);
    const b = BigInt(right);
    const what = `seed ${seed}: ${a}, ${b}`;
    expectWhole(addWhole(left, right), a + b, what);
    expectWhole(subtractWhole(left, right), a - b, what);
    expectWhole(multiplyWhole(left, right), a * b, what);
    if (b === 0n) continue;
    expectWhole(divideWhole(left, right), a / b, what);
    expectWhole(remainderWhole(left, right), a % b, what);
    expectWhole(roundedQuotient(left, right), roundedHalfAway(a, b), what);
  }
});

test("rescale and truncateScale move the point exactly, and rescale rounds half away from zero", () => {
  const random = randomFrom(seed + 1);
  for (let round = 0; round < 20_000; round += 1) {
    const value = randomWhole(random);
    const from = Math.floor(random() * 39);
    const to = Math.floor(random() * 39);
    const what = `seed ${seed}: ${value} from ${from} to ${to}`;
    const power = 10n ** BigInt(Math.abs(to - from));
    const wanted = to >= from ? BigInt(value) * power : roundedHalfAway(BigInt(value), power);
    expectWhole(rescale(value, from, to), wanted, what);
    const cut = to >= from ? BigInt(value) * power : BigInt(value) / power;
    expectWhole(truncateScale(value, from, to), cut, what);
  }
});

test("divideDecimal returns the quotient at the requested scale", () => {
  expect(divideDecimal({ value: 70, scale: 1 }, { value: 2, scale: 0 }, 16)).toBe(
    35_000_000_000_000_000n,
  );
  expect(divideDecimal({ value: 1, scale: 0 }, { value: 3, scale: 0 }, 4)).toBe(3333);
  expect(divideDecimal({ value: -2, scale: 0 }, { value: 3, scale: 0 }, 4)).toBe(-6667);
  expect(divideDecimal({ value: 12_345, scale: 4 }, { value: 1, scale: 0 }, 2)).toBe(123);
});

test("textFromDecimal and decimalFromText are inverse", () => {
  const random = randomFrom(seed + 2);
  for (let round = 0; round < 5000; round += 1) {
    const value = wholeFromBigint(BigInt(randomWhole(random)) % 10n ** 38n);
    const scale = Math.floor(random() * 39);
    const text = textFromDecimal(value, scale);
    expect(text.split(".")[1]?.length ?? 0).toBe(scale);
    expect(decimalFromText(text, 38, scale), text).toBe(value);
  }
});

test.each([
  [5, 2, "0.05"],
  [-5, 2, "-0.05"],
  [0, 3, "0.000"],
  [1230, 2, "12.30"],
  [-1230, 0, "-1230"],
  [10n ** 37n, 38, "0.10000000000000000000000000000000000000"],
] as const)("textFromDecimal(%p, %p) returns %p", (value, scale, text) => {
  expect(textFromDecimal(value, scale)).toBe(text);
});

test.each([
  ["12.345", 10, 2, 1235],
  ["-12.345", 10, 2, -1235],
  ["1e3", 10, 0, 1000],
  ["1.5e-3", 10, 4, 15],
  [".5", 10, 1, 5],
  ["5.", 10, 1, 50],
  ["1_000", 10, 0, 1000],
  ["+7", 10, 0, 7],
] as const)("decimalFromText(%p) as (%p,%p) returns %p", (text, precision, scale, value) => {
  expect(decimalFromText(text, precision, scale)).toBe(value);
});

test.each(["", ".", "1e", "abc", "1__0", "_1", "1.2.3", "0x10", "NaN", "Infinity"])(
  "digitsFromText(%p) returns no number",
  (text) => {
    expect(digitsFromText(text)).toBeUndefined();
  },
);

test("fitDecimal refuses one digit too many, at and above the bound", () => {
  expect(fitDecimal(999, 3, 0)).toBe(999);
  expect(() => fitDecimal(1000, 3, 0)).toThrow("Cannot represent 1000 as numeric(3,0)");
  expect(() => fitDecimal(-1000, 3, 1)).toThrow("Cannot represent -100.0 as numeric(3,1)");
  expect(fitDecimal(10n ** 38n - 1n, 38, 0)).toBe(10n ** 38n - 1n);
  expect(() => fitDecimal(10n ** 38n, 38, 0)).toThrow("as numeric(38,0)");
});

test("decimals become the nearest double, and doubles their 15 digits", () => {
  expect(doubleFromDecimal(1, 1)).toBe(0.1);
  expect(doubleFromDecimal(9_007_199_254_740_993n, 0)).toBe(9_007_199_254_740_992);
  expect(doubleFromDecimal(1, 38)).toBe(1e-38);
  expect(decimalFromDouble(0.1 + 0.2, { precision: 10, scale: 4 }, 15)).toBe(3000);
  expect(decimalFromDouble(12.345, { precision: 10, scale: 2 }, 15)).toBe(1235);
  expect(decimalFromDouble(-3, { precision: 10, scale: 2 }, 15)).toBe(-300);
});

test.each([
  ["42", "integer", 42],
  ["2147483648", "bigint", 2_147_483_648],
  ["-2147483648", "integer", -2_147_483_648],
  ["-2147483649", "bigint", -2_147_483_649],
  ["-9223372036854775808", "bigint", -9_223_372_036_854_775_808n],
  ["-9223372036854775809", "numeric(19,0)", -9_223_372_036_854_775_809n],
  ["-0x80000000", "integer", -2_147_483_648],
  ["-4.20", "numeric(3,2)", -420],
  ["9223372036854775808", "numeric(19,0)", 9_223_372_036_854_775_808n],
  ["4.20", "numeric(3,2)", 420],
  [".5", "numeric(1,1)", 5],
  ["1e3", "numeric(4,0)", 1000],
  ["0xff", "integer", 255],
  ["1_000", "integer", 1000],
  ["0.001", "numeric(3,3)", 1],
  ["1e40", "numeric", "34i91"],
] as const)("valueFromNumberText(%p) has type %p", (text, type, value) => {
  const literal = valueFromNumberText(text);
  expect(literal === undefined ? undefined : typeName(literal.type)).toBe(type);
  expect(literal?.value).toBe(value);
});

test("absurd numbers of digits are refused, not computed", () => {
  expect(() => digitsFromText("1e99999999")).toThrow("digits");
  expect(() => digitsFromText("9".repeat(200_000))).toThrow("digits");
});
