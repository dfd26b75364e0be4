/**
 * Defines arithmetic on numbers. It is exact and range-checked for integers, and exact for
 * decimals of any length. If one operand is FLOAT or DOUBLE, the other is converted to DOUBLE.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  absoluteNumeric,
  addNumerics,
  addWhole,
  COMPUTED_PRECISION_MAX,
  type DataType,
  DOUBLE,
  decimalOf,
  decimalType,
  divideNumerics,
  divideWhole,
  FLOAT,
  finiteDouble,
  finiteFloat,
  fitInteger,
  INT,
  type IntegerKind,
  isExactDecimal,
  isInteger,
  isNumeric,
  multiplyNumerics,
  multiplyWhole,
  NUMERIC,
  negateNumeric,
  negateWhole,
  powerNumeric,
  quotientAtScales,
  quotientColumn,
  remainderNumeric,
  remainderWhole,
  rescale,
  subtractNumerics,
  subtractWhole,
  type Value,
  type Whole,
  wholeFromBigint,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, divisionByZero, knownType, prefixForm } from "../base/operator_form.ts";

type WholeOperation = (left: Whole, right: Whole) => Whole;

const WHOLE_OPERATIONS: ReadonlyMap<string, WholeOperation> = new Map([
  ["+", addWhole],
  ["-", subtractWhole],
  ["*", multiplyWhole],
  [
    "/",
    (left: Whole, right: Whole) => {
      if (right === 0) throw divisionByZero();
      return divideWhole(left, right);
    },
  ],
  [
    "%",
    (left: Whole, right: Whole) => {
      if (right === 0) throw divisionByZero();
      return remainderWhole(left, right);
    },
  ],
]);

export function resolveArithmetic(
  op: string,
  leftType: DataType,
  rightType: DataType,
): OperatorForm | undefined {
  const left = knownType(leftType, rightType);
  const right = knownType(rightType, leftType);
  if (!isNumeric(left) || !isNumeric(right)) return undefined;
  const hasBinary = isBinaryNumber(left) || isBinaryNumber(right);
  const isDecimal = !hasBinary && (isExactDecimal(left) || isExactDecimal(right));
  if (op === "^" && !isDecimal) return binaryForm([DOUBLE, DOUBLE], DOUBLE, power);
  if (isInteger(left) && isInteger(right)) {
    return integerArithmetic(op, left, right) ?? bitwise(op, left, right);
  }
  if (hasBinary) {
    const isFloat = left.kind === "float" && right.kind === "float";
    return floatArithmetic(op, isFloat ? FLOAT : DOUBLE);
  }
  const isUnsized = left.kind === "numeric" || right.kind === "numeric";
  return (isUnsized ? undefined : decimalArithmetic(op, left, right)) ?? numericArithmetic(op);
}

function isBinaryNumber(type: DataType): boolean {
  return type.kind === "float" || type.kind === "double";
}

function widerInteger(left: DataType, right: DataType): DataType & { kind: IntegerKind } {
  if (left.kind === "bigint" || right.kind === "bigint") return { kind: "bigint" };
  return left.kind === "int" || right.kind === "int" ? { kind: "int" } : { kind: "smallint" };
}

function integerArithmetic(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  const compute = WHOLE_OPERATIONS.get(op);
  if (compute === undefined) return undefined;
  const type = widerInteger(left, right);
  const { kind } = type;
  return binaryForm([type, type], type, (l, r) =>
    fitInteger(kind, compute(l as Whole, r as Whole)),
  );
}

function bitwise(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  const isShift = op === "<<" || op === ">>";
  const type = isShift ? widerInteger(left, left) : widerInteger(left, right);
  const compute = BIT_OPERATIONS.get(op);
  if (compute === undefined) return undefined;
  const bits = type.kind === "bigint" ? 64 : type.kind === "int" ? 32 : 16;
  return binaryForm([type, isShift ? INT : type], type, (l, r) =>
    wholeFromBigint(BigInt.asIntN(bits, compute(BigInt(l as Whole), BigInt(r as Whole), bits))),
  );
}

type BitOperation = (left: bigint, right: bigint, bits: number) => bigint;

const BIT_OPERATIONS: ReadonlyMap<string, BitOperation> = new Map<string, BitOperation>([
  ["&", (left, right) => left & right],
  ["|", (left, right) => left | right],
  ["#", (left, right) => left ^ right],
  ["<<", (left, right, bits) => left << shiftCount(right, bits)],
  [">>", (left, right, bits) => left >> shiftCount(right, bits)],
]);

/** Reduces a shift count modulo the width, as processors do. The width is at least 32 bits. */
function shiftCount(count: bigint, bits: number): bigint {
  return BigInt.asUintN(bits === 64 ? 6 : 5, count);
}

