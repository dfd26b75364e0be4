/**
 * Refuses `ONLY t` for a partitioned table. In PostgreSQL, such a table has no rows of its own, so
 * the statement would do nothing. Without a refusal, it would affect the rows of all partitions.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { QName } from "../parse/ast/ast.ts";

/**
 * Requires that ONLY does not precede the name of a partitioned table or partition.
 *
 * @param partitioned The partitioning of the named relation; undefined if it is not partitioned.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
export function refuseOnly(name: QName, partitioned: object | undefined): void {
  if (name.only !== true || partitioned === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use ONLY with ${name.name}: the table is partitioned, and has no rows of its own`,
    {
      position: name._location.start,
      hint: "leave out ONLY to include the rows of all partitions, or name one partition",
    },
  );
}
