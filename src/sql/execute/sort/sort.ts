/**
 * Sorts rows, or finds the first n rows in sort order while keeping only a few times n rows in
 * memory.
 */
import { collectSoon } from "../../../base/garbage.ts";
import {
  type Batch,
  type DataType,
  keepRows,
  type Selection,
  slice,
  take,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import type { RunMerge, SortedRuns } from "../../spill/mod.ts";
import { type ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { type SpillOptions, SpillSite } from "../context/spilling.ts";
import { allRows } from "../evaluate/row_choice.ts";
import { MaterialisedRows } from "../materialised/materialised_rows.ts";
import { batchBytes } from "../materialised/memory_budget.ts";
import { compareByKey } from "../materialised/sort_order.ts";
import { leadingRows, RowBound } from "./row_bound.ts";
import { rowOrder } from "./row_order.ts";
import type { SortKey } from "./sort_key.ts";

export interface SortedRowsOptions extends SpillOptions {
  readonly inputTypes: readonly DataType[];
  readonly keys: readonly SortKey[];
  /**
   * The number of leading rows of the sorted order that are needed; Infinity if all are needed.
   */
  readonly rowsMax: number;
}

/** The number of surplus rows beyond n that a top-n sort keeps before it releases them. */
const SLACK_ROWS = 8192;

/**
 * Returns the first `rowsMax` rows in sort order.
 * @param rowsMax May be Infinity.
 */
function firstOf(order: Uint32Array, rowsMax: number): Uint32Array {
  return order.length > rowsMax ? order.subarray(0, rowsMax) : order;
}

/** Writes the first `rowsMax` materialised rows to disk as a sorted run, and releases all rows. */
export function writeRun(
  rows: MaterialisedRows,
  runs: SortedRuns,
  {
    keyStart,
    keys,
    rowsMax,
    context,
  }: Pick<SortedRowsOptions, "keys" | "rowsMax" | "context"> & { keyStart: number },
): void {
  const order = firstOf(rowOrder(rows, keys, { keyStart, context }), rowsMax);
  runs.begin();
  for (let start = 0; start < order.length; ) {
    context.checkTime();
    const batch = rows.batchOf(order, start);
    runs.append(batch, batchBytes(batch));
    start += batch.rowCount;
  }
  rows.clear();
  collectSoon();
}

/** Returns, for each key, the comparator by which sorted runs order its values. */
export function comparatorsOf(
  keys: readonly Omit<SortKey, "evaluate">[],
): ((left: Value, right: Value) => number)[] {
  return keys.map((key) => (left, right) => compareByKey(key, left, right));
}

/**
 * Collects rows and sorts them. If memory runs out, sorted runs are written to disk and merged.
 *
 *     adding ──first next──► yielding in order
 *      │ ▲  crowded              ▲
 *      ▼ │                       │
 *     a run is written ──first next──► runs are merged
 */
export class SortedRows {
  readonly #options: SortedRowsOptions;
  readonly #site: SpillSite;
  readonly #rows: MaterialisedRows;
  readonly #types: readonly DataType[];
  readonly #keyStart: number;
  #order: Uint32Array | undefined;
  /** The number of rows that the sort has yielded so far. */
  #position = 0;
  #runs: SortedRuns | undefined;
  #merge: RunMerge | undefined;
  /** The bound that further rows must precede. It is set once enough rows are stored. */
  #bound: RowBound | undefined;

  constructor(options: SortedRowsOptions) {
    this.#options = options;
    this.#keyStart = options.inputTypes.length;
    this.#types = [...options.inputTypes, ...options.keys.map((key) => key.type)];
    this.#site = new SpillSite(options);
    this.#rows = new MaterialisedRows(this.#types, this.#site.memory);
  }

  add(batch: Batch): void {
    const { keys, rowsMax, context } = this.#options;
    const keyVectors = keys.map((key) => key.evaluate(batch, context));
    // Only the columns to be yielded are stored. The input may have additional columns that only
    // the sort keys read.
    const columns = [...batch.columns.slice(0, this.#keyStart), ...keyVectors];
    const { rowCount } = batch;
    const rows = keepRows({ rowCount, columns }, this.#needed(keyVectors, rowCount));
    this.#rows.append(rows.columns, rows.rowCount);
    if (this.#rows.rowCount > 2 * rowsMax + SLACK_ROWS) this.#cut();
    else if (this.#site.isDue) this.#spill();
  }

  /** Returns the next rows in sorted order. No rows may be added after the first call. */
  next(): Batch | undefined {
    if (this.#merge === undefined && this.#order === undefined) this.#sort();
    return this.#merge === undefined ? this.#ordered() : this.#merged(this.#merge);
  }

  close(): void {
    this.#runs?.close();
    this.#site.close();
  }

  /** Returns the rows of a batch that may be among the first n rows of the sort. */
  #needed(keyVectors: readonly Vector[], rowCount: number): Selection {
    const { keys, rowsMax } = this.#options;
    const [first] = keys;
    const before = this.#bound?.rowsBefore(keyVectors, rowCount) ?? allRows(rowCount);
    if (first === undefined) return before;
    const { isDescending } = first;
    return leadingRows(before, rowsMax, { isDescending, vector: keyVectors[0] });
  }

  #sort(): void {
    if (this.#runs === undefined) this.#order = this.#orderOfNeeded();
    else this.#merge = this.#mergeOf(this.#runs);
  }

  /** Returns the numbers of the needed materialised rows, in sort order. */
  #orderOfNeeded(): Uint32Array {
    const { keys, rowsMax, context } = this.#options;
    return firstOf(rowOrder(this.#rows, keys, { keyStart: this.#keyStart, context }), rowsMax);
  }

  #cut(): void {
    const { keys, context } = this.#options;
    this.#rows.keep(this.#orderOfNeeded(), () => context.checkTime());
    const last = this.#rows.rowCount - 1;
    if (last < 0) return;
    const values = keys.map((_, i) => this.#rows.valueAt(this.#keyStart + i, last));
    this.#bound = new RowBound(keys, values);
  }

  #spill(): void {
    const keyStart = this.#keyStart;
    this.#runs ??= this.#site.sortedRuns(this.#types, comparatorsOf(this.#options.keys), keyStart);
    writeRun(this.#rows, this.#runs, { ...this.#options, keyStart });
  }

  #mergeOf(runs: SortedRuns): RunMerge {
    const { context } = this.#options;
    if (this.#rows.rowCount > 0) this.#spill();
    runs.reduce(() => context.checkTime());
    this.#site.memory.take(runs.mergeBytes);
    return runs.merged();
  }

  #ordered(): Batch | undefined {
    if (this.#order === undefined || this.#position >= this.#order.length) return undefined;
    const batch = this.#rows.batchOf(this.#order, this.#position);
    this.#position += batch.rowCount;
    return { rowCount: batch.rowCount, columns: batch.columns.slice(0, this.#keyStart) };
  }

  #merged(merge: RunMerge): Batch | undefined {
    const left = this.#options.rowsMax - this.#position;
    const batch = left > 0 ? merge.next() : undefined;
    if (batch === undefined) return undefined;
    const rowCount = Math.min(left, batch.rowCount);
    this.#position += rowCount;
    const columns = batch.columns.slice(0, this.#keyStart);
    if (rowCount === batch.rowCount) return { rowCount, columns };
    return { rowCount, columns: columns.map((column) => slice(column, 0, rowCount)) };
  }
}

/** Sorts the whole input. */
export class Sort implements Operator {
  readonly #input: Operator;
  readonly #context: ExecutionContext;
  readonly #rows: SortedRows;
  #isFilled = false;

  constructor(input: Operator, options: SortedRowsOptions) {
    this.#input = input;
    this.#context = options.context;
    this.#rows = new SortedRows(options);
  }

  next(): Batch | undefined {
    while (!this.#isFilled) {
      const batch = nextRows(this.#input, this.#context);
      if (batch === undefined) this.#isFilled = true;
      else this.#rows.add(batch);
    }
    return this.#rows.next();
  }

  close(): void {
    this.#input.close();
    this.#rows.close();
  }
}

/**
 * Implements LIMIT … WITH TIES over sorted input: after the last row of the limit, it passes on
 * all rows with equal sort keys.
 */
export class LimitWithTies implements Operator {
  readonly #input: Operator;
  readonly #keys: readonly SortKey[];
  readonly #context: ExecutionContext;
  #toSkip: number;
  #toPass: number;
  #lastKey: readonly Value[] | undefined;
  #isDone = false;

  constructor(
    input: Operator,
    options: { context: ExecutionContext; keys: readonly SortKey[]; limit: number; offset: number },
  ) {
    this.#input = input;
    this.#keys = options.keys;
    this.#context = options.context;
    this.#toSkip = options.offset;
    this.#toPass = options.limit;
  }

  next(): Batch | undefined {
    while (!this.#isDone && (this.#toPass > 0 || this.#lastKey !== undefined)) {
      const batch = nextRows(this.#input, this.#context);
      if (batch === undefined) return undefined;
      const passed = this.#passed(batch);
      if (passed.rowCount > 0) return passed;
    }
    return undefined;
  }

  close(): void {
    this.#input.close();
  }

  #passed(batch: Batch): Batch {
    const vectors = this.#keys.map((key) => key.evaluate(batch, this.#context));
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount && !this.#isDone; row += 1) {
      if (this.#toSkip > 0) {
        this.#toSkip -= 1;
      } else if (this.#takes(vectors, row)) {
        rows[count] = row;
        count += 1;
      } else {
        this.#isDone = true;
      }
    }
    return { rowCount: count, columns: batch.columns.map((c) => take(c, { rows, count })) };
  }

  #takes(keys: readonly Vector[], row: number): boolean {
    const key = keys.map((vector) => valueAt(vector, row));
    if (this.#toPass > 0) {
      this.#toPass -= 1;
      this.#lastKey = key;
      return true;
    }
    return this.#keys.every((sortKey, i) => {
      return compareByKey(sortKey, key[i] ?? null, this.#lastKey?.[i] ?? null) === 0;
    });
  }
}
