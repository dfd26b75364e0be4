/**
 * Finds conditions that no row can satisfy, before the statement runs: conditions that constants
 * make false or NULL, and conditions that contradict each other.
 *
 *     1 = 0      v = NULL      v > 5 AND v < 3      v = 1 AND v IN (2, 3)
 *
 * An expression that cannot be computed without an error is left unchanged, so that it fails only
 * when a row evaluates it.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BOOLEAN, compareValues, type DataType, type Value } from "../../types/mod.ts";
import type {
  BoundColumn,
  BoundConstant,
  BoundExpression,
  ComparisonOperator,
  ExpressionOf,
  RowFunction,
} from "../bind/bound_expressions.ts";
import { MIRRORED } from "../bind/expression/binary_forms.ts";
import {
  childrenOf,
  conjunctsOf,
  hasSubquery,
  isVolatile,
  mapChildren,
  mayFail,
  readsColumn,
} from "../bind/walk.ts";
import type { CallDeps } from "../functions/base/function.ts";
import { type Condition, conditionOf, expressionsOf } from "./conditions.ts";

/**
 * Returns the conjuncts of a condition in folded form, without conjuncts that are true for every
 * row.
 */
export function foldedConditions(condition: BoundExpression | undefined): readonly Condition[] {
  const conditions = conjunctsOf(condition).map(conditionOf);
  if (!conditions.some(holdsConstant)) return conditions;
  return conditions
    .flatMap(({ expression }) => conjunctsOf(folded(expression)))
    .map(withoutIdle)
    .filter((each) => each.kind !== "constant" || each.value !== true)
    .map(conditionOf);
}

/**
 * Whether a condition contains a constant. In most statements, all literals are slots, so there is
 * no constant to fold.
 */
function holdsConstant(condition: Condition): boolean {
  return condition.holdsConstant;
}

/**
 * Removes the parts of a condition that no row can satisfy: alternatives of an OR, or entries of a
 * row list, such as a row that contains NULL.
 */
function withoutIdle(condition: BoundExpression): BoundExpression {
  if (condition.kind === "row in") {
    const rows = condition.rows.filter((row) => !row.some(isNull));
    if (rows.length === 0) return constantOf(condition.type, false);
    return rows.length === condition.rows.length ? condition : { ...condition, rows };
  }
  if (condition.kind !== "or") return condition;
  const operands = condition.operands.filter((each) => !conjunctsOf(each).some(isNever));
  if (operands.length === condition.operands.length) return condition;
  const [first] = operands;
  if (first === undefined) return constantOf(condition.type, false);
  return operands.length === 1 ? first : { ...condition, operands };
}

/** Whether folding shows that no row satisfies all of the conditions. */
export function areNever(conditions: readonly Condition[]): boolean {
  if (!conditions.some(holdsConstant)) return false;
  const expressions = expressionsOf(conditions);
  return expressions.some(isNever) || contradict(expressions);
}

function isNever(condition: BoundExpression): boolean {
  return condition.kind === "constant" && condition.value !== true;
}

/**
 * Whether a condition has the same value for all rows of one execution, so that a single
 * evaluation is enough.
 */
export function isAskedOnce(condition: BoundExpression): boolean {
  return !readsColumn(condition) && !isVolatile(condition) && !hasSubquery(condition);
}

/**
 * Whether a condition has the same value for all rows of one execution. The answer is taken from
 * the condition's precomputed list of columns.
 */
export function isConditionOnce({ columnIds, expression }: Condition): boolean {
  return columnIds.length === 0 && isAskedOnce(expression);
}

/** Replaces an expression by a cheaper one with the same value, if there is one. */
function folded(expression: BoundExpression): BoundExpression {
  if (!isFoldable(expression)) return expression;
  const over = mapChildren(expression, folded);
  switch (over.kind) {
    case "and":
    case "or":
      return foldedLogic(over);
    case "compare":
      if (isNull(over.left) || isNull(over.right)) return constantOf(over.type, null);
      break;
    case "in":
      return foldedMembership(over);
    default:
      break;
  }
  const value = valueOf(over);
  return value === undefined ? over : constantOf(over.type, value);
}

/** Whether an expression may be evaluated before the statement runs. Subqueries may not. */
function isFoldable({ kind }: BoundExpression): boolean {
  return kind !== "constant" && kind !== "slot" && kind !== "column" && kind !== "subquery";
}

function foldedMembership(expression: Extract<BoundExpression, { kind: "in" }>): BoundExpression {
  const { constants, items, list, negated, type } = expression;
  const array = list === undefined ? undefined : constantIn(list);
  const areUnknown = items.every(isNull) && constants.every((value) => value === null);
  if (areUnknown && (list === undefined || array === null)) return constantOf(type, null);
  // An empty list or array contains no values, not even NULL.
  const isAlone = items.length + constants.length === 0;
  if (isAlone && Array.isArray(array) && array.length === 0) return constantOf(type, negated);
  const value = valueOf(expression);
  return value === undefined ? expression : constantOf(type, value);
}

