/**
 * The planner's state for one block, which its parts share: the remaining readers of each column,
 * and the functions that test conditions.
 *
 * Every condition of the block is closed once, when it is tested. From then on, it does not count
 * as a reader. Columns without readers are dropped.
 */
import { assert, defined } from "../../base/assert.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, hasSubquery } from "../bind/walk.ts";
import { type ColumnReaders, type Condition, expressionsOf } from "./conditions.ts";
import type { PlanNode } from "./plan.ts";
import { isMembership, memberJoined } from "./semi_joins.ts";

export interface PlanningState {
  /** The columns still read by open conditions, or by clauses other than WHERE and ON. */
  readonly readers: ColumnReaders;
  /** The ON conditions of each join, and the conditions of each table that has a rule. */
  readonly on: ReadonlyMap<BoundFrom, readonly Condition[]>;
  /** Whether the nodes above can process entire batches rather than single rows. */
  readonly isBulk: boolean;
  /**
   * Whether the block is read again for each row of another query, or in each step of a recursion.
   */
  readonly isReadAgain: boolean;
  /** Plans an item of FROM, together with the conditions that its rows must satisfy. */
  readonly planFrom: (from: BoundFrom, conditions: readonly Condition[]) => PlanNode;
  /** Plans a query, and drops columns that are not outputs. */
  readonly planWhole: (query: BoundSelect) => PlanNode;
}

/** Returns the columns that clauses above, or conditions not tested yet, still read. */
export function stillRead(
  columns: readonly BoundColumn[],
  { readers }: PlanningState,
): readonly BoundColumn[] {
  return columns.filter(({ id }) => readers.isRead(id));
}

/** Returns the ON conditions of a join in the current block. */
export function conditionsOn(from: BoundFrom, { on }: PlanningState): readonly Condition[] {
  return defined(on.get(from), "planner: conditions of a join are not recorded");
}

/** Whether a condition tests if a value occurs among the rows of a query. */
export function isMember({ expression }: Condition): boolean {
  return isMembership(expression);
}

/** Adds a filter with conditions that do not belong to WHERE or ON. All columns are kept. */
export function filtered(input: PlanNode, conditions: readonly BoundExpression[]): PlanNode {
  const condition = conjunctionOf(conditions);
  if (condition === undefined) return input;
  return { kind: "filter", input, condition, columns: input.columns };
}

/** Adds a filter with conditions of the block. All columns are kept. */
export function tested(
  input: PlanNode,
  conditions: readonly Condition[],
  { readers }: PlanningState,
): PlanNode {
  readers.close(conditions);
  return filtered(input, expressionsOf(conditions));
}

/** Adds a filter with conditions of the block, and drops columns that only they read. */
export function narrowed(
  input: PlanNode,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const memberships = state.isReadAgain ? [] : conditions.filter(isMember);
  if (memberships.length === 0) return narrowedBy(input, conditions, state);
  // Correlated queries are tested last, so that they run for as few rows as possible.
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
    assert(
      isMembership(expression),
      "planner: narrowing turned an IN or EXISTS into another expression",
    );
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
