/**
 * The rows of table functions, made as they are asked for. Several functions run side by side: a
 * row holds one part of each, NULLs where one has ended, until all have.
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { Batch, DataType, Row, Value } from "../../../types/mod.ts";
import type { BoundTableFunction } from "../../bind/bound.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { columnsFromRows } from "./filter.ts";

/** One function with its arguments compiled. */
export interface CompiledCall {
  readonly call: BoundTableFunction;
  readonly args: readonly ((run: Run) => Value)[];
}

export interface FunctionScanOptions {
  readonly run: Run;
  readonly calls: readonly CompiledCall[];
  readonly hasOrdinality: boolean;
  /** Of all columns, the ordinal number included. */
  readonly types: readonly DataType[];
}

interface Source {
  readonly rows: Iterator<Row>;
  readonly nulls: Row;
  isAtEnd: boolean;
}

export class FunctionScan implements Operator {
  readonly #options: FunctionScanOptions;
  #sources: readonly Source[] | undefined;
  #ordinal = 0;

  constructor(options: FunctionScanOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { calls, run, types } = this.#options;
    this.#sources ??= calls.map((call) => sourceOf(call, run));
    const rows: Row[] = [];
    while (rows.length < BATCH_ROWS_MAX) {
      const row = this.#row(this.#sources);
      if (row === undefined) break;
      rows.push(row);
    }
    if (rows.length === 0) return undefined;
    return { rowCount: rows.length, columns: columnsFromRows(rows, types) };
  }

  close(): void {
    for (const source of this.#sources ?? []) source.rows.return?.();
    this.#sources = [];
  }

  #row(sources: readonly Source[]): Row | undefined {
    const parts = sources.map(take);
    if (sources.every(({ isAtEnd }) => isAtEnd)) return undefined;
    const [first = []] = parts;
    const row = parts.length === 1 ? first : parts.flat();
    if (!this.#options.hasOrdinality) return row;
    this.#ordinal += 1;
    return [...row, this.#ordinal];
  }
}

function sourceOf({ args, call }: CompiledCall, run: Run): Source {
  const values = args.map((arg) => arg(run));
  const isNothing = !call.seesNull && values.includes(null);
  const rows = isNothing ? [] : call.rows(values);
  const nulls: Value[] = Array.from({ length: call.width }, () => null);
  return { rows: rows[Symbol.iterator](), nulls, isAtEnd: false };
}

function take(source: Source): Row {
  if (source.isAtEnd) return source.nulls;
  const { done, value } = source.rows.next();
  if (done !== true) return value;
  source.isAtEnd = true;
  return source.nulls;
}
