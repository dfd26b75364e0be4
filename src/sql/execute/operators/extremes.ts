/**
 * Computes min and max from ordered inputs, as a single row. It contains the first value of each
 * input, or NULL for an input without values. If an input stops early because few of its rows
 * satisfy the conditions, all results are computed from all rows instead.
 */
import {
  type Batch,
  type DataType,
  type Value,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import type { OrderedTableScan } from "../sort/ordered_table_scan.ts";

export interface Extreme {
  /** The rows of `scan` that satisfy the conditions, sorted by the value. */
  readonly rows: Operator;
  readonly scan: OrderedTableScan;
  readonly value: Evaluator;
}

export interface ExtremesOptions {
  readonly context: ExecutionContext;
  readonly extremes: readonly Extreme[];
  /** The data types of the results. */
  readonly types: readonly DataType[];
  /** Creates an operator that computes the results from all rows. */
  readonly plain: () => Operator;
}

export class Extremes implements Operator {
  readonly #options: ExtremesOptions;
  #plain: Operator | undefined;
  #isDone = false;

  constructor(options: ExtremesOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    if (this.#plain !== undefined) return this.#plain.next();
    if (this.#isDone) return undefined;
    this.#isDone = true;
    const { extremes, plain, types } = this.#options;
    const values: Value[] = [];
    for (const extreme of extremes) {
      const value = this.#firstValue(extreme);
      if (value === undefined) {
        this.#plain = plain();
        return this.#plain.next();
      }
      values.push(value);
    }
    const columns = types.map((type, i) => vectorFromValues(type, [values[i] ?? null]));
    return { rowCount: 1, columns };
  }

  close(): void {
    for (const { rows } of this.#options.extremes) rows.close();
    this.#plain?.close();
  }

  /** Returns the first value of an input; undefined if its scan has stopped early. */
  #firstValue({ rows, scan, value }: Extreme): Value | undefined {
    const { context } = this.#options;
    for (;;) {
      const batch = nextRows(rows, context);
      if (batch === undefined) return scan.isInVain ? undefined : null;
      const values = value(batch, context);
      for (let row = 0; row < batch.rowCount; row += 1) {
        const found = valueAt(values, row);
        if (found !== null) return found;
      }
    }
  }
}
