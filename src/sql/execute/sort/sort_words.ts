/**
 * Represents sort keys as integers, so that a radix sort can order rows without comparing them.
 * Rows with values that integers do not represent exactly are ordered by comparison.
 */
import { type DataType, typeOrder, type Utf8Vector, type Vector } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { SortOrder } from "../materialised/sort_order.ts";

/**
 * The sort key of each row as words. Rows with lower words come first. The words do not determine
 * the order of rows with equal words.
 */
export interface SortWords {
  /** Arrays with one word per row. The array of the most significant words comes first. */
  readonly words: readonly Uint32Array[];
  /** Whether rows with equal words have equal keys. */
  readonly areExact: boolean;
}

const WORD_BYTES = 4;

/**
 * The number of words for a double. A string has three words, because the twelve bytes after the
 * prefix common to all strings distinguish nearly all rows.
 */
const NUMBER_WORDS = 2;
const TEXT_WORDS = 3;

/**
 * Converts a sort key to words; returns undefined for a type whose order integers cannot express.
 */
export function sortWords(
  rows: MaterialisedRows,
  { key, position }: { key: SortOrder; position: number },
  context: Pick<ExecutionContext, "checkTime">,
): SortWords | undefined {
  const kind = kindOf(key.type);
  if (kind === undefined) return undefined;
  const wordCount = kind === "number" ? NUMBER_WORDS : TEXT_WORDS;
  const words = Array.from({ length: wordCount }, () => new Uint32Array(rows.rowCount));
  let areExact = true;
  const sharedLength = kind === "text" ? sharedLengthOf(rows, position, context) : 0;
  for (let start = 0; start < rows.rowCount; ) {
    context.checkTime();
    const vector = rows.columnFrom(position, start);
    const into = words.map((word) => word.subarray(start, start + vector.length));
    if (kind === "number") areExact = writeNumbers(vector, into) && areExact;
    else if (vector.kind === "utf8") areExact = writeTexts(vector, sharedLength, into) && areExact;
    else return undefined;
    if (key.isDescending) for (const word of into) turn(word);
    writeNulls(vector, into, key.nullsFirst);
    start += vector.length;
  }
  return { words, areExact };
}

function kindOf(type: DataType): "number" | "text" | undefined {
  switch (typeOrder(type)) {
    case "whole":
    case "double":
    case "boolean":
      return "number";
    case "text":
    case "unknown":
      return "text";
    case "json":
    case "search":
    case "bytes":
    case "embedding":
    case "interval":
    case "numeric":
    case "array":
    case "row":
    case "collated":
      return undefined;
  }
}

const DOUBLE = new Float64Array(1);
const HALVES = new Uint32Array(DOUBLE.buffer);
const SIGN = 0x80000000;

/**
 * Writes the bits of doubles so that they ascend with the numbers: the sign bit is inverted, and
 * for negative numbers all other bits are inverted as well. Returns whether a double represents
 * each value exactly.
 */
function writeNumbers(vector: Vector, [high, low]: readonly Uint32Array[]): boolean {
  if (high === undefined || low === undefined) return false;
  let areExact = true;
  for (let row = 0; row < vector.length; row += 1) {
    const value = numberAt(vector, row);
    if (typeof value === "bigint") areExact = false;
    const number = Number(value);
    // Negative zero is written as zero. NaN has many bit patterns; the one used here sorts above
    // infinity.
    DOUBLE[0] = Number.isNaN(number) ? Number.NaN : number + 0;
    const sign = HALVES[1] ?? 0;
    const mask = sign >= SIGN ? -1 : 0;
    high[row] = sign ^ (mask | SIGN);
    low[row] = (HALVES[0] ?? 0) ^ mask;
  }
  return areExact;
}

/**
 * Returns the number in a row. For NULL, the number is arbitrary, because the words of NULL
 * replace it later.
 */
