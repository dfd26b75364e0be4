/**
 * The newest row versions of one table, in memory: columns that grow at the end, in seq order, and
 * for each owner the list of its rows and the newest row of each key.
 *
 * - Rows are only appended; the one thing that changes in a row is `replacedBy`, from 0, once.
 * - `truncate` takes rows back that never became durable; nobody has seen them.
 * - The seqs of one owner's list ascend, and so do those of the whole memtable.
 */
import { assert, defined } from "../../base/assert.ts";
import { sharedBytes, sharedFloats } from "../../base/shared_arrays.ts";
import type { Batch, Row, Vector } from "../../types/mod.ts";
import type { Key } from "../contract/key.ts";
import type { SharedColumn, SharedMemtable } from "../contract/shared_tables.ts";
import type { StoredColumn } from "../contract/store.ts";
import type { PreparedReplacements } from "../deletions/prepared_replacements.ts";
import { KeyRows } from "./key_rows.ts";
import { grown, MemColumn, roomFor } from "./mem_column.ts";
import { PartOrders } from "./part_orders.ts";

const CAPACITY_MIN = 64;

/** Of the arrays that every row has a place in. */
const ROW_BYTES = 41;

/** Rows at the end of a partition that are looked at before all are searched. */
const NEWEST_LOOKED_AT = 3;

/** What a partition and a key cost, about. */
const PARTITION_BYTES = 400;
const KEY_BYTES = 48;

/** The rows of one owner in a memtable. */
export class MemPartition {
  readonly owner: number;
  /** Row numbers, ascending; `count` of them. */
  rows: Uint32Array = new Uint32Array(4);
  count = 0;
  /** No key that is a number is above this. */
  highestKey: number = Number.NEGATIVE_INFINITY;
  /** The newest row of each key, tombstones included. */
  readonly #keys = new KeyRows();
  /** Orders of its rows by columns, as far as they were asked for. */
  readonly orders: PartOrders = new PartOrders();
  /** Number of the last commit group that changed it. */
  changedInGroup = -1;

  constructor(owner: number) {
    this.owner = owner;
  }

  /** The newest row of a key, tombstones included. */
  rowOf(key: Key): number | undefined {
    return this.#keys.get(key);
  }

  setRow(key: Key, row: number): void {
    this.#keys.set(key, row);
    if (typeof key === "number" && key > this.highestKey) this.highestKey = key;
  }

  /** Notes rows from `first` on for keys that ascend from above every key that is a number. */
  setNewRows(keys: Float64Array | Int32Array, first: number): void {
    if (keys.length === 0) return;
    assert((keys[0] ?? 0) > this.highestKey, "new keys are above all others");
    this.#keys.append(keys, first);
    this.highestKey = keys.at(-1) ?? this.highestKey;
  }

  forgetKey(key: Key): void {
    this.#keys.forget(key);
  }

  add(row: number): void {
    const room = roomFor(this.count + 1, this.rows.length, 6.5);
    if (room !== undefined) this.rows = grown(this.rows, new Uint32Array(room));
    this.rows[this.count] = row;
    this.count += 1;
  }

  /** Adds rows from `first` (inclusive) to `end` (exclusive). */
  addRange(first: number, end: number): void {
    const count = this.count + end - first;
    const room = roomFor(count, this.rows.length, 6.5);
    if (room !== undefined) this.rows = grown(this.rows, new Uint32Array(room));
    const { rows } = this;
    for (let row = first, at = this.count; row < end; row += 1, at += 1) rows[at] = row;
    this.count = count;
  }

  /** Takes over the rows and keys of a partition whose rows follow, `shift` further behind. */
  addAll(younger: MemPartition, shift: number): void {
    for (let index = 0; index < younger.count; index += 1) {
      this.add((younger.rows[index] ?? 0) + shift);
    }
    younger.#keys.visit((key, row) => this.#keys.set(key, row + shift));
    this.highestKey = Math.max(this.highestKey, younger.highestKey);
  }
}

/** A row as the memtable takes it; its values follow by `appendValues`. */
export interface MemRow {
  readonly seq: number;
  readonly prev: number;
  readonly isDeleted: boolean;
}

