/**
 * Defines count, sum and avg.
 *
 * Integers are summed in doubles as long as that is exact. When a sum would exceed ±(2^53−1), it is
 * added to a bigint, and the double restarts at 0. Every sum is therefore exact, and only groups
 * with huge sums need a bigint.
 */
import {
  addIntervals,
  addWhole,
  areFinite,
  checkedMoney,
  type DataType,
  divideInterval,
  divideNumerics,
  doubleFromDecimal,
  doubleFromNumeric,
  finiteDouble,
  finiteFloat,
  fitInteger,
  type Interval,
  isFiniteNumeric,
  negateWhole,
  numericOf,
  numericOfSpecial,
  numericShowing,
  rescale,
  ShortNumericReader,
  shortDecimalOf,
  type Value,
  type Vector,
  type Whole,
  wholeFromBigint,
} from "../../../types/mod.ts";
import {
  type AggregateState,
  addCounts,
  type BatchGroups,
  grown,
  presentCount,
} from "./aggregate_state.ts";
import { magnitudeOf, sumMarked, sumRows } from "./sum_loops.ts";

const SAFE_MAX = Number.MAX_SAFE_INTEGER;

/** The state of count(*) and count(x). */
export class CountState implements AggregateState {
  #counts = new Float64Array(16);

  add(group: number, ...values: readonly Value[]): void {
    if (values[0] === null) return;
    this.#counts = grown(this.#counts, group);
    this.#counts[group] = (this.#counts[group] ?? 0) + 1;
  }

