/**
 * Estimates the number of rows that a plan node yields, for EXPLAIN and for choosing the join side
 * to keep in memory. The estimates are intentionally rough: the row counts of tables are known,
 * but every condition is assumed to keep a third of the rows.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { BoundCte } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { keyCountOf } from "./access.ts";
import { depthOf, isUniqueAccess } from "./index_access.ts";
import type { IndexAccess, PlanNode, RowAccess, ScanNode } from "./plan.ts";

/**
 * The assumed number of rows from sources without statistics, such as system views and table
 * functions.
 */
const UNKNOWN_ROWS = 100;

/** The assumed number of steps of a recursive query, each yielding as many rows as the first. */
const STEPS_EXPECTED = 10;

const FILTER_SHARE = 1 / 3;
const GROUP_SHARE = 1 / 10;
/** The number of rows that a table function in a select list is assumed to yield for each row. */
const EXPANDED_ROWS = 10;
/** The share of rows that a semi or anti join is assumed to keep. */
const CHOICE_SHARE = 1 / 2;

export interface Known {
  /**
   * Returns the number of the caller's rows in a table. `rowCount` returns the number of rows of
   * all owners.
   */
  readonly rowsOf: (table: TableEntry, rowCount: () => number) => number;
  /** Returns the value of a LIMIT or OFFSET; undefined if it is not known before the run. */
  readonly countOf: (expression: BoundExpression) => number | undefined;
  /**
   * Cached estimates for WITH entries. Without the cache, entries that refer to each other would
   * be estimated many times.
   */
  readonly cteRows: {
    get(cte: BoundCte): number | undefined;
    set(cte: BoundCte, rows: number): void;
  };
  /**
   * Cached estimates for nodes with inputs. Without the cache, planning a chain of thousands of
   * joins would estimate the whole chain at each step.
   */
  readonly nodeRows: {
    get(node: PlanNode): number | undefined;
    set(node: PlanNode, rows: number): void;
  };
}

/**
 * Estimates the number of rows of a node. The result is at least 1, or 0 if the node cannot yield
 * any rows.
 */
export function estimatedRows(node: PlanNode, known: Known): number {
  return Math.round(estimate(node, known));
}

const PLANNED_ROWS = new WeakMap<BoundCte, number>();
const PLANNED_NODES = new WeakMap<PlanNode, number>();

/** Returns the expected number of rows of a plan, based on the row counts in its scans. */
export function rowsOfPlan(root: PlanNode): number {
  return estimatedRows(root, {
    rowsOf: (_, rowCount) => rowCount(),
    countOf: () => undefined,
    cteRows: PLANNED_ROWS,
    nodeRows: PLANNED_NODES,
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
    case "system":
    case "function":
    case "changes":
    case "working":
    case "gathered":
      return UNKNOWN_ROWS;
    default: {
      const before = known.nodeRows.get(node);
      if (before !== undefined) return before;
      const rows = rowsFromInputs(node, known);
      known.nodeRows.set(node, rows);
      return rows;
    }
  }
}

/** A plan node that has no input. */
type LeafKind =
  | "single"
  | "scan"
  | "values"
  | "cte"
  | "system"
  | "function"
  | "changes"
  | "working"
  | "gathered";

function rowsFromInputs(
  node: Exclude<PlanNode, { readonly kind: LeafKind }>,
  known: Known,
): number {
  switch (node.kind) {
    case "recursive":
      return estimate(node.first, known) * STEPS_EXPECTED;
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

/** Estimates the number of rows of a node with a single input and no limit. */
function passedRows(
  node: Extract<PlanNode, { kind: "filter" | "project" | "aggregate" | "distinct" }>,
  rows: number,
): number {
  switch (node.kind) {
    case "filter": {
      // The bounds of the scan were derived from the condition, so they must not be counted twice.
      const isCounted =
        node.input.kind === "scan" &&
        (node.input.ranges.length > 0 ||
          node.input.sought !== undefined ||
          node.input.indexes !== undefined ||
          node.input.either !== undefined);
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
  { either, indexes = [], key, ranges, rowCount, sought, table }: ScanNode,
  { rowsOf }: Known,
): number {
  const rows = rowsOf(table, rowCount);
  if (key !== undefined) return Math.min(1, rows);
  if (sought !== undefined) return Math.min(keyCountOf(sought), rows);
  const [index] = indexes;
  if (index !== undefined) return atLeastOne(rowsByIndex(index, rows), rows);
  if (either !== undefined) {
    const all = either.reduce((sum, access) => sum + rowsByAccess(access, rows), 0);
    return atLeastOne(Math.min(all, rows), rows);
  }
  return atLeastOne(rows * FILTER_SHARE ** ranges.length, rows);
}

/**
 * The share of rows assumed to have a given value in an indexed column, or to satisfy a bound on
 * it.
 */
const INDEXED_SHARE = 1 / 100;

function rowsByAccess(access: RowAccess, rows: number): number {
  return access.index === undefined
    ? Math.min(keyCountOf(access.keys), rows)
    : rowsByIndex(access, rows);
}

function rowsByIndex(access: IndexAccess, rows: number): number {
  const count = keyCountOf(access.keys);
  if (isUniqueAccess(access)) return Math.min(count, rows);
  const { beginnings, edges, endsAtNull, terms = [] } = access;
  const isBounded = edges.length + beginnings.length + terms.length > 0 || endsAtNull;
  const depth = depthOf(access) + Number(isBounded);
  return Math.min(rows, count * rows * INDEXED_SHARE ** depth);
}

function atLeastOne(rows: number, of: number): number {
  return of === 0 ? 0 : Math.max(1, rows);
}
