/**
 * Decodes a verified chunk into vectors, rows or single values (see `encodings.ts`).
 *
 * If the encoding has the same layout as the vector, the vector shares the memory of the mapped
 * file. Other vectors have arrays of their own, each filled by a single loop.
 */
import { assert } from "../../base/assert.ts";
import { ByteReader } from "../../base/byte_reader.ts";
import {
  constVector,
  readValue,
  type Value,
  type Vector,
  type Whole,
  wholeFromBigint,
} from "../../types/mod.ts";
import type { Blocks, Chunk, ChunkRows } from "./chunk.ts";
import type { ColumnBuffer } from "./column_buffer.ts";
import {
  BITS,
  BLOCKS,
  bitAt,
  CONSTANT,
  DICTIONARY,
  F32,
  F64,
  I32,
  NONE,
  RUNS,
  SCALED_8,
  SCALED_16,
  SCALED_32,
  TEXT,
  unpackBits,
  WIDE,
} from "./encodings.ts";
import { padded } from "./format.ts";
import { fillFromRuns, fillScaled, runValueAt } from "./number_decoder.ts";

/** Provides a new array for every vector. Because nothing is shared, no state is kept. */
const NEW_ARRAYS: Pick<ColumnBuffer, "int32s" | "float64s"> = {
  int32s: (length) => new Int32Array(length),
  float64s: (length) => new Float64Array(length),
};

type Arrays = typeof NEW_ARRAYS;

/**
 * Decodes rows of a chunk into a vector that, where possible, shares the file's memory.
 *
 * @param buffer Receives decoded numbers. If omitted, the numbers get an array of their own.
 */
export function decodeRows(
  chunk: Chunk,
  { start, end }: ChunkRows,
  buffer: Arrays = NEW_ARRAYS,
): Vector {
  assert(start >= 0 && end <= chunk.rowCount, "chunk decoder: row range is outside the chunk");
  const { entry } = chunk;
  const length = end - start;
  const range = { start, end };
  switch (entry.encoding) {
    case NONE:
      return constVector(null, length);
    case CONSTANT:
      if (!entry.hasNulls) return constVector(constantOf(chunk), length);
      return numberVector(chunk, range, buffer);
    case BITS: {
      assert(chunk.array instanceof Uint8Array, "chunk decoder: packed bits are not a byte array");
      const values = unpackBits(chunk.array, start, end);
      return { kind: "bool", length, values, nulls: chunk.nulls(range) };
    }
    case DICTIONARY:
      return dictionaryVector(chunk, range);
    case TEXT: {
      const { bytes, offsets } = chunk.blocks;
      const nulls = chunk.nulls(range);
      return { kind: "utf8", length, bytes, offsets: offsets.subarray(start, end + 1), nulls };
    }
    case WIDE:
    case BLOCKS: {
      const values: Value[] = Array.from({ length });
      for (let row = start; row < end; row += 1) values[row - start] = decodeValue(chunk, row);
      return { kind: "any", length, values };
    }
    default:
      return numberVector(chunk, range, buffer);
  }
}

/** Decodes a single value without building a vector. */
export function decodeValue(chunk: Chunk, row: number): Value {
  assert(row >= 0 && row < chunk.rowCount, "chunk decoder: row is outside the chunk");
  const { entry } = chunk;
  if (entry.encoding === NONE || chunk.isNull(row)) return null;
  switch (entry.encoding) {
    case CONSTANT:
      return constantOf(chunk);
    case BITS:
      assert(chunk.array instanceof Uint8Array, "chunk decoder: packed bits are not a byte array");
      return bitAt(chunk.array, row) === 1;
    case DICTIONARY:
      return textOf(chunk.blocks, chunk.array[row] ?? 0);
    case TEXT:
      return textOf(chunk.blocks, row);
    case WIDE:
      return wideAt(chunk, row);
    case BLOCKS:
      return blockAt(chunk, row);
    default:
      return decodeNumber(chunk, row);
  }
}

/** Returns one number of a numeric chunk. If the value is NULL, the number is arbitrary. */
export function decodeNumber(chunk: Chunk, row: number): number {
  const { encoding, base } = chunk.entry;
  if (encoding === NONE) return 0;
  if (encoding === CONSTANT) return base;
  if (encoding === RUNS) return runValueAt(chunk.runs, row);
  const stored = chunk.array[row] ?? 0;
  if (isScaled(encoding)) return (base + stored) / chunk.entry.auxiliary;
  return encoding === F64 || encoding === F32 || encoding === I32 ? stored : base + stored;
}

/**
 * Returns all numbers in a chunk as f64, with 0 for NULL. The array may share the file's memory.
 */
