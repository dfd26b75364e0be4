/**
 * Defines the median and the ordered-set aggregates. Their rows arrive in WITHIN GROUP order.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  addIntervals,
  type DataType,
  groupKeyOf,
  type Interval,
  mapElements,
  negateInterval,
  scaleInterval,
  type Value,
} from "../../../types/mod.ts";
import type { AggregateState } from "./aggregate_state.ts";

/** Computes the middle value, or the mean of the two middle values. */
export class MedianState implements AggregateState {
  readonly keepsRows = true;
  readonly #values: number[][] = [];

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    const held = this.#values[group];
    if (held === undefined) this.#values[group] = [value as number];
    else held.push(value as number);
  }

  finish(group: number): Value {
    const values = this.#values[group];
    if (values === undefined) return null;
    // `Float64Array.from` would read an array through its iterator, which takes as long as the
    // sort.
    return interpolate(new Float64Array(values).toSorted(), 0.5);
  }
}

/**
 * Returns the value at a given fraction of the way through ascending numbers, interpolating
 * between the two nearest numbers.
 */
function interpolate(sorted: ArrayLike<number>, fraction: number): number {
  const position = fraction * (sorted.length - 1);
  const below = Math.floor(position);
  const low = sorted[below] ?? 0;
  const high = sorted[Math.ceil(position)] ?? low;
  // Interpolation would compute a difference, which is NaN for two infinities of the same sign and
  // for NaN.
  if (position === below || low === high) return low + 0;
  return low + (position - below) * (high - low) + 0;
}

interface OrderedGroup {
  fraction: Value;
  readonly values: Value[];
}

/**
 * Computes percentile_cont and percentile_disc. The first argument is a fraction or an array of
 * fractions.
 */
export class PercentileState implements AggregateState {
  readonly keepsRows = true;
  readonly #groups: OrderedGroup[] = [];
  readonly #at: (values: readonly Value[], fraction: number) => Value;

  constructor(type: DataType, wanted: "cont" | "disc") {
    if (wanted === "disc") this.#at = discreteAt;
    else this.#at = type.kind === "interval" ? intervalAt : numberAt;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [fraction = null, value = null] = values;
    const held = this.#groups[group];
    if (held === undefined) {
      this.#groups[group] = { fraction, values: value === null ? [] : [value] };
    } else if (value !== null) {
      held.values.push(value);
    }
  }

  finish(group: number): Value {
    const held = this.#groups[group];
    if (held === undefined || held.values.length === 0 || held.fraction === null) return null;
    const { fraction, values } = held;
    if (typeof fraction === "number") return this.#at(values, checkedFraction(fraction));
    return mapElements(fraction as ArrayValue, (item) =>
      item === null ? null : this.#at(values, checkedFraction(item as number)),
    );
  }
}

/**
 * Requires that a fraction is between 0 and 1, and returns it.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
export function checkedFraction(fraction: number): number {
  if (fraction >= 0 && fraction <= 1) return fraction;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot compute the percentile ${fraction}: it must be between 0 and 1`,
  );
}

/** Returns the first value whose position in the sorted order is at or after the fraction. */
function discreteAt(values: readonly Value[], fraction: number): Value {
  const place = Math.max(1, Math.ceil(fraction * values.length));
  return values[place - 1] ?? null;
}

function numberAt(values: readonly Value[], fraction: number): Value {
  return interpolate(values as readonly number[], fraction);
}

function intervalAt(values: readonly Value[], fraction: number): Value {
  const position = fraction * (values.length - 1);
  const below = Math.floor(position);
  const low = values[below] as Interval;
  const high = values[Math.ceil(position)] as Interval;
  const span = addIntervals(high, negateInterval(low));
  return addIntervals(low, scaleInterval(span, position - below));
}

/**
 * Computes mode(): the most frequent value. If several values are equally frequent, the result is
 * the first of them.
 */
export class ModeState implements AggregateState {
  readonly #type: DataType;
  readonly #groups: Map<unknown, { value: Value; count: number }>[] = [];

  constructor(type: DataType) {
    this.#type = type;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    const counts = this.#groups[group] ?? new Map<unknown, { value: Value; count: number }>();
    this.#groups[group] = counts;
    const key = groupKeyOf(this.#type, value);
    const held = counts.get(key);
    if (held === undefined) counts.set(key, { value, count: 1 });
    else held.count += 1;
  }

  finish(group: number): Value {
    let best: { value: Value; count: number } | undefined;
    for (const held of this.#groups[group]?.values() ?? []) {
      if (best === undefined || held.count > best.count) best = held;
    }
    return best?.value ?? null;
  }
}
