/** Defines mathematical functions that keep the type of their argument. */
import { DatabaseError } from "../../base/errors.ts";
import {
  BIGINT,
  bucketOfNumeric,
  COMPUTED_PRECISION_MAX,
  casterFor,
  ceilingNumeric,
  comparatorFor,
  compareNumerics,
  compareWhole,
  type DataType,
  DOUBLE,
  decimalOf,
  decimalType,
  digitsFromText,
  finiteDouble,
  fitInteger,
  floorNumeric,
  INT,
  isExactDecimal,
  isFiniteNumeric,
  isInteger,
  leastNumericScale,
  NUMERIC,
  NUMERIC_NAN,
  numericOf,
  numericScale,
  numericSign,
  remainderWhole,
  rescale,
  roundHalfEven,
  roundNumeric,
  trimmedNumeric,
  truncateNumeric,
  truncateScale,
  type Value,
  type Whole,
  wholeFromBigint,
  wholeQuotient,
  wholesAtOneScale,
} from "../../types/mod.ts";
import { flatItems } from "./base/array_shapes.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction, Specialised } from "./base/function.ts";
import { divisionByZero } from "./base/operator_form.ts";
import { requireOrder } from "./base/required_order.ts";
import { absolute, resolveArithmetic } from "./operator/operator_arithmetic.ts";

function decimalScale(type: DataType): number {
  return type.kind === "decimal" ? type.scale : 0;
}

/**
 * Returns the decimal type of numbers rounded to a scale. Rounding up may require one more digit.
 */
function roundedType(
  type: DataType,
  scale: number,
  carries: boolean = scale < decimalScale(type),
): DataType {
  const { precision, scale: from } = decimalOf(type);
  const digits = precision - from + scale + (carries ? 1 : 0);
  return decimalType(Math.min(COMPUTED_PRECISION_MAX, Math.max(digits, 1)), scale);
}

type WholeRounding = (value: Whole, from: number, to: number) => Whole;

/** The rounding functions for the representations of numbers. */
interface Rounding {
  readonly onDecimal: WholeRounding;
  readonly onDouble: (value: number) => number;
  readonly onNumeric: (value: string) => string;
}

function ceiling(value: Whole, from: number): Whole {
  const cut = truncateScale(value, from, 0);
  return value > 0 && rescale(cut, 0, from) !== value ? addOne(cut, 1) : cut;
}

function floor(value: Whole, from: number): Whole {
  const cut = truncateScale(value, from, 0);
  return value < 0 && rescale(cut, 0, from) !== value ? addOne(cut, -1) : cut;
}

function addOne(value: Whole, step: 1 | -1): Whole {
  return wholeFromBigint(BigInt(value) + BigInt(step));
}

/**
 * Creates a function that rounds to an integer of the argument's type. A decimal result has no
 * fraction digits.
 */
function toWhole({ onDecimal, onDouble, onNumeric }: Rounding): Overload {
  return overload(
    ["numeric"],
    (types) => (types[0]?.kind === "decimal" ? roundedType(firstType(types), 0) : firstType(types)),
    ([value = null], _, types) => {
      const type = firstType(types);
      if (type.kind === "decimal") return onDecimal(value as Whole, type.scale, 0);
      if (type.kind === "numeric") return onNumeric(value as string);
      return isInteger(type) ? value : onDouble(value as number);
    },
  );
}

/** The functions that round to a number of digits, one for each representation of numbers. */
interface DigitsRounding {
  readonly onDecimal: WholeRounding;
  readonly onDouble: (value: number, digits: number) => number;
  readonly onNumeric: (value: string, digits: number) => string;
}

/**
 * Creates `round(x, n)` and `trunc(x, n)`. If n is a constant, it determines the scale of a
 * DECIMAL result; otherwise each result value has its own scale.
 */
