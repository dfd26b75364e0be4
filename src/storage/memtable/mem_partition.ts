/** Keeps one owner's rows in a memtable: a list in seq order, and the newest row of each key. */
import { assert } from "../../base/assert.ts";
import type { Key } from "../contract/key.ts";
import { KeyRows } from "./key_rows.ts";
import { newGrowth } from "./mem_column.ts";
import { PartOrders } from "./part_orders.ts";

/** The live rows in one block of a partition, cached since they were last needed. */
interface LiveBlock {
  /**
   * The number of changes to the block when its live rows were computed, as returned by
   * `changesIn`.
   */
  readonly changes: number;
  /** An upper bound on the seqs that replaced rows in the block. */
  readonly highestSeq: number;
  /** The live rows of the block, in ascending order. */
  readonly rows: Uint32Array;
}

/** The growth strategy shared by the row lists of all small partitions. */
const SMALL_ROWS = newGrowth<Uint32Array>((capacity) => new Uint32Array(capacity));

/** One owner's rows in a memtable. */
export class MemPartition {
  readonly owner: number;
  /** The row numbers in ascending order. Only the first `count` entries are valid. */
  rows: Uint32Array = new Uint32Array(4);
  count = 0;
  /** An upper bound on all numeric keys in the partition. */
  highestKey: number = Number.NEGATIVE_INFINITY;
  /** The newest row of each key, including tombstones. */
  readonly #keys = new KeyRows();
  #growth = SMALL_ROWS;
  /** The sort orders of the partition's rows, by column. Created on demand. */
  readonly orders: PartOrders = new PartOrders();
  /** The cached live rows in each block of the list of rows. The array is created on first use. */
  liveBlocks: (LiveBlock | undefined)[] | undefined;
  /** The number of the last commit group that changed the partition. */
  changedInGroup = -1;

  constructor(owner: number) {
    this.owner = owner;
  }

  /** Returns how many of the partition's rows come before a given row of the memtable. */
  countBefore(row: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.rows[middle] ?? 0) < row) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the newest row of a key, which may be a tombstone. */
  rowOf(key: Key): number | undefined {
    return this.#keys.get(key);
  }

  setRow(key: Key, row: number): void {
    this.#keys.set(key, row);
    if (typeof key === "number" && key > this.highestKey) this.highestKey = key;
  }

  /**
   * Records consecutive rows, starting at `first`, for ascending keys greater than every existing
   * numeric key.
   */
  setNewRows(keys: Float64Array | Int32Array, first: number): void {
    if (keys.length === 0) return;
    assert(
      (keys[0] ?? 0) > this.highestKey,
      "memtable partition: new keys are not above the existing keys",
    );
    this.#keys.append(keys, first);
    this.highestKey = keys.at(-1) ?? this.highestKey;
  }

  forgetKey(key: Key): void {
    this.#keys.forget(key);
  }

  add(row: number): void {
    this.#reserve(this.count + 1);
    this.rows[this.count] = row;
    this.count += 1;
  }

  /** Adds the memtable rows from `first` (inclusive) to `end` (exclusive) to the partition. */
  addRange(first: number, end: number): void {
    const count = this.count + end - first;
    this.#reserve(count);
    const { rows } = this;
    for (let row = first, at = this.count; row < end; row += 1, at += 1) rows[at] = row;
    this.count = count;
  }

  #reserve(needed: number): void {
    this.#growth = this.#growth.ownFor(this.rows);
    this.rows = this.#growth.arrayFor(this.rows, this.count, needed);
  }

  /** Releases the capacity reserved for further rows. */
  releaseGrowth(): void {
    this.#growth.release();
    this.#keys.releaseGrowth();
  }

  /** Adds the rows and keys of a younger partition, with row numbers increased by `shift`. */
  addAll(younger: MemPartition, shift: number): void {
    for (let index = 0; index < younger.count; index += 1) {
      this.add((younger.rows[index] ?? 0) + shift);
    }
    younger.#keys.visit((key, row) => this.#keys.set(key, row + shift));
    this.highestKey = Math.max(this.highestKey, younger.highestKey);
  }
}
