/**
 * Binds predicates on values: IN, BETWEEN, LIKE, ANY and ALL.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  caseLocaleOf,
  commonType,
  comparedTextType,
  type DataType,
  elementsOf,
  hasOrder,
  isArrayValue,
  sameType,
  TEXT,
  typeName,
  unbounded,
  type Value,
} from "../../../types/mod.ts";
import { resolveBinary, resolveLike } from "../../functions/operator/operators.ts";
import type {
  Expr,
  ExprBinary,
  ExprCall,
  ExprTernary,
  LiteralList,
  SelectStatement,
} from "../../parse/ast/ast.ts";
import { isSelectNode } from "../../parse/ast/query_nodes.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression, RowFunction } from "../bound_expressions.ts";
import { withoutExpansions } from "../query/expansions.ts";
import { hasSubquery, isVolatile, readsColumn } from "../walk.ts";
import { binaryOf, elementOf } from "./binary_forms.ts";
import { castTo, castToCompare } from "./casts.ts";
import { patternType } from "./collations.ts";
import { constantsOf, literalColumnOf } from "./constant_columns.ts";
import { type DecimalDataType, decimalLiteral } from "./decimal_literal.ts";
import { comparedWith, comparedWithElements } from "./float_literal.ts";
import { bindRowIn } from "./row_predicates.ts";
import { bindQuantifiedQuery, noTruth, type Quantified } from "./subquery_binder.ts";

export function bindIn(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { left, op, right } = expression;
  const negated = op === "NOT IN";
  if (right.type !== "list") {
    const comparison: Quantified = {
      operands: operandsOf(left, context, bind),
      operator: negated ? "<>" : "=",
      quantifier: negated ? "all" : "any",
      query: right as SelectStatement,
      node: expression,
    };
    return bindQuantifiedQuery(comparison, context);
  }
  if (left.type === "list") return bindRowIn(left, right, { negated, context, bind });
  const operand = bind(left, context);
  const listed = right.literals && inLiterals(operand, right.literals, { expression, negated });
  if (listed !== undefined) return listed;
  const items = right.expressions.map((item) => comparedWith(operand, bind(item, context), item));
  const decimal = decimalOfList([operand, ...items]);
  if (decimal !== undefined) {
    const list = items.map((item, i) =>
      item.type.kind === "unknown" && !isNull(item)
        ? decimalLiteral(item, { operator: "=", type: decimal })
        : castTo(item, { to: decimal, mode: "implicit", node: right.expressions[i] }),
    );
    const tested = castTo(operand, { to: decimal, mode: "implicit", node: left });
    return { kind: "in", type: BOOLEAN, operand: tested, items: list, constants: [], negated };
  }
  const { expressions } = castToCompare([operand, ...items], [left, ...right.expressions], "IN");
  const [tested, ...castItems] = expressions;
  const castOperand = defined(tested, "IN binder: left operand is missing");
  if (!hasOrder(castOperand.type))
    return tolerantIn(castOperand, castItems, { expression, negated });
  return {
    kind: "in",
    type: BOOLEAN,
    operand: castOperand,
    items: castItems,
    constants: [],
    negated,
  };
}

/**
 * Binds IN for types whose values can be compared only with the operator `=`. Such values cannot
 * form a set.
 */
function tolerantIn(
  operand: BoundExpression,
  items: readonly BoundExpression[],
  { expression, negated }: { expression: ExprBinary; negated: boolean },
): BoundExpression {
  const operands = items.map((item) =>
    binaryOf({ op: negated ? "<>" : "=", left: operand, right: item }, expression),
  );
  return { kind: negated ? "and" : "or", type: BOOLEAN, operands };
}

/** Binds IN with many literals of the same kind; undefined if they must be bound one by one. */
function inLiterals(
  operand: BoundExpression,
  literals: LiteralList,
  { expression, negated }: { expression: ExprBinary; negated: boolean },
): BoundExpression | undefined {
  const column = literalColumnOf(literals, 0);
  if (column === undefined) return undefined;
  const common = commonType([operand.type, column.type]);
  if (common === undefined || !isListable(common)) return undefined;
  const type = comparedTextType(common, { isOrder: false });
  const constants = constantsOf(column, type);
  if (constants === undefined) return undefined;
  const tested = castTo(operand, { to: type, mode: "implicit", node: expression.left });
  return { kind: "in", type: BOOLEAN, operand: tested, items: [], constants, negated };
}

