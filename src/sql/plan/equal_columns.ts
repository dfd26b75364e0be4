/**
 * Finds columns that the equalities of inner joins make equal, directly or through other columns.
 *
 *     a.id = b.id AND a.id = c.id AND a.id = 5     ⟹     b.id = c.id, b.id = 5, c.id = 5
 *
 * This allows b and c to be joined before a, and each table to be read by the constant. A join also
 * compares only one pair of equal columns instead of all of them.
 */
import { BOOLEAN, sameType } from "../../types/mod.ts";
import type { BoundColumn, BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { hasSubquery, isVolatile, readsColumn } from "../bind/walk.ts";
import { isSure } from "./access.ts";
import type { Condition } from "./conditions.ts";

type Comparison = Extract<BoundExpression, { kind: "compare" }>;

export interface EqualColumns {
  readonly members: readonly Member[];
  /** The conditions that make the columns equal. */
  readonly conditions: ReadonlySet<Condition>;
  /** Compares two values of the columns' type. */
  readonly evaluate: Comparison["evaluate"];
}

export interface Member {
  readonly column: BoundColumn;
  /** The index of the joined relation that has the column. */
  readonly leaf: number;
}

/** In a larger set, only the comparisons that the statement states are made. */
const MEMBERS_MAX = 64;

/** Finds the sets of equal columns; each has at least two columns. */
export function equalColumns(
  conditions: readonly Condition[],
  leafById: ReadonlyMap<number, number>,
): EqualColumns[] {
  const groups = new Map<number, Growing>();
  for (const condition of conditions) {
    const pair = pairIn(condition.expression);
    if (pair === undefined) continue;
    const { left, right } = pair;
    const one = groups.get(left.id) ?? { columns: [left], conditions: [], pair };
    const other = groups.get(right.id) ?? { columns: [right], conditions: [], pair };
    const [large, small] = one.columns.length < other.columns.length ? [other, one] : [one, other];
    if (large !== small) {
      large.columns.push(...small.columns);
      large.conditions.push(...small.conditions);
    }
    large.conditions.push(condition);
    for (const { id } of large === small ? [left, right] : [...small.columns, left, right]) {
      groups.set(id, large);
    }
  }
  return [...new Set(groups.values())].flatMap(({ columns, conditions: said, pair }) => {
    if (columns.length > MEMBERS_MAX) return [];
    const members = columns.flatMap((column): Member[] => {
      const leaf = leafById.get(column.id);
      return leaf === undefined ? [] : [{ column, leaf }];
    });
    return [{ members, conditions: new Set(said), evaluate: pair.evaluate }];
  });
}

/** A set of equal columns under construction. */
interface Growing {
  readonly columns: BoundColumn[];
  readonly conditions: Condition[];
  readonly pair: ColumnPair;
}

interface ColumnPair {
  readonly left: BoundColumn;
  readonly right: BoundColumn;
  readonly evaluate: Comparison["evaluate"];
}

function pairIn(expression: BoundExpression): ColumnPair | undefined {
  if (expression.kind !== "compare" || expression.operator !== "=") return undefined;
  const { evaluate, left, right } = expression;
  if (left.kind !== "column" || right.kind !== "column") return undefined;
  if (left.column.id === right.column.id || !sameType(left.type, right.type)) return undefined;
  return { left: left.column, right: right.column, evaluate };
}

/** Makes the condition that two columns of a set are equal. */
export function equalityOf(left: Member, right: Member, { evaluate }: EqualColumns): Comparison {
  return {
    kind: "compare",
    type: BOOLEAN,
    operator: "=",
    left: columnValue(left.column),
    right: columnValue(right.column),
    evaluate,
  };
}

/** An implied condition, and the relation to which it applies. */
export interface Following {
  readonly leaf: number;
  readonly expression: BoundExpression;
}

/** The implied conditions on single relations, for all sets; each condition is examined once. */
export function followingOf(
  sets: readonly EqualColumns[],
  conditions: readonly Condition[],
): readonly Following[] {
  const fixing = new Map<number, BoundExpression>();
  for (const { columnIds, expression } of sets.length === 0 ? [] : conditions) {
    const [id] = columnIds;
    if (columnIds.length === 1 && id !== undefined && isFixing(expression)) {
      fixing.set(id, expression);
    }
  }
  return sets.flatMap((equal) => [...withinLeaves(equal), ...fixedBy(equal, fixing)]);
}

/** Two columns of one relation that are equal through a column of another. */
function withinLeaves(equal: EqualColumns): Following[] {
  const firsts = new Map<number, Member>();
  return equal.members.flatMap((member) => {
    const first = firsts.get(member.leaf);
    if (first === undefined) {
      firsts.set(member.leaf, member);
      return [];
    }
    return [{ leaf: member.leaf, expression: equalityOf(first, member, equal) }];
  });
}

/** Applies a constant, or a list of constants, for one of the columns to all the others. */
function fixedBy(
  { members }: EqualColumns,
  fixing: ReadonlyMap<number, BoundExpression>,
): Following[] {
  const fixed = members.find(({ column }) => fixing.has(column.id));
  const expression = fixed === undefined ? undefined : fixing.get(fixed.column.id);
  if (expression === undefined) return [];
  return members.flatMap((member) => {
    const said = member === fixed ? undefined : saidOf(expression, member.column);
    return said === undefined ? [] : [{ leaf: member.leaf, expression: said }];
  });
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
  return !readsColumn(value) && !isVolatile(value) && !hasSubquery(value) && isSure(value);
}

/** The same condition applied to another column. */
function saidOf(expression: BoundExpression, column: BoundColumn): BoundExpression | undefined {
  const value = columnValue(column);
  if (expression.kind === "in") return { ...expression, operand: value };
  if (expression.kind !== "compare") return undefined;
  return expression.left.kind === "column"
    ? { ...expression, left: value }
    : { ...expression, right: value };
}
