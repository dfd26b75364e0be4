/**
 * Implements GENERATED ALWAYS AS (…) STORED: checks the expressions of generated columns, and
 * finds the generated columns that depend on another column.
 */

import { DatabaseError } from "../../base/errors.ts";
import type { ColumnEntry, TableEntry } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { castTo } from "../bind/expression/casts.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { columnIdsIn, holdsTimeWord, isImmutable } from "../bind/walk.ts";
import { checkScope } from "../execute/build/table_runtime.ts";
import type { CreateColumnDef, Expr } from "../parse/ast/ast.ts";

/**
 * Checks that an expression may compute a column: it must be immutable, fit the column's type, and
 * read no other generated column, so that generated columns can be computed in any order.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, TYPE_MISMATCH, COLUMN_NOT_FOUND, INVALID_QUERY
 */
export function checkGenerated(
  table: Pick<TableEntry, "columns" | "name" | "primaryKey">,
  { columnId, name, type }: ColumnEntry,
  { constraints = [], _location }: CreateColumnDef,
): void {
  const stored = constraints.find((constraint) => constraint.type === "stored");
  if (stored?.type !== "stored") return;
  const position = _location.start;
  const refuse = (why: string): never => {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define generated column "${name}": ${why}`,
      {
        position,
      },
    );
  };
  if (table.primaryKey.includes(columnId)) refuse("the column is part of the primary key");
  if (type.kind === "file") refuse("a FILE column cannot be generated");
  const bound = boundIn(table, stored.expr, type);
  if (!isImmutable(bound) || holdsTimeWord(bound)) {
    refuse("the expression must always return the same result for the same row");
  }
  for (const at of columnIdsIn(bound)) {
    const read = table.columns[at];
    if (read?.generatedSql === undefined) continue;
    refuse(`the expression reads column "${read.name}", which is itself a generated column`);
  }
}

/** Returns the generated columns that are computed from the given column. */
export function generatedFrom(table: TableEntry, name: string): ColumnEntry[] {
  const position = table.columns.findIndex((column) => column.name === name);
  return table.columns.filter(
    ({ generatedSql, type }) =>
      generatedSql !== undefined &&
      columnIdsIn(boundIn(table, parseStored(generatedSql, table.columns), type)).has(position),
  );
}

/**
 * Binds an expression over a table's columns. The id of each column is its position in the table.
 */
function boundIn(
  table: Pick<TableEntry, "columns" | "name">,
  node: Expr,
  type: DataType,
): BoundExpression {
  const { scope } = checkScope(table);
  const statement = new StatementBinding([]);
  const context = { statement, scope, clause: "GENERATED", sink: undefined };
  const bound = castTo(bindExpression(node, context), { to: type, mode: "assignment", node });
  readLiterals(statement.literals);
  return bound;
}
