/**
 * What an aggregate is: a state for dense group numbers, filled row by row or vector by vector.
 */
import type { DataType, Value, Vector } from "../../../types/mod.ts";

/** To which groups the rows of a batch belong. */
export interface BatchGroups {
  /** The group of each row. */
  readonly numbers: Uint32Array;
  /** Above every number. */
  readonly groupCount: number;
  /** How many of the rows each group has, where that is cheap to know; it may be counted now. */
  readonly rowCounts: Uint32Array | undefined;
  /** Whether it costs nothing any more. */
  readonly isCounted?: boolean;
}

/**
 * One aggregate under way, for all groups of a query.
 *
 * Groups are numbers from 0 without gaps; a group that was never added to finishes as over no rows.
 */
export interface AggregateState {
  /** Whether what it holds grows with each row, not only with each group. */
  readonly keepsRows?: boolean;
  /**
   * Adds one row: the arguments in order, NULL included, already cast to the form's argument
   * types; none for count(*).
   */
  add(group: number, ...values: readonly Value[]): void;
  /**
   * Adds `count` rows at once; without `groups`, all to group 0. `vector` is the one argument,
   * undefined for count(*).
   *
   * @returns false, and does nothing, if there is no loop for this kind of vector.
   */
  addVector?(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean;
  /** Takes back a row that was added: present where that is exact. */
  remove?(group: number, ...values: readonly Value[]): void;
  /**
   * The result so far; more rows may follow. It is not changed by them.
   *
   * @param checkTime Called while a result takes long to make.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the result does not fit its type.
   */
  finish(group: number, checkTime?: () => void): Value;
  /**
   * The results of groups from `start` (inclusive) to `end` (exclusive), where no value has to be
   * made for each; undefined when they must be asked for one by one.
   */
  finishRange?(start: number, end: number): Vector | undefined;
}

/** An aggregate for certain argument types. */
export interface AggregateForm {
  readonly name: string;
  /** Types to which the arguments are cast; empty for count(*). */
  readonly argumentTypes: readonly DataType[];
  readonly result: DataType;
  /**
   * Rows must be added in the order of WITHIN GROUP, whose expression is the last argument; the
   * arguments in parentheses come before it.
   */
  readonly isOrderedSet?: boolean;
  /** The result shows the order of the rows. */
  readonly keepsOrder?: boolean;
  /** The result holds the value of every row, so it may be as large as all of them together. */
  readonly gathers?: boolean;
  /** More of the same argument do not change the result, so DISTINCT can be left out. */
  readonly ignoresRepeats?: boolean;
  create(): AggregateState;
}

/** Grows a typed array so that it has an element for `group`. */
export function grown(array: Float64Array<ArrayBuffer>, group: number): Float64Array<ArrayBuffer> {
  if (group < array.length) return array;
  const larger = new Float64Array(Math.max(16, 2 * array.length, group + 1));
  larger.set(array);
  return larger;
}

/** Adds to each group how many rows of a batch it has, of those that are not NULL. */
export function addCounts(
  into: Float64Array,
  { groups, nulls }: { groups: BatchGroups; nulls: Uint8Array | undefined },
): void {
  const { numbers, rowCounts } = groups;
  if (nulls === undefined && rowCounts !== undefined) {
    for (let group = 0; group < rowCounts.length; group += 1) {
      into[group] = (into[group] ?? 0) + (rowCounts[group] ?? 0);
    }
  } else if (nulls === undefined) {
    for (let row = 0; row < numbers.length; row += 1) {
      const group = numbers[row] ?? 0;
      into[group] = (into[group] ?? 0) + 1;
    }
  } else {
    for (let row = 0; row < numbers.length; row += 1) {
      const group = numbers[row] ?? 0;
      into[group] = (into[group] ?? 0) + 1 - (nulls[row] ?? 0);
    }
  }
}

/** How many of the first `count` rows are not NULL. */
export function presentCount(nulls: Uint8Array | undefined, count: number): number {
  if (nulls === undefined) return count;
  let sum = count;
  for (let row = 0; row < count; row += 1) sum -= nulls[row] ?? 0;
  return sum;
}