function floatArithmetic(op: string, type: DataType): OperatorForm | undefined {
  const compute = FLOAT_OPERATIONS.get(op);
  if (compute === undefined) return undefined;
  const fit = type.kind === "float" ? finiteFloat : finiteDouble;
  return binaryForm([type, type], type, (l, r) => {
    const result = compute(l as number, r as number);
    return Number.isFinite(l) && Number.isFinite(r) ? fit(result) : result;
  });
}

const FLOAT_OPERATIONS: ReadonlyMap<string, (left: number, right: number) => number> = new Map([
  ["+", (left: number, right: number) => left + right],
  ["-", (left: number, right: number) => left - right],
  [
    "*",
    (left: number, right: number) => {
      const product = left * right;
      if (product === 0 && left !== 0 && right !== 0) throw underflow();
      return product;
    },
  ],
  [
    "/",
    (left: number, right: number) => {
      if (right === 0 && !Number.isNaN(left)) throw divisionByZero();
      const quotient = left / right;
      if (quotient === 0 && left !== 0 && Number.isFinite(right)) throw underflow();
      return quotient;
    },
  ],
]);

function underflow(): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot represent the result as double precision: it is too close to 0",
  );
}

type DecimalOperand = ReturnType<typeof decimalOf>;

/**
 * Returns the form of an arithmetic operator on two types, each with a fixed scale. The result
 * type is NUMERIC without a fixed scale for quotients, and where no fixed scale could represent
 * all digits of the result.
 */
function decimalArithmetic(
  op: string,
  leftType: DataType,
  rightType: DataType,
): OperatorForm | undefined {
  const left = decimalOf(leftType);
  const right = decimalOf(rightType);
  const wholeDigits = Math.max(left.precision - left.scale, right.precision - right.scale);
  const scale = Math.max(left.scale, right.scale);
  switch (op) {
    case "+":
      return atOneScale(left, right, { precision: wholeDigits + scale + 1, compute: addWhole });
    case "-":
      return atOneScale(left, right, {
        precision: wholeDigits + scale + 1,
        compute: subtractWhole,
      });
    case "*": {
      const precision = left.precision + right.precision;
      if (precision > COMPUTED_PRECISION_MAX) return undefined;
      const type = decimalType(precision, left.scale + right.scale);
      return binaryForm([left, right], type, (l, r) => multiplyWhole(l as Whole, r as Whole));
    }
    case "/": {
      const divide = quotientAtScales(left.scale, right.scale);
      const form = binaryForm([left, right], NUMERIC, (l, r) => {
        if (r === 0) throw divisionByZero();
        return divide(l as Whole, r as Whole);
      });
      return {
        ...form,
        evaluateVector: (vector, [, divisor], position) => {
          if (position !== 0 || typeof divisor !== "number" || divisor === 0) return undefined;
          return quotientColumn(
            { unscaled: vector, scale: left.scale },
            { unscaled: divisor, scale: right.scale },
          );
        },
      };
    }
    case "%":
      return atOneScale(left, right, {
        precision: Math.max(wholeDigits + scale, 1),
        compute: (l, r) => {
          if (r === 0) throw divisionByZero();
          return remainderWhole(l, r);
        },
      });
    default:
      return undefined;
  }
}

/**
 * Returns the form of an operator that converts both operands to the larger of their scales,
 * computes with integers, and returns a result of that scale; undefined if the precision is too
 * large.
 */
