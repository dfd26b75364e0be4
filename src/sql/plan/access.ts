/**
 * Chooses how to read a table, based on conditions that determine its primary key or set bounds on
 * single columns.
 *
 * If the conditions list far fewer keys than the table has rows, the keys are looked up one by
 * one, which is faster than a scan. The conditions are always tested afterwards, so the list may
 * contain too many keys, but never too few.
 *
 * If only the first key column has listed values, a scan reads the rows with these values.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import { isCollated, isLooselyEqual, isNumberType, isTextType } from "../../types/mod.ts";
import type { BoundExpression, ComparisonOperator } from "../bind/bound_expressions.ts";
import { MIRRORED } from "../bind/expression/binary_forms.ts";
import {
  conjunctsOf,
  isVolatile,
  readsColumn,
  sameExpression,
  withoutIdleCast,
} from "../bind/walk.ts";
import type { Condition } from "./conditions.ts";
import type { KeyPart, PlannedRange, SoughtKeys } from "./plan.ts";

export interface TableAccess {
  /** The lookup of a single row, if the conditions determine the whole primary key. */
  readonly lookup: KeyAccess | undefined;
  /** The keys that matching rows may have, if the conditions list them. */
  readonly sought: SoughtKeys | undefined;
  /** The values that the first key column may have, if the conditions list them. */
  readonly prefix: readonly KeyPart[] | undefined;
  readonly ranges: readonly PlannedRange[];
  /** The bounds of string columns. */
  readonly textRanges: readonly PlannedRange[];
}

export interface KeyAccess {
  /** The value of each column of the primary key, in key order. */
  readonly key: readonly BoundExpression[];
  /** The conditions that the key implies. Every row that the lookup finds satisfies them. */
  readonly said: readonly Condition[];
}

/** A condition of the form `column operator value` whose value reads no columns. */
export interface ColumnBound {
  readonly columnId: number;
  readonly operator: ComparisonOperator;
  readonly value: BoundExpression;
}

interface BoundOf {
  readonly bound: ColumnBound;
  readonly condition: Condition;
}

/** Chooses the access path for conditions that must all be true. */
export function accessOf(table: TableEntry, conditions: readonly Condition[]): TableAccess {
  const bounds: BoundOf[] = [];
  const ranges: PlannedRange[] = [];
  const textRanges: PlannedRange[] = [];
  for (const condition of conditions) {
    const bound = boundIn(condition.expression);
    if (bound === undefined) {
      const begun = beginningIn(condition.expression);
      if (begun !== undefined) textRanges.push(begun);
      for (const range of rangesOfAlternatives(condition.expression)) {
        (isTextType(range.value.type) ? textRanges : ranges).push(range);
      }
      continue;
    }
    bounds.push({ bound, condition });
    const isText = isTextType(bound.value.type);
    const range = isText || isNumberType(bound.value.type) ? rangeOf(bound) : undefined;
    if (range === undefined) continue;
    if (!isText) ranges.push(range);
    else textRanges.push(range);
  }
  const lookup = keyAccessOf(table, bounds);
  if (lookup !== undefined) {
    return { lookup, sought: undefined, prefix: undefined, ranges, textRanges };
  }
  const { primaryKey } = table;
  const sought = soughtKeysOf(primaryKey, conditions);
  return { lookup, sought, prefix: prefixOf(primaryKey, conditions), ranges, textRanges };
}

/**
 * Returns the listed values of the first key column. A single value is handled as a range instead,
 * which needs no list.
 */
function prefixOf(
  primaryKey: readonly number[],
  conditions: readonly Condition[],
): readonly KeyPart[] | undefined {
  if (primaryKey.length < 2) return undefined;
  const listed = soughtKeysOf(primaryKey.slice(0, 1), conditions);
  if (listed === undefined || keyCountOf(listed) < 2) return undefined;
  return listed.flat();
}

/** The number of rows that can be scanned in the time it takes to find one row by its key. */
const ROWS_PER_KEY = 100;

