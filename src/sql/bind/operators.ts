/**
 * Operators: which form serves the types of the operands, and which of them have a loop of their
 * own in the evaluator.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BOOLEAN, type DataType, isInteger, sameType, TEXT, typeName } from "../../types/mod.ts";
import type { OperatorForm } from "../functions/function.ts";
import { resolveBinary, resolvePrefix } from "../functions/operators.ts";
import type { Expr, ExprBinary, ExprUnary } from "../parse/ast.ts";
import { type Bind, notAvailable, type Place } from "./binding.ts";
import type { BoundExpression, ComparisonOperator } from "./bound.ts";
import { bindFunction } from "./calls.ts";
import { castTo } from "./casts.ts";
import {
  bindDistinctFrom,
  bindIn,
  bindLike,
  bindQuantified,
  bindRowComparison,
} from "./predicates.ts";

/** Magnitude up to which whole numbers are exact in doubles. */
const WHOLE_MAX = Number.MAX_SAFE_INTEGER;

const COMPARISONS: ReadonlyMap<string, ComparisonOperator> = new Map<string, ComparisonOperator>([
  ["=", "="],
  ["!=", "<>"],
  ["<", "<"],
  ["<=", "<="],
  [">", ">"],
  [">=", ">="],
]);

export function bindBinary(expression: ExprBinary, place: Place, bind: Bind): BoundExpression {
  const { left, op, right } = expression;
  switch (op) {
    case "AND":
    case "OR":
      return bindLogic(expression, place, bind);
    case "IN":
    case "NOT IN":
      return bindIn(expression, place, bind);
    case "LIKE":
    case "NOT LIKE":
    case "ILIKE":
    case "NOT ILIKE":
    case "SIMILAR TO":
    case "NOT SIMILAR TO":
      return bindLike(expression, place, bind);
    case "IS DISTINCT FROM":
    case "IS NOT DISTINCT FROM":
      return bindDistinctFrom(expression, place, bind);
    case "AT TIME ZONE": {
      const zone = castTo(bind(right, place), { to: TEXT, mode: "implicit", node: right });
      return bindFunction({ name: "timezone", args: [zone, bind(left, place)], node: expression });
    }
    case "OVERLAPS":
      throw notAvailable(expression, "OVERLAPS");
    default:
      break;
  }
  const comparison = COMPARISONS.get(op);
  if (comparison !== undefined) {
    if (left.type === "list" || right.type === "list") {
      return bindRowComparison(expression, place, bind);
    }
    if (isQuantifier(right)) return bindQuantified(expression, place, bind);
  }
  return binaryOf(
    { op: comparison ?? op, left: bind(left, place), right: bind(right, place) },
    expression,
  );
}

/** `op ANY (…)` and `op ALL (…)` stand as calls on the right side. */
export function isQuantifier(expression: Expr): boolean {
  if (expression.type !== "call" || expression.function.schema !== undefined) return false;
  return ["any", "some", "all"].includes(expression.function.name);
}

/** AND and OR chains as one node each, so that long ones do not nest. */
function bindLogic(expression: ExprBinary, place: Place, bind: Bind): BoundExpression {
  const operands: BoundExpression[] = [];
  const visit = (node: Expr): void => {
    if (node.type === "binary" && node.op === expression.op) {
      visit(node.left);
      visit(node.right);
    } else {
      operands.push(castTo(bind(node, place), { to: BOOLEAN, mode: "implicit", node }));
    }
  };
  visit(expression);
  return { kind: expression.op === "AND" ? "and" : "or", type: BOOLEAN, operands };
}

export interface BinaryOperands {
  readonly op: string;
  readonly left: BoundExpression;
  readonly right: BoundExpression;
}

