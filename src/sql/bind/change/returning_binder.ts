/** Binds RETURNING, which produces a result row for each row that a statement has written. */
import type { SelectedColumn } from "../../parse/ast/ast.ts";
import type { BoundOutput } from "../bound.ts";
import type { BoundColumn } from "../bound_expressions.ts";
import type { FromResult } from "../query/join_binder.ts";
import { bindSelectedColumns } from "../query/select_binder.ts";
import { columnIdsIn } from "../walk.ts";
import { type DmlDeps, placeIn, type Target } from "./dml_target.ts";
import { withValues } from "./view_target.ts";

export interface BoundReturning {
  /**
   * The layout of a returned row: the declared columns of the table, `_seq`, `_deleted` (except in
   * a STREAM table), and then `carried`.
   */
  readonly columns: readonly BoundColumn[];
  readonly outputs: readonly BoundOutput[];
  /** The columns of FROM or USING items that the outputs read. */
  readonly carried: readonly BoundColumn[];
}

/**
 * Binds the outputs of RETURNING; undefined if the statement has no RETURNING.
 *
 * @param from The target, together with the items of FROM or USING.
 *
 * @param mergeAction The column that merge_action() reads. It is the last of the carried columns.
 */
export function bindReturning(
  returning: readonly SelectedColumn[] | undefined,
  {
    deps,
    from,
    mergeAction,
    target,
  }: { target: Target; from: FromResult; deps: DmlDeps; mergeAction?: BoundColumn },
): BoundReturning | undefined {
  if (returning === undefined) return undefined;
  const selected = bindSelectedColumns(returning, {
    context: { ...placeIn(from, { clause: "RETURNING", deps }), mergeAction },
    // In a WITH entry, `RETURNING *` covers only the declared columns, as `*` does in a query.
    withSystemColumns: deps.isOutermost,
  });
  const { view } = target;
  const outputs =
    view === undefined
      ? selected
      : selected.map(({ expression, name }) => ({
          name,
          expression: withValues(expression, view.values),
        }));
  const used = new Set<number>();
  for (const { expression } of outputs) columnIdsIn(expression, used);
  const [, ...others] = from.scope.relations;
  const read = (columns: readonly BoundColumn[]): readonly BoundColumn[] =>
    columns.filter(({ id }) => used.has(id));
  const carried = others.flatMap(({ columns, systemColumns }) =>
    read(columns).concat(read(systemColumns)),
  );
  if (mergeAction !== undefined) carried.push(...read([mergeAction]));
  return { columns: [...target.columns, ...carried], outputs, carried };
}
