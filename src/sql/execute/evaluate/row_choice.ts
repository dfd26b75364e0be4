/** Selects the rows of a batch for which an operand is evaluated. */
import {
  type Batch,
  constVector,
  type Selection,
  take,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";

/** Returns the rows for which AND or OR is still undecided. */
export function openRows(truth: Vector, settling: boolean, rowCount: number): Selection {
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (valueAt(truth, row) === settling) continue;
    rows[count] = row;
    count += 1;
  }
  return { rows, count };
}

/**
 * Stores the truth values of the chosen rows in the result. All other rows have already been
 * decided.
 */
export function scatter(
  values: Vector | undefined,
  { rows, count }: Selection,
  rowCount: number,
  settled: boolean,
): Vector {
  const all: Value[] = Array.from({ length: rowCount }, () => settled);
  if (values !== undefined) {
    for (let i = 0; i < count; i += 1) all[rows[i] ?? 0] = valueAt(values, i);
  }
  return { kind: "any", length: rowCount, values: all };
}

/** Returns a selection of all rows of a batch. */
export function allRows(rowCount: number): Selection {
  const rows = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) rows[row] = row;
  return { rows, count: rowCount };
}

/** Divides rows according to their truth values, preserving the order of the rows. */
export function split(rows: Selection, truth: Vector): { chosen: Selection; rest: Selection } {
  const chosen = new Uint32Array(rows.count);
  const rest = new Uint32Array(rows.count);
  let chosenCount = 0;
  let restCount = 0;
  if (truth.kind === "bool") {
    const { nulls, values } = truth;
    for (let i = 0; i < rows.count; i += 1) {
      const row = rows.rows[i] ?? 0;
      const isTrue = values[i] === 1 && nulls?.[i] !== 1 ? 1 : 0;
      chosen[chosenCount] = row;
      chosenCount += isTrue;
      rest[restCount] = row;
      restCount += 1 - isTrue;
    }
    return {
      chosen: { rows: chosen, count: chosenCount },
      rest: { rows: rest, count: restCount },
    };
  }
  for (let i = 0; i < rows.count; i += 1) {
    const row = rows.rows[i] ?? 0;
    if (valueAt(truth, i) === true) {
      chosen[chosenCount] = row;
      chosenCount += 1;
    } else {
      rest[restCount] = row;
      restCount += 1;
    }
  }
  return {
    chosen: { rows: chosen, count: chosenCount },
    rest: { rows: rest, count: restCount },
  };
}

const NO_VALUES: Vector = constVector(null, 0);

/**
 * Returns the chosen rows of the columns that an expression reads. Columns that the expression
 * does not read are left empty.
 */
export function takeColumns(batch: Batch, rows: Selection, needed: ReadonlySet<number>): Batch {
  // The selected rows are distinct and in ascending order, so a selection with as many rows as the
  // batch is the whole batch.
  if (rows.count === batch.rowCount) return batch;
  const columns = batch.columns.map((column, position) =>
    needed.has(position) ? take(column, rows) : NO_VALUES,
  );
  return { rowCount: rows.count, columns };
}
