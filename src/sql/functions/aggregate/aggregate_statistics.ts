/**
 * Defines variance and related aggregates, covariance and linear regression.
 *
 * Exact numbers and their squares are summed exactly and divided only once. Doubles are
 * accumulated by the method of Youngs and Cramer (1971), which preserves the small difference
 * between two large sums.
 */
import {
  addWhole,
  type BigDecimal,
  bigDecimalOf,
  type DataType,
  doubleFromDecimal,
  finiteDouble,
  isFiniteNumeric,
  multiplyWhole,
  NUMERIC_NAN,
  numericOf,
  numericScale,
  quotientOf,
  rootAt,
  subtractWhole,
  type Value,
  type Whole,
} from "../../../types/mod.ts";
import type { AggregateState } from "./aggregate_state.ts";

export interface VarianceOptions {
  /** Whether the statistic covers the whole population rather than a sample. */
  readonly isPopulation: boolean;
  /** Whether the result is the square root of the variance. */
  readonly isDeviation: boolean;
}

export const VARIANCES: ReadonlyMap<string, VarianceOptions> = new Map([
  ["stddev", { isPopulation: false, isDeviation: true }],
  ["stddev_samp", { isPopulation: false, isDeviation: true }],
  ["stddev_pop", { isPopulation: true, isDeviation: true }],
  ["variance", { isPopulation: false, isDeviation: false }],
  ["var_samp", { isPopulation: false, isDeviation: false }],
  ["var_pop", { isPopulation: true, isDeviation: false }],
]);

export function varianceState(type: DataType, options: VarianceOptions): AggregateState {
  if (isInexact(type)) {
    return new DoubleVariance((squares, count) => finishVariance(squares, count, options));
  }
  if (type.kind === "numeric") return new NumericVariance(options);
  if (type.kind === "decimal") {
    const scale = 2 * type.scale;
    return new ExactVariance((scaled, count) =>
      numericVariance(BigInt(scaled), { scale, count, options }),
    );
  }
  return new ExactVariance((scaled, count) =>
    finishVariance(doubleFromDecimal(scaled, 0) / count, count, options),
  );
}

/**
 * Creates the state for a variance's third partial result, in addition to sum and count: the sum
 * of squares, or of squared deviations from the mean.
 */
export function partOfSquares(type: DataType): AggregateState {
  return isInexact(type) ? new DoubleVariance((squares) => squares) : new SquareSums();
}

function isInexact({ kind }: DataType): boolean {
  return kind === "float" || kind === "double";
}

function finishVariance(
  squares: number,
  count: number,
  { isPopulation, isDeviation }: VarianceOptions,
): Value {
  const divisor = isPopulation ? count : count - 1;
  if (divisor <= 0) return null;
  const variance = Math.max(0, squares / divisor);
  const result = isDeviation ? Math.sqrt(variance) : variance;
  // Deviations from an infinite value are undefined, in which case the result is NaN.
  return Number.isNaN(result) ? result : finiteDouble(result);
}

class SquareSums implements AggregateState {
  readonly #squares: Whole[] = [];

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    const whole = value as Whole;
    this.#squares[group] = addWhole(this.#squares[group] ?? 0, multiplyWhole(whole, whole));
  }

  finish(group: number): Value {
    return this.#squares[group] ?? null;
  }
}

/**
 * Computes variance from exact sums. It accepts values, or partial results that consist of a sum,
 * a count and a sum of squares.
 */
class ExactVariance implements AggregateState {
  readonly #finish: (scaled: Whole, count: number) => Value;
  readonly #counts: number[] = [];
  readonly #sums: Whole[] = [];
  readonly #squares: Whole[] = [];

  /**
   * @param finish Converts the population variance times count², which is an exact number, to the
   *   result of the aggregate.
   */
  constructor(finish: (scaled: Whole, count: number) => Value) {
    this.#finish = finish;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null, count = 1, squares] = values;
    if (value === null) return;
    const whole = value as Whole;
    const added = squares === undefined ? multiplyWhole(whole, whole) : (squares as Whole);
    this.#counts[group] = (this.#counts[group] ?? 0) + (count as number);
    this.#sums[group] = addWhole(this.#sums[group] ?? 0, whole);
    this.#squares[group] = addWhole(this.#squares[group] ?? 0, added);
  }