/**
 * The maximum number of keys to look up in a table with rows of many owners. How many of the rows
 * belong to the caller is unknown when the query is planned.
 */
const OWN_KEYS_MAX = 32;

/**
 * The maximum number of keys to look up in any table. Their memory does not count against any
 * budget.
 */
const KEYS_MAX = 65_536;

/** Whether looking up the keys takes less work than reading the whole table. */
export function areFewKeys(
  { rowCount, table }: { readonly rowCount: () => number; readonly table: TableEntry },
  keyCount: number,
): boolean {
  if (table.kind !== "shared" && keyCount > OWN_KEYS_MAX) return false;
  return keyCount <= KEYS_MAX && keyCount * ROWS_PER_KEY < rowCount();
}

/** Whether a statement lists so few keys that looking them up takes less work than a scan. */
export function areListed(keyCount: number, rowCount: number): boolean {
  return keyCount <= KEYS_MAX && keyCount < rowCount;
}

/** The assumed number of elements in an array whose length is known only at run time. */
const ELEMENTS_EXPECTED = 10;

/** Returns the number of keys to look up. Duplicate keys are counted separately. */
export function keyCountOf(sought: SoughtKeys): number {
  return sought.reduce((sum, parts) => sum + productOf(parts), 0);
}

function productOf(parts: readonly KeyPart[]): number {
  return parts.reduce(
    (count, { constants, isNull, items, lists }) =>
      isNull === true
        ? count
        : count * (items.length + constants.length + lists.length * ELEMENTS_EXPECTED),
    1,
  );
}

/** The index or primary key in which keys are looked up. */
interface KeyUse {
  /** Whether a lookup can find keys that contain NULL. A primary key contains no NULL. */
  readonly findsNull?: boolean;
  /** Whether a lookup can find text that is equal under a nondeterministic collation. */
  readonly findsLoose?: boolean;
}

/**
 * Returns the keys that matching rows may have:
 *
 *     a IN (1, 2) AND b = 3             (1, 3), (2, 3)
 *     (a = 1 AND b = 2) OR (a = 3 AND b = 4)
 *
 * Returns undefined if the conditions do not list the keys.
 */
export function soughtKeysOf(
  primaryKey: readonly number[],
  conditions: readonly Condition[],
  use: KeyUse = {},
): SoughtKeys | undefined {
  if (primaryKey.length === 0) return undefined;
  const parts = new Map<number, KeyPart>();
  for (const { expression } of conditions) addPart(expression, parts, use);
  const whole = keyPartsOf(primaryKey, parts);
  if (whole !== undefined) return [whole];
  for (const { expression } of conditions) {
    const keys =
      expression.kind === "row in"
        ? keysOfRows(expression, primaryKey, parts)
        : keysOfAlternatives(expression, { primaryKey, parts, use });
    if (keys !== undefined) return keys;
  }
  return undefined;
}

function keysOfAlternatives(
  expression: BoundExpression,
  {
    parts,
    primaryKey,
    use,
  }: {
    readonly primaryKey: readonly number[];
    readonly parts: ReadonlyMap<number, KeyPart>;
    readonly use: KeyUse;
  },
): SoughtKeys | undefined {
  if (expression.kind !== "or") return undefined;
  const keys: (readonly KeyPart[])[] = [];
  for (const alternative of expression.operands) {
    // An alternative of an OR may itself be a list of rows.
    const inner =
      alternative.kind === "row in" ? keysOfRows(alternative, primaryKey, parts) : undefined;
    if (inner !== undefined) {
      keys.push(...inner);
      continue;
    }
    const own = new Map(parts);
    for (const each of conjunctsOf(alternative)) addPart(each, own, use);
    const key = keyPartsOf(primaryKey, own);
    if (key === undefined) return undefined;
    keys.push(key);
  }
  return keys;
}

