/**
 * Limits the work of a tick. Work is counted in units rather than in time, so that simulations are
 * reproducible. Only two kinds of work are also timed: evaluating rows that may be slow, and
 * skipping rows in a snapshot.
 *
 * A unit is about a microsecond, the time it takes to evaluate a version and turn it into a
 * message.
 */

/** The rate at which timed work is converted to units. */
const UNITS_PER_MS = 1000;

/** How many versions a filter examines at the cost of one unit. */
const SCANNED_PER_UNIT = 16;

/** The maximum number of versions that one subscription reads at a time. */
export const READ_ROWS_MAX = 256;

export class TickBudget {
  #left: number;

  constructor(units: number) {
    this.#left = units;
  }

  /** The remaining units; negative if the most recent work cost more than was left. */
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
