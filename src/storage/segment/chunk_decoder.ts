/**
 * Turns a verified chunk into vectors, rows or single values (see `encodings.ts`).
 *
 * Vectors alias the mapped file where the encoding lies as the vector holds it. The others are
 * arrays of their own, filled by one loop each.
 */
import { assert } from "../../base/assert.ts";
import {
  type Codes,
  constVector,
  type Value,
  type Vector,
  type Whole,
  wholeFromBigint,
} from "../../types/mod.ts";
import {
  BITS,
  BLOCKS,
  bitAt,
  CONSTANT,
  codeBytes,
  DICTIONARY,
  F32,
  F64,
  I32,
  NONE,
  OFFSET_8,
  OFFSET_16,
  OFFSET_32,
  TEXT,
  unpackBits,
  WIDE,
} from "./encodings.ts";
import { type ChunkEntry, type Layout, padded } from "./format.ts";

/** A chunk whose checksum held. */
export interface Chunk {
  readonly entry: ChunkEntry;
  readonly layout: Layout;
  readonly rowCount: number;
  /** The whole mapped file; the entry's offset is into it. */
  readonly file: Uint8Array;
}

/** Rows from (inclusive) and to (exclusive) of a chunk. */
interface RowRange {
  readonly start: number;
  readonly end: number;
}

/** The rows of a chunk as a vector, aliasing the file where it can. */
export function decodeRows(chunk: Chunk, start: number, end: number): Vector {
  assert(start >= 0 && end <= chunk.rowCount, "rows are within their chunk");
  const { entry } = chunk;
  const length = end - start;
  const range = { start, end };
  switch (entry.encoding) {
    case NONE:
      return constVector(null, length);
    case CONSTANT:
      if (!entry.hasNulls) return constVector(constantOf(chunk), length);
      return numberVector(chunk, range);
    case BITS: {
      const bits = new Uint8Array(chunk.file.buffer, partsAt(chunk));
      return {
        kind: "bool",
        length,
        values: unpackBits(bits, start, end),
        nulls: nullsOf(chunk, range),
      };
    }
    case DICTIONARY:
      return dictionaryVector(chunk, range);
    case TEXT: {
      const { offsets, bytes } = offsetsOf(chunk, { at: partsAt(chunk), count: chunk.rowCount });
      const nulls = nullsOf(chunk, range);
      return { kind: "utf8", length, bytes, offsets: offsets.subarray(start, end + 1), nulls };
    }
    case WIDE:
    case BLOCKS: {
      const values: Value[] = Array.from({ length });
      for (let row = start; row < end; row += 1) values[row - start] = decodeValue(chunk, row);
      return { kind: "any", length, values };
    }
    default:
      return numberVector(chunk, range);
  }
}

/** One value, without building a vector. */
export function decodeValue(chunk: Chunk, row: number): Value {
  assert(row >= 0 && row < chunk.rowCount, "a row is within its chunk");
  const { entry } = chunk;
  if (entry.encoding === NONE || isNull(chunk, row)) return null;
  switch (entry.encoding) {
    case CONSTANT:
      return constantOf(chunk);
    case BITS:
      return bitAt(new Uint8Array(chunk.file.buffer, partsAt(chunk)), row) === 1;
    case DICTIONARY: {
      const code = codesOf(chunk)?.[row] ?? 0;
      return textOf(offsetsOf(chunk, dictionaryPlace(chunk)), code);
    }
    case TEXT:
      return textOf(offsetsOf(chunk, { at: partsAt(chunk), count: chunk.rowCount }), row);
    case WIDE:
      return wideAt(chunk, row);
    case BLOCKS:
      return blockAt(chunk, row);
    default:
      return decodeNumber(chunk, row);
  }
}

