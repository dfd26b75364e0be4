/** Rejects sorting and grouping by types whose values have no order. */
import { DatabaseError } from "../../../base/errors.ts";
import { type DataType, hasOrder, typeName } from "../../../types/mod.ts";

/**
 * Requires that values of a type can be sorted and grouped.
 *
 * @param use The clause or function that needs the order, for the error message: `GROUP BY`.
 * @throws {DatabaseError} TYPE_MISMATCH
 */
export function requireOrder(type: DataType, use: string, position?: number): void {
  if (hasOrder(type)) return;
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot use values of type ${typeName(type)} in ${use}: they have no order, and cannot be ` +
      "compared for exact equality",
    {
      position,
      hint:
        type.kind === "xml"
          ? "use the text form, p::text"
          : "use a number, such as p[0] or p <-> point '(0,0)', or the text form, p::text",
    },
  );
}
