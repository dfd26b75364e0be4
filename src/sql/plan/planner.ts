/**
 * Bound query → plan: which columns are read, where each condition is tested, what finds rows.
 *
 * - A condition goes down to the lowest place that has its columns. Below the right side of a left
 *   join it may not go, since rows without a partner must survive.
 * - Equality between the two sides of a join makes it a hash join.
 * - Conditions on the whole primary key make a scan a lookup; bounds on single columns let it skip
 *   row groups. Both keep the filter above them, so that they can only ever be too generous.
 */

import { assert, defined } from "../../base/assert.ts";
import { DELETED_COLUMN_ID } from "../../storage/mod.ts";
import type { BoundFrom, BoundRelation, BoundSelect } from "../bind/bound.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { readsAround } from "../bind/query/query_walk.ts";
import { conjunctionOf, conjunctsOf, hasSubquery, isVolatile } from "../bind/walk.ts";
import { accessOf, areFewKeys, type KeyAccess, keyCountOf } from "./access.ts";
import { ColumnReaders, type Condition, conditionOf, expressionsOf } from "./conditions.ts";
import { factored } from "./implied.ts";
import { isPlainJoin, planInnerJoins } from "./inner_joins.ts";
import { type ColumnIds, columnIdsOf, columnsOf, isConditionOver, keysOf } from "./join_keys.ts";
import { gathered } from "./memberships.ts";
import { neededColumns } from "./needed_columns.ts";
import { planOutputs, type QueryPlan } from "./outputs.ts";
import type { PlanNode } from "./plan.ts";
import { isExistence, isMembership, memberJoined, semiJoined } from "./semi_joins.ts";
import { planWindows } from "./window_plan.ts";

interface PlanningState {
  /** Which columns clauses and conditions still read. */
  readonly readers: ColumnReaders;
  /** The conditions of ON, by their joins. */
  readonly on: ReadonlyMap<BoundFrom, readonly Condition[]>;
  /** Nothing above wants rows one by one. */
  readonly isBulk: boolean;
  /** The block is read for each row of another query, or for each step of a recursion. */
  readonly isReadAgain: boolean;
}

/** Plans one SELECT block. */
export function planSelect(select: BoundSelect): QueryPlan {
  const readers = new ColumnReaders(neededColumns(select));
  const on = new Map<BoundFrom, readonly Condition[]>();
  const where = conjunctsOf(select.where).map(gathered).flatMap(factored).map(conditionOf);
  for (const condition of where) readers.open(condition);
  addConditionsOfJoins(select.from, on);
  for (const conditions of on.values()) for (const each of conditions) readers.open(each);
  const state: PlanningState = {
    readers,
    on,
    // To be sorted, or told apart one by one, a row costs a microsecond and more: a batch stays short.
    isBulk: select.isAggregated && !select.aggregates.some(({ isDistinct }) => isDistinct),
    // What its memberships hold would be read anew each time; as subqueries they are read once.
    isReadAgain: where.some(isMember) && (readsAround(select) || readsWorking(select.from)),
  };
  const existences = where.filter(({ expression }) => isExistence(expression));
  const kept = existences.length === 0 ? where : where.filter((each) => !existences.includes(each));
  let node = where.some(isNever)
    ? nothingOf(select.from, state)
    : planFrom(select.from, kept, state);
  node = planExistences(node, expressionsOf(existences));
  if (select.isAggregated) node = planAggregate(select, node);
  node = planWindows(select, node);
  return planOutputs(select, node);
}

function addConditionsOfJoins(
  from: BoundFrom | undefined,
  into: Map<BoundFrom, readonly Condition[]>,
): void {
  if (from?.kind !== "join") return;
  into.set(from, conjunctsOf(from.condition).map(conditionOf));
  addConditionsOfJoins(from.left, into);
  addConditionsOfJoins(from.right, into);
}

function readsWorking(from: BoundFrom | undefined): boolean {
  if (from === undefined) return false;
  if (from.kind === "relation") return from.relation.kind === "working";
  return readsWorking(from.left) || readsWorking(from.right);
}

/** A condition that no row satisfies, whatever it holds. */
function isNever({ expression }: Condition): boolean {
  return expression.kind === "constant" && expression.value !== true;
}

function isMember({ expression }: Condition): boolean {
  return isMembership(expression);
}

/** In place of relations of which no row is wanted: a product of them must not be made first. */
function nothingOf(from: BoundFrom | undefined, state: PlanningState): PlanNode {
  const columns = from === undefined ? [] : columnsOf(from);
  return { kind: "values", rows: [], columns: stillRead(columns, state) };
}

/** Those of some columns that a clause above reads, or a condition that is still open. */
function stillRead(
  columns: readonly BoundColumn[],
  { readers }: PlanningState,
): readonly BoundColumn[] {
  return columns.filter(({ id }) => readers.isRead(id));
}

