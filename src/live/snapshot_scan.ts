/**
 * The scan under a snapshot, which may take many turns.
 *
 * A turn closes its scan, and the next opens another behind the last row that was looked at. Only
 * where the turn ended among versions that are not current there is no such row: that scan stays
 * open, and goes on. Nobody counts those versions, so they are timed: two million of them hold the
 * event loop for 45 to 120 ms otherwise.
 */
import type { Clock } from "../base/clock.ts";
import type { Seq } from "../base/seq.ts";
import { type Scan, type ScanBatch, SEQ_COLUMN_ID, type Store } from "../storage/mod.ts";
import type { Budget } from "./budget.ts";
import type { LiveProgram } from "./live_program.ts";

export interface ScanBounds {
  readonly after: Seq;
  readonly upTo: Seq;
  readonly batchRows: number;
}

export class SnapshotScan {
  readonly #store: Store;
  readonly #clock: Clock;
  /** Of a plan that was made anew the columns may be others. */
  #paused: { readonly scan: Scan; readonly program: LiveProgram } | undefined;

  constructor({ clock, store }: { store: Store; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Reads on: where it paused, else within the bounds.
   *
   * @param take Is given each batch, until it returns something.
   * @returns That; "spent" when the budget was used up first, undefined at the end.
   */
  read<T extends object | symbol>(
    { bounds, budget, program }: { program: LiveProgram; bounds: ScanBounds; budget: Budget },
    take: (batch: ScanBatch) => T | undefined,
  ): T | "spent" | undefined {
    const scan = this.#opened(program, bounds);
    try {
      for (;;) {
        const startMs = this.#clock.monotonicMs();
        const batch = scan.next();
        budget.spendMs(this.#clock.monotonicMs() - startMs);
        if (batch === undefined) return undefined;
        const taken = batch.rowCount === 0 ? undefined : take(batch);
        if (taken !== undefined) return taken;
        if (!budget.isSpent) continue;
        if (batch.rowCount === 0) this.#paused = { scan, program };
        return "spent";
      }
    } finally {
      if (this.#paused === undefined) scan.close();
    }
  }

  /** Lets go of the files that it pins. */
  close(): void {
    this.#paused?.scan.close();
    this.#paused = undefined;
  }

  #opened(program: LiveProgram, bounds: ScanBounds): Scan {
    const paused = this.#paused;
    if (paused?.program === program) {
      this.#paused = undefined;
      return paused.scan;
    }
    this.close();
    const { columnIds, owner, tableId } = program.plan;
    // `_seq` comes after the plan's columns where it is not among them.
    const hasSeq = columnIds.includes(SEQ_COLUMN_ID);
    return this.#store.scan(tableId, {
      owner,
      columnIds: hasSeq ? columnIds : [...columnIds, SEQ_COLUMN_ID],
      mayBeEmpty: true,
      ...bounds,
    });
  }
}
