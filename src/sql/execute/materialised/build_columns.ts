/**
 * Stores the rows that a join keeps in memory, column by column, in the in-memory form of each
 * column's type: numbers stay numbers, and the codes of dictionaries stay codes
 * (`common_dictionary.ts`), so that nothing is allocated per value; only other text is decoded into
 * strings.
 *
 * A join reads rows in the order of their partners, which is random, and often reads the same row
 * many times. Sorts and windows, which use `MaterialisedRows`, read each row once. With 2 M rows,
 * reading numbers or strings in random order from here is at least twice as fast as from the small
 * pages of `MaterialisedRows`, where UTF-8 text has to be copied each time. The cost is that
 * adding text takes three times as long, and that garbage collection has to scan the strings.
 */

import { assert, defined } from "../../../base/assert.ts";
import {
  type Batch,
  type DataType,
  gatherBytes,
  gatherFloat64,
  gatherInt32,
  INT,
  physicalKind,
  type RowNumbers,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { PageNumbers } from "./column_page.ts";
import { CommonDictionary } from "./common_dictionary.ts";
import { bytesOf, type MemoryBudget } from "./memory_budget.ts";

/** The initial capacity. It is small, so that a join of few rows uses little memory. */
const ROWS_MIN = 64;

/**
 * The number of rows in a page. The first page of a column grows up to this size, so that most
 * columns are a single array. Further rows go to other pages, so that stored rows never move. If
 * arrays doubled instead, a join of 400,000 rows would take a quarter more processor time.
 */
const PAGE_BITS = 16;
const PAGE_ROWS: number = 2 ** PAGE_BITS;
const PAGE_MASK = PAGE_ROWS - 1;

class BuildColumn {
  readonly #kind: "bool" | "i32" | "f64" | "any";
  readonly #numbers: PageNumbers[] = [];
  /** The NULL flags of each page of numbers; undefined for a page that contains no NULL. */
  readonly #nulls: (Uint8Array | undefined)[] = [];
  /**
   * The column's values, if they are not numbers or if one of them needs a bigint; otherwise
   * undefined.
   */
  #values: Value[][] | undefined;
  /** The rows, as long as all of them came with dictionaries of few values. */
  #coded: { readonly codes: BuildColumn; readonly dictionary: CommonDictionary } | undefined;

  constructor(type: DataType) {
    this.#kind = physicalKind(type);
    this.#values = this.#kind === "any" ? [] : undefined;
  }

  /** Appends rows to the column. Returns the number of bytes of memory that they take up. */
  append(vector: Vector, start: number, rowCount: number): number {
    if (this.#values === undefined && vector.kind !== this.#kind && !this.#fits(vector)) {
      this.#values = [];
      for (let row = 0; row < start; row += 1) pushTo(this.#values, row, this.#numberAt(row));
    }
    const values = this.#values;
    if (values === undefined) return this.#appendNumbers(vector, start, rowCount);
    const codedBytes = this.#appendCodes(vector, start, rowCount);
    if (codedBytes !== undefined) return codedBytes;
    let bytes = this.#decode(start);
    for (let row = 0; row < rowCount; row += 1) {
      const value = valueAt(vector, row);
      bytes += bytesOf(value);
      pushTo(values, start + row, value);
    }
    return bytes;
  }

  /** Returns the column's values for the first `count` of the listed rows. */
  take(rows: RowNumbers, count: number): Vector {
    const values = this.#values;
    if (this.#coded !== undefined) return takeCoded(this.#coded, rows, count);
    if (values !== undefined) {
      const chosen: Value[] = Array.from({ length: count });
      for (let i = 0; i < count; i += 1) {
        const row = rows[i] ?? 0;
        chosen[i] = values[row >>> PAGE_BITS]?.[row & PAGE_MASK] ?? null;
      }
      const [page] = values;
      const origin =
        values.length === 1 && page !== undefined
          ? { values: page, codes: rows.slice(0, count) }
          : undefined;
      return { kind: "any", length: count, values: chosen, origin };
    }
    const nulls = this.#takeNulls(rows, count);
    switch (this.#kind) {
      case "i32": {
        const pages = this.#numbers as Int32Array[];
        return { kind: "i32", length: count, values: takeInt32(pages, rows, count), nulls };
      }
      case "f64": {
        const pages = this.#numbers as Float64Array[];
        return { kind: "f64", length: count, values: takeFloat64(pages, rows, count), nulls };
      }
      default: {
        const pages = this.#numbers as Uint8Array[];
        return { kind: "bool", length: count, values: takeBytes(pages, rows, count), nulls };
      }
    }
  }

  /**
   * Adds rows as codes. Returns how many bytes of memory they take up; undefined, without any
   * effect on the rows, if they cannot be added in this form.
   */
  #appendCodes(vector: Vector, start: number, rowCount: number): number | undefined {
    if (vector.kind !== "dict") return undefined;
    if (start === 0) {
      this.#coded = { codes: new BuildColumn(INT), dictionary: new CommonDictionary() };
    }
    if (this.#coded === undefined) return undefined;
    const { codes, dictionary } = this.#coded;
    const before = dictionary.bytes;
    const values = dictionary.codesOf(vector, rowCount);
    if (values === undefined) return undefined;
    const coded: Vector = { kind: "i32", length: rowCount, values, nulls: vector.nulls };
    return codes.append(coded, start, rowCount) + dictionary.bytes - before;
  }

  /** Replaces the codes of the first rows by values. Returns how many more bytes these take up. */
  #decode(rowCount: number): number {
    const coded = this.#coded;
    const values = this.#values;
    if (coded === undefined || values === undefined) return 0;
    this.#coded = undefined;
    const { codes, dictionary } = coded;
    let bytes = 0;
    for (let row = 0; row < rowCount; row += 1) {
      const code = codes.#numberAt(row);
      const value = code === null ? null : (dictionary.values[Number(code)] ?? null);
      bytes += bytesOf(value);
      pushTo(values, row, value);
    }
    return bytes;
  }

  #takeNulls(rows: RowNumbers, count: number): Uint8Array | undefined {
    const pages = this.#nulls;
    if (!pages.some((page) => page !== undefined)) return undefined;
    const into = new Uint8Array(count);
    for (let i = 0; i < count; i += 1) {
      const row = rows[i] ?? 0;
      into[i] = pages[row >>> PAGE_BITS]?.[row & PAGE_MASK] ?? 0;
    }
    return into;
  }

  /**
   * Whether all values of a vector are NULL or numbers that the column's array type can hold. The
   * vector has a different representation.
   */
  #fits(vector: Vector): boolean {
    if (vector.kind === "const") return typeof vector.value !== "bigint";
    return vector.kind === "any" && !vector.values.some((value) => typeof value === "bigint");
  }

  #appendNumbers(vector: Vector, start: number, rowCount: number): number {
    for (let from = 0; from < rowCount; ) {
      const row = start + from;
      const held = row & PAGE_MASK;
      const count = Math.min(PAGE_ROWS - held, rowCount - from);
      this.#fill(vector, { from, row, count });
      from += count;
    }
    return 16 * rowCount;
  }

  /**
   * Copies `count` rows of a vector, starting with row `from`, to the page positions that start at
   * `row`.
   */
  #fill(vector: Vector, place: { from: number; row: number; count: number }): void {
    const { count, from, row } = place;
    const page = row >>> PAGE_BITS;
    const at = row & PAGE_MASK;
    const into = this.#reserve(page, at + count);
    if (vector.kind === "i32" || vector.kind === "f64" || vector.kind === "bool") {
      into.set(vector.values.subarray(from, from + count), at);
      if (vector.nulls === undefined) return;
      this.#nullsOf(page, into.length).set(vector.nulls.subarray(from, from + count), at);
      return;
    }
    for (let i = 0; i < count; i += 1) {
      const value = valueAt(vector, from + i);
      if (value === null) this.#nullsOf(page, into.length)[at + i] = 1;
      else into[at + i] = Number(value);
    }
  }

  /** Returns a page with enough capacity for this many rows. */
  #reserve(page: number, rowCount: number): PageNumbers {
    const before = this.#numbers[page];
    if (before !== undefined && rowCount <= before.length) return before;
    const wanted = before === undefined ? ROWS_MIN : 2 * before.length;
    const length = page > 0 ? PAGE_ROWS : Math.min(PAGE_ROWS, Math.max(rowCount, wanted));
    const grown = numbersOf(this.#kind, length);
    if (before !== undefined) grown.set(before);
    this.#numbers[page] = grown;
    const nulls = this.#nulls[page];
    this.#nulls[page] = undefined;
    if (nulls !== undefined) this.#nullsOf(page, length).set(nulls);
    return grown;
  }

  #nullsOf(page: number, length: number): Uint8Array {
    const nulls = this.#nulls[page] ?? new Uint8Array(length);
    this.#nulls[page] = nulls;
    return nulls;
  }

  #numberAt(row: number): Value {
    const [page, at] = [row >>> PAGE_BITS, row & PAGE_MASK];
    if (this.#nulls[page]?.[at] === 1) return null;
    const number = this.#numbers[page]?.[at] ?? 0;
    return this.#kind === "bool" ? number === 1 : number;
  }
}

