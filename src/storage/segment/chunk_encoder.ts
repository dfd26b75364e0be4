/**
 * Encodes one column of one row group as a chunk, in the smallest encoding that a scan can read at
 * full speed (see `encodings.ts`).
 */
import { assert } from "../../base/assert.ts";
import { bytesOf } from "../../base/bytes.ts";
import { type DataType, type Value, type Vector, valueAt } from "../../types/mod.ts";
import {
  BITS,
  CONSTANT,
  F32,
  F64,
  I32,
  NONE,
  OFFSET_8,
  OFFSET_16,
  OFFSET_32,
  packBits,
  WIDE,
} from "./encodings.ts";
import { type ChunkHeader, layoutOf, padded } from "./format.ts";
import { encodeRuns, encodeScaled } from "./number_encoder.ts";
import { encodeBlocks, encodeText } from "./text_encoder.ts";

export interface EncodedChunk {
  readonly header: ChunkHeader;
  /**
   * The encoded bytes. Their length is a multiple of 8. The array is empty if the whole value is
   * in the header.
   */
  readonly bytes: Uint8Array;
}

/** The parts of an encoding, stored after the null bits. */
export interface EncodedValues {
  readonly encoding: number;
  readonly parts: readonly Uint8Array[];
  readonly auxiliary?: number;
  readonly base?: number;
  readonly min?: number;
  readonly max?: number;
}

const SPAN_8 = 255;
const SPAN_16 = 65535;
const SPAN_32 = 4294967295;

export function encodeChunk(type: DataType, vector: Vector): EncodedChunk {
  assert(vector.length > 0, "chunk encoder: chunk has no rows");
  const nulls = nullsOf(vector);
  let nullCount = 0;
  if (nulls !== undefined) for (const flag of nulls) nullCount += flag;
  if (nullCount === vector.length) {
    return assemble({ encoding: NONE, parts: [] }, { nulls: undefined, nullCount });
  }
  const values = encodeValues(type, vector, nulls);
  return assemble(values, { nulls: nullCount === 0 ? undefined : nulls, nullCount });
}

/** Encodes the integers of a system column. It has no column type and, by default, no NULLs. */
export function encodeNumbers(values: Float64Array, nulls?: Uint8Array): EncodedChunk {
  const vector: Vector = { kind: "f64", length: values.length, values, nulls };
  return encodeChunk({ kind: "bigint" }, vector);
}

function encodeValues(
  type: DataType,
  vector: Vector,
  nulls: Uint8Array | undefined,
): EncodedValues {
  const layout = layoutOf(type);
  switch (layout) {
    case "bool":
      return encodeBooleans(gatherBooleans(vector), nulls);
    case "i32":
    case "f64": {
      const numbers = gatherNumbers(vector);
      if (numbers === undefined) return encodeWide(vector);
      if (layout === "i32") return encodeI32(numbers, nulls);
      return type.kind === "float" ? encodeF32(numbers, nulls) : encodeF64(numbers, nulls);
    }
    case "text":
      return encodeText(vector);
    case "bytes":
    case "embedding":
    case "values":
      return encodeBlocks(vector, layout);
  }
}

/** Returns one byte per row, which is 1 for NULL; undefined if no row can be NULL. */
function nullsOf(vector: Vector): Uint8Array | undefined {
  if (vector.kind === "const") {
    return vector.value === null ? new Uint8Array(vector.length).fill(1) : undefined;
  }
  if (vector.kind !== "any") return vector.nulls;
  const flags = new Uint8Array(vector.length);
  for (let row = 0; row < flags.length; row += 1) flags[row] = vector.values[row] === null ? 1 : 0;
  return flags;
}

