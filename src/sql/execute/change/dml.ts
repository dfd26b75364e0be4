/**
 * Compiles INSERT, UPDATE and DELETE to programs that read rows and produce checked changes.
 * `change_writer.ts` writes these changes.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { type Batch, constVector, type Row, type Value, valueAt } from "../../../types/mod.ts";
import { errorInCell } from "../../bind/cell_error.ts";
import type { BoundCell } from "../../bind/change/dml_target.ts";
import type { BoundReturning } from "../../bind/change/returning_binder.ts";
import type { DeletePlan, InsertPlan, UpdatePlan } from "../../plan/dml_plan.ts";
import { runtimeOf, type TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { OperatorFactory } from "../context/operator.ts";
import { CopyRows, type CopyTarget } from "../copy/copy_rows.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { columnsFromRows, rowsFromBatch } from "../operators/filter.ts";
import {
  type ChangeSource,
  ChangeWriter,
  type DmlProgram,
  type WriterOptions,
  writeFrom,
} from "./change_writer.ts";
import { deletedColumns, insertedColumns, updatedColumns } from "./column_changes.ts";
import { compileConflict, TouchedKeys } from "./conflict.ts";
import { type Evaluation, type EvaluationPlace, whenThere } from "./evaluation.ts";
import { type StatementEvent, triggersOf } from "./fired_triggers.ts";
import { literalColumns } from "./literal_rows.ts";
import { COLUMN_ROWS_PER_STEP, ROWS_PER_STEP, rowsOf, sourceOf } from "./read_source.ts";
import { compileReturning } from "./returning.ts";
import { insertColumns, insertRows, type RowChange } from "./row_changes.ts";
import { compileGuard } from "./row_guard.ts";
import { TriggeredChange, type TriggeredOptions, writeTriggered } from "./triggered_change.ts";

/**
 * The number of rows written per tick if their values are expressions. Each row takes about a
 * dozen microseconds.
 */
const ROWS_PER_TICK = 1024;

/**
 * The number of rows written per tick if they are in columnar form. Each row takes about a
 * microsecond, so all of them together take about a dozen milliseconds.
 */
const COLUMN_ROWS_PER_TICK: number = 4 * BATCH_ROWS_MAX;

type CellProgram = (context: ExecutionContext) => Value;

/**
 * A compiled change: its program, and a program for each of its evaluations that contain queries.
 */
export interface CompiledChange {
  readonly program: DmlProgram;
  readonly evaluations: readonly Evaluation[];
}

/** The source of the rows that an INSERT writes. */
interface InsertedRows {
  /** The number of rows to insert; undefined if the number is not known in advance. */
  readonly rowCount: number | undefined;
  /**
   * Returns the rows from `from` (inclusive) to `to` (exclusive). Called only if the number of
   * rows is known.
   */
  rows(context: ExecutionContext, from: number, to: number): Row[];
  /** Returns the rows in columnar form; absent if the source does not support this. */
  readonly columns?: (context: ExecutionContext, from: number, to: number) => Batch;
  /** Evaluates the expressions in the rows from `from` (inclusive) to `to` (exclusive). */
  readonly evaluation?: Evaluation;
  open(sink: InsertSink): ChangeSource;
}

/** Receives the rows that an INSERT writes. */
interface InsertSink extends EvaluationPlace {
  /** Whether all rows must be read before the first row is processed. */
  readonly readsAhead: boolean;
  /** Whether inserted rows should be passed on in columnar form. */
  readonly takesColumns: () => boolean;
  readonly onRows: (rows: Row[]) => void | Promise<void>;
  /**
   * Receives a batch with one vector per column that the source fills. Without `positions`, the
   * source fills all columns of the table.
   */
  readonly onColumns: (batch: Batch, positions?: readonly number[]) => void;
}

/**
 * Compiles an INSERT statement.
 * @param build Builds the query that provides the rows, if there is one.
 */
