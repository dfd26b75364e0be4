/**
 * Evaluation over rows that may take long, for who is no operator: of a live query, whose batches
 * come from snapshots, replays and changes alike.
 *
 *     64 rows ──too many──► an eighth ──took little──► twice as many ─ … ─► whole batches
 *
 * What an evaluation made counts for itself alone: a live query has one run for as long as it
 * lives.
 *
 * Beside regular expressions over 4,000 texts of 40 KB others wait 23 ms, not seconds; 2,000
 * filters with a commit of 5,000 rows hold a feed for 34 ms, not 0.9 s. Rows that cannot take long
 * are only counted. It costs that a batch which is left in the middle is read again.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { TOO_MANY } from "../run/pausing.ts";
import type { Run } from "../run/run.ts";
import { DIVISOR } from "../run/slices.ts";

/** Rows of the first attempt: of long texts more are not read in vain. */
const ROWS_FIRST = 64;

/** Evaluates rows of which each may take long, so many at a time that others have their turns. */
export interface RowPace {
  /** How many rows fit a turn, by those that were evaluated last. */
  readonly rowsMax: number;
  /** How long the last attempt took. */
  readonly tookMs: number;
  /**
   * Evaluates over so many rows.
   *
   * @param evaluate Without effects: it is broken off when the rows are too many.
   * @returns undefined when they were; one row never is.
   */
  attempt<T extends object>(rowCount: number, evaluate: () => T): T | undefined;
}

export class Attempts implements RowPace {
  readonly #run: Pick<Run, "pauses" | "monotonicMs">;
  #rowsMax = ROWS_FIRST;
  #tookMs = 0;

  constructor(run: Pick<Run, "pauses" | "monotonicMs">) {
    this.#run = run;
  }

  get rowsMax(): number {
    return this.#rowsMax;
  }

  get tookMs(): number {
    return this.#tookMs;
  }

  attempt<T extends object>(rowCount: number, evaluate: () => T): T | undefined {
    const { pauses } = this.#run;
    const startMs = this.#run.monotonicMs();
    try {
      return pauses.during(() => {
        pauses.beginRows(rowCount);
        const result = evaluate();
        if (rowCount >= this.#rowsMax && pauses.wereFew) {
          this.#rowsMax = Math.min(BATCH_ROWS_MAX, 2 * this.#rowsMax);
        }
        return result;
      });
    } catch (error) {
      if (error !== TOO_MANY) throw error;
      this.#rowsMax = Math.max(1, Math.floor(rowCount / DIVISOR));
      return undefined;
    } finally {
      this.#tookMs = this.#run.monotonicMs() - startMs;
    }
  }
}
