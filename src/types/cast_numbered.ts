/** Casts OIDs, names of objects, and the other unsigned integers of `unsigned.ts`. */
import { DatabaseError } from "../base/errors.ts";
import type { CastMode, FoundCast } from "./cast.ts";
import {
  type DataType,
  isInteger,
  isObjectName,
  isUnsigned,
  type UnsignedType,
} from "./data_type.ts";
import { oidOfObjectName, refuseName } from "./object_name.ts";
import { numberOfUnsigned, unsignedValue } from "./unsigned.ts";
import type { Value, Whole } from "./value.ts";

/**
 * Returns the cast between two types; undefined if this file handles neither of them, or if the
 * context does not allow the cast.
 */
export function castNumbered(from: DataType, to: DataType, mode: CastMode): FoundCast {
  if (isUnsigned(to)) return toUnsigned(from, to, mode);
  if (isObjectName(to)) {
    if (from.kind === to.kind) return "same";
    // Expressions look the object up instead. All other places refuse the value.
    return isOid(from) || isInteger(from) ? () => refuseName(to.kind) : undefined;
  }
  return isOid(from) && mode !== "implicit" ? fromOid(to) : undefined;
}

function isOid(type: DataType): boolean {
  return type.kind === "oid" || isObjectName(type);
}

function toUnsigned(from: DataType, to: UnsignedType, mode: CastMode): FoundCast {
  if (from.kind === to.kind) return "same";
  if (to.kind === "oid") {
    if (isObjectName(from)) return (value) => oidOfObjectName(value as string);
    return isInteger(from) ? (value) => oidOfWhole(value as Whole, from) : undefined;
  }
  const isTransaction = to.kind === "xid" && from.kind === "xid8" && mode === "explicit";
  return isTransaction ? (value) => (value as string).slice(8) : undefined;
}

/** As in PostgreSQL, a negative INT represents the OID with the same bits. */
function oidOfWhole(value: Whole, { kind }: DataType): Value {
  const number = BigInt(value);
  const oid = unsignedValue("oid", kind === "bigint" ? number : BigInt.asUintN(32, number));
  if (oid !== undefined) return oid;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot represent ${number} as oid: it is out of range`,
  );
}

function fromOid(to: DataType): FoundCast {
  if (to.kind === "bigint") return (value) => Number(oidNumber(value));
  return to.kind === "int" ? (value) => Number(BigInt.asIntN(32, oidNumber(value))) : undefined;
}

function oidNumber(value: Value): bigint {
  return numberOfUnsigned(oidOfObjectName(value as string));
}
