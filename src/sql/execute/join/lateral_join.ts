/**
 * LATERAL: runs the right side anew for each row of the left one.
 *
 *     left row ──captures──► right side ──rows──► pairs that satisfy the condition
 *                                 └──ends──► (a lonely row of a left join) ──► next left row
 */
import {
  type Batch,
  constVector,
  type DataType,
  keepRows,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import { type Evaluator, selectRows } from "../evaluate/expression.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { columnsFromRows } from "../operators/filter.ts";
import { InnerRun } from "../run/inner_run.ts";
import { nextRows } from "../run/next_rows.ts";
import { made, type Operator, type OperatorFactory } from "../run/operator.ts";
import type { Run } from "../run/run.ts";

export interface LateralOptions {
  readonly run: Run;
  readonly join: "inner" | "left";
  readonly left: Operator;
  readonly right: OperatorFactory;
  readonly rightTypes: readonly DataType[];
  readonly captures: readonly { readonly id: number; readonly evaluate: Evaluator }[];
  /** Over left columns followed by right columns. */
  readonly condition: Evaluator | undefined;
}

/** The left row whose partners are read. */
interface Current {
  readonly batch: Batch;
  readonly captured: readonly (readonly [id: number, values: Vector])[];
  row: number;
  right: Operator | undefined;
  hasPartner: boolean;
}

export class LateralJoin implements Operator {
  readonly #options: LateralOptions;
  /** What the right side of one row holds. */
  readonly #memory: MemoryBudget;
  #current: Current | undefined;

  constructor(options: LateralOptions) {
    this.#options = options;
    this.#memory = options.run.memory.nested();
  }

  next(): Batch | undefined {
    for (;;) {
      const current = this.#current ?? this.#take();
      if (current === undefined) return undefined;
      current.right ??= this.#open(current);
      const batch = nextRows(current.right, this.#options.run);
      const rows = batch === undefined ? this.#end(current) : this.#paired(current, batch);
      if (rows !== undefined) return rows;
    }
  }

  close(): void {
    this.#current?.right?.close();
    this.#options.left.close();
    this.#memory.close();
  }

  #take(): Current | undefined {
    const { captures, left, run } = this.#options;
    const batch = nextRows(left, run);
    if (batch === undefined) return undefined;
    const captured = captures.map(({ evaluate, id }) => [id, evaluate(batch, run)] as const);
    this.#current = { batch, captured, row: 0, right: undefined, hasPartner: false };
    return this.#current;
  }

  #open({ captured, row }: Current): Operator {
    const { right, run } = this.#options;
    const outer = new Map(run.outer);
    for (const [id, values] of captured) outer.set(id, valueAt(values, row));
    return made(right, new InnerRun(run, { outer, memory: this.#memory }));
  }

  /** Ends the row. Returns it if it is lonely, and wanted nevertheless. */
  #end(current: Current): Batch | undefined {
    const { join, rightTypes } = this.#options;
    current.right?.close();
    current.right = undefined;
    this.#memory.close();
    const { batch, hasPartner, row } = current;
    current.hasPartner = false;
    current.row += 1;
    if (current.row >= batch.rowCount) this.#current = undefined;
    if (hasPartner || join !== "left") return undefined;
    const nulls: Value[] = rightTypes.map(() => null);
    return beside(batch, row, { rowCount: 1, columns: columnsFromRows([nulls], rightTypes) });
  }

  #paired(current: Current, right: Batch): Batch | undefined {
    const { condition, run } = this.#options;
    const pairs = beside(current.batch, current.row, right);
    if (condition === undefined) {
      current.hasPartner = true;
      return pairs;
    }
    const kept = selectRows(condition(pairs, run), pairs.rowCount);
    if (kept.count === 0) return undefined;
    current.hasPartner = true;
    return keepRows(pairs, kept);
  }
}

/** One row of the left side beside each of the right one. */
function beside(left: Batch, row: number, right: Batch): Batch {
  const columns = left.columns.map((column) => constVector(valueAt(column, row), right.rowCount));
  return { rowCount: right.rowCount, columns: [...columns, ...right.columns] };
}
