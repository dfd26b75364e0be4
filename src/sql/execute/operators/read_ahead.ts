/**
 * Reads the subqueries of a query before the query itself, so that other requests can run between
 * their batches.
 */
import type { Batch } from "../../../types/mod.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import { made, NOTHING_YET, type Operator, type OperatorFactory } from "../run/operator.ts";
import type { Reading, Run } from "../run/run.ts";

export class ReadAhead implements Operator {
  readonly #waiting: BoundSubquery[];
  readonly #build: OperatorFactory;
  readonly #run: Run;
  #reading: Reading | undefined;
  #query: Operator | undefined;

  constructor(subqueries: readonly BoundSubquery[], build: OperatorFactory, run: Run) {
    this.#waiting = subqueries.toReversed();
    this.#build = build;
    this.#run = run;
  }

  next(): Batch | undefined {
    if (this.#query !== undefined) return this.#query.next();
    if (this.#reading === undefined) {
      const subquery = this.#waiting.pop();
      if (subquery === undefined) this.#query = made(this.#build, this.#run);
      else this.#reading = this.#run.subqueries.stateOf(subquery).prepare();
    } else if (this.#reading.step()) {
      this.#reading = undefined;
    }
    return NOTHING_YET;
  }

  close(): void {
    this.#reading?.close();
    this.#query?.close();
  }
}
