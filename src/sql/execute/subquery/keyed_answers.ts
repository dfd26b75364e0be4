/**
 * The answers of a subquery whose captures are keys: its rows are read once, without the condition
 * that compares with them, and each outer row finds its own by key.
 *
 * A row whose key is NULL answers for nobody, and LIMIT and OFFSET count the rows of each key.
 */
import type { Batch, Row } from "../../../types/mod.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { KeyIndex, NO_KEY, nullKeysOf } from "../keys/key_index.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { Answer, rowOf } from "./subquery_answer.ts";
import type { KeyedProgram } from "./subquery_program.ts";

export class KeyedAnswers {
  /** For a key that no row has. */
  withoutRows: Answer;
  readonly #subquery: BoundSubquery;
  readonly #program: KeyedProgram;
  readonly #held: MemoryBudget;
  readonly #bounds: { readonly limit: number; readonly offset: number };
  readonly #index: KeyIndex;
  readonly #answers: ({ readonly answer: Answer; seenCount: number } | undefined)[] = [];

  constructor(
    subquery: BoundSubquery,
    program: KeyedProgram,
    options: { held: MemoryBudget; bounds: { limit: number; offset: number } },
  ) {
    this.#subquery = subquery;
    this.#program = program;
    this.#index = new KeyIndex(program.keyTypes);
    this.#held = options.held;
    this.#bounds = options.bounds;
    this.withoutRows = new Answer(subquery.form, options.held);
  }

  /** Adds the rows of the next batch. Returns whether there is none. */
  addBatch(operator: Operator): boolean {
    const batch = operator.next();
    if (batch === undefined) return true;
    const { columnCount, keyTypes } = this.#program;
    // Behind the keys may be columns that only the order of the query reads.
    const keys = batch.columns.slice(columnCount, columnCount + keyTypes.length);
    const bytesBefore = this.#index.bytes;
    const numbers = this.#index.add(keys, batch.rowCount);
    this.#held.take(this.#index.bytes - bytesBefore);
    // NULL equals nothing: a row with one answers for no key.
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
      entry = { answer: new Answer(this.#subquery.form, this.#held), seenCount: 0 };
      this.#answers[number] = entry;
    }
    const { limit, offset } = this.#bounds;
    entry.seenCount += 1;
    if (entry.seenCount <= offset || entry.seenCount > offset + limit) return;
    if (!entry.answer.isDecided) entry.answer.add(row, this.#held);
  }

  /** @param captures The captures of each row. */
  answersFor(captures: Batch, run: Run): Answer[] {
    const { rowCount } = captures;
    const keys = this.#program.keys.map((key) => key(captures, run));
    const numbers = this.#index.find(keys, rowCount);
    const nulls = nullKeysOf(keys, rowCount);
    return Array.from(numbers, (number, row) => {
      if (number === NO_KEY || nulls?.[row] === 1) return this.withoutRows;
      return this.#answers[number]?.answer ?? this.withoutRows;
    });
  }
}
