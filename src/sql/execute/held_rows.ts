/**
 * Rows that an operator holds: copied out of batches, column by column, and counted against the
 * memory of the statement.
 */
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  type Batch,
  type DataType,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../types/mod.ts";
import { bytesOf, type MemoryBudget } from "./run.ts";

export class HeldRows {
  readonly #types: readonly DataType[];
  readonly #columns: Value[][];
  readonly #memory: MemoryBudget;
  #rowCount = 0;
  /** What is taken from the memory of the statement. */
  #bytes = 0;

  constructor(types: readonly DataType[], memory: MemoryBudget) {
    this.#types = types;
    this.#columns = types.map(() => []);
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
      const into = this.#columns[position];
      const vector = columns[position];
      if (into === undefined || vector === undefined) continue;
      for (let row = 0; row < rowCount; row += 1) {
        const value = valueAt(vector, row);
        bytes += bytesOf(value);
        into.push(value);
      }
    }
    this.#rowCount += rowCount;
    this.#bytes += bytes;
    this.#memory.take(bytes);
  }

  valueAt(position: number, row: number): Value {
    return this.#columns[position]?.[row] ?? null;
  }

  /** The rows named by `order` from `start` on, at most one batch. */
  batchOf(order: ArrayLike<number>, start: number): Batch {
    return this.#rowsOf(order, start, Math.min(order.length, start + BATCH_ROWS_MAX));
  }

  /** At most one batch of rows, in the order in which they came. */
  batchFrom(start: number): Batch {
    const end = Math.min(this.#rowCount, start + BATCH_ROWS_MAX);
    const columns = this.#types.map((type, position) =>
      vectorFromValues(type, this.#columns[position]?.slice(start, end) ?? []),
    );
    return { rowCount: end - start, columns };
  }

  /** All rows named by `order`; -1 names a row of NULLs. */
  allOf(order: ArrayLike<number>): Batch {
    return this.#rowsOf(order, 0, order.length);
  }

  #rowsOf(order: ArrayLike<number>, start: number, end: number): Batch {
    const columns = this.#types.map((type, position) => {
      const from = this.#columns[position] ?? [];
      const values: Value[] = [];
      for (let i = start; i < end; i += 1) values.push(from[order[i] ?? -1] ?? null);
      return vectorFromValues(type, values);
    });
    return { rowCount: end - start, columns };
  }

  /** Keeps only the rows named by `order`, in that order, and gives back what the others took. */
  keep(order: ArrayLike<number>): void {
    let bytes = 0;
    for (let position = 0; position < this.#columns.length; position += 1) {
      const from = this.#columns[position] ?? [];
      const kept: Value[] = [];
      for (let i = 0; i < order.length; i += 1) {
        const value = from[order[i] ?? -1] ?? null;
        bytes += bytesOf(value);
        kept.push(value);
      }
      this.#columns[position] = kept;
    }
    this.#rowCount = order.length;
    this.#memory.release(this.#bytes - bytes);
    this.#bytes = bytes;
  }
}