export function decodeNumbers(chunk: Chunk): Float64Array {
  const range = { start: 0, end: chunk.rowCount };
  if (chunk.entry.encoding === NONE) return new Float64Array(chunk.rowCount);
  const numbers = float64sOf(chunk, range, NEW_ARRAYS);
  if (!chunk.entry.hasNulls) return numbers;
  const nulls = chunk.nulls(range) ?? new Uint8Array(0);
  // The numbers must be copied, because the array may share the file's memory.
  return numbers.map((value, row) => (nulls[row] === 1 ? 0 : value));
}

/** Returns all booleans in a chunk without NULLs, one byte per row. */
export function decodeFlags(chunk: Chunk): Uint8Array {
  const flags = decodeRows(chunk, { start: 0, end: chunk.rowCount });
  if (flags.kind === "bool") return flags.values;
  assert(flags.kind === "const", "chunk decoder: flag column is not boolean");
  return new Uint8Array(chunk.rowCount).fill(flags.value === true ? 1 : 0);
}

/** Returns the size in bytes of each row in a chunk of text or bytes. */
export function decodeLengths(chunk: Chunk): Uint32Array {
  const { encoding } = chunk.entry;
  if (encoding === TEXT || encoding === BLOCKS) return lengthsOf(chunk.blocks.offsets);
  const lengths = new Uint32Array(chunk.rowCount);
  if (encoding !== DICTIONARY) return lengths;
  const ofValues = lengthsOf(chunk.blocks.offsets);
  for (let row = 0; row < lengths.length; row += 1) {
    lengths[row] = ofValues[chunk.array[row] ?? 0] ?? 0;
  }
  return lengths;
}

/**
 * Returns the lengths of consecutive blocks.
 * @param offsets The offset of each block, followed by the end of the last block.
 */
export function lengthsOf(offsets: Uint32Array): Uint32Array {
  const lengths = new Uint32Array(offsets.length - 1);
  for (let row = 0; row < lengths.length; row += 1) {
    lengths[row] = (offsets[row + 1] ?? 0) - (offsets[row] ?? 0);
  }
  return lengths;
}

/**
 * Returns the approximate heap memory that a vector keeps alive, in bytes. Caches use it for their
 * limits.
 */
export function heapBytesOf(vector: Vector): number {
  const nullBytes = vector.kind === "any" || vector.kind === "const" ? 0 : vector.length;
  switch (vector.kind) {
    case "const":
      return 64;
    case "any":
      return 48 * vector.length;
    case "dict":
      return 64 * vector.values.length + nullBytes;
    case "utf8":
      return 128 + nullBytes;
    default:
      return vector.values.byteLength + nullBytes;
  }
}

/** Returns the divisor to apply to a chunk's numbers once its base has been added. */
export function divisorOf({ entry }: Chunk): number {
  return isScaled(entry.encoding) ? entry.auxiliary : 1;
}

function isScaled(encoding: number): boolean {
  return encoding === SCALED_8 || encoding === SCALED_16 || encoding === SCALED_32;
}

function constantOf({ entry, layout }: Chunk): Value {
  return layout === "bool" ? entry.base === 1 : entry.base;
}

function numberVector(chunk: Chunk, range: ChunkRows, buffer: Arrays): Vector {
  const length = range.end - range.start;
  const nulls = chunk.nulls(range);
  if (chunk.layout === "i32") {
    return { kind: "i32", length, values: int32sOf(chunk, range, buffer), nulls };
  }
  if (chunk.layout === "f64") {
    return { kind: "f64", length, values: float64sOf(chunk, range, buffer), nulls };
  }
  assert(
    chunk.entry.encoding === CONSTANT,
    "chunk decoder: unexpected encoding of a boolean column",
  );
  const values = new Uint8Array(length).fill(chunk.entry.base);
  return { kind: "bool", length, values, nulls };
}

/**
 * Returns the numbers of a chunk that decodes to i32. Where the value is NULL, the number is
 * arbitrary.
 */
export function int32sOf(chunk: Chunk, { start, end }: ChunkRows, buffer: Arrays): Int32Array {
  const { encoding, base } = chunk.entry;
  const length = end - start;
  if (encoding === CONSTANT) return buffer.int32s(length).fill(base);
  if (encoding === RUNS) return fillFromRuns(chunk.runs, start, buffer.int32s(length));
  const stored = chunk.array.subarray(start, end);
  if (stored instanceof Int32Array) return stored;
  if (stored instanceof Uint8Array) return addInt8(stored, base, buffer.int32s(length));
  assert(stored instanceof Uint16Array, "chunk decoder: unexpected encoding of an integer column");
  return addInt16(stored, base, buffer.int32s(length));
}