/** Returns the keys contained in a list of rows. Each row has one value for each column. */
function keysOfRows(
  { operands, rows }: Extract<BoundExpression, { kind: "row in" }>,
  primaryKey: readonly number[],
  parts: ReadonlyMap<number, KeyPart>,
): SoughtKeys | undefined {
  const positions = new Map<number, number>();
  for (const [position, operand] of operands.entries()) {
    const columnId = storedColumnId(operand);
    if (columnId !== undefined) positions.set(columnId, position);
  }
  if (!primaryKey.some((columnId) => positions.has(columnId))) return undefined;
  if (!primaryKey.every((columnId) => positions.has(columnId) || parts.has(columnId))) {
    return undefined;
  }
  return rows.map((row) =>
    primaryKey.flatMap((columnId) => {
      const value = row[positions.get(columnId) ?? -1];
      return value === undefined ? (parts.get(columnId) ?? []) : partOf(value);
    }),
  );
}

function partOf(value: BoundExpression): KeyPart {
  return value.kind === "constant"
    ? { items: [], constants: [value.value], lists: [] }
    : { items: [value], constants: [], lists: [] };
}

const ONLY_NULL: KeyPart = { items: [], constants: [], lists: [], isNull: true };

function keyPartsOf(
  primaryKey: readonly number[],
  parts: ReadonlyMap<number, KeyPart>,
): readonly KeyPart[] | undefined {
  const key = primaryKey.flatMap((columnId) => parts.get(columnId) ?? []);
  return key.length === primaryKey.length ? key : undefined;
}

/** Adds the values that a condition lists for one column. */
function addPart(
  condition: BoundExpression,
  into: Map<number, KeyPart>,
  { findsLoose = false, findsNull = false }: KeyUse,
): void {
  const equality = equalityIn(condition) ?? (findsLoose ? looseEqualityIn(condition) : undefined);
  if (equality !== undefined) {
    into.set(equality.columnId, partOf(equality.value));
    return;
  }
  if (condition.kind === "is" && condition.test === "null" && !condition.negated) {
    const columnId = findsNull ? storedColumnId(condition.operand) : undefined;
    if (columnId !== undefined) into.set(columnId, ONLY_NULL);
    return;
  }
  if (condition.kind !== "in" || condition.negated) return;
  const columnId = storedColumnId(condition.operand);
  const { constants, items, list } = condition;
  if (columnId === undefined || into.has(columnId)) return;
  const lists = list === undefined ? [] : [list];
  if ([...items, ...lists].every(isFixed)) {
    into.set(columnId, { items, constants, lists });
  }
}

function rangeOf({ columnId, operator, value }: ColumnBound): PlannedRange | undefined {
  switch (operator) {
    case "=":
      return { columnId, min: value, max: value };
    case ">":
    case ">=":
      return { columnId, min: value, max: undefined };
    case "<":
    case "<=":
      return { columnId, min: undefined, max: value };
    default:
      return undefined;
  }
}

function keyAccessOf(
  { primaryKey }: TableEntry,
  bounds: readonly BoundOf[],
): KeyAccess | undefined {
  if (primaryKey.length === 0 || bounds.length < primaryKey.length) return undefined;
  const key: BoundExpression[] = [];
  const said: Condition[] = [];
  for (const columnId of primaryKey) {
    const fixing = bounds.find(
      ({ bound }) => bound.columnId === columnId && bound.operator === "=",
    );
    if (fixing === undefined) return undefined;
    key.push(fixing.bound.value);
    said.push(fixing.condition);
  }
  return { key, said };
}

/**
 * Returns the column and the value of `column = value` on a stored column, or undefined for any
 * other condition.
 */
export function equalityIn(
  condition: BoundExpression,
): { columnId: number; value: BoundExpression } | undefined {
  const bound = boundIn(condition);
  return bound?.operator === "=" ? { columnId: bound.columnId, value: bound.value } : undefined;
}

/**
 * Returns the column and the value of `column = value` for a column with a nondeterministic
 * collation.
 */