/** One number of a chunk of numbers; what is read at a NULL is 0 or any number. */
export function decodeNumber(chunk: Chunk, row: number): number {
  const { encoding, base } = chunk.entry;
  const buffer = chunk.file.buffer;
  const at = partsAt(chunk);
  switch (encoding) {
    case NONE:
      return 0;
    case CONSTANT:
      return base;
    case F64:
      return new Float64Array(buffer, at + row * 8, 1)[0] ?? 0;
    case F32:
      return new Float32Array(buffer, at + row * 4, 1)[0] ?? 0;
    case I32:
      return new Int32Array(buffer, at + row * 4, 1)[0] ?? 0;
    case OFFSET_8:
      return base + (chunk.file[at + row] ?? 0);
    case OFFSET_16:
      return base + (new Uint16Array(buffer, at + row * 2, 1)[0] ?? 0);
    default:
      assert(encoding === OFFSET_32, "a chunk of numbers has an encoding of numbers");
      return base + (new Uint32Array(buffer, at + row * 4, 1)[0] ?? 0);
  }
}

/** All numbers of a chunk as f64, 0 where NULL; may alias the file. */
export function decodeNumbers(chunk: Chunk): Float64Array {
  const range = { start: 0, end: chunk.rowCount };
  if (chunk.entry.encoding === NONE) return new Float64Array(chunk.rowCount);
  const numbers = float64sOf(chunk, range);
  if (!chunk.entry.hasNulls) return numbers;
  const nulls = nullsOf(chunk, range) ?? new Uint8Array(0);
  // A copy: the numbers may alias the file.
  return numbers.map((value, row) => (nulls[row] === 1 ? 0 : value));
}

/** All booleans of a chunk without NULLs, one byte a row. */
export function decodeFlags(chunk: Chunk): Uint8Array {
  const flags = decodeRows(chunk, 0, chunk.rowCount);
  if (flags.kind === "bool") return flags.values;
  assert(flags.kind === "const", "flags are booleans");
  return new Uint8Array(chunk.rowCount).fill(flags.value === true ? 1 : 0);
}

/** Bytes on the heap that a vector keeps alive, roughly: for the bound of a cache. */
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

/** Where the parts begin: behind the null bits. */
function partsAt({ entry, rowCount }: Chunk): number {
  return entry.offset + (entry.hasNulls ? padded(Math.ceil(rowCount / 8)) : 0);
}

function isNull({ entry, file }: Chunk, row: number): boolean {
  if (!entry.hasNulls) return false;
  return (((file[entry.offset + (row >> 3)] ?? 0) >> (row & 7)) & 1) === 1;
}

function nullsOf({ entry, file }: Chunk, { start, end }: RowRange): Uint8Array | undefined {
  if (!entry.hasNulls) return undefined;
  return unpackBits(new Uint8Array(file.buffer, entry.offset), start, end);
}

function constantOf({ entry, layout }: Chunk): Value {
  return layout === "bool" ? entry.base === 1 : entry.base;
}

function numberVector(chunk: Chunk, range: RowRange): Vector {
  const length = range.end - range.start;
  const nulls = nullsOf(chunk, range);
  if (chunk.layout === "i32") {
    return { kind: "i32", length, values: int32sOf(chunk, range), nulls };
  }
  if (chunk.layout === "f64") {
    return { kind: "f64", length, values: float64sOf(chunk, range), nulls };
  }
  assert(chunk.entry.encoding === CONSTANT, "booleans are bits or constant");
  const values = new Uint8Array(length).fill(chunk.entry.base);
  return { kind: "bool", length, values, nulls };
}

function int32sOf(chunk: Chunk, { start, end }: RowRange): Int32Array {
  const { encoding, base } = chunk.entry;
  const length = end - start;
  if (encoding === I32)
    return new Int32Array(chunk.file.buffer, partsAt(chunk) + start * 4, length);
  const into = new Int32Array(length);
  if (encoding === CONSTANT) return into.fill(base);
  const at = partsAt(chunk);
  if (encoding === OFFSET_8) {
    addInt8(into, new Uint8Array(chunk.file.buffer, at + start, length), base);
  } else {
    assert(encoding === OFFSET_16, "an integer chunk has an encoding of integers");
    addInt16(into, new Uint16Array(chunk.file.buffer, at + start * 2, length), base);
  }
  return into;
}

