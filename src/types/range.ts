/**
 * Represents ranges, and multiranges, which are sets of ranges. A value is an ASCII string. Such
 * strings sort like the values in PostgreSQL:
 *
 *     range        "0" if it is empty, else "1" lower upper
 *     multirange   "1" lower upper of each range, ascending; "" if there is none
 *     lower        "0" without a bound, else "1" key "!" and "0" if the bound is included, else "1"
 *     upper        "2" without a bound, else "1" key "!" and "1" if the bound is included, else "0"
 *     shown        " " and the details of each bound, separated by commas
 *
 * A key consists of characters above "!", and sorts like the bounds (see `range_bound.ts`). `shown`
 * is present only if keys do not determine their bounds, such as those of NUMERIC that show more
 * digits than they need. Two values are equal if their strings are equal up to the space, as with
 * NUMERIC.
 *
 * Invariant: a range is in canonical form. A range that contains no value is empty. Bounds of a
 * built-in type that are integers or dates include the lower and exclude the upper one. The ranges
 * of a multirange are not empty, and no two of them overlap or are adjacent.
 */
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import { type Comparator, comparatorFor } from "./compare.ts";
import { type DataType, isRangeType, type RangeType } from "./data_type.ts";
import { checkDate, isFiniteDate } from "./datetime.ts";
import { fitInteger } from "./integer.ts";
import { boundOfKey, keyOfBound } from "./range_bound.ts";
import { type Value, type Whole, wholeFromBigint } from "./value.ts";

/** One end of a range. */
export interface RangeEnd {
  /** The bound; NULL if the range is unbounded at this end. */
  readonly value: Value;
  readonly isIncluded: boolean;
  readonly isLower: boolean;
}

/** A nonempty range. */
export interface Range {
  readonly lower: RangeEnd;
  readonly upper: RangeEnd;
}

const EMPTY = "0";
const RANGE = "1";
const UNBOUNDED_LOWER = "0";
const BOUND = "1";
const UNBOUNDED_UPPER = "2";
const KEY_END = "!";
const SHOWN = " ";

/**
 * Returns the range or multirange that consists of the given ranges. They must be in ascending
 * order, and no two may be adjacent. A range type allows at most one.
 */
export function valueOfRanges(type: DataType, ranges: readonly Range[]): string {
  const { bound } = asRangeType(type);
  if (type.kind === "range" && ranges.length === 0) return EMPTY;
  let key = "";
  const shown: string[] = [];
  for (const { lower, upper } of ranges) {
    key += RANGE + endKey(bound, lower, shown) + endKey(bound, upper, shown);
  }
  return shown.some((details) => details !== "") ? `${key}${SHOWN}${shown.join(",")}` : key;
}

/** Returns a type, which must be a type of ranges or multiranges. */
export function asRangeType(type: DataType): RangeType {
  assert(isRangeType(type), "range: type is neither a range nor a multirange");
  return type;
}

function endKey(
  bound: DataType,
  { isIncluded, isLower, value }: RangeEnd,
  shown: string[],
): string {
  if (value === null) return isLower ? UNBOUNDED_LOWER : UNBOUNDED_UPPER;
  const { details, key } = keyOfBound(bound, value);
  shown.push(details);
  const flag = isIncluded === isLower ? "0" : "1";
  return `${BOUND}${key}${KEY_END}${flag}`;
}

/** Returns the ranges of a range or multirange in ascending order. An empty range yields none. */
export function rangesOf(type: DataType, value: Value): readonly Range[] {
  const { bound } = asRangeType(type);
  const text = value as string;
  if (text === EMPTY) return [];
  const mark = text.indexOf(SHOWN);
  const keys = mark < 0 ? text : text.slice(0, mark);
  const shown = mark < 0 ? [] : text.slice(mark + SHOWN.length).split(",");
  let at = 0;
  let boundCount = 0;
  const readEnd = (isLower: boolean): RangeEnd => {
    const kind = keys[at];
    at += 1;
    if (kind !== BOUND) return unboundedEnd(isLower);
    const end = keys.indexOf(KEY_END, at);
    assert(end >= 0, "range: bound has no end position");
    const details = shown[boundCount] ?? "";
    boundCount += 1;
    const key = keys.slice(at, end);
    const isIncluded = (keys[end + 1] === "0") === isLower;
    at = end + 2;
    return { value: boundOfKey(bound, { key, details }), isIncluded, isLower };
  };
  const ranges: Range[] = [];
  while (at < keys.length) {
    at += RANGE.length;
    ranges.push({ lower: readEnd(true), upper: readEnd(false) });
  }
  return ranges;
}

