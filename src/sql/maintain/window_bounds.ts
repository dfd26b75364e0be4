/** Derives a row window from a query's LIMIT and OFFSET, if it can be maintained. */
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { hasSubquery } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import { NotMaintained } from "./not_maintained.ts";
import { keptRowsOf, type RowWindowOptions, type WindowTerm } from "./row_window.ts";

/** The maximum number of rows that a window keeps for ORDER BY with LIMIT. */
const WINDOW_ROWS_MAX = 10_000;

export interface WindowParts {
  readonly context: ExecutionContext;
  /**
   * The fields by which rows are sorted, which together distinguish all rows; undefined if a sort
   * key is not a field.
   */
  readonly terms: readonly WindowTerm[] | undefined;
}

/**
 * Returns the row window of a query; undefined if the query needs none. @throws {NotMaintained}
 */
export function windowOf(
  select: BoundSelect,
  { context, terms }: WindowParts,
): RowWindowOptions | undefined {
  const { limit, offset } = select;
  if (limit === undefined && offset === undefined) return undefined;
  if (limit === undefined) throw new NotMaintained("the query has OFFSET without LIMIT");
  if (terms === undefined) {
    throw new NotMaintained(
      "the query has LIMIT, but its sort order does not distinguish all rows",
    );
  }
  windowRowsOf(select, context);
  return { terms, ...boundsOf(select, context) };
}

/** Returns the number of rows that the window of a query keeps. @throws {NotMaintained} */
export function windowRowsOf(select: BoundSelect, context: ExecutionContext): number {
  const rows = keptRowsOf(boundsOf(select, context));
  if (rows > WINDOW_ROWS_MAX)
    throw new NotMaintained("LIMIT and OFFSET of the query are too large");
  return rows;
}

function boundsOf(
  { limit, offset }: BoundSelect,
  context: ExecutionContext,
): { limit: number; offset: number } {
  return { limit: countOf(limit, context), offset: countOf(offset, context) };
}

function countOf(expression: BoundExpression | undefined, context: ExecutionContext): number {
  if (expression === undefined) return 0;
  requireNoSubquery([expression]);
  const count = compileScalar(expression)(context);
  if (typeof count !== "number" || count < 0)
    throw new NotMaintained("the LIMIT of the query is not a number");
  return count;
}

/** Requires that expressions contain no subquery. @throws {NotMaintained} */
export function requireNoSubquery(expressions: readonly BoundExpression[]): void {
  if (expressions.some(hasSubquery)) throw new NotMaintained("an expression has a subquery");
}
