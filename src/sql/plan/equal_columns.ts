/**
 * Finds columns that are equal because of the equalities in inner joins, directly or through other
 * columns.
 *
 *     a.id = b.id AND a.id = c.id AND a.id = 5     ⟹     b.id = c.id, b.id = 5, c.id = 5
 *
 * The inferred equalities allow joining b with c before a, and reading each table by the constant.
 * Moreover, a join needs to compare only one pair of equal columns instead of all pairs.
 */

import { BOOLEAN, isCollated, sameType } from "../../types/mod.ts";
import type { BoundColumn, BoundComparison, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { hasSubquery, isSure, isVolatile, readsColumn } from "../bind/walk.ts";
import type { Condition } from "./conditions.ts";

export interface EqualColumns {
  readonly members: readonly Member[];
  /** The conditions that make the columns of a set equal. */
  readonly conditions: readonly Condition[];
  /** Compares two values of the columns' type. */
  readonly evaluate: BoundComparison["evaluate"];
}

export interface Member {
  readonly column: BoundColumn;
  /** The index of the joined relation that the column belongs to. */
  readonly leaf: number;
}

/**
 * The maximum size of a set for which comparisons are inferred. In larger sets, only the
 * comparisons in the statement are used.
 */
const MEMBERS_MAX = 64;

/** Finds the sets of equal columns. Each set has at least two columns. */
export function equalColumns(
  conditions: readonly Condition[],
  leafById: ReadonlyMap<number, number>,
): readonly EqualColumns[] {
  const pairs: EqualPair[] = [];
  for (const condition of conditions) {
    const pair = pairIn(condition);
    if (pair !== undefined) pairs.push(pair);
  }
  const sets: EqualColumns[] = [];
  for (const group of groupsOf(pairs)) {
    if (group.columns.length <= MEMBERS_MAX) sets.push(setOf(group, leafById));
  }
  return sets;
}

function setOf(
  { columns, conditions, evaluate }: Growing,
  leafById: ReadonlyMap<number, number>,
): EqualColumns {
  const members: Member[] = [];
  for (const column of columns) {
    const leaf = leafById.get(column.id);
    if (leaf !== undefined) members.push({ column, leaf });
  }
  return { members, conditions, evaluate };
}

function groupsOf(pairs: readonly EqualPair[]): readonly Growing[] {
  // A join with a single equality is the most frequent case, in which there are no sets to merge.
  if (pairs.length < 2) return pairs.map(groupOf);
  const made: Growing[] = [];
  const groups = new Map<number, Growing>();
  for (const pair of pairs) {
    const { condition, left, right } = pair;
    const one = groups.get(left.id);
    const other = groups.get(right.id);
    const group = one ?? other;
    if (group === undefined) {
      const first = groupOf(pair);
      made.push(first);
      groups.set(left.id, first).set(right.id, first);
      continue;
    }
    group.conditions.push(condition);
    if (one !== undefined && other !== undefined) {
      if (one !== other) unite(one, other, groups);
      continue;
    }
    const column = one === undefined ? left : right;
    group.columns.push(column);
    groups.set(column.id, group);
  }
  return made.filter((group) => groups.get(group.columns[0]?.id ?? 0) === group);
}

/** Merges two sets of equal columns by moving the smaller set into the larger one. */
function unite(one: Growing, other: Growing, groups: Map<number, Growing>): void {
  const [large, small] = one.columns.length < other.columns.length ? [other, one] : [one, other];
  large.columns.push(...small.columns);
  large.conditions.push(...small.conditions);
  for (const { id } of small.columns) groups.set(id, large);
}

/** A set of equal columns under construction. */
interface Growing {
  readonly columns: BoundColumn[];
  readonly conditions: Condition[];
  readonly evaluate: BoundComparison["evaluate"];
}

function groupOf({ condition, evaluate, left, right }: EqualPair): Growing {
  return { columns: [left, right], conditions: [condition], evaluate };
}

interface EqualPair {
  readonly condition: Condition;
  readonly left: BoundColumn;
  readonly right: BoundColumn;
  readonly evaluate: BoundComparison["evaluate"];
}

function pairIn(condition: Condition): EqualPair | undefined {
  const { columnIds, expression } = condition;
  if (columnIds.length !== 2 || expression.kind !== "compare") return undefined;
  const { evaluate, left, operator, right } = expression;
  if (operator !== "=" || left.kind !== "column" || right.kind !== "column") return undefined;
  if (!sameType(left.type, right.type) || isCollated(left.type)) return undefined;
  return { condition, left: left.column, right: right.column, evaluate };
}

/** Returns the condition that two columns of a set are equal. */
export function equalityOf(
  left: Member,
  right: Member,
  { evaluate }: EqualColumns,
): BoundComparison {
  return {
    kind: "compare",
    type: BOOLEAN,
    operator: "=",
    left: columnValue(left.column),
    right: columnValue(right.column),
    evaluate,
  };
}

/** An inferred condition, and the index of the relation that it can be tested on. */
export interface Following {
  readonly leaf: number;
  readonly expression: BoundExpression;
}

/**
 * Returns the conditions on single relations that follow from the sets of equal columns. Each
 * condition of the statement is examined once.
 */
export function followingOf(
  sets: readonly EqualColumns[],
  conditions: readonly Condition[],
): readonly Following[] {
  const following: Following[] = [];
  if (sets.length === 0) return following;
  let fixing: Map<number, BoundExpression> | undefined;
  for (const { columnIds, expression } of conditions) {
    const id = columnIds[0];
    if (id !== undefined && columnIds.length === 1 && isFixing(expression)) {
      fixing ??= new Map();
      fixing.set(id, expression);
    }
  }
  for (const equal of sets) {
    if (equal.members.length > 2) addWithinLeaves(equal, following);
    if (fixing !== undefined) addFixed(equal, fixing, following);
  }
  return following;
}

/**
 * Adds equalities between two columns of the same relation that are equal through a column of
 * another relation.
 */
function addWithinLeaves(equal: EqualColumns, into: Following[]): void {
  const firsts = new Map<number, Member>();
  for (const member of equal.members) {
    const first = firsts.get(member.leaf);
    if (first === undefined) firsts.set(member.leaf, member);
    else into.push({ leaf: member.leaf, expression: equalityOf(first, member, equal) });
  }
}

/**
 * For a condition that compares a column of a set with constants, adds the same condition on all
 * other columns of the set.
 */
function addFixed(
  { members }: EqualColumns,
  fixing: ReadonlyMap<number, BoundExpression>,
  into: Following[],
): void {
  const fixed = members.find(({ column }) => fixing.has(column.id));
  const expression = fixed === undefined ? undefined : fixing.get(fixed.column.id);
  if (expression === undefined) return;
  for (const member of members) {
    const said = member === fixed ? undefined : saidOf(expression, member.column);
    if (said !== undefined) into.push({ leaf: member.leaf, expression: said });
  }
}

function isFixing(expression: BoundExpression): boolean {
  if (expression.kind === "in") {
    const { items, list, negated, operand } = expression;
    if (negated || operand.kind !== "column") return false;
    return items.concat(list ?? []).every(isFixed);
  }
  if (expression.kind !== "compare" || expression.operator !== "=") return false;
  const { left, right } = expression;
  return (left.kind === "column" && isFixed(right)) || (right.kind === "column" && isFixed(left));
}

function isFixed(value: BoundExpression): boolean {
  if (value.kind === "slot" || value.kind === "constant") return true;
  return !readsColumn(value) && !isVolatile(value) && !hasSubquery(value) && isSure(value);
}

/**
 * Returns a condition with its column replaced by a different one, or undefined for a kind of
 * condition that is not supported.
 */
function saidOf(expression: BoundExpression, column: BoundColumn): BoundExpression | undefined {
  const value = columnValue(column);
  if (expression.kind === "in") return { ...expression, operand: value };
  if (expression.kind !== "compare") return undefined;
  return expression.left.kind === "column"
    ? { ...expression, left: value }
    : { ...expression, right: value };
}
