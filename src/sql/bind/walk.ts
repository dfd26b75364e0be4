/** Analyses bound expressions for the binder, the planner and the compiler. */
import { type DataType, isInteger, isTimeWord, sameType, textFromValue } from "../../types/mod.ts";
import { sameTree } from "../parse/ast/tree_parts.ts";
import type { BoundExpression, BoundSort, BoundSubquery } from "./bound_expressions.ts";

const NO_CHILDREN: readonly BoundExpression[] = [];

/** Returns the direct operands of an expression, in order of evaluation. */
export function childrenOf(expression: BoundExpression): readonly BoundExpression[] {
  switch (expression.kind) {
    case "constant":
    case "slot":
    case "column":
    case "outer":
      return NO_CHILDREN;
    case "subquery":
      return [...expression.operands, ...expression.outerReferences];
    case "cast":
    case "not":
    case "is":
      return [expression.operand];
    case "call":
      return expression.args;
    case "compare":
    case "arithmetic":
      return [expression.left, expression.right];
    case "and":
    case "or":
    case "coalesce":
      return expression.operands;
    case "case": {
      const branches = expression.branches.flatMap(({ when, value }) => [when, value]);
      return expression.otherwise === undefined ? branches : [...branches, expression.otherwise];
    }
    case "in": {
      const { items, list, operand } = expression;
      return list === undefined ? [operand, ...items] : [operand, ...items, list];
    }
    case "row in":
      return [...expression.operands, ...expression.rows.flat()];
  }
}

/** Whether any direct operand passes a test. Operands are tested in order until one passes. */
export function someChild(
  expression: BoundExpression,
  test: (child: BoundExpression) => boolean,
): boolean;
/**
 * Whether any direct operand passes a test. The test is passed an additional argument, so that a
 * traversal creates no closures.
 */
export function someChild<Given>(
  expression: BoundExpression,
  test: (child: BoundExpression, given: Given) => boolean,
  given: Given,
): boolean;
export function someChild(
  expression: BoundExpression,
  test: (child: BoundExpression, given: unknown) => boolean,
  given?: unknown,
): boolean {
  switch (expression.kind) {
    case "constant":
    case "slot":
    case "column":
    case "outer":
      return false;
    case "cast":
    case "not":
    case "is":
      return test(expression.operand, given);
    // For the most frequent expressions, the two operands are tested without creating a list.
    case "compare":
    case "arithmetic":
      return test(expression.left, given) || test(expression.right, given);
    default:
      for (const child of childrenOf(expression)) if (test(child, given)) return true;
      return false;
  }
}

/** Returns a copy of the expression with its operands changed. */
export function mapChildren(
  expression: BoundExpression,
  change: (child: BoundExpression) => BoundExpression,
): BoundExpression {
  switch (expression.kind) {
    case "constant":
    case "slot":
    case "column":
    case "outer":
      return expression;
    case "subquery":
      return {
        ...expression,
        operands: expression.operands.map(change),
        outerReferences: expression.outerReferences.map(change),
      };
    case "cast":
    case "not":
    case "is":
      return { ...expression, operand: change(expression.operand) };
    case "call":
      return { ...expression, args: expression.args.map(change) };
    case "compare":
    case "arithmetic":
      return { ...expression, left: change(expression.left), right: change(expression.right) };
    case "and":
    case "or":
    case "coalesce":
      return { ...expression, operands: expression.operands.map(change) };
    case "case": {
      const branches = expression.branches.map(({ when, value }) => ({
        when: change(when),
        value: change(value),
      }));
      const otherwise =
        expression.otherwise === undefined ? undefined : change(expression.otherwise);
      return { ...expression, branches, otherwise };
    }
    case "in":
      return {
        ...expression,
        operand: change(expression.operand),
        items: expression.items.map(change),
        list: expression.list === undefined ? undefined : change(expression.list),
      };
    case "row in":
      return {
        ...expression,
        operands: expression.operands.map(change),
        rows: expression.rows.map((row) => row.map(change)),
      };
  }
}

/** Returns the ids of all columns that an expression reads. */
export function columnIdsIn(
  expression: BoundExpression,
  into: Set<number> = new Set<number>(),
): Set<number> {
  addColumnIds(expression, into);
  return into;
}

/**
 * Adds the ids of the columns that an expression reads to `into`. Always returns false, so that
 * `someChild` visits the whole expression.
 */
function addColumnIds(expression: BoundExpression, into: Set<number>): boolean {
  if (expression.kind === "column") into.add(expression.column.id);
  return someChild(expression, addColumnIds, into);
}

export function readsColumn(expression: BoundExpression): boolean {
  return expression.kind === "column" || someChild(expression, readsColumn);
}

/** Whether there may be a row on which evaluating an expression raises an error. */
export function mayFail(expression: BoundExpression): boolean {
  return failsHere(expression) || someChild(expression, mayFail);
}

