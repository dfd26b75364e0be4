/**
 * Defines aggregates that keep a single value per group: min, max, any_value, and the logical and
 * bitwise aggregates.
 */
import { defined } from "../../../base/assert.ts";
import {
  areFinite,
  type Comparator,
  comparatorFor,
  type DataType,
  isNumeric,
  type Value,
  type Vector,
  type Whole,
  wholeFromBigint,
} from "../../../types/mod.ts";
import { BIT_PAIR_OPERATIONS, combinedBits } from "../operator/operator_bits.ts";
import { type AggregateState, type BatchGroups, grown } from "./aggregate_state.ts";

/** Keeps a single value per group, and combines it with each further value. */
export class FoldState implements AggregateState {
  readonly #kept: (Value | undefined)[] = [];
  readonly #fold: (kept: Value, value: Value) => Value;

  constructor(fold: (kept: Value, value: Value) => Value) {
    this.#fold = fold;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    const kept = this.#kept[group];
    this.#kept[group] = kept === undefined ? value : this.#fold(kept, value);
  }

  finish(group: number): Value {
    return this.#kept[group] ?? null;
  }
}

/** Whether values of a type are ordered like the numbers that represent them. */
function isOrderedNumber(type: DataType): boolean {
  return (
    (isNumeric(type) && type.kind !== "numeric") ||
    type.kind === "money" ||
    type.kind === "date" ||
    type.kind === "time" ||
    type.kind === "timestamp" ||
    type.kind === "datetime"
  );
}

export function extremeState(type: DataType, wanted: "min" | "max"): AggregateState {
  if (type.kind === "float" || type.kind === "double") return new DoubleExtremeState(type, wanted);
  if (isOrderedNumber(type)) return new NumberExtremeState(wanted);
  return anyExtremeState(type, wanted);
}

function anyExtremeState(type: DataType, wanted: "min" | "max"): FoldState {
  const compare: Comparator = comparatorFor(type);
  return wanted === "min"
    ? new FoldState((kept, value) => (compare(value, kept) < 0 ? value : kept))
    : new FoldState((kept, value) => (compare(value, kept) > 0 ? value : kept));
}

/**
 * Finds the minimum or maximum of doubles. NaN and the infinities are kept separately from the
 * other numbers, because few columns contain them.
 */
class DoubleExtremeState implements AggregateState {
  readonly #numbers: NumberExtremeState;
  readonly #others: FoldState;
  readonly #isFirst: (left: Value, right: Value) => boolean;

  constructor(type: DataType, wanted: "min" | "max") {
    this.#numbers = new NumberExtremeState(wanted);
    this.#others = anyExtremeState(type, wanted);
    const sign = wanted === "min" ? -1 : 1;
    const compare = comparatorFor(type);
    this.#isFirst = (left, right) => sign * compare(left, right) > 0;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (Number.isFinite(value)) this.#numbers.add(group, value);
    else this.#others.add(group, value);
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind === "f64" && !areFinite(vector.values)) return false;
    return this.#numbers.addVector(groups, vector, count);
  }

  finish(group: number): Value {
    const number = this.#numbers.finish(group);
    const other = this.#others.finish(group);
    if (number === null || other === null) return number ?? other;
    return this.#isFirst(other, number) ? other : number;
  }
}

/**
 * Finds the minimum or maximum of numbers. The results are stored in an array of doubles, which
 * garbage collection need not scan. No value is infinite, so infinity represents a missing value.
 */
class NumberExtremeState implements AggregateState {
  #kept = new Float64Array(0);
  /** The number of groups that the array of doubles contains. */
  #groupCount = 0;
  /** The minimum or maximum of the numbers beyond 2^53, for each group that has such numbers. */
  readonly #large = new Map<number, bigint>();
  readonly #isMin: boolean;
  readonly #none: number;

  constructor(wanted: "min" | "max") {
    this.#isMin = wanted === "min";
    this.#none = this.#isMin ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    if (typeof value === "bigint") return this.#offerLarge(group, value);
    this.#grow(group);
    this.#offer(group, value as number);
  }

  addVector(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean {
    if (vector?.kind !== "i32" && vector?.kind !== "f64") return false;
    const { values, nulls } = vector;
    this.#grow((groups?.groupCount ?? 1) - 1);
    if (groups === undefined) {
      const extreme = this.#extremeOf(values, nulls, count);
      if (extreme !== undefined) this.#offer(0, extreme);
      return true;
    }
    const { ids } = groups;
    for (let row = 0; row < count; row += 1) {
      if (nulls === undefined || nulls[row] !== 1) this.#offer(ids[row] ?? 0, values[row] ?? 0);
    }
    return true;
  }

  #extremeOf(
    values: Int32Array | Float64Array,
    nulls: Uint8Array | undefined,
    count: number,
  ): number | undefined {
    let extreme: number | undefined;
    const isMin = this.#isMin;
    for (let row = 0; row < count; row += 1) {
      if (nulls !== undefined && nulls[row] === 1) continue;
      const value = values[row] ?? 0;
      if (extreme === undefined || (isMin ? value < extreme : value > extreme)) extreme = value;
    }
    return extreme;
  }

  #grow(group: number): void {
    if (group < this.#groupCount) return;
    this.#kept = grown(this.#kept, group);
    this.#kept.fill(this.#none, this.#groupCount, group + 1);
    this.#groupCount = group + 1;
  }

  #offer(group: number, value: number): void {
    const kept = this.#kept[group] ?? this.#none;
    if (this.#isMin ? value < kept : value > kept) this.#kept[group] = value;
  }

  #offerLarge(group: number, value: bigint): void {
    const kept = this.#large.get(group);
    if (kept === undefined || (this.#isMin ? value < kept : value > kept)) {
      this.#large.set(group, value);
    }
  }

  finish(group: number): Value {
    const kept = group < this.#groupCount ? (this.#kept[group] ?? this.#none) : this.#none;
    const large = this.#large.get(group);
    if (large !== undefined && (this.#isMin ? large < kept : large > kept)) return large;
    return kept === this.#none ? null : kept;
  }
}

type BitFold = (left: bigint, right: bigint) => bigint;

export const BIT_FOLDS: ReadonlyMap<string, BitFold> = new Map<string, BitFold>([
  ["bit_and", (left, right) => left & right],
  ["bit_or", (left, right) => left | right],
  ["bit_xor", (left, right) => left ^ right],
]);

const BIT_OPERATORS: ReadonlyMap<string, string> = new Map([
  ["bit_and", "&"],
  ["bit_or", "|"],
  ["bit_xor", "#"],
]);

/**
 * Creates the state of an aggregate that combines bit strings, all of which must have the same
 * length.
 */
export function bitStringState(name: string): AggregateState {
  const combine = defined(
    BIT_PAIR_OPERATIONS.get(BIT_OPERATORS.get(name) ?? ""),
    "bit aggregate: function has no bit operation",
  );
  return new FoldState((kept, value) => combinedBits(combine, kept, value));
}

export function bitState(fold: BitFold): AggregateState {
  return new FoldState((kept, value) =>
    wholeFromBigint(fold(BigInt(kept as Whole), BigInt(value as Whole))),
  );
}
