/**
 * Plans a bound query. The planner decides which columns are read, where each condition is tested,
 * and how rows are found.
 *
 * - A condition moves down to the lowest node that has all of its columns. It must not move into
 *   the right side of a left join, because left rows without a partner have to survive.
 * - A join with an equality between its two sides becomes a hash join.
 */
import { defined } from "../../base/assert.ts";
import type { BoundCte, BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundExpression, BoundWindow, BoundWindowCall } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { EquivalenceClasses } from "../bind/equivalence.ts";
import { orToIn } from "../bind/expression/or_to_in.ts";
import { argumentsOf, readsAround } from "../bind/query/query_walk.ts";
import { expressionsOfCall, formOfOrder, sameOrder } from "../bind/query/window_walk.ts";
import { columnIdsIn, conjunctionOf, isVolatile, mayFail } from "../bind/walk.ts";
import { ColumnReaders, type Condition, conditionOf, expressionsOf } from "./conditions.ts";
import { areNever, foldedConditions, isConditionOnce } from "./folding.ts";
import { isPlainJoin, planInnerJoins } from "./inner_joins.ts";
import { columnsOf } from "./join_keys.ts";
import { areGroupsCheaper } from "./lateral_choice.ts";
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
import { factored } from "./predicate_inference.ts";
import { withoutLateralRows } from "./pulled_up.ts";
import { restricted } from "./pushed_down.ts";
import { withoutIdleLeftJoins } from "./rejected_nulls.ts";
import { planRuledTable } from "./ruled_table.ts";
import { isExistence, semiJoined } from "./semi_joins.ts";
import { planTable } from "./table_scan.ts";
import { withWantedRows } from "./wanted_rows.ts";

