/**
 * A view in FROM: its query, bound as if it stood there in parentheses.
 *
 * The query is bound anew for each statement that names the view. So it asks for the rights of the
 * caller, reads the rows of the caller, and grants nothing.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { VIEW_DEPTH_MAX, VIEWS_MAX } from "../../../base/limits.ts";
import type { FromTable } from "../../parse/ast/ast.ts";
import { relocated } from "../../parse/ast/tree_parts.ts";
import type { BoundSelect } from "../bound.ts";
import type { BoundColumn } from "../bound_expressions.ts";
import { boundNow, type SelectWorld, type ViewRelation } from "./select_world.ts";

export interface BoundView {
  readonly query: BoundSelect;
  /** One for each output of the query. */
  readonly columns: readonly BoundColumn[];
  /** Of those, what the reader sees. */
  readonly shown: readonly BoundColumn[];
}

/** @throws {DatabaseError} LIMIT_EXCEEDED, and what its query raises. */
export function bindView(view: ViewRelation, item: FromTable, world: SelectWorld): BoundView {
  const { statement } = world;
  const viewDepth = (world.viewDepth ?? 0) + 1;
  statement.viewCount += 1;
  if (viewDepth > VIEW_DEPTH_MAX || statement.viewCount > VIEWS_MAX) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot read view ${view.name}: the statement reads more than ${VIEWS_MAX} views, or views nested deeper than ${VIEW_DEPTH_MAX}`,
      { position: item._location.start },
    );
  }
  // Its own text is not the request's: every position in it is where the view is named.
  const bind = (): BoundSelect =>
    boundNow(relocated(view.query, item._location), {
      statement,
      source: view.source,
      bindInSteps: world.bindInSteps,
      isOutermost: false,
      keepsUntyped: false,
      viewDepth,
    });
  const place = { name: view.name, position: item._location.start };
  const { height, query } = statement.named(bind, place);
  statement.readTower(height);
  const columns = query.outputs.map(({ expression, name }, i) =>
    statement.newColumn({ name: view.columnNames[i] ?? name, type: expression.type }),
  );
  const { shown } = view;
  return {
    query,
    columns,
    shown:
      shown === undefined
        ? columns
        : shown.flatMap((each) => columns.find(({ name }) => name === each) ?? []),
  };
}
