/** Defines the order of the values of a sort key. */
import { compareValues, type DataType, type Value } from "../../../types/mod.ts";

export interface SortOrder {
  readonly type: DataType;
  readonly isDescending: boolean;
  readonly nullsFirst: boolean;
}

/** Compares two values by the sort key to which they belong. */
export function compareByKey(
  { type, isDescending, nullsFirst }: SortOrder,
  left: Value,
  right: Value,
): number {
  if (left === null || right === null) {
    if (left === right) return 0;
    return (left === null) === nullsFirst ? -1 : 1;
  }
  const order =
    typeof left === "number" && typeof right === "number"
      ? numericOrder(type, left, right)
      : compareValues(type, left, right);
  return isDescending ? -order : order;
}

function numericOrder(type: DataType, left: number, right: number): number {
  if (left < right) return -1;
  if (left > right) return 1;
  // Neither number is less than the other: they are equal, or at least one of them is NaN.
  return left === right ? 0 : compareValues(type, left, right);
}
