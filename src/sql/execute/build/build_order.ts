/** Builds the operators that sort rows or take the first rows in a sort order. */

import type { BoundExpression, BoundSort } from "../../bind/bound_expressions.ts";
import { ExpressionPlaces } from "../../bind/equivalence.ts";
import { indexOrderOf, orderedColumnOf, scanInOrder } from "../../plan/ordered_input.ts";
import type { PlanNode } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator, OperatorFactory } from "../context/operator.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { type BatchLayout, layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { Limit, rowCountFrom } from "../operators/filter.ts";
import { GroupTopN } from "../sort/group_top_n.ts";
import type { OrderedTableScan } from "../sort/ordered_table_scan.ts";
import { OrderedTopN } from "../sort/ordered_top_n.ts";
import { LimitWithTies, Sort } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { buildOverScan, type Passing, paced } from "./build_passing.ts";
import {
  buildIndexOrder,
  buildIndexQuestion,
  buildOrderedScan,
  type ScanUse,
} from "./build_scan.ts";

/**
 * Compiles an operator that orders rows.
 * @param buildPlan Compiles the plan of the input.
 */
export function buildOrder(
  node: Extract<PlanNode, { kind: "sort" | "limit" }>,
  buildPlan: (node: PlanNode, use?: ScanUse) => OperatorFactory,
  firstsOf: readonly BoundExpression[] | undefined,
): OperatorFactory {
  const limit = countOf(node.limit, "LIMIT");
  const offset = countOf(node.offset, "OFFSET");
  if (node.kind === "sort") return buildSort(node, buildPlan, { firstsOf, limit, offset });
  const input = buildPlan(node.input);
  const layout = layoutOf(node.input.columns);
  if (node.ties === undefined) {
    return (context) =>
      new Limit(input(context), { context, limit: limit(context), offset: offset(context) });
  }
  const keys = sortKeys(node.ties, layout);
  return (context) =>
    new LimitWithTies(input(context), {
      context,
      keys,
      limit: limit(context),
      offset: offset(context),
    });
}

type SortNode = Extract<PlanNode, { kind: "sort" }>;
type Count = (context: ExecutionContext) => number;

interface SortUse {
  readonly limit: Count;
  readonly offset: Count;
  readonly firstsOf: readonly BoundExpression[] | undefined;
}

function buildSort(
  node: SortNode,
  buildPlan: (node: PlanNode, use?: ScanUse) => OperatorFactory,
  { firstsOf, limit, offset }: SortUse,
): OperatorFactory {
  const evaluated = node.keys.map(({ expression }) => expression);
  const rows = paced(evaluated, buildPlan(node.input));
  const input = firstsOf === undefined ? rows : buildFirsts(node, rows, firstsOf);
  const keys = sortKeys(node.keys, layoutOf(node.input.columns));
  const inputTypes = node.input.columns.map(({ type }) => type);
  const sort = (context: ExecutionContext, from: Operator, rowsMax: number): Operator =>
    new Sort(from, { context, node, inputTypes, keys, rowsMax });
  const inOrder = buildInOrder(node, buildPlan);
  if (inOrder !== undefined) {
    return (context) =>
      inOrder(context) ?? sort(context, input(context), limit(context) + offset(context));
  }
  const fronts = buildFronts(node);
  if (fronts.length === 0) {
    return (context) => sort(context, input(context), limit(context) + offset(context));
  }
  const isFiltered = hasFilter(node.input);
  const columnCount = inputTypes.length;
  return (context) => {
    const allRows = limit(context) + offset(context);
    for (const { keyCount, open } of fronts) {
      // If the scan alone determines the order and no row is filtered out, OFFSET can skip rows
      // without reading them.
      const canSkip = keyCount === keys.length && !isFiltered;
      const skipped = canSkip ? offset(context) : 0;
      const rowsMax = allRows - skipped;
      const front = open(context, rowsMax);
      if (front === undefined) continue;
      const plain = (leftOut: number): Operator =>
        new Limit(sort(context, input(context), allRows), {
          context,
          limit: Number.POSITIVE_INFINITY,
          offset: leftOut,
        });
      return new OrderedTopN({
        context,
        ...front,
        plain,
        sortOver: (ordered) => sort(context, ordered, rowsMax),
        keys: keys.slice(0, keyCount),
        rowsMax,
        skipped,
        columnCount,
      });
    }
    return sort(context, input(context), allRows);
  };
}

