/**
 * Maintains the first rows of a sorted result, for ORDER BY … LIMIT … OFFSET.
 *
 *     sorted rows     ┌ OFFSET ┐┌─ LIMIT ─┐┌── margin ──┐
 *     of the input    ░░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒  further rows are not kept
 *                               └ result ┘
 *
 * Invariants: every input row that does not sort after the last kept row is kept. No two rows tie
 * in the order, because its last terms identify a row.
 *
 * A row from the margin takes the place of a removed row. Once the margin is used up, the window
 * has to be filled again.
 */
import type { Row } from "../../types/mod.ts";
import { compareByKey, type SortOrder } from "../execute/materialised/sort_order.ts";
import type { RowChanges } from "./groups.ts";

/** A sort term, with the position of its value in a row. */
export interface WindowTerm extends SortOrder {
  readonly field: number;
}

export interface RowWindowOptions {
  readonly terms: readonly WindowTerm[];
  readonly limit: number;
  readonly offset: number;
}

/**
 * The size of the margin as a multiple of LIMIT, and the minimum and maximum number of rows in it.
 */
const MARGIN_SHARE = 1;
const MARGIN_MIN = 32;
const MARGIN_MAX = 1000;

/** Returns the number of rows that a window with the given LIMIT and OFFSET keeps. */
export function keptRowsOf({ limit, offset }: Pick<RowWindowOptions, "limit" | "offset">): number {
  const margin = Math.max(MARGIN_MIN, Math.min(MARGIN_MAX, MARGIN_SHARE * limit));
  return offset + limit + margin;
}

export class RowWindow {
  readonly #terms: readonly WindowTerm[];
  readonly #start: number;
  readonly #end: number;
  readonly #rowsMax: number;
  #rows: Row[] = [];
  /** Whether the window keeps all rows of its input, because their number is small enough. */
  #isWhole = true;

  constructor({ limit, offset, terms }: RowWindowOptions) {
    this.#terms = terms;
    this.#start = offset;
    this.#end = offset + limit;
    this.#rowsMax = keptRowsOf({ limit, offset });
  }

  get rowCount(): number {
    return this.#rows.length;
  }

  /** Whether too few kept rows are left to determine the result. */
  get isShort(): boolean {
    return !this.#isWhole && this.#rows.length < this.#end;
  }

  /** The rows after OFFSET and within LIMIT, which form the result. */
  get shown(): readonly Row[] {
    return this.#rows.slice(this.#start, this.#end);
  }

  /** Fills the window from its input: either all rows, or the first rows in the order. */
  begin(rows: Iterable<Row>): void {
    const sorted = [...rows].toSorted((left, right) => this.#compare(left, right));
    this.#isWhole = sorted.length < this.#rowsMax;
    this.#rows = sorted.slice(0, this.#rowsMax);
  }

  /** Applies changes to the input of the window. Afterwards, the window may be short. */
  apply({ added, removed }: RowChanges): void {
    for (const row of removed) this.#remove(row);
    for (const row of added) this.#add(row);
  }

  #remove(row: Row): void {
    const at = this.#placeOf(row);
    const found = this.#rows[at];
    if (found !== undefined && this.#compare(found, row) === 0) this.#rows.splice(at, 1);
  }

  #add(row: Row): void {
    const at = this.#placeOf(row);
    if (at === this.#rows.length && !this.#isWhole) return;
    this.#rows.splice(at, 0, row);
    if (this.#rows.length <= this.#rowsMax) return;
    this.#rows.pop();
    this.#isWhole = false;
  }

  /** Returns the index of the first kept row that sorts at or after `row`. */
  #placeOf(row: Row): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#rows[middle];
      if (other !== undefined && this.#compare(other, row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compare(left: Row, right: Row): number {
    for (const term of this.#terms) {
      const order = compareByKey(term, left[term.field] ?? null, right[term.field] ?? null);
      if (order !== 0) return order;
    }
    return 0;
  }
}

/** Returns the changes from one result to another: the rows that occur in only one of them. */
export function changesOfRows(before: readonly Row[], after: readonly Row[]): RowChanges {
  const old = new Set(before);
  const now = new Set(after);
  return {
    removed: before.filter((row) => !now.has(row)),
    added: after.filter((row) => !old.has(row)),
  };
}
