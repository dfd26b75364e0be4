/**
 * Passes rows in small groups to an operator with expressions that may produce long values or call
 * programs.
 *
 * An operator that requests the next group has finished evaluating the previous one. The bytes
 * produced and the time spent between two requests are therefore the cost of the group in between.
 */
import { ROW_GROUP_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, slice } from "../../../types/mod.ts";
import type { ExecutionContext } from "./execution_context.ts";
import type { Operator } from "./operator.ts";
import { RowPace } from "./pace.ts";

export class PacedRows implements Operator {
  readonly #input: Operator;
  readonly #context: ExecutionContext;
  /**
   * Whether the duration of a group limits its size. Long built-in calls check the time
   * themselves, but calls to programs must leave the evaluation so that other work can run.
   */
  readonly #isTimed: boolean;
  /**
   * The time, on the monotonic clock, at which the last group was passed on. It is set only if
   * groups are timed.
   */
  #passedAtMs = 0;
  readonly #pace = new RowPace(ROW_GROUP_ROWS_MAX);
  #batch: Batch | undefined;
  /**
   * The last group of rows that was passed on, from row `#start` (inclusive) to row `#end`
   * (exclusive).
   */
  #start = 0;
  #end = 0;

  constructor(input: Operator, context: ExecutionContext, isTimed = false) {
    this.#input = input;
    this.#context = context;
    this.#isTimed = isTimed;
  }

  next(): Batch | undefined {
    const { effort } = this.#context;
    const rowCount = this.#end - this.#start;
    if (rowCount > 0) {
      const tookMs = this.#isTimed ? this.#context.monotonicMs() - this.#passedAtMs : 0;
      this.#pace.note({ rowCount, tookMs, madeBytes: effort.madeBytes });
    }
    this.#start = this.#end;
    if (this.#batch === undefined || this.#start >= this.#batch.rowCount) {
      this.#start = 0;
      this.#end = 0;
      this.#batch = this.#input.next();
    }
    effort.beginRows();
    if (this.#isTimed) this.#passedAtMs = this.#context.monotonicMs();
    return this.#batch === undefined ? undefined : this.#part(this.#batch);
  }

  close(): void {
    this.#input.close();
  }

  restart(): boolean {
    this.#batch = undefined;
    this.#start = 0;
    this.#end = 0;
    return this.#input.restart?.() ?? false;
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
