/**
 * Whole partitions of a window, one after the other, from sorted runs: rows are held until there
 * are enough of them for a batch, or for the memory, and the last partition has begun only.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { Batch, DataType } from "../../../types/mod.ts";
import type { RunMerge } from "../../spill/mod.ts";
import { HeldRows } from "../held/held_rows.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import type { Run } from "../run/run.ts";
import type { SortKey } from "../sort/sort_key.ts";

export interface MergedPartitionsOptions {
  readonly types: readonly DataType[];
  /** Columns from `keyStart` on are the values of these. */
  readonly keys: readonly SortKey[];
  readonly keyStart: number;
  readonly run: Run;
}

export class MergedPartitions {
  readonly #merge: RunMerge;
  readonly #options: MergedPartitionsOptions;
  /** Of the rows that were loaded last. */
  #memory: MemoryBudget;
  /** Rows of a partition that has begun behind them. */
  #rest: Batch | undefined;
  #isOver = false;

  constructor(merge: RunMerge, options: MergedPartitionsOptions) {
    this.#merge = merge;
    this.#options = options;
    this.#memory = options.run.memory.nested();
  }

  /** Whether all rows were loaded. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Loads the next partitions, in place of those before.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED if one of them does not fit the memory.
   */
  load(): HeldRows {
    const { run, types } = this.#options;
    const { memory } = run;
    this.#memory.close();
    this.#memory = memory.nested();
    const rows = new HeldRows(types, this.#memory);
    if (this.#rest !== undefined) rows.append(this.#rest.columns, this.#rest.rowCount);
    this.#rest = undefined;
    let lastStart = 0;
    for (;;) {
      run.checkTime();
      const batch = this.#merge.next();
      if (batch === undefined) {
        this.#isOver = true;
        return rows;
      }
      const before = rows.rowCount;
      rows.append(batch.columns, batch.rowCount);
      for (let row = Math.max(1, before); row < rows.rowCount; row += 1) {
        if (!this.#areEqual(rows, row)) lastStart = row;
      }
      const isMuch = rows.rowCount >= BATCH_ROWS_MAX || rows.bytes > memory.bytesMax / 16;
      if (lastStart > 0 && isMuch) break;
    }
    const whole = Uint32Array.from({ length: lastStart }, (_, row) => row);
    const restCount = rows.rowCount - lastStart;
    const rest = Uint32Array.from({ length: restCount }, (_, i) => lastStart + i);
    this.#rest = rows.allOf(rest);
    rows.keep(whole, () => run.checkTime());
    return rows;
  }

  close(): void {
    this.#memory.close();
  }

  /** Whether a row is in the partition of the one before it. */
  #areEqual(rows: HeldRows, row: number): boolean {
    const { keyStart, keys } = this.#options;
    return keys.every((key, i) => {
      return rows.compare({ key, position: keyStart + i }, row - 1, row) === 0;
    });
  }
}
