/** Finds the constraints that SET CONSTRAINTS names: foreign keys and constraint triggers. */
import { DatabaseError } from "../../base/errors.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { Name } from "../parse/ast/ast.ts";

/**
 * Requires that a constraint exists and is deferrable.
 * @throws {DatabaseError} OBJECT_NOT_FOUND, INVALID_OPERATION
 */
export function requireDeferrable({ name, _location }: Name, catalog: Catalog): void {
  const tables = catalog.tables();
  const keys = [
    ...tables.flatMap(({ foreignKeys = [] }) => foreignKeys.filter((key) => key.name === name)),
    ...tables.flatMap(({ triggers = [] }) =>
      triggers.flatMap((trigger) => (trigger.name === name ? (trigger.constraint ?? []) : [])),
    ),
  ];
  if (keys.some(({ isDeferrable }) => isDeferrable)) return;
  const position = _location.start;
  if (keys.length > 0) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot set constraint "${name}": the constraint is not DEFERRABLE`,
      { position },
    );
  }
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find foreign key or constraint trigger "${name}"`,
    { position },
  );
}
