/**
 * Finds the expressions and conditions of an index within a statement.
 *
 *     index (lower(a)) WHERE b > 5       lower(a) = $1 AND b > 7      the expression, the condition
 *
 * The literals of a statement are known only when it runs. If a constant of the index corresponds
 * to a literal of the statement, the comparison of the two becomes a **guard**: an execution uses
 * the index only if the guard is true.
 */
import type { IndexEntry, TableEntry } from "../../../catalog/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  comparatorFor,
  type DataType,
  isCollated,
  isInteger,
  isLooselyEqual,
  isTextType,
  sameType,
  type Value,
} from "../../../types/mod.ts";
import { type ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression, ComparisonOperator } from "../bound_expressions.ts";
import { MIRRORED } from "../expression/binary_forms.ts";
import { bindCondition, bindExpression } from "../expression/expression_binder.ts";
import { parseStored } from "../expression/type_names.ts";
import { Scope } from "../scope.ts";
import {
  areOfOneScale,
  childrenOf,
  conjunctsOf,
  hasSubquery,
  isVolatile,
  mapChildren,
  readsColumn,
  sameExpression,
  sameForm,
  withoutIdleCast,
} from "../walk.ts";

/** The bound parts of an index definition. */
interface IndexTerms {
  /** The key expressions of the index, each with the column that represents it. */
  readonly keys: readonly { readonly term: BoundExpression; readonly standIn: BoundExpression }[];
  /** The condition of a partial index, as a list of conditions joined by AND. */
  readonly where: readonly BoundExpression[];
}

const NOTHING: IndexTerms = { keys: [], where: [] };
const termsOf = new WeakMap<TableEntry, Map<number, IndexTerms>>();

function termsIn(table: TableEntry, index: IndexEntry): IndexTerms {
  const { expressions, indexId, where } = index;
  if (expressions === undefined && where === undefined) return NOTHING;
  let known = termsOf.get(table);
  if (known === undefined) termsOf.set(table, (known = new Map()));
  let terms = known.get(indexId);
  if (terms === undefined) known.set(indexId, (terms = boundTerms(table, index)));
  return terms;
}

/** Returns the context in which index expressions over a table's columns are bound. */
export function indexContext(table: TableEntry, alias = table.name): ExpressionContext {
  const columns = table.columns.map(({ columnId, name, type }): BoundColumn => {
    return { id: columnId, name, type, origin: { table, columnId } };
  });
  const relation = { alias, namespace: undefined, columns, systemColumns: [] };
  const scope = new Scope([relation]);
  return { statement: new StatementBinding([]), scope, clause: "an index", sink: undefined };
}

function boundTerms(table: TableEntry, { expressions = [], where }: IndexEntry): IndexTerms {
  const context = indexContext(table);
  return {
    keys: expressions.map(({ columnId, sql, type }) => {
      const column = { id: columnId, name: sql, type, origin: { table, columnId } };
      return {
        term: bindExpression(parseStored(sql, table.columns), context),
        standIn: { kind: "column", type, column },
      };
    }),
    where:
      where === undefined
        ? []
        : conjunctsOf(bindCondition(parseStored(where.sql, table.columns), context)),
  };
}

/**
 * Replaces the expressions of an index with the columns that represent them, and appends the
 * guards of these replacements to the given guards.
 */
export function asKeysOf(
  expression: BoundExpression,
  { index, table }: { readonly table: TableEntry; readonly index: IndexEntry },
  guards: BoundExpression[],
): BoundExpression {
  const { keys } = termsIn(table, index);
  if (keys.length === 0) return expression;
  const replaced = (part: BoundExpression): BoundExpression => {
    for (const { standIn, term } of keys) {
      const needed = matched(part, term);
      if (needed === undefined) continue;
      guards.push(...needed);
      return standIn;
    }
    return mapChildren(part, replaced);
  };
  return replaced(expression);
}

/**
 * Returns the guards under which the index contains every row that meets the conditions; undefined
 * if the index may lack some of these rows.
 */
export function guardsFor(
  table: TableEntry,
  index: IndexEntry,
  conditions: readonly BoundExpression[],
): readonly BoundExpression[] | undefined {
  return implied(conditions, termsIn(table, index).where);
}

/** Returns the conditions of a statement that the index condition does not already guarantee. */
export function withoutCondition(
  table: TableEntry,
  index: IndexEntry,
  conditions: readonly BoundExpression[],
): readonly BoundExpression[] {
  const { where } = termsIn(table, index);
  if (where.length === 0) return conditions;
  return conditions.filter((each) => !where.some((term) => matched(each, term)?.length === 0));
}

/**
 * Whether the index excludes every row with NULL in the column. This holds if the index condition
 * cannot be true when the column is NULL.
 */
export function excludesNull(table: TableEntry, index: IndexEntry, columnId: number): boolean {
  const isColumn = (part: BoundExpression): boolean =>
    part.kind === "column" && part.column.origin?.columnId === columnId;
  return termsIn(table, index).where.some(
    (each) => isNullTest(each, true)?.some(isColumn) === true || isStrict(each, isColumn),
  );
}

