/**
 * Defines the operators that process one batch at a time: filters, projections, literal rows and
 * limits.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  type Batch,
  type DataType,
  keepRows,
  type Row,
  type RowNumbers,
  slice,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import type { Selector } from "../evaluate/condition.ts";
import type { Evaluator } from "../evaluate/expression.ts";

export interface FilterOptions {
  readonly context: ExecutionContext;
  readonly condition: Selector;
  /** The positions of the output columns. Columns that only the condition reads are dropped. */
  readonly kept: readonly number[];
}

/** Keeps the rows for which a condition is true. */
export class Filter implements Operator {
  readonly #input: Operator;
  readonly #options: FilterOptions;
  /**
   * The array for the row numbers of a batch. It is reused because a new array would not be in the
   * processor cache.
   */
  #rows = new Uint32Array(0);

  constructor(input: Operator, options: FilterOptions) {
    this.#input = input;
    this.#options = options;
  }

  next(): Batch | undefined {
    const { condition, kept, context } = this.#options;
    for (;;) {
      const batch = nextRows(this.#input, context);
      if (batch === undefined) return undefined;
      const rows = condition(batch, context, this.#rowsOf(batch));
      if (rows.count === 0) continue;
      const columns = kept.map((position) =>
        defined(batch.columns[position], "filter operator: batch lacks a column of the input"),
      );
      return keepRows({ rowCount: batch.rowCount, columns }, rows);
    }
  }

  #rowsOf({ rowCount }: Batch): RowNumbers {
    if (this.#rows.length < rowCount) this.#rows = new Uint32Array(rowCount);
    return this.#rows.length === rowCount ? this.#rows : this.#rows.subarray(0, rowCount);
  }

  close(): void {
    this.#input.close();
  }

  restart(): boolean {
    return this.#input.restart?.() ?? false;
  }
}

/** Computes one column per expression. */
export class Project implements Operator {
  readonly #input: Operator;
  readonly #expressions: readonly Evaluator[];
  readonly #context: ExecutionContext;

  constructor(input: Operator, expressions: readonly Evaluator[], context: ExecutionContext) {
    this.#input = input;
    this.#expressions = expressions;
    this.#context = context;
  }

  next(): Batch | undefined {
    const batch = this.#input.next();
    if (batch === undefined || batch.rowCount === 0) return batch;
    const { rowCount } = batch;
    const { effort } = this.#context;
    const columns = this.#expressions.map((expression) => {
      effort.noteRows(rowCount);
      const column = expression(batch, this.#context);
      if (column.kind === "const") effort.noteRepeated(column.value, rowCount);
      return column;
    });
    return { rowCount, columns };
  }

  close(): void {
    this.#input.close();
  }

  restart(): boolean {
    return this.#input.restart?.() ?? false;
  }
}

/** Yields rows that already exist in memory. */
export class RowsOperator implements Operator {
  readonly #rows: readonly Row[];
  readonly #types: readonly DataType[];
  #position = 0;

  constructor(rows: readonly Row[], types: readonly DataType[]) {
    this.#rows = rows;
    this.#types = types;
  }

  next(): Batch | undefined {
    if (this.#position >= this.#rows.length) return undefined;
    const rows = this.#rows.slice(this.#position, this.#position + BATCH_ROWS_MAX);
    this.#position += rows.length;
    return { rowCount: rows.length, columns: columnsFromRows(rows, this.#types) };
  }

  close(): void {
    this.#position = this.#rows.length;
  }
}

/** Yields batches that already exist in memory. */
export class BatchSource implements Operator {
  readonly #batches: readonly Batch[];
  #position = 0;

  constructor(batches: readonly Batch[]) {
    this.#batches = batches;
  }

  next(): Batch | undefined {
    const batch = this.#batches[this.#position];
    this.#position += 1;
    return batch;
  }

  close(): void {
    this.#position = this.#batches.length;
  }
}

export interface PortionSourceOptions {
  readonly context: ExecutionContext;
  /** The positions of the columns to yield. */
  readonly positions: readonly number[];
  readonly types: readonly DataType[];
}

/** Yields the requested columns of rows that a source computes in portions. */
export class PortionSource implements Operator {
  readonly #portions: Iterator<readonly Row[]>;
  readonly #positions: readonly number[];
  readonly #types: readonly DataType[];
  readonly #context: ExecutionContext;
  #rows: RowsOperator | undefined;

  constructor(
    portions: Iterable<readonly Row[]>,
    { positions, context, types }: PortionSourceOptions,
  ) {
    this.#portions = portions[Symbol.iterator]();
    this.#positions = positions;
    this.#context = context;
    this.#types = types;
  }

  next(): Batch | undefined {
    for (;;) {
      const batch = this.#rows?.next();
      if (batch !== undefined) return batch;
      this.#context.checkTime();
      const portion = this.#portions.next();
      if (portion.done === true) return undefined;
      const rows = portion.value.map((row) => this.#positions.map((at) => row[at] ?? null));
      this.#rows = new RowsOperator(rows, this.#types);
    }
  }

  close(): void {
    this.#rows = undefined;
    this.#portions.return?.();
  }
}

/** Turns rows into one vector per column. */
export function columnsFromRows(rows: readonly Row[], types: readonly DataType[]): Vector[] {
  return types.map((type, position) => {
    const values: Value[] = rows.map((row) => row[position] ?? null);
    return vectorFromValues(type, values);
  });
}

/** Returns the rows of a batch as arrays of values. */
export function rowsFromBatch({ columns, rowCount }: Batch): Row[] {
  const rows: Row[] = [];
  for (let row = 0; row < rowCount; row += 1) {
    const cells: Value[] = [];
    for (const column of columns) cells.push(valueAt(column, row));
    rows.push(cells);
  }
  return rows;
}

/** Skips `offset` rows, and then passes on at most `limit` rows. */
export class Limit implements Operator {
  readonly #input: Operator;
  readonly #context: ExecutionContext;
  #toSkip: number;
  #toPass: number;

  constructor(
    input: Operator,
    { limit, offset, context }: { context: ExecutionContext; limit: number; offset: number },
  ) {
    this.#input = input;
    this.#context = context;
    this.#toSkip = offset;
    this.#toPass = limit;
  }

  next(): Batch | undefined {
    if (this.#toPass === 0) return undefined;
    let batch = nextRows(this.#input, this.#context);
    while (batch !== undefined && this.#toSkip >= batch.rowCount) {
      this.#toSkip -= batch.rowCount;
      batch = nextRows(this.#input, this.#context);
    }
    if (batch === undefined) return undefined;
    const start = this.#toSkip;
    const end = Math.min(batch.rowCount, start + this.#toPass);
    this.#toSkip = 0;
    this.#toPass -= end - start;
    if (start === 0 && end === batch.rowCount) return batch;
    return {
      rowCount: end - start,
      columns: batch.columns.map((column) => slice(column, start, end)),
    };
  }

  close(): void {
    this.#input.close();
  }
}

/**
 * Converts the value of LIMIT or OFFSET to a row count.
 *
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE if the value is negative.
 */
export function rowCountFrom(value: Value, clause: "LIMIT" | "OFFSET"): number {
  if (value === null) return clause === "LIMIT" ? Number.POSITIVE_INFINITY : 0;
  const count = Number(value);
  if (count >= 0) return count;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot use ${clause} ${count}: it must not be negative`,
  );
}
