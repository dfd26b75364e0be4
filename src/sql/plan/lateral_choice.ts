/**
 * Chooses how a LATERAL aggregate is computed: by one query for each row on the left, or by
 * grouping all rows on the right. A query that finds its rows by key is fast, so a few such
 * queries take less time than grouping all rows.
 */
import type { BoundJoin, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { plainSelect } from "../bind/bound_nodes.ts";
import { conjunctionOf, conjunctsOf } from "../bind/walk.ts";
import { rowsOfPlan } from "./estimate.ts";
import { columnIdsOf, isOver } from "./join_keys.ts";
import type { PlanNode, ScanNode } from "./plan.ts";
import { isByKey, nodesOf } from "./plan_walk.ts";

/**
 * The number of rows that can be grouped in the time that the query for a single left row takes.
 */
const ROWS_PER_QUERY = 200;

/** The number of rows that can be scanned in the time it takes to group one row. */
const ROWS_PER_GROUPED = 4;

/**
 * Whether grouping all rows is expected to be cheaper than running a query for each left row.
 *
 * @param where The WHERE condition of the block. Parts of it may restrict the left side.
 */
export function areGroupsCheaper(
  { left, right }: BoundJoin,
  where: BoundExpression | undefined,
  planQuery: (query: BoundSelect) => PlanNode,
): boolean {
  if (right.kind !== "relation" || right.relation.kind !== "query") return false;
  const ids = columnIdsOf(left);
  const own = conjunctionOf(conjunctsOf(where).filter((each) => isOver(each, ids)));
  const leftRows = rowsOfPlan(planQuery(plainSelect({ from: left, where: own, outputs: [] })));
  const scans = nodesOf(planQuery(right.relation.query)).filter((node) => node.kind === "scan");
  let all = 0;
  let ofEach = ROWS_PER_QUERY;
  for (const scan of scans) {
    all += scan.rowCount();
    ofEach += isNarrow(scan) ? 0 : scan.rowCount() / ROWS_PER_GROUPED;
  }
  return all < leftRows * ofEach;
}

/** Whether a scan finds its rows by key, through an index, or by the first key column. */
function isNarrow(scan: ScanNode): boolean {
  const { either, indexes, prefix } = scan;
  if (isByKey(scan) || (indexes ?? either ?? prefix) !== undefined) return true;
  const [first] = scan.table.primaryKey;
  const ranges = scan.ranges.concat(scan.textRanges ?? []);
  return ranges.some(({ columnId, max, min }) => columnId === first && min === max);
}
