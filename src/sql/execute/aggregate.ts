/**
 * GROUP BY and aggregates: every row is added to the states of its group; the groups come out at
 * the end, in order of first appearance.
 *
 * With grouping sets every row is added once for each set, and the number of the set is the first
 * part of the key: equal values of different sets are different groups.
 */
import { defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  type Batch,
  constVector,
  type DataType,
  INT,
  type Selection,
  take,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../types/mod.ts";
import type { AggregateForm, AggregateState } from "../functions/aggregates.ts";
import { type Evaluator, selectRows } from "./expression.ts";
import { Grouping } from "./grouping.ts";
import { KeyIndex } from "./key_index.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import { bytesOf, type Run } from "./run.ts";
import { compareByKey, type SortKey } from "./sort.ts";

export interface AggregateColumn {
  readonly form: AggregateForm;
  /** No argument: count(*). Several: as the form takes them. */
  readonly args: readonly Evaluator[];
  readonly argumentTypes: readonly DataType[];
  readonly isDistinct: boolean;
  readonly filter: Evaluator | undefined;
  readonly orderBy: readonly SortKey[];
}

export interface AggregateOptions {
  readonly run: Run;
  readonly input: Operator;
  readonly keys: readonly Evaluator[];
  readonly keyTypes: readonly DataType[];
  readonly aggregates: readonly AggregateColumn[];
  /** Positions in `keys` that each grouping set has; undefined: all of them, once. */
  readonly sets?: readonly (readonly number[])[] | undefined;
}

/** One aggregate under way. */
interface Accumulator {
  readonly column: AggregateColumn;
  readonly state: AggregateState;
  /** Of DISTINCT: what each group has seen, by the number of the group and the arguments. */
  readonly seen: KeyIndex | undefined;
  /** Of ORDER BY: rows wait here until the end. */
  readonly waiting: Waiting[] | undefined;
}

interface Waiting {
  readonly group: number;
  readonly args: readonly Value[];
  readonly keys: readonly Value[];
}

export class Aggregate implements Operator {
  readonly #options: AggregateOptions;
  readonly #keyTypes: readonly DataType[];
  readonly #groups: Grouping;
  readonly #accumulators: readonly Accumulator[];
  /** Groups yielded so far; undefined while the input lasts. */
  #position: number | undefined;

  constructor(options: AggregateOptions) {
    this.#options = options;
    this.#keyTypes = options.sets === undefined ? options.keyTypes : [INT, ...options.keyTypes];
    this.#groups = new Grouping(this.#keyTypes, options.run.memory);
    this.#accumulators = options.aggregates.map((column) => ({
      column,
      state: column.form.create(),
      seen: column.isDistinct ? new KeyIndex(this.#distinctTypes(column)) : undefined,
      waiting: column.orderBy.length > 0 ? [] : undefined,
    }));
  }

  next(): Batch | undefined {
    if (this.#position === undefined) {
      const batch = this.#options.input.next();
      if (batch === undefined) this.#finishInput();
      else if (batch.rowCount > 0) this.#add(batch);
      return NOTHING_YET;
    }
    const groupCount = this.#groupCount();
    if (this.#position >= groupCount) return undefined;
    const start = this.#position;
    const end = Math.min(groupCount, start + BATCH_ROWS_MAX);
    this.#position = end;
    return { rowCount: end - start, columns: this.#columnsOf(start, end) };
  }

  close(): void {
    this.#options.input.close();
  }

  /** Without GROUP BY there is one group, also over no rows. */
  #groupCount(): number {
    return this.#keyTypes.length === 0 ? 1 : this.#groups.groupCount;
  }

  #add(batch: Batch): void {
    const { keys, run, sets } = this.#options;
    const vectors = keys.map((key) => key(batch, run));
    if (sets === undefined) {
      const { rowCount } = batch;
      this.#addTo(batch, keys.length === 0 ? undefined : this.#groups.numbersOf(vectors, rowCount));
      return;
    }
    for (const number of sets.keys()) {
      this.#addTo(batch, this.#groups.numbersOf(this.#keysOfSet(number, vectors), batch.rowCount));
    }
  }

  #addTo(batch: Batch, numbers: Uint32Array | undefined): void {
    for (const accumulator of this.#accumulators) this.#accumulate(accumulator, batch, numbers);
  }

  /** The number of the set, and the keys that it has. */
  #keysOfSet(number: number, vectors: readonly Vector[]): Vector[] {
    const set = this.#options.sets?.[number] ?? [];
    const keys = this.#options.keyTypes.map((_, position) => {
      const vector = vectors[position];
      return vector !== undefined && set.includes(position) ? vector : constVector(null, 1);
    });
    return [constVector(number, 1), ...keys];
  }

  #accumulate(accumulator: Accumulator, batch: Batch, numbers: Uint32Array | undefined): void {
    const { column, state } = accumulator;
    const { run } = this.#options;
    let rowCount = batch.rowCount;
    let groups = numbers;
    let input = batch;
    if (column.filter !== undefined) {
      const kept = selectRows(column.filter(batch, run), rowCount);
      rowCount = kept.count;
      input = { rowCount, columns: batch.columns.map((vector) => take(vector, kept)) };
      groups = groups?.length === undefined ? undefined : takeNumbers(groups, kept);
      if (rowCount === 0) return;
    }
    let args = column.args.map((argument) => argument(input, run));
    if (accumulator.waiting !== undefined) {
      this.#wait(accumulator, { args, input, groups });
      return;
    }
    if (accumulator.seen !== undefined) {
      const first = this.#firstOf(accumulator.seen, groups, { args, rowCount });
      rowCount = first.count;
      if (rowCount === 0) return;
      args = args.map((vector) => take(vector, first));
      groups = groups === undefined ? undefined : takeNumbers(groups, first);
    }
    if (args.length <= 1 && state.addVector?.(groups, args[0], rowCount) === true) return;
    for (let row = 0; row < rowCount; row += 1) {
      const group = groups === undefined ? 0 : (groups[row] ?? 0);
      this.#addRow(
        accumulator,
        group,
        args.map((vector) => valueAt(vector, row)),
      );
    }
  }

  /** Without groups the arguments are the whole key. */
  #distinctTypes({ argumentTypes }: AggregateColumn): readonly DataType[] {
    return this.#keyTypes.length === 0 ? argumentTypes : [INT, ...argumentTypes];
  }

  /** The rows whose arguments their group has not seen; numbers of new keys ascend without gaps. */
  #firstOf(
    seen: KeyIndex,
    groups: Uint32Array | undefined,
    { args, rowCount }: { args: readonly Vector[]; rowCount: number },
  ): Selection {
    let next = seen.count;
    const bytesBefore = seen.bytes;
    const numbers = seen.add([...this.#groupVector(groups, rowCount), ...args], rowCount);
    this.#options.run.memory.take(seen.bytes - bytesBefore);
    const rows = new Uint32Array(rowCount);
    let count = 0;
    for (let row = 0; row < rowCount; row += 1) {
      if (numbers[row] !== next) continue;
      rows[count] = row;
      count += 1;
      next += 1;
    }
    return { rows, count };
  }

  #groupVector(groups: Uint32Array | undefined, rowCount: number): Vector[] {
    if (this.#keyTypes.length === 0) return [];
    if (groups === undefined) return [constVector(0, rowCount)];
    const values = new Float64Array(groups.subarray(0, rowCount));
    return [{ kind: "f64", length: rowCount, values, nulls: undefined }];
  }

  #addRow({ state }: Accumulator, group: number, values: readonly Value[]): void {
    if (state.keepsRows === true) {
      let bytes = 16;
      for (const value of values) bytes += bytesOf(value);
      this.#options.run.memory.take(bytes);
    }
    state.add(group, ...values);
  }

  #wait(
    { column, waiting }: Accumulator,
    rows: { args: readonly Vector[]; input: Batch; groups: Uint32Array | undefined },
  ): void {
    const keys = column.orderBy.map((key) => key.evaluate(rows.input, this.#options.run));
    for (let row = 0; row < rows.input.rowCount; row += 1) {
      const group = rows.groups === undefined ? 0 : (rows.groups[row] ?? 0);
      this.#options.run.memory.take(48 + 16 * (rows.args.length + keys.length));
      waiting?.push({
        group,
        args: rows.args.map((vector) => valueAt(vector, row)),
        keys: keys.map((vector) => valueAt(vector, row)),
      });
    }
  }

  #finishInput(): void {
    this.#position = 0;
    // A set without keys has one group, also over no rows.
    for (const [number, set] of (this.#options.sets ?? []).entries()) {
      if (set.length === 0) this.#groups.numbersOf(this.#keysOfSet(number, []), 1);
    }
    for (const accumulator of this.#accumulators) {
      const { column, waiting } = accumulator;
      if (waiting === undefined) continue;
      waiting.sort((left, right) => {
        for (const [i, key] of column.orderBy.entries()) {
          const order = compareByKey(key, left.keys[i] ?? null, right.keys[i] ?? null);
          if (order !== 0) return order;
        }
        return 0;
      });
      for (const { group, args } of this.#firstWaiting(accumulator, waiting)) {
        this.#addRow(accumulator, group, args);
      }
    }
  }

  /** Of rows in order, those that DISTINCT lets through. */
  #firstWaiting({ column, seen }: Accumulator, waiting: readonly Waiting[]): readonly Waiting[] {
    if (seen === undefined) return waiting;
    const args = column.argumentTypes.map((type, i) =>
      vectorFromValues(
        type,
        waiting.map((row) => row.args[i] ?? null),
      ),
    );
    const groups = Uint32Array.from(waiting, ({ group }) => group);
    const first = this.#firstOf(seen, groups, { args, rowCount: waiting.length });
    return Array.from(first.rows.subarray(0, first.count), (row) =>
      defined(waiting[row], "a row waits"),
    );
  }

  #columnsOf(start: number, end: number): Vector[] {
    const columns = this.#keyTypes.map((type, position) => {
      const values: Value[] = [];
      for (let group = start; group < end; group += 1) {
        values.push(this.#groups.keyAt(position, group));
      }
      return vectorFromValues(type, values);
    });
    for (const { column, state } of this.#accumulators) {
      const values: Value[] = [];
      for (let group = start; group < end; group += 1) values.push(state.finish(group));
      columns.push(vectorFromValues(column.form.result, values));
    }
    return columns;
  }
}

function takeNumbers(
  numbers: Uint32Array,
  { rows, count }: { rows: Uint32Array; count: number },
): Uint32Array {
  const taken = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) taken[i] = numbers[rows[i] ?? 0] ?? 0;
  return taken;
}
