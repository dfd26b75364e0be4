/**
 * Searches a sorted index of a single segment. An owner's keys occupy the same positions as the
 * owner's rows.
 */
import type { Row, Value } from "../../types/mod.ts";
import type { IndexEntries } from "../segment/index_file.ts";
import { type IndexOrder, prefixOf, prefixOfBytes, prefixOfText } from "../segment/index_order.ts";
import type { RowSpan } from "../segment/reader.ts";

/**
 * Returns the prefix of a string, without the common bytes with which all strings of the index
 * begin. `common` has these bytes as Latin-1. For a string that does not begin with the common
 * bytes, returns a number below or above all prefixes of the index.
 */
function prefixWithin(text: string, common: string): number {
  for (let at = 0; at < common.length; at += 1) {
    const unit = at < text.length ? text.charCodeAt(at) : -1;
    if (unit >= 0x80) return prefixOfEncoded(text, common);
    const order = unit - common.charCodeAt(at);
    if (order !== 0) return order < 0 ? -1 : Number.MAX_SAFE_INTEGER;
  }
  return prefixOfText(text, common.length);
}

function prefixOfEncoded(text: string, common: string): number {
  const bytes = Buffer.from(text);
  for (let at = 0; at < common.length; at += 1) {
    // A string that ends here sorts before all strings that continue.
    const order = (bytes[at] ?? -1) - common.charCodeAt(at);
    if (order !== 0) return order < 0 ? -1 : Number.MAX_SAFE_INTEGER;
  }
  return prefixOfBytes(bytes, common.length, bytes.length);
}

// The string of the last search, and the common bytes with which it was compared. A search looks
// for one string in several segments, whose strings usually begin with the same bytes.
let lastText: string | undefined;
let lastCommon = "";
let lastPrefix = 0;

export class SegmentIndex {
  readonly #entries: IndexEntries;
  readonly #order: IndexOrder;
  readonly #valueAt: (at: number, row: number) => Value;
  /** The bytes with which all strings in the first column begin, as Latin-1; set on first use. */
  #common: string | undefined;

  /**
   * Opens an index of a segment.
   * @param valueAt Returns a row's value for the key column at index `at`.
   */
  constructor(
    entries: IndexEntries,
    order: IndexOrder,
    valueAt: (at: number, row: number) => Value,
  ) {
    this.#entries = entries;
    this.#order = order;
    this.#valueAt = valueAt;
  }

  /** The number of bytes at the beginning of each string that its prefix omits. */
  get commonBytes(): number {
    return this.#entries.commonBytes;
  }

  /**
   * Calls `visit` with the index, in `wanted`, of each prefix that also occurs in a span of keys.
   * The prefixes in `wanted` ascend, and have the form of this index even for strings that begin
   * differently.
   */
  visitEqual({ end, start }: RowSpan, wanted: Float64Array, visit: (at: number) => void): void {
    const { prefixes } = this.#entries;
    let place = start;
    for (let at = 0; at < wanted.length && place < end; at += 1) {
      const prefix = wanted[at] as number;
      // The steps start small, because the next match is likely to be near.
      let step = 1;
      while (place + step < end && (prefixes[place + step] as number) < prefix) step *= 2;
      const near = { start: place, end: Math.min(place + step + 1, end) };
      place = this.#placeOfPrefix(near, prefix, false);
      if (place < end && prefixes[place] === prefix) visit(at);
    }
  }

  /** Returns the row at a position of the index. */
  rowAt(place: number): number {
    return this.#entries.rows[place] as number;
  }

  /**
   * Returns the prefix of the key at a position of the index, in a form that is comparable across
   * segments.
   */
  prefixAt(place: number): number {
    const prefix = this.#ownPrefixAt(place);
    const isShort = this.#entries.commonBytes > 0 && prefix !== Number.POSITIVE_INFINITY;
    return isShort ? prefixOf(this.#valueAt(0, this.rowAt(place))) : prefix;
  }

  /**
   * Returns the prefix at a position as stored, that is, without the bytes that all strings have
   * in common.
   */
  #ownPrefixAt(place: number): number {
    return this.#entries.prefixes[place] as number;
  }

