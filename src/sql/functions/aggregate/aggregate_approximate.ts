/**
 * Defines approximate aggregates, which use bounded memory.
 *
 * Distinct counts are exact for small groups; for larger groups, they use HyperLogLog (Flajolet
 * 2007) with 2^15 registers and a standard error of 0.57 %. Percentiles use counts in buckets that
 * grow by 2 % (DDSketch, 2019), so that a result is within 1 % of a value at that rank.
 */
import { type DataType, groupKeyOf, type Value } from "../../../types/mod.ts";
import { checkedFraction } from "./aggregate_percentiles.ts";
import type { AggregateState } from "./aggregate_state.ts";

/** The maximum number of distinct values in a group that are counted exactly. */
const EXACT_MAX = 4096;
const REGISTER_BITS = 15;
const REGISTER_COUNT: number = 2 ** REGISTER_BITS;

interface DistinctGroup {
  exact: Set<bigint> | undefined;
  registers: Uint8Array | undefined;
}

export class DistinctState implements AggregateState {
  readonly #type: DataType;
  readonly #groups: DistinctGroup[] = [];

  constructor(type: DataType) {
    this.#type = type;
  }

  add(group: number, ...values: readonly Value[]): void {
    const [value = null] = values;
    if (value === null) return;
    const hash = hashOf(groupKeyOf(this.#type, value));
    let held = this.#groups[group];
    if (held === undefined) {
      held = { exact: new Set(), registers: undefined };
      this.#groups[group] = held;
    }
    if (held.registers !== undefined) {
      note(held.registers, hash);
      return;
    }
    held.exact?.add(hash);
    if ((held.exact?.size ?? 0) <= EXACT_MAX) return;
    held.registers = new Uint8Array(REGISTER_COUNT);
    for (const earlier of held.exact ?? []) note(held.registers, earlier);
    held.exact = undefined;
  }

  finish(group: number): Value {
    const held = this.#groups[group];
    if (held === undefined) return 0;
    return held.registers === undefined ? (held.exact?.size ?? 0) : estimate(held.registers);
  }
}

function hashOf(key: unknown): bigint {
  return Bun.hash(`${typeof key}${String(key)}`);
}

/**
 * Adds a hash to a HyperLogLog sketch. Its low bits select a register, which keeps the longest run
 * of leading zeros in the remaining bits.
 */
function note(registers: Uint8Array, hash: bigint): void {
  const register = Number(hash & BigInt(REGISTER_COUNT - 1));
  const high = Number(hash >> 32n);
  // A run of up to 32 bits is enough to count 10^14 distinct values across all registers.
  const run = Math.clz32(high) + 1;
  if (run > (registers[register] ?? 0)) registers[register] = run;
}

function estimate(registers: Uint8Array): number {
  let sum = 0;
  let emptyCount = 0;
  for (const run of registers) {
    sum += 2 ** -run;
    if (run === 0) emptyCount += 1;
  }
  const alpha = 0.7213 / (1 + 1.079 / REGISTER_COUNT);
  const raw = (alpha * REGISTER_COUNT * REGISTER_COUNT) / sum;
  const isSmall = raw <= 2.5 * REGISTER_COUNT && emptyCount > 0;
  return Math.round(isSmall ? REGISTER_COUNT * Math.log(REGISTER_COUNT / emptyCount) : raw);
}

const GROWTH = 1.02;
const LOG_GROWTH: number = Math.log(GROWTH);

interface Sketch {
  count: number;
  zeroCount: number;
  readonly positive: Map<number, number>;
  readonly negative: Map<number, number>;
  fraction: number | null;
}

export class ApproximatePercentileState implements AggregateState {
  readonly #sketches: Sketch[] = [];

  add(group: number, ...values: readonly Value[]): void {
    const [value = null, fraction = null] = values;
    if (value === null) return;
    let sketch = this.#sketches[group];
    if (sketch === undefined) {
      sketch = {
        count: 0,
        zeroCount: 0,
        positive: new Map(),
        negative: new Map(),
        fraction: fraction as number | null,
      };
      this.#sketches[group] = sketch;
    }
    const number = value as number;
    sketch.count += 1;
    if (number === 0) {
      sketch.zeroCount += 1;
      return;
    }
    const buckets = number > 0 ? sketch.positive : sketch.negative;
    const bucket = Math.ceil(Math.log(Math.abs(number)) / LOG_GROWTH);
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
  }

  finish(group: number): Value {
    const sketch = this.#sketches[group];
    if (sketch === undefined || sketch.fraction === null) return null;
    let rank = checkedFraction(sketch.fraction) * (sketch.count - 1);
    // The buckets are visited in ascending order, beginning with the most negative numbers.
    for (const [bucket, count] of sorted(sketch.negative).toReversed()) {
      if (rank < count) return 0 - middleOf(bucket);
      rank -= count;
    }
    if (rank < sketch.zeroCount) return 0;
    rank -= sketch.zeroCount;
    for (const [bucket, count] of sorted(sketch.positive)) {
      if (rank < count) return middleOf(bucket);
      rank -= count;
    }
    return null;
  }
}

function sorted(buckets: ReadonlyMap<number, number>): [number, number][] {
  return [...buckets].toSorted((left, right) => left[0] - right[0]);
}

/** Returns a value within 1 % of every number in a bucket. */
function middleOf(bucket: number): number {
  return (2 * GROWTH ** bucket) / (GROWTH + 1);
}
