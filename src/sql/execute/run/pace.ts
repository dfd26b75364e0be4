/**
 * How many rows are evaluated at a time where a row may take long or make long values.
 *
 *     1 row ──took little──► twice as many ─ … ─► whole batches
 *                            ◄──took much── the share that would have fitted
 *
 * A batch of rows that each run a regular expression over 40 KB holds its thread for seconds, and
 * rows that each make a text of 1 MB fill the memory together. The cost of a row is only known once
 * rows like it were evaluated, so the first group is one row, and the next ones follow the cost of
 * the last.
 *
 * Invariant: `rowsMax` is 1 or more, and at most the number that the pace was made with.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";

/** How long one group may take: less than a turn, because costs of rows differ. */
const GROUP_MS_MAX = 2;

/** Bytes of values that the rows of one group may make together. */
const GROUP_BYTES_MAX = 8 * 2 ** 20;

/** A group that took a smaller part of what it may take is followed by twice as many rows. */
const LITTLE = 1 / 4;

/** One group of rows that was evaluated. */
export interface GroupCost {
  /** 1 or more. */
  readonly rowCount: number;
  readonly tookMs: number;
  /** Bytes of the values that were made; 0 where nobody counts them. */
  readonly madeBytes: number;
}

export class RowPace {
  readonly #rowsMost: number;
  #rowsMax = 1;

  /** @param rowsMost Rows of a group that take nothing. */
  constructor(rowsMost: number = BATCH_ROWS_MAX) {
    this.#rowsMost = rowsMost;
  }

  /** How many rows the next group may have. */
  get rowsMax(): number {
    return this.#rowsMax;
  }

  /** Chooses the size of the next group by the cost of the last one. */
  note({ madeBytes, rowCount, tookMs }: GroupCost): void {
    const load = Math.max(tookMs / GROUP_MS_MAX, madeBytes / GROUP_BYTES_MAX);
    if (load > 1) {
      this.#rowsMax = Math.max(1, Math.min(this.#rowsMax, Math.floor(rowCount / load)));
    } else if (load < LITTLE && rowCount >= this.#rowsMax) {
      this.#rowsMax = Math.min(this.#rowsMost, 2 * this.#rowsMax);
    }
  }
}
