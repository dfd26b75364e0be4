/**
 * Keeps the first row of each group of equal rows.
 */
import { type Batch, type DataType, take } from "../../types/mod.ts";
import type { Evaluator } from "./expression.ts";
import { Grouping } from "./grouping.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
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
    let seenCount = this.#groups.groupCount;
    const numbers = this.#groups.numbersOf(vectors, batch.rowCount);
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      // Numbers are dense and ascend with first appearance: a new one is the next one.
      if (numbers[row] !== seenCount) continue;
      rows[count] = row;
      count += 1;
      seenCount += 1;
    }
    if (count === batch.rowCount) return batch;
    if (count === 0) return NOTHING_YET;
    return {
      rowCount: count,
      columns: batch.columns.map((column) => take(column, { rows, count })),
    };
  }

  close(): void {
    this.#input.close();
  }
}
