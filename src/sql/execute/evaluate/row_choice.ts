/**
 * Selects the rows of a batch for which an operand is evaluated, and stores the operand's values
 * in the result.
 */
import {
  type Batch,
  constVector,
  type Selection,
  take,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";

/** The maximum number of different codes in one byte. */
const CODES_MAX = 255;

/** Returns the rows whose truth value is still undecided. */
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
 * Stores the truth values of the chosen rows in the result. All other rows are already decided.
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

/** Stores computed values in the results of the rows for which they were computed. */
export function place(results: Value[], values: Vector, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) results[rows[i] ?? 0] = valueAt(values, i);
}

/** Values, with the rows for which they were computed. */
export interface Answered {
  readonly rows: Selection;
  readonly values: Vector;
}

/**
 * Represents the results as a dictionary, provided that each branch has the same value for all of
 * its rows. Rows that belong to no branch are NULL. Returns undefined if a branch yields several
 * values.
 */
export function placedConstants(
  answers: readonly Answered[],
  rowCount: number,
): Vector | undefined {
  if (answers.length >= CODES_MAX) return undefined;
  const values: Value[] = [];
  const codes = new Uint8Array(rowCount).fill(CODES_MAX);
  let placed = 0;
  for (const answer of answers) {
    if (answer.values.kind !== "const") return undefined;
    const { value } = answer.values;
    if (value === null) continue;
    const { rows, count } = answer.rows;
    const code = values.push(value) - 1;
    for (let i = 0; i < count; i += 1) codes[rows[i] ?? 0] = code;
    placed += count;
  }
  if (placed === 0) return constVector(null, rowCount);
  if (placed === rowCount) {
    return { kind: "dict", length: rowCount, codes, values, nulls: undefined };
  }
  const nulls = new Uint8Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) {
    if (codes[row] !== CODES_MAX) continue;
    codes[row] = 0;
    nulls[row] = 1;
  }
  return { kind: "dict", length: rowCount, codes, values, nulls };
}

const NO_VALUES: Vector = constVector(null, 0);

/**
 * Returns the chosen rows of the columns that an expression reads. The other columns are left
 * empty.
 */
export function takeColumns(batch: Batch, rows: Selection, needed: ReadonlySet<number>): Batch {
  // The chosen rows are in ascending order, so a selection of this size contains all rows.
  if (rows.count === batch.rowCount) return batch;
  const columns = batch.columns.map((column, position) =>
    needed.has(position) ? take(column, rows) : NO_VALUES,
  );
  return { rowCount: rows.count, columns };
}