export class Memtable {
  rowCount = 0;
  /** Rows that a newer version has replaced, and tombstones: with none, every row is current. */
  hiddenCount = 0;
  owners: Float64Array = sharedFloats(CAPACITY_MIN);
  seqs: Float64Array = sharedFloats(CAPACITY_MIN);
  prevs: Float64Array = sharedFloats(CAPACITY_MIN);
  commitSeqs: Float64Array = sharedFloats(CAPACITY_MIN);
  /** Seq of the version that replaced a row, 0 for none. */
  replacedBy: Float64Array = sharedFloats(CAPACITY_MIN);
  deleted: Uint8Array = sharedBytes(CAPACITY_MIN);
  /** Grows whenever replacements were noted or taken back. */
  replacementChanges = 0;
  /** Number of the log file in which the first row is at the earliest. */
  firstLogFile: number | undefined;
  readonly partitions: Map<number, MemPartition> = new Map();
  #columns: MemColumn[];

  constructor(columns: readonly StoredColumn[]) {
    this.#columns = columns.map(({ columnId, type }) => new MemColumn(columnId, type));
  }

  get columns(): readonly MemColumn[] {
    return this.#columns;
  }

  /** Seq of the newest row, or 0. */
  get lastSeq(): number {
    return this.rowCount === 0 ? 0 : (this.seqs[this.rowCount - 1] ?? 0);
  }

  /** Last seq of the commit of the newest row, or 0. */
  get lastCommitSeq(): number {
    return this.rowCount === 0 ? 0 : (this.commitSeqs[this.rowCount - 1] ?? 0);
  }

