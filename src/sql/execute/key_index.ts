/**
 * Numbers keys: equal keys get the same dense number, in order of first appearance. Grouping and
 * joins share it.
 *
 * Each column of a key becomes one double a row. Values of whole-number types stand for
 * themselves; all others, text above all, get the number under which their column first met them,
 * a dictionary once for each of its values. What a whole-number column holds beside plain numbers
 * (NULL, bigint) gets a negative half, which no such value is. The doubles of a key go through one
 * table with open addressing:
 *
 *     #slots               number of a key by its hash (`hash_slots.ts`)
 *     #columns[i][number]  the double of column i of that key
 *
 * A key of one text needs none of that: its number is that of the text (`text_table.ts`).
 */
import { assert, defined } from "../../base/assert.ts";
import { HASH_FACTOR, HASH_SEED } from "../../base/hash_salt.ts";
import {
  type DataType,
  groupKeyOf,
  isNullAt,
  physicalKind,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../types/mod.ts";
import { grown } from "../functions/aggregate_state.ts";
import { HashSlots } from "./hash_slots.ts";
import { TextTable } from "./text_table.ts";

type Interned = string | number | bigint | boolean | null;

/** Stands for no key: of rows whose key is not known, or has a NULL that equals nothing. */
export const NO_KEY = -1;

/** Hashes of a batch, and keys, that there is room for at first. */
const HASHES_MIN = 64;
const KEYS_MIN = 32;
const UINT32_SPAN = 4_294_967_296;

/** What one key column costs a row, beside its text. */
const CELL_BYTES = 16;

/** Turns the values of one key column into doubles. */
class ColumnCodes {
  readonly #type: DataType;
  readonly #isWhole: boolean;
  readonly #codes = new Map<Interned, number>();
  /** The values of the map, by their number. */
  readonly #interned: Interned[] = [];
  /** In place of the map. */
  readonly texts: TextTable | undefined;
  /** Bytes of the values that are in the map. */
  #bytes = 0;

  constructor(type: DataType) {
    this.#type = type;
    this.#isWhole = isWholeType(type);
    this.texts = isTextType(type) ? new TextTable() : undefined;
  }

  get bytes(): number {
    return this.#bytes + (this.texts?.bytes ?? 0);
  }

  #valueOf(code: number): Value {
    return Number.isInteger(code) ? code : (this.#interned[-code - 0.5] ?? null);
  }

  /** The values of codes; of whole numbers and texts only. */
  vectorOf(codes: Float64Array): Vector {
    if (this.texts !== undefined) return this.texts.vectorOf(codes);
    assert(this.#isWhole, "the codes of the column are its values");
    const isInt32 = physicalKind(this.#type) === "i32";
    const { length } = codes;
    if (this.#interned.length > 0) {
      return vectorFromValues(
        this.#type,
        Array.from(codes, (code) => this.#valueOf(code)),
      );
    }
    if (isInt32) return { kind: "i32", length, values: Int32Array.from(codes), nulls: undefined };
    return { kind: "f64", length, values: codes, nulls: undefined };
  }

  /** @param isAdding Otherwise an unknown value becomes NaN, which no key has. */
  codesOf(vector: Vector, rowCount: number, isAdding: boolean): Float64Array {
    if (this.texts !== undefined) {
      return codesOfNumbers(this.texts.numbersOf(vector, rowCount, isAdding));
    }
    const isNumbers = vector.kind === "i32" || vector.kind === "f64";
    if (this.#isWhole && isNumbers) return this.#codesOfWhole(vector, rowCount, isAdding);
    const codes = new Float64Array(rowCount);
    if (vector.kind === "f64" && vector.nulls === undefined && isDouble(this.#type)) {
      for (let row = 0; row < rowCount; row += 1) {
        codes[row] = this.#codeOf(vector.values[row] ?? 0, isAdding);
      }
    } else if (vector.kind === "dict") {
      this.#addDictionary(vector, codes, isAdding);
    } else if (vector.kind === "const") {
      codes.fill(rowCount === 0 ? 0 : this.#codeAt(vector, 0, isAdding));
    } else {
      for (let row = 0; row < rowCount; row += 1) codes[row] = this.#codeAt(vector, row, isAdding);
    }
    return codes;
  }

  #codesOfWhole(
    { kind, nulls, values }: Extract<Vector, { kind: "i32" | "f64" }>,
    rowCount: number,
    isAdding: boolean,
  ): Float64Array {
    if (nulls === undefined) {
      // Doubles always: loops that meet another kind of array besides run several times slower.
      return kind === "f64" ? values : new Float64Array(values);
    }
    const codes = new Float64Array(rowCount);
    const nullCode = this.#codeOf(null, isAdding);
    for (let row = 0; row < rowCount; row += 1) {
      codes[row] = nulls[row] === 1 ? nullCode : (values[row] ?? 0);
    }
    return codes;
  }

  #addDictionary(
    vector: Extract<Vector, { kind: "dict" }>,
    into: Float64Array,
    isAdding: boolean,
  ): void {
    const { codes, nulls } = vector;
    // A value that no row has must not be interned; whole codes are never below -1.
    const known = new Float64Array(vector.values.length).fill(Number.NEGATIVE_INFINITY);
    for (let row = 0; row < into.length; row += 1) {
      if (nulls?.[row] === 1) {
        into[row] = this.#codeOf(null, isAdding);
        continue;
      }
      const position = codes[row] ?? 0;
      let code = known[position] ?? Number.NEGATIVE_INFINITY;
      if (code === Number.NEGATIVE_INFINITY) {
        code = this.#codeAt(vector, row, isAdding);
        known[position] = code;
      }
      into[row] = code;
    }
  }

  #codeAt(vector: Vector, row: number, isAdding: boolean): number {
    const value = valueAt(vector, row);
    return this.#codeOf(value === null ? null : groupKeyOf(this.#type, value), isAdding);
  }

  #codeOf(value: Interned, isAdding: boolean): number {
    if (this.#isWhole && typeof value === "number") return value;
    const known = this.#codes.get(value);
    if (known !== undefined) return known;
    if (!isAdding) return Number.NaN;
    const number = this.#codes.size;
    const code = this.#isWhole ? -(number + 0.5) : number;
    this.#codes.set(value, code);
    this.#interned.push(value);
    this.#bytes += CELL_BYTES + (typeof value === "string" ? 2 * value.length : 0);
    return code;
  }
}

function codesOfNumbers(numbers: Int32Array): Float64Array {
  const codes = new Float64Array(numbers.length);
  for (let row = 0; row < codes.length; row += 1) {
    const number = numbers[row] ?? NO_KEY;
    codes[row] = number === NO_KEY ? Number.NaN : number;
  }
  return codes;
}

function isDouble({ kind }: DataType): boolean {
  return kind === "double" || kind === "float";
}

/** Whether values of a type are equal as texts are. */
export function isTextType({ kind }: DataType): boolean {
  return kind === "text" || kind === "uuid";
}

/** Whether values of a type are whole numbers in memory, and equal as such. */
export function isWholeType({ kind }: DataType): boolean {
  switch (kind) {
    case "smallint":
    case "int":
    case "bigint":
    case "decimal":
    case "date":
    case "time":
    case "timestamp":
    case "datetime":
      return true;
    default:
      return false;
  }
}

export class KeyIndex {
  readonly #codes: readonly ColumnCodes[];
  readonly #columns: Float64Array<ArrayBuffer>[];
  readonly #slots = new HashSlots();
  /** Of a key of one text: its numbers are those of the keys. */
  readonly #texts: TextTable | undefined;
  /** Used again by each call: batches may be of one row. */
  #hashes = new Int32Array(HASHES_MIN);
  #count = 0;

  constructor(types: readonly DataType[]) {
    this.#codes = types.map((type) => new ColumnCodes(type));
    this.#texts = types.length === 1 ? this.#codes[0]?.texts : undefined;
    this.#columns = types.map(() => new Float64Array(KEYS_MIN));
  }

  /** How many different keys there are. */
  get count(): number {
    return this.#texts?.count ?? this.#count;
  }

  /** The values of a column of keys that follow each other; of whole numbers and texts only. */
  vectorOf(position: number, start: number, end: number): Vector {
    if (this.#texts !== undefined) return this.#texts.rangeOf(start, end);
    const codes = defined(this.#columns[position], "a key has its columns").slice(start, end);
    return this.#column(position).vectorOf(codes);
  }

  #column(position: number): ColumnCodes {
    return defined(this.#codes[position], "a key has its columns");
  }

  /** Bytes that the keys take. */
  get bytes(): number {
    if (this.#texts !== undefined) return this.#texts.bytes;
    let bytes = this.#count * (8 + CELL_BYTES * this.#columns.length);
    for (const codes of this.#codes) bytes += codes.bytes;
    return bytes;
  }

  /** The numbers of the keys of all rows; new ones are added. NULLs are equal to each other. */
  add(vectors: readonly Vector[], rowCount: number): Int32Array {
    const [only] = vectors;
    if (this.#texts !== undefined && only !== undefined) {
      return this.#texts.numbersOf(only, rowCount, true);
    }
    const codes = this.#codesOf(vectors, rowCount, true);
    const numbers = new Int32Array(rowCount);
    const hashes = this.#hashesOf(codes, rowCount);
    const [first, second] = codes;
    for (let row = 0; row < rowCount; row += 1) {
      const hash = hashes[row] ?? 0;
      let number = NO_KEY;
      if (first === undefined || codes.length > 2) number = this.#find(codes, row, hash);
      else if (second === undefined) number = this.#findOne(first[row] ?? 0, hash);
      else number = this.#findTwo(first[row] ?? 0, second[row] ?? 0, hash);
      if (number === NO_KEY) number = this.#insert(codes, row, hash);
      numbers[row] = number;
    }
    return numbers;
  }

  /** The numbers of the keys of all rows, or NO_KEY. */
  find(vectors: readonly Vector[], rowCount: number): Int32Array {
    const [only] = vectors;
    if (this.#texts !== undefined && only !== undefined) {
      return this.#texts.numbersOf(only, rowCount, false);
    }
    const codes = this.#codesOf(vectors, rowCount, false);
    const numbers = new Int32Array(rowCount);
    const hashes = this.#hashesOf(codes, rowCount);
    const [first, second] = codes;
    if (codes.length === 1 && first !== undefined) {
      for (let row = 0; row < rowCount; row += 1) {
        numbers[row] = this.#findOne(first[row] ?? 0, hashes[row] ?? 0);
      }
    } else if (codes.length === 2 && first !== undefined && second !== undefined) {
      for (let row = 0; row < rowCount; row += 1) {
        numbers[row] = this.#findTwo(first[row] ?? 0, second[row] ?? 0, hashes[row] ?? 0);
      }
    } else {
      for (let row = 0; row < rowCount; row += 1) {
        numbers[row] = this.#find(codes, row, hashes[row] ?? 0);
      }
    }
    return numbers;
  }

  #hashesOf(codes: readonly Float64Array[], rowCount: number): Int32Array {
    if (this.#hashes.length < rowCount) this.#hashes = new Int32Array(rowCount);
    fillHashes(codes, this.#hashes, rowCount);
    return this.#hashes;
  }

  #codesOf(
    vectors: readonly Vector[],
    rowCount: number,
    isAdding: boolean,
  ): readonly Float64Array[] {
    return vectors.map((vector, i) =>
      defined(this.#codes[i], "a key has its columns").codesOf(vector, rowCount, isAdding),
    );
  }

  #findOne(code: number, hash: number): number {
    const column = defined(this.#columns[0], "a key has a column");
    const slots = this.#slots.slotsOf(hash);
    const mask = slots.length - 1;
    for (let slot = (hash << 1) & mask; ; slot = (slot + 2) & mask) {
      const number = (slots[slot + 1] ?? 0) - 1;
      if (number === NO_KEY) return number;
      if (slots[slot] === hash && column[number] === code) return number;
    }
  }

  #findTwo(one: number, other: number, hash: number): number {
    const ones = defined(this.#columns[0], "a key has a column");
    const others = defined(this.#columns[1], "a key has a second column");
    const slots = this.#slots.slotsOf(hash);
    const mask = slots.length - 1;
    for (let slot = (hash << 1) & mask; ; slot = (slot + 2) & mask) {
      const number = (slots[slot + 1] ?? 0) - 1;
      if (number === NO_KEY) return number;
      if (slots[slot] !== hash) continue;
      if (ones[number] === one && others[number] === other) return number;
    }
  }

  #find(codes: readonly Float64Array[], row: number, hash: number): number {
    const slots = this.#slots.slotsOf(hash);
    const mask = slots.length - 1;
    for (let slot = (hash << 1) & mask; ; slot = (slot + 2) & mask) {
      const number = (slots[slot + 1] ?? 0) - 1;
      if (number === NO_KEY) return number;
      if (slots[slot] === hash && this.#isKey(codes, row, number)) return number;
    }
  }

  #isKey(codes: readonly Float64Array[], row: number, number: number): boolean {
    for (let i = 0; i < codes.length; i += 1) {
      if (this.#columns[i]?.[number] !== codes[i]?.[row]) return false;
    }
    return true;
  }

  #insert(codes: readonly Float64Array[], row: number, hash: number): number {
    const number = this.#count;
    for (let i = 0; i < codes.length; i += 1) {
      const column = grown(defined(this.#columns[i], "a key has its columns"), number);
      column[number] = codes[i]?.[row] ?? 0;
      this.#columns[i] = column;
    }
    this.#slots.add(hash, number);
    this.#count += 1;
    return number;
  }
}

/** Whether each row has a NULL in its key; undefined when none has. */
export function nullKeysOf(vectors: readonly Vector[], rowCount: number): Uint8Array | undefined {
  let found: Uint8Array | undefined;
  for (const vector of vectors) {
    const mayHave = vector.kind === "any" || vector.kind === "const" || vector.nulls !== undefined;
    if (!mayHave) continue;
    for (let row = 0; row < rowCount; row += 1) {
      if (!isNullAt(vector, row)) continue;
      found ??= new Uint8Array(rowCount);
      found[row] = 1;
    }
  }
  return found;
}

function fillHashes(codes: readonly Float64Array[], hashes: Int32Array, rowCount: number): void {
  hashes.fill(HASH_SEED, 0, rowCount);
  for (const column of codes) mix(column, hashes, rowCount);
}

// The constants are those of MurmurHash3 (Austin Appleby); sums are cut to 32 bits, so that none
// becomes a double.

const FIRST_MIX = 0x85ebca6b | 0;
const SECOND_MIX = 0xc2b2ae35 | 0;

function mix(values: Float64Array, hashes: Int32Array, rowCount: number): void {
  for (let row = 0; row < rowCount; row += 1) {
    const value = values[row] ?? 0;
    const low = value | 0;
    const high = low === value ? 0 : Math.imul((value / UINT32_SPAN) | 0, HASH_FACTOR);
    let hash = Math.imul(((hashes[row] ?? 0) + (low ^ high)) | 0, FIRST_MIX);
    hash = Math.imul(hash ^ (hash >>> 13), SECOND_MIX);
    hashes[row] = hash ^ (hash >>> 16);
  }
}
