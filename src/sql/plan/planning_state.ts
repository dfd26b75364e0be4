/**
 * The state that all parts of the planner share for one block: the remaining readers of each
 * column, and the functions that test conditions.
 *
 * Every condition of the block is closed once, when it is tested. It then no longer counts as a
 * reader, and columns without readers are dropped.
 */
import { assert, defined } from "../../base/assert.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, hasSubquery } from "../bind/walk.ts";
import { type ColumnReaders, type Condition, expressionsOf } from "./conditions.ts";
import type { PlanNode } from "./plan.ts";
import { isMembership, memberJoined } from "./semi_joins.ts";

export interface PlanningState {
  /** The columns that later clauses and open conditions still need. */
  readonly readers: ColumnReaders;
  /** The conditions in the ON of each join, and the rule of each table that has one. */
  readonly on: ReadonlyMap<BoundFrom, readonly Condition[]>;
  /** Whether nodes above can process whole batches rather than single rows. */
  readonly isBulk: boolean;
  /** Whether the block is read for each row of another query, or for each step of a recursion. */
  readonly isReadAgain: boolean;
  /** Plans an item of FROM, with conditions that have to be true above it. */
  readonly planFrom: (from: BoundFrom, conditions: readonly Condition[]) => PlanNode;
  /** Plans a query so that it yields nothing but its outputs. */
  readonly planWhole: (query: BoundSelect) => PlanNode;
}

/** Returns the columns that a clause above, or a condition that is still open, needs. */
export function stillRead(
  columns: readonly BoundColumn[],
  { readers }: PlanningState,
): readonly BoundColumn[] {
  return columns.filter(({ id }) => readers.isRead(id));
}

/** Returns the conditions of a join of the current block. */
export function conditionsOn(from: BoundFrom, { on }: PlanningState): readonly Condition[] {
  return defined(on.get(from), "the conditions of each join of the block are known");
}

/** Whether a condition tests whether a value is among the rows of a query. */
export function isMember({ expression }: Condition): boolean {
  return isMembership(expression);
}

/** Tests conditions that do not come from WHERE or ON. All columns are kept. */
export function filtered(input: PlanNode, conditions: readonly BoundExpression[]): PlanNode {
  const condition = conjunctionOf(conditions);
  if (condition === undefined) return input;
  return { kind: "filter", input, condition, columns: input.columns };
}

/** Tests conditions of the block. All columns are kept. */
export function tested(
  input: PlanNode,
  conditions: readonly Condition[],
  { readers }: PlanningState,
): PlanNode {
  readers.close(conditions);
  return filtered(input, expressionsOf(conditions));
}

/** Tests conditions of the block, and drops columns that only these conditions read. */
export function narrowed(
  input: PlanNode,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const memberships = state.isReadAgain ? [] : conditions.filter(isMember);
  if (memberships.length === 0) return narrowedBy(input, conditions, state);
  // Correlated queries are tested last, so that they run for the smallest possible number of rows.
  const apart = new Set(memberships);
  const early: Condition[] = [];
  const late: Condition[] = [];
  for (const condition of conditions) {
    if (apart.has(condition)) continue;
    (hasSubquery(condition.expression) ? late : early).push(condition);
  }
  let node = narrowedBy(input, early, state);
  for (const membership of memberships) {
    const { expression } = membership;
    assert(isMembership(expression), "narrowing leaves a membership a membership");
    state.readers.close([membership]);
    const join = memberJoined(node, expression, state.planWhole);
    node = { ...join, columns: stillRead(join.columns, state) };
  }
  return narrowedBy(node, late, state);
}

function narrowedBy(
  input: PlanNode,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const condition = conjunctionOf(expressionsOf(conditions));
  if (condition === undefined) return input;
  state.readers.close(conditions);
  return { kind: "filter", input, condition, columns: stillRead(input.columns, state) };
}
