/**
 * Reads a table in the order of a column, for who needs the first few rows of it.
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

export class OrderedTableScan implements Operator {
  readonly #run: Run;
  readonly #scan: OrderedScan;
  #batchRows: number;

  constructor(run: Run, scan: OrderedScan, rowsWanted: number) {
    this.#run = run;
    this.#scan = scan;
    this.#batchRows = Math.min(rowsWanted + FURTHER_ROWS, BATCH_ROWS_MAX);
    holdsFromStart(this);
  }

  next(): Batch | undefined {
    const batch = this.#scan.next(this.#batchRows);
    if (batch !== undefined && batch.rowCount > 0) {
      this.#run.noteRead(batch.rowCount);
      this.#batchRows = Math.min(2 * this.#batchRows, BATCH_ROWS_MAX);
    }
    return batch;
  }

  close(): void {
    this.#scan.close();
  }
}
