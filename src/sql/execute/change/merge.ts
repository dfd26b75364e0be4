/**
 * Compiles MERGE. For each source row, the query yields the matching target row, the index of the
 * WHEN clause that applies, and the values that this clause writes.
 *
 * A target row can be changed only once. A second change would be based on the row before the
 * first change, so it is an error.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type Batch, type Row, type Value, valueAt } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import type { BoundMergeClause, MergedCell } from "../../bind/change/merge_binder.ts";
import type { MergePlan } from "../../plan/dml_plan.ts";
import { runtimeOf, type TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { OperatorFactory } from "../context/operator.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { type DmlProgram, writeFrom } from "./change_writer.ts";
import { TouchedKeys } from "./conflict.ts";
import {
  type CompiledChange,
  cellsAt,
  holdingQueries,
  idsAt,
  readingWriter,
  readRows,
  seqAt,
} from "./dml.ts";
import { type StatementEvent, triggersOf } from "./fired_triggers.ts";
import { rowsOf, sourceOf } from "./read_source.ts";
import { compileReturning } from "./returning.ts";
import { completedChanges, type RowChange } from "./row_changes.ts";
import { compileGuard } from "./row_guard.ts";
import { TriggeredChange, writeTriggered } from "./triggered_change.ts";

/**
 * Compiles MERGE.
 * @param build Builds the query that finds the rows to change.
 */
export function compileMerge(merge: MergePlan, build: OperatorFactory): CompiledChange {
  const runtime = runtimeOf(merge.table);
  const returning = compileReturning(merge.returning, runtime);
  const guard = compileGuard(merge.guard, runtime);
  const changeAt = compileChangeAt(merge, runtime);
  const triggers = triggersOf(merge.table);
  const changesIn = (
    batch: Batch,
    { context, from, to }: { context: ExecutionContext; from: number; to: number },
    changed: TouchedKeys,
  ): RowChange[] => {
    const changes: RowChange[] = [];
    for (let row = from; row < to; row += 1) {
      const change = changeAt(batch, row, context);
      if (change === undefined) continue;
      if (change.before !== undefined) requireFirst(change.before, changed, runtime);
      changes.push(change);
    }
    return changes;
  };
  const evaluations = holdingQueries(returning?.evaluation, ...(guard?.evaluations ?? []));
  if (triggers !== undefined) {
    const events = eventsOf(merge);
    const program: DmlProgram = (context, elsewhere) => {
      const options = { context, elsewhere, triggers, events, returning, guard };
      const change = new TriggeredChange(runtime, options);
      const changed = new TouchedKeys();
      const onRows = (batch: Batch, from: number, to: number): void =>
        change.add(changesIn(batch, { context, from, to }, changed));
      return writeTriggered(readRows(build, { context, elsewhere }, onRows), change);
    };
    return { program, evaluations };
  }
  const program: DmlProgram = (context, elsewhere) => {
    const writer = readingWriter(runtime, { context, elsewhere, returning, guard });
    const changed = new TouchedKeys();
    const onRows = (batch: Batch, from: number, to: number): void | Promise<void> => {
      const changes = changesIn(batch, { context, from, to }, changed);
      return writer.add(completedChanges(changes, runtime, context));
    };
    const source = sourceOf(rowsOf(build, { context, elsewhere }), context, {
      readsAhead: elsewhere !== undefined && guard?.holdsQuery === true,
      takesColumns: () => false,
      onColumns: () => undefined,
      onRows,
    });
    return writeFrom(source, writer);
  };
  return { program, evaluations };
}

/** Returns the events that the clauses of a MERGE may cause. */
function eventsOf({ clauses, table }: MergePlan): StatementEvent[] {
  const of = (action: BoundMergeClause["action"]): readonly BoundMergeClause[] =>
    clauses.filter((clause) => clause.action === action);
  const sets = of("update").flatMap(({ cells }) => cells);
  return [
    ...(of("insert").length > 0 ? [{ event: "insert" } as const] : []),
    ...(of("update").length > 0 ? [{ event: "update", setIds: idsAt(table, sets) } as const] : []),
    ...(of("delete").length > 0 ? [{ event: "delete" } as const] : []),
  ];
}

type ChangeAt = (batch: Batch, row: number, context: ExecutionContext) => RowChange | undefined;

/**
 * Compiles a function that returns the change required by a row of the query; undefined if the row
 * requires no change.
 */
function compileChangeAt(merge: MergePlan, runtime: TableRuntime): ChangeAt {
  const columnCount = merge.table.columns.length;
  const chosenAt = columnCount + 1;
  const valuesAt = chosenAt + 1;
  const carriedAt = valuesAt + merge.valueCount;
  const carriedCount = merge.returning?.carried.length ?? 0;
  const readCount = carriedCount - (merge.carriesAction ? 1 : 0);
  const carriedOf = (
    batch: Batch,
    row: number,
    action: string,
  ): Pick<RowChange, "carried"> | undefined => {
    if (carriedCount === 0) return undefined;
    const read = cellsAt(batch, row, { from: carriedAt, count: readCount });
    return { carried: merge.carriesAction ? [...read, action.toUpperCase()] : read };
  };
  return (batch, row, context) => {
    const clause = clauseAt(merge.clauses, batch.columns[chosenAt], row);
    if (clause === undefined || clause.action === "nothing") return undefined;
    const { action, cells } = clause;
    const carried = carriedOf(batch, row, action);
    const write = (into: Value[]): Row =>
      written(into, cells, { batch, context, row, runtime, valuesAt });
    if (action === "insert") {
      const fresh = runtime.types.map((_, position) =>
        cells.some((cell) => cell.position === position)
          ? null
          : runtime.defaultAt(position, context),
      );
      return { operation: "insert", row: write(fresh), before: undefined, ...carried };
    }
    const before = cellsAt(batch, row, { from: 0, count: columnCount });
    const after = action === "delete" ? before : write([...before]);
    const beforeSeq = seqAt(batch, row, columnCount);
    return { operation: action, row: after, before, beforeSeq, ...carried };
  };
}

function clauseAt(
  clauses: readonly BoundMergeClause[],
  chosen: Batch["columns"][number] | undefined,
  row: number,
): BoundMergeClause | undefined {
  const index = chosen === undefined ? null : valueAt(chosen, row);
  return index === null ? undefined : clauses[Number(index)];
}

interface WrittenFrom {
  readonly batch: Batch;
  readonly row: number;
  readonly valuesAt: number;
  readonly runtime: TableRuntime;
  readonly context: ExecutionContext;
}

/** Writes the cells that a WHEN clause sets into `into`, and returns `into`. */
function written(
  into: Value[],
  cells: readonly MergedCell[],
  { batch, context, row, runtime, valuesAt }: WrittenFrom,
): Row {
  for (const { position, value } of cells) {
    const column = value === undefined ? undefined : batch.columns[valuesAt + value];
    into[position] =
      column === undefined ? runtime.defaultAt(position, context) : valueAt(column, row);
  }
  return into;
}

/**
 * Refuses to change the same target row twice.
 * @throws {DatabaseError} CARDINALITY_VIOLATION
 */
function requireFirst(before: Row, changed: TouchedKeys, runtime: TableRuntime): void {
  if (changed.add(keyTextOf(runtime.keyTypes, runtime.keyOf(before)))) return;
  throw new DatabaseError(
    "CARDINALITY_VIOLATION",
    `Cannot change a row of ${nameOf(runtime.table)} twice in the same MERGE: several source ` +
      "rows match it",
    { hint: "make sure that at most one source row matches each row of the target" },
  );
}
