/** Defines functions that construct ranges and multiranges, or return parts of them. */
import { DatabaseError } from "../../base/errors.ts";
import {
  asRangeType,
  BOOLEAN,
  type DataType,
  excerpt,
  multirangeTypeOf,
  RANGE_TYPES,
  type Range,
  type RangeEnd,
  RangeMath,
  type RangeType,
  rangesOf,
  rangeTypeOf,
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
 * The inclusiveness of the lower and the upper bound, keyed by the third argument of a range
 * constructor, such as `[)`.
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

/** Returns the forms of the function with the name of a range or multirange type. */
export function constructorsOf(type: RangeType): readonly Overload[] {
  return type.kind === "range" ? rangeConstructors(type) : multirangeConstructors(type);
}

/** Returns the functions that construct ranges from two bounds. */
function rangeConstructors(type: RangeType): Overload[] {
  const { bound } = type;
  const math = new RangeMath(type);
  const make = ([first = null, last = null, flags = "[)"]: readonly Value[]): Value => {
    const [isLowerIncluded, isUpperIncluded] = flagsOf(flags);
    const range = math.canonical(
      endOf(first, isLowerIncluded, true),
      endOf(last, isUpperIncluded, false),
    );
    return valueOfRanges(type, range === undefined ? [] : [range]);
  };
  return [
    overload([bound, bound, TEXT], type, make, { seesNull: true, optionalCount: 1 }),
    overload([type], type, ([range = null]) => range),
  ];
}

/** Returns the functions that construct multiranges from ranges. */
function multirangeConstructors(several: RangeType): Overload[] {
  return [
    overload([], several, (values) => unionOf(several, values), {
      seesNull: true,
      variadic: rangeTypeOf(several),
    }),
    overload([several], several, ([ranges = null]) => ranges),
  ];
}

/** Combines ranges into a multirange. The result is NULL if the only argument is NULL. */
function unionOf(several: RangeType, values: readonly Value[]): Value {
  if (values.length === 1 && values[0] === null) return null;
  if (values.includes(null)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot create a multirange: one of its ranges is NULL",
    );
  }
  const type = rangeTypeOf(several);
  const ranges = values.flatMap((value) => rangesOf(type, value));
  return valueOfRanges(several, new RangeMath(several).union(ranges));
}

/**
 * Returns the overloads of a function on the smallest range that covers its argument. The argument
 * may be a range or a multirange.
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
  return hullOf(new RangeMath(asRangeType(type)), rangesOf(type, value));
}

function boundType([type = TEXT]: readonly DataType[]): DataType {
  return asRangeType(type).bound;
}

function typeOfRanges([type = TEXT]: readonly DataType[]): RangeType {
  return rangeTypeOf(asRangeType(type));
}

function typeOfMultiranges([type = TEXT]: readonly DataType[]): RangeType {
  return multirangeTypeOf(asRangeType(type));
}

/** Returns the smallest range that covers all ranges of a multirange. */
function merged(values: readonly Value[], types: readonly DataType[]): Value {
  const type = typeOfRanges(types);
  const math = new RangeMath(type);
  const ranges = values.flatMap((value, at) => rangesOf(types[at] ?? TEXT, value));
  const [first, ...others] = ranges;
  const hull = first && others.reduce((left, right) => math.hull(left, right), first);
  return valueOfRanges(type, hull === undefined ? [] : [hull]);
}

export const RANGE_FUNCTIONS: readonly ScalarFunction[] = [
  ...RANGE_TYPES.flatMap((type) => functionsNamed([typeName(type)], ...constructorsOf(type))),
  ...functionsNamed(["lower"], ...ofHull(boundType, (hull) => hull?.lower.value ?? null)),
  ...functionsNamed(["upper"], ...ofHull(boundType, (hull) => hull?.upper.value ?? null)),
  ...functionsNamed(["isempty"], ...ofHull(BOOLEAN, (hull) => hull === undefined)),
  ...functionsNamed(["lower_inc"], ...ofHull(BOOLEAN, (hull) => hull?.lower.isIncluded === true)),
  ...functionsNamed(["upper_inc"], ...ofHull(BOOLEAN, (hull) => hull?.upper.isIncluded === true)),
  ...functionsNamed(["lower_inf"], ...ofHull(BOOLEAN, (hull) => hull?.lower.value === null)),
  ...functionsNamed(["upper_inf"], ...ofHull(BOOLEAN, (hull) => hull?.upper.value === null)),
  ...functionsNamed(
    ["range_merge"],
    overload(["range", "range"], typeOfRanges, (values, _, types) => merged(values, types)),
    overload(["multirange"], typeOfRanges, (values, _, types) => merged(values, types)),
  ),
  ...functionsNamed(
    ["multirange"],
    overload(["range"], typeOfMultiranges, ([value = null], _, [type = TEXT]) =>
      valueOfRanges(typeOfMultiranges([type]), rangesOf(type, value)),
    ),
  ),
];
