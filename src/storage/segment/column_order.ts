/**
 * Sorts rows of a column by value, for readers that need the first few rows or a range of values.
 * At most one row group is sorted at a time, so a row number fits into 16 bits, and a value prefix
 * together with a row number fits into one 64-bit word.
 *
 *     a 64-bit word for each row   48 bits of its value │ 16 bits: the row
 *
 * Sorting these words takes about a millisecond. Rows with equal 48-bit prefixes are then sorted
 * by the rest of their values: strings 40 bits at a time, numbers by their full value. Rows with
 * equal values stay in row order.
 */
import { assert } from "../../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import {
  areFinite,
  type Comparator,
  compareCodePoints,
  type DataType,
  isTextType,
  physicalKind,
  take,
  textSourceOf,
  type Utf8Vector,
  type Value,
  type Vector,
} from "../../types/mod.ts";

const ROW_BITS = 16;
const ROW_MASK = 0xffff;
const VALUE_SPAN = 2 ** 48;

/**
 * The average number of 40-bit passes above which sorting the strings of a row group is abandoned.
 * A pass takes some milliseconds.
 */
const PASSES_MAX = 8;

/**
 * The number of leading bytes of a string that its 48-bit prefix contains. The remaining 8 bits
 * contain the number of bytes.
 */
const WORD_BYTES = 5;

/**
 * The maximum average length of strings to sort, in bytes. Longer strings would take longer than a
 * tick should.
 */
export const TEXT_BYTES_MAX = 512;

assert(
  ROW_GROUP_ROWS_MAX <= ROW_MASK + 1,
  "column order: row number of a row group does not fit in its bits",
);

/**
 * Selects the rows of a row group or memtable part that a read still needs once many rows have
 * been replaced.
 */
export interface LiveRows {
  /** The seq of the ordered read. */
  readonly upTo: number;
  /** The approximate number of rows replaced so far. */
  readonly hiddenCount: number;
  /** Returns the rows that reads at seq `upTo` or later may need; undefined for all rows. */
  rows(): Uint16Array | undefined;
}

/**
 * The minimum number of obsolete rows in a sort order for which a new order is computed. Skipping
 * fewer rows is just as fast.
 */
const OUTGROWN_ROWS_MIN = 512;

const ALL_ROWS = { hiddenCount: 0, liveFrom: 0 };

/** A list of rows, numbered from 0, in ascending order of their values. */
export class ColumnOrder {
  readonly rowCount: number;
  /**
   * The lowest seq at which the sort order is complete. A read at a lower seq may need rows that
   * were left out.
   */
  readonly liveFrom: number;
  readonly #hiddenCount: number;
  /** The rows in ascending order of value; undefined if they are already in that order. */
  readonly #rows: Uint16Array | undefined;
  /** The column's values in sorted order, if they are numbers. */
  readonly #numbers: Float64Array | undefined;

  constructor(
    rowCount: number,
    { numbers, rows }: { rows: Uint16Array | undefined; numbers: Float64Array | undefined },
    { hiddenCount, liveFrom }: { hiddenCount: number; liveFrom: number } = ALL_ROWS,
  ) {
    this.rowCount = rowCount;
    this.liveFrom = liveFrom;
    this.#hiddenCount = hiddenCount;
    this.#rows = rows;
    this.#numbers = numbers;
  }

  /** Whether the sort order contains all rows that a read needs, and not too many other rows. */
  isFor({ hiddenCount, upTo }: LiveRows): boolean {
    const hiddenMax = Math.max(OUTGROWN_ROWS_MIN, this.rowCount / 2);
    return this.liveFrom <= upTo && hiddenCount - this.#hiddenCount <= hiddenMax;
  }

  /**
   * Converts a sort order of selected rows, numbered among themselves, to a sort order with the
   * numbers that the rows have among all rows.
   */
  among(chosen: Uint16Array | undefined, { hiddenCount, upTo }: LiveRows): ColumnOrder {
    const numbers = this.#numbers;
    if (chosen === undefined) {
      const rows = this.#rows;
      return new ColumnOrder(this.rowCount, { rows, numbers }, { hiddenCount, liveFrom: 0 });
    }
    const rows = this.#rows?.map((row) => chosen[row] ?? 0) ?? chosen;
    return new ColumnOrder(this.rowCount, { rows, numbers }, { hiddenCount, liveFrom: upTo });
  }

