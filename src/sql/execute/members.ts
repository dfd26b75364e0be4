/**
 * Whether a value is one of the items of IN.
 */
import {
  type DataType,
  groupKeyOf,
  isNullAt,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

type MemberKey = string | number | bigint | boolean;

export interface Members {
  readonly keys: ReadonlySet<MemberKey>;
  readonly hasNull: boolean;
}

/** The items of a row. */
export function membersAt(type: DataType, vectors: readonly Vector[], row: number): Members {
  const keys = new Set<MemberKey>();
  let hasNull = false;
  for (const vector of vectors) {
    if (isNullAt(vector, row)) hasNull = true;
    else keys.add(groupKeyOf(type, valueAt(vector, row)));
  }
  return { keys, hasNull };
}

/** NULL where it is open. */
export function isMember(
  value: Value,
  { hasNull, keys }: Members,
  { negated, operand }: { negated: boolean; operand: { readonly type: DataType } },
): Value {
  if (value === null) return null;
  if (keys.has(groupKeyOf(operand.type, value))) return !negated;
  return hasNull ? null : negated;
}
