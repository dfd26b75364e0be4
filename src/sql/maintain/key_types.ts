/** Determines the types of keys by which maintained queries can look up and group rows. */
import { type DataType, isLooselyEqual, isRangeType, UNSIGNED_KINDS } from "../../types/mod.ts";

/**
 * Whether equal values of a type are always identical, so that looking up a key finds all of them.
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
  // Values of these types are equal exactly if their strings are.
  "bit",
  "inet",
  "cidr",
  "macaddr",
  "macaddr8",
  ...UNSIGNED_KINDS,
]);
