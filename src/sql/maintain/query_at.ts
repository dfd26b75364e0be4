/**
 * Runs queries as of a seq, within the current tick of the event loop. Such a query returns the
 * rows of a LATERAL query, or the rows of a group. The store still has the versions of earlier
 * seqs.
 *
 * A maintenance step runs its queries in its own contexts. Invariant: a step takes a bounded time.
 * If it would take longer, the whole query is evaluated on another thread instead, where it does
 * not delay other work.
 */
import { defined } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import { type DataType, type Row, type Value, valueAt, vectorFromValues } from "../../types/mod.ts";
import type { BoundRecursion, BoundSelect } from "../bind/bound.ts";
import { buildPlan } from "../execute/build/build.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { InnerContext } from "../execute/context/inner_context.ts";
import { made, type OperatorFactory } from "../execute/context/operator.ts";
import { MaterialisedRows } from "../execute/materialised/materialised_rows.ts";
import type { MemoryBudget } from "../execute/materialised/memory_budget.ts";
import { planSelect } from "../plan/planner.ts";
import { CannotFollow } from "./not_maintained.ts";

/** The contexts in which one maintenance step runs queries. */
export interface StepContexts {
  /** Returns the execution context for reading as of a seq. */
  at(seq: Seq): ExecutionContext;
  /** Releases all resources that the step's queries have used. */
  close(): void;
}

/**
 * The maximum number of rows that all queries of a step may read. Reading them takes about 20 ms.
 */
export const STEP_ROWS_MAX = 50_000;

/**
 * The maximum time, in milliseconds, that all queries of a step may take, even on a busy machine.
 */
export const STEP_MS_MAX = 250;

/** The maximum number of rows that one run of a query may return. */
const ROWS_MAX = 20_000;

/** The rows that a query reads in place of a table. */
export interface RowsInPlace {
  readonly table: BoundRecursion;
  readonly types: readonly DataType[];
  readonly rows: readonly Row[];
}

export class QueryAt {
  readonly #build: OperatorFactory;
  readonly #width: number;

  constructor(query: BoundSelect) {
    const { outputCount, root } = planSelect(query);
    this.#build = buildPlan(root);
    this.#width = outputCount;
  }

  /**
   * Runs the query for the given values of outer references.
   *
   * @throws {CannotFollow} If there are too many rows. @throws {DatabaseError}
   */
  rows(context: ExecutionContext, outer: ReadonlyMap<number, Value>): readonly Row[] {
    const memory = context.memory.nested();
    return this.#run(new InnerContext(context, { outer, memory }), memory);
  }

  /**
   * Returns the rows of a query that reads given rows in place of a table.
   *
   * @throws {CannotFollow} If there are too many rows. @throws {DatabaseError}
   */
  rowsOver({ rows, table, types }: RowsInPlace, context: ExecutionContext): readonly Row[] {
    const memory = context.memory.nested();
    const given = new MaterialisedRows(types, memory);
    const columns = types.map((type, index) => {
      return vectorFromValues(
        type,
        rows.map((row) => row[index] ?? null),
      );
    });
    given.append(columns, rows.length);
    const working = new Map([[table, given]]);
    return this.#run(new InnerContext(context, { memory, working }), memory);
  }

  /** Runs the query, and releases its memory. */
  #run(context: InnerContext, memory: MemoryBudget): readonly Row[] {
    const operator = made(this.#build, context);
    const rows: Row[] = [];
    try {
      for (let batch = operator.next(); batch !== undefined; batch = operator.next()) {
        context.checkTime();
        if (rows.length + batch.rowCount > ROWS_MAX) throw new CannotFollow();
        const columns = batch.columns.slice(0, this.#width);
        for (let row = 0; row < batch.rowCount; row += 1) {
          rows.push(
            columns.map((column) =>
              valueAt(defined(column, "maintained query: result lacks an expected column"), row),
            ),
          );
        }
      }
    } finally {
      operator.close();
      memory.close();
    }
    return rows;
  }
}
