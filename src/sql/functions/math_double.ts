/**
 * Defines mathematical functions in DOUBLE: roots, logarithms, powers and trigonometry. For a
 * DECIMAL, roots, logarithms and powers are computed in NUMERIC.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  DOUBLE,
  exponentialNumeric,
  finiteDouble,
  logarithmToBase,
  NUMERIC,
  naturalLogarithm,
  numericOf,
  powerNumeric,
  squareRootNumeric,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import { power, squareRoot } from "./operator/operator_arithmetic.ts";

function ofOne(compute: (value: number) => number): Overload {
  return overload([DOUBLE], DOUBLE, ([value = null]) => {
    const result = compute(value as number);
    return Number.isFinite(value) ? finiteDouble(result) : result;
  });
}

/** Creates a function whose result may be infinite, as at a pole. */
function withPoles(compute: (value: number) => number): Overload {
  return overload([DOUBLE], DOUBLE, ([value = null]) => compute(value as number));
}

function ofTwo(compute: (left: number, right: number) => number): Overload {
  return overload([DOUBLE, DOUBLE], DOUBLE, ([left = null, right = null]) => {
    const result = compute(left as number, right as number);
    return Number.isFinite(left) && Number.isFinite(right) ? finiteDouble(result) : result;
  });
}

/** Defines a function that rejects arguments outside its domain with an error. */
function within(
  name: string,
  isDefined: (value: number) => boolean,
  compute: (value: number) => number,
): Overload {
  return ofOne((value) => {
    if (Number.isNaN(value) || isDefined(value)) return compute(value);
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot compute ${name}(${value}): the result is undefined`,
    );
  });
}

function isFiniteAngle(value: number): boolean {
  return Number.isFinite(value);
}

function isPositive(value: number): boolean {
  return value > 0;
}

function isSineOf(value: number): boolean {
  return value >= -1 && value <= 1;
}

/**
 * Returns the logarithm of a value to a base. Both arguments must be positive, and the base must
 * not be 1.
 */
function logarithm(base: number, value: number): number {
  if (base <= 0 || value <= 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot compute the logarithm: the base and the number must be positive",
    );
  }
  const divisor = Math.log(base);
  if (divisor === 0) {
    throw new DatabaseError(
      "DIVISION_BY_ZERO",
      "Cannot compute a logarithm to base 1: the base must be a positive number other than 1",
    );
  }
  if (base === 10) return Math.log10(value);
  return base === 2 ? Math.log2(value) : Math.log(value) / divisor;
}

/** Computes e to a power. Throws if the result underflows to 0, as `*`, `/` and `^` do. */
function exponential(value: number): number {
  const result = Math.exp(value);
  if (result !== 0 || value === Number.NEGATIVE_INFINITY) return result;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent exp(${value}) as double precision: it is too close to 0`,
  );
}

/**
 * Returns the tangent of an angle.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE for an infinite angle.
 */
function tangentOf(angle: number): number {
  if (Math.abs(angle) !== Number.POSITIVE_INFINITY) return Math.tan(angle);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot compute cot(${angle}): the result is undefined`,
  );
}

/** Returns the inverse hyperbolic tangent, which is infinite at the ends of its domain. */
function arcTangent(value: number): number {
  if (Number.isNaN(value) || Math.abs(value) <= 1) return Math.atanh(value);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot compute atanh(${value}): the result is undefined`,
  );
}

/** Defines an overload that computes a function of an exact number in NUMERIC. */
function exactly(compute: (value: string) => string): Overload {
  return overload(["exact"], NUMERIC, ([value = null]) => compute(value as string));
}

function exactlyOfTwo(compute: (left: string, right: string) => string): Overload {
  return overload(["exact", "exact"], NUMERIC, ([left = null, right = null]) =>
    compute(left as string, right as string),
  );
}

const EXACT_LOGARITHM: Overload = exactly((value) => logarithmToBase(TEN, value));
const TEN = numericOf(10n, 0);

const COMMON_LOGARITHM = within("log", isPositive, Math.log10);

export const MATH_DOUBLE_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["sqrt"], ofOne(squareRoot), exactly(squareRootNumeric)),
  ...functionsNamed(["cbrt"], ofOne(Math.cbrt)),
  ...functionsNamed(["exp"], ofOne(exponential), exactly(exponentialNumeric)),
  ...functionsNamed(["ln"], within("ln", isPositive, Math.log), exactly(naturalLogarithm)),
  ...functionsNamed(
    ["log"],
    COMMON_LOGARITHM,
    EXACT_LOGARITHM,
    ofTwo(logarithm),
    exactlyOfTwo(logarithmToBase),
  ),
  ...functionsNamed(["log10"], COMMON_LOGARITHM, EXACT_LOGARITHM),
  ...functionsNamed(["power", "pow"], ofTwo(power), exactlyOfTwo(powerNumeric)),
  ...functionsNamed(
    ["pi"],
    overload([], DOUBLE, () => Math.PI),
  ),
  ...functionsNamed(
    ["degrees"],
    ofOne((value) => value / (Math.PI / 180)),
  ),
  ...functionsNamed(
    ["radians"],
    ofOne((value) => value * (Math.PI / 180)),
  ),
  ...functionsNamed(["sin"], within("sin", isFiniteAngle, Math.sin)),
  ...functionsNamed(["cos"], within("cos", isFiniteAngle, Math.cos)),
  ...functionsNamed(["tan"], within("tan", isFiniteAngle, Math.tan)),
  ...functionsNamed(
    ["cot"],
    withPoles((value) => 1 / tangentOf(value)),
  ),
  ...functionsNamed(["asin"], within("asin", isSineOf, Math.asin)),
  ...functionsNamed(["acos"], within("acos", isSineOf, Math.acos)),
  ...functionsNamed(["atan"], ofOne(Math.atan)),
  ...functionsNamed(["atan2"], ofTwo(Math.atan2)),
  ...functionsNamed(["sinh"], withPoles(Math.sinh)),
  ...functionsNamed(["cosh"], withPoles(Math.cosh)),
  ...functionsNamed(["tanh"], ofOne(Math.tanh)),
  ...functionsNamed(["asinh"], ofOne(Math.asinh)),
  ...functionsNamed(
    ["acosh"],
    within("acosh", (value) => value >= 1, Math.acosh),
  ),
  ...functionsNamed(["atanh"], withPoles(arcTangent)),
  ...functionsNamed(
    ["random"],
    overload([], DOUBLE, (_, call) => call.randomUnit(), { volatility: "volatile" }),
  ),
];