export function compileInsert(
  insert: InsertPlan,
  build: OperatorFactory | undefined,
): CompiledChange {
  const runtime = runtimeOf(insert.table);
  const source = compileSource(insert, { runtime, build });
  const guard = compileGuard(insert.guard, runtime);
  const conflict =
    insert.conflict === undefined ? undefined : compileConflict(insert.conflict, guard, runtime);
  const returning = compileReturning(insert.returning, runtime);
  const evaluations = holdingQueries(
    source.evaluation,
    conflict?.evaluation,
    returning?.evaluation,
    ...(guard?.evaluations ?? []),
  );
  const triggers = triggersOf(insert.table);
  if (triggers !== undefined) {
    const fired = { triggers, events: eventsOfInsert(insert), returning, guard, conflict };
    return { evaluations, program: triggeredInsert(source, runtime, fired) };
  }
  const mayTakeLong = evaluations.length > 0;
  const program: DmlProgram = (context, elsewhere) => {
    const isBlind = conflict === undefined;
    const writer = new ChangeWriter(runtime, {
      context,
      elsewhere,
      returning,
      guard,
      isBlind,
      mayTakeLong,
    });
    const touched = new TouchedKeys();
    const sink: InsertSink = {
      context,
      elsewhere,
      readsAhead: conflict?.evaluation.holdsQuery === true || guard?.holdsQuery === true,
      takesColumns: () => isBlind && writer.takesColumns,
      onRows: (given) => {
        const rows = runtime.completed(given, context);
        runtime.check(rows, context);
        if (isBlind) {
          return writer.add(
            rows.map((row): RowChange => ({ operation: "insert", row, before: undefined })),
          );
        }
        const place = { context, elsewhere };
        const proposed = guard?.requireProposed(rows, place);
        const changes = whenThere(proposed, () => conflict.program(rows, touched, place));
        return whenThere(changes, (those) => writer.add(those));
      },
      onColumns: (given, positions) => {
        const batch = insertedColumns(given, positions, { context, runtime });
        runtime.checkBatch(batch, context);
        writer.addColumns("insert", { batch });
      },
    };
    return writeFrom(source.open(sink), writer);
  };
  const isPlain = conflict === undefined && returning === undefined && guard === undefined;
  return { evaluations, program: isPlain ? shortened(program, source, runtime) : program };
}

/** Returns the program for an INSERT into a table that has triggers. */
function triggeredInsert(
  source: InsertedRows,
  runtime: TableRuntime,
  fired: Omit<TriggeredOptions, keyof EvaluationPlace>,
): DmlProgram {
  return (context, elsewhere) => {
    const change = new TriggeredChange(runtime, { ...fired, context, elsewhere });
    const sink: InsertSink = {
      context,
      elsewhere,
      readsAhead: true,
      takesColumns: () => false,
      onRows: (rows) =>
        change.add(rows.map((row) => ({ operation: "insert", row, before: undefined }))),
      onColumns: () => undefined,
    };
    return writeTriggered(source.open(sink), change);
  };
}

/** Returns the events of an INSERT. They include UPDATE if ON CONFLICT may update rows. */
function eventsOfInsert({ conflict, table }: InsertPlan): StatementEvent[] {
  if (conflict?.action !== "update") return [{ event: "insert" }];
  return [{ event: "insert" }, { event: "update", setIds: idsAt(table, conflict.sets) }];
}

/** Returns the ids of the columns that a change sets. */
export function idsAt(
  { columns }: TableEntry,
  sets: readonly { readonly position: number }[],
): ReadonlySet<number> {
  return new Set(sets.flatMap(({ position }) => columns[position]?.columnId ?? []));
}

/**
 * Returns a faster program that inserts a few rows without a writer, for use if no later step
 * reads the results.
 */
function shortened(program: DmlProgram, source: InsertedRows, runtime: TableRuntime): DmlProgram {
  const rowsPerTick = source.columns === undefined ? ROWS_PER_TICK : COLUMN_ROWS_PER_TICK;
  const { rowCount } = source;
  if (rowCount === undefined || rowCount > rowsPerTick) return program;
  return (context, elsewhere) => {
    if (elsewhere !== undefined) return program(context, elsewhere);
    if (context.uploads !== undefined || context.transaction !== undefined) return program(context);
    if (source.columns !== undefined) {
      const batch = source.columns(context, 0, rowCount);
      runtime.checkBatch(batch, context);
      const applied = insertColumns(runtime, batch, context);
      return { rowCount, applied, returned: undefined };
    }
    const rows = runtime.completed(source.rows(context, 0, rowCount), context);
    runtime.check(rows, context);
    const applied = insertRows(runtime, rows, context);
    return { rowCount: rows.length, applied, returned: undefined };
  };
}

export function holdingQueries(...evaluations: readonly (Evaluation | undefined)[]): Evaluation[] {
  return evaluations.flatMap((evaluation) => (evaluation?.holdsQuery === true ? evaluation : []));
}

