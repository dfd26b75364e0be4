/**
 * Keeps the newest row versions of one table in memory: columns in seq order and, for each owner,
 * a list of rows and the newest row of each key.
 *
 * - Rows are only appended. The only field of a row that ever changes is `replacedBy`, which
 *   changes once, from 0.
 * - `truncate` rolls back rows that never became durable and that no reader has seen.
 * - Seqs ascend in the memtable as a whole, and therefore also in each owner's list.
 */
import { assert, defined } from "../../base/assert.ts";
import { sharedBytes, sharedFloats } from "../../base/shared_arrays.ts";
import { type Batch, type DataType, type Row, sameType, type Vector } from "../../types/mod.ts";
import type { IndexColumn } from "../contract/key_expressions.ts";
import type { SharedColumn, SharedMemtable } from "../contract/shared_tables.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import type { PreparedReplacements } from "../deletions/prepared_replacements.ts";
import type { IndexOrder } from "../segment/index_order.ts";
import { MemColumn, newGrowth } from "./mem_column.ts";
import { MemIndex } from "./mem_index.ts";
import { MemPartition } from "./mem_partition.ts";
import { MemTerms } from "./mem_terms.ts";

const CAPACITY_MIN = 64;

/** The number of bytes that a row takes up in the arrays that cover all rows. */
const ROW_BYTES = 41;

/** The number of rows at the end of a partition that are tried before a full search. */
const NEWEST_LOOKED_AT = 3;

/**
 * The binary logarithm of the number of rows in a block. The rows of a partition are examined in
 * blocks.
 */
const BLOCK_BITS = 10;
export const BLOCK_ROWS: number = 1 << BLOCK_BITS;

/** The approximate size in bytes of a partition with one key. */
const PARTITION_BYTES = 400;
const KEY_BYTES = 48;

/** A row to be added without its values, which `appendValues` adds later. */
export interface MemRow {
  readonly seq: number;
  readonly prev: number;
  readonly isDeleted: boolean;
}

export class Memtable {
  rowCount = 0;
  /** The number of replaced rows and tombstones. If it is 0, every row is current. */
  hiddenCount = 0;
  owners: Float64Array = sharedFloats(CAPACITY_MIN);
  seqs: Float64Array = sharedFloats(CAPACITY_MIN);
  prevs: Float64Array = sharedFloats(CAPACITY_MIN);
  commitSeqs: Float64Array = sharedFloats(CAPACITY_MIN);
  /** For each row, the seq of the version that replaced it, or 0. */
  replacedBy: Float64Array = sharedFloats(CAPACITY_MIN);
  deleted: Uint8Array = sharedBytes(CAPACITY_MIN);
  /** A counter that increases whenever a replacement is recorded or rolled back. */
  replacementChanges = 0;
  /** A lower bound on the number of the log file that contains the first row. */
  firstLogFile: number | undefined;
  readonly partitions: Map<number, MemPartition> = new Map();
  readonly #ownerGrowth = newGrowth(sharedFloats);
  readonly #seqGrowth = newGrowth(sharedFloats);
  readonly #prevGrowth = newGrowth(sharedFloats);
  readonly #commitGrowth = newGrowth(sharedFloats);
  readonly #replacedGrowth = newGrowth(sharedFloats);
  readonly #deletedGrowth = newGrowth(sharedBytes);
  #columns: MemColumn[];
  /** The memtable's secondary indexes by id, created on demand. */
  readonly #indexes = new Map<number, MemIndex>();
  readonly #terms = new Map<number, MemTerms>();
  /** For each block of rows, how many replacements have been recorded or rolled back. */
  #changes: number[] = [];

  constructor(columns: readonly StoredColumn[]) {
    this.#columns = columns.map(({ columnId, type }) => new MemColumn(columnId, type));
  }

  get columns(): readonly MemColumn[] {
    return this.#columns;
  }

  /** The seq of the newest row; 0 if there are no rows. */
  get lastSeq(): number {
    return this.rowCount === 0 ? 0 : (this.seqs[this.rowCount - 1] ?? 0);
  }

  /** The last seq of the commit that contains the newest row; 0 if there are no rows. */
  get lastCommitSeq(): number {
    return this.rowCount === 0 ? 0 : (this.commitSeqs[this.rowCount - 1] ?? 0);
  }

