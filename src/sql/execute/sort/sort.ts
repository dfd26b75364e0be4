/**
 * Sorting, and the first n of a sort without holding more than a few times n rows.
 */
import { collectSoon } from "../../../base/garbage.ts";
import { sortSteps } from "../../../base/stepwise_sort.ts";
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
import { allRows } from "../evaluate/row_choice.ts";
import { HeldRows } from "../held/held_rows.ts";
import { batchBytes } from "../held/memory_budget.ts";
import { compareByKey } from "../held/sort_order.ts";
import { NOTHING_YET, type Operator } from "../run/operator.ts";
import { type Run } from "../run/run.ts";
import { type SpillOptions, SpillSite } from "../run/spilling.ts";
import { leadingRows, RowBound } from "./row_bound.ts";
import { type SortKey } from "./sort_key.ts";
import { prefixSteps, type SortPrefix } from "./sort_prefix.ts";

export interface SortOptions extends SpillOptions {
  readonly input: Operator;
  readonly inputTypes: readonly DataType[];
  readonly keys: readonly SortKey[];
  /** Rows needed from the front; Infinity for all. */
  readonly rowsMax: number;
}

/** A top-n keeps up to this many rows beyond n before it cuts back. */
const SLACK_ROWS = 8192;

/** Fewer rows are sorted before their prefixes are made. */
const PREFIXED_ROWS_MIN = 256;

/** The order of held rows by keys whose values are held from a column on; equal rows by arrival. */
function rowOrder(
  rows: HeldRows,
  keys: readonly Omit<SortKey, "evaluate">[],
  keyStart: number,
): (left: number, right: number) => number {
  return (left, right) => {
    for (let i = 0; i < keys.length; i += 1) {
      const key = keys[i];
      if (key === undefined) break;
      const by = rows.compare({ key, position: keyStart + i }, left, right);
      if (by !== 0) return by;
    }
    return left - right;
  };
}

/**
 * Numbers of held rows in the order of keys whose values are held from a column on; a step is a few
 * milliseconds.
 */
export function* orderSteps(
  rows: HeldRows,
  keys: readonly Omit<SortKey, "evaluate">[],
  keyStart: number,
): Generator<undefined, Uint32Array> {
  const order = rowOrder(rows, keys, keyStart);
  const [key] = keys;
  const isLong = rows.rowCount >= PREFIXED_ROWS_MIN;
  const prefix = isLong && key !== undefined ? yield* prefixSteps(rows, key, keyStart) : undefined;
  return yield* sortSteps(rows.rowCount, prefix === undefined ? order : prefixed(prefix, order));
}

/** Compares by numbers first. */
function prefixed(
  { first, second }: SortPrefix,
  order: (left: number, right: number) => number,
): (left: number, right: number) => number {
  return (left, right) => {
    const one = first[left] ?? 0;
    const other = first[right] ?? 0;
    // Two NULLs are infinities, whose difference is none.
    if (one < other) return -1;
    if (one > other) return 1;
    if (second !== undefined) {
      const then = (second[left] ?? 0) - (second[right] ?? 0);
      if (then !== 0) return then;
    }
    return order(left, right);
  };
}

/** Of an order the first rows; `rowsMax` may be Infinity. */
function firstOf(order: Uint32Array, rowsMax: number): Uint32Array {
  return order.length > rowsMax ? order.subarray(0, rowsMax) : order;
}

/** Writes held rows as a sorted run, of those only the first `rowsMax`, and lets go of them. */
export function* writeRunSteps(
  rows: HeldRows,
  runs: SortedRuns,
  { keyStart, keys, rowsMax }: Pick<SortOptions, "keys" | "rowsMax"> & { keyStart: number },
): Generator<undefined, void> {
  const order = firstOf(yield* orderSteps(rows, keys, keyStart), rowsMax);
  runs.begin();
  for (let start = 0; start < order.length; ) {
    const batch = rows.batchOf(order, start);
    runs.append(batch, batchBytes(batch));
    start += batch.rowCount;
    yield undefined;
  }
  rows.clear();
  collectSoon();
}

/** How sorted runs order the values of each key. */
export function comparatorsOf(
  keys: readonly Omit<SortKey, "evaluate">[],
): ((left: Value, right: Value) => number)[] {
  return keys.map((key) => (left, right) => compareByKey(key, left, right));
}

/**
 * Sorts what it holds; beyond the memory it writes sorted runs and merges them.
 *
 *     filling ──end──► sorting ──► yielding in order
 *       │ ▲  crowded                   ▲
 *       ▼ │                            │
 *     a run is written ──end──► runs are merged
 */
export class Sort implements Operator {
  readonly #options: SortOptions;
  readonly #site: SpillSite;
  readonly #rows: HeldRows;
  readonly #types: readonly DataType[];
  readonly #keyStart: number;
  /** Work under way, in steps of a few milliseconds. */
  #steps: Iterator<undefined, void> | undefined;
  #order: Uint32Array | undefined;
  /** Rows that went up. */
  #position = 0;
  #runs: SortedRuns | undefined;
  #merge: RunMerge | undefined;
  /** Once as many rows are held as are needed. */
  #bound: RowBound | undefined;

