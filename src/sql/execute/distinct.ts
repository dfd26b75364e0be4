/**
 * Keeps the first row of each group of equal rows.
 */
import { type Batch, type DataType, keepRows } from "../../types/mod.ts";
import type { Evaluator } from "./expression.ts";
import { Grouping } from "./grouping.ts";
import type { Operator } from "./operator.ts";
import type { Run } from "./run.ts";

export class Distinct implements Operator {
  readonly #input: Operator;
  readonly #on: readonly Evaluator[];
  readonly #run: Run;
  readonly #groups: Grouping;

  constructor(
    input: Operator,
    options: { run: Run; on: readonly Evaluator[]; types: readonly DataType[] },
  ) {
    this.#input = input;
    this.#on = options.on;
    this.#run = options.run;
    this.#groups = new Grouping(options.types, options.run.memory);
  }

  next(): Batch | undefined {
    const batch = this.#input.next();
    if (batch === undefined || batch.rowCount === 0) return batch;
    const vectors = this.#on.map((evaluate) => evaluate(batch, this.#run));
    return keepRows(batch, this.#groups.newRowsOf(vectors, batch.rowCount));
  }

  close(): void {
    this.#input.close();
  }
}
