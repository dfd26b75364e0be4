/**
 * Casts among the numeric types. Widening is implicit; narrowing checks the range.
 */
import type { CastMode, FoundCast } from "./cast.ts";
import type { DataType } from "./data_type.ts";
import { decimalFromDouble, doubleFromDecimal, fitDecimal, rescale } from "./decimal.ts";
import { finiteFloat, floatFromDouble } from "./float_text.ts";
import { fitInteger, integerFromDouble } from "./integer.ts";
import { decimalOf } from "./unify.ts";
import type { Value, Whole } from "./value.ts";

const RANK: Readonly<Record<string, number>> = {
  smallint: 0,
  int: 1,
  bigint: 2,
  decimal: 3,
  float: 4,
  double: 5,
};

export function castNumber(from: DataType, to: DataType, mode: CastMode): FoundCast {
  if ((RANK[to.kind] ?? 0) < (RANK[from.kind] ?? 0) && mode === "implicit") return undefined;
  switch (from.kind) {
    case "decimal":
      return fromDecimal(from.scale, from.precision, to);
    case "float":
    case "double":
      return fromBinary(from.kind, to);
    default:
      return fromInteger(from, to);
  }
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
      // The number of digits that every value of the width keeps.
      const digits = from === "float" ? 6 : 15;
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
