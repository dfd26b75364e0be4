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
import type { OrderedScan } from "../../../storage/mod.ts";
import { type Batch, constVector, type Value, valueAt } from "../../../types/mod.ts";
import { compareByKey } from "../held/sort_order.ts";
import { NOTHING_YET, type Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { type SortKey } from "./sort_key.ts";

/**
 * Which share of a table is read in order in vain: a row with three columns takes 1 µs so, and 4 ns
 * in a scan with a condition on one of them.
 */
const VAIN_SHARE_MAX: number = 1 / 512;

export interface FirstInOrderOptions {
  readonly run: Run;
  /** Reads from the scan, and keeps its order. */
  readonly input: Operator;
  readonly scan: OrderedScan;
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
  readonly #first: FirstRows;
  #sort: Operator;
  /** Rows that were counted, and went up without their values. */
  #skippedCount = 0;

  constructor(options: FirstInOrderOptions) {
    this.#options = options;
    this.#first = new FirstRows(options);
    this.#sort = options.sortOver(this.#first);
  }

  next(): Batch | undefined {
    const { plain, scan, skipped } = this.#options;
    if (this.#first.isTooLong) {
      this.#sort.close();
      this.#sort = plain(this.#skippedCount);
      this.#first.isTooLong = false;
      this.#skippedCount = skipped;
      return NOTHING_YET;
    }
    if (this.#skippedCount === skipped) return this.#sort.next();
    const count = scan.skip(skipped - this.#skippedCount);
    if (count === undefined) return undefined;
    this.#skippedCount += count;
    this.#first.passedBefore = scan.rowsPassed;
    if (scan.rowsPassed === Number.POSITIVE_INFINITY) this.#first.isTooLong = true;
    return this.#placeholders(count);
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
  isTooLong = false;
  /** Versions that were passed while rows were skipped. */
  passedBefore = 0;
  readonly #options: FirstInOrderOptions;
  #rowCount = 0;
  /** The key of row n. */
  #lastKey: Value | undefined;
  #isDone = false;

  constructor(options: FirstInOrderOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { input, rowsMax, scan } = this.#options;
    if (this.#isDone || rowsMax === 0) return undefined;
    if (scan.rowsPassed - this.passedBefore > scan.rowCount * VAIN_SHARE_MAX + 2 * rowsMax) {
      this.isTooLong = true;
      return NOTHING_YET;
    }
    const batch = input.next();
    return batch === undefined || batch.rowCount === 0 ? batch : this.#passed(batch);
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
