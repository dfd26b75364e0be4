/**
 * Implements LATERAL: runs the right side again for each row of the left side.
 *
 *     left row ──outer values──► right side ──rows──► pairs that satisfy the condition
 *                                 └──ends──► (an unmatched row of a left join) ──► next left row
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
import type { ExecutionContext } from "../context/execution_context.ts";
import { InnerContext } from "../context/inner_context.ts";
import { nextRows } from "../context/next_rows.ts";
import { made, type Operator, type OperatorFactory } from "../context/operator.ts";
import { type Evaluator, selectRows } from "../evaluate/expression.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import { columnsFromRows } from "../operators/filter.ts";

export interface LateralOptions {
  readonly context: ExecutionContext;
  readonly join: "inner" | "left";
  readonly left: Operator;
  readonly right: OperatorFactory;
  readonly rightTypes: readonly DataType[];
  readonly outerReferences: readonly { readonly id: number; readonly evaluate: Evaluator }[];
  /** The join condition on pairs of rows, over the left columns followed by the right columns. */
  readonly condition: Evaluator | undefined;
}

/** The left row for which right rows are currently being read. */
interface Current {
  readonly batch: Batch;
  readonly outerValues: readonly (readonly [id: number, values: Vector])[];
  row: number;
  right: Operator | undefined;
  hasPartner: boolean;
}

export class LateralJoin implements Operator {
  readonly #options: LateralOptions;
  /** The memory budget of the right side for a single left row. */
  readonly #memory: MemoryBudget;
  #current: Current | undefined;

  constructor(options: LateralOptions) {
    this.#options = options;
    this.#memory = options.context.memory.nested();
  }

  next(): Batch | undefined {
    for (;;) {
      const current = this.#current ?? this.#take();
      if (current === undefined) return undefined;
      current.right ??= this.#open(current);
      const batch = nextRows(current.right, this.#options.context);
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
    const { outerReferences, left, context } = this.#options;
    const batch = nextRows(left, context);
    if (batch === undefined) return undefined;
    const outerValues = outerReferences.map(
      ({ evaluate, id }) => [id, evaluate(batch, context)] as const,
    );
    this.#current = { batch, outerValues, row: 0, right: undefined, hasPartner: false };
    return this.#current;
  }

  #open({ outerValues, row }: Current): Operator {
    const { right, context } = this.#options;
    const outer = new Map(context.outer);
    for (const [id, values] of outerValues) outer.set(id, valueAt(values, row));
    return made(right, new InnerContext(context, { outer, memory: this.#memory }));
  }

  /**
   * Ends the current left row. Returns the row if it has no matching right row but is still part
   * of the result.
   */
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
    const { condition, context } = this.#options;
    const pairs = beside(current.batch, current.row, right);
    if (condition === undefined) {
      current.hasPartner = true;
      return pairs;
    }
    const kept = selectRows(condition(pairs, context), pairs.rowCount);
    if (kept.count === 0) return undefined;
    current.hasPartner = true;
    return keepRows(pairs, kept);
  }
}

/** Pairs a left row with each of the given right rows. */
function beside(left: Batch, row: number, right: Batch): Batch {
  const columns = left.columns.map((column) => constVector(valueAt(column, row), right.rowCount));
  return { rowCount: right.rowCount, columns: [...columns, ...right.columns] };
}