function toDigits(rounding: DigitsRounding): Overload {
  return {
    ...overload(
      ["numeric", INT],
      (types) => resultOfDigits(firstType(types), undefined),
      () => null,
    ),
    specialise: (types, constants) => {
      const type = firstType(types);
      const digits = constants[1];
      const result = resultOfDigits(type, typeof digits === "number" ? digits : undefined);
      return { result, evaluate: roundingTo(type, result, rounding) };
    },
  };
}

/** The largest constant n of `round(x, n)` for which the result type has a fixed scale. */
const ONE_SCALE_MAX = 30;

function resultOfDigits(type: DataType, digits: number | undefined): DataType {
  if (type.kind === "float" || type.kind === "double") return DOUBLE;
  if (isInteger(type)) return type;
  if (digits === undefined || digits > ONE_SCALE_MAX || type.kind === "numeric") return NUMERIC;
  return roundedType(type, Math.max(0, digits), digits < decimalScale(type));
}

function roundingTo(
  type: DataType,
  result: DataType,
  { onDecimal, onDouble, onNumeric }: DigitsRounding,
): Specialised["evaluate"] {
  if (type.kind === "float" || type.kind === "double") {
    return ([value = null, digits = null]) =>
      Number.isFinite(value) ? finiteDouble(onDouble(value as number, digits as number)) : value;
  }
  if (result.kind === "numeric") {
    const toNumeric = numericReader(type);
    return ([value = null, digits = null]) => onNumeric(toNumeric(value), digits as number);
  }
  const from = decimalScale(type);
  const to = decimalScale(result);
  return ([value = null, digits = null]) => {
    const at = Math.max(-COMPUTED_PRECISION_MAX - 1, digits as number);
    const whole = value as Whole;
    // Digits before the decimal point are rounded by shifting the point and then shifting it back.
    const rounded =
      at >= from
        ? rescale(whole, from, to)
        : at >= 0
          ? rescale(onDecimal(whole, from, at), at, to)
          : rescale(onDecimal(whole, from - at, 0), 0, to - at);
    return isInteger(result) ? fitInteger("bigint", rounded) : rounded;
  };
}

/** Returns a function that converts values of an exact type to NUMERIC. */
function numericReader(type: DataType): (value: Value) => string {
  const cast = casterFor(type, NUMERIC, "implicit");
  return (value) => (cast === undefined ? value : cast(value)) as string;
}

/**
 * Rounds the shortest decimal representation of a double half to even. A zero result keeps the
 * argument's sign.
 */
function roundToEven(value: number): number {
  const rounded = roundHalfEven(value);
  return rounded === 0 && (value < 0 || Object.is(value, -0)) ? -0 : rounded;
}

function roundDouble(value: number, digits: number): number {
  return moveDouble(value, digits, (unscaled, power) => {
    const quotient = unscaled / power;
    const twice = 2n * (unscaled % power);
    const size = twice < 0n ? -twice : twice;
    const isUp = size > power || (size === power && quotient % 2n !== 0n);
    return isUp ? quotient + (unscaled < 0n ? -1n : 1n) : quotient;
  });
}

function truncateDouble(value: number, digits: number): number {
  return moveDouble(value, digits, (unscaled, power) => unscaled / power);
}

function moveDouble(
  value: number,
  digits: number,
  divide: (unscaled: bigint, power: bigint) => bigint,
): number {
  const read = digitsFromText(value.toString());
  if (read === undefined || read.scale <= digits) return value;
  if (digits < -400) return 0;
  const quotient = divide(read.unscaled, 10n ** BigInt(read.scale - digits));
  return Number(`${quotient}e${-digits}`);
}

function resolved(op: string): Overload {
  return {
    ...overload(["numeric", "numeric"], firstType, () => null),
    specialise: (types) => {
      const form = resolveArithmetic(op, types[0] ?? INT, types[1] ?? INT);
      if (form === undefined) return undefined;
      if (form.result.kind !== "numeric") {
        // Exact operands are returned unchanged, because each keeps its own scale.
        return { result: form.result, evaluate: (values) => form.evaluate(values) };
      }
      return { result: NUMERIC, evaluate: onNumerics(types, (l, r) => form.evaluate([l, r])) };
    },
  };
}

