/**
 * How many rows a node of a plan is expected to give: for EXPLAIN, and for the planner where it
 * chooses what a join holds. Rough by intent: tables know how many rows they have, conditions are
 * taken to keep a third, and nothing else is known.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { BoundCte } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { keyCountOf } from "./access.ts";
import type { PlanNode } from "./plan.ts";

/** The assumed rows of sources without statistics: system views and table functions. */
const UNKNOWN_ROWS = 100;

/** The assumed steps of a recursion, each with as many rows as the first. */
const STEPS_EXPECTED = 10;

const FILTER_SHARE = 1 / 3;
const GROUP_SHARE = 1 / 10;
/** The assumed rows that a table function in a select list makes of one row. */
const EXPANDED_ROWS = 10;
/** Of a semi or anti join. */
const CHOICE_SHARE = 1 / 2;

export interface Known {
  /** The rows in the caller's scope. The second argument counts the rows of all owners. */
  readonly rowsOf: (table: TableEntry, rowCount: () => number) => number;
  /** The value of a LIMIT or OFFSET that is known before the run. */
  readonly countOf: (expression: BoundExpression) => number | undefined;
  /** Estimates for WITH entries, cached because entries may read each other many times. */
  readonly cteRows: {
    get(cte: BoundCte): number | undefined;
    set(cte: BoundCte, rows: number): void;
  };
}

/** At least 1, but 0 for what can give nothing. */
export function estimatedRows(node: PlanNode, known: Known): number {
  return Math.round(estimate(node, known));
}

const PLANNED_ROWS = new WeakMap<BoundCte, number>();

/** What a plan is expected to yield; its scans know how many rows their tables have. */
export function rowsOfPlan(root: PlanNode): number {
  return estimatedRows(root, {
    rowsOf: (_, rowCount) => rowCount(),
    countOf: () => undefined,
    cteRows: PLANNED_ROWS,
  });
}

function estimate(node: PlanNode, known: Known): number {
  switch (node.kind) {
    case "single":
      return 1;
    case "scan":
      return scanRows(node, known);
    case "values":
      return node.constants?.rowCount ?? node.rows.length;
    case "cte":
      return cteRows(node, known);
    case "recursive":
      return estimate(node.first, known) * STEPS_EXPECTED;
    case "system":
    case "function":
    case "working":
    case "gathered":
      return UNKNOWN_ROWS;
    case "join":
    case "lateral":
    case "set":
      return pairedRows(node, estimate(node.left, known), estimate(node.right, known));
    case "window":
      return estimate(node.input, known);
    case "expand":
      return estimate(node.input, known) * expandedRows(node);
    case "sort":
    case "limit":
      return cutRows(node, estimate(node.input, known), known);
    default:
      return passedRows(node, estimate(node.input, known));
  }
}

function expandedRows({ functions }: Extract<PlanNode, { kind: "expand" }>): number {
  return Math.max(...functions.map(({ rowCount = EXPANDED_ROWS }) => rowCount));
}

function cteRows({ cte, source }: Extract<PlanNode, { kind: "cte" }>, known: Known): number {
  const before = known.cteRows.get(cte);
  if (before !== undefined) return before;
  const rows = estimate(source(), known);
  known.cteRows.set(cte, rows);
  return rows;
}

/** Of nodes with one input, which cut nothing off. */
function passedRows(
  node: Extract<PlanNode, { kind: "filter" | "project" | "aggregate" | "distinct" }>,
  rows: number,
): number {
  switch (node.kind) {
    case "filter": {
      // The bounds of a scan are read out of the condition above it.
      const isCounted =
        node.input.kind === "scan" &&
        (node.input.ranges.length > 0 || node.input.sought !== undefined);
      return isCounted ? rows : atLeastOne(rows * FILTER_SHARE, rows);
    }
    case "project":
      return rows;
    case "aggregate":
      return node.groupBy.length === 0 ? 1 : atLeastOne(rows * GROUP_SHARE, rows);
    case "distinct":
      return atLeastOne(rows * GROUP_SHARE, rows);
  }
}

function pairedRows(
  node: Extract<PlanNode, { kind: "join" | "lateral" | "set" }>,
  left: number,
  right: number,
): number {
  switch (node.kind) {
    case "join": {
      const both = node.leftKeys.length > 0 ? Math.max(left, right) : left * right;
      if (node.join === "semi" || node.join === "anti")
        return atLeastOne(left * CHOICE_SHARE, left);
      return node.join === "inner" ? both : Math.max(left, both);
    }
    case "lateral":
      return left * Math.max(1, right);
    case "set":
      return node.operator === "union" ? left + right : left;
  }
}

function cutRows(
  { kind, limit, offset }: Extract<PlanNode, { kind: "sort" | "limit" }>,
  rows: number,
  { countOf }: Known,
): number {
  const skipped = offset === undefined ? 0 : (countOf(offset) ?? 0);
  const most = limit === undefined ? Number.POSITIVE_INFINITY : (countOf(limit) ?? rows);
  return kind === "sort"
    ? Math.min(rows, most + skipped)
    : Math.min(Math.max(0, rows - skipped), most);
}

function scanRows(
  { key, ranges, rowCount, sought, table }: Extract<PlanNode, { kind: "scan" }>,
  { rowsOf }: Known,
): number {
  const rows = rowsOf(table, rowCount);
  if (key !== undefined) return Math.min(1, rows);
  if (sought !== undefined) return Math.min(keyCountOf(sought), rows);
  return atLeastOne(rows * FILTER_SHARE ** ranges.length, rows);
}

function atLeastOne(rows: number, of: number): number {
  return of === 0 ? 0 : Math.max(1, rows);
}
