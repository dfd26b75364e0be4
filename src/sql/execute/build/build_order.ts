/**
 * Plan → operators, of what sorts rows and takes the first of them.
 */
import { ExpressionPlaces } from "../../bind/alike.ts";
import type { BoundExpression, BoundSort } from "../../bind/bound_expressions.ts";
import { orderedColumnOf } from "../../plan/ordered_input.ts";
import type { PlanNode } from "../../plan/plan.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { type Layout, layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { Limit, rowCountFrom } from "../operators/filter.ts";
import type { Operator, OperatorFactory } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { FirstInOrder } from "../sort/first_in_order.ts";
import { GroupFirsts } from "../sort/group_firsts.ts";
import type { OrderedTableScan } from "../sort/ordered_table_scan.ts";
import { LimitWithTies, Sort } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { buildOverScan, paced } from "./build_passing.ts";
import { buildOrderedScan } from "./build_scan.ts";

/** @param buildPlan Compiles the input. */
export function buildOrder(
  node: Extract<PlanNode, { kind: "sort" | "limit" }>,
  buildPlan: (node: PlanNode) => OperatorFactory,
  firstsOf: readonly BoundExpression[] | undefined,
): OperatorFactory {
  const limit = countOf(node.limit, "LIMIT");
  const offset = countOf(node.offset, "OFFSET");
  if (node.kind === "sort") {
    const evaluated = node.keys.map(({ expression }) => expression);
    const rows = paced(evaluated, buildPlan(node.input));
    const input = firstsOf === undefined ? rows : buildFirsts(node, rows, firstsOf);
    const keys = sortKeys(node.keys, layoutOf(node.input.columns));
    const inputTypes = node.input.columns.map(({ type }) => type);
    const sort = (run: Run, from: Operator, rowsMax: number): Operator =>
      new Sort(from, { run, node, inputTypes, keys, rowsMax });
    const first = buildFirst(node);
    const [key] = keys;
    if (first === undefined || key === undefined) {
      return (run) => sort(run, input(run), limit(run) + offset(run));
    }
    // Rows that nothing drops, and whose order one key decides, are skipped without being read.
    const canSkip = keys.length === 1 && !hasFilter(node.input);
    const columnCount = inputTypes.length;
    return (run) => {
      const skipped = canSkip ? offset(run) : 0;
      const allRows = limit(run) + offset(run);
      const rowsMax = allRows - skipped;
      const front = first(run, rowsMax);
      if (front === undefined) return sort(run, input(run), allRows);
      const { input: from, scan } = front;
      const sortOver = (ordered: Operator): Operator => sort(run, ordered, rowsMax);
      const plain = (leftOut: number): Operator =>
        new Limit(sort(run, input(run), allRows), {
          run,
          limit: Number.POSITIVE_INFINITY,
          offset: leftOut,
        });
      const options = { run, input: from, scan, plain, sortOver, key, rowsMax };
      return new FirstInOrder({ ...options, skipped, columnCount });
    };
  }
  const input = buildPlan(node.input);
  const layout = layoutOf(node.input.columns);
  if (node.ties === undefined) {
    return (run) => new Limit(input(run), { run, limit: limit(run), offset: offset(run) });
  }
  const keys = sortKeys(node.ties, layout);
  return (run) =>
    new LimitWithTies(input(run), { run, keys, limit: limit(run), offset: offset(run) });
}

/** The input of a sort, in the order of its first key. */
interface SortFront {
  readonly input: Operator;
  readonly scan: OrderedTableScan;
}

/** Undefined where no order of a table is one of the sort, or a run has none for so many rows. */
function buildFirst({
  input,
  keys,
  limit,
}: Extract<PlanNode, { kind: "sort" }>):
  | ((run: Run, rowsMax: number) => SortFront | undefined)
  | undefined {
  const [key] = keys;
  const columnId = key === undefined ? undefined : orderedColumnOf(input, key.expression);
  if (limit === undefined || key === undefined || columnId === undefined) return undefined;
  const { pass, scan: scanned } = buildOverScan(input);
  const open = buildOrderedScan(scanned, { columnId, isDescending: key.isDescending });
  return (run, rowsMax) => {
    const ordered = open(run, rowsMax);
    if (ordered === undefined) return undefined;
    return { input: pass(ordered.rows, run), scan: ordered.scan };
  };
}

/** The rows of a sort's input, but for those that cannot be the first of their group. */
function buildFirsts(
  { input, keys }: Pick<Extract<PlanNode, { kind: "sort" }>, "input" | "keys">,
  rows: OperatorFactory,
  firstsOf: readonly BoundExpression[],
): OperatorFactory {
  const layout = layoutOf(input.columns);
  const first = new ExpressionPlaces(firstsOf);
  const others = keys.filter(({ expression }) => first.find(expression) === undefined);
  const options = {
    inputTypes: input.columns.map(({ type }) => type),
    on: firstsOf.map((each) => compileExpression(each, layout)),
    onTypes: firstsOf.map(({ type }) => type),
    keys: sortKeys(others, layout),
  };
  return (run) => new GroupFirsts(rows(run), { run, ...options, rowsMax: 1 });
}

function hasFilter(node: PlanNode): boolean {
  return node.kind === "filter" || (node.kind === "project" && hasFilter(node.input));
}

function countOf(
  expression: BoundExpression | undefined,
  clause: "LIMIT" | "OFFSET",
): (run: Run) => number {
  if (expression === undefined) {
    const none = clause === "LIMIT" ? Number.POSITIVE_INFINITY : 0;
    return () => none;
  }
  const value = compileScalar(expression);
  return (run) => rowCountFrom(value(run), clause);
}

export function sortKeys(sorts: readonly BoundSort[], layout: Layout): SortKey[] {
  return sorts.map(({ expression, isDescending, nullsFirst }) => ({
    evaluate: compileExpression(expression, layout),
    type: expression.type,
    isDescending,
    nullsFirst,
  }));
}
