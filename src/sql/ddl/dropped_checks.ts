/** Determines which checks of a table and of its partitions remain after DROP COLUMN. */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { TableAlterationDropColumn } from "../parse/ast/ast.ts";
import { columnsNamedIn } from "./row_inspection.ts";

/**
 * Returns the checks that do not read a dropped column.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS without CASCADE
 */
export function checksWithout(
  table: TableEntry,
  name: string,
  { behaviour, column }: TableAlterationDropColumn,
): Pick<TableEntry, "checks" | "partitionChecks"> {
  const { checks, partitionChecks = [] } = table;
  const isReading = (sql: string): boolean => columnsNamedIn(sql, table).has(name);
  const dropped = checks.filter(({ sql }) => isReading(sql));
  const ofParts = partitionChecks.filter(({ own }) => isReading(own));
  const used = [...dropped, ...ofParts.filter(({ notNull }) => notNull === undefined)];
  const [check] = used;
  if (check !== undefined && behaviour !== "cascade") {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop column "${name}": it is used by ${counted(used.length, "constraint")}, ` +
        `including "${check.name}"`,
      {
        position: column._location.start,
        hint: "add CASCADE to drop the constraints as well",
      },
    );
  }
  return {
    checks: dropped.length === 0 ? checks : checks.filter((each) => !dropped.includes(each)),
    ...(ofParts.length > 0 && {
      partitionChecks: partitionChecks.filter((each) => !ofParts.includes(each)),
    }),
  };
}