export function unboundedEnd(isLower: boolean): RangeEnd {
  return { value: null, isIncluded: false, isLower };
}

/**
 * Moves a bound to the next value and inverts whether the bound is included. If there is no next
 * value, returns the bound as it is.
 */
function stepped({ bound, named }: RangeType, end: RangeEnd): RangeEnd {
  // As in PostgreSQL, a type defined with CREATE TYPE treats all bounds as continuous.
  const next = named === undefined ? nextValue(bound, end.value) : undefined;
  return next === undefined ? end : { ...end, value: next, isIncluded: !end.isIncluded };
}

/**
 * Returns the next value of a discrete type; undefined for any other type.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function nextValue(bound: DataType, value: Value): Value | undefined {
  if (value === null) return undefined;
  switch (bound.kind) {
    case "int":
      return fitInteger("int", (value as number) + 1);
    case "bigint":
      return fitInteger("bigint", wholeFromBigint(BigInt(value as Whole) + 1n));
    case "date":
      return isFiniteDate(value as number) ? checkDate((value as number) + 1) : undefined;
    default:
      return undefined;
  }
}

/** Computes with the ranges of one type. */
export class RangeMath {
  readonly #type: RangeType;
  readonly #compare: Comparator;

  /** @param type The type of the ranges, or the type of sets of them. */
  constructor(type: RangeType) {
    this.#type = type;
    this.#compare = comparatorFor(type.bound);
  }

  /** Compares two ends of ranges. Each may be a lower or an upper end. */
  compareEnds(left: RangeEnd, right: RangeEnd): number {
    if (left.value === null && right.value === null) {
      return Number(right.isLower) - Number(left.isLower);
    }
    if (left.value === null) return left.isLower ? -1 : 1;
    if (right.value === null) return right.isLower ? 1 : -1;
    return this.#compare(left.value, right.value) || sideOf(left) - sideOf(right);
  }

  includes({ lower, upper }: Range, value: Value): boolean {
    if (lower.value !== null) {
      const order = this.#compare(lower.value, value);
      if (order > 0 || (order === 0 && !lower.isIncluded)) return false;
    }
    if (upper.value === null) return true;
    const order = this.#compare(upper.value, value);
    return order > 0 || (order === 0 && upper.isIncluded);
  }

  contains(outer: Range, inner: Range): boolean {
    return (
      this.compareEnds(outer.lower, inner.lower) <= 0 &&
      this.compareEnds(outer.upper, inner.upper) >= 0
    );
  }

  overlap(left: Range, right: Range): boolean {
    return (
      this.compareEnds(left.lower, right.upper) <= 0 &&
      this.compareEnds(right.lower, left.upper) <= 0
    );
  }

  /**
   * Whether an upper and a lower end are adjacent: no value lies between them, and no value
   * belongs to both sides.
   */
  adjoin(upper: RangeEnd, lower: RangeEnd): boolean {
    if (upper.value === null || lower.value === null) return false;
    return this.#compare(upper.value, lower.value) === 0 && upper.isIncluded !== lower.isIncluded;
  }

  areAdjacent(left: Range, right: Range): boolean {
    return this.adjoin(left.upper, right.lower) || this.adjoin(right.upper, left.lower);
  }

  /**
   * Returns the smallest range that contains both ranges. Of two equal bounds, the right range's
   * digits are shown, as in PostgreSQL.
   */
  hull(left: Range, right: Range): Range {
    return {
      lower: this.compareEnds(left.lower, right.lower) < 0 ? left.lower : right.lower,
      upper: this.compareEnds(left.upper, right.upper) > 0 ? left.upper : right.upper,
    };
  }

  intersection(left: Range, right: Range): Range | undefined {
    if (!this.overlap(left, right)) return undefined;
    return {
      lower: this.compareEnds(left.lower, right.lower) >= 0 ? left.lower : right.lower,
      upper: this.compareEnds(left.upper, right.upper) <= 0 ? left.upper : right.upper,
    };
  }

  /**
   * Returns the union of ranges as ranges that are not adjacent. The given ranges may be in any
   * order.
   */
  union(ranges: readonly Range[]): Range[] {
    const merged: Range[] = [];
    for (const range of this.#sorted(ranges)) {
      const last = merged.at(-1);
      if (last !== undefined && (this.overlap(last, range) || this.areAdjacent(last, range))) {
        merged[merged.length - 1] = this.hull(last, range);
      } else merged.push(range);
    }
    return merged;
  }

