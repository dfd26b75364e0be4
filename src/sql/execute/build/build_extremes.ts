/**
 * Computes min and max over all rows by reading only the first row in sort order, for columns that
 * the table keeps sorted.
 */
import { defined } from "../../../base/assert.ts";
import { extremeKeysOf, indexOrderOf, orderedColumnOf } from "../../plan/ordered_input.ts";
import type { AggregateNode } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { OperatorFactory } from "../context/operator.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { type Extreme, Extremes } from "../operators/extremes.ts";
import { buildOverScan } from "./build_passing.ts";
import { buildIndexOrder, buildOrderedScan, type OrderedRows } from "./build_scan.ts";

/**
 * The minimum number of rows in a table that is read in the sort order of a column without an
 * index. Such an order is kept in memory. It must first be built, and then updated after changes.
 */
const ORDERED_ROWS_MIN = 262_144;

type OpenExtreme = (context: ExecutionContext) => Extreme | undefined;

/**
 * Returns an aggregate that reads its results in sort order if possible, and otherwise runs the
 * plain aggregate.
 *
 * @param plain Computes the results from all rows.
 */
export function buildExtremes(node: AggregateNode, plain: OperatorFactory): OperatorFactory {
  const opens = extremesOf(node);
  if (opens === undefined) return plain;
  const types = node.columns.map(({ type }) => type);
  return (context) => {
    const extremes: Extreme[] = [];
    for (const open of opens) {
      const extreme = open(context);
      if (extreme === undefined) {
        for (const { rows } of extremes) rows.close();
        return plain(context);
      }
      extremes.push(extreme);
    }
    return new Extremes({ context, extremes, types, plain: () => plain(context) });
  };
}

/**
 * Returns one function per result of the aggregate, each of which reads its result in sort order;
 * undefined if some result cannot be read that way.
 */
function extremesOf(node: AggregateNode): readonly OpenExtreme[] | undefined {
  const { input } = node;
  const opens = (extremeKeysOf(node) ?? []).flatMap((key): OpenExtreme[] => {
    const byIndex = indexOrderOf(input, [key]);
    const columnId = byIndex === undefined ? orderedColumnOf(input, key) : undefined;
    if (byIndex === undefined && columnId === undefined) return [];
    const { pass, scan } = buildOverScan(input);
    if (byIndex === undefined && scan.rowCount() < ORDERED_ROWS_MIN) return [];
    const { isDescending } = key;
    const open: (context: ExecutionContext, rowsWanted: number) => OrderedRows | undefined =
      byIndex === undefined
        ? buildOrderedScan(scan, {
            columnId: defined(
              columnId,
              "MIN/MAX operator: neither an index nor an ordered column is known",
            ),
            isDescending,
          })
        : buildIndexOrder(scan, byIndex, { skipsNull: true });
    const value = compileExpression(key.expression, layoutOf(input.columns));
    return [
      (context) => {
        const ordered = open(context, 1);
        if (ordered === undefined) return undefined;
        return { rows: pass(ordered.rows, context), scan: ordered.scan, value };
      },
    ];
  });
  return opens.length > 0 && opens.length === node.aggregates.length ? opens : undefined;
}
