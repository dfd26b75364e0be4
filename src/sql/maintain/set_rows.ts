/**
 * Counts the rows of UNION, INTERSECT and EXCEPT. The number of times that a set operation returns
 * a row depends only on the number of times that each of its blocks returns it:
 *
 * | operation | with ALL | without ALL |
 * |---|---|---|
 * | UNION | left + right | 1 if either side has it |
 * | INTERSECT | the smaller number | 1 if both sides have it |
 * | EXCEPT | left − right, or 0 | 1 if only the left side has it |
 *
 * Invariants: a row is kept as long as any block has it. The last value of an input row is the
 * index of its block.
 */
import type { Row } from "../../types/mod.ts";
import type { SetOperator } from "../bind/bound.ts";
import type { JoinChanges } from "../ports/engine.ts";
import { netChanges, type RowChanges } from "./groups.ts";
import type { Pause } from "./maintained_result.ts";
import { textOfRow } from "./row_text.ts";

/** The index of a block, or a set operation on two subtrees. */
export type SetTree = number | SetNode;

export interface SetNode {
  readonly operator: SetOperator;
  readonly isAll: boolean;
  readonly left: SetTree;
  readonly right: SetTree;
}

interface Counted {
  readonly row: Row;
  /** The number of times that each block has the row. */
  readonly counts: number[];
}

/** The approximate memory of a row in bytes, excluding its values. */
const ROW_BYTES = 260;
const VALUE_BYTES = 24;

/** The number of rows counted before other work may run. */
const ROWS_PER_PART = 256;

export class SetRows {
  readonly #tree: SetTree;
  #rows = new Map<string, Counted>();
  /** The total length, in characters, of the strings that identify the rows. */
  #textLength = 0;

  constructor(tree: SetTree) {
    this.#tree = tree;
  }

  get bytes(): number {
    const [first] = this.#rows.values();
    const rowBytes = ROW_BYTES + VALUE_BYTES * (first?.row.length ?? 0);
    // The values of a row take about as much memory as the string that identifies it.
    return this.#rows.size * rowBytes + 2 * this.#textLength;
  }

  /** Initialises the counts from the rows of all blocks. Returns the rows of the set operation. */
  async begin(given: readonly Row[], pause: Pause): Promise<readonly Row[]> {
    this.#rows = new Map();
    this.#textLength = 0;
    for (const [index, row] of given.entries()) {
      this.#count(row, 1);
      if (index % ROWS_PER_PART === ROWS_PER_PART - 1) await pause();
    }
    return [...this.rows()];
  }

  *rows(): Generator<Row> {
    for (const { counts, row } of this.#rows.values()) {
      for (let left = timesIn(this.#tree, counts); left > 0; left -= 1) yield row;
    }
  }

  /**
   * Applies changes to the rows of the blocks. Returns the resulting row changes of the set
   * operation.
   */
  apply({ tuples, weights }: JoinChanges): RowChanges {
    const before = new Map<Counted, number>();
    const rows: Row[] = [];
    const times: number[] = [];
    for (const [index, tuple] of tuples.entries()) {
      const { counted, old } = this.#count(tuple, weights[index] ?? 0);
      if (!before.has(counted)) before.set(counted, old);
    }
    for (const [{ counts, row }, old] of before) {
      rows.push(row);
      times.push(timesIn(this.#tree, counts) - old);
      if (counts.some((count) => count !== 0)) continue;
      const text = textOfRow(row);
      this.#rows.delete(text);
      this.#textLength -= text.length;
    }
    return netChanges(rows, times);
  }

  /**
   * Updates the count of a row in its block. Returns the number of times that the set operation
   * returned the row before.
   */
  #count(given: Row, weight: number): { readonly counted: Counted; readonly old: number } {
    const row = given.slice(0, -1);
    const block = Number(given.at(-1));
    const text = textOfRow(row);
    const known = this.#rows.get(text);
    const counted = known ?? { row, counts: [] };
    if (known === undefined) {
      this.#rows.set(text, counted);
      this.#textLength += text.length;
    }
    const old = timesIn(this.#tree, counted.counts);
    for (let index = counted.counts.length; index <= block; index += 1) counted.counts[index] = 0;
    counted.counts[block] = (counted.counts[block] ?? 0) + weight;
    return { counted, old };
  }
}

/**
 * Returns the number of times that a set operation returns a row. @param counts The number of
 * times that each block has the row.
 */
function timesIn(tree: SetTree, counts: readonly number[]): number {
  if (typeof tree === "number") return counts[tree] ?? 0;
  const left = timesIn(tree.left, counts);
  const right = timesIn(tree.right, counts);
  const { isAll } = tree;
  switch (tree.operator) {
    case "union":
      return isAll ? left + right : Math.min(1, left + right);
    case "intersect":
      return Math.min(left, right, isAll ? Number.POSITIVE_INFINITY : 1);
    case "except":
      return isAll ? Math.max(0, left - right) : Number(left > 0 && right === 0);
  }
}
