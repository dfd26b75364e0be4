/**
 * Yields the first n rows of a sort whose input arrives sorted by the leading sort keys. Reading
 * ends when n rows have arrived and the leading keys have changed; these rows are then sorted by
 * all keys.
 *
 *     taking ──n rows, the next has other keys──► sorting ──► yielding
 *       └──few rows pass the conditions: to read in order takes longer than to read all──► a plain sort
 *
 * If the input is sorted by all keys and no condition drops rows, the rows skipped by OFFSET are
 * only counted, which is twenty times as fast. If few rows satisfy the conditions, a 512th of the
 * rows will have been read in order in vain.
 */
import { type Batch, constVector, type Value, valueAt } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { compareByKey } from "../materialised/sort_order.ts";
import type { OrderedTableScan } from "./ordered_table_scan.ts";
import type { SortKey } from "./sort_key.ts";

export interface OrderedTopNOptions {
  readonly context: ExecutionContext;
  /** The rows of `scan` after filters and projections, in the order of the scan. */
  readonly input: Operator;
  readonly scan: OrderedTableScan;
  /**
   * Creates a plain sort of the same rows, which does not rely on their order. It omits the first
   * `leftOut` rows of the result.
   */
  readonly plain: (leftOut: number) => Operator;
  readonly sortOver: (input: Operator) => Operator;
  /** The leading sort keys, by which the input is already sorted. */
  readonly keys: readonly SortKey[];
  /** The number of rows needed after the skipped rows. */
  readonly rowsMax: number;
  /** The number of leading rows that are only counted, because the consumer drops them. */
  readonly skipped: number;
  readonly columnCount: number;
}

export class OrderedTopN implements Operator {
  readonly #options: OrderedTopNOptions;
  #sort: Operator;
  #isPlain = false;
  /** The number of rows that have been counted and passed on without their values. */
  #skippedCount = 0;

  constructor(options: OrderedTopNOptions) {
    this.#options = options;
    this.#sort = options.sortOver(new TopRows(options));
  }

  next(): Batch | undefined {
    const { scan, skipped } = this.#options;
    if (!this.#isPlain && this.#skippedCount < skipped) {
      const count = scan.skip(skipped - this.#skippedCount);
      if (count === undefined) return undefined;
      this.#skippedCount += count;
      if (scan.isInVain) this.#readAll();
      return this.#placeholders(count);
    }
    const batch = this.#sort.next();
    if (this.#isPlain || !scan.isInVain) return batch;
    this.#readAll();
    return this.#sort.next();
  }

  /** Switches to a plain sort of all rows. */
  #readAll(): void {
    this.#isPlain = true;
    this.#sort.close();
    this.#sort = this.#options.plain(this.#skippedCount);
  }

  close(): void {
    this.#sort.close();
  }

  #placeholders(rowCount: number): Batch {
    const { columnCount } = this.#options;
    return {
      rowCount,
      columns: Array.from({ length: columnCount }, () => constVector(null, rowCount)),
    };
  }
}

/** Passes on rows until they include the first n rows of the sort. */
class TopRows implements Operator {
  readonly #options: OrderedTopNOptions;
  #rowCount = 0;
  /** The leading sort keys of the n-th row. */
  #lastKeys: readonly Value[] | undefined;
  #isDone = false;

  constructor(options: OrderedTopNOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { input, rowsMax, context } = this.#options;
    if (this.#isDone || rowsMax === 0) return undefined;
    const batch = nextRows(input, context);
    return batch === undefined ? undefined : this.#passed(batch);
  }

  close(): void {
    this.#options.input.close();
  }

  #passed(batch: Batch): Batch | undefined {
    const { keys, rowsMax, context } = this.#options;
    const vectors = keys.map((key) => key.evaluate(batch, context));
    const keysAt = (row: number): Value[] => vectors.map((vector) => valueAt(vector, row));
    if (this.#isBehind(keysAt(0))) {
      this.#isDone = true;
      return undefined;
    }
    this.#rowCount += batch.rowCount;
    const behindLast = this.#rowCount - rowsMax;
    if (behindLast >= 0) this.#lastKeys ??= keysAt(batch.rowCount - 1 - behindLast);
    if (this.#isBehind(keysAt(batch.rowCount - 1))) this.#isDone = true;
    return batch;
  }

  /**
   * Whether a row with the given keys sorts after the n-th row and all rows equal to the n-th row.
   */
  #isBehind(values: readonly Value[]): boolean {
    const last = this.#lastKeys;
    if (last === undefined) return false;
    for (const [i, key] of this.#options.keys.entries()) {
      const order = compareByKey(key, values[i] ?? null, last[i] ?? null);
      if (order !== 0) return order > 0;
    }
    return false;
  }
}
