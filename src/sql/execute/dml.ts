/**
 * Runs INSERT, UPDATE and DELETE: rows in, checked changes out, RETURNING rows back.
 *
 * Each compiled statement is a function that runs within one turn of the event loop.
 */
import { DatabaseError } from "../../base/errors.ts";
import { type Batch, type Row, type Value, valueAt } from "../../types/mod.ts";
import type { BoundConflict } from "../bind/conflict_binder.ts";
import type { BoundReturning } from "../bind/dml_binder.ts";
import type { BoundCell } from "../bind/dml_target.ts";
import type { DeletePlan, InsertPlan, UpdatePlan } from "../plan/dml_plan.ts";
import type { QueryPlan } from "../plan/outputs.ts";
import { buildPlan, layoutOf } from "./build.ts";
import {
  type Applied,
  applyChanges,
  duplicateKey,
  insertColumns,
  insertRows,
  type RowChange,
  storedRowWithSeq,
} from "./changes.ts";
import { compileExpression, compileScalar, selectRows } from "./expression.ts";
import { columnsFromRows, rowsFromBatch } from "./filter.ts";
import { literalColumns } from "./literal_rows.ts";
import { drainNow } from "./operator.ts";
import { compileReturning, type Returning, returnRows } from "./returning.ts";
import type { Run } from "./run.ts";
import { ownerOf } from "./scan.ts";
import { runtimeOf, type TableRuntime } from "./table_runtime.ts";
import { keyTextOf } from "./transaction.ts";

export interface DmlOutcome {
  /** Rows affected. */
  readonly rowCount: number;
  readonly applied: Applied;
  /** Of RETURNING. */
  readonly returned: Batch | undefined;
}

export type DmlProgram = (run: Run) => DmlOutcome;

type CellProgram = (run: Run) => Value;

/** Compiles INSERT. */
export function compileInsert(insert: InsertPlan): DmlProgram {
  const runtime = runtimeOf(insert.table);
  const source = compileSource(insert, runtime);
  const conflict =
    insert.conflict === undefined ? undefined : compileConflict(insert.conflict, runtime);
  const returning = compileReturning(insert.returning, runtime);
  const columns =
    insert.source.kind === "literals" && conflict === undefined && returning === undefined
      ? literalColumns(insert.source.literals, { runtime, targets: insert.targets })
      : undefined;
  return (run) => {
    const isPlain = run.uploads === undefined && run.transaction === undefined;
    if (columns !== undefined && isPlain) {
      const batch = columns(run);
      runtime.checkBatch(batch, run);
      const applied = insertColumns(runtime, batch, run);
      return { rowCount: batch.rowCount, applied, returned: undefined };
    }
    const rows = source(run);
    runtime.check(rows, run);
    if (conflict !== undefined) return finish(runtime, conflict(rows, run), { run, returning });
    if (returning === undefined && isPlain) {
      const applied = insertRows(runtime, rows, run);
      return { rowCount: rows.length, applied, returned: undefined };
    }
    const changes = rows.map((row): RowChange => ({ operation: "insert", row, before: undefined }));
    return finish(runtime, changes, { run, returning });
  };
}

/** Makes whole rows of a table: given values, and defaults for the rest. */
function compileSource(
  { source, table, targets }: InsertPlan,
  runtime: TableRuntime,
): (run: Run) => Row[] {
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
      const programs = source.rows.map((row) =>
        row.map((cell, i) => compileCell(cell, { runtime, position: targets[i] ?? 0 })),
      );
      return (run) => {
        const rows: Row[] = [];
        for (const program of programs) {
          const cells: Value[] = [];
          for (const cell of program) cells.push(cell(run));
          rows.push(rowOf(cells, run));
        }
        return rows;
      };
    }
    case "literals": {
      const columns = literalColumns(source.literals, { runtime, targets });
      return (run) => rowsFromBatch(columns(run));
    }
    case "query":
      return queryRows(source.query, rowOf);
  }
}

function compileCell(
  cell: BoundCell,
  { position, runtime }: { runtime: TableRuntime; position: number },
): CellProgram {
  if (cell === "default") return (run) => runtime.defaultAt(position, run);
  return compileScalar(cell);
}

function queryRows(plan: QueryPlan, rowOf: (cells: Value[], run: Run) => Row): (run: Run) => Row[] {
  const build = buildPlan(plan.root);
  return (run) => {
    const rows: Row[] = [];
    const onBatch = (batch: Batch): void => {
      for (let row = 0; row < batch.rowCount; row += 1) {
        const cells = batch.columns
          .slice(0, plan.outputCount)
          .map((column) => valueAt(column, row));
        rows.push(rowOf(cells, run));
      }
    };
    drainNow(build(run), { run, onBatch });
    return rows;
  };
}

type ConflictProgram = (rows: readonly Row[], run: Run) => RowChange[];

