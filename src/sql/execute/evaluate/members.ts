/**
 * Whether a value is one of the items of IN.
 */
import {
  type DataType,
  groupKeyMakerFor,
  groupKeyOf,
  isNullAt,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";

type MemberKey = string | number | bigint | boolean;

export interface Members {
  readonly keys: ReadonlySet<MemberKey>;
  readonly hasNull: boolean;
}

/** The items that are the same in every run. */
export function membersOf(type: DataType, constants: readonly Value[]): Members {
  const keyOf = groupKeyMakerFor(type);
  const keys = new Set<MemberKey>();
  let hasNull = false;
  for (const value of constants) {
    if (value === null) hasNull = true;
    else keys.add(keyOf === undefined ? (value as MemberKey) : keyOf(value));
  }
  return { keys, hasNull };
}

/** The items of a row beside those that are always there. */
export function membersAt(
  type: DataType,
  vectors: readonly Vector[],
  { constants, row }: { row: number; constants: Members },
): Members {
  if (vectors.length === 0) return constants;
  const keys = new Set<MemberKey>(constants.keys);
  let { hasNull } = constants;
  for (const vector of vectors) {
    if (isNullAt(vector, row)) hasNull = true;
    else keys.add(groupKeyOf(type, valueAt(vector, row)));
  }
  return { keys, hasNull };
}

/** Adds the elements of an array to the members; a NULL array counts as a NULL among them. */
export function membersWith(type: DataType, members: Members, array: Value): Members {
  if (!Array.isArray(array)) return { ...members, hasNull: true };
  const listed = membersOf(type, array as readonly Value[]);
  const keys = new Set([...members.keys, ...listed.keys]);
  return { keys, hasNull: members.hasNull || listed.hasNull };
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
