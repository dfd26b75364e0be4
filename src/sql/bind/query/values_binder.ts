/**
 * Binds the rows of VALUES in FROM: as expressions or, if there are many and all cells are
 * literals, as plain values.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { runToCompletion } from "../../../base/steps.ts";
import { commonType, type DataType, type Value } from "../../../types/mod.ts";
import type { Expr, LiteralList, ValuesStatement } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundRows } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castToCommonType } from "../expression/casts.ts";
import { constantsOf, literalColumnOf } from "../expression/constant_columns.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { Scope } from "../scope.ts";
import { queriesAround, type SelectDeps } from "./select_deps.ts";

/** The number of cells bound in one step. Each cell takes a few microseconds. */
const CELLS_PER_STEP = 32;

/**
 * Binds VALUES in FROM.
 * @throws {DatabaseError} INVALID_QUERY if rows differ in length, and the errors of cells.
 */
export function bindValues(values: ValuesStatement, deps: SelectDeps): BoundRows {
  const known = values.literals === undefined ? undefined : constantRows(values.literals);
  const { statement } = deps;
  const bound = known ?? statement.longRows.get(values.values);
  if (bound !== undefined) return bound;
  const scope = new Scope([]);
  const context = { statement, scope, clause: "VALUES", sink: undefined, ...queriesAround(deps) };
  return runToCompletion(bindRows(values, context));
}

/**
 * Returns a VALUES list that consists of many literals as plain values; undefined if a column
 * mixes different kinds of literals.
 */
function constantRows(list: LiteralList): BoundRows | undefined {
  const types: DataType[] = [];
  const columns: (readonly Value[])[] = [];
  for (let column = 0; column < list.columnCount; column += 1) {
    const read = literalColumnOf(list, column);
    if (read === undefined) return undefined;
    const type = commonType([read.type]);
    const values = type === undefined ? undefined : constantsOf(read, type);
    if (type === undefined || values === undefined) return undefined;
    types.push(type);
    columns.push(values);
  }
  return { rows: [], types, constants: { rowCount: list.rowCount, columns } };
}

/**
 * Binds VALUES. Each column gets the common type of its cells. The generator yields after every
 * few cells.
 */
export function* bindRows(
  { values, _location }: ValuesStatement,
  context: ExpressionContext,
): Generator<void, BoundRows> {
  const width = values[0]?.length ?? 0;
  if (values.some((row) => row.length !== width)) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot read VALUES: the rows do not all have the same number of values",
      {
        position: _location.start,
        hint: "write the same number of values in every row; use NULL for missing values",
      },
    );
  }
  const rows: BoundExpression[][] = values.map(() => []);
  const types: DataType[] = [];
  for (let column = 0; column < width; column += 1) {
    const nodes = values.flatMap((row): Expr[] => row.slice(column, column + 1));
    const cells: BoundExpression[] = [];
    for (const node of nodes) {
      cells.push(bindExpression(node, context));
      if (cells.length % CELLS_PER_STEP !== 0) continue;
      context.statement.endStep();
      yield;
    }
    const { expressions, type } = castToCommonType(cells, nodes, "VALUES");
    types.push(type);
    for (const [i, expression] of expressions.entries()) rows[i]?.push(expression);
  }
  return { rows, types, constants: undefined };
}