function foldedLogic(
  expression: Extract<BoundExpression, { kind: "and" | "or" }>,
): BoundExpression {
  const settling = expression.kind === "or";
  const { operands, type } = expression;
  if (operands.some((each) => each.kind === "constant" && each.value === settling)) {
    return constantOf(type, settling);
  }
  const open = operands.filter((each) => each.kind !== "constant" || each.value === null);
  const [first] = open;
  if (first === undefined) return constantOf(type, !settling);
  if (open.every(isNull)) return constantOf(type, null);
  if (open.length === 1) return first;
  return open.length === operands.length ? expression : { ...expression, operands: open };
}

function constantOf(type: DataType, value: Value): BoundConstant {
  return { kind: "constant", type, value };
}

function isNull(expression: BoundExpression): boolean {
  return expression.kind === "constant" && expression.value === null;
}

/** Returns the value of an operation on constants, or undefined if evaluating it now fails. */
function valueOf(expression: BoundExpression): Value | undefined {
  try {
    return computed(expression);
  } catch (error) {
    // The error is not lost: it is raised again if a row evaluates the expression.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

function computed(expression: BoundExpression): Value | undefined {
  switch (expression.kind) {
    case "cast": {
      const value = constantIn(expression.operand);
      return value === undefined || value === null ? value : expression.convert(value);
    }
    case "compare":
    case "arithmetic":
      return called([expression.left, expression.right], expression.evaluate);
    case "call":
      if (!FOLDED_CALLS.has(expression.name) || expression.seesNull) return undefined;
      return called(expression.args, expression.evaluate);
    case "not": {
      const value = constantIn(expression.operand);
      return value === undefined || value === null ? value : value !== true;
    }
    case "is": {
      const value = constantIn(expression.operand);
      if (value === undefined) return undefined;
      const { negated, test } = expression;
      return (test === "null" ? value === null : value === (test === "true")) !== negated;
    }
    case "coalesce": {
      const first = expression.operands.find((each) => !isNull(each));
      return first === undefined ? null : constantIn(first);
    }
    case "case":
      return chosen(expression);
    case "in":
      return membership(expression);
    default:
      return undefined;
  }
}

function called(operands: readonly BoundExpression[], evaluate: RowFunction): Value | undefined {
  const values = constantsIn(operands);
  if (values === undefined) return undefined;
  return values.includes(null) ? null : evaluate(values, NOBODY);
}

function chosen({
  branches,
  otherwise,
}: Extract<BoundExpression, { kind: "case" }>): Value | undefined {
  for (const { value, when } of branches) {
    const condition = constantIn(when);
    if (condition === undefined) return undefined;
    if (condition === true) return constantIn(value);
  }
  return otherwise === undefined ? null : constantIn(otherwise);
}

function membership({
  constants,
  items,
  list,
  negated,
  operand,
}: Extract<BoundExpression, { kind: "in" }>): Value | undefined {
  const value = constantIn(operand);
  const listed = constantsIn(items);
  if (value === undefined || listed === undefined || list !== undefined) return undefined;
  if (value === null) return null;
  const all = listed.concat(constants);
  const isIn = all.some((each) => each !== null && compareValues(operand.type, each, value) === 0);
  if (isIn) return !negated;
  return all.includes(null) ? null : negated;
}

function constantIn(expression: BoundExpression): Value | undefined {
  return expression.kind === "constant" ? expression.value : undefined;
}

function constantsIn(expressions: readonly BoundExpression[]): Value[] | undefined {
  const values: Value[] = [];
  for (const each of expressions) {
    if (each.kind !== "constant") return undefined;
    values.push(each.value);
  }
  return values;
}

/**
 * Functions whose calls are cheap for any arguments. Only their calls are evaluated during
 * planning.
 */
const FOLDED_CALLS: ReadonlySet<string> = new Set([
  "+",
  "-",
  "*",
  "/",
  "%",
  "prefix -",
  "prefix +",
  "abs",
  "lower",
  "upper",
  "length",
  "mod",
]);

/**
 * Weakens a comparison with a computed value to a condition that cannot fail. It is true for all
 * rows if computing the value fails.
 *
 *     a = 2000 + 1     becomes     computed(2000 + 1) IS NULL OR a = computed(2000 + 1)
 */
export function withComputed(condition: BoundExpression): BoundExpression {
  if (condition.kind !== "compare") return condition;
  const { left, right } = condition;
  const isLeft = isComputable(left);
  if (!isLeft && !isComputable(right)) return condition;
  const value = computedOrNull(isLeft ? left : right);
  const isUnknown: BoundExpression = {
    kind: "is",
    type: BOOLEAN,
    test: "null",
    negated: false,
    operand: value,
  };
  const compared = isLeft ? { ...condition, left: value } : { ...condition, right: value };
  return { kind: "or", type: BOOLEAN, operands: [isUnknown, compared] };
}

/**
 * Whether an expression may fail, and consists only of casts and arithmetic on constants and
 * slots.
 */
function isComputable(expression: BoundExpression): boolean {
  return mayFail(expression) && consistsOfGiven(expression);
}

function consistsOfGiven(expression: BoundExpression): boolean {
  switch (expression.kind) {
    case "constant":
    case "slot":
      return true;
    case "cast":
    case "arithmetic":
      return childrenOf(expression).every(consistsOfGiven);
    default:
      return false;
  }
}

/**
 * Returns a call that computes the value of an expression from its slots, or NULL if that fails.
 */
function computedOrNull(expression: BoundExpression): ExpressionOf<"call"> {
  const slots = slotsIn(expression);
  return {
    kind: "call",
    type: expression.type,
    name: "computed",
    args: slots,
    seesNull: true,
    volatility: "immutable",
    neverFails: true,
    evaluate: (values) => {
      const given = new Map(slots.map(({ slot }, i) => [slot, values[i] ?? null]));
      const filled = (part: BoundExpression): BoundExpression =>
        part.kind === "slot"
          ? constantOf(part.type, given.get(part.slot) ?? null)
          : mapChildren(part, filled);
      return constantIn(folded(filled(expression))) ?? null;
    },
  };
}

function slotsIn(expression: BoundExpression): ExpressionOf<"slot">[] {
  return expression.kind === "slot" ? [expression] : childrenOf(expression).flatMap(slotsIn);
}

/** The maximum length of a list of values that is sorted to find contradictions. */
const LISTED_MAX = 1000;

/** None of the folded calls uses its dependencies, so none are passed. */
const NOBODY = {} as CallDeps;

/** The values of one column that the conditions examined so far still allow. */
interface Left {
  readonly type: DataType;
  min: Value | undefined;
  max: Value | undefined;
  isMinOpen: boolean;
  isMaxOpen: boolean;
}

/**
 * Whether conditions with constants contradict each other, so that some column has no possible
 * value left.
 */
function contradict(conditions: readonly BoundExpression[]): boolean {
  if (conditions.length < 2) return false;
  const left = new Map<number, Left>();
  for (const condition of conditions) {
    for (const { column, operator, value } of boundsIn(condition)) {
      const found = left.get(column.id) ?? {
        type: column.type,
        min: undefined,
        max: undefined,
        isMinOpen: false,
        isMaxOpen: false,
      };
      left.set(column.id, found);
      narrow(found, operator, value);
      if (isEmpty(found)) return true;
    }
  }
  return false;
}

interface ConstantBound {
  readonly column: BoundColumn;
  readonly operator: ComparisonOperator;
  readonly value: Value;
}

/**
 * Returns the bounds that a condition with constants sets on a column. The bounds of a list are
 * its minimum and maximum.
 */
function boundsIn(condition: BoundExpression): readonly ConstantBound[] {
  if (condition.kind === "compare") {
    const { left, operator, right } = condition;
    if (operator === "<>") return [];
    if (left.kind === "column" && right.kind === "constant") {
      return [{ column: left.column, operator, value: right.value }];
    }
    if (right.kind !== "column" || left.kind !== "constant") return [];
    return [{ column: right.column, operator: MIRRORED[operator], value: left.value }];
  }
  if (condition.kind !== "in" || condition.negated || condition.list !== undefined) return [];
  const { constants, items, operand } = condition;
  const listed = constantsIn(items)
    ?.concat(constants)
    .filter((value) => value !== null);
  if (operand.kind !== "column" || listed === undefined || listed.length > LISTED_MAX) return [];
  const { column, type } = operand;
  const sorted = listed.toSorted((one, other) => compareValues(type, one, other));
  const [min = null] = sorted;
  return [
    { column, operator: ">=", value: min },
    { column, operator: "<=", value: sorted.at(-1) ?? null },
  ];
}

function narrow(left: Left, operator: string, value: Value): void {
  const { type } = left;
  if (operator !== "<" && operator !== "<=") {
    const isOpen = operator === ">";
    const order = left.min === undefined ? 1 : compareValues(type, value, left.min);
    if (order > 0) left.min = value;
    if (order > 0) left.isMinOpen = isOpen;
    else if (order === 0) left.isMinOpen ||= isOpen;
  }
  if (operator !== ">" && operator !== ">=") {
    const isOpen = operator === "<";
    const order = left.max === undefined ? -1 : compareValues(type, value, left.max);
    if (order < 0) left.max = value;
    if (order < 0) left.isMaxOpen = isOpen;
    else if (order === 0) left.isMaxOpen ||= isOpen;
  }
}

function isEmpty({ isMaxOpen, isMinOpen, max, min, type }: Left): boolean {
  if (min === undefined || max === undefined) return false;
  const order = compareValues(type, min, max);
  return order > 0 || (order === 0 && (isMinOpen || isMaxOpen));
}