/** Evaluates a function of two exact numbers in NUMERIC. */
function onNumerics(
  types: readonly DataType[],
  compute: (left: string, right: string) => Value,
): Specialised["evaluate"] {
  const [readLeft = numericReader(INT), readRight = readLeft] = types.map(numericReader);
  return ([left = null, right = null]) => compute(readLeft(left), readRight(right));
}

/**
 * Whether both arguments are exact numbers and at least one of them is a NUMERIC without a fixed
 * scale. Each value of such a NUMERIC has its own scale.
 */
function areNumerics(types: readonly DataType[]): boolean {
  const areExact = types.every((type) => isInteger(type) || isExactDecimal(type));
  return areExact && types.some(({ kind }) => kind === "numeric");
}

/** Returns the common exact type of both arguments, or undefined if one is FLOAT or DOUBLE. */
function exactPair(
  types: readonly DataType[],
): { left: number; right: number; result: DataType } | undefined {
  const [left = INT, right = INT] = types;
  const exact = [left, right].every((type) => isInteger(type) || type.kind === "decimal");
  if (!exact) return undefined;
  const form = resolveArithmetic("%", left, right);
  if (form === undefined) return undefined;
  return { left: decimalScale(left), right: decimalScale(right), result: form.result };
}

/**
 * Returns the overloads of a function in which a typed argument determines the type of an untyped
 * argument: INT, BIGINT or an exact decimal type.
 */
function besideUntyped(form: Overload): readonly Overload[] {
  const both = (type: DataType): Overload => ({ ...form, parameters: [type, type] });
  return [both(INT), both(BIGINT), { ...form, parameters: ["exact", "exact"] }, form];
}

/**
 * Creates an overload of gcd or lcm for exact numbers, which are first converted to a common
 * scale.
 */
function divisorFunction(compute: (left: bigint, right: bigint) => bigint): Overload {
  return {
    ...overload(["numeric", "numeric"], firstType, () => null),
    specialise: (types) => {
      if (areNumerics(types)) {
        const evaluate = onNumerics(types, (l, r) => wholesAtOneScale(l, r, compute));
        return { result: NUMERIC, evaluate };
      }
      const pair = exactPair(types);
      if (pair === undefined) return undefined;
      const { result } = pair;
      const scale = Math.max(pair.left, pair.right);
      return {
        result,
        evaluate: ([left = null, right = null]) => {
          const a = BigInt(rescale(left as Whole, pair.left, scale));
          const b = BigInt(rescale(right as Whole, pair.right, scale));
          return fitted(wholeFromBigint(compute(a, b)), result);
        },
      };
    },
  };
}

function fitted(value: Whole, type: DataType): Value {
  return type.kind === "smallint" || type.kind === "int" || type.kind === "bigint"
    ? fitInteger(type.kind, value)
    : value;
}

