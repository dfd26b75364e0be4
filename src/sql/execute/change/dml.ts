/**
 * Compiles INSERT, UPDATE and DELETE: rows in, checked changes out. `change_writer.ts` writes them.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, partOf, type Row, type Value, valueAt } from "../../../types/mod.ts";
import { errorInCell } from "../../bind/cell_error.ts";
import type { BoundCell } from "../../bind/change/dml_target.ts";
import type { BoundReturning } from "../../bind/change/returning_binder.ts";
import type { DeletePlan, InsertPlan, UpdatePlan } from "../../plan/dml_plan.ts";
import { runtimeOf, type TableRuntime } from "../build/table_runtime.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { rowsFromBatch } from "../operators/filter.ts";
import { made, type OperatorFactory } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import {
  type ChangeSource,
  ChangeWriter,
  type DmlProgram,
  type ReadRows,
  writeFrom,
} from "./change_writer.ts";
import { deletedColumns, insertedColumns, updatedColumns } from "./column_changes.ts";
import { compileConflict, TouchedKeys } from "./conflict.ts";
import { literalColumns } from "./literal_rows.ts";
import { compileReturning } from "./returning.ts";
import { insertColumns, insertRows, type RowChange } from "./row_changes.ts";

/** Rows that are written at a step: made, looked up and staged at ten microseconds each. */
const ROWS_PER_STEP = 128;

/** The same by columns: at one to two microseconds each. */
const COLUMN_ROWS_PER_STEP = 1024;

/** Rows of expressions that are written in one turn: at a dozen microseconds each. */
const ROWS_PER_TURN = 1024;

/** Rows of columns that are written in one turn: at a microsecond each, a dozen milliseconds. */
const COLUMN_ROWS_PER_TURN: number = 4 * BATCH_ROWS_MAX;

type CellProgram = (run: Run) => Value;

/** Rows that an INSERT is given. */
interface InsertSource {
  /** How many, where that is known before they are made. */
  readonly rowCount: number | undefined;
  /** Those from `from` (inclusive) to `to` (exclusive); of a source that knows how many. */
  rows(run: Run, from: number, to: number): Row[];
  /** The same by columns, of a source that is read so. */
  readonly columns?: (run: Run, from: number, to: number) => Batch;
  open(sink: InsertSink, read: ReadRows | undefined): ChangeSource;
}

/** Takes the rows of an INSERT. */
interface InsertSink {
  readonly run: Run;
  /** Whether they are to be given by columns. */
  readonly takesColumns: () => boolean;
  readonly onRows: (rows: Row[]) => void;
  /** The batch has a vector for each column that the source fills, or for all of the table. */
  readonly onColumns: (batch: Batch, positions?: readonly number[]) => void;
}

/** Compiles INSERT. @param build Of the query that it inserts the rows of, if there is one. */
export function compileInsert(insert: InsertPlan, build: OperatorFactory | undefined): DmlProgram {
  const runtime = runtimeOf(insert.table);
  const source = compileSource(insert, { runtime, build });
  const conflict =
    insert.conflict === undefined ? undefined : compileConflict(insert.conflict, runtime);
  const returning = compileReturning(insert.returning, runtime);
  const isPlain = conflict === undefined && returning === undefined;
  const rowsPerTurn = source.columns === undefined ? ROWS_PER_TURN : COLUMN_ROWS_PER_TURN;
  const program: DmlProgram = (run, read) => {
    const writer = new ChangeWriter(runtime, { run, returning, isBlind: conflict === undefined });
    const touched = new TouchedKeys();
    const sink: InsertSink = {
      run,
      takesColumns: () => conflict === undefined && writer.takesColumns,
      onRows: (rows) => {
        runtime.check(rows, run);
        writer.add(
          conflict === undefined
            ? rows.map((row): RowChange => ({ operation: "insert", row, before: undefined }))
            : conflict(rows, touched, run),
        );
      },
      onColumns: (given, positions) => {
        const batch = insertedColumns(given, positions, { run, runtime });
        runtime.checkBatch(batch, run);
        writer.addColumns("insert", { batch });
      },
    };
    return writeFrom(source.open(sink, read), writer);
  };
  const { rowCount } = source;
  if (!isPlain || rowCount === undefined || rowCount > rowsPerTurn) return program;
  return (run) => {
    if (run.uploads !== undefined || run.transaction !== undefined) return program(run);
    if (source.columns !== undefined) {
      const batch = source.columns(run, 0, rowCount);
      runtime.checkBatch(batch, run);
      const applied = insertColumns(runtime, batch, run);
      return { rowCount, applied, returned: undefined };
    }
    const rows = source.rows(run, 0, rowCount);
    runtime.check(rows, run);
    const applied = insertRows(runtime, rows, run);
    return { rowCount: rows.length, applied, returned: undefined };
  };
}

