/**
 * Chooses the secondary indexes through which the rows of a table can be found.
 *
 *     index (a, b, c)    a = 1 AND b IN (2, 3) AND c > 4        keys (1, 2), (1, 3), then c above 4
 *                        (a, b) IN ((1, 2), (3, 4))             keys (1, 2), (3, 4)
 *                        (a, b) > (1, 2)                        above (1, 2)
 *                        a = 1 AND b LIKE 'x%'                  key (1), then b from 'x' to 'y'
 *
 * All conditions are tested above the scan, so an index may yield too many rows, but never too
 * few.
 */
import {
  type IndexEntry,
  indexPartsOf,
  isInverted,
  readIndexesOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import type { BoundExpression, ComparisonOperator } from "../bind/bound_expressions.ts";
import { asKeysOf, excludesNull, guardsFor, withoutCondition } from "../bind/change/index_terms.ts";
import { conjunctsOf, sameExpression } from "../bind/walk.ts";
import { termOperatorOf } from "../functions/search/terms.ts";
import {
  beginningIn,
  boundIn,
  equalityIn,
  isFixed,
  keyCountOf,
  soughtKeysOf,
  storedColumnId,
} from "./access.ts";
import { type Condition, conditionOf, expressionsOf } from "./conditions.ts";
import type {
  IndexAccess,
  IndexEdge,
  KeyPart,
  RowAccess,
  SoughtKeys,
  TermCondition,
} from "./plan.ts";

/**
 * The maximum number of indexes that one execution compares with each other. Assessing an index
 * takes a few microseconds.
 */
const COMPARED_MAX = 4;

const NO_KEYS: SoughtKeys = [[]];

/** Returns the indexes that the conditions can use, most promising first. */
export function indexesFor(
  table: TableEntry,
  conditions: readonly Condition[],
): readonly IndexAccess[] | undefined {
  const indexes = readIndexesOf(table);
  if (indexes.length === 0 || conditions.length === 0) return undefined;
  const found = indexes
    .filter(({ state }) => state === "ready")
    .flatMap((index) => accessBy(table, index, conditions) ?? [])
    .toSorted((left, right) => promiseOf(right) - promiseOf(left));
  return found.length === 0 ? undefined : found.slice(0, COMPARED_MAX);
}

/** The maximum number of alternatives of an OR whose rows are found through indexes. */
const ALTERNATIVES_MAX = 16;

/**
 * The maximum number of conjuncts among which an OR is searched. Each alternative of each OR is
 * combined with all other conjuncts, so planning time would be quadratic in their number.
 */
const CONDITIONS_MAX = 32;

/**
 * If one of the conditions is an OR whose alternatives can all be found through indexes, returns
 * an index access for each alternative. Together, these accesses find all matching rows.
 */
export function alternativesFor(
  table: TableEntry,
  conditions: readonly Condition[],
): readonly RowAccess[] | undefined {
  if (conditions.length > CONDITIONS_MAX) return undefined;
  for (const condition of conditions) {
    const { expression } = condition;
    if (expression.kind !== "or" || expression.operands.length > ALTERNATIVES_MAX) continue;
    // A row comparison has the form of an OR, but is a single range of keys.
    if (rowBoundIn(expression) !== undefined) continue;
    const others = conditions.filter((each) => each !== condition);
    const accesses = expression.operands.map((alternative) =>
      bestAccess(table, [...conjunctsOf(alternative).map(conditionOf), ...others]),
    );
    const found = accesses.filter((access) => access !== undefined);
    if (found.length === accesses.length) return found;
  }
  return undefined;
}

function bestAccess(table: TableEntry, conditions: readonly Condition[]): RowAccess | undefined {
  const keys = soughtKeysOf(table.primaryKey, conditions);
  if (keys !== undefined) return { index: undefined, keys };
  return indexesFor(table, conditions)?.[0];
}

/** Whether all rows of the table can be read in the order of an index. */
export function isReadable(index: IndexEntry): boolean {
  return index.state === "ready" && index.where === undefined && !isInverted(index);
}

/** Returns the number of leading index columns whose values an access lists. */
export function depthOf({ keys }: Pick<IndexAccess, "keys">): number {
  return keys[0]?.length ?? 0;
}

/** Whether an access finds at most one row per key. */
export function isUniqueAccess(access: IndexAccess): boolean {
  const { guards, index, keys } = access;
  const isWhole = guards.length === 0 && depthOf(access) === index.columnIds.length;
  // A unique index may contain any number of rows whose key includes NULL.
  const hasNull = keys.some((parts) => parts.some(({ isNull }) => isNull === true));
  return index.isUnique && isWhole && !hasNull;
}

/** Returns an access that reads all keys of an index. */
export function wholeOf(index: IndexEntry): IndexAccess {
  return { index, keys: NO_KEYS, edges: [], beginnings: [], guards: [], endsAtNull: false };
}

/**
 * Reduces an access to the leading columns for which it lists a single value. The rows then arrive
 * in the order of the remaining index columns.
 */
export function withinSingle(access: IndexAccess): IndexAccess {
  const [parts = []] = access.keys;
  const count = access.keys.length > 1 ? 0 : parts.findIndex((part) => !isSingle(part));
  if (count === -1) return access;
  return { ...access, keys: [parts.slice(0, count)], edges: [], beginnings: [] };
}

function isSingle({ constants, isNull, items, lists }: KeyPart): boolean {
  return isNull === true || (items.length + constants.length === 1 && lists.length === 0);
}

/**
 * Returns the key, in key order, if the conditions consist of exactly one equality for each column
 * of an index, plus the condition of a partial index. Otherwise, returns undefined.
 */
export function wholeKeyIn(
  table: TableEntry,
  condition: BoundExpression,
  { guards, index }: IndexAccess,
): readonly BoundExpression[] | undefined {
  const { columnIds } = index;
  if (isInverted(index) || guards.length > 0) return undefined;
  const equalities = withoutCondition(table, index, conjunctsOf(condition)).map((each) =>
    equalityIn(asKeysOf(each, { table, index }, [])),
  );
  if (equalities.length !== columnIds.length) return undefined;
  const key = columnIds.flatMap(
    (columnId) => equalities.find((each) => each?.columnId === columnId)?.value ?? [],
  );
  return key.length === columnIds.length ? key : undefined;
}

function promiseOf(access: IndexAccess): number {
  if (isUniqueAccess(access)) return Number.MAX_SAFE_INTEGER - keyCountOf(access.keys);
  const { beginnings, edges, terms = [] } = access;
  return 2 * depthOf(access) + Math.min(1, edges.length + beginnings.length + terms.length);
}

function accessBy(
  table: TableEntry,
  index: IndexEntry,
  written: readonly Condition[],
): IndexAccess | undefined {
  const { columnIds, where } = index;
  const needed = guardsFor(table, index, expressionsOf(written));
  if (needed === undefined) return undefined;
  const guards = [...needed];
  const conditions = written.map((condition) => {
    return { ...condition, expression: asKeysOf(condition.expression, { table, index }, guards) };
  });
  if (isInverted(index)) {
    const terms = conditions.flatMap(({ expression }) => termIn(table, index, expression) ?? []);
    return terms.length === 0 ? undefined : { ...wholeOf(index), guards, terms };
  }
  let keys = NO_KEYS;
  for (let depth = columnIds.length; depth > 0; depth -= 1) {
    const listed = soughtKeysOf(columnIds.slice(0, depth), conditions, {
      findsNull: true,
      findsLoose: true,
    });
    if (listed === undefined) continue;
    keys = listed;
    break;
  }
  const rest = columnIds.slice(depthOf({ keys }));
  const edges = conditions.flatMap(({ expression }) => edgeOf(expression, rest) ?? []);
  const beginnings = conditions
    .flatMap(({ expression }) => beginningIn(expression) ?? [])
    .filter(({ columnId }) => columnId === rest[0]);
  const isOpen = keys === NO_KEYS && edges.length + beginnings.length === 0;
  const endsAtNull = where !== undefined && isNeverNull(table, index);
  if (isOpen && !endsAtNull) return undefined;
  return { index, keys, edges, beginnings, guards, endsAtNull };
}

/** Returns the condition on the terms of an inverted index that an expression implies. */
function termIn(
  table: TableEntry,
  index: IndexEntry,
  condition: BoundExpression,
): TermCondition | undefined {
  // With a third argument, the call is a LIKE with an ESCAPE character.
  if (condition.kind !== "call" || condition.args.length !== 2) return undefined;
  const [left, right] = condition.args;
  if (left === undefined || right === undefined) return undefined;
  const sides = [
    { indexed: left, value: right, side: "left" },
    { indexed: right, value: left, side: "right" },
  ] as const;
  for (const { indexed, side, value } of sides) {
    const columnId = storedColumnId(indexed);
    const part = index.columnIds.indexOf(columnId ?? -1);
    const kind = indexPartsOf(table, index)[part]?.terms;
    if (kind === undefined || !isFixed(value)) continue;
    const operator = termOperatorOf(kind, condition.name, side);
    if (operator !== undefined) return { part, kind, operator, value };
  }
  return undefined;
}

/** Whether the condition of a partial index ensures that the first index column is not NULL. */
function isNeverNull(table: TableEntry, index: IndexEntry): boolean {
  const [first = 0] = index.columnIds;
  const column = table.columns.find(({ columnId }) => columnId === first);
  return column?.notNull === true || excludesNull(table, index, first);
}

/** Returns the bound that a condition sets on the leading columns of `columnIds`. */
function edgeOf(condition: BoundExpression, columnIds: readonly number[]): IndexEdge | undefined {
  const [first] = columnIds;
  const row = first === undefined ? undefined : rowBoundIn(condition);
  if (row === undefined || row.columnIds[0] !== first) return undefined;
  let count = 0;
  while (count < row.columnIds.length && row.columnIds[count] === columnIds[count]) count += 1;
  // If a bound has fewer columns than the condition compares, the bound must include the rows that
  // are equal in its columns.
  const isInclusive = row.operator.endsWith("=") || count < row.columnIds.length;
  const side = row.operator.startsWith("<") ? "max" : "min";
  return { side, values: row.values.slice(0, count), isInclusive };
}

/** A comparison of one or more columns with values, such as `(a, b) > (1, 2)`. */
interface BoundOnColumns {
  readonly columnIds: readonly number[];
  readonly values: readonly BoundExpression[];
  readonly operator: ComparisonOperator;
}

/**
 * Recognises a comparison with a constant. The binder writes row comparisons in the following
 * form, which is also recognised:
 *
 *     (a, b) > (1, 2)    =    a > 1 OR (a = 1 AND b > 2)
 */
function rowBoundIn(condition: BoundExpression): BoundOnColumns | undefined {
  if (condition.kind === "compare") {
    const bound = boundIn(condition);
    if (bound === undefined || bound.operator === "=" || bound.operator === "<>") return undefined;
    return { columnIds: [bound.columnId], values: [bound.value], operator: bound.operator };
  }
  if (condition.kind !== "or" || condition.operands.length !== 2) return undefined;
  const [before, both] = condition.operands;
  const head = before === undefined ? undefined : rowBoundIn(before);
  const [same, further] = conjunctsOf(both);
  if (head?.columnIds.length !== 1 || same === undefined || further === undefined) return undefined;
  const equal = boundIn(same);
  const rest = rowBoundIn(further);
  const [value] = head.values;
  if (equal?.operator !== "=" || rest === undefined || value === undefined) return undefined;
  const isOfOneRow =
    conjunctsOf(both).length === 2 &&
    equal.columnId === head.columnIds[0] &&
    sameExpression(equal.value, value) &&
    head.operator === rest.operator.charAt(0);
  if (!isOfOneRow) return undefined;
  return {
    columnIds: [equal.columnId, ...rest.columnIds],
    values: [value, ...rest.values],
    operator: rest.operator,
  };
}