function assemble(
  values: EncodedValues,
  { nulls, nullCount }: { nulls: Uint8Array | undefined; nullCount: number },
): EncodedChunk {
  const parts = nulls === undefined ? values.parts : [packBits(nulls), ...values.parts];
  let byteCount = 0;
  for (const part of parts) byteCount += padded(part.byteLength);
  assert(byteCount < 2 ** 32, "chunk encoder: chunk exceeds 4 GiB");
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += padded(part.byteLength);
  }
  const header: ChunkHeader = {
    encoding: values.encoding,
    hasNulls: nulls !== undefined,
    nullCount,
    auxiliary: values.auxiliary ?? 0,
    min: values.min ?? Infinity,
    max: values.max ?? -Infinity,
    base: values.base ?? 0,
  };
  return { header, bytes };
}

function gatherBooleans(vector: Vector): Uint8Array {
  if (vector.kind === "bool") return vector.values;
  const flags = new Uint8Array(vector.length);
  for (let row = 0; row < flags.length; row += 1)
    flags[row] = valueAt(vector, row) === true ? 1 : 0;
  return flags;
}

function encodeBooleans(flags: Uint8Array, nulls: Uint8Array | undefined): EncodedValues {
  let trueCount = 0;
  let count = 0;
  for (let row = 0; row < flags.length; row += 1) {
    if (nulls !== undefined && nulls[row] === 1) continue;
    count += 1;
    trueCount += flags[row] ?? 0;
  }
  if (trueCount === 0 || trueCount === count) {
    return { encoding: CONSTANT, parts: [], base: trueCount === 0 ? 0 : 1 };
  }
  return { encoding: BITS, parts: [packBits(flags)] };
}

/** Returns the numbers of all rows, with 0 for NULL; undefined if a number exceeds 2^53. */
function gatherNumbers(vector: Vector): Int32Array | Float64Array | undefined {
  if (vector.kind === "i32" || vector.kind === "f64") return vector.values;
  const numbers = new Float64Array(vector.length);
  for (let row = 0; row < numbers.length; row += 1) {
    const value = valueAt(vector, row);
    if (typeof value === "bigint") return undefined;
    if (value === null) continue;
    assert(typeof value === "number", "chunk encoder: value of a numeric column is not a number");
    numbers[row] = value;
  }
  return numbers;
}

interface ChunkRange {
  readonly min: number;
  readonly max: number;
  readonly areWhole: boolean;
  readonly hasNan: boolean;
}

function rangeOf(numbers: Int32Array | Float64Array, nulls: Uint8Array | undefined): ChunkRange {
  let min = Infinity;
  let max = -Infinity;
  let areWhole = true;
  let hasNan = false;
  for (let row = 0; row < numbers.length; row += 1) {
    if (nulls !== undefined && nulls[row] === 1) continue;
    const value = numbers[row] ?? 0;
    if (value < min) min = value;
    if (value > max) max = value;
    // The offset and run encodings do not distinguish -0 from 0, so they would lose the sign of
    // -0.
    if (areWhole && (Math.floor(value) !== value || Object.is(value, -0))) areWhole = false;
    if (Number.isNaN(value)) hasNan = true;
  }
  // NaN sorts above all numbers, so the upper bound of the zone map is infinity.
  if (hasNan) return { min: Math.min(min, Infinity), max: Infinity, areWhole: false, hasNan };
  assert(min <= max, "chunk encoder: column without NaN has no bounds");
  return { min, max, areWhole: areWhole && max - min < Infinity, hasNan };
}

function encodeI32(
  numbers: Int32Array | Float64Array,
  nulls: Uint8Array | undefined,
): EncodedValues {
  const range = rangeOf(numbers, nulls);
  const { min, max } = range;
  if (min === max) return { encoding: CONSTANT, parts: [], base: min, min, max };
  const runs = nulls === undefined ? encodeRuns(numbers, range) : undefined;
  if (runs !== undefined) return runs;
  // An i32 array can share the file's memory, so encoding as 32-bit offsets would have no
  // advantage.
  if (max - min <= SPAN_16) return encodeOffsets(numbers, nulls, range);
  const values = numbers instanceof Int32Array ? numbers : Int32Array.from(numbers);
  return { encoding: I32, parts: [bytesOf(values)], min, max };
}

