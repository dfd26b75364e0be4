/**
 * Represents the changes of a long-running statement as whole columns, because creating an object
 * per row would take longer than everything else.
 *
 * Each function turns the rows that were read into the rows to write, with all columns of the
 * table. Columns are represented in forms that the log and the memtables can copy without
 * examining each value.
 */
import { defined } from "../../../base/assert.ts";
import {
  areEqualTexts,
  type Batch,
  constVector,
  type DataType,
  isNullAt,
  keepRows,
  physicalKind,
  textSourceOf,
  UNKNOWN,
  type Utf8Vector,
  type Vector,
  valueAt,
  valuesOf,
  vectorFromTexts,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { UpdatePlan } from "../../plan/dml_plan.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { sameValue } from "../context/transaction.ts";

/** The rows to write, and the seqs of the row versions that they replace. */
export interface ReplacingColumns {
  readonly batch: Batch;
  readonly replacedSeqs: ArrayLike<number>;
}

/**
 * Returns the rows that an INSERT writes: the given values, and defaults for all other columns.
 *
 * @param positions The table positions of the given columns; undefined if all columns are given in
 *   order.
 */
export function insertedColumns(
  { columns, rowCount }: Batch,
  positions: readonly number[] | undefined,
  { context, runtime }: { context: ExecutionContext; runtime: TableRuntime },
): Batch {
  const whole = runtime.types.map((type, position) => {
    const source = columns[positions === undefined ? position : positions.indexOf(position)];
    const given = source ?? defaultColumn(position, rowCount, { context, runtime });
    return storable(given, type);
  });
  return { rowCount, columns: whole };
}

/**
 * Returns the rows as they are after an UPDATE, and marks the rows that the UPDATE actually
 * changes.
 */
export function updatedColumns(
  { columns, rowCount }: Batch,
  { sets }: Pick<UpdatePlan, "sets">,
  { context, runtime }: { context: ExecutionContext; runtime: TableRuntime },
): { readonly rows: Batch; readonly changed: ReplacingColumns } {
  const columnCount = runtime.types.length;
  const after = columns.slice(0, columnCount);
  // The computed columns come after the stored columns and the seq column.
  let computed = columnCount + 1;
  for (const { isDefault, position } of sets) {
    const type = runtime.types[position] ?? UNKNOWN;
    if (isDefault) {
      after[position] = storable(defaultColumn(position, rowCount, { context, runtime }), type);
    } else {
      after[position] = storable(columns[computed] ?? constVector(null, rowCount), type);
      computed += 1;
    }
  }
  const rows = { rowCount, columns: after };
  const differs = new Uint8Array(rowCount);
  for (const { position } of sets) {
    noteDifferences(columns[position], after[position], differs);
  }
  const places = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) {
    places[count] = row;
    count += differs[row] ?? 0;
  }
  const kept = { rows: places, count };
  const seqs = keepRows({ rowCount, columns: columns.slice(columnCount, columnCount + 1) }, kept);
  return { rows, changed: { batch: keepRows(rows, kept), replacedSeqs: seqsOf(seqs.columns[0]) } };
}

/** Returns the rows that a DELETE removes. */
export function deletedColumns(
  { columns, rowCount }: Batch,
  { types }: TableRuntime,
): ReplacingColumns {
  const stored = types.map((type, position) =>
    storable(columns[position] ?? constVector(null, rowCount), type),
  );
  return {
    batch: { rowCount, columns: stored },
    replacedSeqs: seqsOf(columns[types.length]),
  };
}

/** Returns the values of `_seq` as numbers. */
function seqsOf(column: Vector | undefined): ArrayLike<number> {
  const vector = defined(column, "UPDATE or DELETE: source query does not return _seq");
  if (vector.kind === "f64") return vector.values.subarray(0, vector.length);
  return valuesOf(vector).map(Number);
}

/** Sets the flag of a row to 1 if the two vectors differ in that row. */
function noteDifferences(
  before: Vector | undefined,
  after: Vector | undefined,
  differs: Uint8Array,
): void {
  if (before === undefined || after === undefined) return void differs.fill(1);
  const isSame = comparison(before, after);
  for (let row = 0; row < differs.length; row += 1) {
    if (differs[row] === 0 && !isSame(row)) differs[row] = 1;
  }
}

/** Returns a function that tests whether two vectors have different values in a row. */
function comparison(before: Vector, after: Vector): (row: number) => boolean {
  if (before.kind === "utf8" && after.kind === "utf8") return textComparison(before, after);
  if (before.kind === "f64" && after.kind === "f64" && !before.nulls && !after.nulls) {
    const { values } = before;
    const others = after.values;
    return (row) => Object.is(values[row], others[row]);
  }
  if (before.kind === "i32" && after.kind === "i32" && !before.nulls && !after.nulls) {
    const { values } = before;
    const others = after.values;
    return (row) => values[row] === others[row];
  }
  return (row) => sameValue(valueAt(before, row), valueAt(after, row));
}

function textComparison(before: Utf8Vector, after: Utf8Vector): (row: number) => boolean {
  const from = textSourceOf(before.bytes);
  const { view } = textSourceOf(after.bytes);
  return (row) => {
    if (isNullAt(before, row) || isNullAt(after, row)) {
      return isNullAt(before, row) && isNullAt(after, row);
    }
    const start = before.offsets[row] ?? 0;
    const end = before.offsets[row + 1] ?? start;
    const otherStart = after.offsets[row] ?? 0;
    if ((after.offsets[row + 1] ?? otherStart) - otherStart !== end - start) return false;
    return areEqualTexts(from, { start, end }, view, otherStart);
  };
}

function defaultColumn(
  position: number,
  rowCount: number,
  { context, runtime }: { context: ExecutionContext; runtime: TableRuntime },
): Vector {
  if (!runtime.hasDefault(position)) return constVector(null, rowCount);
  const values = Array.from({ length: rowCount }, () => runtime.defaultAt(position, context));
  return vectorFromValues(runtime.types[position] ?? UNKNOWN, values);
}

/**
 * Returns a column of numbers or strings as typed arrays. Any other column is returned unchanged.
 */
function storable(vector: Vector, type: DataType): Vector {
  const { kind } = vector;
  if (kind !== "const" && kind !== "dict" && kind !== "any") return vector;
  if (physicalKind(type) !== "any") return vectorFromValues(type, valuesOf(vector));
  return vectorFromTexts(valuesOf(vector)) ?? vector;
}
