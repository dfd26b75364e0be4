/**
 * Implements one secondary index of a memtable. The index finds the newest row with a key and,
 * from there, older rows with the same key. It also sorts the rows by key when sorted rows are
 * first read.
 *
 * - Rows are added in memtable order and removed in reverse order. An index may lag behind its
 *   memtable until it is next read.
 * - The rows listed for a key exclude tombstones, and rows replaced within their own commit, which
 *   no read ever sees. Keys that contain NULL, and therefore equal no other key, are not listed.
 * - The sorted rows include every row.
 */
import { defined } from "../../base/assert.ts";
import {
  hasKeyForm,
  keyFormOf,
  type Row,
  slice,
  textsOf,
  type Value,
  valuesOf,
} from "../../types/mod.ts";
import { type Key, keyOfValue, keyOfValues } from "../contract/key.ts";
import { computedKeys, type IndexColumn } from "../contract/key_expressions.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import { type IndexOrder, prefixAfter } from "../segment/index_order.ts";
import { sortByKey } from "../segment/index_sort.ts";
import { fillPrefixes, TieSorter } from "../segment/index_ties.ts";
import { KeyRows } from "./key_rows.ts";
import { type MemColumn, newGrowth } from "./mem_column.ts";
import type { MemPartition } from "./mem_partition.ts";
import type { Memtable } from "./memtable.ts";

const NONE = -1;

/** The approximate memory of an index per row, in bytes. */
const INDEXED_ROW_BYTES = 24;

/** The approximate memory of a computed value, in bytes. */
const COMPUTED_BYTES = 32;

/** The number of rows for which an expression is computed at a time. */
const COMPUTED_ROWS = 2048;

/** The number of rows from which values are decoded together rather than one by one. */
const TOGETHER_MIN = 16;

/** Some of an owner's rows in key order. */
export interface SortedRun {
  readonly rows: Uint32Array;
  /** The newest of these rows other than tombstones; 0 if all are tombstones. */
  readonly newest: number;
}

/** An owner's rows in key order, in separately sorted runs. */
interface SortedOwner {
  readonly runs: SortedRun[];
  /** The number of rows in the partition's list that the sorted runs cover. */
  count: number;
}

export class MemIndex {
  readonly order: IndexOrder;
  readonly #memtable: Memtable;
  /** For each owner, the newest row of each key. */
  readonly #newest = new Map<number, KeyRows>();
  /** For each row, the next older row with the same key, plus one; 0 if there is none. */
  #older: Int32Array = new Int32Array(0);
  readonly #olderGrowth = newGrowth<Int32Array>((capacity) => new Int32Array(capacity));
  readonly #sorted = new Map<number, SortedOwner>();
  /** The values of each key part that is computed by an expression, starting at row 0. */
  readonly #computed = new Map<IndexColumn, Value[]>();
  /**
   * The row whose key was requested last. Its key is kept, because the key of a new row is
   * requested several times.
   */
  #askedRow = NONE;
  #askedKey: Row = [];
  /** The number of indexed rows, which are the first rows of the memtable. */
  #count = 0;

  constructor(memtable: Memtable, order: IndexOrder) {
    this.#memtable = memtable;
    this.order = order;
  }

