/**
 * Which rows of a batch an operand is evaluated on, and where its values go.
 */
import { type Selection, type Value, type Vector, valueAt } from "../../types/mod.ts";

/** Rows whose truth is not settled yet. */
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

/** Puts the values of chosen rows back in place; the others are settled already. */
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

/** All rows of a batch. */
export function allRows(rowCount: number): Selection {
  const rows = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) rows[row] = row;
  return { rows, count: rowCount };
}

/** Divides rows by a truth value for each of them, in order. */
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

/** Puts values into the rows they were computed for. */
export function place(results: Value[], values: Vector, { rows, count }: Selection): void {
  for (let i = 0; i < count; i += 1) results[rows[i] ?? 0] = valueAt(values, i);
}