/**
 * Returns the input of a sort without the sort, for runs that use no index and therefore read the
 * rows in sort order anyway. Returns undefined if the table is stored in a different order.
 */
function buildInOrder(
  { input, keys }: SortNode,
  buildPlan: (node: PlanNode, use?: ScanUse) => OperatorFactory,
): ((context: ExecutionContext) => Operator | undefined) | undefined {
  const scan = scanInOrder(input, keys);
  if (scan === undefined) return undefined;
  const usesIndex = buildIndexQuestion(scan);
  const rows = buildPlan(input, { skipsIndexes: true });
  return (context) => (usesIndex(context) ? undefined : rows(context));
}

/** An input whose rows are already sorted by the first sort keys. */
interface SortFront {
  readonly input: Operator;
  readonly scan: OrderedTableScan;
}

/** A way to read the input of a sort so that its rows arrive sorted by the first sort keys. */
interface FrontSource {
  /** The number of leading sort keys by which the input is already sorted. */
  readonly keyCount: number;
  /** Opens the input. Returns undefined if this run cannot read `rowsMax` rows in this order. */
  readonly open: (context: ExecutionContext, rowsMax: number) => SortFront | undefined;
}

/** Returns the ways to read the first rows of a sort in order, with the best first. */
function buildFronts({ input, keys, limit }: SortNode): readonly FrontSource[] {
  const [key] = keys;
  if (limit === undefined || key === undefined) return [];
  const found: FrontSource[] = [];
  const byIndex = indexOrderOf(input, keys);
  if (byIndex !== undefined) {
    const { pass, scan } = buildOverScan(input);
    found.push(frontOf(pass, byIndex.keyCount, buildIndexOrder(scan, byIndex)));
  }
  const columnId = orderedColumnOf(input, key);
  if (columnId !== undefined) {
    const { pass, scan } = buildOverScan(input);
    const { isDescending } = key;
    found.push(frontOf(pass, 1, buildOrderedScan(scan, { columnId, isDescending })));
  }
  return found;
}

function frontOf(
  pass: Passing,
  keyCount: number,
  open: ReturnType<typeof buildOrderedScan>,
): FrontSource {
  return {
    keyCount,
    open: (context, rowsMax) => {
      const ordered = open(context, rowsMax);
      if (ordered === undefined) return undefined;
      return { input: pass(ordered.rows, context), scan: ordered.scan };
    },
  };
}

/** Removes rows that cannot be the first of their group from the input of a sort. */
function buildFirsts(
  { input, keys }: Pick<SortNode, "input" | "keys">,
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
  return (context) => new GroupTopN(rows(context), { context, ...options, rowsMax: 1 });
}

function hasFilter(node: PlanNode): boolean {
  return node.kind === "filter" || (node.kind === "project" && hasFilter(node.input));
}

function countOf(expression: BoundExpression | undefined, clause: "LIMIT" | "OFFSET"): Count {
  if (expression === undefined) {
    const none = clause === "LIMIT" ? Number.POSITIVE_INFINITY : 0;
    return () => none;
  }
  const value = compileScalar(expression);
  return (context) => rowCountFrom(value(context), clause);
}

export function sortKeys(sorts: readonly BoundSort[], layout: BatchLayout): SortKey[] {
  return sorts.map(({ expression, isDescending, nullsFirst }) => ({
    evaluate: compileExpression(expression, layout),
    type: expression.type,
    isDescending,
    nullsFirst,
  }));
}
