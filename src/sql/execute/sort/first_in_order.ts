/**
 * The first n rows of a sort whose input comes in the order of its first key: rows are taken until n
 * are there and the key has changed, and these are sorted by the others.
 *
 *     taking ──n rows, the next key is another──► sorting ──► yielding
 *       └──few rows pass the conditions: to read in order takes longer than to read all──► a plain sort
 */
import type { OrderedScan } from "../../../storage/mod.ts";
import { type Batch, type Value, valueAt } from "../../../types/mod.ts";
import { compareByKey } from "../held/sort_order.ts";
import { NOTHING_YET, type Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { ORDERED_SHARE_MAX } from "./ordered_table_scan.ts";
import { type SortKey } from "./sort_key.ts";

export interface FirstInOrderOptions {
  readonly run: Run;
  /** Reads from the scan, and keeps its order. */
  readonly input: Operator;
  readonly scan: OrderedScan;
  /** Reads the same rows in any order. */
  readonly plain: () => Operator;
  readonly sortOver: (input: Operator) => Operator;
  /** The first key. */
  readonly key: SortKey;
  readonly rowsMax: number;
}

export class FirstInOrder implements Operator {
  readonly #options: FirstInOrderOptions;
  readonly #first: FirstRows;
  #sort: Operator;

  constructor(options: FirstInOrderOptions) {
    this.#options = options;
    this.#first = new FirstRows(options);
    this.#sort = options.sortOver(this.#first);
  }

  next(): Batch | undefined {
    if (!this.#first.isTooLong) return this.#sort.next();
    this.#first.isTooLong = false;
    const { plain, sortOver } = this.#options;
    this.#sort.close();
    this.#sort = sortOver(plain());
    return NOTHING_YET;
  }

  close(): void {
    this.#sort.close();
  }
}

/** Passes rows until the first n are among them. */
class FirstRows implements Operator {
  isTooLong = false;
  readonly #options: FirstInOrderOptions;
  #rowCount = 0;
  /** The key of row n. */
  #lastKey: Value | undefined;
  #isDone = false;

  constructor(options: FirstInOrderOptions) {
    this.#options = options;
  }

  next(): Batch | undefined {
    const { input, scan } = this.#options;
    if (this.#isDone || this.#options.rowsMax === 0) return undefined;
    if (scan.rowsPassed > scan.rowCount * ORDERED_SHARE_MAX) {
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
