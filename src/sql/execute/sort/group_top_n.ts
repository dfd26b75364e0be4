/**
 * Reduces the input of a sort if DISTINCT ON needs only the first row of each group, or a window
 * only the first rows of each partition. The operator keeps only the rows that the sort would put
 * first in each group, so the sort receives only slightly more rows than needed.
 *
 *     holding ──end──► yielding the kept rows
 *        └──too many rows are kept, or memory is short──► yielding them, then passing on the input
 *
 * The output may contain more rows of a group than needed, because the sort and the operator above
 * it make the final selection.
 *
 * The operator stops selecting if it keeps more than 32,768 rows, or more than one in four input
 * rows. As an example of the gain, the newest rows of 1,000 groups among 300,000 rows are found
 * ten times as fast.
 */
import {
  type Batch,
  type DataType,
  keepRows,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { Grouping } from "../keys/grouping.ts";
import { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import { compareByKey } from "../materialised/sort_order.ts";
import type { SortKey } from "./sort_key.ts";

export interface GroupTopNOptions {
  readonly context: ExecutionContext;
  readonly inputTypes: readonly DataType[];
  readonly on: readonly Evaluator[];
  readonly onTypes: readonly DataType[];
  /** The sort keys that may differ between the rows of a group. */
  readonly keys: readonly SortKey[];
  /** The number of rows needed from each group, between 1 and {@linkcode GROUP_TOP_N_MAX}. */
  readonly rowsMax: number;
}

/**
 * The maximum number of rows per group. It is small because a linear search finds the place of a
 * new row among them.
 */
export const GROUP_TOP_N_MAX = 64;

/** A row that is among the first rows of its group so far. */
interface First {
  readonly keys: readonly Value[];
  /**
   * The row's number among the materialised rows, or within its batch until the batch is
   * materialised.
   */
  row: number;
}

/**
 * The number of surplus rows that are kept in memory before they are released. A surplus row is no
 * longer among the first rows of its group.
 */
const SLACK_ROWS = 8192;

/**
 * The maximum number of rows kept for all groups. Beyond this number, sorting all rows takes about
 * as long.
 */
const ROWS_MAX = 32_768;

/**
 * The number of input rows after which the operator checks whether it reduces the input enough.
 */
const TRIED_ROWS = 16_384;
const SHARE_MIN = 4;

export class GroupTopN implements Operator {
  readonly #input: Operator;
  readonly #options: GroupTopNOptions;
  readonly #memory: MemoryBudget;
  readonly #groups: Grouping;
  readonly #rows: MaterialisedRows;
  /** The first rows of each group so far, in sort order. */
  readonly #firsts: First[][] = [];
  #firstCount = 0;
  #rowCount = 0;
  #order: Uint32Array | undefined;
  #position = 0;

  constructor(input: Operator, options: GroupTopNOptions) {
    const { inputTypes, onTypes, context } = options;
    this.#input = input;
    this.#options = options;
    this.#memory = context.memory.elastic();
    this.#groups = new Grouping(onTypes, this.#memory, { keepsKeys: false });
    this.#rows = new MaterialisedRows(inputTypes, this.#memory);
  }

  next(): Batch | undefined {
    const { context } = this.#options;
    while (this.#order === undefined) {
      const batch = nextRows(this.#input, context);
      if (batch !== undefined) this.#hold(batch);
      if (batch === undefined || this.#isInVain || this.#memory.isCrowded) {
        this.#order = this.#rowsInOrder();
      } else if (this.#rows.rowCount > 2 * this.#firstCount + SLACK_ROWS) {
        this.#cut();
      }
    }
    // The materialised rows come first, followed by the remaining rows of the input.
    if (this.#position >= this.#order.length) return nextRows(this.#input, context);
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

  /**
   * Returns the numbers of the kept rows in order of arrival, so that equal rows keep their order.
   */
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

  /** Keeps the rows of a batch that are among the first rows of their groups so far. */
  #hold(batch: Batch): void {
    const { keys, on, rowsMax, context } = this.#options;
    const { rowCount } = batch;
    const numbers = this.#groups.groupIdsOf(
      on.map((evaluate) => evaluate(batch, context)),
      rowCount,
    );
    const vectors = keys.map((key) => key.evaluate(batch, context));
    /** The rows of this batch that are among the first rows of their groups, in batch order. */
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

  /**
   * Whether a row precedes a row that arrived earlier. Of two equal rows, the earlier one comes
   * first.
   */
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

  /** Releases the rows that are no longer among the first rows of their groups. */
  #cut(): void {
    const order = this.#rowsInOrder();
    const places = new Map<number, number>();
    for (const [place, row] of order.entries()) places.set(row, place);
    this.#rows.keep(order, () => this.#options.context.checkTime());
    for (const firsts of this.#firsts) {
      for (const first of firsts) first.row = places.get(first.row) ?? 0;
    }
  }
}