/**
 * Returns the guards under which one set of conditions implies another; undefined if it never
 * does.
 */
function implied(
  conditions: readonly BoundExpression[],
  wanted: readonly BoundExpression[],
): readonly BoundExpression[] | undefined {
  const guards: BoundExpression[] = [];
  for (const each of wanted) {
    const needed = impliedOne(conditions, each);
    if (needed === undefined) return undefined;
    guards.push(...needed);
  }
  return guards;
}

function impliedOne(
  conditions: readonly BoundExpression[],
  wanted: BoundExpression,
): readonly BoundExpression[] | undefined {
  let best: readonly BoundExpression[] | undefined;
  const consider = (guards: readonly BoundExpression[] | undefined): void => {
    if (guards !== undefined && guards.length < (best?.length ?? Infinity)) best = guards;
  };
  for (const condition of conditions) consider(implies(condition, wanted));
  if (wanted.kind === "or") {
    for (const operand of wanted.operands) consider(implied(conditions, conjunctsOf(operand)));
  }
  return best;
}

function implies(
  given: BoundExpression,
  wanted: BoundExpression,
): readonly BoundExpression[] | undefined {
  const guards = matched(given, wanted);
  // A match that depends on guards may be too restrictive: `a > $1` may imply `a > 5` even if $1
  // is not 5.
  const ofBound = guards?.length === 0 ? undefined : impliesBound(given, wanted);
  const found = ofBound ?? guards;
  if (found !== undefined) return found;
  if (given.kind === "or") {
    const parts = given.operands.map((each) => implied(conjunctsOf(each), [wanted]));
    return parts.every((each) => each !== undefined) ? parts.flat() : undefined;
  }
  const truth = truthOf(given);
  const wantedTruth = truthOf(wanted);
  if (truth !== undefined && wantedTruth !== undefined && truth.isTrue === wantedTruth.isTrue) {
    return matched(truth.operand, wantedTruth.operand);
  }
  const [operand] = isNullTest(wanted, true) ?? [];
  if (operand === undefined) return undefined;
  return isStrict(given, (part) => matched(part, operand)?.length === 0) ? [] : undefined;
}

/**
 * Returns the operand of `operand IS NULL` or, if `isNegated` is set, of `operand IS NOT NULL`.
 */
function isNullTest(
  condition: BoundExpression,
  isNegated: boolean,
): readonly BoundExpression[] | undefined {
  const isTest = condition.kind === "is" && condition.test === "null";
  return isTest && condition.negated === isNegated ? [condition.operand] : undefined;
}

/**
 * Whether a condition can never be true for a row in which the given part of the condition is
 * NULL.
 */
function isStrict(condition: BoundExpression, isPart: (part: BoundExpression) => boolean): boolean {
  const reaches = (part: BoundExpression): boolean =>
    isPart(part) || (part.kind === "cast" && reaches(part.operand));
  switch (condition.kind) {
    case "compare":
      return reaches(condition.left) || reaches(condition.right);
    case "in":
      return !condition.negated && reaches(condition.operand);
    case "row in":
      return condition.operands.some(reaches);
    case "call":
      return condition.like !== undefined && condition.args.some(reaches);
    case "is":
      return condition.test !== "null" && !condition.negated && reaches(condition.operand);
    case "not":
      return condition.operand.kind === "compare"
        ? isStrict(condition.operand, isPart)
        : reaches(condition.operand);
    default:
      return reaches(condition);
  }
}

interface Proposition {
  readonly operand: BoundExpression;
  readonly isTrue: boolean;
}

/**
 * Recognises a test of a boolean expression: `a`, `NOT a`, `a = true`, `a = false`, `a IS TRUE` or
 * `a IS FALSE`.
 */
function truthOf(condition: BoundExpression): Proposition | undefined {
  if (condition.kind === "not") {
    // NOT (a IS TRUE) is also true if a is NULL.
    const inner = condition.operand.kind === "is" ? undefined : truthOf(condition.operand);
    return inner && { ...inner, isTrue: !inner.isTrue };
  }
  if (condition.kind === "is" && condition.test !== "null" && !condition.negated) {
    return { operand: condition.operand, isTrue: condition.test === "true" };
  }
  if (condition.kind === "compare" && condition.operator === "=") {
    const { left, right } = condition;
    const value = right.kind === "constant" ? right.value : undefined;
    return typeof value === "boolean" ? { operand: left, isTrue: value } : undefined;
  }
  return condition.kind === "column" ? { operand: condition, isTrue: true } : undefined;
}

interface Bound {
  readonly subject: BoundExpression;
  readonly operator: ComparisonOperator;
  readonly value: BoundExpression;
}

function boundOf(condition: BoundExpression): Bound | undefined {
  if (condition.kind !== "compare") return undefined;
  const { left, operator, right } = condition;
  if (isFixed(right)) return { subject: left, operator, value: right };
  if (isFixed(left)) return { subject: right, operator: MIRRORED[operator], value: left };
  return undefined;
}