/** Creates whole table rows from the given values, with defaults for all other columns. */
function compileSource(
  { source, table, targets }: InsertPlan,
  { build, runtime }: { build: OperatorFactory | undefined; runtime: TableRuntime },
): InsertedRows {
  const filled = new Set(targets);
  const missing = table.columns.flatMap((_, position) => (filled.has(position) ? [] : [position]));
  // If a source fills every column in order, its rows are already whole table rows.
  const isWhole = missing.length === 0 && targets.every((position, i) => position === i);
  const rowOf = (cells: Value[], context: ExecutionContext): Row => {
    if (isWhole) return cells;
    const row: Value[] = Array.from({ length: table.columns.length }, () => null);
    for (let i = 0; i < targets.length; i += 1) row[targets[i] ?? 0] = cells[i] ?? null;
    for (const position of missing) row[position] = runtime.defaultAt(position, context);
    return row;
  };
  switch (source.kind) {
    case "rows": {
      const rowCount = source.rows.length;
      const compiled = (cells: readonly BoundCell[]): readonly CellProgram[] =>
        cells.map((cell, i) => compileCell(cell, { runtime, position: targets[i] ?? 0 }));
      // The remaining rows of a long list are compiled in the tick that evaluates them.
      const programs = source.rows.slice(0, ROWS_PER_STEP).map(compiled);
      const programAt = (index: number): readonly CellProgram[] => {
        programs[index] ??= compiled(source.rows[index] ?? []);
        return programs[index];
      };
      const rows: InsertedRows["rows"] = (context, from, to) => {
        const done: Row[] = [];
        let cells: Value[] = [];
        try {
          for (let index = from; index < to; index += 1) {
            cells = [];
            for (const cell of programAt(index)) cells.push(cell(context));
            done.push(rowOf(cells, context));
          }
        } catch (error) {
          const columnIndex = cells.length;
          const column = table.columns[targets[columnIndex] ?? -1];
          // An error after the last listed cell of a row was caused by a default.
          if (column === undefined) throw error;
          const rowIndex = from + done.length;
          throw errorInCell(error, () => ({
            column: column.name,
            source: { rowIndex, columnIndex, rowCount },
          }));
        }
        return done;
      };
      const evaluation: Evaluation = {
        name: "values",
        holdsQuery: source.holdsQuery,
        evaluate: (given, context) => {
          const [[from, to] = []] = rowsFromBatch(given);
          const values = rows(context, Number(from), Number(to));
          return { rowCount: values.length, columns: columnsFromRows(values, runtime.types) };
        },
      };
      return { ...listed({ rowCount, rows, evaluation }), evaluation };
    }
    case "literals": {
      const columns = literalColumns(source.literals, { runtime, targets });
      const { rowCount } = source.literals;
      const rows: InsertedRows["rows"] = (context, from, to) =>
        rowsFromBatch(columns(context, from, to));
      // The rows cannot be passed on in columnar form, because generated columns are computed and
      // parent rows are looked up row by row.
      if (runtime.isByRow) return listed({ rowCount, rows });
      return { ...listed({ rowCount, rows, columns }), columns };
    }
    case "copy":
      return copied({ runtime, targets, options: source.options });
    case "query":
      return queried(defined(build, "INSERT: source query was not built"), { targets, rowOf });
  }
}

function listed({
  columns,
  evaluation,
  rowCount,
  rows,
}: Omit<InsertedRows, "open"> & { readonly rowCount: number }): InsertedRows {
  const open: InsertedRows["open"] = (sink) => {
    const { elsewhere, onColumns, onRows, context, takesColumns } = sink;
    let from = 0;
    const rowsTo = (to: number): Row[] | Promise<Row[]> => {
      if (elsewhere === undefined || evaluation?.holdsQuery !== true)
        return rows(context, from, to);
      const given = { rowCount: 1, columns: [constVector(from, 1), constVector(to, 1)] };
      return elsewhere.evaluate(evaluation.name, given).then(rowsFromBatch);
    };
    return {
      next: () => {
        context.checkTime();
        if (from >= rowCount) return false;
        const byColumns = takesColumns() ? columns : undefined;
        const step = byColumns === undefined ? ROWS_PER_STEP : COLUMN_ROWS_PER_STEP;
        const to = Math.min(from + step, rowCount);
        const taken =
          byColumns === undefined
            ? whenThere(rowsTo(to), onRows)
            : onColumns(byColumns(context, from, to));
        from = to;
        return whenThere(taken, () => true);
      },
      close: () => undefined,
    };
  };
  return { rowCount, rows, open };
}

