/**
 * Rewrites equalities on one column that are joined by OR as a single IN, which looks up a row's
 * value in a set instead of comparing it with each constant.
 *
 *     a = 1 OR a = 2 OR b > 3 OR a = 4    =    a IN (1, 2, 4) OR b > 3
 *     (a, b) IN ((1, 2), (3, 4), …)       =    rows that are looked up by both values
 *
 * Evaluating tens of thousands of equalities one by one would exceed a statement's time limit.
 */
import { BOOLEAN, sameType } from "../../../types/mod.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { conjunctsOf, isSure, isVolatile, readsColumn } from "../walk.ts";

/**
 * The minimum number of equalities to rewrite. Comparing fewer values one by one is just as quick.
 */
const EQUALITIES_MIN = 4;

interface Equality {
  readonly column: BoundExpression;
  readonly value: BoundExpression;
}

/** A group of equalities on one column that are compared as the same type. */
interface EqualityGroup {
  readonly column: BoundExpression;
  readonly values: BoundExpression[];
  /** The position of the group's first equality among the operands of the OR. */
  readonly place: number;
}

/** A group of equalities on the same columns that are compared as the same types. */
interface RowGroup {
  readonly columns: readonly BoundExpression[];
  readonly values: (readonly BoundExpression[])[];
  /** The position of the group's first equality among the operands of the OR. */
  readonly place: number;
}

/**
 * Returns the rewritten condition. Any condition other than an OR with many equalities is returned
 * unchanged.
 */
export function orToIn(condition: BoundExpression): BoundExpression {
  if (condition.kind === "not") {
    const operand = orToIn(condition.operand);
    return operand === condition.operand ? condition : { ...condition, operand };
  }
  if (condition.kind !== "or" || condition.operands.length < EQUALITIES_MIN) return condition;
  const groups = new Map<number, EqualityGroup>();
  const rows = new Map<string, RowGroup>();
  const grouped = condition.operands.map((operand, place) =>
    operand.kind === "and" ? rowFor(operand, rows, place) : groupFor(operand, groups, place),
  );
  const operands = condition.operands.flatMap((operand, place) => {
    const group = grouped[place];
    if (group === undefined || group.values.length < EQUALITIES_MIN) return [operand];
    if (group.place !== place) return [];
    return ["columns" in group ? rowInOf(group) : inOf(group)];
  });
  const [only] = operands;
  return operands.length === 1 && only !== undefined ? only : { ...condition, operands };
}

/**
 * Adds an AND of equalities on several columns to the group for these columns. Returns undefined
 * for any other AND.
 */
function rowFor(
  condition: BoundExpression,
  rows: Map<string, RowGroup>,
  place: number,
): RowGroup | undefined {
  const found: { readonly sign: string; readonly equality: Equality }[] = [];
  for (const each of conjunctsOf(condition)) {
    const equality = equalityOf(each);
    if (equality === undefined) return undefined;
    const { column } = equality;
    // The key contains the type, because a column may be cast to a different type in each
    // comparison.
    const sign = `${columnIdIn(column)} ${column.kind} ${JSON.stringify(column.type)}`;
    if (found.some((other) => other.sign === sign)) return undefined;
    found.push({ sign, equality });
  }
  found.sort((left, right) => (left.sign < right.sign ? -1 : 1));
  const signs = found.map(({ sign }) => sign).join();
  const columns = found.map(({ equality }) => equality.column);
  const group = rows.get(signs) ?? { columns, values: [], place };
  rows.set(signs, group);
  group.values.push(found.map(({ equality }) => equality.value));
  return group;
}

function rowInOf({ columns, values }: RowGroup): BoundExpression {
  return { kind: "row in", type: BOOLEAN, operands: columns, rows: values };
}

/** Adds an equality to the group for its column. Returns undefined for any other condition. */
function groupFor(
  condition: BoundExpression,
  groups: Map<number, EqualityGroup>,
  place: number,
): EqualityGroup | undefined {
  const equality = equalityOf(condition);
  const columnId = equality === undefined ? undefined : columnIdIn(equality.column);
  if (equality === undefined || columnId === undefined) return undefined;
  const { column, value } = equality;
  const group = groups.get(columnId) ?? { column, values: [], place };
  // A column may be cast to a different type in each comparison, but a list has a single type.
  if (group.column.kind !== column.kind || !sameType(group.column.type, column.type)) {
    return undefined;
  }
  groups.set(columnId, group);
  group.values.push(value);
  return group;
}

function inOf({ column, values }: EqualityGroup): BoundExpression {
  return {
    kind: "in",
    type: BOOLEAN,
    operand: column,
    items: values.filter(({ kind }) => kind !== "constant"),
    constants: values.flatMap((value) => (value.kind === "constant" ? [value.value] : [])),
    negated: false,
  };
}

/** Matches `column = value` if the value reads no columns. */
function equalityOf(condition: BoundExpression): Equality | undefined {
  if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
  const { left, right } = condition;
  if (columnIdIn(left) !== undefined && isFixed(right)) return { column: left, value: right };
  if (columnIdIn(right) !== undefined && isFixed(left)) return { column: right, value: left };
  return undefined;
}

/**
 * Returns the id of the column that an expression reads, even if the column is cast to another
 * type; undefined for any other expression.
 */
function columnIdIn(expression: BoundExpression): number | undefined {
  if (expression.kind === "column") return expression.column.id;
  if (expression.kind !== "cast" || expression.operand.kind !== "column") return undefined;
  return expression.operand.column.id;
}

function isFixed(value: BoundExpression): boolean {
  return !readsColumn(value) && !isVolatile(value) && isSure(value);
}
