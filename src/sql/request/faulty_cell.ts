/**
 * Finds the value that a column rejected, by examining the statement's values again after the
 * statement has failed.
 */
import { type DatabaseError, withDetails } from "../../base/errors.ts";
import { CellError, type CellPlace } from "../bind/cell_error.ts";
import type { Expr, QueryStatement, SetStatement, Statement } from "../parse/ast/ast.ts";
import { isChanging, rowsNode } from "../parse/ast/query_nodes.ts";

/** Adds to an error the position of the rejected value, or the number of its parameter. */
export function atCell(
  error: DatabaseError,
  statement: () => Statement | undefined,
): DatabaseError {
  if (!(error instanceof CellError) || error.position !== undefined) return error;
  const node = statement();
  const query = node === undefined ? undefined : rowsNode(node);
  const cell = query === undefined ? undefined : cellAt(query, error.place);
  if (cell === undefined) return error;
  const parameter = cell.type === "parameter" ? `, parameter ${cell.name}` : "";
  return withDetails(error, {
    message: `${error.message.slice(0, -1)}${parameter})`,
    position: cell._location.start,
    cause: error.reason,
  });
}

function cellAt(query: QueryStatement, place: CellPlace): Expr | undefined {
  if (query.type === "with" || query.type === "with recursive") {
    // If several changes in a WITH could have rejected the value, the error names none of them.
    const isOfParts = query.bind.some(({ statement }) => isChanging(statement));
    return isOfParts ? undefined : cellAt(query.in, place);
  }
  const { column, source } = place;
  if (query.type === "update") return valueOf(query.sets, column);
  if (query.type !== "insert" || source === "query") return undefined;
  if (source === "set") {
    const action = query.onConflict?.do;
    return typeof action === "object" ? valueOf(action.sets, column) : undefined;
  }
  if (query.insert.type !== "values") return undefined;
  // Several values can make up one column, so the position of a column need not be the position of
  // a value.
  if (query.columns?.some(({ part }) => part !== undefined) === true) return undefined;
  return query.insert.values[source.rowIndex]?.[source.columnIndex];
}

function valueOf(sets: readonly SetStatement[], column: string): Expr | undefined {
  for (const set of sets) {
    if (set.type === "set" && set.column.name === column) return set.value;
    if (set.type === "set columns" && set.columns.some(({ name }) => name === column)) {
      return set.select;
    }
  }
  return undefined;
}
