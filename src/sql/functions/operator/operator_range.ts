/**
 * Defines operators on ranges and multiranges. A range is treated as a multirange with at most one
 * range, so that most operators accept both kinds of values on either side.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  canCast,
  type DataType,
  isRangeType,
  type Range,
  RangeMath,
  type RangeType,
  rangesOf,
  sameRanges,
  type Value,
  valueOfRanges,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";

type RangeTest = (math: RangeMath, left: readonly Range[], right: readonly Range[]) => boolean;

const TESTS: ReadonlyMap<string, RangeTest> = new Map<string, RangeTest>([
  ["@>", (math, left, right) => math.containsAll(left, right)],
  ["<@", (math, left, right) => math.containsAll(right, left)],
  ["&&", (math, left, right) => math.meet(left, right)],
  ["<<", isBefore],
  [">>", (math, left, right) => isBefore(math, right, left)],
  ["&<", ofHulls((math, l, r) => math.compareEnds(l.upper, r.upper) <= 0)],
  ["&>", ofHulls((math, l, r) => math.compareEnds(l.lower, r.lower) >= 0)],
  ["-|-", ofHulls((math, l, r) => math.areAdjacent(l, r))],
]);

function isBefore(math: RangeMath, left: readonly Range[], right: readonly Range[]): boolean {
  return hullTest(math, left, right, (l, r) => math.compareEnds(l.upper, r.lower) < 0);
}

/**
 * Creates a test that compares the smallest ranges that cover each operand. The test is false if
 * either operand is empty.
 */
function ofHulls(test: (math: RangeMath, left: Range, right: Range) => boolean): RangeTest {
  return (math, left, right) => hullTest(math, left, right, (l, r) => test(math, l, r));
}

function hullTest(
  math: RangeMath,
  left: readonly Range[],
  right: readonly Range[],
  test: (left: Range, right: Range) => boolean,
): boolean {
  const l = hullOf(math, left);
  const r = hullOf(math, right);
  return l !== undefined && r !== undefined && test(l, r);
}

/**
 * Returns the smallest range that covers all of the given ranges; undefined if all are empty. The
 * ranges must be in ascending order.
 */
export function hullOf(math: RangeMath, ranges: readonly Range[]): Range | undefined {
  const [first] = ranges;
  const last = ranges.at(-1);
  return first === undefined || last === undefined ? undefined : math.hull(first, last);
}

type RangeOperation = (
  math: RangeMath,
  left: readonly Range[],
  right: readonly Range[],
) => readonly Range[];

const OPERATIONS: ReadonlyMap<string, RangeOperation> = new Map<string, RangeOperation>([
  ["+", (math, left, right) => math.union([...left, ...right])],
  ["*", (math, left, right) => math.commonRanges(left, right)],
  ["-", (math, left, right) => math.remainder(left, right)],
]);

/**
 * Returns the union of two operands that contain at most one range each: a merged range if the two
 * ranges overlap or touch, otherwise both ranges.
 */
function unionOfTwo(
  math: RangeMath,
  left: readonly Range[],
  right: readonly Range[],
): readonly Range[] {
  const [[l], [r]] = [left, right];
  if (l === undefined || r === undefined) return l === undefined ? right : left;
  return math.overlap(l, r) || math.areAdjacent(l, r) ? [math.hull(l, r)] : [l, r];
}

/** Returns the function that intersects two values of a type. */
export function intersectionOf(type: RangeType): (left: Value, right: Value) => Value {
  const math = new RangeMath(type);
  return (left, right) =>
    valueOfRanges(type, math.commonRanges(rangesOf(type, left), rangesOf(type, right)));
}

export function resolveRange(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  const known = isRangeType(left) ? left : right;
  if (!isRangeType(known)) return undefined;
  const first = left.kind === "unknown" ? known : left;
  const second = right.kind === "unknown" ? known : right;
  if (!isRangeType(first) || !isRangeType(second)) return resolveElement(op, first, second);
  if (!sameRanges(first, second)) return undefined;
  const math = new RangeMath(first);
  const test = TESTS.get(op);
  if (test !== undefined) {
    return binaryForm([first, second], BOOLEAN, (l, r) =>
      test(math, rangesOf(first, l), rangesOf(second, r)),
    );
  }
  const operation = op === "+" && first.kind === "range" ? unionOfTwo : OPERATIONS.get(op);
  if (operation === undefined || first.kind !== second.kind) return undefined;
  return binaryForm([first, second], first, (l, r) => {
    const ranges = operation(math, rangesOf(first, l), rangesOf(second, r));
    if (first.kind === "range" && ranges.length > 1) throw notContiguous(op);
    return valueOfRanges(first, ranges);
  });
}

/** Returns the form of `range @> value` or `value <@ range`. */
function resolveElement(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  if (op !== "@>" && op !== "<@") return undefined;
  const [outer, element] = op === "@>" ? [left, right] : [right, left];
  if (!isRangeType(outer) || !canCast(element, outer.bound, "implicit")) return undefined;
  const math = new RangeMath(outer);
  const includes = (ranges: Value, value: Value): boolean =>
    rangesOf(outer, ranges).some((range) => math.includes(range, value));
  return op === "@>"
    ? binaryForm([outer, outer.bound], BOOLEAN, includes)
    : binaryForm([outer.bound, outer], BOOLEAN, (value, ranges) => includes(ranges, value));
}

function notContiguous(op: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot compute the ${op === "+" ? "union" : "difference"} of two ranges: the result is not contiguous`,
    { hint: "cast both ranges to a multirange type, whose values can consist of several ranges" },
  );
}
