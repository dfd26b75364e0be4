/**
 * Runs WITH entries: entries that a statement reads in several places, and recursive queries.
 *
 *     first ──rows──► working table ──next──► rows ──► working table ──► … until no rows are left
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { RECURSION_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, type DataType, keepRows } from "../../../types/mod.ts";
import type { BoundRecursion } from "../../bind/bound.ts";
import type { ExecutionContext, SharedRows, StepAnswers } from "../context/execution_context.ts";
import { InnerContext } from "../context/inner_context.ts";
import { made, type Operator, type OperatorFactory } from "../context/operator.ts";
import { Grouping } from "../keys/grouping.ts";
import { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";

/** Reads the rows of a WITH entry, which several consumers share. */
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

/** Reads the rows of the previous step of a recursion. */
export class WorkingTable implements Operator {
  readonly #recursion: BoundRecursion;
  readonly #context: ExecutionContext;
  #rows: MaterialisedRows;
  #position = 0;

  constructor(recursion: BoundRecursion, context: ExecutionContext) {
    this.#recursion = recursion;
    this.#context = context;
    this.#rows = this.#current();
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

  restart(): boolean {
    this.#rows = this.#current();
    this.#position = 0;
    return true;
  }

  #current(): MaterialisedRows {
    const rows = this.#context.working.get(this.#recursion);
    return defined(rows, "recursive query: working table is missing");
  }
}

/**
 * The number of batches read between two time checks. A step that reads many rows checks the time
 * itself, and a short step takes as long as twenty checks.
 */
const STEPS_PER_LOOK = 16;

export interface RecursionOptions {
  readonly context: ExecutionContext;
  readonly recursion: BoundRecursion;
  readonly isAll: boolean;
  readonly types: readonly DataType[];
  readonly first: OperatorFactory;
  readonly next: OperatorFactory;
}

export class Recursion implements Operator {
  readonly #options: RecursionOptions;
  /**
   * The distinct rows yielded so far. Set only without ALL, where each distinct row is yielded
   * once.
   */
  readonly #seen: Grouping | undefined;
  #step: Operator;
  /** The rows computed by the current step. They form the working table of the next step. */
  #made: MaterialisedRows;
  #working: MaterialisedRows | undefined;
  /**
   * The working tables that the steps can read. The working table of this recursion changes with
   * each step.
   */
  readonly #tables: Map<BoundRecursion, MaterialisedRows>;
  /** The memory budget of the current step and of its subqueries' results. */
  readonly #memory: MemoryBudget;
  #answers: StepAnswers | undefined;
  #rowCount = 0;
  #lookCount = 0;

  constructor(options: RecursionOptions) {
    const { first, isAll, context, types } = options;
    this.#options = options;
    this.#seen = isAll ? undefined : new Grouping(types, context.memory);
    this.#tables = new Map(context.working);
    this.#memory = context.memory.nested();
    this.#step = made(first, context);
    this.#made = new MaterialisedRows(types, context.memory);
  }

  next(): Batch | undefined {
    for (;;) {
      this.#lookCount += 1;
      if (this.#lookCount % STEPS_PER_LOOK === 0) this.#options.context.checkTime();
      const batch = this.#step.next();
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

  /** Returns the rows of a batch that are yielded and that the next step reads. */
  #kept(fresh: Batch): Batch {
    this.#rowCount += fresh.rowCount;
    if (this.#rowCount > RECURSION_ROWS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot run recursive query "${this.#options.recursion.name}": it returns more than ${RECURSION_ROWS_MAX} rows`,
        { hint: "add a condition that ends the recursion, or write UNION without ALL" },
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

  /** Starts the next step. Returns false if the recursion has ended. */
  #begin(): boolean {
    const { recursion, context, types } = this.#options;
    const before = this.#working;
    before?.restart();
    const working = this.#made;
    this.#working = working;
    if (working.rowCount === 0) {
      this.#endStep();
      return false;
    }
    this.#made = before ?? new MaterialisedRows(types, context.memory);
    this.#tables.set(recursion, working);
    // The operators of a step can be reused for the next step, unless subqueries have results that
    // depend on the step.
    const goesOn = this.#answers?.isUsed === false && this.#step.restart?.() === true;
    if (!goesOn) this.#makeStep();
    return true;
  }

  #makeStep(): void {
    const { next, recursion, context } = this.#options;
    this.#endStep();
    const stepContext = new InnerContext(context, {
      working: this.#tables,
      memory: this.#memory,
      answers: (own) => (this.#answers = context.subqueries.inStep(recursion, own)),
    });
    this.#step = made(next, stepContext);
  }

  #fresh(batch: Batch): Batch {
    const seen = this.#seen;
    if (seen === undefined || batch.rowCount === 0) return batch;
    return keepRows(batch, seen.newRowsOf(batch.columns, batch.rowCount));
  }
}