  remove(group: number, ...values: readonly Value[]): void {
    if (values[0] !== null) this.#counts[group] = (this.#counts[group] ?? 0) - 1;
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    const nulls = nullsOf(vector);
    if (nulls === "unknown") return false;
    if (nulls === "all") return true;
    this.#counts = grown(this.#counts, (groups?.groupCount ?? 1) - 1);
    if (groups !== undefined) addCounts(this.#counts, { groups, nulls });
    else this.#counts[0] = (this.#counts[0] ?? 0) + presentCount(nulls, count);
    return true;
  }

  finish(group: number): Value {
    return this.#counts[group] ?? 0;
  }

  finishRange(start: number, end: number): Vector {
    const length = end - start;
    const values = new Float64Array(length);
    values.set(this.#counts.subarray(start, end));
    return { kind: "f64", length, values, nulls: undefined };
  }
}

function nullsOf(vector: Vector | undefined): Uint8Array | undefined | "all" | "unknown" {
  if (vector === undefined) return undefined;
  if (vector.kind === "any") return "unknown";
  if (vector.kind === "const") return vector.value === null ? "all" : undefined;
  return vector.nulls;
}

/** Keeps the exact sum of integers and the number of values for each group. */
class WholeSums {
  #sums = new Float64Array(16);
  #counts = new Float64Array(16);
  readonly #carried = new Map<number, bigint>();
  /** An upper bound on the absolute value of every sum. */
  #magnitude = 0;

  /**
   * Adds a value, or a partial sum, to a group.
   * @param count The number of values in the partial sum.
   */
  add(group: number, value: Whole, count = 1): void {
    this.#grow(group);
    this.#counts[group] = (this.#counts[group] ?? 0) + count;
    if (typeof value === "bigint") this.#carry(group, value);
    else this.#addNumber(group, value);
  }

  remove(group: number, value: Whole): void {
    this.add(group, negateWhole(value));
    this.#counts[group] = (this.#counts[group] ?? 0) - 2;
  }

  addNumbers(
    groups: BatchGroups | undefined,
    values: Int32Array | Float64Array,
    { nulls, count }: { nulls: Uint8Array | undefined; count: number },
  ): void {
    this.#grow((groups?.groupCount ?? 1) - 1);
    if (groups !== undefined) addCounts(this.#counts, { groups, nulls });
    else this.#counts[0] = (this.#counts[0] ?? 0) + presentCount(nulls, count);
    const magnitude = count * (values instanceof Int32Array ? 2 ** 31 : magnitudeOf(values));
    if (this.#haveRoomFor(magnitude)) {
      sumRows(this.#sums, { numbers: groups?.ids, values, nulls, count });
      return;
    }
    for (let row = 0; row < count; row += 1) {
      if (nulls?.[row] !== 1) this.#addNumber(groups?.ids[row] ?? 0, values[row] ?? 0);
    }
    this.#magnitude = SAFE_MAX;
  }

  /**
   * Whether every sum stays in the safe range after numbers of the given total magnitude have been
   * added.
   */
  #haveRoomFor(magnitude: number): boolean {
    if (this.#magnitude + magnitude > SAFE_MAX) this.#magnitude = magnitudeOf(this.#sums);
    this.#magnitude += magnitude;
    return this.#magnitude <= SAFE_MAX;
  }

  count(group: number): number {
    return this.#counts[group] ?? 0;
  }

  sum(group: number): Whole {
    const sum = this.#sums[group] ?? 0;
    const carried = this.#carried.get(group);
    return carried === undefined ? sum + 0 : wholeFromBigint(carried + BigInt(sum));
  }

  /**
   * Returns the results of consecutive groups; undefined if one of the sums does not fit into a
   * double.
   */
  range(start: number, end: number, resultOf: NumberFinish): Vector | undefined {
    if (this.#carried.size > 0) return undefined;
    const length = end - start;
    const values = new Float64Array(length);
    let nulls: Uint8Array | undefined;
    for (let i = 0; i < length; i += 1) {
      const count = this.#counts[start + i] ?? 0;
      if (count === 0) {
        nulls ??= new Uint8Array(length);
        nulls[i] = 1;
      } else {
        values[i] = resultOf((this.#sums[start + i] ?? 0) + 0, count);
      }
    }
    return { kind: "f64", length, values, nulls };
  }

  #addNumber(group: number, value: number): void {
    const sum = this.#sums[group] ?? 0;
    const next = sum + value;
    this.#magnitude = SAFE_MAX;
    if (next <= SAFE_MAX && next >= -SAFE_MAX) {
      this.#sums[group] = next;
    } else {
      this.#carry(group, BigInt(sum));
      this.#sums[group] = value;
    }
  }

  #carry(group: number, value: bigint): void {
    this.#carried.set(group, (this.#carried.get(group) ?? 0n) + value);
  }

  #grow(group: number): void {
    this.#sums = grown(this.#sums, group);
    this.#counts = grown(this.#counts, group);
  }
}

/** Combines partial counts by adding them up. */
export class CountedParts implements AggregateState {
  #counts = new Float64Array(16);

  add(group: number, ...values: readonly Value[]): void {
    this.#counts = grown(this.#counts, group);
    this.#counts[group] = (this.#counts[group] ?? 0) + Number(values[0] ?? 0);
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind !== "f64") return false;
    const { nulls, values } = vector;
    this.#counts = grown(this.#counts, (groups?.groupCount ?? 1) - 1);
    sumRows(this.#counts, { numbers: groups?.ids, values, nulls, count });
    return true;
  }

  finish(group: number): Value {
    return this.#counts[group] ?? 0;
  }
}

/**
 * Converts a group's sum and count to the result of the aggregate. The count is always at least 1.
 */
type WholeFinish = (sum: Whole, count: number) => Value;

/** Converts a sum of at most ±(2^53−1) to a result that is stored as a double. It cannot fail. */
type NumberFinish = (sum: number, count: number) => number;

/**
 * Sums integers. It accepts values, or partial sums together with the number of values in each.
 */
class WholeState implements AggregateState {
  readonly #sums = new WholeSums();
  readonly #finish: WholeFinish;
  readonly #finishNumber: NumberFinish | undefined;

  constructor(finish: WholeFinish, finishNumber?: NumberFinish) {
    this.#finish = finish;
    this.#finishNumber = finishNumber;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null, count = 1] = values;
    if (value !== null) this.#sums.add(group, value as Whole, count as number);
  }

  remove(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value !== null) this.#sums.remove(group, value as Whole);
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind !== "i32" && vector?.kind !== "f64") return false;
    this.#sums.addNumbers(groups, vector.values, {
      nulls: vector.nulls,
      count,
    });
    return true;
  }

  finish(group: number): Value {
    const count = this.#sums.count(group);
    return count === 0 ? null : this.#finish(this.#sums.sum(group), count);
  }

  finishRange(start: number, end: number): Vector | undefined {
    if (this.#finishNumber === undefined) return undefined;
    return this.#sums.range(start, end, this.#finishNumber);
  }
}

/** Sums doubles. Like {@linkcode WholeState}, it also accepts partial sums. */
class DoubleState implements AggregateState {
  #sums = new Float64Array(16);
  #counts = new Float64Array(16);
  /** Whether a value was NaN or infinite. If so, an infinite result is not an overflow. */
  #hasInfinite = false;
  readonly #finish: (sum: number, count: number) => number;