function float64sOf(chunk: Chunk, { start, end }: RowRange): Float64Array {
  const { encoding, base } = chunk.entry;
  const { buffer } = chunk.file;
  const at = partsAt(chunk);
  const length = end - start;
  switch (encoding) {
    case F64:
      return new Float64Array(buffer, at + start * 8, length);
    case F32:
      return new Float64Array(new Float32Array(buffer, at + start * 4, length));
    case CONSTANT:
      return new Float64Array(length).fill(base);
    case OFFSET_8:
      return addFloat8(length, new Uint8Array(buffer, at + start, length), base);
    case OFFSET_16:
      return addFloat16(length, new Uint16Array(buffer, at + start * 2, length), base);
    default:
      assert(encoding === OFFSET_32, "a chunk of numbers has an encoding of numbers");
      return addFloat32(length, new Uint32Array(buffer, at + start * 4, length), base);
  }
}

// One loop for each pair of arrays: a loop that meets several kinds is 3.5 times slower.

function addInt8(into: Int32Array, offsets: Uint8Array, base: number): void {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] as number)) | 0;
}

function addInt16(into: Int32Array, offsets: Uint16Array, base: number): void {
  for (let i = 0; i < into.length; i += 1) into[i] = (base + (offsets[i] as number)) | 0;
}

function addFloat8(length: number, offsets: Uint8Array, base: number): Float64Array {
  const into = new Float64Array(length);
  for (let i = 0; i < length; i += 1) into[i] = base + (offsets[i] as number);
  return into;
}

function addFloat16(length: number, offsets: Uint16Array, base: number): Float64Array {
  const into = new Float64Array(length);
  for (let i = 0; i < length; i += 1) into[i] = base + (offsets[i] as number);
  return into;
}

function addFloat32(length: number, offsets: Uint32Array, base: number): Float64Array {
  const into = new Float64Array(length);
  for (let i = 0; i < length; i += 1) into[i] = base + (offsets[i] as number);
  return into;
}

function dictionaryVector(chunk: Chunk, range: RowRange): Vector {
  const length = range.end - range.start;
  const texts = offsetsOf(chunk, dictionaryPlace(chunk));
  const valueCount = chunk.entry.auxiliary;
  if (valueCount === 1 && !chunk.entry.hasNulls) return constVector(textOf(texts, 0), length);
  const values = Array.from({ length: valueCount }, (_, code) => textOf(texts, code));
  const codes = codesOf(chunk)?.subarray(range.start, range.end) ?? new Uint8Array(length);
  return { kind: "dict", length, codes, values, nulls: nullsOf(chunk, range) };
}

/** Undefined when all codes are 0. */
function codesOf(chunk: Chunk): Codes | undefined {
  const width = codeBytes(chunk.entry.auxiliary);
  if (width === 0) return undefined;
  const { buffer } = chunk.file;
  const at = partsAt(chunk);
  return width === 1
    ? new Uint8Array(buffer, at, chunk.rowCount)
    : new Uint16Array(buffer, at, chunk.rowCount);
}

/** Where offsets begin and how many values they bound. */
interface OffsetsPlace {
  readonly at: number;
  readonly count: number;
}

function dictionaryPlace(chunk: Chunk): OffsetsPlace {
  const count = chunk.entry.auxiliary;
  return { at: partsAt(chunk) + padded(codeBytes(count) * chunk.rowCount), count };
}

interface Blocks {
  readonly offsets: Uint32Array;
  readonly bytes: Buffer;
}

function offsetsOf({ file }: Chunk, { at, count }: OffsetsPlace): Blocks {
  const offsets = new Uint32Array(file.buffer, at, count + 1);
  const bytesAt = at + padded((count + 1) * 4);
  return { offsets, bytes: Buffer.from(file.buffer, bytesAt, offsets[count] ?? 0) };
}

function textOf({ offsets, bytes }: Blocks, index: number): string {
  return bytes.toString("utf8", offsets[index] ?? 0, offsets[index + 1] ?? 0);
}

function blockAt(chunk: Chunk, row: number): Value {
  const { offsets, bytes } = offsetsOf(chunk, { at: partsAt(chunk), count: chunk.rowCount });
  // A copy: values outlive the scan, and the file its views.
  const block = new Uint8Array(bytes.subarray(offsets[row] ?? 0, offsets[row + 1] ?? 0));
  return chunk.layout === "embedding" ? new Float32Array(block.buffer) : block;
}

function wideAt(chunk: Chunk, row: number): Whole {
  const { auxiliary: wordCount } = chunk.entry;
  const planeBytes = padded(chunk.rowCount * 4);
  const view = new DataView(chunk.file.buffer, partsAt(chunk));
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