  /**
   * Returns the prefix of a search value, in the form that the index stores. A string that does
   * not begin with the common bytes gets a number below or above all stored prefixes.
   */
  #ownPrefixOf(sought: Value): number {
    const { commonBytes } = this.#entries;
    const value = this.#order.firstFormOf(sought);
    if (commonBytes === 0 || typeof value !== "string") return prefixOf(value);
    const common = this.#commonText();
    if (value !== lastText || common !== lastCommon) {
      lastPrefix = prefixWithin(value, common);
      lastText = value;
      lastCommon = common;
    }
    return lastPrefix;
  }

  #commonText(): string {
    const { commonBytes, prefixes, rows } = this.#entries;
    if (this.#common === undefined) {
      const place = prefixes.findIndex((prefix) => prefix !== Number.POSITIVE_INFINITY);
      const text = place === -1 ? null : this.#valueAt(0, rows[place] ?? 0);
      const bytes = Buffer.from(typeof text === "string" ? text : "");
      this.#common = bytes.toString("latin1", 0, commonBytes);
    }
    return this.#common;
  }

  /** Returns the key at a position of the index. */
  keyAt(place: number): Row {
    const row = this.rowAt(place);
    return this.#order.columns.map((_, at) => this.#valueAt(at, row));
  }

  /**
   * Returns the first position of a span with a key at or above `values` or, with `isAfter`, above
   * all keys that begin with them; the end of the span if there is none.
   */
  placeOf({ end, start }: RowSpan, values: Row, isAfter: boolean): number {
    if (values.length === 0) return isAfter ? end : start;
    const prefix = this.#ownPrefixOf(values[0] ?? null);
    const low = this.#placeOfPrefix({ start, end }, prefix, false);
    if (low === end || this.#ownPrefixAt(low) !== prefix) return low;
    const isOne = low + 1 === end || this.#ownPrefixAt(low + 1) !== prefix;
    const high = isOne ? low + 1 : this.#placeOfPrefix({ start: low + 1, end }, prefix, true);
    if (values.length === 1 && this.#order.isExactAt(0, prefix)) return isAfter ? high : low;
    return this.#placeAmong({ start: low, end: high }, values, isAfter);
  }

  /** Whether the key at a position of the index has exactly the given values. */
  isKeyAt(place: number, values: Row): boolean {
    return this.compareAt(place, values) === 0;
  }

  /** Compares the key at a position of the index with values for the index's leading columns. */
  compareAt(place: number, values: Row): number {
    const wanted = this.#ownPrefixOf(values[0] ?? null);
    const prefix = this.#ownPrefixAt(place);
    if (prefix !== wanted) return prefix < wanted ? -1 : 1;
    if (values.length === 1 && this.#order.isExactAt(0, prefix)) return 0;
    return this.#compareWith(this.rowAt(place), values);
  }

  /**
   * Returns the first position of a span with a prefix at or above `prefix` or, with `isAfter`,
   * above `prefix`.
   */
  #placeOfPrefix({ end, start }: RowSpan, prefix: number, isAfter: boolean): number {
    const { prefixes } = this.#entries;
    let low = start;
    let high = end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const found = prefixes[middle] as number;
      if (found < prefix || (isAfter && found === prefix)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Finds the position for {@linkcode placeOf} in a span of keys with equal prefixes. */
  #placeAmong({ end, start }: RowSpan, values: Row, isAfter: boolean): number {
    let low = start;
    let high = end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.#compareWith(this.rowAt(middle), values);
      if (order < 0 || (isAfter && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Compares the key of a row with values for the index's leading columns. */
  #compareWith(row: number, values: Row): number {
    for (let at = 0; at < values.length; at += 1) {
      const order = this.#order.compareAt(at, this.#valueAt(at, row), values[at] ?? null);
      if (order !== 0) return order;
    }
    return 0;
  }
}
