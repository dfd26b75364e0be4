/**
 * Hands rows to who evaluates expressions over them, as many at a time as take less than a turn.
 *
 *     whole batches ──too many──► an eighth ──took little──► twice as many ─ … ─► whole batches
 *
 * What was handed last can be handed again, as it was or in smaller parts.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, slice } from "../../../types/mod.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Pauses, Sleeps } from "./pausing.ts";

/** How many fewer rows are tried when some were too many. */
export const DIVISOR = 8;

export class Slices implements Operator {
  readonly #input: Operator;
  readonly #pauses: Pauses;
  readonly #rowsMax: number;
  #rows: number;
  #batch: Batch = NOTHING_YET;
  /** Of the rows handed last. */
  #start = 0;
  #end = 0;
  #isRepeated = false;
  #sleeps: Sleeps = { overCount: 0, untilMs: undefined };

  /** @param rowsMax Rows at a time; Infinity for batches as they come. */
  constructor(input: Operator, pauses: Pauses, rowsMax: number) {
    this.#input = input;
    this.#pauses = pauses;
    this.#rowsMax = rowsMax;
    this.#rows = rowsMax;
  }

  /** The next rows are the last ones again. */
  repeat(): void {
    this.#isRepeated = true;
  }

  /** The same, and fewer of them. */
  divide(): void {
    this.#rows = Math.max(1, Math.floor((this.#end - this.#start) / DIVISOR));
    this.#isRepeated = true;
  }

  /** The rows handed last are done. */
  settle(): void {
    if (this.#rows >= this.#rowsMax || !this.#pauses.wereFew) return;
    this.#rows = Math.min(this.#rowsMax, 2 * this.#rows);
    // A batch that fits is handed on as it is.
    if (this.#rows >= this.#batch.rowCount) this.#rows = this.#rowsMax;
  }

  next(): Batch | undefined {
    if (this.#isRepeated) {
      this.#isRepeated = false;
    } else {
      this.#start = this.#end;
      if (this.#sleeps.overCount > 0) this.#sleeps = { overCount: 0, untilMs: undefined };
    }
    if (this.#start >= this.#batch.rowCount) {
      const batch = this.#pauses.never(() => this.#input.next());
      this.#start = 0;
      this.#end = 0;
      this.#batch = batch ?? NOTHING_YET;
      if (batch === undefined || batch.rowCount === 0) return batch;
    }
    const { columns, rowCount } = this.#batch;
    const start = this.#start;
    const end = Math.min(rowCount, start + this.#rows);
    this.#end = end;
    this.#pauses.beginRows(end - start, this.#sleeps);
    if (start === 0 && end === rowCount) return this.#batch;
    return { rowCount: end - start, columns: columns.map((column) => slice(column, start, end)) };
  }

  close(): void {
    this.#input.close();
  }
}

/** Values that an operator works on between two looks at the clock. */
const VALUES_TOGETHER_MAX: number = 32 * BATCH_ROWS_MAX;

/** Rows that are worked on together where each costs the same work so many times. */
export function rowsTogether(timesEach: number): number {
  return Math.max(1, Math.floor(VALUES_TOGETHER_MAX / Math.max(1, timesEach)));
}

/** Passes at most so many rows at a time. */
export class Parts implements Operator {
  readonly #input: Operator;
  readonly #rowsMax: number;
  #batch: Batch = NOTHING_YET;
  #position = 0;

  constructor(input: Operator, rowsMax: number) {
    this.#input = input;
    this.#rowsMax = rowsMax;
  }

  next(): Batch | undefined {
    if (this.#position >= this.#batch.rowCount) {
      const batch = this.#input.next();
      if (batch === undefined || batch.rowCount <= this.#rowsMax) return batch;
      this.#batch = batch;
      this.#position = 0;
    }
    const start = this.#position;
    const end = Math.min(this.#batch.rowCount, start + this.#rowsMax);
    this.#position = end;
    const columns = this.#batch.columns.map((column) => slice(column, start, end));
    return { rowCount: end - start, columns };
  }

  close(): void {
    this.#input.close();
  }
}