function greatestDivisor(left: bigint, right: bigint): bigint {
  let a = left < 0n ? -left : left;
  let b = right < 0n ? -right : right;
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

function leastMultiple(left: bigint, right: bigint): bigint {
  if (left === 0n || right === 0n) return 0n;
  const multiple = (left / greatestDivisor(left, right)) * right;
  return multiple < 0n ? -multiple : multiple;
}

/** Returns the result type of the integer quotient `div(a, b)`. */
function quotientType([left = INT, right = INT]: readonly DataType[]): DataType {
  const { precision, scale } = decimalOf(left);
  const digits = precision - scale + decimalScale(right);
  return decimalType(Math.min(COMPUTED_PRECISION_MAX, Math.max(digits, 1)), 0);
}

/** The overload of `div(a, b)`, which truncates the quotient toward zero. */
const WHOLE_QUOTIENT: Overload = {
  ...overload(["numeric", "numeric"], firstType, () => null),
  specialise: (types) => {
    if (areNumerics(types)) return { result: NUMERIC, evaluate: onNumerics(types, wholeQuotient) };
    const pair = exactPair(types);
    if (pair === undefined) return undefined;
    const isWhole = isInteger(pair.result);
    const result = isWhole ? pair.result : quotientType(types);
    const scale = Math.max(pair.left, pair.right);
    return {
      result,
      evaluate: ([left = null, right = null]) => {
        if (right === 0) throw divisionByZero();
        const a = rescale(left as Whole, pair.left, scale);
        const b = rescale(right as Whole, pair.right, scale);
        return fitted(wholeFromBigint(BigInt(a) / BigInt(b)), result);
      },
    };
  },
};

/** The largest integer whose factorial fits in NUMERIC. */
const FACTORIAL_MAX = 32_177;

/** Returns the factorial of an integer. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
function factorial([value = null]: readonly Value[]): Value {
  const n = Number(value);
  if (n >= 0 && n <= FACTORIAL_MAX) return numericOf(productOf(1, n), 0);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot compute the factorial of ${n}: the argument must be between 0 and ${FACTORIAL_MAX}`,
  );
}

/**
 * Multiplies the integers from `first` to `last` by divide and conquer, so that the factors stay
 * short.
 */
function productOf(first: number, last: number): bigint {
  if (first > last) return 1n;
  if (first === last) return BigInt(first);
  const middle = Math.floor((first + last) / 2);
  return productOf(first, middle) * productOf(middle + 1, last);
}

function extreme(sign: 1 | -1): Overload {
  return overload(
    ["same"],
    firstType,
    (values, _, types) => {
      const type = firstType(types);
      requireOrder(type, "GREATEST and LEAST");
      const compare = comparatorFor(type);
      let best: Value = null;
      for (const value of values) {
        if (value === null) continue;
        if (best === null || sign * compare(value, best) > 0) best = value;
      }
      return best;
    },
    { variadic: "same", seesNull: true },
  );
}

function numericBucket([x = null, low = null, high = null, count = null]: readonly Value[]): Value {
  const [value, from, to, buckets] = [x, low, high, count] as [string, string, string, number];
  requireBuckets(buckets, compareNumerics(from, to));
  if (value === NUMERIC_NAN || !isFiniteNumeric(from) || !isFiniteNumeric(to)) {
    throw unboundedBuckets();
  }
  return fitInteger("int", bucketOfNumeric(value, { low: from, high: to }, buckets));
}

/** Checks the arguments of width_bucket. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
function requireBuckets(count: number, order: number): void {
  if (count > 0 && order !== 0) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot find the bucket: the number of buckets must be positive, and the two bounds must " +
      "differ",
  );
}

function unboundedBuckets(): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot find the bucket: the bounds must be finite, and the value must not be NaN",
  );
}

function widthBucket([x = null, low = null, high = null, count = null]: readonly Value[]): Value {
  const [value, from, to, buckets] = [x, low, high, count] as [number, number, number, number];
  requireBuckets(buckets, from - to);
  if (Number.isNaN(value) || !Number.isFinite(from) || !Number.isFinite(to)) {
    throw unboundedBuckets();
  }
  const isAscending = from < to;
  if (isAscending ? value < from : value > from) return 0;
  if (isAscending ? value >= to : value <= to) return buckets + 1;
  return Math.min(buckets, Math.floor(((value - from) / (to - from)) * buckets) + 1);
}

/** Returns the number of ascending thresholds that are at or below the value. */
function bucketInArray([value = null, thresholds = null]: readonly Value[], type: DataType): Value {
  const compare = comparatorFor(type);
  const items = flatItems(thresholds, "find the bucket in");
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = items[middle] ?? null;
    if (item === null) {
      throw new DatabaseError("INVALID_VALUE", "Cannot find the bucket: a threshold is NULL");
    }
    if (compare(item, value) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the smallest scale that represents a decimal number without loss. */
function minScale(value: Whole, scale: number): number {
  let needed = scale;
  let rest = value;
  while (needed > 0 && remainderWhole(rest, 10) === 0) {
    rest = rescale(rest, needed, needed - 1);
    needed -= 1;
  }
  return needed;
}

const TRIM_SCALE: Overload = {
  ...overload(["numeric"], firstType, ([value = null]) => value),
  specialise: ([type = INT]) => {
    if (!isExactDecimal(type)) return { result: type, evaluate: ([value = null]) => value };
    const toNumeric = numericReader(type);
    return { result: NUMERIC, evaluate: ([value = null]) => trimmedNumeric(toNumeric(value)) };
  },
};

const SIGN: Overload = overload(
  ["numeric"],
  (types) => (types[0]?.kind === "decimal" ? decimalType(1, 0) : firstType(types)),
  ([value = null], _, types) => {
    if (firstType(types).kind !== "numeric") return compareWhole(value as Whole, 0);
    const sign = numericSign(value as string);
    return Number.isNaN(sign) ? value : numericOf(BigInt(sign), 0);
  },
);

const ABS: Overload = {
  ...overload(["numeric"], firstType, () => null),
  specialise: ([type = INT]) => {
    const compute = absolute(type);
    return { result: type, evaluate: ([value = null]) => compute(value) };
  },
};

/**
 * Creates a function that counts digits of a number. The result is NULL for NaN and the
 * infinities, which have no digits.
 */
function digitsOf(
  ofDecimal: (value: Whole, scale: number) => number,
  ofNumeric: (value: string) => number,
): Overload {
  return overload(["numeric"], INT, ([value = null], _, types) => {
    const type = firstType(types);
    if (type.kind !== "numeric") return ofDecimal(value as Whole, decimalScale(type));
    return isFiniteNumeric(value as string) ? ofNumeric(value as string) : null;
  });
}

export const MATH_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["abs"], ABS),
  ...functionsNamed(["sign"], SIGN),
  ...functionsNamed(
    ["ceil", "ceiling"],
    toWhole({ onDecimal: ceiling, onDouble: Math.ceil, onNumeric: ceilingNumeric }),
  ),
  ...functionsNamed(
    ["floor"],
    toWhole({ onDecimal: floor, onDouble: Math.floor, onNumeric: floorNumeric }),
  ),
  ...functionsNamed(
    ["round"],
    toWhole({
      onDecimal: rescale,
      onDouble: roundToEven,
      onNumeric: (value) => roundNumeric(value, 0),
    }),
    toDigits({ onDecimal: rescale, onDouble: roundDouble, onNumeric: roundNumeric }),
  ),
  ...functionsNamed(
    ["trunc"],
    toWhole({
      onDecimal: truncateScale,
      onDouble: Math.trunc,
      onNumeric: (value) => truncateNumeric(value, 0),
    }),
    toDigits({ onDecimal: truncateScale, onDouble: truncateDouble, onNumeric: truncateNumeric }),
  ),
  ...functionsNamed(["mod"], ...besideUntyped(resolved("%"))),
  ...functionsNamed(["div"], ...besideUntyped(WHOLE_QUOTIENT)),
  ...functionsNamed(["gcd"], ...besideUntyped(divisorFunction(greatestDivisor))),
  ...functionsNamed(["lcm"], ...besideUntyped(divisorFunction(leastMultiple))),
  ...functionsNamed(["factorial"], overload(["integer"], NUMERIC, factorial)),
  ...functionsNamed(["greatest"], extreme(1)),
  ...functionsNamed(["least"], extreme(-1)),
  ...functionsNamed(
    ["width_bucket"],
    overload([DOUBLE, DOUBLE, DOUBLE, INT], INT, widthBucket),
    overload(["exact", "exact", "exact", INT], INT, numericBucket),
    overload(["element", "array"], INT, (values, _, types) =>
      bucketInArray(values, firstType(types)),
    ),
  ),
  ...functionsNamed(
    ["scale"],
    digitsOf((_value, scale) => scale, numericScale),
  ),
  ...functionsNamed(["min_scale"], digitsOf(minScale, leastNumericScale)),
  ...functionsNamed(["trim_scale"], TRIM_SCALE),
];
