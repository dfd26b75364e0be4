/**
 * Decodes the numbers of a chunk when they are first accessed. By then, a filter may have
 * discarded most rows, and only the remaining few have to be decoded. In measurements, this cut
 * the CPU time of a sum over a tenth of a table's rows to about two thirds.
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
import type { Chunk, ChunkRows } from "./chunk.ts";
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
 * The encodings that store one number per row in an array. Other encodings can be decoded as fast
 * as they can be deferred, and integers beyond 2^53 do not fit into a vector of numbers.
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
  /** The buffer into which numbers are decoded. If undefined, the numbers get a new array. */
  readonly buffer?: ColumnBuffer | undefined;
  /** Whether numbers are decoded into the buffer only when first accessed. */
  readonly isDeferred?: boolean | undefined;
}

/**
 * Decodes rows as `decodeRows` does, either now or on first access. Deferred numbers are valid
 * until the buffer is used again.
 */
export function decodeNowOrLater(
  chunk: Chunk,
  range: ChunkRows,
  { buffer, isDeferred = false }: DecodeOptions,
): Vector {
  if (!isDeferred || buffer === undefined) return decodeRows(chunk, range, buffer);
  if (!DEFERRED.has(chunk.entry.encoding)) return decodeRows(chunk, range, buffer);
  const { layout } = chunk;
  if (layout !== "i32" && layout !== "f64") return decodeRows(chunk, range, buffer);
  const rows = new UnreadRows(chunk, range, buffer);
  return layout === "i32" ? new DeferredInt32s(rows) : new DeferredFloat64s(rows);
}

/** Rows of a numeric chunk that are yet to be decoded, and the buffer for their numbers. */
class UnreadRows {
  readonly chunk: Chunk;
  readonly range: ChunkRows;
  readonly buffer: ColumnBuffer;
  readonly length: number;
  #nulls: Uint8Array | undefined;

  constructor(chunk: Chunk, range: ChunkRows, buffer: ColumnBuffer) {
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

// Each array type has a vector class of its own, to keep loops over the values monomorphic.

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
  assert(stored instanceof Uint16Array, "chunk decoder: unexpected encoding of an integer column");
  return addShorts(stored, rows, { base, into });
}

function chosenFloat64s({ chunk, range }: UnreadRows, chosen: Selection): Float64Array {
  const { count, rows } = chosen;
  const stored = chunk.array.subarray(range.start, range.end);
  if (stored instanceof Float64Array) return gatherFloat64(stored, rows, count);
  const into = new Float64Array(count);
  if (stored instanceof Float32Array) return widen(stored, rows, into);
  assert(!(stored instanceof Int32Array), "chunk decoder: unexpected encoding of a numeric column");
  const scale = { base: chunk.entry.base, divisor: divisorOf(chunk), into };
  if (stored instanceof Uint8Array) return divideBytes(stored, rows, scale);
  if (stored instanceof Uint16Array) return divideShorts(stored, rows, scale);
  return divideLongs(stored, rows, scale);
}

// Each pair of array types has a loop of its own, since a polymorphic loop is several times
// slower.

interface RunningSums {
  readonly base: number;
  readonly into: Int32Array;
}

function addBytes(from: Uint8Array, rows: RowNumbers, { base, into }: RunningSums): Int32Array {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (from[rows[i] ?? 0] ?? 0)) | 0;
  return into;
}

function addShorts(from: Uint16Array, rows: RowNumbers, { base, into }: RunningSums): Int32Array {
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
