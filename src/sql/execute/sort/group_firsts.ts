/**
 * Below a sort of which DISTINCT ON keeps the first row of each group: holds of each group only the row
 * that the sort would put first, so that it has as many rows to sort as there are groups.
 *
 *     holding ──end──► yielding what is held
 *        └──the groups turn out to be many, or memory is short──► yielding, then passing all others
 *
 * What it yields may hold further rows of a group: the sort and what stands above it choose again.
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
import { NOTHING_YET, type Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import type { SortKey } from "./sort_key.ts";

export interface GroupFirstsOptions {
  readonly run: Run;
  readonly inputTypes: readonly DataType[];
  readonly on: readonly Evaluator[];
  readonly onTypes: readonly DataType[];
  /** Of the sort, those in which the rows of a group may differ. */
  readonly keys: readonly SortKey[];
}

/** Rows beyond one for each group that are held before the others are let go of. */
const SLACK_ROWS = 8192;

/** With more groups a sort of all rows takes about as long, and to let go of rows takes a turn. */
const GROUPS_MAX = 32_768;

/** Rows after which groups of fewer than so many rows each are noticed. */
const TRIED_ROWS = 16_384;
const GROUP_ROWS_MIN = 4;

export class GroupFirsts implements Operator {
  readonly #input: Operator;
  readonly #options: GroupFirstsOptions;
  readonly #memory: MemoryBudget;
  readonly #groups: Grouping;
  readonly #rows: HeldRows;
  /** Of each group, the held row that comes first, and its keys. */
  #firstRows: number[] = [];
  readonly #firstKeys: (readonly Value[])[] = [];
  #rowCount = 0;
  /** Rows are being let go of, in steps of a batch. */
  #steps: Iterator<undefined, void> | undefined;
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
    if (this.#steps !== undefined) {
      if (this.#steps.next().done === true) this.#steps = undefined;
      return NOTHING_YET;
    }
    if (this.#order !== undefined) return this.#yielded(this.#order);
    const batch = this.#input.next();
    if (batch === undefined) {
      this.#order = Uint32Array.from(this.#firstRows).toSorted();
      return NOTHING_YET;
    }
    if (batch.rowCount === 0) return NOTHING_YET;
    this.#hold(batch);
    if (this.#isInVain || this.#memory.isCrowded) {
      this.#order = Uint32Array.from(this.#firstRows).toSorted();
    } else if (this.#rows.rowCount > 2 * this.#firstRows.length + SLACK_ROWS) {
      this.#steps = this.#cut();
    }
    return NOTHING_YET;
  }

  close(): void {
    this.#input.close();
    this.#memory.close();
  }

  get #isInVain(): boolean {
    const { groupCount } = this.#groups;
    if (groupCount > GROUPS_MAX) return true;
    return this.#rowCount >= TRIED_ROWS && groupCount * GROUP_ROWS_MIN > this.#rowCount;
  }

  /** What is held, then what is still to come. */
  #yielded(order: Uint32Array): Batch | undefined {
    if (this.#position >= order.length) return this.#input.next();
    const batch = this.#rows.batchOf(order, this.#position);
    this.#position += batch.rowCount;
    return batch;
  }

  /** Holds the rows of a batch that come first in their groups, as far as it is known. */
  #hold(batch: Batch): void {
    const { keys, on, run } = this.#options;
    const { rowCount } = batch;
    const numbers = this.#groups.numbersOf(
      on.map((evaluate) => evaluate(batch, run)),
      rowCount,
    );
    const vectors = keys.map((key) => key.evaluate(batch, run));
    /** The rows of the batch that come first in their groups. */
    const found = new Map<number, number>();
    for (let row = 0; row < rowCount; row += 1) {
      const group = numbers[row] ?? 0;
      if (this.#isBefore(vectors, row, this.#firstKeys[group])) {
        this.#firstKeys[group] = vectors.map((vector) => valueAt(vector, row));
        found.set(group, row);
      }
    }
    this.#rowCount += rowCount;
    if (found.size === 0) return;
    const groupsByRow = [...found].toSorted(([, left], [, right]) => left - right);
    const rows = Uint32Array.from(groupsByRow, ([, row]) => row);
    for (const [i, [group]] of groupsByRow.entries()) {
      this.#firstRows[group] = this.#rows.rowCount + i;
    }
    const kept = keepRows(batch, { rows, count: rows.length });
    this.#rows.append(kept.columns, kept.rowCount);
  }

  /** Whether a row comes before the first one of its group so far; of equal ones the earlier does. */
  #isBefore(vectors: readonly Vector[], row: number, first: readonly Value[] | undefined): boolean {
    if (first === undefined) return true;
    const { keys } = this.#options;
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      const vector = vectors[i];
      if (key === undefined || vector === undefined) break;
      const order = compareByKey(key, valueAt(vector, row), first[i] ?? null);
      if (order !== 0) return order < 0;
    }
    return false;
  }

  /** Lets go of rows that came first for a while. */
  *#cut(): Generator<undefined, void> {
    // In the order in which they came, so that equal ones stay so.
    const order = Uint32Array.from(this.#firstRows).toSorted();
    const places = new Map<number, number>();
    for (const [place, row] of order.entries()) places.set(row, place);
    yield* this.#rows.keepSteps(order);
    this.#firstRows = this.#firstRows.map((row) => places.get(row) ?? 0);
  }
}
