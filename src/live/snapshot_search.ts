/**
 * Has rows of a snapshot found in another thread, once the event loop has passed by many rows for
 * few.
 *
 *     here ──units spent for one batch, beyond its rows──► elsewhere
 *       ▲───────────────────────refused──────────────────────┘
 *
 * A filter that keeps none of 500,000 rows takes 100 to 350 ms of the event loop, in turns. A batch
 * that comes from another thread takes 0.6 ms of it, more than a batch of neighbours takes here.
 * Therefore only a snapshot that turns out to be a search goes elsewhere.
 *
 * Invariant: what was found for a plan that has been made anew since is dropped.
 */
import type { FoundRows, SearchRange } from "../sql/mod.ts";
import type { Batch } from "../types/mod.ts";
import type { Budget } from "./budget.ts";
import { type LiveProgram, sliceRows } from "./live_program.ts";

/** About as long as the first turn of a statement. */
const HERE_UNITS_MAX = 4096;

/** Given instead of rows where the search goes on elsewhere. */
export const ELSEWHERE: unique symbol = Symbol("elsewhere");

interface Open {
  readonly program: LiveProgram;
  readonly found: FoundRows;
  /** Found, and not taken yet. */
  rest: Batch | undefined;
}

export class SnapshotSearch {
  readonly #onArrived: () => void;
  #spentUnits = 0;
  /** Undefined before anything was found out. */
  #isLong: boolean | undefined;
  #open: Open | undefined;

  /** @param onArrived Called once there may be rows after "waiting". */
  constructor(onArrived: () => void) {
    this.#onArrived = onArrived;
  }

  /** Whether rows are to be found elsewhere. */
  isElsewhere({ plan: { search } }: LiveProgram): boolean {
    return search !== undefined && (this.#isLong ?? search.takesAll);
  }

  /** Whether a search becomes too long by so many further units that it spends here. */
  isTooLong({ plan: { search } }: LiveProgram, units: number): boolean {
    if (search === undefined || this.#spentUnits + units <= HERE_UNITS_MAX) return false;
    this.#isLong = true;
    return true;
  }

  /** A turn ended in the search. */
  noteSpent(units: number): void {
    this.#spentUnits += units;
  }

  /** The rows that were sought are found. */
  noteFound(): void {
    this.#spentUnits = 0;
  }

  /**
   * Goes on taking rows from elsewhere.
   *
   * @param range Asked for when the search begins.
   * @param take Is given rows, and returns how many of them it took, or something that ends the
   * search.
   * @returns That; undefined when no rows are left, and "spent" when the budget was used up first.
   * After "refused" the rows have to be read here.
   */
  read<T extends object>(
    { budget, program, range }: { program: LiveProgram; range: () => SearchRange; budget: Budget },
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

  /** Ends what is under way elsewhere. */
  close(): void {
    this.#open?.found.close();
    this.#open = undefined;
  }

  #opened(program: LiveProgram, range: () => SearchRange): Open | undefined {
    if (this.#open?.program === program) return this.#open;
    this.close();
    const found = program.plan.search?.begin(range(), this.#onArrived);
    if (found !== undefined) this.#open = { program, found, rest: undefined };
    return this.#open;
  }

  /** It goes on here, and elsewhere again once it has become long again. */
  #refused(): "refused" {
    this.close();
    this.#isLong = false;
    this.#spentUnits = 0;
    return "refused";
  }
}
