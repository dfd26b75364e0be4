/**
 * Finds the results of a subquery whose outer references form a key. The rows of the subquery are
 * read once, without the condition that compares them with the outer references. The rows for each
 * outer row are then found by key.
 *
 * Rows with a NULL key belong to no outer row, and LIMIT and OFFSET apply to the rows of each key.
 */
import type { Batch, Row } from "../../../types/mod.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator } from "../context/operator.ts";
import { KeyHashTable, NO_KEY, nullKeysOf } from "../keys/key_hash_table.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import { rowOf, SubqueryAnswer } from "./subquery_answer.ts";
import type { KeyedProgram } from "./subquery_program.ts";

export class KeyedAnswers {
  /** The result of the subquery for a key that has no rows. */
  withoutRows: SubqueryAnswer;
  readonly #subquery: BoundSubquery;
  readonly #program: KeyedProgram;
  readonly #held: MemoryBudget;
  readonly #bounds: { readonly limit: number; readonly offset: number };
  readonly #index: KeyHashTable;
  readonly #answers: ({ readonly answer: SubqueryAnswer; seenCount: number } | undefined)[] = [];

  constructor(
    subquery: BoundSubquery,
    program: KeyedProgram,
    options: { held: MemoryBudget; bounds: { limit: number; offset: number } },
  ) {
    this.#subquery = subquery;
    this.#program = program;
    this.#index = new KeyHashTable(program.keyTypes);
    this.#held = options.held;
    this.#bounds = options.bounds;
    this.withoutRows = new SubqueryAnswer(subquery.form, options.held);
  }

  /** Adds the rows of the next batch. Returns true if no batch is left. */
  addBatch(operator: Operator): boolean {
    const batch = operator.next();
    if (batch === undefined) return true;
    const { columnCount, keyTypes } = this.#program;
    // The keys may be followed by columns that only the query's ORDER BY reads.
    const keys = batch.columns.slice(columnCount, columnCount + keyTypes.length);
    const bytesBefore = this.#index.bytes;
    const numbers = this.#index.add(keys, batch.rowCount);
    this.#held.take(this.#index.bytes - bytesBefore);
    // NULL equals nothing, so a row with NULL in its key belongs to no outer row.
    const nulls = nullKeysOf(keys, batch.rowCount);
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (nulls?.[row] === 1) continue;
      this.#add(numbers[row] ?? 0, rowOf(batch, row, columnCount));
    }
    return false;
  }

  #add(number: number, row: Row): void {
    let entry = this.#answers[number];
    if (entry === undefined) {
      entry = { answer: new SubqueryAnswer(this.#subquery.form, this.#held), seenCount: 0 };
      this.#answers[number] = entry;
    }
    const { limit, offset } = this.#bounds;
    entry.seenCount += 1;
    if (entry.seenCount <= offset || entry.seenCount > offset + limit) return;
    if (!entry.answer.isDecided) entry.answer.add(row, this.#held);
  }

  /**
   * Returns the subquery's result for each outer row.
   * @param outerReferences The values of the outer references in each outer row.
   */
  answersFor(outerReferences: Batch, context: ExecutionContext): SubqueryAnswer[] {
    const { rowCount } = outerReferences;
    const keys = this.#program.keys.map((key) => key(outerReferences, context));
    const numbers = this.#index.find(keys, rowCount);
    const nulls = nullKeysOf(keys, rowCount);
    return Array.from(numbers, (number, row) => {
      if (number === NO_KEY || nulls?.[row] === 1) return this.withoutRows;
      return this.#answers[number]?.answer ?? this.withoutRows;
    });
  }
}