function compileConflict(conflict: BoundConflict, runtime: TableRuntime): ConflictProgram {
  const layout = layoutOf(conflict.columns);
  const where =
    conflict.where === undefined ? undefined : compileExpression(conflict.where, layout);
  const sets = conflict.sets.map(({ position, value }) => ({
    position,
    evaluate: value === "default" ? undefined : compileExpression(value, layout),
  }));
  const types = conflict.columns.map(({ type }) => type);

  return (rows, run) => {
    const changes: RowChange[] = [];
    const touched = new Set<string>();
    for (const row of rows) {
      const key = runtime.keyOf(row);
      const keyText = keyTextOf(runtime.keyTypes, key);
      const isRepeated = touched.has(keyText);
      const stored = storedRowWithSeq(runtime, key, run);
      const before = stored?.slice(0, -1);
      const beforeSeq = stored?.at(-1) ?? null;
      if (conflict.action === "nothing") {
        if (isRepeated || before !== undefined) continue;
      } else if (isRepeated) {
        throw new DatabaseError(
          "CARDINALITY_VIOLATION",
          `${duplicateKey(runtime, key).message} in the same statement`,
        );
      }
      touched.add(keyText);
      if (before === undefined) {
        changes.push({ operation: "insert", row, before });
        continue;
      }
      const updated = updatedRow({ before, beforeSeq, proposed: row }, run);
      if (updated !== undefined) {
        runtime.check([updated], run);
        changes.push({ operation: "update", row: updated, before, beforeSeq });
      }
    }
    return changes;
  };

  function updatedRow(
    { before, beforeSeq, proposed }: { before: Row; beforeSeq: Value; proposed: Row },
    run: Run,
  ): Row | undefined {
    // Stored values, `_seq` and `_deleted` of the stored row, proposed values.
    const batch: Batch = {
      rowCount: 1,
      columns: columnsFromRows([[...before, beforeSeq, false, ...proposed]], types),
    };
    if (where !== undefined && selectRows(where(batch, run), 1).count === 0) return undefined;
    const row = [...before];
    for (const { evaluate, position } of sets) {
      row[position] =
        evaluate === undefined
          ? runtime.defaultAt(position, run)
          : valueAt(evaluate(batch, run), 0);
    }
    return row;
  }
}

/** Compiles UPDATE. */
export function compileUpdate(update: UpdatePlan): DmlProgram {
  const runtime = runtimeOf(update.table);
  const build = buildPlan(update.rows.root);
  const returning = compileReturning(update.returning, runtime);
  const columnCount = update.table.columns.length;
  return (run) => {
    const changes: RowChange[] = [];
    const onBatch = (batch: Batch): void => {
      const rows: Row[] = [];
      for (let row = 0; row < batch.rowCount; row += 1) {
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
    };
    drainNow(build(run), { run, onBatch });
    return finish(runtime, changes, { run, returning });
  };
}

/** Compiles DELETE. */
export function compileDelete(remove: DeletePlan): DmlProgram {
  const runtime = runtimeOf(remove.table);
  const build = buildPlan(remove.rows.root);
  const returning = compileReturning(remove.returning, runtime);
  const columnCount = remove.table.columns.length;
  const isKeyless = remove.table.primaryKey.length === 0;
  return (run) => {
    const changes: RowChange[] = [];
    const onBatch = (batch: Batch): void => {
      for (let row = 0; row < batch.rowCount; row += 1) {
        const before = cellsAt(batch, row, { from: 0, count: columnCount });
        const beforeSeq = isKeyless ? seqAt(batch, row, columnCount) : null;
        const from = columnCount + (isKeyless ? 1 : 0);
        const carried = carriedAt(batch, row, { from, returning: remove.returning });
        changes.push({ operation: "delete", row: before, before, beforeSeq, ...carried });
      }
    };
    drainNow(build(run), { run, onBatch });
    return finish(runtime, changes, { run, returning });
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

function finish(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  { returning, run }: { run: Run; returning: Returning | undefined },
): DmlOutcome {
  const wantsSeqs = returning?.readsSystemColumns === true;
  // What RETURNING raises must keep the rows from being written, so it is evaluated before; the
  // values of `_seq` are known only after, and make a second pass.
  let returned =
    returning === undefined ? undefined : returnRows(returning, changes, { run, seqs: [] });
  if (run.uploads !== undefined) recordUploads(runtime, changes, run);
  const applied = applyChanges(runtime, changes, { run, wantsSeqs });
  if (returning !== undefined && wantsSeqs) {
    returned = returnRows(returning, changes, { run, seqs: applied.seqs });
  }
  return { rowCount: changes.length, applied, returned };
}

function recordUploads(runtime: TableRuntime, changes: readonly RowChange[], run: Run): void {
  const rows = changes.flatMap(({ operation, row }) => (operation === "delete" ? [] : [row]));
  const { filePositions, table } = runtime;
  const target = {
    table,
    owner: ownerOf(run.principal, table),
    filePositions,
    keyOf: (row: Row) => runtime.keyOf(row),
  };
  run.uploads?.record(target, rows, run.call.nowMicros / 1000);
}
