/**
 * Plans joins that cannot be reordered (LEFT, FULL and LATERAL), and decides how far down into
 * them conditions may move.
 */

import { assert } from "../../base/assert.ts";
import type { BoundJoin, BoundTableFunction } from "../bind/bound.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { type Condition, expressionsOf } from "./conditions.ts";
import { areNever, isConditionOnce } from "./folding.ts";
import { type ColumnIds, columnIdsOf, columnsOf, isConditionOver, keysOf } from "./join_keys.ts";
import type { PlanNode } from "./plan.ts";
import { conditionsOn, filtered, type PlanningState, stillRead, tested } from "./planning_state.ts";

/**
 * Plans a left join. A condition in ON that reads only the right side restricts which right rows
 * can match. A condition in WHERE must be tested above the join, and thus also on rows without a
 * match.
 */
export function planLeftJoin(
  from: BoundJoin,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const leftIds = columnIdsOf(from.left);
  const rightIds = columnIdsOf(from.right);
  const [toRight, between] = parted(conditionsOn(from, state), rightIds);
  const [toLeft, above] = parted(conditions, leftIds);
  const left = state.planFrom(from.left, toLeft);
  // A condition with the same value for all pairs of rows decides once whether any right row can
  // match.
  const once = between.filter(isConditionOnce);
  const right = areNever(conditionsOn(from, state))
    ? partnersOfNone(from, toRight, state)
    : filtered(state.planFrom(from.right, toRight), expressionsOf(once));
  const columns = [...left.columns, ...right.columns];
  const ofPairs = between.filter((each) => !once.includes(each));
  const keys = keysOf(expressionsOf(ofPairs), leftIds, rightIds);
  state.readers.close(between);
  const join: PlanNode = {
    kind: "join",
    join: "left",
    left,
    right,
    ...keys,
    columns: stillRead(columns, state),
  };
  return tested(join, above, state);
}

/**
 * Replaces the right side by an empty relation if no right row can match, so that it is not read.
 */
function partnersOfNone(
  { condition, right }: BoundJoin,
  toRight: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const columns = stillRead(columnsOf(right), state);
  state.readers.close(toRight);
  return { kind: "values", rows: [], never: condition, columns };
}

/**
 * Plans a full join. Its result includes the unmatched rows of both sides, so no condition may be
 * tested below the join.
 */
export function planFullJoin(
  from: BoundJoin,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const left = state.planFrom(from.left, []);
  const right = state.planFrom(from.right, []);
  const on = conditionsOn(from, state);
  const join: PlanNode = {
    kind: "join",
    join: "full",
    left,
    right,
    ...keysOf(expressionsOf(on), columnIdsOf(from.left), columnIdsOf(from.right)),
    columns: [...left.columns, ...right.columns],
  };
  state.readers.close(on);
  const merged = (from.merged ?? []).filter(({ column }) => state.readers.isRead(column.id));
  if (merged.length === 0) return tested(join, conditions, state);
  const kept = join.columns.map(columnValue);
  const project: PlanNode = {
    kind: "project",
    input: join,
    expressions: [...kept, ...merged.map(({ expression }) => expression)],
    columns: [...join.columns, ...merged.map(({ column }) => column)],
  };
  return tested(project, conditions, state);
}

/**
 * Plans a join with a list of rows whose expressions are computed for each row of the left side.
 */
export function planBeside(
  from: BoundJoin,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const all = conditions.concat(conditionsOn(from, state));
  const [toLeft, above] = parted(all, columnIdsOf(from.left));
  const left = state.planFrom(from.left, toLeft);
  const { right } = from;
  assert(
    right.kind === "relation" && right.relation.kind === "values",
    "join planner: right side is not a VALUES list",
  );
  const { columns: own, rows } = right.relation;
  const columns = [...left.columns, ...own];
  const [only] = rows;
  if (only !== undefined && rows.length === 1) {
    const expressions = [...left.columns.map(columnValue), ...only];
    return tested({ kind: "project", input: left, expressions, columns }, above, state);
  }
  const width = own.length;
  const values: BoundTableFunction = {
    name: "VALUES",
    args: rows.flat(),
    seesNull: true,
    width,
    rowCount: rows.length,
    rows: (cells) => rows.map((_, i) => cells.slice(i * width, (i + 1) * width)),
  };
  return tested({ kind: "expand", input: left, functions: [values], columns }, above, state);
}

/**
 * Plans a lateral join. The right side is read for each row of the left side, so only conditions on
 * the left side may be tested below the join.
 */
export function planLateral(
  from: BoundJoin,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const [toLeft, above] = parted(conditions, columnIdsOf(from.left));
  const left = state.planFrom(from.left, toLeft);
  const right = state.planFrom(from.right, []);
  const join: PlanNode = {
    kind: "lateral",
    join: from.join === "left" ? "left" : "inner",
    left,
    right,
    outerReferences: from.outerReferences ?? [],
    condition: from.condition,
    columns: [...left.columns, ...right.columns],
  };
  state.readers.close(conditionsOn(from, state));
  return tested(join, above, state);
}

/** Separates the conditions that read only the given columns from the others. */
function parted(conditions: readonly Condition[], ids: ColumnIds): [Condition[], Condition[]] {
  const over: Condition[] = [];
  const others: Condition[] = [];
  for (const each of conditions) (isConditionOver(each, ids) ? over : others).push(each);
  return [over, others];
}
