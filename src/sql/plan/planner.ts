/**
 * Bound query → plan: which columns are read, where each condition is tested, what finds rows.
 *
 * - A condition goes down to the lowest place that has its columns. Below the right side of a left
 *   join it may not go, since rows without a partner must survive.
 * - Equality between the two sides of a join makes it a hash join.
 */
import { defined } from "../../base/assert.ts";
import type { BoundCte, BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { readsAround } from "../bind/query/query_walk.ts";
import { conjunctionOf, isVolatile } from "../bind/walk.ts";
import { ColumnReaders, type Condition, conditionOf, expressionsOf } from "./conditions.ts";
import { areNever, foldedConditions, isConditionOnce } from "./folding.ts";
import { factored } from "./implied.ts";
import { isPlainJoin, planInnerJoins } from "./inner_joins.ts";
import { columnsOf } from "./join_keys.ts";
import { gathered } from "./memberships.ts";
import { neededColumns } from "./needed_columns.ts";
import { expanded, planOutputs, type QueryPlan } from "./outputs.ts";
import { planBeside, planFullJoin, planLateral, planLeftJoin } from "./placed_joins.ts";
import type { PlanNode } from "./plan.ts";
import {
  conditionsOn,
  filtered,
  isMember,
  type PlanningState,
  stillRead,
  tested,
} from "./planning_state.ts";
import { withoutLateralRows } from "./pulled_up.ts";
import { isExistence, semiJoined } from "./semi_joins.ts";
import { planTable } from "./table_scan.ts";
import { planWindows } from "./window_plan.ts";

/** Plans one SELECT block. */
export function planSelect(given: BoundSelect): QueryPlan {
  const select = withoutLateralRows(given);
  const readers = new ColumnReaders(neededColumns(select));
  const on = new Map<BoundFrom, readonly Condition[]>();
  const folded = foldedConditions(select.where);
  const once = folded.filter(isConditionOnce);
  const where = without(folded, once).flatMap(rewritten);
  for (const condition of where) readers.open(condition);
  addConditionsOfJoins(select.from, on);
  takeOnce(select.from, on, once);
  for (const conditions of on.values()) for (const each of conditions) readers.open(each);
  const state: PlanningState = {
    readers,
    on,
    // To be sorted, or told apart one by one, a row costs a microsecond and more: a batch stays
    // short.
    isBulk: select.isAggregated && !select.aggregates.some(({ isDistinct }) => isDistinct),
    // What its memberships hold would be read anew each time; as subqueries they are read once.
    isReadAgain: where.some(isMember) && (readsAround(select) || readsWorking(select.from)),
    planFrom: (from, conditions) => planFrom(from, conditions, state),
    planWhole,
  };
  const existences = where.filter(({ expression }) => isExistence(expression));
  const kept = without(where, existences);
  const never = areNever(folded) ? select.where : neverJoined(select.from, on);
  let node =
    never !== undefined || areNever(once)
      ? nothingOf(select, never ?? conjunctionOf(expressionsOf(once)), state)
      : filtered(planFrom(select.from, kept, state), expressionsOf(once));
  node = planExistences(node, expressionsOf(existences));
  node = expanded(node, select, "grouping");
  if (select.isAggregated) node = planAggregate(select, node);
  node = planWindows(select, expanded(node, select, "windows"));
  return planOutputs(select, node);
}

/** Gathers and factors the alternatives of a condition. */
function rewritten(condition: Condition): Condition | readonly Condition[] {
  const { kind } = condition.expression;
  if (kind !== "or" && kind !== "not") return condition;
  return factored(gathered(condition.expression)).map(conditionOf);
}

function addConditionsOfJoins(
  from: BoundFrom | undefined,
  into: Map<BoundFrom, readonly Condition[]>,
): void {
  if (from?.kind !== "join") return;
  into.set(from, foldedConditions(from.condition));
  addConditionsOfJoins(from.left, into);
  addConditionsOfJoins(from.right, into);
}

function readsWorking(from: BoundFrom | undefined): boolean {
  if (from === undefined) return false;
  if (from.kind === "relation") return from.relation.kind === "working";
  return readsWorking(from.left) || readsWorking(from.right);
}

/** The condition of an inner join that no pair satisfies; undefined if there is none. */
function neverJoined(
  from: BoundFrom | undefined,
  on: ReadonlyMap<BoundFrom, readonly Condition[]>,
): BoundExpression | undefined {
  if (from?.kind !== "join" || !isPlainJoin(from)) return undefined;
  if (areNever(on.get(from) ?? [])) return from.condition;
  return neverJoined(from.left, on) ?? neverJoined(from.right, on);
}

/** Moves the conditions that are the same for all pairs out of inner joins. */
function takeOnce(
  from: BoundFrom | undefined,
  on: Map<BoundFrom, readonly Condition[]>,
  into: Condition[],
): void {
  if (from?.kind !== "join" || !isPlainJoin(from)) return;
  const conditions = on.get(from) ?? [];
  const once = conditions.filter(isConditionOnce);
  if (once.length > 0) {
    into.push(...once);
    on.set(from, without(conditions, once));
  }
  takeOnce(from.left, on, into);
  takeOnce(from.right, on, into);
}

function without(
  conditions: readonly Condition[],
  apart: readonly Condition[],
): readonly Condition[] {
  if (apart.length === 0) return conditions;
  const left = new Set(conditions);
  for (const each of apart) left.delete(each);
  return [...left];
}

/** Replaces relations from which no row is wanted; none of them is read. */
function nothingOf(
  { from }: BoundSelect,
  never: BoundExpression | undefined,
  state: PlanningState,
): PlanNode {
  const columns = from === undefined ? [] : columnsOf(from);
  return { kind: "values", rows: [], never, columns: stillRead(columns, state) };
}

function planFrom(
  from: BoundFrom | undefined,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  if (from === undefined) return tested({ kind: "single", columns: [] }, conditions, state);
  if (from.kind === "relation") return planRelation(from.relation, conditions, state);

  if (from.isBeside === true) return planBeside(from, conditions, state);
  if (from.captures !== undefined) return planLateral(from, conditions, state);
  if (from.join === "full") return planFullJoin(from, conditions, state);

  if (isPlainJoin(from)) {
    return planInnerJoins(from, conditions, {
      conditionsOn: (join) => conditionsOn(join, state),
      planLeaf: (leaf, own) => planFrom(leaf, own, state),
      columnsAbove: (columns, own) => {
        state.readers.close(own);
        return stillRead(columns, state);
      },
    });
  }
  return planLeftJoin(from, conditions, state);
}

/** Whether there are partners is asked last, of the rows that nothing else has dropped. */
function planExistences(input: PlanNode, conditions: readonly BoundExpression[]): PlanNode {
  let node = input;
  const rest: BoundExpression[] = [];
  for (const condition of conditions) {
    const joined = semiJoined(node, condition, planWhole);
    if (joined === undefined) rest.push(condition);
    else node = joined;
  }
  return filtered(node, rest);
}

function planRelation(
  relation: BoundRelation,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  switch (relation.kind) {
    case "table":
      return planTable(relation, conditions, state);
    case "system":
      return planSystem(relation, conditions, state);
    case "values": {
      const { columns, constants, rows } = relation;
      return tested({ kind: "values", rows, constants, columns }, conditions, state);
    }
    case "function": {
      const { columns, functions, hasOrdinality } = relation;
      return tested({ kind: "function", functions, hasOrdinality, columns }, conditions, state);
    }
    case "set": {
      const { columns, isAll, operator } = relation;
      let left = planWhole(relation.left);
      let right = planWhole(relation.right);
      if (operator === "union" && !isAll) {
        left = withEquals(left);
        right = withEquals(right);
      }
      const set: PlanNode = { kind: "set", operator, isAll, left, right, columns };
      return tested(set, conditions, state);
    }
    case "cte": {
      const { alias, columns, cte } = relation;
      const { count } = cte.references;
      // Read once, it is no more than a derived table.
      if (count <= 1 && !cte.isKept && !cte.isVolatile) {
        const inlined = { kind: "query", query: cte.query, alias, columns } as const;
        return planDerived(inlined, conditions, state);
      }
      const source = (): PlanNode => planOfCte(cte);
      return tested({ kind: "cte", cte, source, columns }, conditions, state);
    }
    case "recursive": {
      const { columns, first, isAll, next, recursion } = relation;
      const sides = { first: planWhole(first), next: planWhole(next) };
      return tested({ kind: "recursive", recursion, isAll, ...sides, columns }, conditions, state);
    }
    case "working":
      return tested(
        { kind: "working", recursion: relation.recursion, columns: relation.columns },
        conditions,
        state,
      );
    case "query":
      return planDerived(relation, conditions, state);
  }
}

/**
 * A side of UNION that may go up with equal rows, if it is a UNION itself: otherwise a chain of
 * them would compare, and hold, the rows of its first query once for each query behind it.
 */
function withEquals(side: PlanNode): PlanNode {
  if (side.kind === "project" && side.expressions.every(({ kind }) => kind === "column")) {
    const input = withEquals(side.input);
    return input === side.input ? side : { ...side, input };
  }
  const isUnion = side.kind === "set" && side.operator === "union" && !side.isAll;
  return isUnion ? { ...side, isAll: true } : side;
}

function planSystem(
  relation: Extract<BoundRelation, { kind: "system" }>,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const columns = stillRead(relation.columns, state);
  const positions = columns.map((column) => relation.columns.indexOf(column));
  const { name, source } = relation;
  return tested({ kind: "system", name, source, positions, columns }, conditions, state);
}

function planDerived(
  relation: Extract<BoundRelation, { kind: "query" }>,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  // What nobody reads is not computed, unless it decides which rows are equal or may do something.
  const isWhole = relation.query.distinct === "all";
  const isNeeded = relation.query.outputs.map(({ expression }, position) => {
    const id = defined(relation.columns[position], "each output is a column").id;
    return isWhole || state.readers.isRead(id) || isVolatile(expression);
  });
  const outputs = relation.query.outputs.filter((_, position) => isNeeded[position] === true);
  const columns = relation.columns.filter((_, position) => isNeeded[position] === true);
  const { root } = planSelect({ ...relation.query, outputs });
  const input: PlanNode = {
    kind: "project",
    input: root,
    expressions: columns.map((column, position) => columnValue(root.columns[position] ?? column)),
    columns,
  };
  return tested(input, conditions, state);
}

const PLANS = new WeakMap<BoundCte, PlanNode>();

/** The plan of a WITH entry; every call returns the same plan. */
export function planOfCte(cte: BoundCte): PlanNode {
  const known = PLANS.get(cte) ?? planWhole(cte.query);
  PLANS.set(cte, known);
  return known;
}

/** Plans a query so that it yields its outputs and nothing else. */
function planWhole(query: BoundSelect): PlanNode {
  const { outputCount, root } = planSelect(query);
  if (root.columns.length === outputCount) return root;
  const columns = root.columns.slice(0, outputCount);
  const expressions = columns.map(columnValue);
  return { kind: "project", input: root, expressions, columns };
}

function planAggregate(select: BoundSelect, input: PlanNode): PlanNode {
  const { groupingSets } = select;
  const columns = [
    ...(groupingSets === undefined ? [] : [groupingSets.column]),
    ...select.groupBy.map(({ column }) => column),
    ...select.aggregates.map(({ column }) => column),
  ];
  const node: PlanNode = {
    kind: "aggregate",
    input,
    groupBy: select.groupBy,
    groupingSets,
    aggregates: select.aggregates,
    columns,
  };
  const having = foldedConditions(select.having);
  if (areNever(having)) return { kind: "values", rows: [], never: select.having, columns };
  const once = having.filter(isConditionOnce);
  const ofGroups = filtered(node, expressionsOf(without(having, once)));
  return filtered(ofGroups, expressionsOf(once));
}
