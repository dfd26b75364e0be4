/**
 * Reads a table in the order of a column, for a query that needs its first few rows. The scan gives
 * up where few rows pass the conditions above it: reading in order then takes longer than reading
 * all.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { OrderedScan } from "../../../storage/mod.ts";
import type { Batch } from "../../../types/mod.ts";
import { holdsFromStart, type Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";

/** Of more rows than this share of a table a sort of all takes less time. */
export const ORDERED_SHARE_MAX: number = 1 / 32;

/**
 * Rows that are read beyond those that are wanted: one on an exclusive bound, and one that shows
 * that the order has gone on. If they are too few, each further batch has twice as many.
 */
const FURTHER_ROWS = 2;

/**
 * The share of a table that may be read in order in vain: a row with three columns takes 1 µs so,
 * and 4 ns in a scan with a condition on one of them.
 */
const VAIN_SHARE_MAX: number = 1 / 512;

export class OrderedTableScan implements Operator {
  readonly #run: Run;
  readonly #scan: OrderedScan;
  readonly #rowsWanted: number;
  #batchRows: number;
  /** Versions that may be passed before this is in vain; known once the first rows are wanted. */
  #passedMax: number | undefined;
  #isInVain = false;

  constructor(run: Run, scan: OrderedScan, rowsWanted: number) {
    this.#run = run;
    this.#scan = scan;
    this.#rowsWanted = rowsWanted;
    this.#batchRows = Math.min(rowsWanted + FURTHER_ROWS, BATCH_ROWS_MAX);
    holdsFromStart(this);
  }

  /** Whether it has given up: it has ended then, and there are further rows. */
  get isInVain(): boolean {
    return this.#isInVain;
  }

  next(): Batch | undefined {
    const { rowCount, rowsPassed } = this.#scan;
    this.#passedMax ??= rowsPassed + rowCount * VAIN_SHARE_MAX + 2 * this.#rowsWanted;
    for (;;) {
      this.#run.checkTime();
      this.#isInVain = this.#scan.rowsPassed > this.#passedMax;
      if (this.#isInVain) return undefined;
      const batch = this.#scan.next(this.#batchRows);
      if (batch === undefined) return undefined;
      if (batch.rowCount === 0) continue;
      this.#run.noteRead(batch.rowCount);
      this.#batchRows = Math.min(2 * this.#batchRows, BATCH_ROWS_MAX);
      return batch;
    }
  }

  /** Passes by as many rows without reading them; undefined at the end. */
  skip(rowsMax: number): number | undefined {
    this.#run.checkTime();
    const count = this.#scan.skip(rowsMax);
    this.#isInVain = this.#scan.rowsPassed === Number.POSITIVE_INFINITY;
    return count;
  }

  close(): void {
    this.#scan.close();
  }
}
