/**
 * Casts network addresses, bit strings, amounts of money, times with a time zone, geometric values,
 * and the values of `cast_numbered.ts`.
 */
import { bitsOfWhole, cutBits, fittedBits, wholeOfBits } from "./bit_string.ts";
import type { CastMode, FoundCast } from "./cast.ts";
import { castNumber } from "./cast_number.ts";
import { castNumbered } from "./cast_numbered.ts";
import {
  type DataType,
  decimalType,
  isExactDecimal,
  isGeometric,
  isInteger,
  isNumeric,
  sameType,
} from "./data_type.ts";
import { isFiniteTimestamp, roundMicros, splitTimestamp } from "./datetime.ts";
import { castShape } from "./geometry_casts.ts";
import { mac8OfMac, macOfMac8 } from "./hardware_address.ts";
import { inetNetwork, inetOfValue, inetValue } from "./inet_address.ts";
import { checkedMoney } from "./money.ts";
import { type Value, type Whole, wholeFromBigint } from "./value.ts";
import { roundedZonedTime, zonedTimeOf, zonedTimeValue } from "./zoned_time.ts";

/** The decimal type with the same representation in memory as amounts of money. */
const CENTS: DataType = decimalType(19, 2);

/**
 * Returns the cast between two types; undefined if this file handles neither of them, or if the
 * context does not allow the cast.
 */
export function castForms(from: DataType, to: DataType, mode: CastMode): FoundCast {
  if (isGeometric(from) && isGeometric(to)) return castShape(from.kind, to.kind, mode);
  switch (to.kind) {
    case "inet":
      return from.kind === "inet" || from.kind === "cidr" ? "same" : undefined;
    case "cidr":
      if (from.kind === "cidr") return "same";
      return from.kind === "inet" && mode !== "implicit" ? networkOf : undefined;
    case "macaddr":
      if (from.kind === "macaddr") return "same";
      return from.kind === "macaddr8" ? (value) => macOfMac8(value as string) : undefined;
    case "macaddr8":
      if (from.kind === "macaddr8") return "same";
      return from.kind === "macaddr" ? (value) => mac8OfMac(value as string) : undefined;
    case "bit":
      return toBits(from, to, mode);
    case "money":
      return toMoney(from, mode);
    case "timetz":
      return toZonedTime(from, to.digits ?? 6, mode);
    default:
      return fromForms(from, to, mode);
  }
}

/** Handles target types that many other types can be cast to. */
function fromForms(from: DataType, to: DataType, mode: CastMode): FoundCast {
  const numbered = castNumbered(from, to, mode);
  if (numbered !== undefined) return numbered;
  if (from.kind === "money" && isNumeric(to) && mode !== "implicit") {
    return isExactDecimal(to) ? castNumber(CENTS, to, mode) : undefined;
  }
  if (from.kind === "timetz" && to.kind === "time" && mode !== "implicit") {
    const digits = to.digits ?? 6;
    return (value) => roundMicros(zonedTimeOf(value as string).micros, digits);
  }
  if (from.kind !== "bit" || mode !== "explicit") return undefined;
  if (to.kind === "int") return (value) => Number(wholeOfBits(value as string, 32));
  if (to.kind === "bigint") return (value) => wholeFromBigint(wholeOfBits(value as string, 64));
  return undefined;
}

function networkOf(value: Value): Value {
  const inet = inetOfValue(value as string);
  return inetValue({ ...inet, address: inetNetwork(inet) });
}

function toBits(from: DataType, to: DataType & { kind: "bit" }, mode: CastMode): FoundCast {
  if (from.kind === "bit") {
    if (sameType(from, to) || to.length === undefined) return "same";
    return mode === "explicit"
      ? (value) => cutBits(to, value as string)
      : (value) => fittedBits(to, value as string);
  }
  const isCast = mode === "explicit" && to.isVarying !== true && isInteger(from);
  if (!isCast || from.kind === "smallint") return undefined;
  const { length = 1 } = to;
  return (value) => bitsOfWhole(value as Whole, length);
}

function toMoney(from: DataType, mode: CastMode): FoundCast {
  if (from.kind === "money") return "same";
  if (mode === "implicit" || !(isInteger(from) || isExactDecimal(from))) return undefined;
  const wide = decimalType(38, 2);
  const cast = castNumber(from, wide, mode);
  if (cast === undefined) return undefined;
  return (value) => {
    const cents = cast === "same" ? value : cast(value);
    return checkedMoney(BigInt(cents as Whole));
  };
}

/** A value without a time zone is taken as UTC, because the session's time zone is always UTC. */
function toZonedTime(from: DataType, digits: number, mode: CastMode): FoundCast {
  if (from.kind === "timetz") {
    if (digits >= (from.digits ?? 6)) return "same";
    return (value) => zonedTimeValue(roundedZonedTime(zonedTimeOf(value as string), digits));
  }
  if (from.kind === "time") {
    return (value) => zonedTimeValue({ micros: roundMicros(value as number, digits), offset: 0 });
  }
  if (from.kind !== "datetime" || mode === "implicit") return undefined;
  // An infinite timestamp has no time of day.
  return (value) =>
    isFiniteTimestamp(value as Whole)
      ? zonedTimeValue({
          micros: roundMicros(splitTimestamp(value as Whole).micros, digits),
          offset: 0,
        })
      : null;
}