function planFrom(
  from: BoundFrom | undefined,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  if (from === undefined) return tested({ kind: "single", columns: [] }, conditions, state);
  if (from.kind === "relation") return planRelation(from.relation, conditions, state);

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

function conditionsOn(from: BoundFrom, { on }: PlanningState): readonly Condition[] {
  return defined(on.get(from), "the conditions of each join of the block are known");
}

/**
 * A condition of ON that names only the right side narrows the partners; one of WHERE above a left
 * join must see the rows without a partner too.
 */
function planLeftJoin(
  from: Extract<BoundFrom, { kind: "join" }>,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const leftIds = columnIdsOf(from.left);
  const rightIds = columnIdsOf(from.right);
  const [toRight, between] = parted(conditionsOn(from, state), rightIds);
  const [toLeft, above] = parted(conditions, leftIds);
  const left = planFrom(from.left, toLeft, state);
  const right = planFrom(from.right, toRight, state);
  const columns = [...left.columns, ...right.columns];
  const keys = keysOf(expressionsOf(between), leftIds, rightIds);
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

/** Conditions over some columns alone, and the others. */
function parted(conditions: readonly Condition[], ids: ColumnIds): [Condition[], Condition[]] {
  const over: Condition[] = [];
  const others: Condition[] = [];
  for (const each of conditions) (isConditionOver(each, ids) ? over : others).push(each);
  return [over, others];
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

/** Rows of both sides survive without a partner, so nothing may be tested below the join. */
function planFullJoin(
  from: Extract<BoundFrom, { kind: "join" }>,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const left = planFrom(from.left, [], state);
  const right = planFrom(from.right, [], state);
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

function planLateral(
  from: Extract<BoundFrom, { kind: "join" }>,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const [toLeft, above] = parted(conditions, columnIdsOf(from.left));
  const left = planFrom(from.left, toLeft, state);
  const right = planFrom(from.right, [], state);
  const join: PlanNode = {
    kind: "lateral",
    join: from.join === "left" ? "left" : "inner",
    left,
    right,
    captures: from.captures ?? [],
    condition: from.condition,
    columns: [...left.columns, ...right.columns],
  };
  state.readers.close(conditionsOn(from, state));
  return tested(join, above, state);
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
      const set: PlanNode = {
        kind: "set",
        operator,
        isAll,
        left: planWhole(relation.left),
        right: planWhole(relation.right),
        columns,
      };
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
      return tested({ kind: "cte", cte, columns }, conditions, state);
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

function planTable(
  relation: Extract<BoundRelation, { kind: "table" }>,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const { lookup, ranges, sought, textRanges } = accessOf(relation.table, conditions);
  // Tombstones are read only where a condition of the same block names `_deleted`.
  const deleted = relation.columns.find(isDeletedColumn);
  const withTombstones = deleted !== undefined && state.readers.isReadByCondition(deleted.id);
  if (lookup !== undefined && !withTombstones) {
    return planLookup(relation, { conditions, lookup }, state);
  }
  const columns = stillRead(relation.columns, state);
  // Rows are counted only for a list of keys: counting opens the files of a table.
  const isWanted =
    sought !== undefined && !withTombstones && areFewKeys(relation, keyCountOf(sought));
  const scan: PlanNode = {
    kind: "scan",
    table: relation.table,
    columns,
    ranges,
    textRanges: textRanges.length === 0 ? undefined : textRanges,
    key: undefined,
    sought: isWanted ? sought : undefined,
    withTombstones,
    rowCount: relation.rowCount,
    isBulk: state.isBulk,
  };
  return narrowed(scan, conditions, state);
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

/** Plans a query so that it yields its outputs and nothing else. */
export function planWhole(query: BoundSelect): PlanNode {
  const { outputCount, root } = planSelect(query);
  if (root.columns.length === outputCount) return root;
  const columns = root.columns.slice(0, outputCount);
  const expressions = columns.map(columnValue);
  return { kind: "project", input: root, expressions, columns };
}

/** Reads one row by its key; what the key says is not tested again. */
function planLookup(
  { columns, rowCount, table }: Extract<BoundRelation, { kind: "table" }>,
  { conditions, lookup }: { conditions: readonly Condition[]; lookup: KeyAccess },
  state: PlanningState,
): PlanNode {
  const { key, said } = lookup;
  state.readers.close(said);
  const scan: PlanNode = {
    kind: "scan",
    table,
    columns: stillRead(columns, state),
    ranges: [],
    key,
    withTombstones: false,
    rowCount,
    isBulk: false,
  };
  const rest = conditions.filter((condition) => !said.includes(condition));
  return narrowed(scan, rest, state);
}

function isDeletedColumn({ origin }: BoundColumn): boolean {
  return origin?.columnId === DELETED_COLUMN_ID;
}

function filtered(input: PlanNode, conditions: readonly BoundExpression[]): PlanNode {
  const condition = conjunctionOf(conditions);
  if (condition === undefined) return input;
  return { kind: "filter", input, condition, columns: input.columns };
}

/** Tests conditions of the block; all columns go on. */
function tested(
  input: PlanNode,
  conditions: readonly Condition[],
  { readers }: PlanningState,
): PlanNode {
  readers.close(conditions);
  return filtered(input, expressionsOf(conditions));
}

/** Tests conditions of the block; columns that only they read go no further. */
function narrowed(
  input: PlanNode,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const memberships = state.isReadAgain ? [] : conditions.filter(isMember);
  if (memberships.length === 0) return narrowedBy(input, conditions, state);
  // A query that hangs on the row is asked last, about as few rows as can be.
  const early: Condition[] = [];
  const late: Condition[] = [];
  for (const condition of conditions) {
    if (memberships.includes(condition)) continue;
    (hasSubquery(condition.expression) ? late : early).push(condition);
  }
  let node = narrowedBy(input, early, state);
  for (const membership of memberships) {
    const { expression } = membership;
    assert(isMembership(expression), "a membership stays one");
    state.readers.close([membership]);
    const join = memberJoined(node, expression, planWhole);
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
  return filtered(node, conjunctsOf(select.having));
}
