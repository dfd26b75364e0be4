/**
 * Sorting, and the first n of a sort without holding more than a few times n rows.
 */
import {
  type Batch,
  compareValues,
  type DataType,
  take,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import type { Evaluator } from "./expression.ts";
import { HeldRows } from "./held_rows.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Run } from "./run.ts";
import { sortSteps } from "./stepwise_sort.ts";

export interface SortKey {
  readonly evaluate: Evaluator;
  readonly type: DataType;
  readonly isDescending: boolean;
  readonly nullsFirst: boolean;
}

export interface SortOptions {
  readonly run: Run;
  readonly input: Operator;
  readonly inputTypes: readonly DataType[];
  readonly keys: readonly SortKey[];
  /** Rows needed from the front; Infinity for all. */
  readonly rowsMax: number;
}

/** A top-n keeps up to this many rows beyond n before it cuts back. */
const SLACK_ROWS = 8192;

/** Orders two values of one sort key. */
export function compareByKey(
  { type, isDescending, nullsFirst }: Omit<SortKey, "evaluate">,
  left: Value,
  right: Value,
): number {
  if (left === null || right === null) {
    if (left === right) return 0;
    return (left === null) === nullsFirst ? -1 : 1;
  }
  const order =
    typeof left === "number" && typeof right === "number"
      ? left - right
      : compareValues(type, left, right);
  return isDescending ? -order : order;
}

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
      const position = keyStart + i;
      const by = compareByKey(key, rows.valueAt(position, left), rows.valueAt(position, right));
      if (by !== 0) return by;
    }
    return left - right;
  };
}

/**
 * Numbers of held rows in the order of keys whose values are held from a column on; a step is a few
 * milliseconds.
 */
export function orderSteps(
  rows: HeldRows,
  keys: readonly Omit<SortKey, "evaluate">[],
  keyStart: number,
): Generator<undefined, number[]> {
  return sortSteps(rows.rowCount, rowOrder(rows, keys, keyStart));
}

type Sorting = ReturnType<typeof sortSteps>;

export class Sort implements Operator {
  readonly #options: SortOptions;
  readonly #rows: HeldRows;
  readonly #keyStart: number;
  /** Under way. */
  #sorting: Sorting | undefined;
  /** The input has ended. */
  #isFull = false;
  #order: readonly number[] | undefined;
  #position = 0;

  constructor(options: SortOptions) {
    this.#options = options;
    this.#keyStart = options.inputTypes.length;
    const types = [...options.inputTypes, ...options.keys.map((key) => key.type)];
    this.#rows = new HeldRows(types, options.run.memory);
  }

  next(): Batch | undefined {
    if (this.#sorting !== undefined) return this.#sortStep(this.#sorting);
    if (this.#order === undefined) return this.#fill();
    if (this.#position >= this.#order.length) return undefined;
    const batch = this.#rows.batchOf(this.#order, this.#position);
    this.#position += batch.rowCount;
    return { rowCount: batch.rowCount, columns: batch.columns.slice(0, this.#keyStart) };
  }

  close(): void {
    this.#options.input.close();
  }

  #fill(): Batch {
    const { input, keys, run, rowsMax } = this.#options;
    const batch = input.next();
    if (batch === undefined) {
      this.#isFull = true;
      return this.#sortStep(this.#sort());
    }
    if (batch.rowCount === 0) return NOTHING_YET;
    const keyVectors = keys.map((key) => key.evaluate(batch, run));
    this.#rows.append([...batch.columns, ...keyVectors], batch.rowCount);
    if (this.#rows.rowCount <= 2 * rowsMax + SLACK_ROWS) return NOTHING_YET;
    return this.#sortStep(this.#sort());
  }

  /** The order is what is needed of all rows, or what is kept of those so far. */
  #sortStep(sorting: Sorting): Batch {
    const step = sorting.next();
    this.#sorting = step.done === true ? undefined : sorting;
    if (step.done !== true) return NOTHING_YET;
    const order = step.value;
    const { rowsMax } = this.#options;
    if (order.length > rowsMax) order.length = rowsMax;
    if (this.#isFull) this.#order = order;
    else this.#rows.keep(order);
    return NOTHING_YET;
  }

  #sort(): Sorting {
    const { keys } = this.#options;
    return sortSteps(this.#rows.rowCount, rowOrder(this.#rows, keys, this.#keyStart));
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
