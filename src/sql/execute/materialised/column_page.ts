/**
 * Implements the pages of {@linkcode PagedColumn}: each contains up to one batch of a column's
 * values, and values are appended until it is full. Vectors that have been passed on do not change
 * when further rows are added.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  copyText,
  type TextSource,
  textSourceOf,
  type Utf8Vector,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import { bytesOf } from "./memory_budget.ts";

const TEXT_BYTES_MIN = 16;

export type PageNumbers = Uint8Array | Int32Array | Float64Array;
export type NumberForm = "bool" | "i32" | "f64";

/** The rows from `start` (inclusive) to `start + count` (exclusive) of a vector. */
export interface VectorPart {
  readonly vector: Vector;
  readonly start: number;
  readonly count: number;
}

function numbersOf(form: NumberForm, length: number): PageNumbers {
  if (form === "bool") return new Uint8Array(length);
  return form === "i32" ? new Int32Array(length) : new Float64Array(length);
}

/**
 * Returns part of an array. If the part covers the entire array, returns the array itself, because
 * for the garbage collector a view of a small array is far more expensive than the array.
 */
function partOf<T extends PageNumbers | Uint32Array>(from: T, start: number, count: number): T {
  if (start === 0 && count === from.length) return from;
  return from.subarray(start, start + count) as T;
}

export class NumberPage {
  readonly #form: NumberForm;
  #numbers: PageNumbers;
  #nulls: Uint8Array | undefined;
  #length = 0;

  constructor(form: NumberForm, rowCount = 0) {
    this.#form = form;
    this.#numbers = numbersOf(form, rowCount);
  }

  get capacity(): number {
    return this.#numbers.length;
  }

  /**
   * Empties the page so that its memory can be reused. Returns false if the page cannot be reused.
   */
  restart(): boolean {
    this.#length = 0;
    this.#nulls = undefined;
    return true;
  }

