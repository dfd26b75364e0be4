/**
 * WITH: rows that several places read, and recursive queries.
 *
 *     first ──rows──► working table ──next──► rows ──► working table ──► … until there are none
 */
import { DatabaseError, withDetails } from "../../../base/errors.ts";
import { RECURSION_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, type DataType, DECIMAL_TOO_LONG, keepRows } from "../../../types/mod.ts";
import type { BoundRecursion } from "../../bind/bound.ts";
import { HeldRows } from "../held/held_rows.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { Grouping } from "../keys/grouping.ts";
import { InnerRun } from "../run/inner_run.ts";
import { made, type Operator, type OperatorFactory } from "../run/operator.ts";
import type { Run, SharedRows, StepAnswers } from "../run/run.ts";

/** Reads rows that others read, too. */
export class SharedRowsReader implements Operator {
  readonly #shared: SharedRows;
  #position = 0;
  #isClosed = false;

  constructor(shared: SharedRows) {
    this.#shared = shared;
  }

  next(): Batch | undefined {
    for (;;) {
      const batch = this.#shared.read(this.#position);
      if (batch !== undefined) {
        this.#position += batch.rowCount;
        return batch;
      }
      if (!this.#shared.advance()) return undefined;
    }
  }

  close(): void {
    if (!this.#isClosed) this.#shared.giveBack();
    this.#isClosed = true;
  }
}

/** Reads the rows of the step before. */
export class WorkingTable implements Operator {
  readonly #rows: HeldRows;
  #position = 0;

  constructor(rows: HeldRows) {
    this.#rows = rows;
  }

  next(): Batch | undefined {
    if (this.#position >= this.#rows.rowCount) return undefined;
    const batch = this.#rows.batchFrom(this.#position);
    this.#position += batch.rowCount;
    return batch;
  }

  close(): void {
    this.#position = this.#rows.rowCount;
  }
}

const OUTGROWN_HINT =
  "a DECIMAL has at most 38 digits: round the value in each step, as in round(x * 1.5, 10), or cast it to DOUBLE PRECISION in the first query";

export interface RecursionOptions {
  readonly run: Run;
  readonly recursion: BoundRecursion;
  readonly isAll: boolean;
  readonly types: readonly DataType[];
  readonly first: OperatorFactory;
  readonly next: OperatorFactory;
}

export class Recursion implements Operator {
  readonly #options: RecursionOptions;
  /** Rows that went up; without ALL each goes once. */
  readonly #seen: Grouping | undefined;
  #step: Operator;
  /** Rows of the step under way: the working table of the one after it. */
  #made: HeldRows;
  #working: HeldRows | undefined;
  /** The memory that the current step and the answers of its subqueries take. */
  readonly #memory: MemoryBudget;
  #answers: StepAnswers | undefined;
  #rowCount = 0;

  constructor(options: RecursionOptions) {
    const { first, isAll, run, types } = options;
    this.#options = options;
    this.#seen = isAll ? undefined : new Grouping(types, run.memory);
    this.#memory = run.memory.nested();
    this.#step = made(first, run);
    this.#made = new HeldRows(types, run.memory);
  }

  next(): Batch | undefined {
    for (;;) {
      this.#options.run.checkTime();
      const batch = this.#stepped();
      if (batch === undefined) {
        if (!this.#begin()) return undefined;
        continue;
      }
      const fresh = this.#fresh(batch);
      if (fresh.rowCount > 0) return this.#kept(fresh);
    }
  }

  close(): void {
    this.#endStep();
  }

  /** Rows that go up, and into the next step. */
  #kept(fresh: Batch): Batch {
    this.#rowCount += fresh.rowCount;
    if (this.#rowCount > RECURSION_ROWS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot run recursive query "${this.#options.recursion.name}": it yields more than ${RECURSION_ROWS_MAX} rows`,
        { hint: "end it by a condition, or write UNION without ALL" },
      );
    }
    this.#made.append(fresh.columns, fresh.rowCount);
    return fresh;
  }

  #endStep(): void {
    this.#step.close();
    this.#answers?.end();
    this.#answers = undefined;
    this.#memory.close();
  }

  /** Gives the advice for a DECIMAL without room in terms of the steps that compute it. */
  #stepped(): Batch | undefined {
    try {
      return this.#step.next();
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.hint !== DECIMAL_TOO_LONG) throw error;
      throw withDetails(error, { hint: OUTGROWN_HINT });
    }
  }

  /** Begins the next step. Returns whether there is one. */
  #begin(): boolean {
    const { next, recursion, run, types } = this.#options;
    this.#endStep();
    const before = this.#working;
    before?.restart();
    const working = this.#made;
    this.#working = working;
    if (working.rowCount === 0) return false;
    this.#made = before ?? new HeldRows(types, run.memory);
    const stepRun = new InnerRun(run, {
      working: new Map([...run.working, [recursion, working]]),
      memory: this.#memory,
      answers: (own) => (this.#answers = run.subqueries.inStep(recursion, own)),
    });
    this.#step = made(next, stepRun);
    return true;
  }

  #fresh(batch: Batch): Batch {
    const seen = this.#seen;
    if (seen === undefined || batch.rowCount === 0) return batch;
    return keepRows(batch, seen.newRowsOf(batch.columns, batch.rowCount));
  }
}