/**
 * Maps the operators of an implied and a given comparison to the operator that must hold between
 * their bounds. For example, `a > 7` implies `a >= 5` because 7 >= 5.
 */
const STRONGER: Readonly<
  Record<string, Readonly<Partial<Record<ComparisonOperator, ComparisonOperator>>>>
> = {
  ">": { "=": ">", ">": ">=", ">=": ">" },
  ">=": { "=": ">=", ">": ">=", ">=": ">=" },
  "<": { "=": "<", "<": "<=", "<=": "<" },
  "<=": { "=": "<=", "<": "<=", "<=": "<=" },
  "<>": { "=": "<>", ">": ">=", "<": "<=" },
};

/**
 * Returns the guards under which one comparison implies another. For example, `a > 7` implies `a >
 * 5`, and `a = 1` implies `a IN (1, 2)`.
 */
function impliesBound(
  given: BoundExpression,
  wanted: BoundExpression,
): readonly BoundExpression[] | undefined {
  const bound = boundOf(given);
  if (bound === undefined) return undefined;
  if (wanted.kind === "in" && bound.operator === "=" && !wanted.negated) {
    const guards = matched(bound.subject, wanted.operand);
    return guards && [...guards, { ...wanted, operand: bound.value }];
  }
  const other = boundOf(wanted);
  if (other === undefined || !areAlike(bound.value.type, other.value.type)) return undefined;
  const operator = STRONGER[other.operator]?.[bound.operator];
  const guards = matched(bound.subject, other.subject);
  if (operator === undefined || guards === undefined) return undefined;
  return [...guards, compared(operator, bound.value, other.value)];
}

/**
 * Returns the guards under which an expression of a statement has the same value as a term of an
 * index; undefined if the two differ in form.
 */
function matched(
  given: BoundExpression,
  wanted: BoundExpression,
): readonly BoundExpression[] | undefined {
  // An index stores and compares text by code point, unless its column has a nondeterministic
  // collation.
  const isOfOwn = isCollated(given.type) || isLooselyEqual(wanted.type);
  if (isOfOwn && !sameType(given.type, wanted.type)) return undefined;
  const expression = withoutIdleCast(given);
  const term = withoutIdleCast(wanted);
  if (!areAlike(expression.type, term.type)) return undefined;
  if (isFixed(term)) {
    if (!isFixed(expression)) return undefined;
    return sameExpression(expression, term) ? [] : [compared("=", expression, term)];
  }
  if (expression.kind === "column" && term.kind === "column") {
    return expression.column.origin?.columnId === term.column.origin?.columnId ? [] : undefined;
  }
  if (expression.kind === "in" && term.kind === "in") return matchedLists(expression, term);
  if (expression.kind !== term.kind || !sameForm(expression, term)) return undefined;
  return matchedAll(childrenOf(expression), childrenOf(term));
}

function matchedAll(
  expressions: readonly BoundExpression[],
  terms: readonly BoundExpression[],
): readonly BoundExpression[] | undefined {
  if (expressions.length !== terms.length) return undefined;
  const guards: BoundExpression[] = [];
  for (const [at, expression] of expressions.entries()) {
    const term = terms[at];
    const needed = term && matched(expression, term);
    if (needed === undefined) return undefined;
    guards.push(...needed);
  }
  return guards;
}

/** Whether values of the two types can be compared in their stored form. */
function areAlike(one: DataType, other: DataType): boolean {
  return (
    sameType(one, other) || areOfOneScale(one, other) || (isTextType(one) && isTextType(other))
  );
}

type BoundList = Extract<BoundExpression, { kind: "in" }>;

function matchedLists(
  expression: BoundList,
  term: BoundList,
): readonly BoundExpression[] | undefined {
  const isOther = expression.list !== undefined || term.list !== undefined;
  if (isOther || expression.negated !== term.negated) return undefined;
  return matchedAll([expression.operand, ...itemsOf(expression)], [term.operand, ...itemsOf(term)]);
}

function itemsOf({ constants, items, operand: { type } }: BoundList): readonly BoundExpression[] {
  return [...items, ...constants.map((value) => ({ kind: "constant", type, value }) as const)];
}

/** Returns the comparison of two expressions of the same type. */
export function compared(
  operator: ComparisonOperator,
  left: BoundExpression,
  right: BoundExpression,
): BoundExpression {
  const compare = comparatorFor(isInteger(left.type) ? BIGINT : left.type);
  const evaluate = ([one = null, other = null]: readonly Value[]): boolean | null => {
    if (one === null || other === null) return null;
    const order = compare(one, other);
    if (operator === "=") return order === 0;
    if (operator === "<>") return order !== 0;
    const isEqual = order === 0 && operator.endsWith("=");
    return isEqual || (operator.startsWith("<") ? order < 0 : order > 0);
  };
  return { kind: "compare", type: BOOLEAN, operator, left, right, evaluate };
}

function isFixed(expression: BoundExpression): boolean {
  return !(readsColumn(expression) || isVolatile(expression) || hasSubquery(expression));
}