function takeCoded(
  { codes, dictionary }: { codes: BuildColumn; dictionary: CommonDictionary },
  rows: RowNumbers,
  count: number,
): Vector {
  const taken = codes.take(rows, count);
  assert(taken.kind === "i32", "materialised rows: codes are not stored as integers");
  const { length, nulls, values } = taken;
  // A copy by the runtime takes a small part of the time of a loop.
  return {
    kind: "dict",
    length,
    codes: new Uint16Array(values),
    values: dictionary.values,
    nulls,
  };
}

function pushTo(pages: Value[][], row: number, value: Value): void {
  if ((row & PAGE_MASK) === 0) pages.push([]);
  defined(pages[row >>> PAGE_BITS], "materialised rows: row has no page").push(value);
}

// Each type of array has its own function, because a loop that handles several types is four times
// slower.

function takeBytes(pages: readonly Uint8Array[], rows: RowNumbers, count: number): Uint8Array {
  const [only] = pages;
  if (pages.length === 1 && only !== undefined) return gatherBytes(only, rows, count);
  const into = new Uint8Array(count);
  for (let i = 0; i < count; i += 1) {
    const row = rows[i] ?? 0;
    into[i] = pages[row >>> PAGE_BITS]?.[row & PAGE_MASK] ?? 0;
  }
  return into;
}

