/**
 * Reads a table sorted by a column, for a query that needs only the first few rows. The scan stops
 * early if few rows satisfy the conditions above it, because reading in order would then take
 * longer than reading all rows.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { OrderedScan } from "../../../storage/mod.ts";
import type { Batch } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { holdsFromStart, type Operator } from "../context/operator.ts";

/**
 * The largest share of a table that is read in sorted order. For a larger share, sorting all rows
 * is faster.
 */
export const ORDERED_SHARE_MAX: number = 1 / 32;

/**
 * The number of rows that are read in addition to the needed rows: one that may lie on an
 * exclusive bound, and one that shows that the sort value has changed. If these rows are not
 * enough, the number of rows doubles with each further batch.
 */
const FURTHER_ROWS = 2;

/**
 * The share of a table that may be read in order before the scan stops early. Reading a row with
 * three columns in order takes 1 µs; a scan with a condition on one of the columns takes 4 ns per
 * row.
 */
const VAIN_SHARE_MAX: number = 1 / 512;

export class OrderedTableScan implements Operator {
  readonly #context: ExecutionContext;
  readonly #scan: OrderedScan;
  readonly #rowsWanted: number;
  #batchRows: number;
  /**
   * The number of versions after which the scan stops early. It is set when the first rows are
   * requested.
   */
  #passedMax: number | undefined;
  #isInVain = false;

  constructor(context: ExecutionContext, scan: OrderedScan, rowsWanted: number) {
    this.#context = context;
    this.#scan = scan;
    this.#rowsWanted = rowsWanted;
    this.#batchRows = Math.min(rowsWanted + FURTHER_ROWS, BATCH_ROWS_MAX);
    holdsFromStart(this);
  }

  /** Whether the scan has stopped early, before returning all rows. */
  get isInVain(): boolean {
    return this.#isInVain;
  }

  next(): Batch | undefined {
    const { rowCount, rowsPassed } = this.#scan;
    this.#passedMax ??= rowsPassed + rowCount * VAIN_SHARE_MAX + 2 * this.#rowsWanted;
    for (;;) {
      this.#context.checkTime();
      this.#isInVain = this.#scan.rowsPassed > this.#passedMax;
      if (this.#isInVain) return undefined;
      const batch = this.#scan.next(this.#batchRows);
      if (batch === undefined) return undefined;
      if (batch.rowCount === 0) continue;
      this.#context.noteRead(batch.rowCount);
      this.#batchRows = Math.min(2 * this.#batchRows, BATCH_ROWS_MAX);
      return batch;
    }
  }

  /**
   * Skips up to `rowsMax` rows without reading them. Returns the number of skipped rows; undefined
   * at the end.
   */
  skip(rowsMax: number): number | undefined {
    this.#context.checkTime();
    const count = this.#scan.skip(rowsMax);
    this.#isInVain = this.#scan.rowsPassed === Number.POSITIVE_INFINITY;
    return count;
  }

  close(): void {
    this.#scan.close();
  }
}