/** Returns the rows of a COPY, whose data arrives as bytes with the request. */
function copied(target: CopyTarget): InsertedRows {
  const open: InsertedRows["open"] = ({ context, onColumns, onRows, takesColumns }) => {
    const input = defined(context.copyInput, "COPY: statement has no data source");
    const sink = { onColumns: (batch: Batch) => onColumns(batch), onRows, takesColumns };
    return new CopyRows(target, { context, input, sink });
  };
  return { rowCount: undefined, rows: () => [], open };
}

function compileCell(
  cell: BoundCell,
  { position, runtime }: { runtime: TableRuntime; position: number },
): CellProgram {
  if (cell === "default") return (context) => runtime.defaultAt(position, context);
  return compileScalar(cell);
}

function queried(
  build: OperatorFactory,
  {
    rowOf,
    targets,
  }: { rowOf: (cells: Value[], context: ExecutionContext) => Row; targets: InsertPlan["targets"] },
): InsertedRows {
  const open: InsertedRows["open"] = (sink) => {
    const { elsewhere, onColumns, onRows, readsAhead, context, takesColumns } = sink;
    return sourceOf(rowsOf(build, { context, elsewhere }), context, {
      readsAhead: readsAhead && elsewhere !== undefined,
      takesColumns,
      onColumns: (batch) => onColumns(batch, targets),
      onRows: (batch, from, to) => {
        const rows: Row[] = [];
        const columns = batch.columns.slice(0, targets.length);
        for (let row = from; row < to; row += 1) {
          rows.push(
            rowOf(
              columns.map((column) => valueAt(column, row)),
              context,
            ),
          );
        }
        return onRows(rows);
      },
    });
  };
  return { rowCount: undefined, rows: () => [], open };
}

/**
 * Compiles an UPDATE statement.
 * @param build Builds the query that finds the rows.
 */
export function compileUpdate(update: UpdatePlan, build: OperatorFactory): CompiledChange {
  const runtime = runtimeOf(update.table);
  const returning = compileReturning(update.returning, runtime);
  const guard = compileGuard(update.guard, runtime);
  const columnCount = update.table.columns.length;
  const evaluations = holdingQueries(returning?.evaluation, ...(guard?.evaluations ?? []));
  const changesIn = (
    batch: Batch,
    { context, from, to }: { context: ExecutionContext; from: number; to: number },
  ): RowChange[] => {
    const changes: RowChange[] = [];
    for (let row = from; row < to; row += 1) {
      const before = cellsAt(batch, row, { from: 0, count: columnCount });
      const after = [...before];
      const beforeSeq = seqAt(batch, row, columnCount);
      let computed = columnCount + 1;
      for (const { isDefault, position } of update.sets) {
        if (isDefault) {
          after[position] = runtime.defaultAt(position, context);
        } else {
          const column = batch.columns[computed];
          after[position] = column === undefined ? null : valueAt(column, row);
          computed += 1;
        }
      }
      const carried = carriedAt(batch, row, { from: computed, returning: update.returning });
      changes.push({ operation: "update", row: after, before, beforeSeq, ...carried });
    }
    return changes;
  };
  const triggers = triggersOf(update.table);
  if (triggers !== undefined) {
    const events = [{ event: "update", setIds: idsAt(update.table, update.sets) } as const];
    const program: DmlProgram = (context, elsewhere) => {
      const options = { context, elsewhere, triggers, events, returning, guard };
      const change = new TriggeredChange(runtime, options);
      const onRows = (batch: Batch, from: number, to: number): void =>
        change.add(changesIn(batch, { context, from, to }));
      return writeTriggered(readRows(build, { context, elsewhere }, onRows), change);
    };
    return { program, evaluations };
  }
  const program: DmlProgram = (context, elsewhere) => {
    const writer = readingWriter(runtime, { context, elsewhere, returning, guard });
    const read = rowsOf(build, { context, elsewhere });
    const onRows = (batch: Batch, from: number, to: number): void | Promise<void> => {
      const changes = changesIn(batch, { context, from, to });
      const given = changes.map(({ row }) => row);
      const rows = runtime.completed(given, context);
      runtime.check(rows, context);
      return writer.add(rows === given ? changes : withRows(changes, rows));
    };
    const onColumns = (batch: Batch): void => {
      const { changed, rows } = updatedColumns(batch, update, { context, runtime });
      runtime.checkBatch(rows, context);
      writer.addColumns("update", changed, rows.rowCount);
    };
    const takesColumns = (): boolean => writer.takesColumns;
    const readsAhead = elsewhere !== undefined && guard?.holdsQuery === true;
    const sink = { readsAhead, takesColumns, onColumns, onRows };
    return writeFrom(sourceOf(read, context, sink), writer);
  };
  return { program, evaluations };
}