  holds({ count, start, vector }: VectorPart): boolean {
    if (vector.kind === this.#form) return true;
    if (vector.kind === "const") return typeof vector.value !== "bigint";
    if (vector.kind !== "any") return false;
    for (let row = start; row < start + count; row += 1) {
      if (typeof vector.values[row] === "bigint") return false;
    }
    return true;
  }

  append({ count, start, vector }: VectorPart): number {
    const from = this.#length;
    this.#reserve(from + count);
    this.#length += count;
    const into = this.#numbers;
    if (vector.kind === "i32" || vector.kind === "f64" || vector.kind === "bool") {
      into.set(partOf(vector.values, start, count), from);
      if (vector.nulls !== undefined)
        this.#nullsFor().set(partOf(vector.nulls, start, count), from);
      return 16 * count;
    }
    for (let row = 0; row < count; row += 1) {
      const value = valueAt(vector, start + row);
      if (value === null) this.#nullsFor()[from + row] = 1;
      else into[from + row] = Number(value);
    }
    return 16 * count;
  }

  /** Appends a row from another page with the same representation. The page must not be full. */
  copyFrom(page: NumberPage, row: number): void {
    this.#numbers[this.#length] = page.#numbers[row] ?? 0;
    if (page.isNullAt(row)) this.#nullsFor()[this.#length] = 1;
    this.#length += 1;
  }

  valueAt(row: number): Value {
    if (this.isNullAt(row)) return null;
    const number = this.#numbers[row] ?? 0;
    return this.#form === "bool" ? number === 1 : number;
  }

  isNullAt(row: number): boolean {
    return this.#nulls !== undefined && this.#nulls[row] === 1;
  }

  vector(): Vector {
    const length = this.#length;
    const values = partOf(this.#numbers, 0, length);
    const nulls = this.#nulls === undefined ? undefined : partOf(this.#nulls, 0, length);
    if (values instanceof Uint8Array) return { kind: "bool", length, values, nulls };
    if (values instanceof Int32Array) return { kind: "i32", length, values, nulls };
    return { kind: "f64", length, values, nulls };
  }

  #reserve(rowCount: number): void {
    const { length } = this.#numbers;
    if (rowCount <= length) return;
    const grown = numbersOf(this.#form, Math.min(BATCH_ROWS_MAX, Math.max(rowCount, 2 * length)));
    grown.set(this.#numbers);
    this.#numbers = grown;
    if (this.#nulls === undefined) return;
    const nulls = new Uint8Array(grown.length);
    nulls.set(this.#nulls);
    this.#nulls = nulls;
  }

  #nullsFor(): Uint8Array {
    this.#nulls ??= new Uint8Array(this.#numbers.length);
    return this.#nulls;
  }
}

export class TextPage {
  source: TextSource;
  #offsets: Uint32Array;
  #nulls: Uint8Array | undefined;
  #length = 0;

  /**
   * Creates an empty page of strings.
   * @param byteCount The expected total size of the strings.
   */
  constructor(byteCount: number, rowCount = 0) {
    this.source = textSourceOf(Buffer.allocUnsafeSlow(byteCount));
    this.#offsets = new Uint32Array(rowCount + 1);
  }

  get byteCount(): number {
    return this.#offsets[this.#length] ?? 0;
  }

  get bytes(): number {
    return 16 * this.#length + 2 * this.byteCount;
  }

  restart(): boolean {
    this.#length = 0;
    this.#nulls = undefined;
    return true;
  }

  holds({ count, start, vector }: VectorPart): boolean {
    if (vector.kind === "utf8") return true;
    for (let row = start; row < start + count; row += 1) {
      const value = valueAt(vector, row);
      if (typeof value !== "string" && value !== null) return false;
    }
    return true;
  }

  append(part: VectorPart): number {
    const before = this.bytes;
    this.#reserve(this.#length + part.count);
    if (part.vector.kind === "utf8") this.#appendBytes(part.vector, part);
    else this.#appendValues(part);
    return this.bytes - before;
  }

  /** Appends a row from another page. The page must not be full. */
  copyFrom(page: TextPage, row: number): void {
    const range = page.rangeOf(row);
    const at = this.byteCount;
    copyText(page.source, range, this.source.view, at);
    if (page.isNullAt(row)) this.#nullsFor()[this.#length] = 1;
    this.#length += 1;
    this.#offsets[this.#length] = at + range.end - range.start;
  }

  rangeOf(row: number): { readonly start: number; readonly end: number } {
    return { start: this.#offsets[row] ?? 0, end: this.#offsets[row + 1] ?? 0 };
  }

  valueAt(row: number): Value {
    if (this.isNullAt(row)) return null;
    const { end, start } = this.rangeOf(row);
    return this.source.bytes.toString("utf8", start, end);
  }

  isNullAt(row: number): boolean {
    return this.#nulls !== undefined && this.#nulls[row] === 1;
  }

  vector(): Vector {
    const length = this.#length;
    const offsets = partOf(this.#offsets, 0, length + 1);
    const nulls = this.#nulls === undefined ? undefined : partOf(this.#nulls, 0, length);
    return { kind: "utf8", length, bytes: this.source.bytes, offsets, nulls };
  }

  #appendBytes(vector: Utf8Vector, { count, start }: VectorPart): void {
    const from = vector.offsets[start] ?? 0;
    const end = vector.offsets[start + count] ?? from;
    const at = this.byteCount;
    this.#reserveBytes(at + end - from);
    this.source.bytes.set(vector.bytes.subarray(from, end), at);
    const shift = at - from;
    for (let row = 1; row <= count; row += 1) {
      this.#offsets[this.#length + row] = (vector.offsets[start + row] ?? 0) + shift;
    }
    if (vector.nulls !== undefined) {
      this.#nullsFor().set(partOf(vector.nulls, start, count), this.#length);
    }
    this.#length += count;
  }

  #appendValues({ count, start, vector }: VectorPart): void {
    let at = this.byteCount;
    for (let row = start; row < start + count; row += 1) {
      const value = valueAt(vector, row);
      if (typeof value === "string") {
        this.#reserveBytes(at + 3 * value.length);
        at += this.source.bytes.write(value, at, "utf8");
      } else {
        this.#nullsFor()[this.#length] = 1;
      }
      this.#length += 1;
      this.#offsets[this.#length] = at;
    }
  }

  #reserve(rowCount: number): void {
    const capacity = this.#offsets.length - 1;
    if (rowCount <= capacity) return;
    const grown = Math.min(BATCH_ROWS_MAX, Math.max(rowCount, 2 * capacity));
    const offsets = new Uint32Array(grown + 1);
    offsets.set(this.#offsets);
    this.#offsets = offsets;
    if (this.#nulls === undefined) return;
    const nulls = new Uint8Array(grown);
    nulls.set(this.#nulls);
    this.#nulls = nulls;
  }

  /** Replaces the buffer with a larger one. Vectors passed on earlier keep the previous buffer. */
  #reserveBytes(byteCount: number): void {
    const { bytes } = this.source;
    if (byteCount <= bytes.length) return;
    const length = Math.max(TEXT_BYTES_MIN, byteCount, 2 * bytes.length);
    const grown = Buffer.allocUnsafeSlow(length);
    grown.set(bytes.subarray(0, this.byteCount));
    this.source = textSourceOf(grown);
  }

  #nullsFor(): Uint8Array {
    this.#nulls ??= new Uint8Array(this.#offsets.length - 1);
    return this.#nulls;
  }
}

export class ValuePage {
  readonly #values: Value[] = [];

  restart(): boolean {
    return false;
  }

  holds(): boolean {
    return true;
  }

  append({ count, start, vector }: VectorPart): number {
    let bytes = 0;
    for (let row = start; row < start + count; row += 1) {
      const value = valueAt(vector, row);
      bytes += bytesOf(value);
      this.#values.push(value);
    }
    return bytes;
  }

  valueAt(row: number): Value {
    return this.#values[row] ?? null;
  }

  isNullAt(row: number): boolean {
    return this.valueAt(row) === null;
  }

  vector(): Vector {
    return { kind: "any", length: this.#values.length, values: this.#values.slice() };
  }
}
