/**
 * Selects the binder for an operator. For most operators, the types of both operands select a form
 * (`binary_forms.ts`). This file handles the operators that examine an operand before it is bound,
 * such as ANY, IN and OVERLAPS. It also handles chains of AND and OR, which would otherwise nest
 * deeper than the stack allows.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, DATETIME, TEXT, typeName } from "../../../types/mod.ts";
import { resolvePrefix } from "../../functions/operator/operators.ts";
import type { Expr, ExprBinary, ExprUnary } from "../../parse/ast/ast.ts";
import { isSelectNode } from "../../parse/ast/query_nodes.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { withoutExpansions } from "../query/expansions.ts";
import { conjunctionOf } from "../walk.ts";
import { binaryOf, comparisonOf } from "./binary_forms.ts";
import { bindFunction } from "./call_binder.ts";
import { castTo } from "./casts.ts";
import { bindIn, bindLike, bindQuantified } from "./predicates.ts";
import { bindRowComparison } from "./row_predicates.ts";
import { bindRow, testOfValue } from "./row_values.ts";

function comparesRows({ left, op, right }: ExprBinary): boolean {
  if (left.type !== "list" || (right.type !== "list" && !isSelectNode(right))) return false;
  return comparisonOf(op) !== undefined || op.endsWith("DISTINCT FROM") || /^~[<>]=?~$/.test(op);
}

export function bindBinary(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { left, op, right } = expression;
  if (isQuantifier(right)) return bindQuantified(expression, context, bind);
  switch (op) {
    case "AND":
    case "OR":
      return bindLogic(expression, context, bind);
    case "IN":
    case "NOT IN":
      return bindIn(expression, context, bind);
    case "LIKE":
    case "NOT LIKE":
    case "ILIKE":
    case "NOT ILIKE":
    case "SIMILAR TO":
    case "NOT SIMILAR TO":
      return bindLike(expression, context, bind);
    case "AT TIME ZONE":
      return bindTimeZone(expression, context, bind);
    case "OVERLAPS":
      return bindOverlaps(expression, context, bind);
    default:
      break;
  }
  if (comparesRows(expression)) return bindRowComparison(expression, context, bind);
  return binaryOf({ op, left: bind(left, context), right: bind(right, context) }, expression);
}

function bindTimeZone(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { left, right } = expression;
  const zone = bind(right, context);
  const moment = bind(left, context);
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

/** Binds `(start, end) OVERLAPS (start, length)`. */
function bindOverlaps(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const args = [expression.left, expression.right].flatMap((side) => {
    if (side.type === "list" && side.expressions.length === 2) return side.expressions;
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot use OVERLAPS: each side must have a start and an end, or a start and a length",
      { position: side._location.start, hint: "write (start, end) OVERLAPS (start, end)" },
    );
  });
  const bound = args.map((argument) => bind(argument, context));
  return bindFunction({ name: "overlaps", args: bound, node: expression });
}

/**
 * Whether an expression is `ANY (…)` or `ALL (…)`. The parser represents these as a call on the
 * right side of an operator.
 */
function isQuantifier(expression: Expr): boolean {
  if (expression.type !== "call" || expression.function.schema !== undefined) return false;
  return ["any", "some", "all"].includes(expression.function.name);
}

/** Binds a chain of ANDs or ORs as a single node, so that long chains do not nest. */
function bindLogic(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const operands: BoundExpression[] = [];
  const inner = withoutExpansions(context, expression.op);
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

export function bindUnary(
  expression: ExprUnary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { op } = expression;
  const test = TESTS.get(op);
  if (test !== undefined) return bindTest(expression, test, context, bind);
  const isNegation = op === "NOT";
  const operand =
    op === "@"
      ? bindAbsolute(expression, context, bind)
      : bind(expression.operand, isNegation ? withoutExpansions(context, op) : context);
  if (isNegation) {
    const truth = castTo(operand, { to: BOOLEAN, mode: "implicit", node: expression.operand });
    return { kind: "not", type: BOOLEAN, operand: truth };
  }
  const form = resolvePrefix(op, operand.type);
  if (form === undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot apply ${op} to a value of type ${typeName(operand.type)}`,
      {
        position: expression._location.start,
        hint: op === "@" ? NO_VARIABLES : undefined,
      },
    );
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
  "@ computes the absolute value of a number; parameters are written as $1, and their values " +
  "are passed in params";

/**
 * Binds `@`, the absolute value operator. Because some other servers write parameters as `@name`,
 * the error for an unknown column after `@` contains a hint about parameters.
 */
function bindAbsolute(
  { operand }: ExprUnary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  try {
    return bind(operand, context);
  } catch (error) {
    const isName = operand.type === "ref" && operand.table === undefined;
    if (!isName || !(error instanceof DatabaseError)) throw error;
    if (error.code !== "COLUMN_NOT_FOUND") throw error;
    const { position } = error;
    throw new DatabaseError(error.code, error.message, { position, hint: NO_VARIABLES });
  }
}

function bindTest(
  expression: ExprUnary,
  { test, negated }: { test: "null" | "true" | "false"; negated: boolean },
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { op, operand } = expression;
  const needsBoolean = op !== "IS NULL" && op !== "IS NOT NULL";
  const row = needsBoolean ? undefined : bindRow(operand, context, bind);
  if (row !== undefined) {
    // A row is NULL if all of its fields are NULL, and NOT NULL if none of its fields is NULL.
    const operands = row.fields.map(({ value }): BoundExpression => {
      return { kind: "is", type: BOOLEAN, test, negated, operand: value };
    });
    // A row without fields is both NULL and NOT NULL, as in PostgreSQL.
    return conjunctionOf(operands) ?? { kind: "constant", type: BOOLEAN, value: true };
  }
  const bound = bind(operand, needsBoolean ? withoutExpansions(context, op) : context);
  if (bound.type.kind === "row" && !needsBoolean) return testOfValue(bound, negated);
  const inner = needsBoolean
    ? castTo(bound, { to: BOOLEAN, mode: "implicit", node: operand })
    : bound;
  return { kind: "is", type: BOOLEAN, test, negated, operand: inner };
}
