/**
 * Defines PostgreSQL's functions that user-defined aggregates call for each row, such as
 * `int4_sum(sum, value)`, and the functions that return a result from their state.
 *
 * A function whose state counts and sums has an array as its state:
 *
 *     int4_avg_accum, int8_avg     {count, sum}
 *     float8_accum, float8_avg …   {count, sum, sum of the squared differences from the average}
 *     float8_regr_accum            the same for x, then the last two for y, then the sum of products
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type ArrayValue,
  addNumerics,
  addWhole,
  BIGINT,
  BOOLEAN,
  compareValues,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  divideNumerics,
  elementsOf,
  FLOAT,
  finiteDouble,
  fitInteger,
  INT,
  INTERVAL,
  NUMERIC,
  numericOf,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  type Value,
  type Whole,
} from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";

const WHOLES: DataType = { kind: "array", element: BIGINT };
const DOUBLES: DataType = { kind: "array", element: DOUBLE };
const SEES_NULL = { seesNull: true };

/** The types with functions such as `int4larger`, by the beginning of their names. */
const COMPARED: readonly (readonly [prefix: string, type: DataType])[] = [
  ["int2", SMALLINT],
  ["int4", INT],
  ["int8", BIGINT],
  ["float4", FLOAT],
  ["float8", DOUBLE],
  ["numeric_", NUMERIC],
  ["text_", TEXT],
  ["date_", DATE],
  ["time_", TIME],
  ["timestamp_", TIMESTAMP],
  ["timestamptz_", DATETIME],
  ["interval_", INTERVAL],
];

/** Creates the functions that return the greater value, for a sign of 1, or the lesser one. */
function extremes(suffix: "larger" | "smaller", sign: 1 | -1): ScalarFunction[] {
  const chosen = ([left = null, right = null]: readonly Value[], type: DataType): Value =>
    sign * compareValues(type, left, right) > 0 ? left : right;
  const ofType = (type: DataType): Overload =>
    overload([type, type], firstType, (values, _, types) => chosen(values, firstType(types)));
  return [
    ...COMPARED.flatMap(([prefix, type]) => functionsNamed([prefix + suffix], ofType(type))),
    ...functionsNamed(
      [`array_${suffix}`],
      overload(["same", "same"], firstType, (values, _, types) => chosen(values, firstType(types))),
    ),
  ];
}

function added(left: Value, right: Value): Value {
  return fitInteger("bigint", addWhole(left as Whole, right as Whole));
}

/** Adds a value to a sum, which is NULL before the first value. */
function summed(add: (sum: Value, value: Value) => Value, first: (value: Value) => Value) {
  return ([sum = null, value = null]: readonly Value[]): Value => {
    if (value === null) return sum;
    return sum === null ? first(value) : add(sum, value);
  };
}

const wholeSum = summed(added, (value) => value);
const exactOf = (value: Value): Value => numericOf(value as Whole, 0);
const numericSum = summed(
  (sum, value) => addNumerics(sum as string, exactOf(value) as string),
  exactOf,
);

function averageOfWholes([state = null]: readonly Value[]): Value {
  const [count, sum] = stateOf("int8_avg", state, 2) as [Whole, Whole];
  if (count === 0) return null;
  return divideNumerics(numericOf(sum, 0), numericOf(count, 0));
}