  get byteCount(): number {
    return (this.#rows?.byteLength ?? 0) + (this.#numbers?.byteLength ?? 0);
  }

  rowAt(place: number): number {
    assert(place >= 0 && place < this.rowCount, "column order: position is out of range");
    return this.#rows === undefined ? place : (this.#rows[place] ?? 0);
  }

  /**
   * Returns the value at a position in the sort order; undefined if the values are not numbers.
   */
  numberAt(place: number): number | undefined {
    return this.#numbers?.[place];
  }
}

export interface PlacedValues {
  readonly compare: Comparator;
  readonly valueAt: (place: number) => Value;
}

/**
 * Returns the positions from `start` to `end` in a sort order at which values lie within inclusive
 * bounds.
 */
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

/**
 * Whether columns of a type can be sorted. Numbers can be sorted, and so can text, which is sorted
 * by its bytes.
 */
export function isOrderedKind(type: DataType): boolean {
  const kind = physicalKind(type);
  return kind === "i32" || kind === "f64" || isTextType(type);
}

/** Whether all strings in a vector are short enough to sort. True for vectors of other types. */
export function areTextsShort(vector: Vector): boolean {
  if (vector.kind !== "utf8") return true;
  const { length, offsets } = vector;
  return (offsets[length] ?? 0) - (offsets[0] ?? 0) <= length * TEXT_BYTES_MAX;
}

/**
 * Sorts the rows of a vector. Returns undefined if a value is NULL, NaN or infinite, if the type
 * cannot be sorted, or if so many strings share long prefixes that sorting would take longer than
 * a tick should.
 */
export function orderOf(vector: Vector): ColumnOrder | undefined {
  const { length } = vector;
  assert(length <= ROW_MASK + 1, "column order: row number does not fit in its bits");
  switch (vector.kind) {
    case "f64":
      if (!areFinite(vector.values)) return undefined;
      return vector.nulls === undefined ? orderOfNumbers(vector.values, length) : undefined;
    case "i32":
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
      if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
      const numbers = new Float64Array(length).fill(value);
      return new ColumnOrder(length, { rows: undefined, numbers });
    }
    default:
      return undefined;
  }
}

/** Sorts only the rows that a read may need. Each row keeps its number. */
export function liveOrderOf(vector: Vector, live: LiveRows): ColumnOrder | undefined {
  const chosen = live.rows();
  const wanted =
    chosen === undefined
      ? vector
      : take(vector, { rows: Uint32Array.from(chosen), count: chosen.length });
  return orderOf(wanted)?.among(chosen, live);
}

/** Sorts strings. Returns the position of each string in the sorted order. */
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

/**
 * Sorts rows by their numeric values. Returns undefined if they are already in ascending order.
 */
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
  // Scaling preserves the order but may make different values equal. If the range of values is
  // infinite, all scaled values are equal.
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

/** Sorts the rows in `all` by their strings. Returns false if sorting was abandoned. */
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
      // Strings that end within the compared prefix are equal, so only longer strings are compared
      // further.
      const isLonger = (((words[2 * start] ?? 0) >>> ROW_BITS) & 0xff) > WORD_BYTES;
      if (!isLonger) continue;
      pending.push({ words: words.subarray(2 * start, 2 * end), depth: depth + WORD_BYTES });
    }
  }
  return true;
}

/**
 * Returns the length in bytes of the longest common prefix of some strings, which are known to
 * share the first `known` bytes.
 */
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

/**
 * Sorts pairs of u32 by the second number, and then by the first: read as little-endian, such a
 * pair is a u64.
 */
function sortWords(words: Uint32Array): void {
  new BigUint64Array(words.buffer, words.byteOffset, words.length / 2).sort();
}

/** Returns the runs of two or more sort words with equal values. */
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