  finish(group: number): Value {
    const count = this.#counts[group] ?? 0;
    if (count === 0) return null;
    const sum = this.#sums[group] ?? 0;
    const scaled = subtractWhole(
      multiplyWhole(this.#squares[group] ?? 0, count),
      multiplyWhole(sum, sum),
    );
    return this.#finish(scaled, count);
  }
}

/** The sums over a group's NUMERIC values. */
interface NumericSums {
  count: number;
  /** Whether all values of the group are finite. */
  isFinite: boolean;
  scale: number;
  /**
   * The sum and the sum of squares, both unscaled: the sum at the scale of the values, and the sum
   * of squares at twice that scale.
   */
  sum: bigint;
  squares: bigint;
}

/**
 * Computes variance like {@linkcode ExactVariance}, but for values with different scales. The
 * squares may have more digits than a NUMERIC can hold.
 */
class NumericVariance implements AggregateState {
  readonly #options: VarianceOptions;
  readonly #groups: NumericSums[] = [];

  constructor(options: VarianceOptions) {
    this.#options = options;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    let sums = this.#groups[group];
    if (sums === undefined) {
      sums = { count: 0, isFinite: true, scale: 0, sum: 0n, squares: 0n };
      this.#groups[group] = sums;
    }
    sums.count += 1;
    if (!isFiniteNumeric(value as string)) sums.isFinite = false;
    else addSquare(sums, bigDecimalOf(value as string));
  }

  finish(group: number): Value {
    const sums = this.#groups[group];
    if (sums === undefined) return null;
    const { count, isFinite, scale, squares, sum } = sums;
    const { isPopulation } = this.#options;
    if (!isPopulation && count === 1) return null;
    if (!isFinite) return NUMERIC_NAN;
    return numericVariance(squares * BigInt(count) - sum * sum, {
      scale: 2 * scale,
      count,
      options: this.#options,
    });
  }
}

function addSquare(sums: NumericSums, { scale, unscaled }: BigDecimal): void {
  const shared = Math.max(scale, sums.scale);
  const grown = 10n ** BigInt(shared - sums.scale);
  const value = unscaled * 10n ** BigInt(shared - scale);
  sums.sum = sums.sum * grown + value;
  sums.squares = sums.squares * grown * grown + value * value;
  sums.scale = shared;
}

/**
 * Returns the result for a group of NUMERIC values.
 * @param scaled The population variance times count², unscaled.
 */
function numericVariance(
  scaled: bigint,
  { count, options, scale }: { scale: number; count: number; options: VarianceOptions },
): Value {
  const { isDeviation, isPopulation } = options;
  if (!isPopulation && count === 1) return null;
  if (scaled <= 0n) return numericOf(0n, 0);
  const divisor = BigInt(count) * BigInt(isPopulation ? count : count - 1);
  const quotient = quotientOf({ unscaled: scaled, scale }, { unscaled: divisor, scale: 0 });
  return isDeviation ? rootAt(quotient, numericScale(quotient)) : quotient;
}

/** Computes variance like {@linkcode ExactVariance}, but from deviations from the mean. */
class DoubleVariance implements AggregateState {
  readonly #finish: (squares: number, count: number) => Value;
  readonly #counts: number[] = [];
  readonly #sums: number[] = [];
  readonly #deviations: number[] = [];

