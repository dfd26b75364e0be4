/**
 * Defines the result of a script's statement on one side, with its cells in PostgreSQL's text
 * form.
 */

/** A cell as text; undefined for NULL. */
export type Cell = string | undefined;

export type Played =
  | { readonly kind: "rows"; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: "failure"; readonly code: string; readonly message: string };

/**
 * The number of digits that are compared in DOUBLE PRECISION and NUMERIC results. Further digits
 * may differ.
 */
const DIGITS_COMPARED = 12;

const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/**
 * Returns whether two results contain the same rows in any order. Scripts often leave the order of
 * ties undefined; `fuzz_sql` compares orders.
 */
export function haveSameRows(
  ours: readonly (readonly Cell[])[],
  theirs: readonly (readonly Cell[])[],
): boolean {
  if (ours.length !== theirs.length) return false;
  const [left, right] = [ours, theirs].map((rows) => {
    return rows.map((row) => row.map((cell) => shownCell(cell)).join("\u001f")).toSorted();
  });
  return left?.join("\n") === right?.join("\n");
}

function shownCell(cell: Cell): string {
  if (cell === undefined) return "NULL";
  if (cell === "t") return "true";
  if (cell === "f") return "false";
  if (!NUMBER.test(cell)) return cell;
  const value = Number(Number(cell).toPrecision(DIGITS_COMPARED));
  return String(Object.is(value, -0) ? 0 : value);
}