/** Returns the elements of a state. @throws {DatabaseError} INVALID_VALUE */
function stateOf(name: string, state: Value, length: number): Value[] {
  const elements = elementsOf(state as ArrayValue);
  if (elements.length === length && !elements.includes(null)) return [...elements];
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot call ${name}: its state must be an array of ${length} numbers`,
    { sqlstate: "22P02" },
  );
}

function doublesOf(name: string, state: Value, length: number): number[] {
  return stateOf(name, state, length) as number[];
}

function finished(sums: readonly number[]): Value {
  return sums.map((sum) => (Number.isNaN(sum) ? sum : finiteDouble(sum)));
}

function float8Accum([state = null, value = null]: readonly Value[]): Value {
  const [before = 0, sum = 0, squares = 0] = doublesOf("float8_accum", state, 3);
  const x = value as number;
  const count = before + 1;
  const total = sum + x;
  const step = x * count - total;
  const more = before > 0 ? (step * step) / (count * before) : x - x;
  return finished([count, total, squares + more]);
}

function float8Combine([left = null, right = null]: readonly Value[]): Value {
  const one = doublesOf("float8_combine", left, 3);
  const other = doublesOf("float8_combine", right, 3);
  const [count = 0, sum = 0, squares = 0] = one;
  const [otherCount = 0, otherSum = 0, otherSquares = 0] = other;
  if (count === 0) return other;
  if (otherCount === 0) return one;
  const total = count + otherCount;
  const apart = sum / count - otherSum / otherCount;
  const more = (count * otherCount * apart * apart) / total;
  return finished([total, sum + otherSum, squares + otherSquares + more]);
}

function regressionAccum([state = null, yValue = null, xValue = null]: readonly Value[]): Value {
  const sums = doublesOf("float8_regr_accum", state, 6);
  const [before = 0, sumX = 0, sxx = 0, sumY = 0, syy = 0, sxy = 0] = sums;
  const x = xValue as number;
  const y = yValue as number;
  const count = before + 1;
  const totalX = sumX + x;
  const totalY = sumY + y;
  if (before === 0) {
    const [isX, isY] = [x - x, y - y];
    return finished([count, totalX, sxx + isX, totalY, syy + isY, sxy + isX + isY]);
  }
  const stepX = x * count - totalX;
  const stepY = y * count - totalY;
  const scale = 1 / (count * before);
  return finished([
    count,
    totalX,
    sxx + stepX * stepX * scale,
    totalY,
    syy + stepY * stepY * scale,
    sxy + stepX * stepY * scale,
  ]);
}

function regressionCombine([left = null, right = null]: readonly Value[]): Value {
  const one = doublesOf("float8_regr_combine", left, 6);
  const other = doublesOf("float8_regr_combine", right, 6);
  const [count = 0, sumX = 0, sxx = 0, sumY = 0, syy = 0, sxy = 0] = one;
  const [otherCount = 0, otherX = 0, otherXx = 0, otherY = 0, otherYy = 0, otherXy = 0] = other;
  if (count === 0) return other;
  if (otherCount === 0) return one;
  const total = count + otherCount;
  const apartX = sumX / count - otherX / otherCount;
  const apartY = sumY / count - otherY / otherCount;
  const product = count * otherCount;
  return finished([
    total,
    sumX + otherX,
    sxx + otherXx + (product * apartX * apartX) / total,
    sumY + otherY,
    syy + otherYy + (product * apartY * apartY) / total,
    sxy + otherXy + (product * apartX * apartY) / total,
  ]);
}

/** Creates a function that returns a result from the state of float8_accum. */
function ofDoubles(
  name: string,
  least: number,
  result: (count: number, sum: number, squares: number) => number,
): ScalarFunction[] {
  const evaluate = ([state = null]: readonly Value[]): Value => {
    const [count = 0, sum = 0, squares = 0] = doublesOf(name, state, 3);
    return count < least ? null : result(count, sum, squares);
  };
  return functionsNamed([name], overload([DOUBLES], DOUBLE, evaluate));
}

function averageAccum(name: string, type: DataType): ScalarFunction[] {
  const evaluate = ([state = null, value = null]: readonly Value[]): Value => {
    const [count = 0, sum = 0] = stateOf(name, state, 2);
    return [added(count, 1), added(sum, value)];
  };
  return functionsNamed([name], overload([WHOLES, type], WHOLES, evaluate));
}

/** Creates a function that keeps a boolean state until a value decides the result. */
function truth(name: string, decisive: boolean): ScalarFunction[] {
  const evaluate = ([state = null, value = null]: readonly Value[]): Value =>
    value === decisive ? value : state;
  return functionsNamed([name], overload([BOOLEAN, BOOLEAN], BOOLEAN, evaluate));
}

export const TRANSITION_FUNCTIONS: readonly ScalarFunction[] = [
  ...extremes("larger", 1),
  ...extremes("smaller", -1),
  ...truth("booland_statefunc", false),
  ...truth("boolor_statefunc", true),
  ...functionsNamed(
    ["int8inc"],
    overload([BIGINT], BIGINT, ([n = null]) => added(n, 1)),
  ),
  ...functionsNamed(
    ["int8dec"],
    overload([BIGINT], BIGINT, ([n = null]) => added(n, -1)),
  ),
  ...functionsNamed(
    ["int8inc_any"],
    overload([BIGINT, "any"], BIGINT, ([n = null]) => added(n, 1)),
  ),
  ...functionsNamed(
    ["int8dec_any"],
    overload([BIGINT, "any"], BIGINT, ([n = null]) => added(n, -1)),
  ),
  ...functionsNamed(["int2_sum"], overload([BIGINT, SMALLINT], BIGINT, wholeSum, SEES_NULL)),
  ...functionsNamed(["int4_sum"], overload([BIGINT, INT], BIGINT, wholeSum, SEES_NULL)),
  ...functionsNamed(["int8_sum"], overload([NUMERIC, BIGINT], NUMERIC, numericSum, SEES_NULL)),
  ...averageAccum("int2_avg_accum", SMALLINT),
  ...averageAccum("int4_avg_accum", INT),
  ...functionsNamed(["int8_avg"], overload([WHOLES], NUMERIC, averageOfWholes)),
  ...functionsNamed(["float8_accum"], overload([DOUBLES, DOUBLE], DOUBLES, float8Accum)),
  ...functionsNamed(["float8_combine"], overload([DOUBLES, DOUBLES], DOUBLES, float8Combine)),
  ...functionsNamed(
    ["float8_regr_accum"],
    overload([DOUBLES, DOUBLE, DOUBLE], DOUBLES, regressionAccum),
  ),
  ...functionsNamed(
    ["float8_regr_combine"],
    overload([DOUBLES, DOUBLES], DOUBLES, regressionCombine),
  ),
  ...ofDoubles("float8_avg", 1, (count, sum) => sum / count),
  ...ofDoubles("float8_var_pop", 1, (count, _, squares) => squares / count),
  ...ofDoubles("float8_var_samp", 2, (count, _, squares) => squares / (count - 1)),
  ...ofDoubles("float8_stddev_pop", 1, (count, _, squares) => Math.sqrt(squares / count)),
  ...ofDoubles("float8_stddev_samp", 2, (count, _, squares) => Math.sqrt(squares / (count - 1))),
];