  constructor(finish: (sum: number, count: number) => number) {
    this.#finish = finish;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null, count = 1] = values;
    if (value === null) return;
    if (!Number.isFinite(value)) this.#hasInfinite = true;
    this.#grow(group);
    this.#sums[group] = (this.#sums[group] ?? 0) + (value as number);
    this.#counts[group] = (this.#counts[group] ?? 0) + (count as number);
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind !== "f64") return false;
    const { nulls, values } = vector;
    if (!this.#hasInfinite && !areFinite(values)) return false;
    this.#grow((groups?.groupCount ?? 1) - 1);
    if (groups !== undefined) addCounts(this.#counts, { groups, nulls });
    else this.#counts[0] = (this.#counts[0] ?? 0) + presentCount(nulls, count);
    sumRows(this.#sums, { numbers: groups?.ids, values, nulls, count });
    return true;
  }

  finish(group: number): Value {
    const count = this.#counts[group] ?? 0;
    if (count === 0) return null;
    const result = this.#finish(this.#sums[group] ?? 0, count);
    return this.#hasInfinite ? result : finiteDouble(result);
  }

  #grow(group: number): void {
    this.#sums = grown(this.#sums, group);
    this.#counts = grown(this.#counts, group);
  }
}

/**
 * Keeps only the sum of each group. A group needs no count, only a flag that shows whether it has
 * a value.
 */
class DoubleSumState implements AggregateState {
  #sums = new Float64Array(16);
  /** Contains 1 for each group that has a value. */
  #isMet = new Uint8Array(16);
  /** Whether a value was NaN or infinite. If so, an infinite sum is not an overflow. */
  #hasInfinite = false;
  readonly #finish: (sum: number) => number;