/** Whether all values are the same. For this test, 0 and -0 are different. */
function isConstant({ areWhole, hasNan, max, min }: ChunkRange): boolean {
  return min === max && (min !== 0 || areWhole) && !hasNan;
}

function encodeF64(
  numbers: Int32Array | Float64Array,
  nulls: Uint8Array | undefined,
): EncodedValues {
  const range = rangeOf(numbers, nulls);
  const { min, max } = range;
  if (isConstant(range)) return { encoding: CONSTANT, parts: [], base: min, min, max };
  const areSafe = Math.max(Math.abs(min), Math.abs(max)) <= Number.MAX_SAFE_INTEGER;
  if (range.areWhole && areSafe) {
    const runs = nulls === undefined ? encodeRuns(numbers, range) : undefined;
    if (runs !== undefined) return runs;
    if (max - min <= SPAN_32) return encodeOffsets(numbers, nulls, range);
  }
  const values = numbers instanceof Float64Array ? numbers : Float64Array.from(numbers);
  const isFinite = !range.hasNan && max - min < Infinity;
  const scaled = range.areWhole || !isFinite ? undefined : encodeScaled(values, nulls, range);
  if (scaled !== undefined) return scaled;
  return { encoding: F64, parts: [bytesOf(values)], min, max };
}

function encodeF32(
  numbers: Int32Array | Float64Array,
  nulls: Uint8Array | undefined,
): EncodedValues {
  const range = rangeOf(numbers, nulls);
  const { min, max } = range;
  if (isConstant(range)) return { encoding: CONSTANT, parts: [], base: min, min, max };
  if (range.areWhole && max - min <= SPAN_16) return encodeOffsets(numbers, nulls, range);
  return { encoding: F32, parts: [bytesOf(Float32Array.from(numbers))], min, max };
}

function encodeOffsets(
  numbers: Int32Array | Float64Array,
  nulls: Uint8Array | undefined,
  { min, max }: ChunkRange,
): EncodedValues {
  const span = max - min;
  const count = numbers.length;
  const narrow = span <= SPAN_8 ? new Uint8Array(count) : new Uint16Array(count);
  const offsets = span <= SPAN_16 ? narrow : new Uint32Array(count);
  for (let row = 0; row < count; row += 1) {
    // The number stored in place of a NULL may be out of range.
    if (nulls === undefined || nulls[row] === 0) offsets[row] = (numbers[row] ?? 0) - min;
  }
  const encoding = span <= SPAN_8 ? OFFSET_8 : span <= SPAN_16 ? OFFSET_16 : OFFSET_32;
  return { encoding, parts: [bytesOf(offsets)], base: min, min, max };
}

/**
 * Encodes numbers some of which exceed 2^53. Such a chunk gets no zone map, because the bounds of
 * a zone map are doubles.
 */
function encodeWide(vector: Vector): EncodedValues {
  let areShort = true;
  for (let row = 0; row < vector.length; row += 1) {
    const value = valueAt(vector, row);
    if (typeof value === "bigint" && BigInt.asIntN(64, value) !== value) areShort = false;
  }
  const wordCount = areShort ? 2 : 4;
  const words = Array.from({ length: wordCount }, () => new Uint32Array(vector.length));
  for (let row = 0; row < vector.length; row += 1) {
    let rest = bigintOf(valueAt(vector, row));
    for (const word of words) {
      word[row] = Number(rest & 0xffffffffn);
      rest >>= 32n;
    }
    assert(rest === 0n || rest === -1n, "chunk encoder: integer does not fit in 128 bits");
  }
  return { encoding: WIDE, parts: words.map(bytesOf), auxiliary: wordCount };
}

function bigintOf(value: Value): bigint {
  if (value === null) return 0n;
  if (typeof value === "bigint") return value;
  assert(typeof value === "number", "chunk encoder: value of a numeric column is not a number");
  return BigInt(value);
}