  get byteCount(): number {
    let bytes = this.#count * INDEXED_ROW_BYTES;
    for (const values of this.#computed.values()) bytes += values.length * COMPUTED_BYTES;
    return bytes;
  }

  /**
   * Adds all rows that are missing from the index.
   *
   * @param newFrom The first row of the commit in progress, whose last seq is not yet known.
   */
  catchUp(newFrom: number = Number.POSITIVE_INFINITY): void {
    this.#addRows(this.#memtable.rowCount, newFrom);
  }

  /**
   * Adds at most `rowsMax` of the rows missing from the index. Returns whether the index is then
   * complete.
   */
  catchUpSome(rowsMax: number): boolean {
    const { rowCount } = this.#memtable;
    this.#addRows(Math.min(rowCount, this.#count + rowsMax), Number.POSITIVE_INFINITY);
    return this.#count === rowCount;
  }

  #addRows(end: number, newFrom: number): void {
    const { commitSeqs, deleted, owners, replacedBy } = this.#memtable;
    if (this.#count >= end) return;
    this.#older = this.#olderGrowth.arrayFor(this.#older, this.#count, end);
    const start = this.#count;
    // Most commits have a single row, for which building a list would cost more than computing the
    // key.
    const keys = end - start === 1 ? undefined : this.keysWithin(start, end);
    for (let row = start; row < end; row += 1) {
      const replacement = replacedBy[row] ?? 0;
      const isNeverSeen =
        deleted[row] === 1 ||
        (replacement !== 0 && (row >= newFrom || replacement <= (commitSeqs[row] ?? 0)));
      const key = isNeverSeen
        ? undefined
        : keys === undefined
          ? this.keyOf(row)
          : keys[row - start];
      this.#older[row] = 0;
      if (key === undefined) continue;
      const ofOwner = this.#keysOf(owners[row] ?? 0);
      this.#older[row] = (ofOwner.get(key) ?? NONE) + 1;
      ofOwner.set(key, row);
    }
    this.#count = end;
  }

  /**
   * Returns the keys of a range of rows. The key is undefined for a row whose key equals no other
   * key.
   */
  keysWithin(start: number, end: number): readonly (Key | undefined)[] {
    const { columns } = this.order;
    const [first] = columns;
    const isOne = columns.length === 1 && first !== undefined && isStored(first);
    if (!isOne || end - start < TOGETHER_MIN) {
      return Array.from({ length: end - start }, (_, at) => this.keyOf(start + at));
    }
    const vector = slice(this.#columnOf(first).vector(), start, end);
    const values = vector.kind === "utf8" ? textsOf(vector) : valuesOf(vector);
    const nullKey = this.order.canRecur([null]) ? keyOfValue(null) : undefined;
    return values.map((value) => (value === null ? nullKey : keyOfValue(value)));
  }

  /** Removes the newest row of the memtable if it is in the index. */
  pop(row: number): void {
    this.#forget(row);
    this.#dropSorted(row);
    this.#askedRow = NONE;
    for (const values of this.#computed.values()) values.length = Math.min(values.length, row);
  }

  #forget(row: number): void {
    if (row >= this.#count) return;
    this.#count = row;
    const owner = this.#memtable.owners[row] ?? 0;
    const keys = this.#newest.get(owner);
    const key = keys === undefined ? undefined : this.keyOf(row);
    if (keys === undefined || key === undefined || keys.get(key) !== row) return;
    const older = this.olderOf(row);
    if (older === NONE) keys.forget(key);
    else keys.set(key, older);
  }

  /**
   * Drops an owner's sorted rows if they include the newest row, because finding that row among
   * them would take a search.
   */
  #dropSorted(row: number): void {
    const { owners, partitions } = this.#memtable;
    const owner = owners[row] ?? 0;
    const before = partitions.get(owner)?.countBefore(row) ?? 0;
    if ((this.#sorted.get(owner)?.count ?? 0) > before) this.#sorted.delete(owner);
  }

  /** Returns the newest row with a key; -1 if there is none. The row may be obsolete. */
  newestOf(owner: number, key: Key): number {
    return this.#newest.get(owner)?.get(key) ?? NONE;
  }

  /** Returns the next older row with the same key as the given row; -1 if there is none. */
  olderOf(row: number): number {
    return (this.#older[row] ?? 0) - 1;
  }

  /** Returns the key of a row; undefined if the row's key equals no other key. */
  keyOf(row: number): Key | undefined {
    const values = this.valuesAt(row);
    return this.order.canRecur(values) ? keyOfValues(values) : undefined;
  }

  valuesAt(row: number): Row {
    if (row !== this.#askedRow) {
      this.#askedKey = this.order.columns.map((_, at) => this.valueAt(at, row));
      this.#askedRow = row;
    }
    return this.#askedKey;
  }

  /** Returns a row's value for the key part at index `at`. */
  valueAt(at: number, row: number): Value {
    const column = defined(
      this.order.columns[at],
      "memtable index: no key column at this position",
    );
    const value =
      column.expression === undefined
        ? this.#columnOf(column).valueAt(row)
        : (this.#computedUpTo(row, column)[row] ?? null);
    return keyFormOf(column.type, value);
  }

  #columnOf({ columnId }: StoredColumn): MemColumn {
    return defined(
      this.#memtable.column(columnId),
      "memtable index: indexed column is missing from the memtable",
    );
  }

  /** Returns the computed values of an expression at least up to the given row. */
  #computedUpTo(row: number, column: IndexColumn): readonly Value[] {
    const { expression } = column;
    let values = this.#computed.get(column);
    if (values === undefined) this.#computed.set(column, (values = []));
    if (expression === undefined) return values;
    while (values.length <= row) {
      const start = values.length;
      const end = Math.min(start + COMPUTED_ROWS, this.#memtable.rowCount);
      const read = expression.reads.map((each) => slice(this.#columnOf(each).vector(), start, end));
      for (const value of valuesOf(computedKeys(expression, read, end - start))) values.push(value);
    }
    return values;
  }

  /**
   * Returns the key prefixes of some rows. The first `commonBytes` bytes of strings are left out.
   */
  prefixesOf(rows: Uint32Array, commonBytes = 0): Float64Array {
    const prefixes = new Float64Array(rows.length);
    const first = defined(this.order.columns[0], "memtable index: index has no key columns");
    if (isStored(first)) {
      fillPrefixes(prefixes, this.#columnOf(first).vector(), { rows, commonBytes });
      return prefixes;
    }
    for (let at = 0; at < rows.length; at += 1) {
      prefixes[at] = prefixAfter(this.valueAt(0, rows[at] ?? 0), commonBytes);
    }
    return prefixes;
  }

  /**
   * Returns an owner's rows in runs, each sorted by key.
   *
   * @param end The row before which the runs end; undefined for all of the owner's rows. If a
   *   commit whose rows begin at `end` is rolled back, no sorted rows have to be dropped.
   */
  runsOf(partition: MemPartition, end?: number): readonly SortedRun[] {
    const count = end === undefined ? partition.count : partition.countBefore(end);
    let sorted = this.#sorted.get(partition.owner);
    if (sorted === undefined || sorted.count > count) {
      sorted = { runs: [], count: 0 };
      this.#sorted.set(partition.owner, sorted);
    }
    const { runs } = sorted;
    if (sorted.count === count) return runs;
    runs.push(this.#sortedRun(partition.rows.slice(sorted.count, count)));
    sorted.count = count;
    for (;;) {
      const last = runs.at(-1);
      const before = runs.at(-2);
      // The last two runs are merged unless the older is more than twice as long, which limits how
      // often a row is merged.
      if (last === undefined || before === undefined || before.rows.length > 2 * last.rows.length)
        break;
      runs.splice(-2, 2, this.#merged(before, last));
    }
    return runs;
  }

  #keysOf(owner: number): KeyRows {
    let keys = this.#newest.get(owner);
    if (keys === undefined) {
      keys = new KeyRows();
      this.#newest.set(owner, keys);
    }
    return keys;
  }

  /** Sorts rows by key. The rows must be in ascending order of row number. */
  #sortedRun(rows: Uint32Array): SortedRun {
    const { deleted } = this.#memtable;
    const newest = rows.findLast((row) => deleted[row] !== 1) ?? 0;
    const keys = this.prefixesOf(rows);
    for (const _ of sortByKey(keys, rows));
    const ties = new TieSorter(this.order, (at, row) => this.valueAt(at, row));
    for (const _ of ties.sort(keys, rows, 0));
    return { rows, newest };
  }

  #merged({ newest, rows: left }: SortedRun, { newest: other, rows: right }: SortedRun): SortedRun {
    const rows = new Uint32Array(left.length + right.length);
    let fromLeft = 0;
    let fromRight = 0;
    for (let to = 0; to < rows.length; to += 1) {
      const takesLeft =
        fromRight === right.length ||
        (fromLeft < left.length &&
          this.#compareRows(left[fromLeft] ?? 0, right[fromRight] ?? 0) <= 0);
      rows[to] = (takesLeft ? left[fromLeft] : right[fromRight]) ?? 0;
      if (takesLeft) fromLeft += 1;
      else fromRight += 1;
    }
    return { rows, newest: Math.max(newest, other) };
  }

  #compareRows(left: number, right: number): number {
    for (let at = 0; at < this.order.columns.length; at += 1) {
      const order = this.order.compareAt(at, this.valueAt(at, left), this.valueAt(at, right));
      if (order !== 0) return order;
    }
    return 0;
  }
}

/** Whether the table's column stores a key part's values in the same form as keys. */
function isStored({ expression, type }: IndexColumn): boolean {
  return expression === undefined && !hasKeyForm(type);
}
