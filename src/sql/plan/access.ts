/**
 * How a table is reached: which conditions fix its primary key, and which bound single columns.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import { isInteger } from "../../types/mod.ts";
import { MIRRORED } from "../bind/binary_forms.ts";
import type { BoundExpression, ComparisonOperator } from "../bind/bound.ts";
import { isVolatile, readsColumn } from "../bind/walk.ts";
import type { Condition } from "./conditions.ts";
import type { PlannedRange } from "./plan.ts";

export interface Access {
  /** How to look the one row up, when the conditions fix the whole primary key. */
  readonly lookup: KeyAccess | undefined;
  readonly ranges: readonly PlannedRange[];
}

export interface KeyAccess {
  /** In key order. */
  readonly key: readonly BoundExpression[];
  /** The conditions that the key says: a row that is found satisfies them. */
  readonly said: readonly Condition[];
}

/** A condition of the form `column operator value`, the value without columns. */
interface Bound {
  readonly columnId: number;
  readonly operator: ComparisonOperator;
  readonly value: BoundExpression;
}

interface BoundOf {
  readonly bound: Bound;
  readonly condition: Condition;
}

/** Reads the access path out of conditions that all must hold. */
export function accessOf(table: TableEntry, conditions: readonly Condition[]): Access {
  const bounds: BoundOf[] = [];
  const ranges: PlannedRange[] = [];
  for (const condition of conditions) {
    const bound = boundIn(condition.expression);
    if (bound === undefined) continue;
    bounds.push({ bound, condition });
    const range = isRangeType(bound.value) ? rangeOf(bound) : undefined;
    if (range !== undefined) ranges.push(range);
  }
  return { lookup: keyAccessOf(table, bounds), ranges };
}

function rangeOf({ columnId, operator, value }: Bound): PlannedRange | undefined {
  switch (operator) {
    case "=":
      return { columnId, min: value, max: value };
    case ">":
    case ">=":
      return { columnId, min: value, max: undefined };
    case "<":
    case "<=":
      return { columnId, min: undefined, max: value };
    default:
      return undefined;
  }
}

function keyAccessOf(
  { primaryKey }: TableEntry,
  bounds: readonly BoundOf[],
): KeyAccess | undefined {
  if (primaryKey.length === 0 || bounds.length < primaryKey.length) return undefined;
  const key: BoundExpression[] = [];
  const said: Condition[] = [];
  for (const columnId of primaryKey) {
    const fixing = bounds.find(
      ({ bound }) => bound.columnId === columnId && bound.operator === "=",
    );
    if (fixing === undefined) return undefined;
    key.push(fixing.bound.value);
    said.push(fixing.condition);
  }
  return { key, said };
}

/** `column = value` as storage knows the column; undefined for every other form. */
export function equalityIn(
  condition: BoundExpression,
): { columnId: number; value: BoundExpression } | undefined {
  const bound = boundIn(condition);
  return bound?.operator === "=" ? { columnId: bound.columnId, value: bound.value } : undefined;
}

function boundIn(condition: BoundExpression): Bound | undefined {
  if (condition.kind !== "compare") return undefined;
  const { left, operator, right } = condition;
  const leftColumn = storedColumnId(left);
  if (leftColumn !== undefined && isFixed(right)) {
    return { columnId: leftColumn, operator, value: right };
  }
  const rightColumn = storedColumnId(right);
  if (rightColumn !== undefined && isFixed(left)) {
    return { columnId: rightColumn, operator: MIRRORED[operator], value: left };
  }
  return undefined;
}

/** The column under a comparison; widening an integer keeps its value, so it is seen through. */
function storedColumnId(expression: BoundExpression): number | undefined {
  if (expression.kind === "column") return expression.column.origin?.columnId;
  if (expression.kind !== "cast" || !isInteger(expression.type)) return undefined;
  const { operand } = expression;
  if (operand.kind !== "column" || !isInteger(operand.type)) return undefined;
  return operand.column.origin?.columnId;
}

function isFixed(expression: BoundExpression): boolean {
  return !readsColumn(expression) && !isVolatile(expression);
}

/** Types whose values are numbers in memory, in their order. */
function isRangeType({ type }: BoundExpression): boolean {
  switch (type.kind) {
    case "smallint":
    case "int":
    case "bigint":
    case "float":
    case "double":
    case "decimal":
    case "date":
    case "time":
    case "timestamp":
    case "datetime":
      return true;
    default:
      return false;
  }
}
