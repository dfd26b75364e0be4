/**
 * Implements the memory budget of a statement. Operators charge it for the data that they keep.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type Batch, isArrayValue, isRowValue, type Value } from "../../../types/mod.ts";

/** The divisor of the budget that gives the amount of memory each operator may always use. */
const CROWD_SHARE = 16;

/**
 * The divisor of the budget that gives the threshold for collecting garbage. A statement that has
 * used more memory leaves enough garbage for a collection to be worthwhile.
 */
const LARGE_SHARE = 4;

/**
 * Tracks the estimated memory use of a statement: 16 bytes per cell, plus the length of strings.
 */
export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #around: MemoryBudget | undefined;
  readonly #isElastic: boolean;
  #bytes = 0;
  #bytesPeak = 0;
  /** The number of used bytes that belong to elastic budgets. */
  #elasticBytes = 0;

  constructor(bytesMax: number, around?: MemoryBudget, options?: { readonly isElastic: boolean }) {
    this.#bytesMax = bytesMax;
    this.#around = around;
    this.#isElastic = options?.isElastic === true;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /**
   * Whether the operator with this budget should spill its data to disk. Half of the statement's
   * budget is reserved for data that cannot be spilled. Every operator may keep some data in
   * memory, so that it does not write tiny files.
   */
  get isCrowded(): boolean {
    const isMuch = this.#bytes > this.#bytesMax / CROWD_SHARE;
    return isMuch && this.#root.#bytes > this.#bytesMax / 2;
  }

  get #root(): MemoryBudget {
    return this.#around === undefined ? this : this.#around.#root;
  }

  /** The number of bytes currently in use. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the statement has used so much memory that collecting garbage is worthwhile. */
  get wasLarge(): boolean {
    return this.#bytesPeak > this.#bytesMax / LARGE_SHARE;
  }

  /** Creates a nested budget, whose memory can be released as a whole. */
  nested(): MemoryBudget {
    return new MemoryBudget(this.#bytesMax, this);
  }

  /**
   * Creates a nested budget that never refuses memory. It is meant for an operator that checks
   * {@linkcode isCrowded} after each batch and spills its data to disk if necessary, and that
   * therefore exceeds the budget by at most one batch. The excess does not reduce the memory
   * available to other operators, because elastic budgets count for at most half of the whole
   * budget.
   */
  elastic(): MemoryBudget {
    return new MemoryBudget(this.#bytesMax, this, { isElastic: true });
  }

  /** Releases all memory taken from the budget, which may then be used again. */
  close(): void {
    this.#give(this.#bytes, this.#elasticBytes);
  }

  /**
   * Charges the memory of a batch that will be kept.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  takeBatch({ columns, rowCount }: Batch): void {
    this.take(batchBytes({ columns, rowCount }));
  }

  /** Releases memory that is no longer used. */
  release(bytes: number): void {
    this.#give(bytes, this.#isElastic ? bytes : 0);
  }

  #give(bytes: number, elasticBytes: number): void {
    this.#bytes -= bytes;
    this.#elasticBytes -= elasticBytes;
    const around = this.#around;
    if (around !== undefined) around.#give(bytes, around.#isElastic ? bytes : elasticBytes);
  }

  #hold(bytes: number): void {
    this.#bytes += bytes;
    this.#elasticBytes += bytes;
    this.#bytesPeak = Math.max(this.#bytesPeak, this.#bytes);
    if (this.#around !== undefined) this.#around.#hold(bytes);
  }

  /**
   * Charges memory to the budget.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED if the statement would use more memory than allowed.
   */
  take(bytes: number): void {
    if (this.#isElastic) return this.#hold(bytes);
    this.#bytes += bytes;
    this.#bytesPeak = Math.max(this.#bytesPeak, this.#bytes);
    if (this.#around !== undefined) this.#around.take(bytes);
    const excess = Math.max(0, this.#elasticBytes - this.#bytesMax / 2);
    if (this.#bytes - excess <= this.#bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      `Cannot run the statement: it needs more than ${this.#bytesMax} bytes of memory`,
      { hint: "read fewer rows, or raise performance.query_memory_bytes" },
    );
  }
}

/** Returns the size of a batch's rows as charged to a budget. */
export function batchBytes({ columns, rowCount }: Batch): number {
  let bytes = 16 * rowCount * columns.length;
  for (const column of columns) {
    if (column.kind === "any") {
      for (const value of column.values) bytes += bytesOf(value) - 16;
    } else if (column.kind === "const") {
      bytes += rowCount * (bytesOf(column.value) - 16);
    } else if (column.kind === "utf8") {
      const { length, offsets } = column;
      bytes += 2 * ((offsets[length] ?? 0) - (offsets[0] ?? 0));
    }
  }
  return bytes;
}

/** Returns the size of a value as charged to a budget. */
export function bytesOf(value: Value): number {
  if (typeof value === "string") return 16 + 2 * value.length;
  if (typeof value !== "object" || value === null) return 16;
  if (value instanceof Uint8Array || value instanceof Float32Array) return 16 + value.byteLength;
  const parts = isRowValue(value) ? value.cells : value;
  return isArrayValue(parts) ? parts.reduce<number>((sum, item) => sum + bytesOf(item), 16) : 16;
}
