/**
 * Casts among the numeric types. Widening is implicit; narrowing checks the range.
 */

import { DatabaseError } from "../base/errors.ts";
import type { CastMode, FoundCast } from "./cast.ts";
import { type DataType, type NumericType, sameType, typeName } from "./data_type.ts";
import { decimalFromDouble, doubleFromDecimal, fitDecimal, rescale } from "./decimal.ts";
import { finiteDouble, finiteFloat, floatFromDouble } from "./float_text.ts";
import { fitInteger, integerFromDouble } from "./integer.ts";
import {
  doubleFromNumeric,
  fitNumeric,
  isFiniteNumeric,
  numericFromDouble,
  numericOf,
  textFromNumeric,
  wholeFromNumeric,
} from "./numeric.ts";
import { decimalOf } from "./unify.ts";
import type { Value, Whole } from "./value.ts";

const RANK: Readonly<Record<string, number>> = {
  smallint: 0,
  int: 1,
  bigint: 2,
  decimal: 3,
  numeric: 3,
  float: 4,
  double: 5,
};

/** The number of decimal digits that every value of a binary floating-point type preserves. */
const FLOAT_DIGITS = 6;
const DOUBLE_DIGITS = 15;

export function castNumber(from: DataType, to: DataType, mode: CastMode): FoundCast {
  if ((RANK[to.kind] ?? 0) < (RANK[from.kind] ?? 0) && mode === "implicit") return undefined;
  if (to.kind === "numeric") return toNumeric(from, to);
  switch (from.kind) {
    case "numeric":
      return fromNumeric(to);
    case "decimal":
      return fromDecimal(from.scale, from.precision, to);
    case "float":
    case "double":
      return fromBinary(from.kind, to);
    default:
      return fromInteger(from, to);
  }
}

function toNumeric(from: DataType, to: NumericType): FoundCast {
  const isBare = to.size === undefined && to.isTrimmed !== true;
  if (from.kind === "numeric") {
    return isBare || sameType(from, to) ? "same" : (value) => fitNumeric(value as string, to);
  }
  const read = numericReader(from);
  return isBare ? read : (value) => fitNumeric(read(value), to);
}

function numericReader(from: DataType): (value: Value) => string {
  switch (from.kind) {
    case "float":
    case "double": {
      const digits = from.kind === "float" ? FLOAT_DIGITS : DOUBLE_DIGITS;
      return (value) => numericFromDouble(value as number, digits);
    }
    default: {
      const scale = from.kind === "decimal" ? from.scale : 0;
      return (value) => numericOf(value as Whole, scale);
    }
  }
}

function fromNumeric(to: DataType): FoundCast {
  switch (to.kind) {
    case "smallint":
    case "int":
    case "bigint": {
      const { kind } = to;
      return (value) => fitInteger(kind, wholeFromNumeric(finite(value, to), 0));
    }
    case "decimal": {
      const { precision, scale } = to;
      return (value) => fitDecimal(wholeFromNumeric(finite(value, to), scale), precision, scale);
    }
    case "float":
      return (value) => finiteOrSpecial(value as string, finiteFloat);
    case "double":
      return (value) => finiteOrSpecial(value as string, finiteDouble);
    default:
      return undefined;
  }
}

/**
 * Returns the binary number nearest to a NUMERIC. Refuses finite numbers beyond the type's range.
 */
function finiteOrSpecial(value: string, fit: (value: number) => number): number {
  const number = doubleFromNumeric(value);
  return isFiniteNumeric(value) ? fit(number) : number;
}

/**
 * Checks that a number is finite.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE for NaN and the infinities.
 */
function finite(value: Value, to: DataType): string {
  const numeric = value as string;
  if (isFiniteNumeric(numeric)) return numeric;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${textFromNumeric(numeric)} as ${typeName(to)}: it must be a finite number`,
  );
}

function fromInteger(from: DataType, to: DataType): FoundCast {
  switch (to.kind) {
    case "smallint":
    case "int":
    case "bigint": {
      const { kind } = to;
      if ((RANK[from.kind] ?? 0) <= (RANK[kind] ?? 0)) return "same";
      return (value) => fitInteger(kind, value as Whole);
    }
    case "decimal": {
      const { precision, scale } = to;
      if (scale === 0 && precision >= decimalOf(from).precision) return "same";
      return (value) => fitDecimal(rescale(value as Whole, 0, scale), precision, scale);
    }
    case "float":
      return from.kind === "smallint" ? "same" : (value) => Math.fround(Number(value));
    case "double":
      return from.kind === "bigint" ? (value) => Number(value) : "same";
    default:
      return undefined;
  }
}

function fromDecimal(fromScale: number, fromPrecision: number, to: DataType): FoundCast {
  switch (to.kind) {
    case "smallint":
    case "int":
    case "bigint": {
      const { kind } = to;
      return (value) => fitInteger(kind, rescale(value as Whole, fromScale, 0));
    }
    case "decimal": {
      const { precision, scale } = to;
      if (scale === fromScale && precision >= fromPrecision) return "same";
      return (value) => fitDecimal(rescale(value as Whole, fromScale, scale), precision, scale);
    }
    case "float":
      return (value) => finiteFloat(doubleFromDecimal(value as Whole, fromScale));
    case "double":
      return (value) => doubleFromDecimal(value as Whole, fromScale);
    default:
      return undefined;
  }
}

function fromBinary(from: "float" | "double", to: DataType): FoundCast {
  switch (to.kind) {
    case "smallint":
    case "int":
    case "bigint": {
      const { kind } = to;
      return (value) => integerFromDouble(kind, value as number);
    }
    case "decimal": {
      const { precision, scale } = to;
      const type = { precision, scale };
      const digits = from === "float" ? FLOAT_DIGITS : DOUBLE_DIGITS;
      return (value) => decimalFromDouble(value as number, type, digits);
    }
    case "float":
      return from === "float" ? "same" : (value: Value) => floatFromDouble(value as number);
    case "double":
      return "same";
    default:
      return undefined;
  }
}
