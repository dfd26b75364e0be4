/**
 * Changes of a long statement as whole columns. To make an object of each row takes longer than all
 * else that is done with it.
 *
 * Each function turns the rows that were read into those that are written, with every column of the
 * table. Columns have the forms that the log and memtables copy without looking at each value.
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
import type { Run } from "../run/run.ts";
import { sameValue } from "../run/transaction.ts";

/** Rows that replace versions with these seqs. */
export interface ReplacingColumns {
  readonly batch: Batch;
  readonly replacedSeqs: ArrayLike<number>;
}

/**
 * The rows of an INSERT: its values, and defaults for the rest.
 *
 * @param positions Those of its columns in the table; undefined if it has all of them, in order.
 */
export function insertedColumns(
  { columns, rowCount }: Batch,
  positions: readonly number[] | undefined,
  { run, runtime }: { run: Run; runtime: TableRuntime },
): Batch {
  const whole = runtime.types.map((type, position) => {
    const source = columns[positions === undefined ? position : positions.indexOf(position)];
    const given = source ?? defaultColumn(position, rowCount, { run, runtime });
    return storable(given, type);
  });
  return { rowCount, columns: whole };
}

/** The rows as an UPDATE leaves them, and those of them that it changes. */
export function updatedColumns(
  { columns, rowCount }: Batch,
  { sets }: Pick<UpdatePlan, "sets">,
  { run, runtime }: { run: Run; runtime: TableRuntime },
): { readonly rows: Batch; readonly changed: ReplacingColumns } {
  const columnCount = runtime.types.length;
  const after = columns.slice(0, columnCount);
  // Behind the stored columns there is the seq.
  let computed = columnCount + 1;
  for (const { isDefault, position } of sets) {
    const type = runtime.types[position] ?? UNKNOWN;
    if (isDefault) {
      after[position] = storable(defaultColumn(position, rowCount, { run, runtime }), type);
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

/** The rows that a DELETE finds. */
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

/** The column that holds `_seq`. */
function seqsOf(column: Vector | undefined): ArrayLike<number> {
  const vector = defined(column, "an UPDATE and a DELETE read the seq of each row");
  if (vector.kind === "f64") return vector.values.subarray(0, vector.length);
  return valuesOf(vector).map(Number);
}

/** Notes with a 1 each row whose value is another one afterwards. */
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

/** Whether both have the same value in a row. */
function comparison(before: Vector, after: Vector): (row: number) => boolean {
  if (before.kind === "utf8" && after.kind === "utf8") return textComparison(before, after);
  if (before.kind === "f64" && after.kind === "f64" && !before.nulls && !after.nulls) {
    const { values } = before;
    const others = after.values;
    return (row) => values[row] === others[row];
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
  { run, runtime }: { run: Run; runtime: TableRuntime },
): Vector {
  if (!runtime.hasDefault(position)) return constVector(null, rowCount);
  const values = Array.from({ length: rowCount }, () => runtime.defaultAt(position, run));
  return vectorFromValues(runtime.types[position] ?? UNKNOWN, values);
}

/** The values of a column of numbers or texts in typed arrays; any other is as it was. */
function storable(vector: Vector, type: DataType): Vector {
  const { kind } = vector;
  if (kind !== "const" && kind !== "dict" && kind !== "any") return vector;
  if (physicalKind(type) !== "any") return vectorFromValues(type, valuesOf(vector));
  return vectorFromTexts(valuesOf(vector)) ?? vector;
}
