/**
 * The scan from which a snapshot reads. It may span many ticks.
 *
 * A tick closes its scan, and the next tick opens another after the last row examined. There is
 * one exception: if a tick ends while the scan is skipping versions that are not current, there is
 * no row that marks the place, so the scan stays open. Skipping is measured in time rather than in
 * units, because two million such versions would otherwise block the event loop for about 100 ms.
 */
import type { Clock } from "../../base/clock.ts";
import type { Seq } from "../../base/seq.ts";
import { type Scan, type ScanBatch, SEQ_COLUMN_ID, type Store } from "../../storage/mod.ts";
import type { LiveProgram } from "../program/live_program.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";

export interface ScanBounds {
  readonly after: Seq;
  readonly upTo: Seq;
  readonly batchRows: number;
}

export class SnapshotScan {
  readonly #store: Store;
  readonly #clock: Clock;
  /** The program is stored with the scan, because a renewed plan may read different columns. */
  #paused: { readonly scan: Scan; readonly program: LiveProgram } | undefined;

  constructor({ clock, store }: { store: Store; clock: Clock }) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Continues the paused scan, or opens a new one within the bounds.
   *
   * @param take Receives each batch, until it returns a value.
   * @returns The value returned by `take`; "spent" if the budget was used up first; undefined at
   *   the end.
   */
  read<T extends object | symbol>(
    { bounds, budget, program }: { program: LiveProgram; bounds: ScanBounds; budget: TickBudget },
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

  /** Releases the files that the scan pins. */
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
    // If `_seq` is not among the plan's columns, it is appended to them.
    const hasSeq = columnIds.includes(SEQ_COLUMN_ID);
    return this.#store.scan(tableId, {
      owner,
      columnIds: hasSeq ? columnIds : [...columnIds, SEQ_COLUMN_ID],
      mayBeEmpty: true,
      ...bounds,
    });
  }
}
