/**
 * What the parts of the plan of one block share: who still reads each column, and how conditions
 * are tested on the way up.
 *
 * Every condition of the block is closed once, where it is tested: from there on it reads nothing,
 * and a column that nobody reads any more goes no further.
 */
import { assert, defined } from "../../base/assert.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, hasSubquery } from "../bind/walk.ts";
import { type ColumnReaders, type Condition, expressionsOf } from "./conditions.ts";
import type { PlanNode } from "./plan.ts";
import { isMembership, memberJoined } from "./semi_joins.ts";

export interface PlanningState {
  /** Which columns clauses and conditions still read. */
  readonly readers: ColumnReaders;
  /** The conditions of ON, by their joins. */
  readonly on: ReadonlyMap<BoundFrom, readonly Condition[]>;
  /** Nothing above wants rows one by one. */
  readonly isBulk: boolean;
  /** The block is read for each row of another query, or for each step of a recursion. */
  readonly isReadAgain: boolean;
  /** Plans what stands in FROM, under conditions that must hold above it. */
  readonly planFrom: (from: BoundFrom, conditions: readonly Condition[]) => PlanNode;
  /** Plans a query so that it yields its outputs and nothing else. */
  readonly planWhole: (query: BoundSelect) => PlanNode;
}

/** Those of some columns that a clause above reads, or a condition that is still open. */
export function stillRead(
  columns: readonly BoundColumn[],
  { readers }: PlanningState,
): readonly BoundColumn[] {
  return columns.filter(({ id }) => readers.isRead(id));
}

/** Of a join of the block that is planned. */
export function conditionsOn(from: BoundFrom, { on }: PlanningState): readonly Condition[] {
  return defined(on.get(from), "the conditions of each join of the block are known");
}

/** Whether a condition asks for a value among the rows of a query. */
export function isMember({ expression }: Condition): boolean {
  return isMembership(expression);
}

/** Tests what is no condition of WHERE or ON; all columns go on. */
export function filtered(input: PlanNode, conditions: readonly BoundExpression[]): PlanNode {
  const condition = conjunctionOf(conditions);
  if (condition === undefined) return input;
  return { kind: "filter", input, condition, columns: input.columns };
}

/** Tests conditions of the block; all columns go on. */
export function tested(
  input: PlanNode,
  conditions: readonly Condition[],
  { readers }: PlanningState,
): PlanNode {
  readers.close(conditions);
  return filtered(input, expressionsOf(conditions));
}

/** Tests conditions of the block; columns that only they read go no further. */
export function narrowed(
  input: PlanNode,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const memberships = state.isReadAgain ? [] : conditions.filter(isMember);
  if (memberships.length === 0) return narrowedBy(input, conditions, state);
  // A query that hangs on the row is asked last, about as few rows as can be.
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
    assert(isMembership(expression), "a membership stays one");
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
