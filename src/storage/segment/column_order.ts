/**
 * The rows of a part of a column in the order of their values, for who wants the first few of them
 * or those between two values. A part has at most as many rows as a row group, so a row is 16 bits.
 *
 *     a word of 64 bits a row     48 bits of its value │ 16 bits: the row
 *
 * The engine sorts these words in a millisecond; rows whose 48 bits are equal are told apart by
 * what follows in their texts, 40 bits at a time, and numbers by themselves. Equal values stand in
 * the order of their rows.
 */
import { assert } from "../../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import {
  type Comparator,
  compareCodePoints,
  type DataType,
  isTextType,
  physicalKind,
  textSourceOf,
  type Utf8Vector,
  type Value,
  type Vector,
} from "../../types/mod.ts";

const ROW_BITS = 16;
const ROW_MASK = 0xffff;
const VALUE_SPAN = 2 ** 48;

/**
 * How often each row is sorted by 40 bits of its text, on average: a time takes about 6 ms a group.
 */
const PASSES_MAX = 8;

/** Bytes of a text that a word holds; the rest of its 48 bits says how many there were. */
const WORD_BYTES = 5;

/** Texts that are longer on average are not put in order: it would take more than a turn should. */
export const TEXT_BYTES_MAX = 512;

assert(ROW_GROUP_ROWS_MAX <= ROW_MASK + 1, "a row of a group fits its bits");

/** Rows from 0 on, in ascending order of their values. */
export class ColumnOrder {
  readonly rowCount: number;
  /** Undefined when the rows ascend as they lie. */
  readonly #rows: Uint16Array | undefined;
  /** The values in order, of numbers. */
  readonly #numbers: Float64Array | undefined;

  constructor(
    rowCount: number,
    { numbers, rows }: { rows: Uint16Array | undefined; numbers: Float64Array | undefined },
  ) {
    this.rowCount = rowCount;
    this.#rows = rows;
    this.#numbers = numbers;
  }

