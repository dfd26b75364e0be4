/**
 * Defines comparison operators. Both operands are cast to their common type and compared in the
 * order of that type.
 */
import {
  BOOLEAN,
  type Comparator,
  comparatorFor,
  comparedTextType,
  comparedType,
  type DataType,
  DOUBLE,
  hasOrder,
  INTERVAL,
  isCollatable,
  isNumeric,
  JSONB,
  unbounded,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { isSpan } from "../base/operator_form.ts";

const TESTS: ReadonlyMap<string, (order: number) => boolean> = new Map([
  ["=", (order: number) => order === 0],
  ["<>", (order: number) => order !== 0],
  ["!=", (order: number) => order !== 0],
  ["<", (order: number) => order < 0],
  ["<=", (order: number) => order <= 0],
  [">", (order: number) => order > 0],
  [">=", (order: number) => order >= 0],
]);

export function resolveComparison(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  const test = TESTS.get(op);
  if (test !== undefined) {
    const comparison = comparisonOf(op, left, right);
    if (comparison === undefined) return undefined;
    const { operands, compare } = comparison;
    return {
      operands,
      result: BOOLEAN,
      evaluate: (values) => test(compare(values[0] ?? null, values[1] ?? null)),
    };
  }
  if (op === "IS DISTINCT FROM" || op === "IS NOT DISTINCT FROM") {
    return distinctForm(left, right, op === "IS DISTINCT FROM");
  }
  return undefined;
}

function distinctForm(
  left: DataType,
  right: DataType,
  whenDistinct: boolean,
): OperatorForm | undefined {
  const comparison = comparisonOf("=", left, right);
  if (comparison === undefined) return undefined;
  const { operands, compare } = comparison;
  return {
    operands,
    result: BOOLEAN,
    seesNull: true,
    evaluate: ([l = null, r = null]) => {
      const isSame = l === null || r === null ? l === r : compare(l, r) === 0;
      return isSame !== whenDistinct;
    },
  };
}

interface OperandComparison {
  readonly operands: readonly [DataType, DataType];
  readonly compare: Comparator;
}

/**
 * Returns the type to which two operands are cast for a comparison, or undefined if they cannot be
 * compared.
 */
function comparisonOf(op: string, left: DataType, right: DataType): OperandComparison | undefined {
  const type = typeOfComparison(op, left, right);
  if (type === undefined) return undefined;
  return { operands: [type, type], compare: comparatorFor(type) };
}

function typeOfComparison(op: string, left: DataType, right: DataType): DataType | undefined {
  const type = comparedType([left, right]);
  if (type === undefined && isSpan(left) && isSpan(right)) return INTERVAL;
  if (type !== undefined && !isComparable(op, type)) return undefined;
  // JSON documents and file references are compared by value.
  if (type?.kind === "json" || type?.kind === "file") return JSONB;
  if (type !== undefined && isCollatable(type)) {
    return comparedTextType(type.kind === "text" ? unbounded(type) : type, {
      isOrder: ORDERS.has(op),
    });
  }
  // A FLOAT is compared with any other numeric type in DOUBLE, which represents both.
  if (type?.kind === "float" && left.kind !== right.kind && isBothNumeric(left, right)) {
    return DOUBLE;
  }
  return type;
}

/** Whether an operator can compare values of a type. */
function isComparable(op: string, type: DataType): boolean {
  if (type.kind === "jsonpath" || !hasOrder(type)) return false;
  // As in PostgreSQL, XIDs have no order, because they wrap around.
  return type.kind !== "xid" || !ORDERS.has(op);
}

const ORDERS: ReadonlySet<string> = new Set(["<", "<=", ">", ">="]);

function isBothNumeric(left: DataType, right: DataType): boolean {
  return isNumeric(left) && isNumeric(right);
}