function numberAt(vector: Vector, row: number): number | bigint {
  switch (vector.kind) {
    case "i32":
    case "f64":
    case "bool":
      return vector.values[row] ?? 0;
    case "any": {
      const value = vector.values[row] ?? 0;
      return typeof value === "bigint" ? value : Number(value);
    }
    default:
      throw new RangeError("sort keys: numeric column has a vector of another kind");
  }
}

/**
 * Returns the length of the prefix common to all strings. URLs may share a prefix that is longer
 * than all words, so the words begin after it.
 */
function sharedLengthOf(
  rows: MaterialisedRows,
  position: number,
  context: Pick<ExecutionContext, "checkTime">,
): number {
  let shared: Uint8Array | undefined;
  for (let start = 0; start < rows.rowCount && shared?.length !== 0; ) {
    context.checkTime();
    const vector = rows.columnFrom(position, start);
    if (vector.kind !== "utf8") return 0;
    shared = sharedStart(vector, shared);
    start += vector.length;
  }
  return shared?.length ?? 0;
}

/**
 * Returns the common prefix of `before` and all strings of a vector; undefined if there are only
 * NULLs.
 */
function sharedStart(
  { bytes, length, nulls, offsets }: Utf8Vector,
  before: Uint8Array | undefined,
): Uint8Array | undefined {
  let shared = before;
  for (let row = 0; row < length; row += 1) {
    if (nulls?.[row] === 1) continue;
    const start = offsets[row] ?? 0;
    const end = offsets[row + 1] ?? 0;
    shared ??= bytes.subarray(start, end);
    let count = 0;
    const countMax = Math.min(shared.length, end - start);
    while (count < countMax && bytes[start + count] === shared[count]) count += 1;
    if (count < shared.length) shared = shared.subarray(0, count);
    if (count === 0) break;
  }
  return shared;
}

/**
 * Writes the bytes of strings as words, beginning at byte `from` and padded with zeros. Returns
 * true if the words represent each string completely and no string has the words of NULL.
 */
function writeTexts(
  { bytes, length, nulls, offsets }: Utf8Vector,
  from: number,
  into: readonly Uint32Array[],
): boolean {
  for (const [i, word] of into.entries()) {
    for (let row = 0; row < length; row += 1) {
      const end = offsets[row + 1] ?? 0;
      const start = Math.min(end, (offsets[row] ?? 0) + from + WORD_BYTES * i);
      word[row] = wordAt(bytes, start, end);
    }
  }
  const lengthMax = from + WORD_BYTES * into.length;
  for (let row = 0; row < length; row += 1) {
    const end = offsets[row + 1] ?? 0;
    // A trailing zero byte cannot be distinguished from padding.
    if (end - (offsets[row] ?? 0) > lengthMax || bytes[end - 1] === 0) return false;
  }
  return nulls === undefined;
}

function wordAt(bytes: Uint8Array, start: number, end: number): number {
  const present = Math.min(WORD_BYTES, end - start);
  let word = 0;
  for (let i = 0; i < present; i += 1) word = (word << 8) | (bytes[start + i] ?? 0);
  return present === 0 ? 0 : word << (8 * (WORD_BYTES - present));
}

function turn(word: Uint32Array): void {
  for (let row = 0; row < word.length; row += 1) word[row] = ~(word[row] ?? 0);
}

/**
 * Writes the words for NULL. No number has these words. A string with these words is compared with
 * NULL.
 */
function writeNulls(vector: Vector, into: readonly Uint32Array[], areFirst: boolean): void {
  const word = areFirst ? 0 : -1;
  const isAny = vector.kind === "any";
  if (!isAny && (vector.kind === "const" || vector.nulls === undefined)) return;
  for (let row = 0; row < vector.length; row += 1) {
    const isNull = isAny ? vector.values[row] === null : vector.nulls?.[row] === 1;
    if (isNull) for (const each of into) each[row] = word;
  }
}