  get byteCount(): number {
    return (this.#rows?.byteLength ?? 0) + (this.#numbers?.byteLength ?? 0);
  }

  rowAt(place: number): number {
    assert(place >= 0 && place < this.rowCount, "a place is within its order");
    return this.#rows === undefined ? place : (this.#rows[place] ?? 0);
  }

  /** The value at a place, if values are numbers. */
  numberAt(place: number): number | undefined {
    return this.#numbers?.[place];
  }
}

export interface PlacedValues {
  readonly compare: Comparator;
  readonly valueAt: (place: number) => Value;
}

/** The places of an order, `start` to `end`, whose values lie within inclusive bounds. */
export function placesWithin(
  order: ColumnOrder,
  { max, min }: { readonly min?: Value | undefined; readonly max?: Value | undefined },
  { compare, valueAt }: PlacedValues,
): { start: number; end: number } {
  const firstWhere = (isReached: (value: Value) => boolean): number => {
    let low = 0;
    let high = order.rowCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isReached(valueAt(middle))) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const start = min === undefined ? 0 : firstWhere((value) => compare(value, min) >= 0);
  const end = max === undefined ? order.rowCount : firstWhere((value) => compare(value, max) > 0);
  return { start, end: Math.max(start, end) };
}

/** Whether columns of a type can be put in order: numbers, and text by its bytes. */
export function isOrderedKind(type: DataType): boolean {
  const kind = physicalKind(type);
  return kind === "i32" || kind === "f64" || isTextType(type);
}

/** Whether all texts of a vector are short enough to be put in order; true of every other kind. */
export function areTextsShort(vector: Vector): boolean {
  if (vector.kind !== "utf8") return true;
  const { length, offsets } = vector;
  return (offsets[length] ?? 0) - (offsets[0] ?? 0) <= length * TEXT_BYTES_MAX;
}

/**
 * The order of the rows of a vector; undefined where some are NULL or of a kind without one, or
 * where texts share so many beginnings of different lengths that it would take more than a turn
 * should.
 */
export function orderOf(vector: Vector): ColumnOrder | undefined {
  const { length } = vector;
  assert(length <= ROW_MASK + 1, "a row fits its bits");
  switch (vector.kind) {
    case "i32":
    case "f64":
      return vector.nulls === undefined ? orderOfNumbers(vector.values, length) : undefined;
    case "utf8":
      return vector.nulls === undefined ? orderOfTexts(vector) : undefined;
    case "dict": {
      const texts = vector.values.filter((value) => typeof value === "string");
      if (vector.nulls !== undefined || texts.length < vector.values.length) return undefined;
      const ranks = ranksOf(texts);
      const values = Float64Array.from({ length }, (_, row) => ranks[vector.codes[row] ?? 0] ?? 0);
      return new ColumnOrder(length, { rows: sortedRows(values, length), numbers: undefined });
    }
    case "const": {
      const { value } = vector;
      if (typeof value === "string") {
        return new ColumnOrder(length, { rows: undefined, numbers: undefined });
      }
      if (typeof value !== "number") return undefined;
      const numbers = new Float64Array(length).fill(value);
      return new ColumnOrder(length, { rows: undefined, numbers });
    }
    default:
      return undefined;
  }
}

/** The place of each text among all of them. */
function ranksOf(texts: readonly string[]): Float64Array {
  const ranks = new Float64Array(texts.length);
  const order = texts.map((_, i) => i);
  order.sort((left, right) => compareCodePoints(texts[left] ?? "", texts[right] ?? ""));
  for (const [rank, code] of order.entries()) ranks[code] = rank;
  return ranks;
}

function orderOfNumbers(values: Int32Array | Float64Array, length: number): ColumnOrder {
  const rows = sortedRows(values, length);
  const numbers = new Float64Array(length);
  for (let place = 0; place < length; place += 1) {
    numbers[place] = values[rows === undefined ? place : (rows[place] ?? 0)] ?? 0;
  }
  return new ColumnOrder(length, { rows, numbers });
}

/** Rows by their numbers; undefined when they ascend as they lie. */
function sortedRows(values: Int32Array | Float64Array, length: number): Uint16Array | undefined {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let isAscending = true;
  for (let row = 0; row < length; row += 1) {
    const value = values[row] ?? 0;
    if (value < max) isAscending = false;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (isAscending) return undefined;
  // To scale keeps the order, if not all differences; a span that no number holds keeps none.
  const factor = (VALUE_SPAN - 1) / (max - min);
  const scale = Number.isFinite(factor) ? factor : 0;
  const words = wordsOf(length);
  for (let row = 0; row < length; row += 1) {
    const scaled = Math.floor(((values[row] ?? 0) - min) * scale);
    const high = Math.floor(scaled / 2 ** ROW_BITS);
    words[2 * row] = ((scaled - high * 2 ** ROW_BITS) << ROW_BITS) | row;
    words[2 * row + 1] = high;
  }
  sortWords(words);
  for (const { start, end } of equalRuns(words)) {
    const run = words.subarray(2 * start, 2 * end);
    const rows = Array.from({ length: end - start }, (_, i) => (run[2 * i] ?? 0) & ROW_MASK);
    rows.sort((left, right) => (values[left] ?? 0) - (values[right] ?? 0) || left - right);
    for (const [i, row] of rows.entries()) run[2 * i] = row;
  }
  return rowsOf(words);
}

function orderOfTexts(vector: Utf8Vector): ColumnOrder | undefined {
  const { length } = vector;
  const words = wordsOf(length);
  for (let row = 0; row < length; row += 1) words[2 * row] = row;
  if (!sortTexts(vector, words)) return undefined;
  return new ColumnOrder(length, { rows: rowsOf(words), numbers: undefined });
}

/** Sorts the rows in some words by their texts; returns false when it has given up. */
function sortTexts(vector: Utf8Vector, all: Uint32Array): boolean {
  const { bytes } = textSourceOf(vector.bytes);
  const { offsets } = vector;
  const pending = [{ words: all, depth: 0 }];
  let wordsLeft = all.length * PASSES_MAX;
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    const { words } = part;
    wordsLeft -= words.length;
    if (wordsLeft < 0) return false;
    const depth = commonBytes(vector, words, part.depth);
    for (let at = 0; at < words.length; at += 2) {
      const row = (words[at] ?? 0) & ROW_MASK;
      const start = (offsets[row] ?? 0) + depth;
      const left = (offsets[row + 1] ?? 0) - start;
      const held = Math.min(left, WORD_BYTES);
      let high = 0;
      for (let i = 0; i < 4; i += 1) high = (high << 8) | (i < held ? (bytes[start + i] ?? 0) : 0);
      const last = held === WORD_BYTES ? (bytes[start + 4] ?? 0) : 0;
      words[at + 1] = high;
      words[at] = (((last << 8) | Math.min(left, WORD_BYTES + 1)) << ROW_BITS) | row;
    }
    sortWords(words);
    for (const { start, end } of equalRuns(words)) {
      // Those that end within the word are the same text.
      const isLonger = (((words[2 * start] ?? 0) >>> ROW_BITS) & 0xff) > WORD_BYTES;
      if (!isLonger) continue;
      pending.push({ words: words.subarray(2 * start, 2 * end), depth: depth + WORD_BYTES });
    }
  }
  return true;
}

/** How many first bytes the texts of some rows share, which share `known`. */
function commonBytes({ bytes, offsets }: Utf8Vector, words: Uint32Array, known: number): number {
  const first = (words[0] ?? 0) & ROW_MASK;
  const start = offsets[first] ?? 0;
  let common = (offsets[first + 1] ?? 0) - start;
  for (let at = 2; at < words.length && common > known; at += 2) {
    const row = (words[at] ?? 0) & ROW_MASK;
    const from = offsets[row] ?? 0;
    common = Math.min(common, (offsets[row + 1] ?? 0) - from);
    let same = known;
    while (same < common && bytes[start + same] === bytes[from + same]) same += 1;
    common = same;
  }
  return common;
}

function wordsOf(rowCount: number): Uint32Array {
  return new Uint32Array(2 * rowCount);
}

/** Sorts pairs of u32, of which the second one weighs more: little-endian, they are a u64. */
function sortWords(words: Uint32Array): void {
  new BigUint64Array(words.buffer, words.byteOffset, words.length / 2).sort();
}

/** Stretches of two and more words whose values are equal. */
function equalRuns(words: Uint32Array): { start: number; end: number }[] {
  const runs: { start: number; end: number }[] = [];
  const count = words.length / 2;
  let start = 0;
  for (let i = 1; i <= count; i += 1) {
    const isEqual =
      i < count &&
      words[2 * i + 1] === words[2 * start + 1] &&
      (words[2 * i] ?? 0) >>> ROW_BITS === (words[2 * start] ?? 0) >>> ROW_BITS;
    if (isEqual) continue;
    if (i - start > 1) runs.push({ start, end: i });
    start = i;
  }
  return runs;
}

function rowsOf(words: Uint32Array): Uint16Array {
  const rows = new Uint16Array(words.length / 2);
  for (let i = 0; i < rows.length; i += 1) rows[i] = (words[2 * i] ?? 0) & ROW_MASK;
  return rows;
}