  constructor(options: SortOptions) {
    this.#options = options;
    this.#keyStart = options.inputTypes.length;
    this.#types = [...options.inputTypes, ...options.keys.map((key) => key.type)];
    this.#site = new SpillSite(options);
    this.#rows = new HeldRows(this.#types, this.#site.memory);
  }

  next(): Batch | undefined {
    if (this.#steps !== undefined) {
      if (this.#steps.next().done === true) this.#steps = undefined;
      return NOTHING_YET;
    }
    if (this.#merge !== undefined) return this.#merged(this.#merge);
    if (this.#order === undefined) return this.#fill();
    if (this.#position >= this.#order.length) return undefined;
    const batch = this.#rows.batchOf(this.#order, this.#position);
    this.#position += batch.rowCount;
    return { rowCount: batch.rowCount, columns: batch.columns.slice(0, this.#keyStart) };
  }

  close(): void {
    this.#options.input.close();
    this.#runs?.close();
    this.#site.close();
  }

  #fill(): Batch {
    const { input, keys, run, rowsMax } = this.#options;
    const batch = input.next();
    if (batch === undefined) {
      this.#steps = this.#runs === undefined ? this.#finish() : this.#finishRuns(this.#runs);
      return NOTHING_YET;
    }
    if (batch.rowCount === 0) return NOTHING_YET;
    const keyVectors = keys.map((key) => key.evaluate(batch, run));
    // The input may have further columns, which only keys are read from.
    const columns = [...batch.columns.slice(0, this.#keyStart), ...keyVectors];
    const { rowCount } = batch;
    const rows = keepRows({ rowCount, columns }, this.#needed(keyVectors, rowCount));
    this.#rows.append(rows.columns, rows.rowCount);
    if (this.#rows.rowCount > 2 * rowsMax + SLACK_ROWS) this.#steps = this.#cut();
    else if (this.#site.isDue) this.#steps = this.#spill();
    return NOTHING_YET;
  }

  /** The rows of a batch that may be among the first ones. */
  #needed(keyVectors: readonly Vector[], rowCount: number): Selection {
    const { keys, rowsMax } = this.#options;
    const [first] = keys;
    const before = this.#bound?.rowsBefore(keyVectors, rowCount) ?? allRows(rowCount);
    if (first === undefined) return before;
    const { isDescending } = first;
    return leadingRows(before, rowsMax, { isDescending, vector: keyVectors[0] });
  }

  /** The order of the rows that are held, of those that are needed. */
  *#sort(): Generator<undefined, Uint32Array> {
    const { keys, rowsMax } = this.#options;
    return firstOf(yield* orderSteps(this.#rows, keys, this.#keyStart), rowsMax);
  }

  *#cut(): Generator<undefined, void> {
    yield* this.#rows.keepSteps(yield* this.#sort());
    const { keys } = this.#options;
    const last = this.#rows.rowCount - 1;
    if (last < 0) return;
    const values = keys.map((_, i) => this.#rows.valueAt(this.#keyStart + i, last));
    this.#bound = new RowBound(keys, values);
  }

  *#finish(): Generator<undefined, void> {
    this.#order = yield* this.#sort();
  }

  #spill(): Generator<undefined, void> {
    const { keys, rowsMax } = this.#options;
    const keyStart = this.#keyStart;
    this.#runs ??= this.#site.sortedRuns(this.#types, comparatorsOf(keys), keyStart);
    return writeRunSteps(this.#rows, this.#runs, { keys, keyStart, rowsMax });
  }

  *#finishRuns(runs: SortedRuns): Generator<undefined, void> {
    if (this.#rows.rowCount > 0) yield* this.#spill();
    yield* runs.reduce();
    this.#site.memory.take(runs.mergeBytes);
    this.#merge = runs.merged();
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

/** LIMIT … WITH TIES over sorted input: passes rows until the keys change after the last one. */
export class LimitWithTies implements Operator {
  readonly #input: Operator;
  readonly #keys: readonly SortKey[];
  readonly #run: Run;
  #toSkip: number;
  #toPass: number;
  #lastKey: readonly Value[] | undefined;
  #isDone = false;

  constructor(
    input: Operator,
    options: { run: Run; keys: readonly SortKey[]; limit: number; offset: number },
  ) {
    this.#input = input;
    this.#keys = options.keys;
    this.#run = options.run;
    this.#toSkip = options.offset;
    this.#toPass = options.limit;
  }

  next(): Batch | undefined {
    if (this.#isDone || (this.#toPass === 0 && this.#lastKey === undefined)) return undefined;
    const batch = this.#input.next();
    if (batch === undefined || batch.rowCount === 0) return batch;
    const vectors = this.#keys.map((key) => key.evaluate(batch, this.#run));
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

  close(): void {
    this.#input.close();
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
