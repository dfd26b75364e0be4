/**
 * Decides how many rows to evaluate at a time if a row may take a long time or produce long
 * values.
 *
 *     1 row ──took little──► twice as many ─ … ─► whole batches
 *                            ◄──took much── the share that would have fitted
 *
 * A batch in which each row matches a regular expression against 40 KB would block its thread for
 * seconds, and rows that each produce a string of 1 MB would fill the memory. The cost of a row is
 * known only after similar rows have been evaluated. The first group is therefore a single row,
 * and the size of each later group depends on the cost of the group before it.
 *
 * Invariant: `rowsMax` is at least 1, and at most the value with which the pace was created.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";

/**
 * The maximum duration of a group, in milliseconds. It is shorter than a time slice, because rows
 * differ in cost.
 */
const GROUP_MS_MAX = 2;

/** The maximum total size, in bytes, of the values that the rows of a group may produce. */
const GROUP_BYTES_MAX = 8 * 2 ** 20;

/** The next group is twice as large only if a group has used less than this share of its limit. */
const LITTLE = 1 / 4;

/** The measured cost of a group of rows. */
export interface GroupCost {
  /** The number of rows evaluated, at least 1. */
  readonly rowCount: number;
  readonly tookMs: number;
  /** The total size of the values produced; 0 if bytes are not counted. */
  readonly madeBytes: number;
}

export class RowPace {
  readonly #rowsMost: number;
  #rowsMax = 1;

  /**
   * Creates a pace for rows of unknown cost.
   * @param rowsMost The maximum size of a group. It is reached if rows cost next to nothing.
   */
  constructor(rowsMost: number = BATCH_ROWS_MAX) {
    this.#rowsMost = rowsMost;
  }

  /** The number of rows in the next group. */
  get rowsMax(): number {
    return this.#rowsMax;
  }

  /** Determines the size of the next group from the cost of the previous group. */
  note({ madeBytes, rowCount, tookMs }: GroupCost): void {
    const load = Math.max(tookMs / GROUP_MS_MAX, madeBytes / GROUP_BYTES_MAX);
    if (load > 1) {
      this.#rowsMax = Math.max(1, Math.min(this.#rowsMax, Math.floor(rowCount / load)));
    } else if (load < LITTLE && rowCount >= this.#rowsMax) {
      this.#rowsMax = Math.min(this.#rowsMost, 2 * this.#rowsMax);
    }
  }
}
