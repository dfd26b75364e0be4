/**
 * Hands rows to an operator whose expressions may make long values: as many at a time as make
 * little.
 *
 * The operator has evaluated the rows that it was handed when it asks for the next ones, so the
 * bytes that were made meanwhile are the cost of those rows.
 */
import { ROW_GROUP_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, slice } from "../../../types/mod.ts";
import type { Operator } from "./operator.ts";
import { RowPace } from "./pace.ts";
import type { Run } from "./run.ts";

export class PacedRows implements Operator {
  readonly #input: Operator;
  readonly #run: Run;
  /** Time is no matter: long calls look at it themselves. */
  readonly #pace = new RowPace(ROW_GROUP_ROWS_MAX);
  #batch: Batch | undefined;
  /** The rows that were handed last: from `#start` to before `#end`. */
  #start = 0;
  #end = 0;

  constructor(input: Operator, run: Run) {
    this.#input = input;
    this.#run = run;
  }

  next(): Batch | undefined {
    const { effort } = this.#run;
    const rowCount = this.#end - this.#start;
    if (rowCount > 0) this.#pace.note({ rowCount, tookMs: 0, madeBytes: effort.madeBytes });
    this.#start = this.#end;
    if (this.#batch === undefined || this.#start >= this.#batch.rowCount) {
      this.#start = 0;
      this.#end = 0;
      this.#batch = this.#input.next();
    }
    effort.beginRows();
    return this.#batch === undefined ? undefined : this.#part(this.#batch);
  }

  close(): void {
    this.#input.close();
  }

  #part(batch: Batch): Batch {
    const start = this.#start;
    const end = Math.min(batch.rowCount, start + this.#pace.rowsMax);
    this.#end = end;
    if (start === 0 && end === batch.rowCount) return batch;
    return {
      rowCount: end - start,
      columns: batch.columns.map((column) => slice(column, start, end)),
    };
  }
}
