/**
 * Determines which types are suitable as keys by which maintained queries look up and group rows.
 */
import { type DataType, isLooselyEqual, isRangeType, UNSIGNED_KINDS } from "../../types/mod.ts";

/**
 * Whether equal values of a type are always identical, so that looking up one of them finds all of
 * them.
 */
export function isKeyType(type: DataType): boolean {
  if (isLooselyEqual(type)) return false;
  return isRangeType(type) ? isKeyType(type.bound) : KEY_TYPES.has(type.kind);
}

const KEY_TYPES: ReadonlySet<DataType["kind"]> = new Set([
  "smallint",
  "int",
  "bigint",
  "decimal",
  "boolean",
  "text",
  "uuid",
  "date",
  "time",
  "timetz",
  "timestamp",
  "datetime",
  "enum",
  "money",
  "bytes",
  // Values of these types are equal if and only if their strings are equal.
  "bit",
  "inet",
  "cidr",
  "macaddr",
  "macaddr8",
  ...UNSIGNED_KINDS,
]);
