/**
 * Which binder an operator has. Most are a choice among forms by the types of both operands
 * (`binary_forms.ts`); those here look at an operand before it is bound, as ANY, IN and OVERLAPS
 * do, or are a chain that would nest deeper than the stack is.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, DATETIME, TEXT, typeName } from "../../../types/mod.ts";
import { resolvePrefix } from "../../functions/operator/operators.ts";
import type { Expr, ExprBinary, ExprUnary } from "../../parse/ast/ast.ts";
import type { Bind, Place } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { withoutExpansions } from "../query/expansions.ts";
import { conjunctionOf } from "../walk.ts";
import { binaryOf, comparisonOf } from "./binary_forms.ts";
import { bindFunction } from "./call_binder.ts";
import { castTo } from "./casts.ts";
import { bindIn, bindLike, bindQuantified } from "./predicates.ts";
import { bindRowComparison } from "./row_predicates.ts";
import { bindRow } from "./row_values.ts";

function comparesRows({ left, op, right }: ExprBinary): boolean {
  if (left.type !== "list" && right.type !== "list") return false;
  return comparisonOf(op) !== undefined || op.endsWith("DISTINCT FROM");
}

export function bindBinary(expression: ExprBinary, place: Place, bind: Bind): BoundExpression {
  const { left, op, right } = expression;
  if (isQuantifier(right)) return bindQuantified(expression, place, bind);
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
    case "AT TIME ZONE":
      return bindTimeZone(expression, place, bind);
    case "OVERLAPS":
      return bindOverlaps(expression, place, bind);
    default:
      break;
  }
  if (comparesRows(expression)) return bindRowComparison(expression, place, bind);
  return binaryOf({ op, left: bind(left, place), right: bind(right, place) }, expression);
}

function bindTimeZone(expression: ExprBinary, place: Place, bind: Bind): BoundExpression {
  const { left, right } = expression;
  const zone = bind(right, place);
  const moment = bind(left, place);
  const args = [
    zone.type.kind === "interval"
      ? zone
      : castTo(zone, { to: TEXT, mode: "implicit", node: right }),
    moment.type.kind === "unknown"
      ? castTo(moment, { to: DATETIME, mode: "implicit", node: left })
      : moment,
  ];
  return bindFunction({ name: "timezone", args, node: expression });
}

/** `(start, end) OVERLAPS (start, length)`. */
function bindOverlaps(expression: ExprBinary, place: Place, bind: Bind): BoundExpression {
  const args = [expression.left, expression.right].flatMap((side) => {
    if (side.type === "list" && side.expressions.length === 2) return side.expressions;
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot run OVERLAPS: each side must be a start and an end, or a start and a length",
      { position: side._location.start, hint: "(start, end) OVERLAPS (start, end)" },
    );
  });
  const bound = args.map((argument) => bind(argument, place));
  return bindFunction({ name: "overlaps", args: bound, node: expression });
}

/** `op ANY (…)` and `op ALL (…)` stand as calls on the right side. */
function isQuantifier(expression: Expr): boolean {
  if (expression.type !== "call" || expression.function.schema !== undefined) return false;
  return ["any", "some", "all"].includes(expression.function.name);
}

/** AND and OR chains as one node each, so that long ones do not nest. */
function bindLogic(expression: ExprBinary, place: Place, bind: Bind): BoundExpression {
  const operands: BoundExpression[] = [];
  const inner = withoutExpansions(place, expression.op);
  const visit = (node: Expr): void => {
    if (node.type === "binary" && node.op === expression.op) {
      visit(node.left);
      visit(node.right);
    } else {
      operands.push(castTo(bind(node, inner), { to: BOOLEAN, mode: "implicit", node }));
    }
  };
  visit(expression);
  return { kind: expression.op === "AND" ? "and" : "or", type: BOOLEAN, operands };
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
  const isNegation = op === "NOT";
  const operand =
    op === "@"
      ? bindAbsolute(expression, place, bind)
      : bind(expression.operand, isNegation ? withoutExpansions(place, op) : place);
  if (isNegation) {
    const truth = castTo(operand, { to: BOOLEAN, mode: "implicit", node: expression.operand });
    return { kind: "not", type: BOOLEAN, operand: truth };
  }
  const form = resolvePrefix(op, operand.type);
  if (form === undefined) {
    throw new DatabaseError("TYPE_MISMATCH", `Cannot apply ${op} to ${typeName(operand.type)}`, {
      position: expression._location.start,
      hint: op === "@" ? NO_VARIABLES : undefined,
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

const NO_VARIABLES =
  "@ is the absolute value of a number; a parameter is $1, and its value stands in params";

/** Other servers write `@name` for a parameter, so "no such column" alone would mislead. */
function bindAbsolute({ operand }: ExprUnary, place: Place, bind: Bind): BoundExpression {
  try {
    return bind(operand, place);
  } catch (error) {
    const isName = operand.type === "ref" && operand.table === undefined;
    if (!isName || !(error instanceof DatabaseError)) throw error;
    if (error.condition !== "COLUMN_NOT_FOUND") throw error;
    const { position } = error;
    throw new DatabaseError(error.condition, error.message, { position, hint: NO_VARIABLES });
  }
}

function bindTest(
  expression: ExprUnary,
  { test, negated }: { test: "null" | "true" | "false"; negated: boolean },
  place: Place,
  bind: Bind,
): BoundExpression {
  const { op, operand } = expression;
  const needsBoolean = op !== "IS NULL" && op !== "IS NOT NULL";
  const row = needsBoolean ? undefined : bindRow(operand, place, bind);
  if (row !== undefined) {
    // A row is NULL when all its fields are, and NOT NULL when none is.
    const operands = row.fields.map(({ value }): BoundExpression => {
      return { kind: "is", type: BOOLEAN, test, negated, operand: value };
    });
    // One without fields is both, as in PostgreSQL.
    return conjunctionOf(operands) ?? { kind: "constant", type: BOOLEAN, value: true };
  }
  const bound = bind(operand, needsBoolean ? withoutExpansions(place, op) : place);
  const inner = needsBoolean
    ? castTo(bound, { to: BOOLEAN, mode: "implicit", node: operand })
    : bound;
  return { kind: "is", type: BOOLEAN, test, negated, operand: inner };
}
