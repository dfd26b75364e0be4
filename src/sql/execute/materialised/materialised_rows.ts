/**
 * Stores the rows that an operator keeps in memory. Rows are copied from batches, column by
 * column, and their size is charged to the statement's memory budget.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { Batch, DataType, RowNumbers, Value, Vector } from "../../../types/mod.ts";
import type { MemoryBudget } from "./memory_budget.ts";
import { PagedColumn } from "./paged_column.ts";
import { compareByKey, type SortOrder } from "./sort_order.ts";

export class MaterialisedRows {
  readonly #types: readonly DataType[];
  #columns: readonly PagedColumn[];
  readonly #memory: MemoryBudget;
  #rowCount = 0;
  /** The size of the rows, as charged to the statement's memory budget, in bytes. */
  #bytes = 0;

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#types = types;
    this.#columns = types.map((type) => new PagedColumn(type));
    this.#memory = memory;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** The size of the rows as charged to the memory budget, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Appends rows, given as columns.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  append(columns: readonly Vector[], rowCount: number): void {
    let bytes = 0;
    for (let position = 0; position < this.#columns.length; position += 1) {
      const vector = defined(columns[position], "materialised rows: column is missing");
      bytes += this.#columnAt(position).append(vector, rowCount);
    }
    this.#rowCount += rowCount;
    this.#bytes += bytes;
    this.#memory.take(bytes);
  }

  valueAt(position: number, row: number): Value {
    return this.#columnAt(position).valueAt(row);
  }

  /** Compares two materialised rows by one sort key, which is stored in a column. */
  compare(
    { key, position }: { position: number; key: SortOrder },
    left: number,
    right: number,
  ): number {
    const column = this.#columnAt(position);
    if (column.isNullAt(left) || column.isNullAt(right)) {
      return compareByKey(key, column.valueAt(left), column.valueAt(right));
    }
    const order = column.compareTexts(left, right);
    if (order === undefined) return compareByKey(key, column.valueAt(left), column.valueAt(right));
    return key.isDescending ? -order : order;
  }

  /** Returns at most one batch of the rows listed in `order`, beginning with entry `start`. */
  batchOf(order: RowNumbers, start: number): Batch {
    return this.#rowsOf(order, start, Math.min(order.length, start + BATCH_ROWS_MAX));
  }

  /**
   * Returns a batch of rows beginning at `start`, in the order in which they were added. The last
   * batch may be shorter. The batch is valid until rows are released.
   * @param start A multiple of the batch size.
   */
  batchFrom(start: number): Batch {
    const columns = this.#columns.map((column) => column.rangeFrom(start));
    const end = Math.min(this.#rowCount, start - (start % BATCH_ROWS_MAX) + BATCH_ROWS_MAX);
    return { rowCount: end - start, columns };
  }

  /** Returns the values of one column for a batch of rows beginning at `start`. */
  columnFrom(position: number, start: number): Vector {
    return this.#columnAt(position).rangeFrom(start);
  }

  /** Returns one column of the rows listed in `order` from entry `start` to before entry `end`. */
  takeColumn(
    position: number,
    order: RowNumbers,
    { end, start }: { readonly start: number; readonly end: number },
  ): Vector {
    return this.#columnAt(position).take(order, start, end);
  }

  /** Returns the listed rows, in the order of the list. */
  allOf(order: RowNumbers): Batch {
    return this.#rowsOf(order, 0, order.length);
  }

  #rowsOf(order: RowNumbers, start: number, end: number): Batch {
    const columns = this.#columns.map((column) => column.take(order, start, end));
    return { rowCount: end - start, columns };
  }

  #columnAt(position: number): PagedColumn {
    return defined(this.#columns[position], "materialised rows: column is missing");
  }

  /**
   * Keeps only the rows listed in `order`, in that order, and releases the memory of all others.
   */
  keep(order: RowNumbers, checkTime: () => void): void {
    const kept = this.#types.map((type) => new PagedColumn(type));
    let bytes = 0;
    for (let start = 0; start < order.length; start += BATCH_ROWS_MAX) {
      checkTime();
      const { columns, rowCount } = this.batchOf(order, start);
      for (const [position, column] of kept.entries()) {
        bytes += column.append(
          defined(columns[position], "materialised rows: column is missing"),
          rowCount,
        );
      }
    }
    this.#hold(kept, { rowCount: order.length, bytes });
  }

  /** Releases all rows for reuse of their memory. Batches returned earlier become invalid. */
  restart(): void {
    for (const column of this.#columns) column.restart();
    this.#rowCount = 0;
    this.#memory.release(this.#bytes);
    this.#bytes = 0;
  }

  /** Releases all rows. */
  clear(): void {
    const columns = this.#types.map((type) => new PagedColumn(type));
    this.#hold(columns, { rowCount: 0, bytes: 0 });
  }

  #hold(
    columns: readonly PagedColumn[],
    { bytes, rowCount }: { rowCount: number; bytes: number },
  ): void {
    this.#columns = columns;
    this.#rowCount = rowCount;
    this.#memory.release(this.#bytes - bytes);
    this.#bytes = bytes;
  }
}
