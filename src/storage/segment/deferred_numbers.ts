/**
 * Numbers of a chunk that are decoded when they are first looked at: a filter may leave out all
 * rows before that, or all but a few, which are then decoded without the others.
 *
 * A sum over a tenth of the rows of a table takes two thirds of the processor time.
 */
import { assert } from "../../base/assert.ts";
import {
  type Float64Vector,
  gatherBytes,
  gatherFloat64,
  gatherInt32,
  type Int32Vector,
  type RowNumbers,
  type Selection,
  type Vector,
} from "../../types/mod.ts";
import type { Chunk, RowRange } from "./chunk.ts";
import { decodeRows, divisorOf, float64sOf, int32sOf } from "./chunk_decoder.ts";
import type { ColumnBuffer } from "./column_buffer.ts";
import {
  F32,
  F64,
  I32,
  OFFSET_8,
  OFFSET_16,
  OFFSET_32,
  SCALED_8,
  SCALED_16,
  SCALED_32,
} from "./encodings.ts";

/**
 * Those with a number for each row in an array. What stands for many rows is decoded as fast as it
 * is deferred, and whole numbers beyond 2^53 are no vector of numbers.
 */
const DEFERRED: ReadonlySet<number> = new Set([
  F32,
  F64,
  I32,
  OFFSET_8,
  OFFSET_16,
  OFFSET_32,
  SCALED_8,
  SCALED_16,
  SCALED_32,
]);

export interface DecodeOptions {
  /** Where numbers are decoded to; without it, they get an array of their own. */
  readonly buffer?: ColumnBuffer | undefined;
  /** Whether they are decoded to the buffer only once they are looked at. */
  readonly isDeferred?: boolean | undefined;
}

/** As `decodeRows`; what is deferred is valid until the buffer is used again. */
export function decodeNowOrLater(
  chunk: Chunk,
  range: RowRange,
  { buffer, isDeferred = false }: DecodeOptions,
): Vector {
  if (!isDeferred || buffer === undefined) return decodeRows(chunk, range, buffer);
  if (!DEFERRED.has(chunk.entry.encoding)) return decodeRows(chunk, range, buffer);
  const { layout } = chunk;
  if (layout !== "i32" && layout !== "f64") return decodeRows(chunk, range, buffer);
  const rows = new UnreadRows(chunk, range, buffer);
  return layout === "i32" ? new DeferredInt32s(rows) : new DeferredFloat64s(rows);
}

/** Rows of a chunk of numbers, and where the numbers are decoded to. */
class UnreadRows {
  readonly chunk: Chunk;
  readonly range: RowRange;
  readonly buffer: ColumnBuffer;
  readonly length: number;
  #nulls: Uint8Array | undefined;

  constructor(chunk: Chunk, range: RowRange, buffer: ColumnBuffer) {
    this.chunk = chunk;
    this.range = range;
    this.buffer = buffer;
    this.length = range.end - range.start;
  }

  get nulls(): Uint8Array | undefined {
    if (this.chunk.entry.hasNulls) this.#nulls ??= this.chunk.nulls(this.range);
    return this.#nulls;
  }

  chosenNulls({ count, rows }: Selection): Uint8Array | undefined {
    const { nulls } = this;
    return nulls === undefined ? undefined : gatherBytes(nulls, rows, count);
  }
}

// A vector for each kind of array: loops over the values meet only one.

class DeferredInt32s implements Int32Vector {
  readonly kind = "i32";
  readonly length: number;
  readonly #rows: UnreadRows;
  #values: Int32Array | undefined;

  constructor(rows: UnreadRows) {
    this.length = rows.length;
    this.#rows = rows;
  }

  get values(): Int32Array {
    const { buffer, chunk, range } = this.#rows;
    this.#values ??= int32sOf(chunk, range, buffer);
    return this.#values;
  }

  get nulls(): Uint8Array | undefined {
    return this.#rows.nulls;
  }

