/**
 * Stores one column of a memtable. Values are appended to it and never change.
 *
 * Numbers and booleans are stored in typed arrays that double in size as they grow. Text is stored
 * as concatenated UTF-8, because the garbage collector would have to traverse individual strings.
 * Other types, and integer columns with a value beyond 2^53, are stored in a plain array.
 */
import { assert } from "../../base/assert.ts";
import type { ByteReader } from "../../base/byte_reader.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { Growth } from "../../base/growth.ts";
import { sharedBytes, sharedFloats, sharedInts, sharedWords } from "../../base/shared_arrays.ts";
import {
  type DataType,
  elementsOf,
  isArrayValue,
  isStringKind,
  physicalKind,
  type Row,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

const CAPACITY_MIN = 8;

const TEXT_BYTES_MIN = 256;
const TEXT_BYTES_MAX = 0xffff_ffff;

/** A shared empty writer for columns without text. Nothing is ever written to it. */
const NO_TEXT = new ByteWriter(0);
const NO_OFFSETS = new Uint32Array(0);

/** The size in bytes of a value in a plain array, excluding the characters of a string. */
const SLOT_BYTES = 16;

const PLACE_BYTES = { bool: 1, i32: 4, f64: 8, text: 4, any: SLOT_BYTES } as const;

export class MemColumn {
  readonly columnId: number;
  readonly type: DataType;
  #kind: "bool" | "i32" | "f64" | "text" | "any";
  #bools: Uint8Array = new Uint8Array(0);
  #ints: Int32Array = new Int32Array(0);
  #floats: Float64Array = new Float64Array(0);
  #values: Value[] = [];
  #text = NO_TEXT;
  /**
   * The offset at which each string of the column starts, followed by the end of the last string.
   */
  #offsets: Uint32Array = NO_OFFSETS;
  #nulls: Uint8Array | undefined;
  #boolGrowth: Growth<Uint8Array> | undefined;
  #intGrowth: Growth<Int32Array> | undefined;
  #floatGrowth: Growth<Float64Array> | undefined;
  #offsetGrowth: Growth<Uint32Array> | undefined;
  #nullGrowth: Growth<Uint8Array> | undefined;
  #length = 0;
  #contentBytes = 0;

  constructor(columnId: number, type: DataType) {
    this.columnId = columnId;
    this.type = type;
    this.#kind = isStringKind(type.kind) ? "text" : physicalKind(type);
    if (this.#kind === "text") {
      this.#text = new ByteWriter(TEXT_BYTES_MIN, { isShared: true });
    }
  }

  /**
   * Creates a column that shares the memory of a vector. Nothing may be appended to the column
   * unless the vector is a plain array.
   */
  static of({ columnId, type }: Pick<MemColumn, "columnId" | "type">, vector: Vector): MemColumn {
    const column = new MemColumn(columnId, type);
    column.#length = vector.length;
    if (vector.kind === "bool") column.#bools = vector.values;
    else if (vector.kind === "i32") column.#ints = vector.values;
    else if (vector.kind === "f64") column.#floats = vector.values;
    else if (vector.kind === "utf8") {
      column.#text = ByteWriter.over(vector.bytes);
      column.#offsets = vector.offsets;
    } else {
      assert(vector.kind === "any", "memtable column: vector does not have its own array");
      column.#values = [...vector.values];
    }
    column.#kind = vector.kind === "utf8" ? "text" : vector.kind;
    if (vector.kind !== "any") column.#nulls = vector.nulls;
    return column;
  }

  /** Appends values to a column that is a plain array. */
  appendPlain(values: readonly Value[]): void {
    assert(this.#kind === "any", "memtable column: column is not a plain array");
    for (const value of values) this.#values.push(value);
    this.#length += values.length;
  }

  get length(): number {
    return this.#length;
  }

  /** The approximate memory of the column in bytes, excluding unused capacity. */
  get bytes(): number {
    const nulls = this.#nulls === undefined ? 0 : this.#length;
    const content = this.#text.length + this.#contentBytes;
    return this.#length * PLACE_BYTES[this.#kind] + nulls + content;
  }

  /**
   * Appends the column's values in the first `count` rows. Each row has the value at index
   * `position`.
   */
  appendFrom(rows: readonly Row[], position: number, count: number): void {
    this.#reserve(this.#length + count);
    for (let index = 0; index < count; index += 1) {
      this.#put(this.#length + index, rows[index]?.[position] ?? null);
    }
    this.#length += count;
  }

  /** Whether the column is stored as UTF-8 text. */
  get isText(): boolean {
    return this.#kind === "text";
  }

  append(value: Value): void {
    this.#reserve(this.#length + 1);
    this.#put(this.#length, value);
    this.#length += 1;
  }

  /** Reads a UTF-8 string and appends it. The column must be a text column. */
  appendTextOf(from: ByteReader): void {
    assert(this.#kind === "text", "memtable column: column does not hold text");
    this.#reserve(this.#length + 1);
    from.blockInto(this.#text);
    assert(
      this.#text.length <= TEXT_BYTES_MAX,
      "memtable column: text offset does not fit in 32 bits",
    );
    this.#length += 1;
    this.#offsets[this.#length] = this.#text.length;
  }

  /** Appends the first `count` values of a vector. */
  appendVector(vector: Vector, count: number): void {
    assert(count <= vector.length, "memtable column: vector has fewer values than rows to append");
    this.#reserve(this.#length + count);
    if (!this.#appendText(vector, count) && !this.#appendNumbers(vector, count)) {
      for (let row = 0; row < count; row += 1) {
        this.#put(this.#length + row, valueAt(vector, row));
      }
    }
    this.#length += count;
  }

  /**
   * Appends text values of a vector. Returns false unless both the column and the vector are text.
   */
  #appendText(vector: Vector, count: number): boolean {
    if (this.#kind !== "text" || vector.kind !== "utf8") return false;
    const { bytes, offsets } = vector;
    const first = offsets[0] ?? 0;
    const shift = this.#text.length - first;
    this.#text.raw(bytes.subarray(first, offsets[count]));
    assert(
      this.#text.length <= TEXT_BYTES_MAX,
      "memtable column: text offset does not fit in 32 bits",
    );
    const own = this.#offsets;
    const base = this.#length;
    for (let row = 1; row <= count; row += 1) own[base + row] = (offsets[row] ?? 0) + shift;
    this.#appendNulls(vector.nulls, count);
    return true;
  }

  /**
   * Appends numbers of a vector. Returns false unless the column and the vector store numbers in
   * the same format.
   */
  #appendNumbers(vector: Vector, count: number): boolean {
    if (vector.kind === "f64" && this.#kind === "f64") {
      this.#floats.set(vector.values.subarray(0, count), this.#length);
    } else if (vector.kind === "i32" && this.#kind === "i32") {
      this.#ints.set(vector.values.subarray(0, count), this.#length);
    } else {
      return false;
    }
    this.#appendNulls(vector.nulls, count);
    return true;
  }

  #appendNulls(nulls: Uint8Array | undefined, count: number): void {
    if (nulls === undefined) return;
    this.#nulls ??= sharedBytes(this.#capacity());
    this.#nulls.set(nulls.subarray(0, count), this.#length);
  }

  appendRepeated(value: Value, count: number): void {
    this.#reserve(this.#length + count);
    for (let index = 0; index < count; index += 1) this.#put(this.#length + index, value);
    this.#length += count;
  }

  truncate(length: number): void {
    assert(length <= this.#length, "memtable column: cannot truncate beyond the current length");
    this.#nulls?.fill(0, length, this.#length);
    if (this.#kind === "any") this.#values.length = length;
    if (this.#kind === "text") this.#text.cutTo(this.#offsets[length] ?? 0);
    this.#length = length;
  }

  valueAt(row: number): Value {
    assert(row < this.#length, "memtable column: row is out of range");
    if (this.#kind === "any") return this.#values[row] ?? null;
    if (this.#nulls !== undefined && this.#nulls[row] === 1) return null;
    switch (this.#kind) {
      case "bool":
        return this.#bools[row] === 1;
      case "i32":
        return this.#ints[row] ?? null;
      case "f64":
        return this.#floats[row] ?? null;
      case "text":
        return this.#text.textAt(this.#offsets[row] ?? 0, this.#offsets[row + 1] ?? 0);
    }
  }

  /**
   * Returns all values of the column without copying them. Bytes beyond `length` are not part of
   * the result.
   */
  vector(): Vector {
    const length = this.#length;
    const nulls = this.#nulls?.subarray(0, length);
    switch (this.#kind) {
      case "bool":
        return { kind: "bool", length, values: this.#bools.subarray(0, length), nulls };
      case "i32":
        return { kind: "i32", length, values: this.#ints.subarray(0, length), nulls };
      case "f64":
        return { kind: "f64", length, values: this.#floats.subarray(0, length), nulls };
      case "text": {
        const offsets = this.#offsets.subarray(0, length + 1);
        return { kind: "utf8", length, bytes: this.#text.view(), offsets, nulls };
      }
      case "any":
        return { kind: "any", length, values: this.#values };
    }
  }

  #put(row: number, value: Value): void {
    if (this.#kind === "any") {
      this.#values[row] = value;
      if (typeof value === "string") this.#contentBytes += value.length;
      else if (value instanceof Uint8Array || value instanceof Float32Array) {
        this.#contentBytes += value.byteLength;
      } else if (isArrayValue(value)) {
        this.#contentBytes += SLOT_BYTES * elementsOf(value).length;
      }
    } else if (value === null) {
      this.#nulls ??= sharedBytes(this.#capacity());
      this.#nulls[row] = 1;
      if (this.#kind === "text") this.#offsets[row + 1] = this.#text.length;
    } else if (this.#kind === "text") {
      assert(typeof value === "string", "memtable column: value of a text column is not a string");
      this.#text.rawText(value);
      assert(
        this.#text.length <= TEXT_BYTES_MAX,
        "memtable column: text offset does not fit in 32 bits",
      );
      this.#offsets[row + 1] = this.#text.length;
    } else if (typeof value === "number") {
      if (this.#kind === "f64") this.#floats[row] = value;
      else this.#ints[row] = value;
    } else if (typeof value === "boolean") {
      this.#bools[row] = value ? 1 : 0;
    } else {
      assert(
        typeof value === "bigint",
        "memtable column: value of a numeric column is not a number",
      );
      this.#widen(row);
      this.#values[row] = value;
    }
  }

  /** Converts the column to a plain array. Only its first `count` rows have values so far. */
  #widen(count: number): void {
    assert(this.#kind === "f64", "memtable column: only an f64 column can be widened to bigint");
    const floats = this.#floats;
    const nulls = this.#nulls;
    const values: Value[] = [];
    for (let row = 0; row < count; row += 1) {
      values.push(nulls !== undefined && nulls[row] === 1 ? null : (floats[row] ?? null));
    }
    this.#values = values;
    this.#kind = "any";
    this.#floats = new Float64Array(0);
    this.#nulls = undefined;
  }

  /** Releases the capacity reserved for further rows. */
  releaseGrowth(): void {
    this.#text.releaseGrowth();
    this.#boolGrowth?.release();
    this.#intGrowth?.release();
    this.#floatGrowth?.release();
    this.#offsetGrowth?.release();
    this.#nullGrowth?.release();
  }

  #capacity(): number {
    const texts = Math.max(0, this.#offsets.length - 1);
    return Math.max(this.#bools.length, this.#ints.length, this.#floats.length, texts);
  }

  #reserve(length: number): void {
    const count = this.#length;
    switch (this.#kind) {
      case "any":
        return;
      case "bool":
        this.#bools = (this.#boolGrowth ??= newGrowth(sharedBytes)).arrayFor(
          this.#bools,
          count,
          length,
        );
        break;
      case "i32":
        this.#ints = (this.#intGrowth ??= newGrowth(sharedInts)).arrayFor(
          this.#ints,
          count,
          length,
        );
        break;
      case "f64":
        this.#floats = (this.#floatGrowth ??= newGrowth(sharedFloats)).arrayFor(
          this.#floats,
          count,
          length,
        );
        break;
      case "text":
        this.#offsets = (this.#offsetGrowth ??= newGrowth(sharedWords)).arrayFor(
          this.#offsets,
          count + 1,
          length + 1,
        );
    }
    if (this.#nulls === undefined) return;
    this.#nulls = (this.#nullGrowth ??= newGrowth(sharedBytes)).arrayFor(
      this.#nulls,
      count,
      length,
    );
  }
}

/**
 * The capacity from which an array grows by more than a factor of two. The system allocates memory
 * only when it is first written to, so unused capacity costs only address space, while a bulk load
 * copies far less.
 */
const SPACIOUS_CAPACITY_MIN = 4096;
const SPACIOUS_CAPACITY_MAX = 131_072;
const SPACIOUS_FACTOR = 16;

/** Creates the growth strategy for a memtable array. */
export function newGrowth<T extends Uint8Array | Uint32Array | Int32Array | Float64Array>(
  make: (capacity: number) => T,
): Growth<T> {
  return new Growth(make, nextCapacity);
}

function nextCapacity(capacity: number): number {
  if (capacity < SPACIOUS_CAPACITY_MIN) return Math.max(CAPACITY_MIN, 2 * capacity);
  return Math.max(2 * capacity, Math.min(SPACIOUS_FACTOR * capacity, SPACIOUS_CAPACITY_MAX));
}