/** Whether each literal of a list can be cast to this type independently of the others. */
function isListable({ kind }: DataType): boolean {
  return kind === "smallint" || kind === "int" || kind === "bigint" || kind === "text";
}

/** Binds a single value, or the values of a row. */
function operandsOf(node: Expr, context: ExpressionContext, bind: Bind): BoundExpression[] {
  return node.type === "list"
    ? node.expressions.map((item) => bind(item, context))
    : [bind(node, context)];
}

/**
 * Returns the common type of a typed operand and a partly untyped list if that type is DECIMAL;
 * undefined otherwise.
 */
function decimalOfList([operand, ...items]: readonly BoundExpression[]):
  | DecimalDataType
  | undefined {
  if (operand === undefined || operand.type.kind === "unknown") return undefined;
  const typed = [operand, ...items].filter(({ type }) => type.kind !== "unknown");
  if (typed.length > items.length) return undefined;
  const type = commonType(typed.map((expression) => expression.type));
  return type?.kind === "decimal" ? type : undefined;
}

function isNull(expression: BoundExpression): boolean {
  return expression.kind === "constant" && expression.value === null;
}

export function bindBetween(
  expression: ExprTernary,
  around: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const context = withoutExpansions(around, "BETWEEN");
  const value = bind(expression.value, context);
  const low = bind(expression.lo, context);
  const high = bind(expression.hi, context);
  const within = (from: BoundExpression, to: BoundExpression): BoundExpression => ({
    kind: "and",
    type: BOOLEAN,
    operands: [
      binaryOf({ op: ">=", left: value, right: from }, expression.lo),
      binaryOf({ op: "<=", left: value, right: to }, expression.hi),
    ],
  });
  const forward = within(low, high);
  const result: BoundExpression =
    expression.symmetric === true
      ? { kind: "or", type: BOOLEAN, operands: [forward, within(high, low)] }
      : forward;
  return expression.op === "BETWEEN" ? result : { kind: "not", type: BOOLEAN, operand: result };
}