  constructor(finish: (squares: number, count: number) => Value) {
    this.#finish = finish;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null, partCount, squares] = values;
    if (value === null) return;
    const number = value as number;
    if (partCount !== undefined) {
      this.#addPart(group, number, { count: partCount as number, squares: squares as number });
      return;
    }
    const count = (this.#counts[group] ?? 0) + 1;
    const sum = (this.#sums[group] ?? 0) + number;
    this.#counts[group] = count;
    this.#sums[group] = sum;
    if (count > 1) {
      const step = number * count - sum;
      const before = this.#deviations[group] ?? 0;
      this.#deviations[group] = before + (step * step) / (count * (count - 1));
    } else if (!Number.isFinite(number)) {
      this.#deviations[group] = Number.NaN;
    }
  }

  /** Combines partial statistics by the method of Chan, Golub and LeVeque (1979). */
  #addPart(
    group: number,
    sum: number,
    { count, squares }: { count: number; squares: number },
  ): void {
    const countBefore = this.#counts[group] ?? 0;
    const sumBefore = this.#sums[group] ?? 0;
    this.#counts[group] = countBefore + count;
    this.#sums[group] = sumBefore + sum;
    const before = this.#deviations[group] ?? 0;
    const step = sum * countBefore - sumBefore * count;
    const between =
      countBefore === 0 ? 0 : (step * step) / (countBefore * count * (countBefore + count));
    this.#deviations[group] = before + squares + between;
  }

  finish(group: number): Value {
    const count = this.#counts[group] ?? 0;
    return count === 0 ? null : this.#finish(this.#deviations[group] ?? 0, count);
  }
}

/**
 * Sums over pairs (y, x). Fields such as `sxx` are sums of products of deviations from the means.
 */
interface PairSums {
  count: number;
  sumX: number;
  sumY: number;
  sxx: number;
  syy: number;
  sxy: number;
}

type PairFinish = (sums: Readonly<PairSums>) => number | null;

function orNull(isDefined: boolean, compute: () => number): number | null {
  return isDefined ? compute() : null;
}

export const PAIR_FUNCTIONS: ReadonlyMap<string, PairFinish> = new Map<string, PairFinish>([
  ["regr_count", ({ count }) => count],
  ["regr_sxx", ({ sxx }) => sxx],
  ["regr_syy", ({ syy }) => syy],
  ["regr_sxy", ({ sxy }) => sxy],
  ["regr_avgx", ({ sumX, count }) => sumX / count],
  ["regr_avgy", ({ sumY, count }) => sumY / count],
  ["covar_pop", ({ sxy, count }) => sxy / count],
  ["covar_samp", ({ sxy, count }) => orNull(count > 1, () => sxy / (count - 1))],
  ["corr", ({ sxx, syy, sxy }) => orNull(sxx !== 0 && syy !== 0, () => sxy / Math.sqrt(sxx * syy))],
  ["regr_slope", ({ sxx, sxy }) => orNull(sxx !== 0, () => sxy / sxx)],
  [
    "regr_intercept",
    ({ sxx, sxy, sumX, sumY, count }) =>
      orNull(sxx !== 0, () => (sumY - (sumX * sxy) / sxx) / count),
  ],
  [
    "regr_r2",
    ({ sxx, syy, sxy }) => orNull(sxx !== 0, () => (syy === 0 ? 1 : (sxy * sxy) / (sxx * syy))),
  ],
]);

export class PairState implements AggregateState {
  readonly #sums: PairSums[] = [];
  readonly #finish: PairFinish;
  readonly #isCount: boolean;
  /** Whether a value was NaN or infinite. If so, an infinite result is not an overflow. */
  #hasInfinite = false;

  constructor(name: string, finish: PairFinish) {
    this.#finish = finish;
    this.#isCount = name === "regr_count";
  }

  add(group: number, ...values: readonly Value[]): void {
    const [y = null, x = null] = values;
    if (y === null || x === null) return;
    if (!Number.isFinite(y) || !Number.isFinite(x)) this.#hasInfinite = true;
    let sums = this.#sums[group];
    if (sums === undefined) {
      sums = { count: 0, sumX: 0, sumY: 0, sxx: 0, syy: 0, sxy: 0 };
      this.#sums[group] = sums;
    }
    addPair(sums, x as number, y as number);
  }

  finish(group: number): Value {
    const sums = this.#sums[group];
    if (sums === undefined) return this.#isCount ? 0 : null;
    const result = this.#finish(sums);
    if (result === null || this.#hasInfinite) return result;
    return finiteDouble(result);
  }
}

function addPair(sums: PairSums, x: number, y: number): void {
  sums.count += 1;
  sums.sumX += x;
  sums.sumY += y;
  if (sums.count === 1) {
    if (!Number.isFinite(x)) sums.sxx = sums.sxy = Number.NaN;
    if (!Number.isFinite(y)) sums.syy = sums.sxy = Number.NaN;
    return;
  }
  const stepX = x * sums.count - sums.sumX;
  const stepY = y * sums.count - sums.sumY;
  const scale = 1 / (sums.count * (sums.count - 1));
  sums.sxx += stepX * stepX * scale;
  sums.syy += stepY * stepY * scale;
  sums.sxy += stepX * stepY * scale;
}
