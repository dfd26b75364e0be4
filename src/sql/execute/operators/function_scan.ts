/**
 * Produces the rows of table functions lazily, either once or for each row of an input. Several
 * functions run side by side until all have ended; the columns of a function that ends earlier are
 * padded with NULL.
 *
 * A row may take a long time to compute, or may be large, such as a number with 131,072 digits in
 * a series. The cost of each row is therefore recorded like that of a function call, and a batch
 * of large rows ends early.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  type Batch,
  type DataType,
  type Row,
  take as taken,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { BoundTableFunction } from "../../bind/bound.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { bytesOf } from "../materialised/memory_budget.ts";
import { columnsFromRows } from "./filter.ts";

/** The total size of values, in bytes, at which a batch ends early. */
const BATCH_BYTES_MAX = 8 * 2 ** 20;

/** A table function and its compiled arguments. */
export interface CompiledCall {
  readonly call: BoundTableFunction;
  readonly args: readonly ((context: ExecutionContext) => Value)[];
}

export interface FunctionScanOptions {
  readonly context: ExecutionContext;
  readonly calls: readonly CompiledCall[];
  readonly hasOrdinality: boolean;
  /** The types of all output columns, including the ordinality. */
  readonly types: readonly DataType[];
}

interface FunctionRows {
  readonly rows: Iterator<Row>;
  readonly nulls: Row;
  isAtEnd: boolean;
}

export class FunctionScan implements Operator {
  readonly #options: FunctionScanOptions;
  #sources: readonly FunctionRows[] | undefined;
  #ordinal = 0;

  constructor(options: FunctionScanOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { calls, context, types } = this.#options;
    context.checkTime();
    this.#sources ??= calls.map((call) => sourceOf(call, context));
    const rows: Row[] = [];
    let bytes = 0;
    while (rows.length < BATCH_ROWS_MAX && bytes < BATCH_BYTES_MAX) {
      const row = this.#row(this.#sources);
      if (row === undefined) break;
      bytes += noted(row, context);
      rows.push(row);
    }
    if (rows.length === 0) return undefined;
    return { rowCount: rows.length, columns: columnsFromRows(rows, types) };
  }

  close(): void {
    end(this.#sources);
    this.#sources = [];
  }

  #row(sources: readonly FunctionRows[]): Row | undefined {
    const row = nextRow(sources);
    if (row === undefined || !this.#options.hasOrdinality) return row;
    this.#ordinal += 1;
    return [...row, this.#ordinal];
  }
}

export interface ExpandOptions {
  readonly context: ExecutionContext;
  readonly input: Operator;
  readonly calls: readonly {
    readonly call: BoundTableFunction;
    readonly args: readonly Evaluator[];
  }[];
  /** The number of leading input columns that are passed on. */
  readonly keptCount: number;
  /** The result types of the table functions. */
  readonly types: readonly DataType[];
}

/** An input batch, and the position of the row that is being expanded. */
interface Expanding {
  readonly batch: Batch;
  /** The argument vectors of each table function. */
  readonly args: readonly (readonly Vector[])[];
  row: number;
  sources: readonly FunctionRows[] | undefined;
}

/** The number of input rows processed between two time checks. */
const ROWS_PER_LOOK = 1024;

/** Joins each input row with the rows that the table functions return for it. */
export class Expand implements Operator {
  readonly #options: ExpandOptions;
  #current: Expanding | undefined;

  constructor(options: ExpandOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    for (;;) {
      const current = this.#current ?? this.#take();
      if (current === undefined) return undefined;
      const rows = this.#expand(current);
      if (rows !== undefined) return rows;
    }
  }

  close(): void {
    end(this.#current?.sources);
    this.#current = undefined;
    this.#options.input.close();
  }

  #take(): Expanding | undefined {
    const { calls, input, context } = this.#options;
    const batch = nextRows(input, context);
    if (batch === undefined) return undefined;
    const args = calls.map((call) => call.args.map((evaluate) => evaluate(batch, context)));
    this.#current = { batch, args, row: 0, sources: undefined };
    return this.#current;
  }

  #expand(current: Expanding): Batch | undefined {
    const { calls, keptCount, context, types } = this.#options;
    context.checkTime();
    const { batch } = current;
    const numbers = new Uint32Array(BATCH_ROWS_MAX);
    const rows: Row[] = [];
    let bytes = 0;
    const isFull = (): boolean => rows.length >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX;
    while (!isFull() && current.row < batch.rowCount) {
      current.sources ??= calls.map(({ call }, i) => {
        const values = (current.args[i] ?? []).map((vector) => valueAt(vector, current.row));
        return openSource(call, values);
      });
      const row = nextRow(current.sources);
      if (row === undefined) {
        current.sources = undefined;
        current.row += 1;
        if (current.row % ROWS_PER_LOOK === 0) context.checkTime();
        continue;
      }
      bytes += noted(row, context);
      numbers[rows.length] = current.row;
      rows.push(row);
    }
    if (current.row >= batch.rowCount) this.#current = undefined;
    if (rows.length === 0) return undefined;
    const kept = { rows: numbers, count: rows.length };
    const columns = batch.columns.slice(0, keptCount).map((column) => taken(column, kept));
    return { rowCount: rows.length, columns: [...columns, ...columnsFromRows(rows, types)] };
  }
}

/** Takes the next row from each source. Returns undefined once all sources have ended. */
function nextRow(sources: readonly FunctionRows[]): Row | undefined {
  const parts = sources.map(take);
  if (sources.every(({ isAtEnd }) => isAtEnd)) return undefined;
  const [first = []] = parts;
  return parts.length === 1 ? first : parts.flat();
}

/** Records the cost of producing a row. Returns the size of its values in bytes. */
function noted(row: Row, { effort }: ExecutionContext): number {
  let bytes = 0;
  for (const value of row) {
    if (typeof value === "number") continue;
    effort.noteRead(value);
    bytes += bytesOf(value);
  }
  effort.noteCall();
  return bytes;
}

function end(sources: readonly FunctionRows[] | undefined): void {
  for (const source of sources ?? []) source.rows.return?.();
}

function sourceOf({ args, call }: CompiledCall, context: ExecutionContext): FunctionRows {
  return openSource(
    call,
    args.map((arg) => arg(context)),
  );
}

function openSource(call: BoundTableFunction, values: readonly Value[]): FunctionRows {
  const isNothing = !call.seesNull && values.includes(null);
  const rows = isNothing ? [] : call.rows(values);
  const nulls: Value[] = Array.from({ length: call.width }, () => null);
  return { rows: rows[Symbol.iterator](), nulls, isAtEnd: false };
}

function take(source: FunctionRows): Row {
  if (source.isAtEnd) return source.nulls;
  const { done, value } = source.rows.next();
  if (done !== true) return value;
  source.isAtEnd = true;
  return source.nulls;
}
