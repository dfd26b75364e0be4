/**
 * A key of a sort as whole numbers beside the rows, by which a radix sort orders them without
 * comparing two rows. Comparisons order the values that no number expresses.
 */
import { type DataType, typeOrder, type Utf8Vector, type Vector } from "../../../types/mod.ts";
import type { HeldRows } from "../held/held_rows.ts";
import type { SortOrder } from "../held/sort_order.ts";
import type { Run } from "../run/run.ts";

/** In the order of the sort: rows with lower words come first; equal words say nothing. */
export interface SortWords {
  /** One number a row in each, the most significant first. */
  readonly words: readonly Uint32Array[];
  /** Whether rows with equal words have equal keys. */
  readonly areExact: boolean;
}

const WORD_BYTES = 4;

/**
 * A double has two words. A text has three: the twelve bytes behind the beginning that all texts
 * share tell nearly all rows apart.
 */
const NUMBER_WORDS = 2;
const TEXT_WORDS = 3;

/** Undefined for a type whose order no number says. */
export function sortWords(
  rows: HeldRows,
  { key, position }: { key: SortOrder; position: number },
  run: Pick<Run, "checkTime">,
): SortWords | undefined {
  const kind = kindOf(key.type);
  if (kind === undefined) return undefined;
  const wordCount = kind === "number" ? NUMBER_WORDS : TEXT_WORDS;
  const words = Array.from({ length: wordCount }, () => new Uint32Array(rows.rowCount));
  let areExact = true;
  const sharedLength = kind === "text" ? sharedLengthOf(rows, position, run) : 0;
  for (let start = 0; start < rows.rowCount; ) {
    run.checkTime();
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
    case "bytes":
    case "embedding":
    case "interval":
    case "array":
      return undefined;
  }
}

const DOUBLE = new Float64Array(1);
const HALVES = new Uint32Array(DOUBLE.buffer);
const SIGN = 0x80000000;

/**
 * Writes the bits of doubles such that they ascend as numbers do: the sign bit turned, and of
 * negative numbers all others, too. Returns whether a double holds each value exactly.
 */
function writeNumbers(vector: Vector, [high, low]: readonly Uint32Array[]): boolean {
  if (high === undefined || low === undefined) return false;
  let areExact = true;
  for (let row = 0; row < vector.length; row += 1) {
    const value = numberAt(vector, row);
    if (typeof value === "bigint") areExact = false;
    // Negative zero equals zero.
    DOUBLE[0] = Number(value) + 0;
    const sign = HALVES[1] ?? 0;
    const mask = sign >= SIGN ? -1 : 0;
    high[row] = sign ^ (mask | SIGN);
    low[row] = (HALVES[0] ?? 0) ^ mask;
  }
  return areExact;
}

/** NULL is any number. */
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
      throw new RangeError("numbers are held as such");
  }
}

/** How many bytes all texts begin with alike: of urls, they may be more than the words hold. */
function sharedLengthOf(rows: HeldRows, position: number, run: Pick<Run, "checkTime">): number {
  let shared: Uint8Array | undefined;
  for (let start = 0; start < rows.rowCount && shared?.length !== 0; ) {
    run.checkTime();
    const vector = rows.columnFrom(position, start);
    if (vector.kind !== "utf8") return 0;
    shared = sharedStart(vector, shared);
    start += vector.length;
  }
  return shared?.length ?? 0;
}

/** The beginning that all texts share, and one of the texts; undefined where all are NULL. */
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
 * Writes bytes of texts from `from` on, and zeros behind their ends. Returns whether the words say
 * all of each text, and none are those of NULL.
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
    // A zero at the end is no different from none.
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

/** No number has these words, and texts that have them are compared with NULL. */
function writeNulls(vector: Vector, into: readonly Uint32Array[], areFirst: boolean): void {
  const word = areFirst ? 0 : -1;
  const isAny = vector.kind === "any";
  if (!isAny && (vector.kind === "const" || vector.nulls === undefined)) return;
  for (let row = 0; row < vector.length; row += 1) {
    const isNull = isAny ? vector.values[row] === null : vector.nulls?.[row] === 1;
    if (isNull) for (const each of into) each[row] = word;
  }
}
