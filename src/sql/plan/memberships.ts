/**
 * Rewrites equalities of one column that are joined by OR as one membership test, which looks a row
 * up among the values instead of comparing it with each of them.
 *
 *     a = 1 OR a = 2 OR b > 3 OR a = 4    =    a IN (1, 2, 4) OR b > 3
 *     (a, b) IN ((1, 2), (3, 4), …)       =    rows that are looked up by both values
 *
 * 30,000 equalities over 100,000 rows take half a second, most of it for parsing. Evaluated one by
 * one, they would exceed the time limit of a statement.
 */
import { BOOLEAN, sameType } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctsOf, isVolatile, readsColumn } from "../bind/walk.ts";
import { isSure } from "./access.ts";

/** Fewer equalities are as soon compared. */
const EQUALITIES_MIN = 4;

interface Equality {
  readonly column: BoundExpression;
  readonly value: BoundExpression;
}

/** Equalities of one column, in one type. */
interface Group {
  readonly column: BoundExpression;
  readonly values: BoundExpression[];
  /** Where the first of them stands. */
  readonly place: number;
}

/** Equalities of several columns at once, in the same types. */
interface RowGroup {
  readonly columns: readonly BoundExpression[];
  readonly values: (readonly BoundExpression[])[];
  /** The position of the first of them. */
  readonly place: number;
}

/** The same condition; what was no OR of many equalities is returned as it is. */
export function gathered(condition: BoundExpression): BoundExpression {
  if (condition.kind === "not") {
    const operand = gathered(condition.operand);
    return operand === condition.operand ? condition : { ...condition, operand };
  }
  if (condition.kind !== "or" || condition.operands.length < EQUALITIES_MIN) return condition;
  const groups = new Map<number, Group>();
  const rows = new Map<string, RowGroup>();
  const grouped = condition.operands.map((operand, place) =>
    operand.kind === "and" ? rowFor(operand, rows, place) : groupFor(operand, groups, place),
  );
  const operands = condition.operands.flatMap((operand, place) => {
    const group = grouped[place];
    if (group === undefined || group.values.length < EQUALITIES_MIN) return [operand];
    if (group.place !== place) return [];
    return ["columns" in group ? rowMembershipOf(group) : membershipOf(group)];
  });
  const [only] = operands;
  return operands.length === 1 && only !== undefined ? only : { ...condition, operands };
}

/**
 * Adds equalities of several columns to the group of these columns; undefined for any other AND.
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
    // The same column may be compared in several types, so the type is part of the key.
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

function rowMembershipOf({ columns, values }: RowGroup): BoundExpression {
  return { kind: "row in", type: BOOLEAN, operands: columns, rows: values };
}

/** Puts an equality to those of its column; undefined for every other condition. */
function groupFor(
  condition: BoundExpression,
  groups: Map<number, Group>,
  place: number,
): Group | undefined {
  const equality = equalityOf(condition);
  const columnId = equality === undefined ? undefined : columnIdIn(equality.column);
  if (equality === undefined || columnId === undefined) return undefined;
  const { column, value } = equality;
  const group = groups.get(columnId) ?? { column, values: [], place };
  // The same column may be compared in several types.
  if (group.column.kind !== column.kind || !sameType(group.column.type, column.type)) {
    return undefined;
  }
  groups.set(columnId, group);
  group.values.push(value);
  return group;
}

function membershipOf({ column, values }: Group): BoundExpression {
  return {
    kind: "in",
    type: BOOLEAN,
    operand: column,
    items: values.filter(({ kind }) => kind !== "constant"),
    constants: values.flatMap((value) => (value.kind === "constant" ? [value.value] : [])),
    negated: false,
  };
}

/** `column = value`, the value without columns. */
function equalityOf(condition: BoundExpression): Equality | undefined {
  if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
  const { left, right } = condition;
  if (columnIdIn(left) !== undefined && isFixed(right)) return { column: left, value: right };
  if (columnIdIn(right) !== undefined && isFixed(left)) return { column: right, value: left };
  return undefined;
}

/** The column that an expression is, perhaps as another type. */
function columnIdIn(expression: BoundExpression): number | undefined {
  if (expression.kind === "column") return expression.column.id;
  if (expression.kind !== "cast" || expression.operand.kind !== "column") return undefined;
  return expression.operand.column.id;
}

function isFixed(value: BoundExpression): boolean {
  return !readsColumn(value) && !isVolatile(value) && isSure(value);
}