export function bindLike(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const left = bind(expression.left, context);
  const right = bind(expression.right, context);
  const escape = expression.escape === undefined ? undefined : bind(expression.escape, context);
  const operands = escape === undefined ? [left, right] : [left, right, escape];
  const form = resolveLike(
    expression.op,
    operands.map(({ type }) => type),
  );
  if (form === undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot apply ${expression.op} to values of type ${typeName(left.type)} and ` +
        typeName(right.type),
      { position: expression._location.start, hint: "cast one side to the type of the other" },
    );
  }
  const evaluate = likeByCollation(expression, operands) ?? form.evaluate;
  return {
    kind: "call",
    type: form.result,
    name: expression.op,
    args: operands.map((operand, i) =>
      castTo(operand, { to: form.operands[i] ?? operand.type, mode: "implicit", node: expression }),
    ),
    evaluate,
    seesNull: form.seesNull === true,
    volatility: "immutable",
    like: form.operands[0]?.kind === "bytes" ? undefined : LIKES.get(expression.op),
  };
}

/**
 * Returns how ILIKE is evaluated under a collation whose language has its own rules for upper and
 * lower case; undefined if the collation makes no difference.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if the collation is nondeterministic.
 */
function likeByCollation(
  { _location, op }: ExprBinary,
  operands: readonly BoundExpression[],
): RowFunction | undefined {
  const type = patternType(op, operands, _location.start);
  const locale = type === undefined ? undefined : caseLocaleOf(type);
  if (locale === undefined || !op.endsWith("ILIKE")) return undefined;
  const form = resolveLike(op.replace("ILIKE", "LIKE"), [TEXT, TEXT, TEXT]);
  return (values) =>
    form?.evaluate(
      values.map((value) => (typeof value === "string" ? value.toLocaleLowerCase(locale) : value)),
    ) ?? null;
}

const LIKES: ReadonlyMap<string, { readonly isNegated: boolean }> = new Map([
  ["LIKE", { isNegated: false }],
  ["NOT LIKE", { isNegated: true }],
]);

/** Binds `x op ANY (array)` and `x op ALL (array)`. */
export function bindQuantified(
  expression: ExprBinary,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const call = expression.right as ExprCall;
  const [argument] = call.args;
  if (argument === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${call.function.name.toUpperCase()} without an argument: it needs a query or an array`,
      { position: call._location.start, hint: "write = ANY(SELECT …) or = ANY(array)" },
    );
  }
  const op = expression.op === "!=" ? "<>" : expression.op;
  if (isSelectNode(argument)) {
    const comparison: Quantified = {
      operands: operandsOf(expression.left, context, bind),
      operator: op,
      quantifier: call.function.name === "all" ? "all" : "any",
      query: argument,
      node: expression,
    };
    return bindQuantifiedQuery(comparison, context);
  }
  const left = bind(expression.left, context);
  const array = bind(argument, context);
  // The elements of an untyped array get the type of the other operand, without its precision and
  // scale. If the operator does not accept that type on both sides, the elements get the type that
  // the operator expects beside the other operand, such as TSQUERY with TSVECTOR.
  const isUntyped = array.type.kind === "unknown";
  const element = isUntyped ? unbounded(settled(left.type)) : elementOf(array.type);
  const form =
    element === undefined
      ? undefined
      : (resolveBinary(op, ...comparedWithElements(left, element)) ??
        (isUntyped ? resolveBinary(op, left.type, array.type) : undefined));
  if (element === undefined || form === undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot apply ${op} to ${typeName(left.type)} and the elements of ${typeName(array.type)}`,
      {
        position: call._location.start,
        hint: "the right-hand side must be an array whose elements can be compared with the left-hand side",
      },
    );
  }
  if (form.result.kind !== "boolean") throw noTruth(op, call);
  const [leftType = left.type, itemType = element] = form.operands;
  const settles = call.function.name !== "all";
  if (settles && op === "=" && sameType(leftType, itemType) && hasOrder(leftType)) {
    const operand = castTo(left, { to: leftType, mode: "implicit", node: expression.left });
    const listed = inElements(operand, array, argument);
    if (listed !== undefined) return listed;
  }
  return {
    kind: "call",
    type: BOOLEAN,
    name: `${op} ${call.function.name}`,
    args: [
      castTo(left, { to: leftType, mode: "implicit", node: expression.left }),
      castTo(array, {
        to: { kind: "array", element: itemType },
        mode: "implicit",
        node: argument,
      }),
    ],
    evaluate: ([value = null, items = null]) =>
      quantified(value, items, { settles, test: form.evaluate }),
    seesNull: true,
    volatility: "immutable",
  };
}

/**
 * Rewrites `x = ANY (array)` as IN, which tests membership in a set. Returns undefined if the
 * array depends on the row.
 */
function inElements(
  operand: BoundExpression,
  array: BoundExpression,
  node: Expr,
): BoundExpression | undefined {
  const { type } = operand;
  const list = {
    kind: "in",
    type: BOOLEAN,
    operand,
    items: [],
    constants: [],
    negated: false,
  } as const;
  if (isListable(type)) {
    // `= ANY` over an empty array is always false, whereas IN with a NULL operand is unknown.
    if (array.kind === "constant" && array.value !== null && isArrayValue(array.value)) {
      const constants = elementsOf(array.value);
      if (constants.length > 0) return { ...list, constants };
    }
    const isFlat = array.kind === "call" && !array.args.some((item) => item.type.kind === "array");
    if (isFlat && array.name === "array" && array.args.length > 0) {
      return {
        ...list,
        items: array.args.map((item) => castTo(item, { to: type, mode: "implicit", node })),
      };
    }
  }
  if (readsColumn(array) || isVolatile(array) || hasSubquery(array)) return undefined;
  const whole = castTo(array, { to: { kind: "array", element: type }, mode: "implicit", node });
  return { ...list, list: whole };
}

function settled(type: DataType): DataType {
  return type.kind === "unknown" ? TEXT : type;
}

/**
 * Combines test results by three-valued logic. A single deciding result determines the outcome. If
 * there is none, the outcome is unknown if any result is unknown.
 */
function quantified(
  value: Value,
  items: Value,
  { settles, test }: { settles: boolean; test: (values: readonly Value[]) => Value },
): Value {
  if (!isArrayValue(items)) return null;
  if (value === null) return items.length === 0 ? !settles : null;
  let hasUnknown = false;
  for (const item of elementsOf(items)) {
    const answer = item === null ? null : test([value, item]);
    if (answer === settles) return settles;
    if (answer === null) hasUnknown = true;
  }
  return hasUnknown ? null : !settles;
}