function atOneScale(
  left: DecimalOperand,
  right: DecimalOperand,
  { compute, precision }: { precision: number; compute: WholeOperation },
): OperatorForm | undefined {
  if (precision > COMPUTED_PRECISION_MAX) return undefined;
  const scale = Math.max(left.scale, right.scale);
  return binaryForm([left, right], decimalType(precision, scale), (l, r) =>
    compute(rescale(l as Whole, left.scale, scale), rescale(r as Whole, right.scale, scale)),
  );
}

const NUMERIC_OPERATIONS: ReadonlyMap<string, (left: string, right: string) => string> = new Map([
  ["+", addNumerics],
  ["-", subtractNumerics],
  ["*", multiplyNumerics],
  ["/", divideNumerics],
  ["%", remainderNumeric],
  ["^", powerNumeric],
]);

function numericArithmetic(op: string): OperatorForm | undefined {
  const compute = NUMERIC_OPERATIONS.get(op);
  if (compute === undefined) return undefined;
  return binaryForm([NUMERIC, NUMERIC], NUMERIC, (l, r) => compute(l as string, r as string));
}

/** Raises a number to a power. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function power(base: Value, exponent: Value): number {
  const x = base as number;
  const y = exponent as number;
  // Any power of 1 is 1, even with a NaN exponent. An infinite power of -1 is also 1.
  if (x === 1 || (x === -1 && Math.abs(y) === Number.POSITIVE_INFINITY)) return 1;
  if (x === 0 && y < 0) {
    throw new DatabaseError("VALUE_OUT_OF_RANGE", "Cannot raise 0 to a negative power");
  }
  if (x < 0 && Math.floor(y) < y) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot raise a negative number to a fractional power: the result would be complex",
    );
  }
  const result = x ** y;
  if (!Number.isFinite(x) || !Number.isFinite(y)) return result;
  if (result === 0 && x !== 0) throw underflow();
  return finiteDouble(result);
}

/** Computes the square root of a number. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function squareRoot(value: number): number {
  if (value < 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot compute the square root of a negative number",
    );
  }
  return Math.sqrt(value);
}

export function resolveNumericPrefix(op: string, type: DataType): OperatorForm | undefined {
  const operand = type.kind === "unknown" ? DOUBLE : type;
  if (!isNumeric(operand)) return undefined;
  switch (op) {
    case "+":
      return prefixForm(operand, operand, (value) => value);
    case "-":
      return prefixForm(
        operand,
        operand,
        operand.kind === "numeric"
          ? (value) => negateNumeric(value as string)
          : numericFunction(operand, negateWhole, negateDouble),
      );
    case "@":
      return prefixForm(operand, operand, absolute(operand));
    case "|/":
      return prefixForm(DOUBLE, DOUBLE, (value) => squareRoot(value as number));
    case "||/":
      return prefixForm(DOUBLE, DOUBLE, (value) => Math.cbrt(value as number));
    case "~":
      if (!isInteger(operand)) return undefined;
      return prefixForm(operand, operand, (value) => wholeFromBigint(~BigInt(value as Whole)));
    default:
      return undefined;
  }
}

function negateDouble(value: number): number {
  return -value;
}

/**
 * Returns a function that computes the absolute value in a numeric type. It checks the range,
 * because the absolute value of -32768 does not fit in SMALLINT.
 */
export function absolute(type: DataType): (value: Value) => Value {
  if (type.kind === "numeric") return (value) => absoluteNumeric(value as string);
  return numericFunction(type, (value) => (value < 0 ? negateWhole(value) : value), Math.abs);
}

function numericFunction(
  type: DataType,
  onWhole: (value: Whole) => Whole,
  onDouble: (value: number) => number,
): (value: Value) => Value {
  switch (type.kind) {
    case "smallint":
    case "int":
    case "bigint": {
      const { kind } = type;
      return (value) => fitInteger(kind, onWhole(value as Whole));
    }
    case "decimal":
      return (value) => onWhole(value as Whole);
    default:
      return (value) => onDouble(value as number);
  }
}
