/**
 * Defines the interface of aggregates. An aggregate has a state for consecutive group numbers, to
 * which rows are added one by one or vector by vector.
 */
import type { DataType, Value, Vector } from "../../../types/mod.ts";

/** Assigns the rows of a batch to groups. */
export interface BatchGroups {
  /** The group to which each row belongs. */
  readonly ids: Uint32Array;
  /** A number greater than all group numbers in the batch. */
  readonly groupCount: number;
  /**
   * The number of rows in each group; undefined if it is expensive to determine. It may be
   * computed on access.
   */
  readonly rowCounts: Uint32Array | undefined;
  /** Whether `rowCounts` has already been computed. */
  readonly isCounted?: boolean;
}

/**
 * The state of an aggregate for all groups of a query.
 *
 * Groups are numbered consecutively from 0. A group to which no row was added has the result of
 * the aggregate over no rows.
 */
export interface AggregateState {
  /** Whether the state's memory grows with each row rather than only with each group. */
  readonly keepsRows?: boolean;
  /**
   * Adds a row. The arguments are in order, may be NULL, and have already been cast to the
   * argument types of the aggregate. count(*) has no arguments.
   */
  add(group: number, ...values: readonly Value[]): void;
  /**
   * Adds `count` rows at once. If `groups` is undefined, all rows go to group 0. `vector` is the
   * only argument; undefined for count(*).
   *
   * @returns False, without any effect, if there is no loop for this kind of vector.
   */
  addVector?(groups: BatchGroups | undefined, vector: Vector | undefined, count: number): boolean;
  /**
   * Removes a row that was added before. Present only if removing rows leaves the result exact.
   *
   * @returns False if the row could not be removed, so that the state must be computed again.
   */
  remove?(group: number, ...values: readonly Value[]): boolean | void;
  /**
   * Returns the result so far. Rows added later do not change a returned result.
   *
   * @param checkTime Called at intervals during a long computation.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the result does not fit its type.
   */
  finish(group: number, checkTime?: () => void): Value;
  /**
   * Returns the results of groups from `start` (inclusive) to `end` (exclusive) as a vector, if
   * this does not require creating a separate value for each group. Otherwise, returns undefined,
   * and the results have to be read one by one.
   */
  finishRange?(start: number, end: number): Vector | undefined;
}

/** An aggregate function for certain argument types. */
export interface AggregateForm {
  readonly name: string;
  /** The types to which the arguments are cast; empty for count(*). */
  readonly argumentTypes: readonly DataType[];
  readonly result: DataType;
  /**
   * Whether rows must be added in WITHIN GROUP order. The expression in WITHIN GROUP is passed as
   * the last argument.
   */
  readonly isOrderedSet?: boolean;
  /** Whether the result depends on the order of the rows. */
  readonly keepsOrder?: boolean;
  /**
   * Whether the result contains the value of every row and may therefore be as large as all of
   * these values together.
   */
  readonly gathers?: boolean;
  /** Whether repeated arguments do not change the result. If so, DISTINCT can be omitted. */
  readonly ignoresRepeats?: boolean;
  create(): AggregateState;
}

/**
 * Returns an array that has an element for `group`: either the given array or an enlarged copy.
 */
export function grown(array: Float64Array<ArrayBuffer>, group: number): Float64Array<ArrayBuffer> {
  if (group < array.length) return array;
  const larger = new Float64Array(Math.max(16, 2 * array.length, group + 1));
  larger.set(array);
  return larger;
}

/** Adds the number of non-NULL rows that a batch has in each group to the count of that group. */
export function addCounts(
  into: Float64Array,
  { groups, nulls }: { groups: BatchGroups; nulls: Uint8Array | undefined },
): void {
  const { ids, rowCounts } = groups;
  if (nulls === undefined && rowCounts !== undefined) {
    for (let group = 0; group < rowCounts.length; group += 1) {
      into[group] = (into[group] ?? 0) + (rowCounts[group] ?? 0);
    }
  } else if (nulls === undefined) {
    for (let row = 0; row < ids.length; row += 1) {
      const group = ids[row] ?? 0;
      into[group] = (into[group] ?? 0) + 1;
    }
  } else {
    for (let row = 0; row < ids.length; row += 1) {
      const group = ids[row] ?? 0;
      into[group] = (into[group] ?? 0) + 1 - (nulls[row] ?? 0);
    }
  }
}

/** Counts the non-NULL rows among the first `count` rows. */
export function presentCount(nulls: Uint8Array | undefined, count: number): number {
  if (nulls === undefined) return count;
  let sum = count;
  for (let row = 0; row < count; row += 1) sum -= nulls[row] ?? 0;
  return sum;
}