/** Makes whole rows of a table: given values, and defaults for the rest. */
function compileSource(
  { source, table, targets }: InsertPlan,
  { build, runtime }: { build: OperatorFactory | undefined; runtime: TableRuntime },
): InsertSource {
  const filled = new Set(targets);
  const missing = table.columns.flatMap((_, position) => (filled.has(position) ? [] : [position]));
  // A source that fills every column in order makes whole rows already.
  const isWhole = missing.length === 0 && targets.every((position, i) => position === i);
  const rowOf = (cells: Value[], run: Run): Row => {
    if (isWhole) return cells;
    const row: Value[] = Array.from({ length: table.columns.length }, () => null);
    for (let i = 0; i < targets.length; i += 1) row[targets[i] ?? 0] = cells[i] ?? null;
    for (const position of missing) row[position] = runtime.defaultAt(position, run);
    return row;
  };
  switch (source.kind) {
    case "rows": {
      const rowCount = source.rows.length;
      const compiled = (cells: readonly BoundCell[]): readonly CellProgram[] =>
        cells.map((cell, i) => compileCell(cell, { runtime, position: targets[i] ?? 0 }));
      // Those of a long list are compiled in the turns that make them.
      const programs = source.rows.slice(0, ROWS_PER_STEP).map(compiled);
      const programAt = (index: number): readonly CellProgram[] => {
        programs[index] ??= compiled(source.rows[index] ?? []);
        return programs[index];
      };
      return listed(rowCount, (run, from, to) => {
        const rows: Row[] = [];
        let cells: Value[] = [];
        try {
          for (let index = from; index < to; index += 1) {
            cells = [];
            for (const cell of programAt(index)) cells.push(cell(run));
            rows.push(rowOf(cells, run));
          }
        } catch (error) {
          const columnIndex = cells.length;
          const column = table.columns[targets[columnIndex] ?? -1];
          // Past the last cell it was a default.
          if (column === undefined) throw error;
          const rowIndex = from + rows.length;
          throw errorInCell(error, () => ({
            column: column.name,
            source: { rowIndex, columnIndex, rowCount },
          }));
        }
        return rows;
      });
    }
    case "literals": {
      const columns = literalColumns(source.literals, { runtime, targets });
      const { rowCount } = source.literals;
      const rows: InsertSource["rows"] = (run, from, to) => rowsFromBatch(columns(run, from, to));
      return { ...listed(rowCount, rows, columns), columns };
    }
    case "query":
      return queried(defined(build, "a query is built"), { targets, rowOf });
  }
}

function listed(
  rowCount: number,
  rows: InsertSource["rows"],
  columns?: InsertSource["columns"],
): InsertSource {
  const open: InsertSource["open"] = ({ onColumns, onRows, run, takesColumns }) => {
    let from = 0;
    return {
      next: () => {
        run.checkTime();
        if (from >= rowCount) return false;
        const byColumns = takesColumns() ? columns : undefined;
        const step = byColumns === undefined ? ROWS_PER_STEP : COLUMN_ROWS_PER_STEP;
        const to = Math.min(from + step, rowCount);
        if (byColumns === undefined) onRows(rows(run, from, to));
        else onColumns(byColumns(run, from, to));
        from = to;
        return true;
      },
      close: () => undefined,
    };
  };
  return { rowCount, rows, open };
}

function compileCell(
  cell: BoundCell,
  { position, runtime }: { runtime: TableRuntime; position: number },
): CellProgram {
  if (cell === "default") return (run) => runtime.defaultAt(position, run);
  return compileScalar(cell);
}

function queried(
  build: OperatorFactory,
  { rowOf, targets }: { rowOf: (cells: Value[], run: Run) => Row; targets: InsertPlan["targets"] },
): InsertSource {
  const open: InsertSource["open"] = (sink, read = made(build, sink.run)) => {
    const { onColumns, onRows, run, takesColumns } = sink;
    return sourceOf(read, run, {
      takesColumns,
      onColumns: (batch) => onColumns(batch, targets),
      onRows: (batch, from, to) => {
        const rows: Row[] = [];
        const columns = batch.columns.slice(0, targets.length);
        for (let row = from; row < to; row += 1) {
          rows.push(
            rowOf(
              columns.map((column) => valueAt(column, row)),
              run,
            ),
          );
        }
        onRows(rows);
      },
    });
  };
  return { rowCount: undefined, rows: () => [], open };
}

/** What is held of a row that changes besides its cells: its owner, four seqs, and its key. */
const CHANGED_ROW_BYTES = 48;

/** Takes the rows that a statement reads. */
interface ReadSink {
  /** Whether {@linkcode onColumns} is to be called, and not `onRows`. */
  readonly takesColumns: () => boolean;
  readonly onRows: (batch: Batch, from: number, to: number) => void;
  readonly onColumns: (batch: Batch) => void;
}