  /**
   * Sorts ranges. Most lists are already in order, and checking the order takes a fraction of the
   * time.
   */
  #sorted(ranges: readonly Range[]): readonly Range[] {
    const order = (left: Range, right: Range): number =>
      this.compareEnds(left.lower, right.lower) || this.compareEnds(left.upper, right.upper);
    const isSorted = ranges.every((range, at) => {
      const before = ranges[at - 1];
      return before === undefined || order(before, range) <= 0;
    });
    return isSorted ? ranges : ranges.toSorted(order);
  }

  /**
   * Whether each range of `inner` lies within a range of `outer`. Both lists are in ascending
   * order.
   */
  containsAll(outer: readonly Range[], inner: readonly Range[]): boolean {
    let at = 0;
    return inner.every((part) => {
      for (;;) {
        const range = outer[at];
        if (range === undefined) return false;
        if (this.compareEnds(range.upper, part.upper) >= 0) return this.contains(range, part);
        at += 1;
      }
    });
  }

  /** Whether two sets of ranges have a value in common. Both are in ascending order. */
  meet(left: readonly Range[], right: readonly Range[]): boolean {
    return this.#commonRangesOf(left, right).next().done !== true;
  }

  /** Returns the intersection of two sets of ranges. Both are in ascending order. */
  commonRanges(left: readonly Range[], right: readonly Range[]): Range[] {
    return [...this.#commonRangesOf(left, right)];
  }

  *#commonRangesOf(left: readonly Range[], right: readonly Range[]): Generator<Range, void> {
    let a = 0;
    let b = 0;
    for (;;) {
      const [l, r] = [left[a], right[b]];
      if (l === undefined || r === undefined) return;
      const both = this.intersection(l, r);
      if (both !== undefined) yield both;
      if (this.compareEnds(l.upper, r.upper) < 0) a += 1;
      else b += 1;
    }
  }

  /**
   * Returns the parts of one set of ranges that are not in another. Both are in ascending order.
   */
  remainder(from: readonly Range[], removed: readonly Range[]): Range[] {
    const rest: Range[] = [];
    let at = 0;
    for (const { lower: first, upper } of from) {
      let lower = first;
      for (;;) {
        const hole = removed[at];
        if (hole === undefined || this.compareEnds(hole.lower, upper) > 0) {
          rest.push({ lower, upper });
          break;
        }
        if (this.compareEnds(hole.upper, lower) >= 0) {
          if (this.compareEnds(lower, hole.lower) < 0) {
            rest.push({ lower, upper: opposite(hole.lower) });
          }
          // The removed range may extend into the next range.
          if (this.compareEnds(upper, hole.upper) <= 0) break;
          lower = opposite(hole.upper);
        }
        at += 1;
      }
    }
    return rest;
  }

  /**
   * Returns the canonical form of a range; undefined if the range is empty.
   *
   * @throws {DatabaseError} INVALID_VALUE if the lower bound is above the upper bound;
   *   VALUE_OUT_OF_RANGE if the canonical form has a bound that its type cannot represent.
   */
  canonical(lower: RangeEnd, upper: RangeEnd): Range | undefined {
    if (lower.value !== null && upper.value !== null) {
      const order = this.#compare(lower.value, upper.value);
      if (order > 0) {
        throw new DatabaseError(
          "INVALID_VALUE",
          "Cannot create the range: its lower bound is greater than its upper bound",
        );
      }
      if (order === 0 && !(lower.isIncluded && upper.isIncluded)) return undefined;
    }
    const first = lower.isIncluded ? lower : stepped(this.#type, lower);
    const last = upper.isIncluded ? stepped(this.#type, upper) : upper;
    const isEmptied =
      first.value !== null && first.value === last.value && !(first.isIncluded && last.isIncluded);
    return isEmptied ? undefined : { lower: first, upper: last };
  }
}

/** Returns the adjacent end on the other side: `[5` turns into `5)`, and `5)` into `[5`. */
function opposite({ isIncluded, isLower, value }: RangeEnd): RangeEnd {
  return { value, isIncluded: !isIncluded, isLower: !isLower };
}

/** Returns -1, 0 or 1 for an end just before, at, or just after its bound. */
function sideOf({ isIncluded, isLower }: RangeEnd): number {
  if (isIncluded) return 0;
  return isLower ? 1 : -1;
}
