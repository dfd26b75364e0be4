/**
 * One column of a memtable: values that arrive at the end and never change.
 *
 * Numbers and booleans are held in typed arrays that double as they grow, text as UTF-8 one behind
 * the other: as strings it would be walked through at every collection of garbage. Other types, and
 * a whole number column that has met a value beyond 2^53, are in a plain array.
 */
import { assert } from "../../base/assert.ts";
import type { ByteReader } from "../../base/byte_reader.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { sharedBytes, sharedFloats, sharedInts, sharedWords } from "../../base/shared_arrays.ts";
import {
  type DataType,
  physicalKind,
  type Row,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

const CAPACITY_MIN = 16;

const TEXT_BYTES_MIN = 256;
const TEXT_BYTES_MAX = 0xffff_ffff;

/** Of a column that is none of text; nothing is written to it. */
const NO_TEXT = new ByteWriter(0);
const NO_OFFSETS = new Uint32Array(0);

/** What a value costs in a plain array, beside the characters of a text. */
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
  /** Where each text begins and, one further, ends. */
  #offsets: Uint32Array = NO_OFFSETS;
  #nulls: Uint8Array | undefined;
  #length = 0;
  #contentBytes = 0;

  constructor(columnId: number, type: DataType) {
    this.columnId = columnId;
    this.type = type;
    this.#kind = isText(type) ? "text" : physicalKind(type);
    if (this.#kind === "text") {
      this.#text = new ByteWriter(TEXT_BYTES_MIN, { isShared: true });
    }
  }

  /**
   * A column of the values that a vector holds, which it aliases. Nothing is appended to it, other
   * than further values of a plain array.
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
      assert(vector.kind === "any", "a column of a memtable is held in an array of its own");
      column.#values = [...vector.values];
    }
    column.#kind = vector.kind === "utf8" ? "text" : vector.kind;
    if (vector.kind !== "any") column.#nulls = vector.nulls;
    return column;
  }

  /** Further values of a column that is held in a plain array. */
  appendPlain(values: readonly Value[]): void {
    assert(this.#kind === "any", "the values lie in a plain array");
    for (const value of values) this.#values.push(value);
    this.#length += values.length;
  }

  get length(): number {
    return this.#length;
  }

  /** Memory held, about: room that nothing was written to yet takes none. */
  get bytes(): number {
    const nulls = this.#nulls === undefined ? 0 : this.#length;
    const content = this.#text.length + this.#contentBytes;
    return this.#length * PLACE_BYTES[this.#kind] + nulls + content;
  }

  /** Appends the value at `position` of the first `count` rows. */
  appendFrom(rows: readonly Row[], position: number, count: number): void {
    this.#reserve(this.#length + count);
    for (let index = 0; index < count; index += 1) {
      this.#put(this.#length + index, rows[index]?.[position] ?? null);
    }
    this.#length += count;
  }

  /** Whether it holds text, as UTF-8. */
  get isText(): boolean {
    return this.#kind === "text";
  }

  append(value: Value): void {
    this.#reserve(this.#length + 1);
    this.#put(this.#length, value);
    this.#length += 1;
  }

  /** Appends the UTF-8 of a block to a column of text. */
  appendTextOf(from: ByteReader): void {
    assert(this.#kind === "text", "a text column holds text");
    this.#reserve(this.#length + 1);
    from.blockInto(this.#text);
    assert(this.#text.length <= TEXT_BYTES_MAX, "an offset into text has 32 bits");
    this.#length += 1;
    this.#offsets[this.#length] = this.#text.length;
  }

  /** Appends the first `count` values of a vector. */
  appendVector(vector: Vector, count: number): void {
    assert(count <= vector.length, "the vector has the values");
    this.#reserve(this.#length + count);
    if (!this.#appendText(vector, count) && !this.#appendNumbers(vector, count)) {
      for (let row = 0; row < count; row += 1) {
        this.#put(this.#length + row, valueAt(vector, row));
      }
    }
    this.#length += count;
  }

  /** Returns false for what is no text, or not to be held as text. */
  #appendText(vector: Vector, count: number): boolean {
    if (this.#kind !== "text" || vector.kind !== "utf8") return false;
    const { bytes, offsets } = vector;
    const first = offsets[0] ?? 0;
    const shift = this.#text.length - first;
    this.#text.raw(bytes.subarray(first, offsets[count]));
    assert(this.#text.length <= TEXT_BYTES_MAX, "an offset into text has 32 bits");
    const own = this.#offsets;
    const base = this.#length;
    for (let row = 1; row <= count; row += 1) own[base + row] = (offsets[row] ?? 0) + shift;
    this.#appendNulls(vector.nulls, count);
    return true;
  }

  /** Returns false for what is not held as these numbers are. */
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
    assert(length <= this.#length, "a truncation makes shorter");
    this.#nulls?.fill(0, length, this.#length);
    if (this.#kind === "any") this.#values.length = length;
    if (this.#kind === "text") this.#text.cutTo(this.#offsets[length] ?? 0);
    this.#length = length;
  }

  valueAt(row: number): Value {
    assert(row < this.#length, "the row is there");
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

  /** All rows, without copying. What it holds beyond `length` at this time is not part of it. */
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
      }
    } else if (value === null) {
      this.#nulls ??= sharedBytes(this.#capacity());
      this.#nulls[row] = 1;
      if (this.#kind === "text") this.#offsets[row + 1] = this.#text.length;
    } else if (this.#kind === "text") {
      assert(typeof value === "string", "a text column holds text");
      this.#text.rawText(value);
      assert(this.#text.length <= TEXT_BYTES_MAX, "an offset into text has 32 bits");
      this.#offsets[row + 1] = this.#text.length;
    } else if (typeof value === "number") {
      if (this.#kind === "f64") this.#floats[row] = value;
      else this.#ints[row] = value;
    } else if (typeof value === "boolean") {
      this.#bools[row] = value ? 1 : 0;
    } else {
      assert(typeof value === "bigint", "a numeric column holds numbers");
      this.#widen(row);
      this.#values[row] = value;
    }
  }

  /** Goes over to a plain array; the first `count` rows have their values. */
  #widen(count: number): void {
    assert(this.#kind === "f64", "only whole numbers grow beyond 2^53");
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

  #capacity(): number {
    const texts = Math.max(0, this.#offsets.length - 1);
    return Math.max(this.#bools.length, this.#ints.length, this.#floats.length, texts);
  }

  #reserve(length: number): void {
    if (this.#kind === "any") return;
    const room = roomFor(length, this.#capacity(), this.columnId);
    if (room === undefined) return;
    const capacity = Math.max(CAPACITY_MIN, room);
    if (this.#kind === "bool") this.#bools = grown(this.#bools, sharedBytes(capacity));
    else if (this.#kind === "i32") this.#ints = grown(this.#ints, sharedInts(capacity));
    else if (this.#kind === "text") {
      this.#offsets = grown(this.#offsets, sharedWords(capacity + 1));
    } else this.#floats = grown(this.#floats, sharedFloats(capacity));
    if (this.#nulls !== undefined) this.#nulls = grown(this.#nulls, sharedBytes(capacity));
  }
}

/** Types whose values are strings. */
function isText({ kind }: DataType): boolean {
  return kind === "text" || kind === "json" || kind === "uuid" || kind === "file";
}

/**
 * An array of this size grows by more than a doubling: the system gives it memory where it is first
 * written, so room costs addresses, and a bulk load copies a tenth of what it would.
 */
const SPACIOUS_ROOM_MIN = 4096;
const SPACIOUS_ROOM_MAX = 131_072;
const SPACIOUS_FACTOR = 16;

/** From this room on copying what is there takes milliseconds. */
const STAGGERED_ROOM_MIN = 65_536;

/**
 * The room that an array should get, or undefined while it has enough. Arrays of one table grow
 * together, and copying all of them at once would hold up everybody: so each of the large ones
 * grows a little before it must, at another share of its room than its neighbours.
 */
export function roomFor(needed: number, room: number, index: number): number | undefined {
  const isDue = room >= STAGGERED_ROOM_MIN && needed > room * (0.75 + (index % 8) / 32);
  return needed > room || isDue ? Math.max(needed, roomBehind(room)) : undefined;
}

function roomBehind(room: number): number {
  if (room < SPACIOUS_ROOM_MIN) return 2 * room;
  return Math.max(2 * room, Math.min(SPACIOUS_FACTOR * room, SPACIOUS_ROOM_MAX));
}

/** Copies an array to the beginning of a larger one. */
export function grown<T extends Uint8Array | Uint32Array | Int32Array | Float64Array>(
  from: T,
  into: T,
): T {
  into.set(from);
  return into;
}