  choose(chosen: Selection): Int32Vector | undefined {
    if (this.#values !== undefined) return undefined;
    const values = chosenInt32s(this.#rows, chosen);
    return { kind: "i32", length: chosen.count, values, nulls: this.#rows.chosenNulls(chosen) };
  }
}

class DeferredFloat64s implements Float64Vector {
  readonly kind = "f64";
  readonly length: number;
  readonly #rows: UnreadRows;
  #values: Float64Array | undefined;

  constructor(rows: UnreadRows) {
    this.length = rows.length;
    this.#rows = rows;
  }

  get values(): Float64Array {
    const { buffer, chunk, range } = this.#rows;
    this.#values ??= float64sOf(chunk, range, buffer);
    return this.#values;
  }

  get nulls(): Uint8Array | undefined {
    return this.#rows.nulls;
  }

  choose(chosen: Selection): Float64Vector | undefined {
    if (this.#values !== undefined) return undefined;
    const values = chosenFloat64s(this.#rows, chosen);
    return { kind: "f64", length: chosen.count, values, nulls: this.#rows.chosenNulls(chosen) };
  }
}

function chosenInt32s({ chunk, range }: UnreadRows, chosen: Selection): Int32Array {
  const { count, rows } = chosen;
  const stored = chunk.array.subarray(range.start, range.end);
  if (stored instanceof Int32Array) return gatherInt32(stored, rows, count);
  const { base } = chunk.entry;
  const into = new Int32Array(count);
  if (stored instanceof Uint8Array) return addBytes(stored, rows, { base, into });
  assert(stored instanceof Uint16Array, "a chunk of integers has an encoding of integers");
  return addShorts(stored, rows, { base, into });
}

function chosenFloat64s({ chunk, range }: UnreadRows, chosen: Selection): Float64Array {
  const { count, rows } = chosen;
  const stored = chunk.array.subarray(range.start, range.end);
  if (stored instanceof Float64Array) return gatherFloat64(stored, rows, count);
  const into = new Float64Array(count);
  if (stored instanceof Float32Array) return widen(stored, rows, into);
  assert(!(stored instanceof Int32Array), "a chunk of numbers has an encoding of numbers");
  const scale = { base: chunk.entry.base, divisor: divisorOf(chunk), into };
  if (stored instanceof Uint8Array) return divideBytes(stored, rows, scale);
  if (stored instanceof Uint16Array) return divideShorts(stored, rows, scale);
  return divideLongs(stored, rows, scale);
}

// One loop for each pair of arrays: a loop that meets several kinds is 3.5 times slower.

interface Sums {
  readonly base: number;
  readonly into: Int32Array;
}

function addBytes(from: Uint8Array, rows: RowNumbers, { base, into }: Sums): Int32Array {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (from[rows[i] ?? 0] ?? 0)) | 0;
  return into;
}

function addShorts(from: Uint16Array, rows: RowNumbers, { base, into }: Sums): Int32Array {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (from[rows[i] ?? 0] ?? 0)) | 0;
  return into;
}

interface Quotients {
  readonly base: number;
  readonly divisor: number;
  readonly into: Float64Array;
}

function widen(from: Float32Array, rows: RowNumbers, into: Float64Array): Float64Array {
  for (let i = 0; i < into.length; i += 1) into[i] = from[rows[i] ?? 0] ?? 0;
  return into;
}

function divideBytes(from: Uint8Array, rows: RowNumbers, scale: Quotients): Float64Array {
  const { base, divisor, into } = scale;
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (from[rows[i] ?? 0] ?? 0)) / divisor;
  return into;
}

function divideShorts(from: Uint16Array, rows: RowNumbers, scale: Quotients): Float64Array {
  const { base, divisor, into } = scale;
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (from[rows[i] ?? 0] ?? 0)) / divisor;
  return into;
}

function divideLongs(from: Uint32Array, rows: RowNumbers, scale: Quotients): Float64Array {
  const { base, divisor, into } = scale;
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (from[rows[i] ?? 0] ?? 0)) / divisor;
  return into;
}
