/**
 * A reading ahead of the rows that ask for it: whether anybody asks is not known yet.
 *
 * So its faults are kept for later, but for those that end the statement, and it holds its operator
 * and working memory until its end, whichever that is.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { InnerRun } from "../run/inner_run.ts";
import { made, type Operator, type OperatorFactory } from "../run/operator.ts";
import { endsRequest } from "../run/request_ledger.ts";
import type { Reading, Run } from "../run/run.ts";

/** Of what is read for all sets of captures at once. */
export const NO_CAPTURES: ReadonlyMap<number, Value> = new Map();

export interface ReadingSteps {
  readonly step: (operator: Operator) => boolean;
  readonly onEnd: () => void;
  readonly onFault: (fault: DatabaseError) => void;
}

export class GuardedReading implements Reading {
  readonly #run: Run;
  readonly #build: OperatorFactory;
  readonly #steps: ReadingSteps;
  readonly #working: MemoryBudget;
  #operator: Operator | undefined;

  constructor(run: Run, build: OperatorFactory, steps: ReadingSteps) {
    this.#run = run;
    this.#build = build;
    this.#steps = steps;
    this.#working = run.memory.nested();
  }

  step(): boolean {
    try {
      this.#operator ??= made(
        this.#build,
        new InnerRun(this.#run, { outer: NO_CAPTURES, memory: this.#working }),
      );
      if (!this.#steps.step(this.#operator)) return false;
      this.#steps.onEnd();
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      if (endsRequest(error)) throw error;
      this.#steps.onFault(error);
    }
    this.close();
    return true;
  }

  close(): void {
    this.#operator?.close();
    this.#operator = undefined;
    this.#working.close();
  }
}
