/**
 * Bound query → plan: which columns are read, where each condition is tested, what finds rows.
 *
 * - A condition goes down to the lowest place that has its columns. Below the right side of a left
 *   join it may not go, since rows without a partner must survive.
 * - Equality between the two sides of a join makes it a hash join.
 * - Conditions on the whole primary key make a scan a lookup; bounds on single columns let it skip
 *   row groups. Both keep the filter above them, so that they can only ever be too generous.
 */
import { DELETED_COLUMN_ID } from "../../storage/mod.ts";
import type {
  BoundColumn,
  BoundExpression,
  BoundFrom,
  BoundRelation,
  BoundSelect,
} from "../bind/bound.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { readsAround } from "../bind/query_walk.ts";
import { columnIdsIn, conjunctionOf, conjunctsOf, hasSubquery } from "../bind/walk.ts";
import { accessOf, type KeyAccess } from "./access.ts";
import { factored } from "./implied.ts";
import { isPlainJoin, planInnerJoins } from "./inner_joins.ts";
import { columnIdsOf, columnsOf, isOver, keysOf } from "./join_keys.ts";
import { joinConditions, neededColumns, withColumnsOf } from "./needed_columns.ts";
import { planOutputs, type QueryPlan } from "./outputs.ts";
import type { PlanNode } from "./plan.ts";
import { isExistence, isMembership, memberJoined, semiJoined } from "./semi_joins.ts";
import { planWindows } from "./window_plan.ts";

interface PlanningState {
  /** Columns that any clause reads. */
  readonly needed: ReadonlySet<number>;
  /** Columns that a clause other than WHERE and ON reads. */
  readonly neededAbove: ReadonlySet<number>;
  /** The conditions of WHERE and ON, wherever they are tested. */
  readonly conditions: readonly BoundExpression[];
  /** Nothing above wants rows one by one. */
  readonly isBulk: boolean;
  /** The block is read for each row of another query, or for each step of a recursion. */
  readonly isReadAgain: boolean;
}

/** Plans one SELECT block. */
export function planSelect(select: BoundSelect): QueryPlan {
  const neededAbove = neededColumns(select);
  const where = conjunctsOf(select.where).flatMap(factored);
  const conditions = [...where, ...joinConditions(select.from)];
  const state: PlanningState = {
    needed: withColumnsOf(conditions, neededAbove),
    neededAbove,
    conditions,
    // To be sorted, or told apart one by one, a row costs a microsecond and more: a batch stays short.
    isBulk: select.isAggregated && !select.aggregates.some(({ isDistinct }) => isDistinct),
    // What its memberships hold would be read anew each time; as subqueries they are read once.
    isReadAgain: where.some(isMembership) && (readsAround(select) || readsWorking(select.from)),
  };
  const kept = where.filter((condition) => !isExistence(condition));
  let node = where.some(isNever)
    ? nothingOf(select.from, state)
    : planFrom(select.from, kept, state);
  node = planExistences(node, where.filter(isExistence));
  if (select.isAggregated) node = planAggregate(select, node);
  node = planWindows(select, node);
  return planOutputs(select, node);
}

function readsWorking(from: BoundFrom | undefined): boolean {
  if (from === undefined) return false;
  if (from.kind === "relation") return from.relation.kind === "working";
  return readsWorking(from.left) || readsWorking(from.right);
}

/** A condition that no row satisfies, whatever it holds. */
function isNever(condition: BoundExpression): boolean {
  return condition.kind === "constant" && condition.value !== true;
}

/** In place of relations of which no row is wanted: a product of them must not be made first. */
function nothingOf(from: BoundFrom | undefined, { needed }: PlanningState): PlanNode {
  const columns = from === undefined ? [] : columnsOf(from);
  return { kind: "values", rows: [], columns: columns.filter(({ id }) => needed.has(id)) };
}

function planFrom(
  from: BoundFrom | undefined,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  if (from === undefined) return filtered({ kind: "single", columns: [] }, conditions);
  if (from.kind === "relation") return planRelation(from.relation, conditions, state);

  if (from.captures !== undefined) return planLateral(from, conditions, state);
  if (from.join === "full") return planFullJoin(from, conditions, state);

  if (isPlainJoin(from)) {
    return planInnerJoins(from, conditions, {
      planLeaf: (leaf, own) => planFrom(leaf, own, state),
      keepColumns: (node, tested) => columnsAbove(node, tested, state),
    });
  }
  return planLeftJoin(from, conditions, state);
}