/**
 * Returns the numbers of a chunk that decodes to f64. Where the value is NULL, the number is
 * arbitrary.
 */
export function float64sOf(chunk: Chunk, { start, end }: ChunkRows, buffer: Arrays): Float64Array {
  const { auxiliary, encoding, base, min, max } = chunk.entry;
  const length = end - start;
  if (encoding === CONSTANT) return buffer.float64s(length).fill(base);
  if (encoding === RUNS) return fillFromRuns(chunk.runs, start, buffer.float64s(length));
  const stored = chunk.array.subarray(start, end);
  if (stored instanceof Float64Array) return stored;
  if (stored instanceof Float32Array) return widen(stored, buffer.float64s(length));
  assert(!(stored instanceof Int32Array), "chunk decoder: unexpected encoding of a numeric column");
  if (isScaled(encoding)) {
    const span = Math.round((max - min) * auxiliary);
    return fillScaled(stored, { base, divisor: auxiliary, span }, buffer.float64s(length));
  }
  if (stored instanceof Uint8Array) return addFloat8(stored, base, buffer.float64s(length));
  if (stored instanceof Uint16Array) return addFloat16(stored, base, buffer.float64s(length));
  return addFloat32(stored, base, buffer.float64s(length));
}

// Each pair of array types has a loop of its own, since a polymorphic loop is several times
// slower.

function widen(stored: Float32Array, into: Float64Array): Float64Array {
  for (let i = 0; i < into.length; i += 1) into[i] = stored[i] as number;
  return into;
}

function addInt8(offsets: Uint8Array, base: number, into: Int32Array): Int32Array {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] as number)) | 0;
  return into;
}

function addInt16(offsets: Uint16Array, base: number, into: Int32Array): Int32Array {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] as number)) | 0;
  return into;
}

function addFloat8(offsets: Uint8Array, base: number, into: Float64Array): Float64Array {
  for (let i = 0; i < into.length; i += 1) into[i] = base + (offsets[i] as number);
  return into;
}

function addFloat16(offsets: Uint16Array, base: number, into: Float64Array): Float64Array {
  for (let i = 0; i < into.length; i += 1) into[i] = base + (offsets[i] as number);
  return into;
}

function addFloat32(offsets: Uint32Array, base: number, into: Float64Array): Float64Array {
  for (let i = 0; i < into.length; i += 1) into[i] = base + (offsets[i] as number);
  return into;
}

function dictionaryVector(chunk: Chunk, range: ChunkRows): Vector {
  const length = range.end - range.start;
  const valueCount = chunk.entry.auxiliary;
  const texts = chunk.blocks;
  if (valueCount === 1 && !chunk.entry.hasNulls) return constVector(textOf(texts, 0), length);
  const values = Array.from({ length: valueCount }, (_, code) => textOf(texts, code));
  const codes = chunk.array.subarray(range.start, range.end);
  assert(
    codes instanceof Uint8Array || codes instanceof Uint16Array,
    "chunk decoder: dictionary codes are not one or two bytes wide",
  );
  return { kind: "dict", length, codes, values, nulls: chunk.nulls(range) };
}

function textOf({ offsets, bytes }: Blocks, index: number): string {
  return bytes.toString("utf8", offsets[index] ?? 0, offsets[index + 1] ?? 0);
}

function blockAt(chunk: Chunk, row: number): Value {
  const { offsets, bytes } = chunk.blocks;
  // The bytes are copied, since values outlive the scan and may outlive the file.
  const block = new Uint8Array(bytes.subarray(offsets[row] ?? 0, offsets[row + 1] ?? 0));
  if (chunk.layout === "values") return readValue(new ByteReader(block, { path: "a chunk" }));
  return chunk.layout === "embedding" ? new Float32Array(block.buffer) : block;
}

function wideAt(chunk: Chunk, row: number): Whole {
  const { auxiliary: wordCount } = chunk.entry;
  const planeBytes = padded(chunk.rowCount * 4);
  const view = new DataView(chunk.buffer, chunk.partsAt);
  const top = (wordCount - 1) * planeBytes + row * 4;
  if (wordCount === 2) {
    const number = view.getInt32(top, true) * 4294967296 + view.getUint32(row * 4, true);
    if (Number.isSafeInteger(number)) return number;
  }
  let value = BigInt(view.getInt32(top, true));
  for (let word = wordCount - 2; word >= 0; word -= 1) {
    value = (value << 32n) | BigInt(view.getUint32(word * planeBytes + row * 4, true));
  }
  return wholeFromBigint(value);
}
