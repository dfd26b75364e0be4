/**
 * Implements one inverted index of a memtable. It lists the rows that contain each term.
 *
 * - Rows are added in memtable order and removed in reverse order.
 * - The index may lag behind its memtable. Each search adds a bounded number of the missing rows,
 *   so no search has to wait for many of them. Rows not yet added are always included in the
 *   result.
 */
import { slice } from "../../types/mod.ts";
import {
  computedKeys,
  type IndexColumn,
  joinedTermsOf,
  type KeyExpression,
  termExpressionsOf,
} from "../contract/key_expressions.ts";
import { rowTerms, type TermQuery } from "../contract/terms.ts";
import {
  countByTerms,
  type RowList,
  rowsByTerms,
  type TermLists,
  unionOf,
} from "../segment/term_lists.ts";
import type { Memtable } from "./memtable.ts";

/** The maximum number of rows that a single search adds to the index. */
const ADDED_ROWS_MAX = 256;

/** The approximate memory in bytes of a term, and of a row in its list. */
const TERM_BYTES = 120;
const LISTED_ROW_BYTES = 8;

export class MemTerms implements TermLists {
  readonly #memtable: Memtable;
  readonly #expressions: readonly KeyExpression[];
  readonly #rows = new Map<string, number[]>();
  /** The number of indexed rows, which are the first rows of the memtable. */
  #count = 0;
  #listedCount = 0;

  constructor(memtable: Memtable, columns: readonly IndexColumn[]) {
    this.#memtable = memtable;
    this.#expressions = termExpressionsOf(columns);
  }

  get byteCount(): number {
    return this.#rows.size * TERM_BYTES + this.#listedCount * LISTED_ROW_BYTES;
  }

  /**
   * Returns an upper bound on the number of rows that match a query. Also adds some of the rows
   * missing from the index.
   */
  countOf(query: TermQuery): number {
    this.#addSome();
    const { rowCount } = this.#memtable;
    const range = { start: 0, end: this.#count };
    return countByTerms(this, query, range) + rowCount - this.#count;
  }

  /** Returns the rows of all owners that match a query, in ascending order. */
  rowsOf(query: TermQuery): RowList {
    const { rowCount } = this.#memtable;
    const found = rowsByTerms(this, query, { start: 0, end: this.#count });
    const others = new Uint32Array(rowCount - this.#count);
    for (let at = 0; at < others.length; at += 1) others[at] = this.#count + at;
    return unionOf([found, others]);
  }

  listsOf(term: string, isPrefix: boolean): readonly RowList[] {
    if (!isPrefix) {
      const rows = this.#rows.get(term);
      return rows === undefined ? [] : [Uint32Array.from(rows)];
    }
    const lists: RowList[] = [];
    for (const [each, rows] of this.#rows) {
      if (each.startsWith(term)) lists.push(Uint32Array.from(rows));
    }
    return lists;
  }

  /** Removes the newest row of the memtable if it is in the index. */
  pop(row: number): void {
    if (row >= this.#count) return;
    for (const term of this.#termsWithin(row, row + 1)[0] ?? []) {
      const rows = this.#rows.get(term);
      if (rows?.at(-1) !== row) continue;
      rows.pop();
      this.#listedCount -= 1;
      if (rows.length === 0) this.#rows.delete(term);
    }
    this.#count = row;
  }

  #addSome(): void {
    const start = this.#count;
    const end = Math.min(this.#memtable.rowCount, start + ADDED_ROWS_MAX);
    if (start === end) return;
    for (const [at, terms] of this.#termsWithin(start, end).entries()) {
      for (const term of terms) this.#add(term, start + at);
    }
    this.#count = end;
  }

  #add(term: string, row: number): void {
    const rows = this.#rows.get(term);
    if (rows?.at(-1) === row) return;
    if (rows === undefined) this.#rows.set(term, [row]);
    else rows.push(row);
    this.#listedCount += 1;
  }

  /** Returns the terms of each row from `start` (inclusive) to `end` (exclusive). */
  #termsWithin(start: number, end: number): readonly (readonly string[])[] {
    const joined = this.#expressions.map((expression) => {
      const read = expression.reads.map(({ columnId, missing }) => {
        const vector = this.#memtable.vector(columnId);
        if (vector === undefined)
          return { kind: "const" as const, length: end - start, value: missing };
        return slice(vector, start, end);
      });
      return joinedTermsOf(computedKeys(expression, read, end - start));
    });
    return Array.from({ length: end - start }, (_, at) =>
      rowTerms(joined.map((each) => each[at] ?? null)),
    );
  }
}