function looseEqualityIn(condition: BoundExpression): ReturnType<typeof equalityIn> {
  if (condition.kind !== "compare" || condition.operator !== "=") return undefined;
  const { left, right } = condition;
  if (left.kind !== "column" || !isLooselyEqual(left.type) || !isFixed(right)) return undefined;
  const columnId = left.column.origin?.columnId;
  return columnId === undefined ? undefined : { columnId, value: right };
}

/**
 * Returns the bound that a comparison sets on a stored column, or undefined for any other
 * condition.
 */
export function boundIn(condition: BoundExpression): ColumnBound | undefined {
  if (condition.kind !== "compare") return undefined;
  const { left, operator, right } = condition;
  const leftColumn = storedColumnId(left);
  if (leftColumn !== undefined && isFixed(right)) {
    return { columnId: leftColumn, operator, value: right };
  }
  const rightColumn = storedColumnId(right);
  if (rightColumn !== undefined && isFixed(left)) {
    return { columnId: rightColumn, operator: MIRRORED[operator], value: left };
  }
  return undefined;
}

/** The maximum number of alternatives in an OR that is searched for common bounds. */
const ALTERNATIVES_MAX = 8;

/**
 * Returns the bounds that all alternatives in an OR have in common, as in row comparisons:
 *
 *     (a, b) > (1, 2)    =    a > 1 OR (a = 1 AND b > 2)    ⟹    a >= 1
 */
function rangesOfAlternatives(
  condition: BoundExpression,
): (PlannedRange & { readonly value: BoundExpression })[] {
  if (condition.kind !== "or" || condition.operands.length > ALTERNATIVES_MAX) return [];
  const [first = [], ...others] = condition.operands.map((alternative) =>
    conjunctsOf(alternative).flatMap((each) => boundIn(each) ?? []),
  );
  return first.flatMap((bound) => {
    const { columnId, value } = bound;
    if (!(isTextType(value.type) || isNumberType(value.type))) return [];
    const isShared = (side: "min" | "max"): boolean =>
      [[bound], ...others].every((bounds) =>
        bounds.some((other) => {
          const range = other.columnId === columnId ? rangeOf(other) : undefined;
          return range?.[side] !== undefined && sameExpression(other.value, value);
        }),
      );
    const min = isShared("min") ? value : undefined;
    const max = isShared("max") ? value : undefined;
    return min === undefined && max === undefined ? [] : [{ columnId, min, max, value }];
  });
}

/** The functions and operators that test whether a string starts with a prefix. */
const BEGINNINGS: ReadonlySet<string> = new Set(["starts_with", "^@"]);

/**
 * Returns the range for `column LIKE pattern` if the pattern has a fixed prefix, and for
 * `starts_with(column, prefix)`.
 */
export function beginningIn(condition: BoundExpression): PlannedRange | undefined {
  if (condition.kind !== "call") return undefined;
  const [text, value, escape] = condition.args;
  const isPlain = BEGINNINGS.has(condition.name);
  if (!isPlain && (condition.like === undefined || condition.like.isNegated)) return undefined;
  if (text === undefined || value === undefined || escape !== undefined) return undefined;
  const columnId = isTextType(text.type) ? storedColumnId(text) : undefined;
  if (columnId === undefined || !isFixed(value)) return undefined;
  const open = { columnId, min: undefined, max: undefined };
  return isPlain ? { ...open, beginning: value } : { ...open, like: value };
}

/**
 * Returns the id of the stored column that is an operand of a comparison, or undefined if the
 * operand is anything else.
 */
export function storedColumnId(expression: BoundExpression): number | undefined {
  // Text is stored and compared in code point order, which other collations do not follow.
  if (isCollated(expression.type)) return undefined;
  const compared = withoutIdleCast(expression);
  // Texts that are equal under a nondeterministic collation need not be identical, so a lookup by
  // code points does not find all of them.
  if (isLooselyEqual(compared.type)) return undefined;
  return compared.kind === "column" ? compared.column.origin?.columnId : undefined;
}

/** Whether an expression has the same value for all rows of one execution. */
export function isFixed(expression: BoundExpression): boolean {
  return !readsColumn(expression) && !isVolatile(expression);
}
