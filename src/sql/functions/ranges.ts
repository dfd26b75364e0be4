/** Defines functions that construct ranges and multiranges, or return parts of them. */
import { DatabaseError } from "../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  excerpt,
  isRangeType,
  RANGE_BOUNDS,
  type Range,
  type RangeEnd,
  RangeMath,
  type RangeType,
  rangesOf,
  TEXT,
  typeName,
  unboundedEnd,
  type Value,
  valueOfRanges,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import { hullOf } from "./operator/operator_range.ts";

/**
 * Whether the lower and the upper bound are inclusive, keyed by the third argument of a
 * constructor.
 */
const FLAGS: ReadonlyMap<string, readonly [boolean, boolean]> = new Map([
  ["[]", [true, true]],
  ["[)", [true, false]],
  ["(]", [false, true]],
  ["()", [false, false]],
]);

/**
 * Returns whether the lower and the upper bound are inclusive, given flags such as `[)`.
 * @throws {DatabaseError} INVALID_VALUE
 */
function flagsOf(flags: Value): readonly [boolean, boolean] {
  const known = FLAGS.get(flags as string);
  if (known !== undefined) return known;
  const given = flags === null ? "NULL" : excerpt(flags as string);
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot create a range with the bound flags ${given}: they must be '[]', '[)', '(]' or '()'`,
  );
}

function endOf(value: Value, isIncluded: boolean, isLower: boolean): RangeEnd {
  return value === null ? unboundedEnd(isLower) : { value, isIncluded, isLower };
}

/** Returns the functions that construct ranges and multiranges with bounds of the given type. */
function constructorsOf(bound: DataType): ScalarFunction[] {
  const type: RangeType = { kind: "range", bound };
  const several: RangeType = { kind: "multirange", bound };
  const math = new RangeMath(bound);
  const make = ([first = null, last = null, flags = "[)"]: readonly Value[]): Value => {
    const [isLowerIncluded, isUpperIncluded] = flagsOf(flags);
    const range = math.canonical(
      endOf(first, isLowerIncluded, true),
      endOf(last, isUpperIncluded, false),
    );
    return valueOfRanges(type, range === undefined ? [] : [range]);
  };
  return [
    ...functionsNamed(
      [typeName(type)],
      overload([bound, bound, TEXT], type, make, { seesNull: true, optionalCount: 1 }),
      overload([type], type, ([range = null]) => range),
    ),
    ...functionsNamed(
      [typeName(several)],
      overload([], several, (values) => unionOf(several, values), {
        seesNull: true,
        variadic: type,
      }),
      overload([several], several, ([ranges = null]) => ranges),
    ),
  ];
}

/** Combines ranges into a multirange. NULL as the only argument gives NULL. */
function unionOf(several: RangeType, values: readonly Value[]): Value {
  if (values.length === 1 && values[0] === null) return null;
  if (values.includes(null)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot create a multirange: one of its ranges is NULL",
    );
  }
  const type: RangeType = { kind: "range", bound: several.bound };
  const ranges = values.flatMap((value) => rangesOf(type, value));
  return valueOfRanges(several, new RangeMath(several.bound).union(ranges));
}

/**
 * Returns the overloads of a function that depends only on the smallest range covering its
 * argument, which may be a range or a multirange.
 */
function ofHull(
  result: Overload["result"],
  compute: (hull: Range | undefined) => Value,
): Overload[] {
  return (["range", "multirange"] as const).map((parameter) =>
    overload([parameter], result, ([value = null], _, [type = TEXT]) =>
      compute(hullOfValue(type, value)),
    ),
  );
}

function hullOfValue(type: DataType, value: Value): Range | undefined {
  return isRangeType(type) ? hullOf(new RangeMath(type.bound), rangesOf(type, value)) : undefined;
}

function boundType([type = TEXT]: readonly DataType[]): DataType {
  return isRangeType(type) ? type.bound : TEXT;
}

/**
 * Returns a function that gives the range or multirange type with the same bound type as the first
 * argument.
 */
function ofKind(kind: RangeType["kind"]): (types: readonly DataType[]) => DataType {
  return (types) => ({ kind, bound: boundType(types) });
}

/** Returns the smallest range that covers all ranges of the argument. */
function merged(values: readonly Value[], types: readonly DataType[]): Value {
  const bound = boundType(types);
  const math = new RangeMath(bound);
  const ranges = values.flatMap((value, at) => rangesOf(types[at] ?? TEXT, value));
  const [first, ...others] = ranges;
  const hull = first && others.reduce((left, right) => math.hull(left, right), first);
  return valueOfRanges({ kind: "range", bound }, hull === undefined ? [] : [hull]);
}

export const RANGE_FUNCTIONS: readonly ScalarFunction[] = [
  ...RANGE_BOUNDS.flatMap(constructorsOf),
  ...functionsNamed(["lower"], ...ofHull(boundType, (hull) => hull?.lower.value ?? null)),
  ...functionsNamed(["upper"], ...ofHull(boundType, (hull) => hull?.upper.value ?? null)),
  ...functionsNamed(["isempty"], ...ofHull(BOOLEAN, (hull) => hull === undefined)),
  ...functionsNamed(["lower_inc"], ...ofHull(BOOLEAN, (hull) => hull?.lower.isIncluded === true)),
  ...functionsNamed(["upper_inc"], ...ofHull(BOOLEAN, (hull) => hull?.upper.isIncluded === true)),
  ...functionsNamed(["lower_inf"], ...ofHull(BOOLEAN, (hull) => hull?.lower.value === null)),
  ...functionsNamed(["upper_inf"], ...ofHull(BOOLEAN, (hull) => hull?.upper.value === null)),
  ...functionsNamed(
    ["range_merge"],
    overload(["range", "range"], ofKind("range"), (values, _, types) => merged(values, types)),
    overload(["multirange"], ofKind("range"), (values, _, types) => merged(values, types)),
  ),
  ...functionsNamed(
    ["multirange"],
    overload(["range"], ofKind("multirange"), ([value = null], _, [type = TEXT]) =>
      valueOfRanges({ kind: "multirange", bound: boundType([type]) }, rangesOf(type, value)),
    ),
  ),
];