  /** Memory held, about. */
  get bytes(): number {
    let bytes = this.rowCount * (ROW_BYTES + KEY_BYTES);
    bytes += this.partitions.size * PARTITION_BYTES;
    for (const column of this.#columns) bytes += column.bytes;
    return bytes;
  }

  column(columnId: number): MemColumn | undefined {
    for (const column of this.#columns) if (column.columnId === columnId) return column;
    return undefined;
  }

  /** All values of a column without copying, or undefined when the column came later. */
  vector(columnId: number): Vector | undefined {
    return this.column(columnId)?.vector();
  }

  /** The partition of an owner, made if it is not there. */
  partition(owner: number): MemPartition {
    let partition = this.partitions.get(owner);
    if (partition === undefined) {
      partition = new MemPartition(owner);
      this.partitions.set(owner, partition);
    }
    return partition;
  }

  /** Makes room for more rows. */
  reserve(count: number): void {
    const needed = this.rowCount + count;
    this.owners = withRoom(this.owners, roomFor(needed, this.owners.length, 0));
    this.seqs = withRoom(this.seqs, roomFor(needed, this.seqs.length, 1));
    this.prevs = withRoom(this.prevs, roomFor(needed, this.prevs.length, 2));
    this.commitSeqs = withRoom(this.commitSeqs, roomFor(needed, this.commitSeqs.length, 3));
    this.replacedBy = withRoom(this.replacedBy, roomFor(needed, this.replacedBy.length, 4));
    const flags = roomFor(needed, this.deleted.length, 5);
    if (flags !== undefined) this.deleted = grown(this.deleted, sharedBytes(flags));
  }

  /** Appends a row for which there is room; returns its number. */
  push(partition: MemPartition, { seq, prev, isDeleted }: MemRow): number {
    const row = this.rowCount;
    assert(row < this.seqs.length, "there is room for the row");
    assert(seq > this.lastSeq, "rows ascend by seq");
    this.owners[row] = partition.owner;
    this.seqs[row] = seq;
    this.prevs[row] = prev;
    this.replacedBy[row] = 0;
    this.deleted[row] = isDeleted ? 1 : 0;
    if (isDeleted) this.hiddenCount += 1;
    partition.add(row);
    this.rowCount = row + 1;
    return row;
  }

  /**
   * Appends rows that replace nothing, for which there is room; returns the number of the first.
   */
  pushNew(partition: MemPartition, seqs: Float64Array): number {
    const first = this.rowCount;
    const end = first + seqs.length;
    assert(end <= this.seqs.length, "there is room for the rows");
    let last = this.lastSeq;
    for (let index = 0; index < seqs.length; index += 1) {
      const seq = seqs[index] ?? 0;
      assert(seq > last, "rows ascend by seq");
      last = seq;
    }
    this.owners.fill(partition.owner, first, end);
    this.seqs.set(seqs, first);
    this.prevs.fill(0, first, end);
    this.replacedBy.fill(0, first, end);
    this.deleted.fill(0, first, end);
    partition.addRange(first, end);
    this.rowCount = end;
    return first;
  }

  /** The same for rows that replace versions; `prevs` has their seqs. */
  pushReplacing(
    partition: MemPartition,
    {
      isDeleted,
      prevs,
      seqs,
    }: { isDeleted: boolean; prevs: ArrayLike<number>; seqs: Float64Array },
  ): number {
    const first = this.pushNew(partition, seqs);
    this.prevs.set(prevs, first);
    if (isDeleted) {
      this.deleted.fill(1, first, this.rowCount);
      this.hiddenCount += seqs.length;
    }
    return first;
  }

  /** Appends the values of the first `count` rows, which are in the order of the columns. */
  appendValues(rows: readonly Row[], count: number): void {
    let position = 0;
    for (const column of this.#columns) {
      column.appendFrom(rows, position, count);
      assert(column.length === this.rowCount, "every column has every row");
      position += 1;
    }
  }

  /** Appends the values of the first `count` rows of a batch with all columns. */
  appendBatch({ columns }: Batch, count: number): void {
    let position = 0;
    for (const column of this.#columns) {
      column.appendVector(defined(columns[position], "a batch has every column"), count);
      assert(column.length === this.rowCount, "every column has every row");
      position += 1;
    }
  }

  /** Appends the rows of a younger memtable, with their keys. */
  addAll(younger: Memtable): void {
    const first = this.rowCount;
    const { deleted, hiddenCount, owners, prevs, replacedBy, rowCount: count, seqs } = younger;
    assert((seqs[0] ?? 0) > this.lastSeq, "rows ascend by seq");
    this.reserve(count);
    this.owners.set(owners.subarray(0, count), first);
    this.seqs.set(seqs.subarray(0, count), first);
    this.prevs.set(prevs.subarray(0, count), first);
    this.replacedBy.set(replacedBy.subarray(0, count), first);
    this.deleted.set(deleted.subarray(0, count), first);
    this.hiddenCount += hiddenCount;
    this.rowCount = first + count;
    for (const partition of younger.partitions.values()) {
      this.partition(partition.owner).addAll(partition, first);
    }
    for (const [index, column] of this.#columns.entries()) {
      const added = defined(younger.#columns[index], "both have the same columns");
      column.appendVector(added.vector(), count);
      assert(column.length === this.rowCount, "every column has every row");
    }
  }

  setCommitSeq(fromRow: number, commitSeq: number): void {
    const { commitSeqs, rowCount } = this;
    // Of one row, as most are: a call of the runtime costs more than the write.
    if (rowCount - fromRow === 1) commitSeqs[fromRow] = commitSeq;
    else commitSeqs.fill(commitSeq, fromRow, rowCount);
  }

  replace(row: number, seq: number): void {
    assert(this.replacedBy[row] === 0, "a row version is replaced once");
    this.replacedBy[row] = seq;
    this.replacementChanges += 1;
    if (this.deleted[row] === 0) this.hiddenCount += 1;
  }

  /** Notes many replacements at once, whose seqs are known by now. */
  replaceAll(prepared: PreparedReplacements): void {
    const { deleted, replacedBy } = this;
    let hiddenCount = 0;
    prepared.visit((row, seq) => {
      assert(replacedBy[row] === 0, "a row version is replaced once");
      replacedBy[row] = seq;
      if (deleted[row] === 0) hiddenCount += 1;
    });
    this.hiddenCount += hiddenCount;
    this.replacementChanges += 1;
  }

  /** Rows that were pushed before their commit had seqs get them. */
  moveSeqs(by: number): void {
    const { rowCount, seqs } = this;
    for (let row = 0; row < rowCount; row += 1) seqs[row] = (seqs[row] ?? 0) + by;
  }

  revert(row: number): void {
    assert(this.replacedBy[row] !== 0, "a row version was replaced");
    this.replacedBy[row] = 0;
    this.replacementChanges += 1;
    if (this.deleted[row] === 0) this.hiddenCount -= 1;
  }

  /** Drops the newest row. Keys and replacements are the caller's. */
  pop(): void {
    const row = this.rowCount - 1;
    assert(row >= 0, "there is a row to take back");
    const partition = this.partition(this.owners[row] ?? 0);
    partition.count -= 1;
    partition.orders.clear();
    assert(partition.rows[partition.count] === row, "the newest row is its owner's newest");
    if (partition.count === 0) this.partitions.delete(partition.owner);
    if (this.deleted[row] === 1 || this.replacedBy[row] !== 0) this.hiddenCount -= 1;
    for (const column of this.#columns) column.truncate(row);
    this.rowCount = row;
    if (row === 0) this.firstLogFile = undefined;
  }

  /** The row of an owner with exactly this seq, or -1. */
  rowOfSeq(owner: number, seq: number): number {
    const partition = this.partitions.get(owner);
    if (partition === undefined) return -1;
    const index = this.indexAfter(partition, seq) - 1;
    if (index < 0) return -1;
    const row = partition.rows[index] ?? 0;
    return this.seqs[row] === seq ? row : -1;
  }

  /** Index in the partition's list of the first row whose seq is above `seq`. */
  indexAfter(partition: MemPartition, seq: number): number {
    const { count, rows } = partition;
    const { seqs } = this;
    let low = 0;
    let high = count;
    // What is followed lies at the end, and each look elsewhere misses the processor's caches.
    for (let look = 0; look < NEWEST_LOOKED_AT && low < high; look += 1) {
      if ((seqs[rows[high - 1] ?? 0] ?? 0) <= seq) return high;
      high -= 1;
    }
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((seqs[rows[middle] ?? 0] ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * Becomes, in a reader, the memtable of a share, which has at least the rows that are here; it
   * aliases the arrays of the share.
   */
  follow(share: SharedMemtable): void {
    const first = this.rowCount;
    assert(share.rowCount >= first, "a share has the rows that are here");
    this.owners = share.owners;
    this.seqs = share.seqs;
    this.prevs = share.prevs;
    this.commitSeqs = share.commitSeqs;
    this.replacedBy = share.replacedBy;
    this.deleted = share.deleted;
    this.rowCount = share.rowCount;
    this.hiddenCount = share.hiddenCount;
    this.#columns = share.columns.map((shared) => this.#followed(shared));
    for (let row = first; row < share.rowCount; row += 1) {
      this.partition(share.owners[row] ?? 0).add(row);
    }
  }

  #followed(shared: SharedColumn): MemColumn {
    const { columnId, from, vector } = shared;
    if (from === 0) return MemColumn.of(shared, vector);
    const column = defined(this.column(columnId), "the first values of a column were shared");
    assert(column.length === from && vector.kind === "any", "values are shared in their order");
    column.appendPlain(vector.values);
    return column;
  }

  /** Takes over a changed definition: columns that are new read their `missing` value so far. */
  redefine(columns: readonly StoredColumn[], convert: ConvertColumn): void {
    for (const { orders } of this.partitions.values()) orders.clear();
    this.#columns = columns.map((definition) => {
      const old = this.column(definition.columnId);
      if (old !== undefined) return convert(old, definition);
      const column = new MemColumn(definition.columnId, definition.type);
      column.appendRepeated(definition.missing, this.rowCount);
      return column;
    });
  }
}

/** Makes a column fit a changed definition; may return the column itself. */
export type ConvertColumn = (column: MemColumn, definition: StoredColumn) => MemColumn;

function withRoom(from: Float64Array, room: number | undefined): Float64Array {
  return room === undefined ? from : grown(from, sharedFloats(room));
}
