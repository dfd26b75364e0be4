/**
 * Implements aggregates from which rows can be removed.
 *
 * | aggregate | kept for each group | a removed row |
 * |---|---|---|
 * | count | the number | is subtracted |
 * | sum, avg of integers and decimals | the sum and the number | is subtracted |
 * | min, max, bool_and, bool_or | the value and the number | is ignored if worse than the value |
 * | seq of the last change | the seq | sets it to the seq of the step |
 *
 * Sums of doubles are not included. Adding a value and removing it again leaves a rounding error,
 * so the result would differ from that of the SELECT.
 */
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { comparatorFor, type DataType, type Value } from "../../types/mod.ts";
import type { BoundAggregate } from "../bind/bound_expressions.ts";
import type { AggregateState } from "../functions/aggregate/aggregates.ts";
import { NotMaintained } from "./not_maintained.ts";

/**
 * The state of one aggregate for all groups. A group is identified by a small number, which is
 * reused after the group has been removed.
 */
export interface RowTally {
  /** The aggregates whose results in the seed initialise the state of a group. */
  readonly seeds: readonly ("itself" | "count" | "sum")[];
  /** Begins a step that ends at the given seq. */
  beginStep?(upTo: Seq): void;
  /** Initialises the state of a group with the results of the `seeds` aggregates. */
  seed(group: number, results: readonly Value[]): void;
  add(group: number, value: Value): void;
  remove(group: number, value: Value): void;
  /**
   * Whether the result for a group is unknown and can be recomputed only from the rows of the
   * group.
   */
  isUnknown(group: number): boolean;
  /** Returns the result of the aggregate for a group. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
  result(group: number): Value;
  /** Resets the state of a group that no longer exists. */
  clear(group: number): void;
}

/**
 * Whether an aggregate returns the first of several values that are equal but not identical, such
 * as 1.0 and 1.00. If so, its result depends on the order of the rows.
 */
export function showsFirstForm({ form }: Pick<BoundAggregate, "form">): boolean {
  const [type] = form.argumentTypes;
  const isExtreme = form.name === "min" || form.name === "max";
  return isExtreme && (type?.kind === "numeric" || type?.kind === "interval");
}

/** Creates the tally that maintains an aggregate. @throws {NotMaintained} */
export function tallyFor(aggregate: BoundAggregate): RowTally {
  const { extra, form, isDistinct, orderBy } = aggregate;
  const { name } = form;
  const isSimple = extra.length === 0 && orderBy.length === 0;
  const isRepeated = isDistinct && form.ignoresRepeats !== true;
  if (!isSimple || isRepeated)
    throw new NotMaintained(`the query has ${name} with DISTINCT or ORDER BY`);
  if (showsFirstForm(aggregate)) {
    throw new NotMaintained(
      `the query has ${name} of a type whose equal values may have different text forms`,
    );
  }
  switch (name) {
    case "count":
      return new CountTally();
    case "sum":
    case "avg": {
      const state = form.create();
      if (!canRemove(state)) throw new NotMaintained(`the query has ${name} of an inexact type`);
      return new SumTally(state);
    }
    case "min":
    case "bool_and":
    case "every":
      return new ExtremeTally(form.result, 1);
    case "max":
    case "bool_or":
      return new ExtremeTally(form.result, -1);
    default:
      throw new NotMaintained(`the query has ${name}`);
  }
}

class CountTally implements RowTally {
  readonly seeds = ["itself"] as const;
  readonly #counts: number[] = [];

  seed(group: number, [count = 0]: readonly Value[]): void {
    this.#counts[group] = Number(count);
  }

  add(group: number, value: Value): void {
    if (value !== null) this.#counts[group] = (this.#counts[group] ?? 0) + 1;
  }

  remove(group: number, value: Value): void {
    if (value !== null) this.#counts[group] = (this.#counts[group] ?? 0) - 1;
  }

  isUnknown(): boolean {
    return false;
  }

  result(group: number): Value {
    return this.#counts[group] ?? 0;
  }

