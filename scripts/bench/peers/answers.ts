/**
 * Compares the rows returned by two engines. Numbers may arrive as strings and be rounded
 * differently, and rows with equal sort keys may arrive in any order.
 */

export type Rows = readonly (readonly unknown[])[];

/**
 * The maximum relative difference between two numbers that count as equal. Engines divide decimals
 * to different numbers of digits.
 */
const TOLERANCE = 1e-5;

/** Describes the first difference between two results. Returns undefined if they are equal. */
export function differenceOf(expected: Rows, actual: Rows): string | undefined {
  if (expected.length !== actual.length) {
    return `${actual.length} rows instead of ${expected.length}`;
  }
  if (firstDifference(expected, actual) === undefined) return undefined;
  return firstDifference(sorted(expected), sorted(actual));
}

function firstDifference(expected: Rows, actual: Rows): string | undefined {
  for (const [index, row] of expected.entries()) {
    const other = actual[index] ?? [];
    const isSame =
      row.length === other.length && row.every((cell, position) => isEqual(cell, other[position]));
    if (!isSame) return `row ${index + 1}: ${textOf(other)} instead of ${textOf(row)}`;
  }
  return undefined;
}

function isEqual(left: unknown, right: unknown): boolean {
  if (left === null || right === null) return left === right;
  const [a, b] = [plain(left), plain(right)];
  if (a === b) return true;
  const [x, y] = [Number(a), Number(b)];
  if (!Number.isFinite(x) || !Number.isFinite(y)) return false;
  return Math.abs(x - y) <= TOLERANCE * Math.max(1, Math.abs(x), Math.abs(y));
}

function plain(cell: unknown): string {
  return cell instanceof Date ? cell.toISOString().slice(0, 10) : String(cell);
}

/**
 * Sorts rows by their cells. Fractions are rounded to four digits for this, because engines round
 * them differently.
 */
function sorted(rows: Rows): Rows {
  return rows
    .map((row) => ({ row, key: keyOf(row) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ row }) => row);
}

function keyOf(row: readonly unknown[]): string {
  return row
    .map(plain)
    .map((cell) => (/^-?\d*\.\d+$/.test(cell) ? Number(cell).toPrecision(4) : cell))
    .join("|");
}

function textOf(row: readonly unknown[]): string {
  return `(${row.map((cell) => (cell === null ? "NULL" : plain(cell))).join(", ")})`;
}
