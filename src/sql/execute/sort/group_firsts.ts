/**
 * Below a sort of which DISTINCT ON keeps the first row of each group, or a window of which the
 * first rows of each partition are kept: holds of each group only the rows that the sort would put
 * first, so that it has little more to sort than there are groups.
 *
 *     holding ──end──► yielding what is held
 *        └──those rows turn out to be many, or memory is short──► yielding, then passing all others
 *
 * What it yields may hold further rows of a group: the sort and what stands above it choose again.
 *
 * Many are more than 32,768 held at a time, or one of fewer than four rows that come. The newest of
 * 1,000 groups among 300,000 rows takes 40 ms with this, and 390 without.
 */
import {
  type Batch,
  type DataType,
  keepRows,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { HeldRows } from "../held/held_rows.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { compareByKey } from "../held/sort_order.ts";
import { Grouping } from "../keys/grouping.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import type { SortKey } from "./sort_key.ts";

export interface GroupFirstsOptions {
  readonly run: Run;
  readonly inputTypes: readonly DataType[];
  readonly on: readonly Evaluator[];
  readonly onTypes: readonly DataType[];
  /** Of the sort, those in which the rows of a group may differ. */
  readonly keys: readonly SortKey[];
  /** How many rows of each group are wanted, 1 to {@linkcode FIRSTS_MAX}. */
  readonly rowsMax: number;
}

/** Wanted rows of a group: a new one is put among them one by one. */
export const FIRSTS_MAX = 64;

/** A row that is among the first of its group, as far as it is known. */
interface First {
  readonly keys: readonly Value[];
  /** Its number among those held; until its batch is held, the number in that. */
  row: number;
}

/** Rows beyond the first ones of each group that are held before the others are let go of. */
const SLACK_ROWS = 8192;

/** A sort of all rows takes about as long if there are more first rows than this. */
const ROWS_MAX = 32_768;

/** Rows after which it is noticed that fewer than so many come for each that is first. */
const TRIED_ROWS = 16_384;
const SHARE_MIN = 4;

export class GroupFirsts implements Operator {
  readonly #input: Operator;
  readonly #options: GroupFirstsOptions;
  readonly #memory: MemoryBudget;
  readonly #groups: Grouping;
  readonly #rows: HeldRows;
  /** Of each group, in their order. */
  readonly #firsts: First[][] = [];
  #firstCount = 0;
  #rowCount = 0;
  #order: Uint32Array | undefined;
  #position = 0;

  constructor(input: Operator, options: GroupFirstsOptions) {
    const { inputTypes, onTypes, run } = options;
    this.#input = input;
    this.#options = options;
    this.#memory = run.memory.elastic();
    this.#groups = new Grouping(onTypes, this.#memory, { keepsKeys: false });
    this.#rows = new HeldRows(inputTypes, this.#memory);
  }

  next(): Batch | undefined {
    const { run } = this.#options;
    while (this.#order === undefined) {
      const batch = nextRows(this.#input, run);
      if (batch !== undefined) this.#hold(batch);
      if (batch === undefined || this.#isInVain || this.#memory.isCrowded) {
        this.#order = this.#rowsInOrder();
      } else if (this.#rows.rowCount > 2 * this.#firstCount + SLACK_ROWS) {
        this.#cut();
      }
    }
    // The rows that are held come first, then those of the input.
    if (this.#position >= this.#order.length) return nextRows(this.#input, run);
    const batch = this.#rows.batchOf(this.#order, this.#position);
    this.#position += batch.rowCount;
    return batch;
  }

  close(): void {
    this.#input.close();
    this.#memory.close();
  }

  get #isInVain(): boolean {
    if (this.#firstCount > ROWS_MAX) return true;
    return this.#rowCount >= TRIED_ROWS && this.#firstCount * SHARE_MIN > this.#rowCount;
  }

  /** In the order in which they came, so that equal ones stay so. */
  #rowsInOrder(): Uint32Array {
    const rows = new Uint32Array(this.#firstCount);
    let count = 0;
    for (const firsts of this.#firsts) {
      for (const { row } of firsts) {
        rows[count] = row;
        count += 1;
      }
    }
    return rows.toSorted();
  }

  /** Holds the rows of a batch that come first in their groups, as far as it is known. */
  #hold(batch: Batch): void {
    const { keys, on, rowsMax, run } = this.#options;
    const { rowCount } = batch;
    const numbers = this.#groups.numbersOf(
      on.map((evaluate) => evaluate(batch, run)),
      rowCount,
    );
    const vectors = keys.map((key) => key.evaluate(batch, run));
    /** Those of the batch, in its order. */
    const found = new Set<First>();
    for (let row = 0; row < rowCount; row += 1) {
      const group = numbers[row] ?? 0;
      const firsts = this.#firsts[group] ?? [];
      if (firsts.length === 0) this.#firsts[group] = firsts;
      const last = firsts.length < rowsMax ? undefined : firsts[rowsMax - 1];
      if (last !== undefined && !this.#isBefore(vectors, row, last)) continue;
      const first = { keys: vectors.map((vector) => valueAt(vector, row)), row };
      found.add(first);
      if (last === undefined) {
        this.#firstCount += 1;
      } else {
        firsts.pop();
        found.delete(last);
      }
      let at = firsts.length;
      while (at > 0 && this.#isBefore(vectors, row, firsts[at - 1])) at -= 1;
      firsts.splice(at, 0, first);
    }
    this.#rowCount += rowCount;
    if (found.size === 0) return;
    const rows = Uint32Array.from(found, ({ row }) => row);
    let held = this.#rows.rowCount;
    for (const first of found) {
      first.row = held;
      held += 1;
    }
    const kept = keepRows(batch, { rows, count: rows.length });
    this.#rows.append(kept.columns, kept.rowCount);
  }

  /** Whether a row comes before one that came earlier: of equal ones that is the earlier one. */
  #isBefore(vectors: readonly Vector[], row: number, first: First | undefined): boolean {
    const { keys } = this.#options;
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      const vector = vectors[i];
      if (key === undefined || vector === undefined) break;
      const order = compareByKey(key, valueAt(vector, row), first?.keys[i] ?? null);
      if (order !== 0) return order < 0;
    }
    return false;
  }

  /** Lets go of rows that came first for a while. */
  #cut(): void {
    const order = this.#rowsInOrder();
    const places = new Map<number, number>();
    for (const [place, row] of order.entries()) places.set(row, place);
    this.#rows.keep(order, () => this.#options.run.checkTime());
    for (const firsts of this.#firsts) {
      for (const first of firsts) first.row = places.get(first.row) ?? 0;
    }
  }
}
