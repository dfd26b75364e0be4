/**
 * Verifies that the fast paths for short NUMERIC values return the same results as the general
 * path.
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
  quotientColumn,
  ShortNumericReader,
  textFromNumeric,
  type Value,
  type Vector,
  valuesOf,
} from "../../../../src/types/mod.ts";

const chance = chanceFromSeed(7);

/** Returns an integer of up to 16 digits, often with trailing zeros. */
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

/** Divides each value of a column by the general method. */
function quotientsOf(
  values: readonly Value[],
  { dividendScale, divisor, scale }: { dividendScale: number; divisor: number; scale: number },
): Value[] {
  const right = numericOf(divisor, scale);
  return values.map((value) =>
    value === null ? null : divideNumerics(numericOf(Number(value), dividendScale), right),
  );
}

/** Returns a column with an arbitrary number in the place of each NULL. */
function columnOf(values: readonly Value[], kind: "f64" | "i32" = "f64"): Vector {
  const nulls = Uint8Array.from(values, (value) => (value === null ? 1 : 0));
  const numbers = values.map((value) => Number(value ?? 7));
  const { length } = values;
  return kind === "f64"
    ? { kind, length, values: Float64Array.from(numbers), nulls }
    : { kind, length, values: Int32Array.from(numbers), nulls };
}

describe("quotientColumn divides a column by a number", () => {
  test("quotientColumn returns the quotients that the values have one by one, and their sums", () => {
    const divisors = [1, 2, 4, 5, 8, 16, 25, 100, 125, 1000, 3125, 10 ** 9, 2 ** 15, 3, 7, 9999];
    let divided = 0;
    for (let run = 0; run < 2000; run += 1) {
      const [dividendScale, scale] = [chance.below(14), chance.below(10)];
      const divisor = chance.pick(divisors) * chance.pick([1, -1]);
      const values = Array.from({ length: 30 }, () => (chance.below(5) === 0 ? null : wholeOf()));
      const column = quotientColumn(
        { unscaled: columnOf(values), scale: dividendScale },
        { unscaled: divisor, scale },
      );
      if (column === undefined) continue;
      divided += 1;
      const expected = quotientsOf(values, { dividendScale, divisor, scale });
      const groups = { ids: new Uint32Array(30), groupCount: 2, rowCounts: undefined };
      for (let row = 0; row < 30; row += 1) groups.ids[row] = chance.below(2);
      const [whole, single] = [sumState(NUMERIC, NUMERIC), sumState(NUMERIC, NUMERIC)];
      expect(whole.addVector?.(groups, column, 30)).toBe(true);
      for (const [row, value] of expected.entries()) single.add(groups.ids[row] ?? 0, value);
      expect([whole.finish(0), whole.finish(1)]).toEqual([single.finish(0), single.finish(1)]);
      expect(valuesOf(column)).toEqual(expected);
    }
    expect(divided).toBeGreaterThan(500);
  });

  test("quotientColumn shows as many digits as the general way where their number changes", () => {
    for (const divisor of [1, 2, 5, 8, 5000, -8192, 10_000, 10 ** 8, 5 ** 13]) {
      for (const [dividendScale, scale] of [
        [0, 0],
        [2, 0],
        [0, 2],
        [3, 3],
        [7, 1],
        [1, 9],
      ] as const) {
        const values: Value[] = [null, 0, 1, -1];
        for (let power = 0; power < 14; power += 1) {
          const limit = Math.round((Math.abs(divisor) % 10_000) * 10 ** (power - 4));
          for (let near = -2; near <= 2; near += 1) {
            values.push(limit + near, -(10 ** power) + near);
          }
        }
        for (const value of values) {
          const column = quotientColumn(
            { unscaled: columnOf([value]), scale: dividendScale },
            { unscaled: divisor, scale },
          );
          const expected = quotientsOf([value], { dividendScale, divisor, scale });
          if (column !== undefined) expect(valuesOf(column)).toEqual(expected);
        }
      }
    }
  });

  test("quotientColumn leaves quotients that a double does not represent to others", () => {
    const undividedBy = (divisor: number, value: number): boolean =>
      quotientColumn(
        { unscaled: columnOf([1, value]), scale: 2 },
        { unscaled: divisor, scale: 0 },
      ) === undefined;
    expect(undividedBy(2, 1)).toBe(false);
    expect(undividedBy(3, 3)).toBe(true);
    expect(undividedBy(2 ** 16, 1)).toBe(true);
    expect(undividedBy(2, Number.MAX_SAFE_INTEGER)).toBe(true);
    expect(undividedBy(2 ** 15, 10 ** 5)).toBe(false);
    expect(undividedBy(2 ** 15, 10 ** 6)).toBe(true);
  });

  test("quotientColumn divides integers of 32 bits, and strings keep NULLs that are overwritten", () => {
    const dividends = columnOf([5, null, -1], "i32");
    const column = quotientColumn({ unscaled: dividends, scale: 0 }, { unscaled: 2, scale: 0 });
    if (dividends.kind === "i32") dividends.nulls?.fill(0);
    expect(column && valuesOf(column)).toEqual([
      numericOf(25_000_000_000_000_000n, 16),
      null,
      numericOf(-50_000_000_000_000_000_000n, 20),
    ]);
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
