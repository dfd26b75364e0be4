/**
 * What a statement holds in memory, and how much it may: operators count against it what they keep.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Batch, Value } from "../../../types/mod.ts";

/** What an operator may hold in any case is this part of the budget. */
const CROWD_SHARE = 16;

/** A statement that held this part of the budget leaves garbage worth a collection. */
const LARGE_SHARE = 4;

/** Counts what a statement holds. Estimates: 16 bytes a cell, and the length of text. */
export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #around: MemoryBudget | undefined;
  readonly #isElastic: boolean;
  #bytes = 0;
  #bytesPeak = 0;
  /** Of these, what elastic parts hold. */
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
   * Whether who holds this part should move it to disk. The half of the whole is for what cannot be
   * moved, and every part may have some, lest its holder writes only crumbs.
   */
  get isCrowded(): boolean {
    const isMuch = this.#bytes > this.#bytesMax / CROWD_SHARE;
    return isMuch && this.#root.#bytes > this.#bytesMax / 2;
  }

  get #root(): MemoryBudget {
    return this.#around === undefined ? this : this.#around.#root;
  }

  /** Bytes that are held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether so much was held at a time that its memory is worth being asked back. */
  get wasLarge(): boolean {
    return this.#bytesPeak > this.#bytesMax / LARGE_SHARE;
  }

  /** A part of this budget that can be given back as a whole. */
  nested(): MemoryBudget {
    return new MemoryBudget(this.#bytesMax, this);
  }

  /**
   * The same, and never refused: for an operator that asks {@linkcode isCrowded} after each batch
   * and then moves to disk what it holds, so that it is over the budget by a batch at most. That
   * batch is not held against others: elastic parts count for at most the half that is theirs.
   */
  elastic(): MemoryBudget {
    return new MemoryBudget(this.#bytesMax, this, { isElastic: true });
  }

  /** Gives back all that was taken; it may be used again. */
  close(): void {
    this.#give(this.#bytes, this.#elasticBytes);
  }

  /**
   * Takes the rows of a batch that are going to be kept.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  takeBatch({ columns, rowCount }: Batch): void {
    this.take(batchBytes({ columns, rowCount }));
  }

  /** Gives back what was taken and is held no longer. */
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

  /** @throws {DatabaseError} MEMORY_EXCEEDED when the statement would hold more than it may. */
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

/** Bytes that the rows of a batch are counted as. */
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

/** Bytes that a value held by an operator is counted as. */
export function bytesOf(value: Value): number {
  if (typeof value === "string") return 16 + 2 * value.length;
  if (typeof value !== "object" || value === null) return 16;
  if (value instanceof Uint8Array || value instanceof Float32Array) return 16 + value.byteLength;
  return Array.isArray(value) ? 16 + 16 * value.length : 16;
}
