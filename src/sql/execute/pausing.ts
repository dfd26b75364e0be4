/**
 * Pauses in the middle of an expression: for a subquery that is read for one row, and for long.
 *
 * An expression is evaluated in one go, so the reading below it throws {@linkcode PAUSE} when its turn
 * is over and stays as it is. {@linkcode Resuming} catches that, says "nothing yet", and evaluates the
 * same few rows again later: the answers so far are known by then, and the reading goes on.
 *
 * Only an operator that can give its rows again may be left in this way. So a pause is allowed while
 * such a one evaluates, and at no time while it, or a reading, asks another operator for rows.
 */
import { TURN_MS_MAX } from "../../base/limits.ts";
import type { Batch } from "../../types/mod.ts";
import type { Slices } from "./filter.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Run } from "./run.ts";

/** Thrown by who cannot go on now; no failure. */
export const PAUSE: Error = new Error("The turn is over");

/** When the evaluation under way must pause; one for all runs of a statement. */
export class Pauses {
  #atMs = Number.POSITIVE_INFINITY;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Whether who evaluates now has had its turn. */
  get isDue(): boolean {
    return this.#atMs !== Number.POSITIVE_INFINITY && this.#now() >= this.#atMs;
  }

  /** Whether an evaluation may pause at all. */
  get areAllowed(): boolean {
    return this.#atMs !== Number.POSITIVE_INFINITY;
  }

  during<T>(work: () => T): T {
    return this.#with(this.#now() + TURN_MS_MAX, work);
  }

  never<T>(work: () => T): T {
    return this.#with(Number.POSITIVE_INFINITY, work);
  }

  #with<T>(atMs: number, work: () => T): T {
    const before = this.#atMs;
    this.#atMs = atMs;
    try {
      return work();
    } finally {
      this.#atMs = before;
    }
  }
}

/** Evaluates over slices, and again over the same one after a pause. */
export class Resuming implements Operator {
  readonly #operator: Operator;
  readonly #slices: Slices;
  readonly #run: Run;

  constructor(operator: Operator, slices: Slices, run: Run) {
    this.#operator = operator;
    this.#slices = slices;
    this.#run = run;
  }

  next(): Batch | undefined {
    try {
      return this.#run.subqueries.pauses.during(() => this.#operator.next());
    } catch (error) {
      if (error !== PAUSE) throw error;
      this.#slices.repeat();
      return NOTHING_YET;
    }
  }

  close(): void {
    this.#operator.close();
    this.#run.subqueries.abandon();
  }
}