/** Plans one query block. */
export function planSelect(given: BoundSelect): QueryPlan {
  const joined = withoutLateralRows(given, (lateral) =>
    areGroupsCheaper(lateral, given.where, planWhole),
  );
  const select = withWantedRows(withoutIdleLeftJoins(joined));
  const readers = new ColumnReaders(neededColumns(select));
  const on = new Map<BoundFrom, readonly Condition[]>();
  const folded = foldedConditions(select.where);
  const once = folded.filter(isConditionOnce);
  const where = without(folded, once).flatMap(rewritten);
  for (const condition of where) readers.open(condition);
  addConditionsOfFrom(select.from, on);
  takeOnce(select.from, on, once);
  for (const conditions of on.values()) for (const each of conditions) readers.open(each);
  const state: PlanningState = {
    readers,
    on,
    // Sorting a row, or comparing it with others, takes a microsecond or more. Plans with such
    // work therefore use short batches.
    isBulk: select.isAggregated && !select.aggregates.some(({ isDistinct }) => isDistinct),
    // If a block is read repeatedly, a join would read the query of a membership test each time. A
    // subquery reads this query only once.
    isReadAgain: holdsMembership(where, on) && (readsAround(select) || readsWorking(select.from)),
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

/** Whether WHERE or the rule of any table contains a membership test. */
function holdsMembership(
  where: readonly Condition[],
  on: ReadonlyMap<BoundFrom, readonly Condition[]>,
): boolean {
  if (where.some(isMember)) return true;
  for (const [{ kind }, rule] of on) if (kind === "relation" && rule.some(isMember)) return true;
  return false;
}

/**
 * Rewrites the alternatives of an OR: collects equalities into lists, and factors out conjuncts
 * that all alternatives share.
 */
function rewritten(condition: Condition): Condition | readonly Condition[] {
  const { kind } = condition.expression;
  if (kind !== "or" && kind !== "not") return condition;
  return factored(orToIn(condition.expression)).map(conditionOf);
}

/**
 * Adds the conditions in ON and the rules of tables, keyed by the FROM node to which they belong.
 */
function addConditionsOfFrom(
  from: BoundFrom | undefined,
  into: Map<BoundFrom, readonly Condition[]>,
): void {
  if (from === undefined) return;
  if (from.kind === "relation") {
    const { relation } = from;
    const rule = relation.kind === "table" ? relation.rule : undefined;
    if (rule !== undefined) into.set(from, foldedConditions(rule).flatMap(rewritten));
    return;
  }
  into.set(from, foldedConditions(from.condition));
  addConditionsOfFrom(from.left, into);
  addConditionsOfFrom(from.right, into);
}

function readsWorking(from: BoundFrom | undefined): boolean {
  if (from === undefined) return false;
  if (from.kind === "relation") return from.relation.kind === "working";
  return readsWorking(from.left) || readsWorking(from.right);
}

/**
 * Returns a condition of an inner join that no pair of rows can satisfy, or undefined if there is
 * no such condition.
 */
function neverJoined(
  from: BoundFrom | undefined,
  on: ReadonlyMap<BoundFrom, readonly Condition[]>,
): BoundExpression | undefined {
  if (from?.kind !== "join" || !isPlainJoin(from)) return undefined;
  if (areNever(on.get(from) ?? [])) return from.condition;
  return neverJoined(from.left, on) ?? neverJoined(from.right, on);
}

/**
 * Removes and returns the conditions of inner joins that have the same value for all pairs of
 * rows.
 */
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

/**
 * Replaces each relation whose rows are not needed with an empty relation, which is never read.
 */
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
  if (from.kind === "relation") {
    const { relation } = from;
    const rule = state.on.get(from);
    if (rule === undefined || relation.kind !== "table") {
      return planRelation(relation, conditions, state);
    }
    return planRuledTable(relation, { conditions, rule }, state);
  }
  if (from.isBeside === true) return planBeside(from, conditions, state);
  if (from.outerReferences !== undefined) return planLateral(from, conditions, state);
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

/**
 * Plans the EXISTS tests of a block. They come last, so that they run only for rows that satisfy
 * all other conditions.
 */
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
    case "changes": {
      const columns = stillRead(relation.columns, state);
      const positions = columns.map((column) => relation.columns.indexOf(column));
      const { changes } = relation;
      return tested({ kind: "changes", changes, positions, columns }, conditions, state);
    }
    case "set": {
      const { columns, isAll, operator } = relation;
      // INTERSECT and EXCEPT drop rows, and an error in a condition must not reveal a dropped row.
      const movable =
        operator === "union" ? conditions : conditions.filter((each) => !mayFail(each.expression));
      const ofLeft = restricted(relation.left, columns, movable);
      const ofRight = restricted(relation.right, columns, movable);
      let left = planWhole(ofLeft.query);
      let right = planWhole(ofRight.query);
      if (operator === "union" && !isAll) {
        left = withEquals(left);
        right = withEquals(right);
      }
      const set: PlanNode = { kind: "set", operator, isAll, left, right, columns };
      const moved = conditions.filter((each) => ofLeft.moved.has(each) && ofRight.moved.has(each));
      state.readers.close(moved);
      return tested(set, without(conditions, moved), state);
    }
    case "cte": {
      const { alias, columns, cte } = relation;
      const { count } = cte.references;
      // A WITH entry that is read only once is equivalent to a derived table.
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
 * Plans one side of a UNION. If this side is itself a UNION, it need not remove duplicates. If it
 * did, a chain of UNIONs would compare and store the rows of its first query again for each later
 * query.
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
  const { moved, query } = restricted(relation.query, relation.columns, conditions);
  state.readers.close([...moved]);
  // Unused outputs of a derived table are not computed, unless they have side effects or determine
  // which rows are duplicates.
  const isWhole = query.distinct === "all";
  const isNeeded = query.outputs.map(({ expression }, position) => {
    const id = defined(
      relation.columns[position],
      "planner: output of a derived table has no column",
    ).id;
    return isWhole || state.readers.isRead(id) || isVolatile(expression);
  });
  const outputs = query.outputs.filter((_, position) => isNeeded[position] === true);
  const columns = relation.columns.filter((_, position) => isNeeded[position] === true);
  const { root } = planSelect({ ...query, outputs });
  const input: PlanNode = {
    kind: "project",
    input: root,
    expressions: columns.map((column, position) => columnValue(root.columns[position] ?? column)),
    columns,
  };
  return tested(input, without(conditions, [...moved]), state);
}

const PLANS = new WeakMap<BoundCte, PlanNode>();

/** Returns the plan of a WITH entry. Every call returns the same object. */
export function planOfCte(cte: BoundCte): PlanNode {
  const known = PLANS.get(cte) ?? planWhole(cte.query);
  PLANS.set(cte, known);
  return known;
}

/** Plans a query, and drops columns that are not outputs. */
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

/** Returns the columns that clauses other than WHERE and ON read. */
function neededColumns(select: BoundSelect): ReadonlySet<number> {
  const needed = new Set<number>();
  const add = (expression: BoundExpression | undefined): void => {
    if (expression !== undefined) columnIdsIn(expression, needed);
  };
  addJoins(select.from, add);
  add(select.having);
  for (const call of select.windows) for (const value of expressionsOfCall(call)) add(value);
  for (const argument of argumentsOf(select.expansions)) add(argument);
  for (const { expression } of select.groupBy) add(expression);
  for (const { expression } of select.outputs) add(expression);
  for (const { expression } of select.orderBy) add(expression);
  if (typeof select.distinct === "object") for (const on of select.distinct.on) add(on);
  for (const { argument, extra, filter, orderBy } of select.aggregates) {
    add(argument);
    add(filter);
    for (const expression of extra) add(expression);
    for (const { expression } of orderBy) add(expression);
  }
  return needed;
}

/** Returns the expressions of a VALUES list that is computed for each row of another relation. */
function cellsBeside({ isBeside, right }: Extract<BoundFrom, { kind: "join" }>): BoundExpression[] {
  if (isBeside !== true || right.kind !== "relation") return [];
  return right.relation.kind === "values" ? right.relation.rows.flat() : [];
}

/**
 * Adds the columns that LATERAL items read from preceding items, and the columns that full joins
 * merge.
 */
function addJoins(
  from: BoundFrom | undefined,
  add: (expression: BoundExpression | undefined) => void,
): void {
  if (from?.kind !== "join") return;
  for (const { value } of from.outerReferences ?? []) add(value);
  for (const cell of cellsBeside(from)) add(cell);
  for (const { expression } of from.merged ?? []) add(expression);
  addJoins(from.left, add);
  addJoins(from.right, add);
}

/**
 * Creates one node for all window calls with the same rows in the same order, and drops columns
 * that are no longer read.
 */
function planWindows(select: BoundSelect, input: PlanNode): PlanNode {
  if (select.windows.length === 0) return input;
  const read = columnsOfOutputs(select);
  const groups = groupsOf(select.windows.filter(({ column }) => read.has(column.id)));
  // A window node stores its rows together with the results of earlier nodes, so potentially large
  // results are computed last.
  const ordered = groups.toSorted((left, right) => longness(left) - longness(right));
  const lastReader = lastReaders(ordered);
  let node = input;
  for (const [i, calls] of ordered.entries()) {
    const kept = node.columns.filter(({ id }) => read.has(id) || (lastReader.get(id) ?? 0) > i);
    node = {
      kind: "window",
      input: node,
      calls,
      columns: [...kept, ...calls.map(({ column }) => column)],
    };
  }
  return node;
}

function groupsOf(calls: readonly BoundWindowCall[]): readonly BoundWindowCall[][] {
  const orders = new EquivalenceClasses({ formOf: formOfOrder, areEquivalent: sameOrder });
  const groups = new Map<BoundWindow, BoundWindowCall[]>();
  for (const call of calls) {
    const known = orders.find(call.window);
    if (known !== undefined) {
      groups.get(known)?.push(call);
      continue;
    }
    orders.add(call.window);
    groups.set(call.window, [call]);
  }
  return [...groups.values()];
}

/**
 * Returns the index of the last group of window calls that reads each column, keyed by column id.
 */
function lastReaders(groups: readonly (readonly BoundWindowCall[])[]): Map<number, number> {
  const last = new Map<number, number>();
  for (const [i, calls] of groups.entries()) {
    for (const call of calls) {
      for (const expression of expressionsOfCall(call)) {
        for (const id of columnIdsIn(expression)) last.set(id, i);
      }
    }
  }
  return last;
}

/**
 * Returns 1 if the result of a window call may be as large as all rows together, and 0 otherwise.
 */
function longness(calls: readonly BoundWindowCall[]): number {
  return calls.some(({ form }) => form.kind === "aggregate" && form.aggregate.gathers === true)
    ? 1
    : 0;
}

/** Returns the columns that the select list, its table functions, DISTINCT and ORDER BY read. */
function columnsOfOutputs(select: BoundSelect): Set<number> {
  const { distinct, orderBy, outputs } = select;
  const read = new Set<number>();
  for (const argument of argumentsOf(select.expansions)) columnIdsIn(argument, read);
  for (const { expression } of [...outputs, ...orderBy]) columnIdsIn(expression, read);
  if (typeof distinct === "object") for (const on of distinct.on) columnIdsIn(on, read);
  return read;
}
