/**
 * The rows of VALUES in FROM: expressions, or, where all are literals and many, the values
 * themselves.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { inOneTurn } from "../../../base/steps.ts";
import { commonType, type DataType, type Value } from "../../../types/mod.ts";
import type { Expr, LiteralList, ValuesStatement } from "../../parse/ast/ast.ts";
import type { Place } from "../binding.ts";
import type { BoundRows } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castAlike } from "../expression/casts.ts";
import { constantsOf, literalColumnOf } from "../expression/constant_columns.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { Scope } from "../scope.ts";
import { queriesAround, type SelectWorld } from "./select_world.ts";

/** Cells that are bound at a step: one takes some microseconds. */
const CELLS_PER_STEP = 32;

/** @throws {DatabaseError} INVALID_QUERY when rows differ in length, and what a cell raises. */
export function bindValues(values: ValuesStatement, world: SelectWorld): BoundRows {
  const known = values.literals === undefined ? undefined : constantRows(values.literals);
  const { statement } = world;
  const bound = known ?? statement.longRows.get(values.values);
  if (bound !== undefined) return bound;
  const scope = new Scope([]);
  const place = { statement, scope, clause: "VALUES", sink: undefined, ...queriesAround(world) };
  return inOneTurn(bindRows(values, place));
}

/** VALUES of many literals, each column of one form; undefined for any other. */
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

/** VALUES: each column has the common type of its cells. Yields behind every few of them. */
export function* bindRows(
  { values, _location }: ValuesStatement,
  place: Place,
): Generator<void, BoundRows> {
  const width = values[0]?.length ?? 0;
  if (values.some((row) => row.length !== width)) {
    throw new DatabaseError("INVALID_QUERY", "Cannot read VALUES: its rows differ in length", {
      position: _location.start,
    });
  }
  const rows: BoundExpression[][] = values.map(() => []);
  const types: DataType[] = [];
  for (let column = 0; column < width; column += 1) {
    const nodes = values.flatMap((row): Expr[] => row.slice(column, column + 1));
    const cells: BoundExpression[] = [];
    for (const node of nodes) {
      cells.push(bindExpression(node, place));
      if (cells.length % CELLS_PER_STEP !== 0) continue;
      place.statement.endStep();
      yield;
    }
    const { expressions, type } = castAlike(cells, nodes, "VALUES");
    types.push(type);
    for (const [i, expression] of expressions.entries()) rows[i]?.push(expression);
  }
  return { rows, types, constants: undefined };
}