/** An operator over bound operands. @throws {DatabaseError} TYPE_MISMATCH if there is no form. */
export function binaryOf({ op, left, right }: BinaryOperands, node: Expr): BoundExpression {
  const form = resolveBinary(op, left.type, right.type);
  if (form === undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot apply ${op} to ${typeName(left.type)} and ${typeName(right.type)}`,
      { position: node._location.start, hint: "cast one side explicitly" },
    );
  }
  const [leftType = left.type, rightType = right.type] = form.operands;
  const l = castTo(left, { to: leftType, mode: "implicit", node });
  const r = castTo(right, { to: rightType, mode: "implicit", node });
  const { evaluate, result, seesNull } = form;
  const comparison = COMPARISONS.get(op === "<>" ? "!=" : op);
  if (comparison !== undefined && sameType(leftType, rightType)) {
    return { kind: "compare", type: BOOLEAN, operator: comparison, left: l, right: r, evaluate };
  }
  const magnitudeMax = arithmeticMagnitude(op, form);
  if (magnitudeMax !== undefined && (op === "+" || op === "-" || op === "*")) {
    return {
      kind: "arithmetic",
      type: result,
      operator: op,
      left: l,
      right: r,
      magnitudeMax,
      evaluate,
    };
  }
  return {
    kind: "call",
    type: result,
    name: op,
    args: [l, r],
    evaluate,
    seesNull: seesNull === true,
    volatility: "immutable",
  };
}

/** Largest result that doubles compute exactly as the form does; undefined where none is. */
function arithmeticMagnitude(op: string, { operands, result }: OperatorForm): number | undefined {
  const [left, right] = operands;
  if (left === undefined || right === undefined) return undefined;
  if (isInteger(left) && isInteger(right) && isInteger(result)) {
    if (result.kind === "smallint") return 32767;
    return result.kind === "int" ? 2147483647 : WHOLE_MAX;
  }
  if (left.kind === "double" && right.kind === "double" && result.kind === "double") {
    return Number.MAX_VALUE;
  }
  if (left.kind !== "decimal" || right.kind !== "decimal" || result.kind !== "decimal") {
    return undefined;
  }
  const scaleFits =
    op === "*"
      ? left.scale + right.scale === result.scale
      : left.scale === result.scale && right.scale === result.scale;
  return scaleFits ? Math.min(WHOLE_MAX, 10 ** result.precision - 1) : undefined;
}

const TESTS: ReadonlyMap<string, { test: "null" | "true" | "false"; negated: boolean }> = new Map([
  ["IS NULL", { test: "null", negated: false }],
  ["IS NOT NULL", { test: "null", negated: true }],
  ["IS TRUE", { test: "true", negated: false }],
  ["IS NOT TRUE", { test: "true", negated: true }],
  ["IS FALSE", { test: "false", negated: false }],
  ["IS NOT FALSE", { test: "false", negated: true }],
  ["IS UNKNOWN", { test: "null", negated: false }],
  ["IS NOT UNKNOWN", { test: "null", negated: true }],
]);

export function bindUnary(expression: ExprUnary, place: Place, bind: Bind): BoundExpression {
  const { op } = expression;
  const test = TESTS.get(op);
  if (test !== undefined) return bindTest(expression, test, place, bind);
  const operand = bind(expression.operand, place);
  if (op === "NOT") {
    const truth = castTo(operand, { to: BOOLEAN, mode: "implicit", node: expression.operand });
    return { kind: "not", type: BOOLEAN, operand: truth };
  }
  const form = resolvePrefix(op, operand.type);
  if (form === undefined) {
    throw new DatabaseError("TYPE_MISMATCH", `Cannot apply ${op} to ${typeName(operand.type)}`, {
      position: expression._location.start,
    });
  }
  const [type = operand.type] = form.operands;
  return {
    kind: "call",
    type: form.result,
    name: `prefix ${op}`,
    args: [castTo(operand, { to: type, mode: "implicit", node: expression })],
    evaluate: form.evaluate,
    seesNull: form.seesNull === true,
    volatility: "immutable",
  };
}

function bindTest(
  expression: ExprUnary,
  { test, negated }: { test: "null" | "true" | "false"; negated: boolean },
  place: Place,
  bind: Bind,
): BoundExpression {
  const { op, operand } = expression;
  if (operand.type === "list" && (op === "IS NULL" || op === "IS NOT NULL")) {
    // A row is NULL when all its fields are, and NOT NULL when none is.
    const operands = operand.expressions.map((field): BoundExpression => {
      return { kind: "is", type: BOOLEAN, test, negated, operand: bind(field, place) };
    });
    return { kind: "and", type: BOOLEAN, operands };
  }
  const bound = bind(operand, place);
  const needsBoolean = op !== "IS NULL" && op !== "IS NOT NULL";
  const inner = needsBoolean
    ? castTo(bound, { to: BOOLEAN, mode: "implicit", node: operand })
    : bound;
  return { kind: "is", type: BOOLEAN, test, negated, operand: inner };
}

/** The type of array elements, or undefined for another type. */
export function elementOf(type: DataType): DataType | undefined {
  return type.kind === "array" ? type.element : undefined;
}