/**
 * A condition of ON that names only the right side narrows the partners; one of WHERE above a left
 * join must see the rows without a partner too.
 */
function planLeftJoin(
  from: Extract<BoundFrom, { kind: "join" }>,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  const leftIds = columnIdsOf(from.left);
  const rightIds = columnIdsOf(from.right);
  const on = conjunctsOf(from.condition);
  const toRight = on.filter((condition) => isOver(condition, rightIds));
  const between = on.filter((condition) => !toRight.includes(condition));
  const toLeft = conditions.filter((condition) => isOver(condition, leftIds));
  const left = planFrom(from.left, toLeft, state);
  const right = planFrom(from.right, toRight, state);
  const join: PlanNode = {
    kind: "join",
    join: "left",
    left,
    right,
    ...keysOf(between, leftIds, rightIds),
    columns: [...left.columns, ...right.columns],
  };
  const above = conditions.filter((condition) => !toLeft.includes(condition));
  const columns = columnsAbove(join, [...on, ...toLeft], state);
  return filtered({ ...join, columns }, above);
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

/** The columns of a node that are read above it, where these conditions have been tested. */
function columnsAbove(
  node: PlanNode,
  tested: readonly BoundExpression[],
  { conditions, neededAbove }: PlanningState,
): readonly BoundColumn[] {
  const open = conditions.filter((condition) => !tested.includes(condition));
  const needed = withColumnsOf(open, neededAbove);
  return node.columns.filter(({ id }) => needed.has(id));
}

/** Rows of both sides survive without a partner, so nothing may be tested below the join. */
function planFullJoin(
  from: Extract<BoundFrom, { kind: "join" }>,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  const left = planFrom(from.left, [], state);
  const right = planFrom(from.right, [], state);
  const join: PlanNode = {
    kind: "join",
    join: "full",
    left,
    right,
    ...keysOf(conjunctsOf(from.condition), columnIdsOf(from.left), columnIdsOf(from.right)),
    columns: [...left.columns, ...right.columns],
  };
  const merged = (from.merged ?? []).filter(({ column }) => state.needed.has(column.id));
  if (merged.length === 0) return filtered(join, conditions);
  const kept = join.columns.map(columnValue);
  const project: PlanNode = {
    kind: "project",
    input: join,
    expressions: [...kept, ...merged.map(({ expression }) => expression)],
    columns: [...join.columns, ...merged.map(({ column }) => column)],
  };
  return filtered(project, conditions);
}

function planLateral(
  from: Extract<BoundFrom, { kind: "join" }>,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  const leftIds = columnIdsOf(from.left);
  const left = planFrom(
    from.left,
    conditions.filter((condition) => isOver(condition, leftIds)),
    state,
  );
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
  return filtered(
    join,
    conditions.filter((condition) => !isOver(condition, leftIds)),
  );
}

function planRelation(
  relation: BoundRelation,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  switch (relation.kind) {
    case "table":
      return planTable(relation, conditions, state);
    case "system":
      return planSystem(relation, conditions, state);
    case "values": {
      const { columns, constants, rows } = relation;
      return filtered({ kind: "values", rows, constants, columns }, conditions);
    }
    case "function": {
      const { columns, functions, hasOrdinality } = relation;
      return filtered({ kind: "function", functions, hasOrdinality, columns }, conditions);
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
      return filtered(set, conditions);
    }
    case "cte": {
      const { alias, columns, cte } = relation;
      const { count } = cte.references;
      // Read once, it is no more than a derived table.
      if (count <= 1 && !cte.isKept && !cte.isVolatile) {
        const inlined = { kind: "query", query: cte.query, alias, columns } as const;
        return planDerived(inlined, conditions, state);
      }
      return filtered({ kind: "cte", cte, columns }, conditions);
    }
    case "recursive": {
      const { columns, first, isAll, next, recursion } = relation;
      const sides = { first: planWhole(first), next: planWhole(next) };
      return filtered({ kind: "recursive", recursion, isAll, ...sides, columns }, conditions);
    }
    case "working":
      return filtered(
        { kind: "working", recursion: relation.recursion, columns: relation.columns },
        conditions,
      );
    case "query":
      return planDerived(relation, conditions, state);
  }
}

function planTable(
  relation: Extract<BoundRelation, { kind: "table" }>,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  const { lookup, ranges } = accessOf(relation.table, conditions);
  const withTombstones = state.conditions.some((c) => namesDeletedColumn(c, relation.columns));
  if (lookup !== undefined && !withTombstones) {
    return planLookup(relation, { conditions, lookup }, state);
  }
  const columns = relation.columns.filter(({ id }) => state.needed.has(id));
  const scan: PlanNode = {
    kind: "scan",
    table: relation.table,
    columns,
    ranges,
    key: undefined,
    withTombstones,
    rowCount: relation.rowCount,
    isBulk: state.isBulk,
  };
  return filtered(scan, conditions, state);
}

function planSystem(
  relation: Extract<BoundRelation, { kind: "system" }>,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  const columns = relation.columns.filter(({ id }) => state.needed.has(id));
  const positions = columns.map((column) => relation.columns.indexOf(column));
  const { name, source } = relation;
  return filtered({ kind: "system", name, source, positions, columns }, conditions);
}

function planDerived(
  relation: Extract<BoundRelation, { kind: "query" }>,
  conditions: readonly BoundExpression[],
  state: PlanningState,
): PlanNode {
  // What nobody reads is not computed, unless it decides which rows are equal.
  const isWhole = relation.query.distinct === "all";
  const isNeeded = relation.columns.map(({ id }) => isWhole || state.needed.has(id));
  const outputs = relation.query.outputs.filter((_, position) => isNeeded[position] === true);
  const columns = relation.columns.filter((_, position) => isNeeded[position] === true);
  const { root } = planSelect({ ...relation.query, outputs });
  const input: PlanNode = {
    kind: "project",
    input: root,
    expressions: columns.map((column, position) => columnValue(root.columns[position] ?? column)),
    columns,
  };
  return filtered(input, conditions);
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
  { conditions, lookup }: { conditions: readonly BoundExpression[]; lookup: KeyAccess },
  state: PlanningState,
): PlanNode {
  const { key, said } = lookup;
  const isOpen = (condition: BoundExpression): boolean => !said.has(condition);
  const needed = withColumnsOf(state.conditions.filter(isOpen), state.neededAbove);
  const scan: PlanNode = {
    kind: "scan",
    table,
    columns: columns.filter(({ id }) => needed.has(id)),
    ranges: [],
    key,
    withTombstones: false,
    rowCount,
    isBulk: false,
  };
  return filtered(scan, conditions.filter(isOpen), state);
}

function isDeletedColumn({ origin }: BoundColumn): boolean {
  return origin?.columnId === DELETED_COLUMN_ID;
}

/** Tombstones are read only where a condition of the same block names `_deleted`. */
function namesDeletedColumn(condition: BoundExpression, columns: readonly BoundColumn[]): boolean {
  if (!columns.some(isDeletedColumn)) return false;
  const used = columnIdsIn(condition);
  return columns.some((column) => isDeletedColumn(column) && used.has(column.id));
}

/** Tests conditions; columns that only they read go no further when `state` is given. */
function filtered(
  input: PlanNode,
  conditions: readonly BoundExpression[],
  state?: PlanningState,
): PlanNode {
  const memberships = state?.isReadAgain === false ? conditions.filter(isMembership) : [];
  const isMember = (condition: BoundExpression): boolean =>
    memberships.some((each) => each === condition);
  const others = conditions.filter((condition) => !isMember(condition));
  // A query that hangs on the row is asked last, about as few rows as can be.
  const isLate = (condition: BoundExpression): boolean =>
    memberships.length > 0 && hasSubquery(condition);
  const tested: BoundExpression[] = [];
  let node = input;
  const columnsNow = (at: PlanNode): readonly BoundColumn[] =>
    state === undefined ? at.columns : columnsAbove(at, tested, state);
  const test = (some: readonly BoundExpression[]): void => {
    const condition = conjunctionOf(some);
    if (condition === undefined) return;
    tested.push(...some);
    node = { kind: "filter", input: node, condition, columns: columnsNow(node) };
  };
  test(others.filter((condition) => !isLate(condition)));
  for (const membership of memberships) {
    tested.push(membership);
    const join = memberJoined(node, membership, planWhole);
    node = { ...join, columns: columnsNow(join) };
  }
  test(others.filter(isLate));
  return node;
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
