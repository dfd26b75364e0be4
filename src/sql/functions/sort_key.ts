/** Defines the function that converts a value to a string that sorts like the value. */
import { DatabaseError } from "../../base/errors.ts";
import {
  type DataType,
  hasSortKey,
  sortKeyOf,
  TEXT,
  typeName,
  type Value,
} from "../../types/mod.ts";
import { firstType, functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";

/** The name under which live queries call the function. */
export const SORT_KEY = "sort_key";

export const SORT_KEY_FUNCTIONS: readonly ScalarFunction[] = functionsNamed(
  [SORT_KEY],
  overload(["any"], TEXT, ([value = null], _call, types) => keyOf(firstType(types), value)),
);

function keyOf(type: DataType, value: Value): string {
  if (hasSortKey(type)) return sortKeyOf(type, value);
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot compute the sort key of a value of type ${typeName(type)}: the type has none`,
    { hint: 'cast the value to another type, or write COLLATE "C" for text' },
  );
}
