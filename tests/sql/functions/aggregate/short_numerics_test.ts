/**
 * Tests that the fast ways of computing with short numbers return the results of the general ways.
 */
import { describe, expect, test } from "bun:test";
import { chanceFromSeed } from "../../../../scripts/support/chance.ts";
import { sumState } from "../../../../src/sql/functions/aggregate/aggregate_sums.ts";
import {
  addNumerics,
  divideNumerics,
  NUMERIC,
  numericOf,
  quotientAtScales,
  ShortNumericReader,
  textFromNumeric,
} from "../../../../src/types/mod.ts";

const chance = chanceFromSeed(7);

/** Returns an integer of up to 16 digits, often with zeros at its end. */
function wholeOf(): number {
  const size = chance.below(10 ** (1 + chance.below(9))) * 10 ** chance.below(6);
  return chance.below(2) === 0 ? size : 0 - size;
}

describe("quotientAtScales divides short decimals", () => {
  test("quotientAtScales returns the quotient that NUMERIC without a size has", () => {
    for (let run = 0; run < 20_000; run += 1) {
      const [leftScale, rightScale] = [chance.below(12), chance.below(12)];
      const divisors = [2, 4, 5, 8, 16, 100, 3, 7, wholeOf()];
      const left = wholeOf();
      const right = (divisors[chance.below(divisors.length)] ?? 1) || 1;
      const quotient = quotientAtScales(leftScale, rightScale)(left, right);
      const expected = divideNumerics(numericOf(left, leftScale), numericOf(right, rightScale));
      expect(quotient).toBe(expected);
    }
  });

  test("quotientAtScales divides numbers that need a bigint", () => {
    expect(textFromNumeric(quotientAtScales(2, 0)(2n ** 70n, 2))).toBe("5902958103587056517.12");
    expect(textFromNumeric(quotientAtScales(0, 0)(1, 3))).toBe("0.33333333333333333333");
  });
});

describe("ShortNumericReader reads short values", () => {
  test("ShortNumericReader reads the number, and the digits that a value shows", () => {
    const reader = new ShortNumericReader();
    for (let run = 0; run < 5000; run += 1) {
      const scale = chance.below(20);
      const value = numericOf(wholeOf(), scale);
      if (!reader.read(value)) continue;
      expect(reader.shown).toBe(scale);
      expect(numericOf(reader.unscaled, reader.scale)).toBe(value.split(" ")[0] ?? "");
    }
  });

  test("ShortNumericReader leaves NaN, the infinities and long values to others", () => {
    const reader = new ShortNumericReader();
    for (const value of [
      "0",
      "4",
      "5",
      numericOf(10n ** 15n, 0),
      numericOf(-(10n ** 20n) - 1n, 9),
    ]) {
      expect(reader.read(value)).toBe(false);
    }
  });
});

describe("sum of NUMERIC", () => {
  test("sum shows as many digits as the value that shows most", () => {
    for (let run = 0; run < 200; run += 1) {
      const state = sumState(NUMERIC, NUMERIC);
      let expected = numericOf(0, 0);
      for (let row = 0; row < 20; row += 1) {
        const isLong = chance.below(4) === 0;
        const whole = isLong ? BigInt(wholeOf()) * 10n ** 12n + 1n : wholeOf();
        const value = numericOf(whole, chance.below(25));
        state.add(0, value);
        expected = addNumerics(expected, value);
      }
      expect(state.finish(0)).toBe(expected);
    }
  });
});