  clear(group: number): void {
    this.#counts[group] = 0;
  }
}

type RemovingState = AggregateState & Required<Pick<AggregateState, "remove">>;

function canRemove(state: AggregateState): state is RemovingState {
  return state.remove !== undefined;
}

class SumTally implements RowTally {
  readonly seeds = ["sum", "count"] as const;
  readonly #state: RemovingState;

  constructor(state: RemovingState) {
    this.#state = state;
  }

  seed(group: number, [sum = null, count = 0]: readonly Value[]): void {
    if (sum !== null) this.#state.add(group, sum, count);
  }

  add(group: number, value: Value): void {
    this.#state.add(group, value);
  }

  remove(group: number, value: Value): void {
    this.#state.remove(group, value);
  }

  isUnknown(): boolean {
    return false;
  }

  result(group: number): Value {
    return this.#state.finish(group);
  }

  clear(): void {
    // For an empty group, the sum and the count are already 0.
  }
}

/**
 * Maintains the seq at which a group last changed. Unlike the maximum of its rows' seqs, it also
 * increases when a row is removed, and never requires reading the other rows.
 */
export class LastChangeTally implements RowTally {
  readonly seeds = ["itself"] as const;
  readonly #seqs: number[] = [];
  #stepSeq: Seq = SEQ_ZERO;

  beginStep(upTo: Seq): void {
    this.#stepSeq = upTo;
  }

  seed(group: number, [seq = null]: readonly Value[]): void {
    this.#seqs[group] = Number(seq ?? 0);
  }

  add(group: number, seq: Value): void {
    this.#seqs[group] = Math.max(this.#seqs[group] ?? 0, Number(seq));
  }

  remove(group: number): void {
    this.#seqs[group] = this.#stepSeq;
  }

  isUnknown(): boolean {
    return false;
  }

  result(group: number): Value {
    return this.#seqs[group] ?? 0;
  }

  clear(group: number): void {
    this.#seqs[group] = 0;
  }
}

interface KeptExtreme {
  value: Value;
  /** The number of values in the group that are not NULL. */
  count: number;
  isUnknown: boolean;
}

class ExtremeTally implements RowTally {
  readonly seeds = ["itself", "count"] as const;
  readonly #groups = new Map<number, KeptExtreme>();
  readonly #isBetter: (value: Value, other: Value) => boolean;
  readonly #isWorse: (value: Value, other: Value) => boolean;

  /**
   * Creates the state that maintains min() or max().
   * @param sign 1 to keep the least value, -1 to keep the greatest.
   */
  constructor(type: DataType, sign: 1 | -1) {
    const compare = comparatorFor(type);
    this.#isBetter = (value, other) => sign * compare(value, other) <= 0;
    this.#isWorse = (value, other) => sign * compare(value, other) > 0;
  }

  seed(group: number, [value = null, count = 0]: readonly Value[]): void {
    this.#groups.set(group, { value, count: Number(count), isUnknown: false });
  }

  add(group: number, value: Value): void {
    if (value === null) return;
    const kept = this.#groups.get(group);
    if (kept === undefined) {
      this.#groups.set(group, { value, count: 1, isUnknown: false });
      return;
    }
    kept.count += 1;
    const isFirst = kept.count === 1;
    if (!isFirst && kept.value !== null && !this.#isBetter(value, kept.value)) return;
    // The new value is at least as good as every earlier value, so the result is known again.
    kept.value = value;
    kept.isUnknown = false;
  }

  remove(group: number, value: Value): void {
    const kept = this.#groups.get(group);
    if (value === null || kept === undefined) return;
    kept.count -= 1;
    if (kept.count === 0) Object.assign(kept, { value: null, isUnknown: false });
    else if (kept.value === null || !this.#isWorse(value, kept.value)) kept.isUnknown = true;
  }

  isUnknown(group: number): boolean {
    return this.#groups.get(group)?.isUnknown === true;
  }

  result(group: number): Value {
    return this.#groups.get(group)?.value ?? null;
  }

  clear(group: number): void {
    this.#groups.delete(group);
  }
}
