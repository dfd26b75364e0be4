/**
 * Turns the rows that a change reads into a source of changes. Each step processes part of a
 * batch, so that other work can run between two steps.
 */
import { type Batch, partOf } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { made, type OperatorFactory } from "../context/operator.ts";
import type { ChangeSource } from "./change_writer.ts";
import { type EvaluationPlace, whenThere } from "./evaluation.ts";

/**
 * The number of rows written per step. Creating, looking up and staging a row takes ten
 * microseconds.
 */
export const ROWS_PER_STEP = 128;

/**
 * The number of rows in columnar form written per step. Each row takes one to two microseconds.
 */
export const COLUMN_ROWS_PER_STEP = 1024;

/**
 * The memory, in bytes, that a changed row takes up in addition to its cells: for its owner, its
 * key and four seqs.
 */
const CHANGED_ROW_BYTES = 48;

/** The rows that a statement reads, either from its own operators or from another thread. */
export interface ReadRows {
  next(): Batch | undefined | Promise<Batch | undefined>;
  close(): void;
}

export function rowsOf(build: OperatorFactory, { elsewhere, context }: EvaluationPlace): ReadRows {
  if (elsewhere === undefined) return made(build, context);
  // The reader thread that reads the rows also closes their source.
  return { next: () => elsewhere.next(), close: () => undefined };
}

/** Receives the rows that a statement reads. */
export interface ReadSink {
  /** Whether all rows must be read before the first row is processed. */
  readonly readsAhead?: boolean;
  /** Whether the rows are passed to `onColumns` instead of `onRows`. */
  readonly takesColumns: () => boolean;
  readonly onRows: (batch: Batch, from: number, to: number) => void | Promise<void>;
  readonly onColumns: (batch: Batch) => void;
}

/** Returns a source of changes for the rows that are read. Each step passes on part of a batch. */
export function sourceOf(read: ReadRows, context: ExecutionContext, sink: ReadSink): ChangeSource {
  const next =
    sink.readsAhead === true ? readAhead(read, context) : () => counted(read.next(), context);
  let batch: Batch | undefined;
  let from = 0;
  const begin = (begun: Batch | undefined): boolean | Promise<boolean> => {
    batch = begun;
    from = 0;
    return begun === undefined ? false : handOn(begun);
  };
  const handOn = (rows: Batch): boolean | Promise<boolean> => {
    const byColumns = sink.takesColumns();
    const step = byColumns ? COLUMN_ROWS_PER_STEP : ROWS_PER_STEP;
    const start = from;
    const to = Math.min(from + step, rows.rowCount);
    if (to === from) return true;
    from = to;
    const taken = byColumns
      ? sink.onColumns(partOf(rows, start, to))
      : sink.onRows(rows, start, to);
    return whenThere(taken, () => true);
  };
  return {
    next: () => {
      context.checkTime();
      if (batch !== undefined && from < batch.rowCount) return handOn(batch);
      return whenThere(next(), begin);
    },
    close: () => read.close(),
  };
}

/**
 * Charges the memory of a batch to the statement's budget.
 *
 * @throws {DatabaseError} MEMORY_EXCEEDED
 */
function counted(read: ReturnType<ReadRows["next"]>, context: ExecutionContext): typeof read {
  return whenThere(read, (batch) => {
    if (batch === undefined) return undefined;
    context.memory.takeBatch(batch);
    context.memory.take(CHANGED_ROW_BYTES * batch.rowCount);
    return batch;
  });
}

function readAhead(read: ReadRows, context: ExecutionContext): () => Promise<Batch | undefined> {
  let batches: Batch[] | undefined;
  return async () => {
    if (batches === undefined) {
      batches = [];
      for (;;) {
        const batch = await counted(read.next(), context);
        if (batch === undefined) break;
        batches.push(batch);
      }
      batches.reverse();
    }
    return batches.pop();
  };
}