  /** The approximate size of the memtable in bytes. */
  get bytes(): number {
    let bytes = this.rowCount * (ROW_BYTES + KEY_BYTES);
    bytes += this.partitions.size * PARTITION_BYTES;
    for (const column of this.#columns) bytes += column.bytes;
    for (const index of this.#indexes.values()) bytes += index.byteCount;
    for (const terms of this.#terms.values()) bytes += terms.byteCount;
    return bytes;
  }

  column(columnId: number): MemColumn | undefined {
    for (const column of this.#columns) if (column.columnId === columnId) return column;
    return undefined;
  }

  /**
   * Returns all values of a column without copying them; undefined if the column was added to the
   * table later.
   */
  vector(columnId: number): Vector | undefined {
    return this.column(columnId)?.vector();
  }

  /**
   * Returns a secondary index. It may lag behind the memtable.
   *
   * @param order The order of the keys. An index id always has the same order.
   */
  index(indexId: number, order: IndexOrder): MemIndex {
    let index = this.#indexes.get(indexId);
    if (index === undefined) {
      index = new MemIndex(this, order);
      this.#indexes.set(indexId, index);
    }
    return index;
  }

  /**
   * Returns an inverted index. It may lag behind the memtable.
   *
   * @param columns The parts of the index. An index id always has the same parts.
   */
  terms(indexId: number, columns: readonly IndexColumn[]): MemTerms {
    let terms = this.#terms.get(indexId);
    if (terms === undefined) {
      terms = new MemTerms(this, columns);
      this.#terms.set(indexId, terms);
    }
    return terms;
  }

  /** Drops the indexes that are no longer defined. */
  keepIndexes(indexIds: ReadonlySet<number>): void {
    for (const id of this.#indexes.keys()) if (!indexIds.has(id)) this.#indexes.delete(id);
    for (const id of this.#terms.keys()) if (!indexIds.has(id)) this.#terms.delete(id);
  }

  /** Returns an owner's partition, creating it if necessary. */
  partition(owner: number): MemPartition {
    let partition = this.partitions.get(owner);
    if (partition === undefined) {
      partition = new MemPartition(owner);
      this.partitions.set(owner, partition);
    }
    return partition;
  }

  /** Reserves capacity for `count` more rows. */
  reserve(count: number): void {
    const length = this.rowCount;
    const needed = length + count;
    this.owners = this.#ownerGrowth.arrayFor(this.owners, length, needed);
    this.seqs = this.#seqGrowth.arrayFor(this.seqs, length, needed);
    this.prevs = this.#prevGrowth.arrayFor(this.prevs, length, needed);
    this.commitSeqs = this.#commitGrowth.arrayFor(this.commitSeqs, length, needed);
    this.replacedBy = this.#replacedGrowth.arrayFor(this.replacedBy, length, needed);
    this.deleted = this.#deletedGrowth.arrayFor(this.deleted, length, needed);
  }

  /**
   * Releases the capacity for further rows, because none are expected. An array that has begun to
   * grow may have reserved up to twice as much memory as its rows need.
   */
  releaseGrowth(): void {
    const growths = [
      this.#ownerGrowth,
      this.#seqGrowth,
      this.#prevGrowth,
      this.#commitGrowth,
      this.#replacedGrowth,
      this.#deletedGrowth,
    ];
    for (const growth of growths) growth.release();
    for (const column of this.#columns) column.releaseGrowth();
    for (const partition of this.partitions.values()) partition.releaseGrowth();
  }

  /** Appends a row within the reserved capacity. Returns its row number. */
  push(partition: MemPartition, { seq, prev, isDeleted }: MemRow): number {
    const row = this.rowCount;
    assert(row < this.seqs.length, "memtable: no capacity was reserved for the row");
    assert(seq > this.lastSeq, "memtable: rows are not in ascending order of seq");
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
   * Appends rows that replace no version, within the reserved capacity. Returns the first row's
   * number.
   */
  pushNew(partition: MemPartition, seqs: Float64Array): number {
    const first = this.rowCount;
    const end = first + seqs.length;
    assert(end <= this.seqs.length, "memtable: no capacity was reserved for the rows");
    let last = this.lastSeq;
    for (let index = 0; index < seqs.length; index += 1) {
      const seq = seqs[index] ?? 0;
      assert(seq > last, "memtable: rows are not in ascending order of seq");
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

  /** Appends rows that replace versions. `prevs` contains the seqs of the replaced versions. */
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

  /** Appends the values of the first `count` rows. Each row has its values in column order. */
  appendValues(rows: readonly Row[], count: number): void {
    let position = 0;
    for (const column of this.#columns) {
      column.appendFrom(rows, position, count);
      assert(column.length === this.rowCount, "memtable: column length differs from the row count");
      position += 1;
    }
  }

  /** Appends the values of the first `count` rows of a batch that has all columns. */
  appendBatch({ columns }: Batch, count: number): void {
    let position = 0;
    for (const column of this.#columns) {
      column.appendVector(
        defined(columns[position], "memtable: batch lacks a column of the table"),
        count,
      );
      assert(column.length === this.rowCount, "memtable: column length differs from the row count");
      position += 1;
    }
  }

  /** Appends the rows of a younger memtable, including their keys. */
  addAll(younger: Memtable): void {
    const first = this.rowCount;
    const { deleted, hiddenCount, owners, prevs, replacedBy, rowCount: count, seqs } = younger;
    assert((seqs[0] ?? 0) > this.lastSeq, "memtable: rows are not in ascending order of seq");
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
      const added = defined(
        younger.#columns[index],
        "memtable: the memtables to be joined have different columns",
      );
      column.appendVector(added.vector(), count);
      assert(column.length === this.rowCount, "memtable: column length differs from the row count");
    }
  }

  setCommitSeq(fromRow: number, commitSeq: number): void {
    const { commitSeqs, rowCount } = this;
    this.#commitGrowth.noteChangedFrom(fromRow);
    // Most commits have a single row, for which a call to `fill` would cost more than this
    // assignment.
    if (rowCount - fromRow === 1) commitSeqs[fromRow] = commitSeq;
    else commitSeqs.fill(commitSeq, fromRow, rowCount);
  }

  replace(row: number, seq: number): void {
    assert(this.replacedBy[row] === 0, "memtable: row version was already replaced");
    this.replacedBy[row] = seq;
    this.replacementChanges += 1;
    this.#noteChange(row);
    if (this.deleted[row] === 0) this.hiddenCount += 1;
  }

  /** Records many replacements of rows, whose seqs are already known. */
  replaceAll(prepared: PreparedReplacements): void {
    const { deleted, replacedBy } = this;
    let hiddenCount = 0;
    prepared.visit((row, seq) => {
      assert(replacedBy[row] === 0, "memtable: row version was already replaced");
      replacedBy[row] = seq;
      this.#noteChange(row);
      if (deleted[row] === 0) hiddenCount += 1;
    });
    this.hiddenCount += hiddenCount;
    this.replacementChanges += 1;
  }

  /**
   * Adds `by` to the seqs of all rows. The rows were added before the seqs of their commit were
   * known.
   */
  moveSeqs(by: number): void {
    const { rowCount, seqs } = this;
    this.#seqGrowth.noteChangedFrom(0);
    for (let row = 0; row < rowCount; row += 1) seqs[row] = (seqs[row] ?? 0) + by;
  }

  revert(row: number): void {
    assert(this.replacedBy[row] !== 0, "memtable: row version to be restored was not replaced");
    this.replacedBy[row] = 0;
    this.replacementChanges += 1;
    if (this.deleted[row] === 0) this.hiddenCount -= 1;
    this.#noteChange(row);
    // Cached sort orders may have left out the row, so they are dropped.
    this.partition(this.owners[row] ?? 0).orders.clear();
  }

  /**
   * Drops the newest row. The caller removes the row from the keys and undoes the replacement that
   * it made.
   */
  pop(): void {
    const row = this.rowCount - 1;
    assert(row >= 0, "memtable: no row is left to roll back");
    for (const index of this.#indexes.values()) index.pop(row);
    for (const terms of this.#terms.values()) terms.pop(row);
    const partition = this.partition(this.owners[row] ?? 0);
    partition.count -= 1;
    this.#noteChange(row);
    partition.orders.clear();
    assert(
      partition.rows[partition.count] === row,
      "memtable: newest row is not the last row of its owner",
    );
    if (partition.count === 0) this.partitions.delete(partition.owner);
    if (this.deleted[row] === 1 || this.replacedBy[row] !== 0) this.hiddenCount -= 1;
    for (const column of this.#columns) column.truncate(row);
    this.rowCount = row;
    if (row === 0) this.firstLogFile = undefined;
  }

  /** Returns the owner's row with exactly this seq, or -1 if there is none. */
  rowOfSeq(owner: number, seq: number): number {
    const partition = this.partitions.get(owner);
    if (partition === undefined) return -1;
    const index = this.indexAfter(partition, seq) - 1;
    if (index < 0) return -1;
    const row = partition.rows[index] ?? 0;
    return this.seqs[row] === seq ? row : -1;
  }

  /** Returns the index, within the partition's list, of the first row with a seq above `seq`. */
  indexAfter(partition: MemPartition, seq: number): number {
    const { count, rows } = partition;
    const { seqs } = this;
    let low = 0;
    let high = count;
    // The last rows are tried first: recent rows are the likeliest result, and looking at older
    // rows would miss the CPU caches.
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
   * Skips blocks without a row that is live at seq `upTo`. Returns the index in the partition's
   * list of the first block that may have one, or the end of the span.
   */
  firstAlive(
    partition: MemPartition,
    { end, start }: { readonly start: number; readonly end: number },
    upTo: number,
  ): number {
    if (this.hiddenCount < BLOCK_ROWS) return start;
    let index = start;
    while (index < end) {
      if (this.liveRowsOf(partition, index >>> BLOCK_BITS, upTo)?.length !== 0) return index;
      index = (index | (BLOCK_ROWS - 1)) + 1;
    }
    return end;
  }

  /**
   * Returns the rows in a full block of a partition's list that are live at seq `upTo`. Returns
   * undefined if the block is not full, or if one of its rows was replaced above that seq. The
   * result is cached until a row of the block is replaced or a replacement is rolled back.
   */
  liveRowsOf(partition: MemPartition, block: number, upTo: number): Uint32Array | undefined {
    const first = block << BLOCK_BITS;
    if (first + BLOCK_ROWS > partition.count) return undefined;
    const changes = this.#changesIn(partition, first);
    const known = partition.liveBlocks?.[block];
    if (known?.changes === changes) return known.highestSeq <= upTo ? known.rows : undefined;
    const { deleted, replacedBy } = this;
    const rows = new Uint32Array(BLOCK_ROWS);
    let count = 0;
    let highestSeq = 0;
    for (let index = first; index < first + BLOCK_ROWS; index += 1) {
      const row = partition.rows[index] ?? 0;
      const seq = replacedBy[row] ?? 0;
      if (seq > highestSeq) highestSeq = seq;
      rows[count] = row;
      if (seq === 0 && deleted[row] === 0) count += 1;
    }
    // A replacement above `upTo` may be rolled back without notice to other threads.
    if (highestSeq > upTo) return undefined;
    partition.liveBlocks ??= [];
    const live = rows.slice(0, count);
    partition.liveBlocks[block] = { changes, highestSeq, rows: live };
    return live;
  }

  /**
   * Returns a counter that increases whenever a replacement in the block is recorded or rolled
   * back.
   */
  #changesIn({ rows }: MemPartition, first: number): number {
    const last = (rows[first + BLOCK_ROWS - 1] ?? 0) >>> BLOCK_BITS;
    let changes = 0;
    for (let block = (rows[first] ?? 0) >>> BLOCK_BITS; block <= last; block += 1) {
      changes += this.#changes[block] ?? 0;
    }
    return changes;
  }

  #noteChange(row: number): void {
    this.#replacedGrowth.noteChanged(row, this.replacedBy[row] ?? 0);
    const block = row >>> BLOCK_BITS;
    this.#changes[block] = (this.#changes[block] ?? 0) + 1;
  }

  /**
   * Updates the memtable of a reader thread to match the shared memtable, with which it shares its
   * arrays. The shared memtable has at least the rows of this one.
   */
  follow(share: SharedMemtable): void {
    const first = this.rowCount;
    assert(share.rowCount >= first, "memtable: shared memtable has fewer rows than the reader");
    this.owners = share.owners;
    this.seqs = share.seqs;
    this.prevs = share.prevs;
    this.commitSeqs = share.commitSeqs;
    this.replacedBy = share.replacedBy;
    this.deleted = share.deleted;
    this.rowCount = share.rowCount;
    this.hiddenCount = share.hiddenCount;
    // The description of the shared memtable does not say which rows have been replaced in the
    // meantime, so all blocks count as changed.
    this.#changes = Array.from(
      { length: Math.ceil(share.rowCount / BLOCK_ROWS) },
      (_, block) => 1 + (this.#changes[block] ?? 0),
    );
    this.#columns = share.columns.map((shared) => this.#followed(shared));
    for (let row = first; row < share.rowCount; row += 1) {
      this.partition(share.owners[row] ?? 0).add(row);
    }
  }

  #followed(shared: SharedColumn): MemColumn {
    const { columnId, from, vector } = shared;
    if (from === 0) return MemColumn.of(shared, vector);
    const column = defined(
      this.column(columnId),
      "memtable: shared values belong to an unknown column",
    );
    assert(
      column.length === from && vector.kind === "any",
      "memtable: shared column values arrived out of order",
    );
    column.appendPlain(vector.values);
    return column;
  }

  #hasOtherType(columnId: number, type: DataType): boolean {
    const column = this.column(columnId);
    return column !== undefined && !sameType(column.type, type);
  }

  /** Adopts a changed definition. In new columns, existing rows have the `missing` value. */
  redefine(columns: readonly StoredColumn[], convert: ConvertColumn): void {
    for (const { orders } of this.partitions.values()) orders.clear();
    // A column whose type has changed has different keys, so the indexes are dropped.
    if (columns.some(({ columnId, type }) => this.#hasOtherType(columnId, type))) {
      this.#indexes.clear();
    }
    this.#columns = columns.map((definition) => {
      const old = this.column(definition.columnId);
      if (old !== undefined) return convert(old, definition);
      const column = new MemColumn(definition.columnId, definition.type);
      column.appendRepeated(definition.missing, this.rowCount);
      return column;
    });
  }
}

/**
 * Converts a column to match a changed definition. Returns the column itself if nothing changes.
 */
export type ConvertColumn = (column: MemColumn, definition: StoredColumn) => MemColumn;