function takeInt32(pages: readonly Int32Array[], rows: RowNumbers, count: number): Int32Array {
  const [only] = pages;
  if (pages.length === 1 && only !== undefined) return gatherInt32(only, rows, count);
  const into = new Int32Array(count);
  for (let i = 0; i < count; i += 1) {
    const row = rows[i] ?? 0;
    into[i] = pages[row >>> PAGE_BITS]?.[row & PAGE_MASK] ?? 0;
  }
  return into;
}

function takeFloat64(
  pages: readonly Float64Array[],
  rows: RowNumbers,
  count: number,
): Float64Array {
  const [only] = pages;
  if (pages.length === 1 && only !== undefined) return gatherFloat64(only, rows, count);
  const into = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const row = rows[i] ?? 0;
    into[i] = pages[row >>> PAGE_BITS]?.[row & PAGE_MASK] ?? 0;
  }
  return into;
}

export class BuildColumns {
  readonly #columns: readonly BuildColumn[];
  readonly #memory: MemoryBudget;
  #rowCount = 0;

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#columns = types.map((type) => new BuildColumn(type));
    this.#memory = memory;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /**
   * Adds rows, given as columns.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  append(columns: readonly Vector[], rowCount: number): void {
    let bytes = 0;
    for (const [position, column] of this.#columns.entries()) {
      const vector = columns[position];
      if (vector !== undefined) bytes += column.append(vector, this.#rowCount, rowCount);
    }
    this.#rowCount += rowCount;
    this.#memory.take(bytes);
  }

  /** Returns the first `count` of the rows listed in `rows`. */
  take(rows: RowNumbers, count: number): Batch {
    return { rowCount: count, columns: this.#columns.map((column) => column.take(rows, count)) };
  }

  takeColumn(position: number, rows: RowNumbers, count: number): Vector {
    return defined(this.#columns[position], "materialised rows: column is missing").take(
      rows,
      count,
    );
  }
}

function numbersOf(kind: "bool" | "i32" | "f64" | "any", length: number): PageNumbers {
  switch (kind) {
    case "bool":
      return new Uint8Array(length);
    case "i32":
      return new Int32Array(length);
    case "f64":
      return new Float64Array(length);
    case "any":
      return new Uint8Array(0);
  }
}