/** Rows that are read as a source, a part of each batch at a step. */
function sourceOf(read: ReadRows, run: Run, sink: ReadSink): ChangeSource {
  let batch: Batch | undefined;
  let from = 0;
  const begin = (next: Batch | undefined): boolean => {
    batch = next;
    from = 0;
    if (batch === undefined) return false;
    run.memory.takeBatch(batch);
    run.memory.take(CHANGED_ROW_BYTES * batch.rowCount);
    return handOn(batch);
  };
  const handOn = (rows: Batch): boolean => {
    const byColumns = sink.takesColumns();
    const step = byColumns ? COLUMN_ROWS_PER_STEP : ROWS_PER_STEP;
    const to = Math.min(from + step, rows.rowCount);
    if (to === from) return true;
    if (byColumns) sink.onColumns(partOf(rows, from, to));
    else sink.onRows(rows, from, to);
    from = to;
    return true;
  };
  return {
    next: () => {
      run.checkTime();
      if (batch !== undefined && from < batch.rowCount) return handOn(batch);
      const next = read.next();
      return next instanceof Promise ? next.then(begin) : begin(next);
    },
    close: () => read.close(),
  };
}

/** Compiles UPDATE. @param build Of the rows that it finds. */
export function compileUpdate(update: UpdatePlan, build: OperatorFactory): DmlProgram {
  const runtime = runtimeOf(update.table);
  const returning = compileReturning(update.returning, runtime);
  const columnCount = update.table.columns.length;
  return (run, read = made(build, run)) => {
    const writer = new ChangeWriter(runtime, { run, returning, isBlind: false });
    const onRows = (batch: Batch, from: number, to: number): void => {
      const changes: RowChange[] = [];
      const rows: Row[] = [];
      for (let row = from; row < to; row += 1) {
        const before = cellsAt(batch, row, { from: 0, count: columnCount });
        const after = [...before];
        const beforeSeq = seqAt(batch, row, columnCount);
        let computed = columnCount + 1;
        for (const { isDefault, position } of update.sets) {
          if (isDefault) {
            after[position] = runtime.defaultAt(position, run);
          } else {
            const column = batch.columns[computed];
            after[position] = column === undefined ? null : valueAt(column, row);
            computed += 1;
          }
        }
        rows.push(after);
        const carried = carriedAt(batch, row, { from: computed, returning: update.returning });
        changes.push({ operation: "update", row: after, before, beforeSeq, ...carried });
      }
      runtime.check(rows, run);
      writer.add(changes);
    };
    const onColumns = (batch: Batch): void => {
      const { changed, rows } = updatedColumns(batch, update, { run, runtime });
      runtime.checkBatch(rows, run);
      writer.addColumns("update", changed, rows.rowCount);
    };
    const takesColumns = (): boolean => writer.takesColumns;
    return writeFrom(sourceOf(read, run, { takesColumns, onColumns, onRows }), writer);
  };
}

/** Compiles DELETE. @param build Of the rows that it finds. */
export function compileDelete(remove: DeletePlan, build: OperatorFactory): DmlProgram {
  const runtime = runtimeOf(remove.table);
  const returning = compileReturning(remove.returning, runtime);
  const columnCount = remove.table.columns.length;
  return (run, read = made(build, run)) => {
    const writer = new ChangeWriter(runtime, { run, returning, isBlind: false });
    const onRows = (batch: Batch, start: number, to: number): void => {
      const changes: RowChange[] = [];
      for (let row = start; row < to; row += 1) {
        const before = cellsAt(batch, row, { from: 0, count: columnCount });
        const beforeSeq = seqAt(batch, row, columnCount);
        const from = columnCount + 1;
        const carried = carriedAt(batch, row, { from, returning: remove.returning });
        changes.push({ operation: "delete", row: before, before, beforeSeq, ...carried });
      }
      writer.add(changes);
    };
    const onColumns = (batch: Batch): void => {
      writer.addColumns("delete", deletedColumns(batch, runtime));
    };
    const takesColumns = (): boolean => writer.takesColumns;
    return writeFrom(sourceOf(read, run, { takesColumns, onColumns, onRows }), writer);
  };
}

function seqAt({ columns }: Batch, row: number, columnCount: number): Value {
  const column = columns[columnCount];
  return column === undefined ? null : valueAt(column, row);
}

function cellsAt(
  { columns }: Batch,
  row: number,
  { count, from }: { from: number; count: number },
): Row {
  const values: Value[] = [];
  for (let position = from; position < from + count; position += 1) {
    const column = columns[position];
    values.push(column === undefined ? null : valueAt(column, row));
  }
  return values;
}

/** What RETURNING needs of the rows beside the changed one, if anything. */
function carriedAt(
  batch: Batch,
  row: number,
  { from, returning }: { from: number; returning: BoundReturning | undefined },
): Pick<RowChange, "carried"> | undefined {
  const count = returning?.carried.length ?? 0;
  return count === 0 ? undefined : { carried: cellsAt(batch, row, { from, count }) };
}
