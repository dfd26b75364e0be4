/**
 * Moves the search for a snapshot's rows to another thread once the event loop has examined many
 * rows for few results.
 *
 *     this thread ──units spent for one batch, beyond its rows──► other thread
 *         ▲────────────────────────refused───────────────────────────┘
 *
 * A filter that keeps none of 500,000 rows occupies the event loop for 100 to 350 ms, over many
 * ticks. A batch from another thread occupies it for 0.6 ms, which is more than a batch of
 * adjacent rows takes here. Therefore, a snapshot moves only if its search turns out to be long.
 *
 * Invariant: if the plan is renewed, rows found for the old plan are dropped.
 */
import type { FoundRows, SearchRange } from "../../sql/mod.ts";
import type { Batch } from "../../types/mod.ts";
import { type LiveProgram, sliceRows } from "../program/live_program.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";

/**
 * How many units a search may spend in this thread. They correspond roughly to the duration of a
 * statement's first tick.
 */
const HERE_UNITS_MAX = 4096;

/** Returned instead of rows if the search continues in another thread. */
export const ELSEWHERE: unique symbol = Symbol("elsewhere");

interface RunningSearch {
  readonly program: LiveProgram;
  readonly found: FoundRows;
  /** The rows found but not taken yet. */
  rest: Batch | undefined;
}

export class SnapshotSearch {
  readonly #onArrived: () => void;
  #spentUnits = 0;
  /** Whether the search is long; undefined until that is clear. */
  #isLong: boolean | undefined;
  #open: RunningSearch | undefined;

  /**
   * @param onArrived Called when rows may have become available after `read` returned "waiting".
   */
  constructor(onArrived: () => void) {
    this.#onArrived = onArrived;
  }

  /** Returns whether a reader thread must find the rows of the snapshot. */
  isElsewhere({ plan: { search } }: LiveProgram): boolean {
    return search !== undefined && (this.#isLong ?? search.takesAll);
  }

  /** Returns whether spending another `units` in this thread would make the search too long. */
  isTooLong({ plan: { search } }: LiveProgram, units: number): boolean {
    if (search === undefined || this.#spentUnits + units <= HERE_UNITS_MAX) return false;
    this.#isLong = true;
    return true;
  }

  /** Records that a tick ended within the search. */
  noteSpent(units: number): void {
    this.#spentUnits += units;
  }

  /** Records that the wanted rows have been found. */
  noteFound(): void {
    this.#spentUnits = 0;
  }

  /**
   * Continues to take rows from the other thread.
   *
   * @param range Called when the search begins, to determine its range.
   * @param take Receives rows. Returns how many of them it took, or a value that ends the search.
   * @returns The value returned by `take`; undefined if no rows are left; "spent" if the budget
   *   was used up first. After "refused", the rows have to be read in this thread.
   */
  read<T extends object>(
    {
      budget,
      program,
      range,
    }: { program: LiveProgram; range: () => SearchRange; budget: TickBudget },
    take: (batch: Batch) => T | number,
  ): T | "waiting" | "spent" | "refused" | undefined {
    const open = this.#opened(program, range);
    if (open === undefined) return this.#refused();
    for (;;) {
      const batch = open.rest ?? open.found.next();
      if (batch === "waiting") return batch;
      if (batch === "refused") return this.#refused();
      if (batch === undefined) {
        this.close();
        return undefined;
      }
      const taken = take(batch);
      if (typeof taken !== "number") {
        this.close();
        return taken;
      }
      const isWhole = taken === batch.rowCount;
      open.rest = isWhole ? undefined : sliceRows(batch, taken, batch.rowCount);
      if (open.rest !== undefined || budget.isSpent) return "spent";
    }
  }

  /** Ends the search in the other thread. */
  close(): void {
    this.#open?.found.close();
    this.#open = undefined;
  }

  #opened(program: LiveProgram, range: () => SearchRange): RunningSearch | undefined {
    if (this.#open?.program === program) return this.#open;
    this.close();
    const found = program.plan.search?.begin(range(), this.#onArrived);
    if (found !== undefined) this.#open = { program, found, rest: undefined };
    return this.#open;
  }

  /**
   * Continues the search in this thread. If it becomes long again, it moves to another thread once
   * more.
   */
  #refused(): "refused" {
    this.close();
    this.#isLong = false;
    this.#spentUnits = 0;
    return "refused";
  }
}