  constructor(finish: (sum: number) => number) {
    this.#finish = finish;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    this.#grow(group);
    if (!Number.isFinite(value)) this.#hasInfinite = true;
    this.#sums[group] = (this.#sums[group] ?? 0) + (value as number);
    this.#isMet[group] = 1;
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind !== "f64") return false;
    const { nulls, values } = vector;
    if (!this.#hasInfinite && !areFinite(values)) return false;
    this.#grow((groups?.groupCount ?? 1) - 1);
    if (groups !== undefined && nulls === undefined && groups.isCounted !== true) {
      sumMarked(this.#sums, this.#isMet, { numbers: groups.ids, values });
      return true;
    }
    this.#markMet(groups, nulls, count);
    sumRows(this.#sums, { numbers: groups?.ids, values, nulls, count });
    return true;
  }

  #markMet(groups: BatchGroups | undefined, nulls: Uint8Array | undefined, count: number): void {
    if (groups === undefined) {
      if (presentCount(nulls, count) > 0) this.#isMet[0] = 1;
    } else if (nulls === undefined && groups.rowCounts !== undefined) {
      const { rowCounts } = groups;
      for (let group = 0; group < rowCounts.length; group += 1) {
        if (rowCounts[group] !== 0) this.#isMet[group] = 1;
      }
    } else {
      for (let row = 0; row < count; row += 1) {
        if (nulls?.[row] !== 1) this.#isMet[groups.ids[row] ?? 0] = 1;
      }
    }
  }

  finish(group: number): Value {
    if (this.#isMet[group] !== 1) return null;
    const sum = this.#sums[group] ?? 0;
    return this.#hasInfinite && !Number.isFinite(sum) ? sum : this.#finish(sum);
  }

  #grow(group: number): void {
    this.#sums = grown(this.#sums, group);
    if (this.#sums.length === this.#isMet.length) return;
    const larger = new Uint8Array(this.#sums.length);
    larger.set(this.#isMet);
    this.#isMet = larger;
  }
}

/**
 * Sums NUMERIC values. Values cannot be removed, because the sum has as many decimal places as the
 * value with the most decimal places.
 */
class NumericState implements AggregateState {
  /**
   * The sums of the finite values, unscaled, and their scales. A scale counts the decimal places
   * that the values need rather than those that they show, so that most sums fit into doubles.
   */
  readonly #sums: Whole[] = [];
  readonly #scales: number[] = [];
  /** The largest number of decimal places shown by any finite value of each group. */
  readonly #shown: number[] = [];
  /** The sums of NaN and the infinities, for groups that have them. */
  readonly #specials: number[] = [];
  readonly #counts: number[] = [];
  readonly #reader = new ShortNumericReader();
  readonly #finish: (sum: string, count: number) => string;

  constructor(finish: (sum: string, count: number) => string) {
    this.#finish = finish;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null, count = 1] = values;
    if (value === null) return;
    this.#counts[group] = (this.#counts[group] ?? 0) + (count as number);
    const reader = this.#reader;
    if (reader.read(value as string)) {
      this.#addFinite(group, reader.unscaled, reader.scale);
      this.#show(group, reader.shown);
    } else if (isFiniteNumeric(value as string)) {
      const { scale, unscaled } = shortDecimalOf(value as string);
      this.#addFinite(group, unscaled, scale);
      this.#show(group, scale);
    } else {
      this.#specials[group] = (this.#specials[group] ?? 0) + doubleFromNumeric(value as string);
    }
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind !== "any" || vector.short === undefined) return false;
    const { nulls, scale, shown, unscaled } = vector.short;
    for (let row = 0; row < count; row += 1) {
      if (nulls !== undefined && nulls[row] === 1) continue;
      const group = groups?.ids[row] ?? 0;
      this.#counts[group] = (this.#counts[group] ?? 0) + 1;
      this.#addFinite(group, unscaled[row] ?? 0, scale);
      this.#show(group, shown[row] ?? 0);
    }
    return true;
  }

  #addFinite(group: number, unscaled: Whole, added: number): void {
    const held = this.#scales[group] ?? 0;
    const scale = Math.max(held, added);
    const sum = rescale(this.#sums[group] ?? 0, held, scale);
    this.#sums[group] = addWhole(sum, rescale(unscaled, added, scale));
    this.#scales[group] = scale;
  }

  #show(group: number, shown: number): void {
    this.#shown[group] = Math.max(this.#shown[group] ?? 0, shown);
  }

  finish(group: number): Value {
    const count = this.#counts[group];
    if (count === undefined) return null;
    const special = this.#specials[group];
    const sum =
      special === undefined
        ? numericShowing(this.#sums[group] ?? 0, this.#scales[group] ?? 0, this.#shown[group] ?? 0)
        : numericOfSpecial(special);
    return this.#finish(sum, count);
  }
}

class IntervalState implements AggregateState {
  readonly #sums: Interval[] = [];
  readonly #counts: number[] = [];
  readonly #isAverage: boolean;

  constructor({ isAverage }: { isAverage: boolean }) {
    this.#isAverage = isAverage;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    const sum = this.#sums[group];
    const added = value as Interval;
    this.#sums[group] = sum === undefined ? added : addIntervals(sum, added);
    this.#counts[group] = (this.#counts[group] ?? 0) + 1;
  }

  finish(group: number): Value {
    const sum = this.#sums[group];
    if (sum === undefined) return null;
    return this.#isAverage ? divideInterval(sum, this.#counts[group] ?? 1) : sum;
  }
}

function averageOf(sum: string, count: number): string {
  return divideNumerics(sum, numericOf(count, 0));
}

/** Creates the state of sum(x) with the given result type. */
export function sumState(argument: DataType, result: DataType): AggregateState {
  if (argument.kind === "interval") return new IntervalState({ isAverage: false });
  if (result.kind === "double") return new DoubleSumState(finiteDouble);
  if (result.kind === "float") return new DoubleSumState(finiteFloat);
  if (result.kind === "numeric") return new NumericState((sum) => sum);
  if (result.kind === "money") return new WholeState((sum) => checkedMoney(BigInt(sum)));
  if (result.kind === "decimal") {
    return new WholeState(
      (sum) => sum,
      (sum) => sum,
    );
  }
  return new WholeState(
    (sum) => fitInteger("bigint", sum),
    (sum) => sum,
  );
}

/**
 * Creates the state of a partial sum(x), over a part of the rows. The result may have any size.
 */
export function partOfSum(argument: DataType): AggregateState {
  if (argument.kind === "interval") return new IntervalState({ isAverage: false });
  if (argument.kind === "numeric") return new NumericState((sum) => sum);
  if (argument.kind === "float" || argument.kind === "double")
    return new DoubleSumState(finiteDouble);
  return new WholeState(
    (sum) => sum,
    (sum) => sum,
  );
}

/** Creates the state of avg(x) with the given result type. */
export function averageState(argument: DataType): AggregateState {
  if (argument.kind === "interval") return new IntervalState({ isAverage: true });
  if (argument.kind === "float" || argument.kind === "double") {
    return new DoubleState((sum, count) => sum / count);
  }
  if (argument.kind === "numeric") return new NumericState(averageOf);
  if (argument.kind === "decimal") {
    const { scale } = argument;
    return new WholeState((sum, count) => averageOf(numericOf(sum, scale), count));
  }
  return new WholeState(
    (sum, count) => doubleFromDecimal(sum, 0) / count,
    (sum, count) => sum / count,
  );
}
