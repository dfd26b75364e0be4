/**
 * The planner's state for one query block: the remaining readers of each column, and the functions
 * that test conditions. All modules that plan a part of the block share it.
 *
 * Every condition of the block is closed once, when a node that tests it is planned. From then on,
 * the condition does not count as a reader of its columns. Columns without readers are dropped.
 */
import { assert, defined } from "../../base/assert.ts";
import type { BoundFrom, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, hasSubquery } from "../bind/walk.ts";
import { type ColumnReaders, type Condition, expressionsOf } from "./conditions.ts";
import type { PlanNode } from "./plan.ts";
import { isMembership, memberJoined } from "./semi_joins.ts";

export interface PlanningState {
  /**
   * The columns that are still read by conditions not planned yet, or by clauses other than WHERE
   * and ON.
   */
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

/** Returns the columns that are still read by clauses above, or by conditions not tested yet. */
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

/** Adds a filter with conditions that come from neither WHERE nor ON. All columns are kept. */
export function filtered(input: PlanNode, conditions: readonly BoundExpression[]): PlanNode {
  const condition = conjunctionOf(conditions);
  if (condition === undefined) return input;
  return { kind: "filter", input, condition, columns: input.columns };
}

/** Adds a filter with conditions of the query block. All columns are kept. */
export function tested(
  input: PlanNode,
  conditions: readonly Condition[],
  { readers }: PlanningState,
): PlanNode {
  readers.close(conditions);
  return filtered(input, expressionsOf(conditions));
}

/**
 * Adds a filter with conditions of the query block, and drops columns that only these conditions
 * read.
 */
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