/**
 * Whether evaluating an expression may raise an error on one row but not on another. An expression
 * without columns fails either on all rows or on none.
 */
export function mayFailOnRow(expression: BoundExpression): boolean {
  if (!mayFail(expression)) return false;
  return hasSubquery(expression) || isVolatile(expression) || readsColumn(expression)
    ? failsHere(expression) || someChild(expression, mayFailOnRow)
    : false;
}

/** Whether an expression itself may raise an error, regardless of its operands. */
export function failsHere(expression: BoundExpression): boolean {
  switch (expression.kind) {
    case "call":
      return expression.neverFails !== true;
    case "arithmetic":
    case "subquery":
      return true;
    case "cast":
      return !expression.isNumericIdentity;
    default:
      return false;
  }
}

/**
 * Whether evaluating a value is certain not to raise an error. If so, the value may be evaluated
 * even if no row needs it.
 */
export function isSure(value: BoundExpression): boolean {
  return isGiven(value) || (!mayFail(value) && !hasSubquery(value));
}

/**
 * Whether a value comes from the request, possibly cast to the required type: `$1::int`,
 * `ARRAY[$1, $2]`. If the value cannot be cast, the statement fails even without rows.
 */
function isGiven(value: BoundExpression): boolean {
  switch (value.kind) {
    case "constant":
    case "slot":
      return true;
    case "cast":
      return isGiven(value.operand);
    case "call":
      return (value.name === "array" || value.readsTimeWords === true) && value.args.every(isGiven);
    default:
      return false;
  }
}

/** Whether an expression contains a subquery. */
export function hasSubquery(expression: BoundExpression): boolean {
  return expression.kind === "subquery" || someChild(expression, hasSubquery);
}

/** Whether evaluating an expression may run a subquery again for each row. */
export function readsForEachRow(expression: BoundExpression): boolean {
  if (expression.kind === "subquery") {
    const { outerIds, keyed } = expression.subquery;
    if (outerIds.length > 0 && keyed === undefined) return true;
  }
  return someChild(expression, readsForEachRow);
}

/**
 * The maximum number of operands for which evaluating a batch takes negligible time, because each
 * operand has its own loop.
 */
const SMALL_OPERANDS_MAX = 64;

/** Whether evaluating an expression over a batch may take a long time or produce large values. */
export function mayTakeLong(expression: BoundExpression): boolean {
  const left = { count: SMALL_OPERANDS_MAX };
  return isLaborious(expression, left);
}

function isLaborious(expression: BoundExpression, left: { count: number }): boolean {
  left.count -= 1;
  if (left.count < 0 || expression.kind === "call") return true;
  if (expression.kind === "cast" && !expression.isNumericIdentity) return true;
  return childrenOf(expression).some((child) => isLaborious(child, left));
}

/** Whether an expression may have a different value each time it is evaluated. */
export function isVolatile(expression: BoundExpression): boolean {
  return isVolatileItself(expression) || someChild(expression, isVolatile);
}

/** Whether the expression itself is volatile, without considering its operands. */
export function isVolatileItself(expression: BoundExpression): boolean {
  if (expression.kind === "call") return expression.volatility === "volatile";
  return expression.kind === "subquery" && expression.subquery.isVolatile;
}

/** Whether an expression always has the same value for the same row, whoever the caller is. */
export function isImmutable(expression: BoundExpression): boolean {
  if (expression.kind === "call" && expression.volatility !== "immutable") return false;
  if (expression.kind === "subquery" || expression.kind === "outer") return false;
  return childrenOf(expression).every(isImmutable);
}

/**
 * Returns the operands of nested ANDs, from left to right; an empty list for an absent condition.
 */
export function conjunctsOf(condition: BoundExpression | undefined): readonly BoundExpression[] {
  if (condition === undefined) return [];
  const conjuncts: BoundExpression[] = [];
  addConjuncts(condition, conjuncts);
  return conjuncts;
}

function addConjuncts(condition: BoundExpression, into: BoundExpression[]): void {
  if (condition.kind !== "and") into.push(condition);
  else for (const operand of condition.operands) addConjuncts(operand, into);
}

/** Joins conditions with AND; undefined if the list is empty. */
export function conjunctionOf(conditions: readonly BoundExpression[]): BoundExpression | undefined {
  const [first] = conditions;
  if (first === undefined || conditions.length === 1) return first;
  return { kind: "and", type: first.type, operands: conditions };
}

/**
 * Whether two expressions always have the same value because they have the same form over the same
 * columns.
 */
