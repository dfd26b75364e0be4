/**
 * Checks the condition of a topic source. Offsets are derived from the condition again and again,
 * so it must always have the same result for a given change, regardless of the caller.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { bindCondition } from "../bind/expression/expression_binder.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { holdsTimeWord, isImmutable } from "../bind/walk.ts";
import { checkScope } from "../execute/build/table_runtime.ts";
import type { Expr } from "../parse/ast/ast.ts";

/**
 * Checks the condition of a topic source by binding it to the columns of the table.
 *
 * @throws {DatabaseError} COLUMN_NOT_FOUND, TYPE_MISMATCH, INVALID_DEFINITION, …
 */
export function checkTopicFilter(where: Expr, table: TableEntry): void {
  const { scope } = checkScope(table);
  const statement = new StatementBinding([]);
  const clause = "WHERE of a topic source";
  const condition = bindCondition(where, { statement, scope, clause, sink: undefined });
  readLiterals(statement.literals);
  const isFixed = isImmutable(condition);
  if (isFixed && !holdsTimeWord(condition)) return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot use ${isFixed ? "the current time" : "a volatile function"} in the WHERE of a ` +
      "topic source: the condition must always give the same result for the same row",
    { position: where._location.start },
  );
}
