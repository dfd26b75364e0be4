/**
 * Binds the WHEN condition of a trigger: an expression over the rows `old` and `new`. Columns must
 * be qualified, because both rows have the same columns.
 */
import type { ColumnEntry, TableEntry } from "../../../catalog/mod.ts";
import type { Expr, ExprRef } from "../../parse/ast/ast.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import { StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { readLiterals } from "../expression/untyped_literals.ts";
import { Scope, type ScopeRelation } from "../scope.ts";

/** A reference to a column or a row in a trigger condition. */
export type ConditionRef = Pick<ExprRef, "_location" | "name" | "star" | "table">;

/**
 * Binds the condition of a trigger. The id of each `old` column is its position in the table, and
 * the ids of the `new` columns follow.
 *
 * @throws {DatabaseError}
 */
export function bindTriggerCondition(
  condition: Expr,
  { columns }: Pick<TableEntry, "columns">,
): BoundExpression {
  const statement = new StatementBinding([]);
  const relations = [relationOf("old", columns, 0), relationOf("new", columns, columns.length)];
  const scope = new Scope(relations);
  const context = { statement, scope, clause: "WHEN", sink: undefined };
  const bound = bindCondition(condition, context);
  statement.requireNoLock("WHEN");
  readLiterals(statement.literals);
  return bound;
}

function relationOf(
  alias: "new" | "old",
  columns: readonly ColumnEntry[],
  firstId: number,
): ScopeRelation {
  const bound = columns.flatMap(({ isHidden, name, type }, position): BoundColumn[] =>
    isHidden === true ? [] : [{ id: firstId + position, name, type }],
  );
  return { alias, namespace: undefined, columns: bound, systemColumns: [] };
}

/** Returns the references to the rows `old` and `new` in a trigger condition. */
export function refsIn(condition: Expr): ConditionRef[] {
  return [...partsOf(condition)].flatMap((part) => {
    const node: Partial<ExprRef> = part;
    const { _location, name, star, table } = node;
    if (node.type !== "ref" || name === undefined || _location === undefined) return [];
    return [{ _location, name, star, table }];
  });
}

/**
 * Returns the row, `old` or `new`, to which a reference belongs; undefined if it belongs to
 * neither.
 */
export function rowOfRef({ name, table }: ConditionRef): "new" | "old" | undefined {
  const row = table?.name ?? name;
  return row === "old" || row === "new" ? row : undefined;
}
