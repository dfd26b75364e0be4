/**
 * Finds the row of a key in a segment. The bounds of the segment's keys exclude most new keys, and
 * the Bloom filter excludes most of the remaining keys. For keys that neither excludes, the hash
 * index (`key_places.ts`) provides candidate rows, whose values are then compared.
 */
import { assert } from "../../base/assert.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { Directory } from "./chunk_list.ts";
import { hashOfKey } from "./key_hash.ts";
import { filterHas, filterOffset, findHash } from "./key_places.ts";

/** The smallest and the largest primary key of a segment whose key is a single numeric column. */
interface KeyBounds {
  readonly min: number;
  readonly max: number;
}

/** The rows to search, provided by the segment's reader. */
export interface KeyedRows {
  readonly groupCount: number;
  readonly maxSeq: number;
  ownerRange(owner: number): { readonly start: number; readonly end: number } | undefined;
  firstRowAtOrAbove(span: { readonly start: number; readonly end: number }, seq: number): number;
  valueAt(columnId: number, row: number): Value | undefined;
  zone(columnId: number, groupIndex: number): KeyBounds | undefined;
}

const ANY_KEY: KeyBounds = { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY };

export class KeySearch {
  readonly #directory: Directory;
  readonly #rows: KeyedRows;
  /** The bounds of the segment's keys; undefined until first needed. */
  #bounds: KeyBounds | undefined;

  constructor(directory: Directory, rows: KeyedRows) {
    this.#directory = directory;
    this.#rows = rows;
  }

  /** Implements `SegmentReader.findKey`. */
  find(owner: number, key: Row, upTo: number): number {
    const { keyCount, sections, keyHashes, keyRows, keyFilter, keyColumnIds } = this.#directory;
    if (keyCount === 0) return -1;
    assert(
      key.length === keyColumnIds.length,
      "key search: number of values differs from the number of key columns",
    );
    if (this.#isOutsideBounds(key)) return -1;
    const hash = hashOfKey(owner, key);
    sections.keyFilter.touch(filterOffset(hash, keyFilter.byteLength));
    if (!filterHas(keyFilter, hash)) return -1;
    const first = findHash(keyHashes, hash, sections.keyHashes);
    if (first === -1) return -1;
    const range = this.#rows.ownerRange(owner);
    if (range === undefined) return -1;
    const rowEnd =
      upTo >= this.#rows.maxSeq ? range.end : this.#rows.firstRowAtOrAbove(range, upTo + 1);
    for (let index = first; index < keyCount; index += 1) {
      sections.keyHashes.touch(index * 4);
      if (keyHashes[index] !== hash) break;
      sections.keyRows.touch(index * 4);
      const row = keyRows[index] as number;
      if (row >= range.start && row < rowEnd && this.#hasKey(row, key)) return row;
    }
    return -1;
  }

  /** Implements `SegmentReader.highestKey`. */
  get highest(): number {
    const { keyColumnIds, keyCount } = this.#directory;
    if (keyCount === 0) return Number.NEGATIVE_INFINITY;
    return keyColumnIds.length === 1 ? this.#boundsOfAll().max : Number.POSITIVE_INFINITY;
  }

  /**
   * Whether a key lies outside the bounds of the segment's keys. Most keys ascend with time, so a
   * new key usually lies outside.
   */
  #isOutsideBounds(key: Row): boolean {
    const [value] = key;
    if (key.length !== 1 || typeof value !== "number") return false;
    const { max, min } = this.#boundsOfAll();
    // In zone maps, infinity stands for NaN.
    const bound = Number.isNaN(value) ? Number.POSITIVE_INFINITY : value;
    return bound < min || bound > max;
  }

  #boundsOfAll(): KeyBounds {
    this.#bounds ??= this.#findBounds();
    return this.#bounds;
  }

  #findBounds(): KeyBounds {
    const [columnId] = this.#directory.keyColumnIds;
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (let group = 0; group < this.#rows.groupCount; group += 1) {
      const zone = columnId === undefined ? undefined : this.#rows.zone(columnId, group);
      // A row group without a zone map may contain any key.
      if (zone === undefined) return ANY_KEY;
      min = Math.min(min, zone.min);
      max = Math.max(max, zone.max);
    }
    return { min, max };
  }

  #hasKey(row: number, key: Row): boolean {
    let index = 0;
    for (const columnId of this.#directory.keyColumnIds) {
      if (!isSame(this.#rows.valueAt(columnId, row), key[index])) return false;
      index += 1;
    }
    return true;
  }
}

function isSame(left: Value | undefined, right: Value | undefined): boolean {
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    return left.length === right.length && Buffer.compare(left, right) === 0;
  }
  return left === right || (Number.isNaN(left) && Number.isNaN(right));
}
