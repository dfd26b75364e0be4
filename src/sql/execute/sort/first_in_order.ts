/**
 * The first n rows of a sort whose input comes in the order of its first key: rows are taken until
 * n are there and the key has changed, and these are sorted by the others.
 *
 *     taking ──n rows, the next key is another──► sorting ──► yielding
 *       └──few rows pass the conditions: to read in order takes longer than to read all──► a plain sort
 *
 * Rows before an OFFSET are only counted, where one key decides and no condition drops any:
 * 100,000 take 4 ms, not 90. Conditions that few rows pass are tested on a 512th of the rows in
 * vain.
 */
import { type Batch, constVector, type Value, valueAt } from "../../../types/mod.ts";
import { compareByKey } from "../held/sort_order.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import type { OrderedTableScan } from "./ordered_table_scan.ts";
import type { SortKey } from "./sort_key.ts";

export interface FirstInOrderOptions {
  readonly run: Run;
  /** Reads from the scan, and keeps its order. */
  readonly input: Operator;
  readonly scan: OrderedTableScan;
  /** Sorts the same rows, which are read in any order; leaves out so many first ones. */
  readonly plain: (leftOut: number) => Operator;
  readonly sortOver: (input: Operator) => Operator;
  /** The first key. */
  readonly key: SortKey;
  /** How many rows are needed of the front, or behind those that are skipped. */
  readonly rowsMax: number;
  /** So many first rows are only counted: whoever asked for them drops them. */
  readonly skipped: number;
  readonly columnCount: number;
}

export class FirstInOrder implements Operator {
  readonly #options: FirstInOrderOptions;
  #sort: Operator;
  #isPlain = false;
  /** Rows that were counted, and went up without their values. */
  #skippedCount = 0;

  constructor(options: FirstInOrderOptions) {
    this.#options = options;
    this.#sort = options.sortOver(new FirstRows(options));
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

  /** Goes over to a plain sort. */
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

/** Passes rows until the first n are among them. */
class FirstRows implements Operator {
  readonly #options: FirstInOrderOptions;
  #rowCount = 0;
  /** The key of row n. */
  #lastKey: Value | undefined;
  #isDone = false;

  constructor(options: FirstInOrderOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { input, rowsMax, run } = this.#options;
    if (this.#isDone || rowsMax === 0) return undefined;
    const batch = nextRows(input, run);
    return batch === undefined ? undefined : this.#passed(batch);
  }

  close(): void {
    this.#options.input.close();
  }

  #passed(batch: Batch): Batch | undefined {
    const { key, rowsMax, run } = this.#options;
    const keys = key.evaluate(batch, run);
    const isBehind = (row: number): boolean =>
      this.#lastKey !== undefined && compareByKey(key, valueAt(keys, row), this.#lastKey) > 0;
    if (isBehind(0)) {
      this.#isDone = true;
      return undefined;
    }
    this.#rowCount += batch.rowCount;
    const behindLast = this.#rowCount - rowsMax;
    if (behindLast >= 0) this.#lastKey ??= valueAt(keys, batch.rowCount - 1 - behindLast);
    if (isBehind(batch.rowCount - 1)) this.#isDone = true;
    return batch;
  }
}
