/**
 * One column of held rows, in pages of a batch each, in the form that its type has in memory:
 *
 *     numbers, dates, booleans   a typed array
 *     texts                      UTF-8, one behind the other
 *     all else                   a list of values; so is a page that met a number beyond 2^53
 *
 * A page never moves once it is full, so no turn copies more than one however many rows are held; and
 * a collection of garbage meets a few arrays instead of millions of strings. Lists of a million
 * values held the event loop for 20 to 40 ms each time one grew or was walked through.
 */
import { assert, defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  compareTexts,
  copyText,
  type DataType,
  physicalKind,
  type RowNumbers,
  slice,
  type TextSource,
  textSourceOf,
  type Utf8Vector,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../types/mod.ts";
import { bytesOf } from "./run.ts";

const PAGE_BITS = 12;
const PAGE_MASK = BATCH_ROWS_MAX - 1;
assert(BATCH_ROWS_MAX === 2 ** PAGE_BITS, "a page is a batch");

const TEXT_BYTES_MIN = 16;

type Form = "bool" | "i32" | "f64" | "text" | "any";
type Numbers = Uint8Array | Int32Array | Float64Array;

/** Rows `start` to `start + count` of a vector. */
interface Part {
  readonly vector: Vector;
  readonly start: number;
  readonly count: number;
}

type Page = NumberPage | TextPage | ValuePage;

export class HeldPages {
  readonly #type: DataType;
  readonly #form: Form;
  readonly #pages: Page[] = [];
  /** Whether the order of the type is that of the bytes of its texts. */
  readonly #isByteOrdered: boolean;
  #rowCount = 0;

  constructor(type: DataType) {
    this.#type = type;
    this.#form = formOf(type);
    this.#isByteOrdered = type.kind === "text" || type.kind === "unknown" || type.kind === "uuid";
  }

  /** Returns the bytes that the rows are counted as. */
  append(vector: Vector, rowCount: number): number {
    let bytes = 0;
    for (let start = 0; start < rowCount; ) {
      const held = this.#rowCount & PAGE_MASK;
      const part = { vector, start, count: Math.min(BATCH_ROWS_MAX - held, rowCount - start) };
      bytes += this.#pageFor(part, held).append(part);
      start += part.count;
      this.#rowCount += part.count;
    }
    return bytes;
  }

  valueAt(row: number): Value {
    return this.#pageOf(row).valueAt(row & PAGE_MASK);
  }

  /**
   * The order of two rows that are not NULL by the bytes of their texts; undefined where the type is
   * ordered in another way.
   */
  compareTexts(left: number, right: number): number | undefined {
    if (!this.#isByteOrdered) return undefined;
    const leftPage = this.#pageOf(left);
    const rightPage = this.#pageOf(right);
    if (!(leftPage instanceof TextPage && rightPage instanceof TextPage)) return undefined;
    const range = leftPage.rangeOf(left & PAGE_MASK);
    return compareTexts(
      leftPage.source,
      range,
      rightPage.source,
      rightPage.rangeOf(right & PAGE_MASK),
    );
  }

  isNullAt(row: number): boolean {
    return this.#pageOf(row).isNullAt(row & PAGE_MASK);
  }

  /** Copies the first bytes of a text, as many as there is room for; undefined if it is no text. */
  copyBytes(row: number, into: Buffer): number | undefined {
    const page = this.#pageOf(row);
    if (!(page instanceof TextPage)) return undefined;
    const { end, start } = page.rangeOf(row & PAGE_MASK);
    return page.source.bytes.copy(into, 0, start, Math.min(end, start + into.length));
  }

  /** Rows up to the end of a page, without a copy. */
  rangeFrom(start: number): Vector {
    const page = this.#pageOf(start).vector();
    const from = start & PAGE_MASK;
    return from === 0 ? page : slice(page, from, page.length);
  }

  /** The rows that `order` names from `start` to `end`. */
  take(order: RowNumbers, start: number, end: number): Vector {
    const isAny = this.#pages.some((page) => page instanceof ValuePage);
    if (isAny) return this.#takeValues(order, start, end);
    if (this.#form === "text") return this.#takeTexts(order, start, end);
    return this.#takeNumbers(order, start, end);
  }

  /** Lets go of all rows; those to come may lie where the first of them lay. */
  restart(): void {
    this.#rowCount = 0;
    this.#pages.length = Math.min(1, this.#pages.length);
    if (this.#pages[0]?.restart() === false) this.#pages.length = 0;
  }

  #pageOf(row: number): Page {
    return defined(this.#pages[row >>> PAGE_BITS], "a held row has its page");
  }

  /** The page that a part is appended to, in a form that can hold it. */
  #pageFor(part: Part, held: number): Page {
    const index = this.#rowCount >>> PAGE_BITS;
    if (index === this.#pages.length) this.#pages.push(this.#newPage());
    const page = defined(this.#pages[index], "a page is open");
    if (page.holds(part)) return page;
    const values = new ValuePage();
    if (held > 0) values.append({ vector: page.vector(), start: 0, count: held });
    this.#pages[index] = values;
    return values;
  }

  #newPage(): Page {
    switch (this.#form) {
      case "any":
        return new ValuePage();
      case "text": {
        const before = this.#pages.at(-1);
        return new TextPage(before instanceof TextPage ? before.byteCount : 0);
      }
      default:
        return new NumberPage(this.#form);
    }
  }

  #takeValues(order: RowNumbers, start: number, end: number): Vector {
    const values: Value[] = Array.from({ length: end - start });
    for (let i = start; i < end; i += 1) values[i - start] = this.valueAt(order[i] ?? 0);
    return vectorFromValues(this.#type, values);
  }

  #takeNumbers(order: RowNumbers, start: number, end: number): Vector {
    const taken = new NumberPage(
      this.#form === "text" ? "f64" : (this.#form as "f64"),
      end - start,
    );
    for (let i = start; i < end; i += 1) {
      const row = order[i] ?? 0;
      const page = this.#pages[row >>> PAGE_BITS];
      assert(page instanceof NumberPage, "numbers are held in pages of numbers");
      taken.copyFrom(page, row & PAGE_MASK);
    }
    return taken.vector();
  }

  #takeTexts(order: RowNumbers, start: number, end: number): Vector {
    const pages: TextPage[] = [];
    let byteCount = 0;
    for (let i = start; i < end; i += 1) {
      const row = order[i] ?? 0;
      const page = this.#pages[row >>> PAGE_BITS];
      assert(page instanceof TextPage, "texts are held in pages of texts");
      pages.push(page);
      const range = page.rangeOf(row & PAGE_MASK);
      byteCount += range.end - range.start;
    }
    const taken = new TextPage(byteCount, end - start);
    for (let i = start; i < end; i += 1) {
      taken.copyFrom(defined(pages[i - start], "each row has a page"), (order[i] ?? 0) & PAGE_MASK);
    }
    return taken.vector();
  }
}

function formOf(type: DataType): Form {
  switch (type.kind) {
    case "text":
    case "unknown":
    case "uuid":
    case "json":
    case "file":
      return "text";
    default:
      return physicalKind(type);
  }
}

function numbersOf(form: "bool" | "i32" | "f64", length: number): Numbers {
  if (form === "bool") return new Uint8Array(length);
  return form === "i32" ? new Int32Array(length) : new Float64Array(length);
}

/**
 * A part of an array: itself where that is all, since a view makes of a small array one that the
 * collector of garbage has far more to do with.
 */
function partOf<T extends Numbers | Uint32Array>(from: T, start: number, count: number): T {
  if (start === 0 && count === from.length) return from;
  return from.subarray(start, start + count) as T;
}

class NumberPage {
  readonly #form: "bool" | "i32" | "f64";
  #numbers: Numbers;
  #nulls: Uint8Array | undefined;
  #length = 0;

  constructor(form: "bool" | "i32" | "f64", rowCount = 0) {
    this.#form = form;
    this.#numbers = numbersOf(form, rowCount);
  }

  /** Takes rows from the start again. Returns whether it can. */
  restart(): boolean {
    this.#length = 0;
    this.#nulls = undefined;
    return true;
  }

  holds({ count, start, vector }: Part): boolean {
    if (vector.kind === this.#form) return true;
    if (vector.kind === "const") return typeof vector.value !== "bigint";
    if (vector.kind !== "any") return false;
    for (let row = start; row < start + count; row += 1) {
      if (typeof vector.values[row] === "bigint") return false;
    }
    return true;
  }

  append({ count, start, vector }: Part): number {
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

  /** Appends a row of a page of the same form, for which there is room. */
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

class TextPage {
  source: TextSource;
  #offsets: Uint32Array;
  #nulls: Uint8Array | undefined;
  #length = 0;

  /** @param byteCount How many are expected. */
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

  holds({ count, start, vector }: Part): boolean {
    if (vector.kind === "utf8") return true;
    for (let row = start; row < start + count; row += 1) {
      const value = valueAt(vector, row);
      if (typeof value !== "string" && value !== null) return false;
    }
    return true;
  }

  append(part: Part): number {
    const before = this.bytes;
    this.#reserve(this.#length + part.count);
    if (part.vector.kind === "utf8") this.#appendBytes(part.vector, part);
    else this.#appendValues(part);
    return this.bytes - before;
  }

  /** Appends a row of another page, for which there is room. */
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

  #appendBytes(vector: Utf8Vector, { count, start }: Part): void {
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

  #appendValues({ count, start, vector }: Part): void {
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

  /** What was handed on as a vector keeps the bytes from before. */
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

class ValuePage {
  readonly #values: Value[] = [];

  restart(): boolean {
    return false;
  }

  holds(): boolean {
    return true;
  }

  append({ count, start, vector }: Part): number {
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