/** Returns changes in which the given rows replace the new rows. */
function withRows(changes: readonly RowChange[], rows: readonly Row[]): RowChange[] {
  return changes.map((change, i) => ({ ...change, row: rows[i] ?? change.row }));
}

/**
 * Compiles a DELETE statement.
 * @param build Builds the query that finds the rows.
 */
export function compileDelete(remove: DeletePlan, build: OperatorFactory): CompiledChange {
  const runtime = runtimeOf(remove.table);
  const returning = compileReturning(remove.returning, runtime);
  const columnCount = remove.table.columns.length;
  const evaluations = holdingQueries(returning?.evaluation);
  const changesIn = (batch: Batch, start: number, to: number): RowChange[] => {
    const changes: RowChange[] = [];
    for (let row = start; row < to; row += 1) {
      const before = cellsAt(batch, row, { from: 0, count: columnCount });
      const beforeSeq = seqAt(batch, row, columnCount);
      const from = columnCount + 1;
      const carried = carriedAt(batch, row, { from, returning: remove.returning });
      changes.push({ operation: "delete", row: before, before, beforeSeq, ...carried });
    }
    return changes;
  };
  const triggers = triggersOf(remove.table);
  if (triggers !== undefined) {
    const events = [{ event: remove.isTruncation ? "truncate" : "delete" } as const];
    const program: DmlProgram = (context, elsewhere) => {
      const options = { context, elsewhere, triggers, events, returning, guard: undefined };
      const change = new TriggeredChange(runtime, options);
      const onRows = (batch: Batch, from: number, to: number): void =>
        change.add(changesIn(batch, from, to));
      return writeTriggered(readRows(build, { context, elsewhere }, onRows), change);
    };
    return { program, evaluations };
  }
  const program: DmlProgram = (context, elsewhere) => {
    const writer = readingWriter(runtime, { context, elsewhere, returning, guard: undefined });
    const read = rowsOf(build, { context, elsewhere });
    const onRows = (batch: Batch, start: number, to: number): void | Promise<void> =>
      writer.add(changesIn(batch, start, to));
    const onColumns = (batch: Batch): void => {
      writer.addColumns("delete", deletedColumns(batch, runtime));
    };
    const takesColumns = (): boolean => writer.takesColumns;
    return writeFrom(sourceOf(read, context, { takesColumns, onColumns, onRows }), writer);
  };
  return { program, evaluations };
}

/**
 * Returns the source of a change with triggers. It reads all rows before the first trigger fires.
 */
export function readRows(
  build: OperatorFactory,
  { context, elsewhere }: EvaluationPlace,
  onRows: (batch: Batch, from: number, to: number) => void,
): ChangeSource {
  return sourceOf(rowsOf(build, { context, elsewhere }), context, {
    takesColumns: () => false,
    onColumns: () => undefined,
    onRows,
  });
}

/** Returns the program for a change that first reads the rows that it replaces. */
export function readingWriter(
  runtime: TableRuntime,
  options: EvaluationPlace & Pick<WriterOptions, "guard" | "returning">,
): ChangeWriter {
  const { guard, returning } = options;
  const used = holdingQueries(returning?.evaluation, ...(guard?.evaluations ?? []));
  const mayTakeLong = used.length > 0;
  return new ChangeWriter(runtime, { ...options, isBlind: false, mayTakeLong });
}

export function seqAt({ columns }: Batch, row: number, columnCount: number): Value {
  const column = columns[columnCount];
  return column === undefined ? null : valueAt(column, row);
}

export function cellsAt(
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

/**
 * Returns the values that RETURNING needs in addition to the changed row; undefined if it needs
 * none.
 */
function carriedAt(
  batch: Batch,
  row: number,
  { from, returning }: { from: number; returning: BoundReturning | undefined },
): Pick<RowChange, "carried"> | undefined {
  const count = returning?.carried.length ?? 0;
  return count === 0 ? undefined : { carried: cellsAt(batch, row, { from, count }) };
}
