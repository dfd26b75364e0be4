/**
 * How much one turn may do, counted so that a simulation repeats; only rows of which each may take
 * long, and those that a snapshot passes by, are timed, too.
 *
 * One unit is about a microsecond: a version evaluated and made into a message.
 */

/** What is known to take long is timed instead. */
const UNITS_PER_MS = 1000;

/** Versions that a filter looks at for one unit. */
const SCANNED_PER_UNIT = 16;

/** Versions that one subscription reads at once. */
export const READ_ROWS_MAX = 256;

export class Budget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  /** Below 0 when the last thing done cost more than was left. */
  get left(): number {
    return this.#left;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(units: number): void {
    this.#left -= units;
  }

  spendMs(durationMs: number): void {
    this.#left -= durationMs * UNITS_PER_MS;
  }

  spendScanned(rowCount: number): void {
    this.#left -= 1 + rowCount / SCANNED_PER_UNIT;
  }
}
