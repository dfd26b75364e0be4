/**
 * Rows that an operator holds: copied out of batches, column by column, and counted against the
 * memory of the statement.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { Batch, DataType, RowNumbers, Value, Vector } from "../../../types/mod.ts";
import type { MemoryBudget } from "./memory_budget.ts";
import { PagedColumn } from "./paged_column.ts";
import { compareByKey, type SortOrder } from "./sort_order.ts";

export class HeldRows {
  readonly #types: readonly DataType[];
  #columns: readonly PagedColumn[];
  readonly #memory: MemoryBudget;
  #rowCount = 0;
  /** What is taken from the memory of the statement. */
  #bytes = 0;

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#types = types;
    this.#columns = types.map((type) => new PagedColumn(type));
    this.#memory = memory;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** What the rows are counted as. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws {DatabaseError} MEMORY_EXCEEDED */
  append(columns: readonly Vector[], rowCount: number): void {
    let bytes = 0;
    for (let position = 0; position < this.#columns.length; position += 1) {
      const vector = defined(columns[position], "a held row has its columns");
      bytes += this.#columnAt(position).append(vector, rowCount);
    }
    this.#rowCount += rowCount;
    this.#bytes += bytes;
    this.#memory.take(bytes);
  }

  valueAt(position: number, row: number): Value {
    return this.#columnAt(position).valueAt(row);
  }

  /** How a key orders two rows by the values of a column, which are of its type. */
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

  /** The rows named by `order` from `start` on, at most one batch. */
  batchOf(order: RowNumbers, start: number): Batch {
    return this.#rowsOf(order, start, Math.min(order.length, start + BATCH_ROWS_MAX));
  }

  /**
   * Rows in the order in which they came, up to a multiple of a batch: from such a one on a whole
   * batch, or all that are left. Valid until rows are let go of.
   */
  batchFrom(start: number): Batch {
    const columns = this.#columns.map((column) => column.rangeFrom(start));
    const end = Math.min(this.#rowCount, start - (start % BATCH_ROWS_MAX) + BATCH_ROWS_MAX);
    return { rowCount: end - start, columns };
  }

  /** The values of a column in the same rows. */
  columnFrom(position: number, start: number): Vector {
    return this.#columnAt(position).rangeFrom(start);
  }

  /** All rows named by `order`. */
  allOf(order: RowNumbers): Batch {
    return this.#rowsOf(order, 0, order.length);
  }

  #rowsOf(order: RowNumbers, start: number, end: number): Batch {
    const columns = this.#columns.map((column) => column.take(order, start, end));
    return { rowCount: end - start, columns };
  }

  #columnAt(position: number): PagedColumn {
    return defined(this.#columns[position], "a held row has its columns");
  }

  /** Keeps only the rows named by `order`, in that order, and gives back what the others took. */
  keep(order: RowNumbers, checkTime: () => void): void {
    const kept = this.#types.map((type) => new PagedColumn(type));
    let bytes = 0;
    for (let start = 0; start < order.length; start += BATCH_ROWS_MAX) {
      checkTime();
      const { columns, rowCount } = this.batchOf(order, start);
      for (const [position, column] of kept.entries()) {
        bytes += column.append(defined(columns[position], "a row has its columns"), rowCount);
      }
    }
    this.#hold(kept, { rowCount: order.length, bytes });
  }

  /** Lets go of all rows, and of where they lay for those to come: batches of them are over. */
  restart(): void {
    for (const column of this.#columns) column.restart();
    this.#rowCount = 0;
    this.#memory.release(this.#bytes);
    this.#bytes = 0;
  }

  /** Lets go of all rows. */
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
