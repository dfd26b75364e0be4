/**
 * How a table is reached: which conditions fix its primary key, and which bound single columns.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import { isInteger } from "../../types/mod.ts";
import { MIRRORED } from "../bind/binary_forms.ts";
import type { BoundExpression, ComparisonOperator } from "../bind/bound.ts";
import { isVolatile, readsColumn } from "../bind/walk.ts";
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
  readonly said: ReadonlySet<BoundExpression>;
}

/** A condition of the form `column operator value`, the value without columns. */
interface Bound {
  readonly columnId: number;
  readonly operator: ComparisonOperator;
  readonly value: BoundExpression;
  readonly condition: BoundExpression;
}

/** Reads the access path out of conditions that all must hold. */
export function accessOf(table: TableEntry, conditions: readonly BoundExpression[]): Access {
  const bounds = conditions.flatMap((condition) => boundsIn(condition));
  const ranges: PlannedRange[] = [];
  for (const { columnId, operator, value } of bounds) {
    if (!isRangeType(value)) continue;
    if (operator === "=") ranges.push({ columnId, min: value, max: value });
    else if (operator === ">" || operator === ">=") {
      ranges.push({ columnId, min: value, max: undefined });
    } else if (operator === "<" || operator === "<=") {
      ranges.push({ columnId, min: undefined, max: value });
    }
  }
  return { lookup: keyAccessOf(table, bounds), ranges };
}

function keyAccessOf({ primaryKey }: TableEntry, bounds: readonly Bound[]): KeyAccess | undefined {
  const fixing = primaryKey.flatMap(
    (columnId) =>
      bounds.find((bound) => bound.columnId === columnId && bound.operator === "=") ?? [],
  );
  if (fixing.length === 0 || fixing.length < primaryKey.length) return undefined;
  return {
    key: fixing.map(({ value }) => value),
    said: new Set(fixing.map(({ condition }) => condition)),
  };
}

/** `column = value` as storage knows the column; undefined for every other form. */
export function equalityIn(
  condition: BoundExpression,
): { columnId: number; value: BoundExpression } | undefined {
  const bound = boundsIn(condition).find(({ operator }) => operator === "=");
  return bound === undefined ? undefined : { columnId: bound.columnId, value: bound.value };
}

function boundsIn(condition: BoundExpression): Bound[] {
  if (condition.kind !== "compare") return [];
  const { left, operator, right } = condition;
  const leftColumn = storedColumnId(left);
  if (leftColumn !== undefined && isFixed(right)) {
    return [{ columnId: leftColumn, operator, value: right, condition }];
  }
  const rightColumn = storedColumnId(right);
  if (rightColumn !== undefined && isFixed(left)) {
    return [{ columnId: rightColumn, operator: MIRRORED[operator], value: left, condition }];
  }
  return [];
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
