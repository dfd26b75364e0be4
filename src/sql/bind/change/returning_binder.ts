/**
 * RETURNING: what a statement that writes answers of each row that it wrote.
 */
import type { SelectedColumn } from "../../parse/ast/ast.ts";
import type { BoundOutput } from "../bound.ts";
import type { BoundColumn } from "../bound_expressions.ts";
import type { FromResult } from "../query/join_binder.ts";
import { bindSelectedColumns } from "../query/select_binder.ts";
import { columnIdsIn } from "../walk.ts";
import { type DmlWorld, placeIn, type Target } from "./dml_target.ts";

export interface BoundReturning {
  /**
   * The layout of a returned row: declared columns of the table, `_seq` and, but of a STREAM
   * table, `_deleted`, then `carried`.
   */
  readonly columns: readonly BoundColumn[];
  readonly outputs: readonly BoundOutput[];
  /** What the outputs read of the items of FROM or USING. */
  readonly carried: readonly BoundColumn[];
}

/** @param from The target, beside the items of FROM or USING. */
export function bindReturning(
  returning: readonly SelectedColumn[] | undefined,
  { world, from, target }: { target: Target; from: FromResult; world: DmlWorld },
): BoundReturning | undefined {
  if (returning === undefined) return undefined;
  const outputs = bindSelectedColumns(returning, {
    place: placeIn(from, { clause: "RETURNING", world }),
    withSystemColumns: true,
  });
  const used = new Set<number>();
  for (const { expression } of outputs) columnIdsIn(expression, used);
  const [, ...others] = from.scope.relations;
  const read = (columns: readonly BoundColumn[]): readonly BoundColumn[] =>
    columns.filter(({ id }) => used.has(id));
  const carried = others.flatMap(({ columns, systemColumns }) =>
    read(columns).concat(read(systemColumns)),
  );
  return { columns: [...target.columns, ...carried], outputs, carried };
}