export function sameExpression(left: BoundExpression, right: BoundExpression): boolean {
  if (left.kind !== right.kind || !sameType(left.type, right.type)) return false;
  // Volatile operands are detected later, when the operands are compared.
  if (!sameForm(left, right) || isVolatileItself(left)) return false;
  const leftChildren = childrenOf(left);
  const rightChildren = childrenOf(right);
  if (leftChildren.length !== rightChildren.length) return false;
  return leftChildren.every((child, index) => {
    const other = rightChildren[index];
    return other !== undefined && sameExpression(child, other);
  });
}

/** Whether two expressions of the same kind are equal except for their operands. */
export function sameForm(left: BoundExpression, right: BoundExpression): boolean {
  if (left.kind === "subquery" && right.kind === "subquery") {
    return sameQuery(left.subquery, right.subquery);
  }
  if (left.kind !== "constant" || right.kind !== "constant") return formOf(left) === formOf(right);
  if (left.value === right.value) return true;
  if (left.value === null || right.value === null || left.type.kind === "unknown") return false;
  // Bytes, intervals and arrays are objects, so they are compared as text. Equal values have equal
  // text.
  return textFromValue(left.type, left.value) === textFromValue(right.type, right.value);
}

/** Whether two subqueries are equal except for their operands and outer references. */
function sameQuery(left: BoundSubquery, right: BoundSubquery): boolean {
  if (left === right) return true;
  const [one, other] = [left.written, right.written];
  if (one === undefined || other === undefined) return false;
  if (one.scope !== other.scope || one.column !== other.column) return false;
  if (left.form.kind !== right.form.kind || operatorOf(left) !== operatorOf(right)) return false;
  return sameTree(one.node, other.node);
}

function operatorOf({ form }: BoundSubquery): string | undefined {
  return "operator" in form ? form.operator : undefined;
}

/**
 * Returns the properties, other than operands, that distinguish an expression from other
 * expressions of its kind.
 */
function formOf(expression: BoundExpression): unknown {
  switch (expression.kind) {
    case "column":
      return expression.column.id;
    case "slot":
      return expression.slot;
    case "outer":
      return expression.id;
    case "call":
      return expression.name;
    case "compare":
    case "arithmetic":
      return expression.operator;
    case "is":
      return `${expression.test} ${expression.negated}`;
    case "in":
      return `${expression.negated} ${constantsText(expression)}`;
    case "row in":
      return expression.operands.length;
    default:
      return undefined;
  }
}

/** Returns a string for a list of constants. Equal lists have equal strings. */
function constantsText({
  constants,
  operand: { type },
}: Extract<BoundExpression, { kind: "in" }>): string {
  return JSON.stringify(
    constants.map((value) => (value === null ? null : textFromValue(type, value))),
  );
}

/** Whether two ORDER BY lists sort rows in the same order. */
export function sameSorts(left: readonly BoundSort[], right: readonly BoundSort[]): boolean {
  return left.length === right.length && left.every((sort, i) => sameSort(sort, right[i]));
}

function sameSort(left: BoundSort, right: BoundSort | undefined): boolean {
  return (
    right !== undefined &&
    left.isDescending === right.isDescending &&
    left.nullsFirst === right.nullsFirst &&
    sameExpression(left.expression, right.expression)
  );
}

export function sameList(
  left: readonly BoundExpression[],
  right: readonly BoundExpression[],
): boolean {
  return left.length === right.length && left.every((e, i) => sameOptional(e, right[i]));
}

export function sameOptional(
  left: BoundExpression | undefined,
  right: BoundExpression | undefined,
): boolean {
  if (left === undefined || right === undefined) return left === right;
  return sameExpression(left, right);
}

/**
 * Whether an expression casts a literal such as 'now' to a time. The value would be different at
 * each write.
 */
export function holdsTimeWord(expression: BoundExpression): boolean {
  if (expression.kind === "call" && expression.readsTimeWords === true) {
    const [operand] = expression.args;
    const value = operand?.kind === "constant" ? operand.value : undefined;
    if (typeof value === "string" && isTimeWord(value)) return true;
  }
  return childrenOf(expression).some(holdsTimeWord);
}

/**
 * Removes a cast that changes neither the stored form of a value nor its order, such as a cast to
 * a wider integer, to a timestamp with or without a time zone, or to a string type without a
 * limit. Returns any other expression unchanged.
 */
export function withoutIdleCast(expression: BoundExpression): BoundExpression {
  if (expression.kind !== "cast") return expression;
  const { isNumericIdentity, isSameText, operand, type } = expression;
  const isIdle = isSameText === true || (isNumericIdentity && areOfOneScale(operand.type, type));
  return isIdle ? operand : expression;
}

/**
 * Whether two types both contain integers or both contain timestamps. Such values are stored and
 * compared in the same form.
 */
export function areOfOneScale(one: DataType, other: DataType): boolean {
  return (isInteger(one) && isInteger(other)) || (isMoment(one) && isMoment(other));
}

function isMoment({ kind }: DataType): boolean {
  return kind === "timestamp" || kind === "datetime";
}
