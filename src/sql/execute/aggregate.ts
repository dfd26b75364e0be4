/**
 * GROUP BY and aggregates: every row is added to the states of its group; the groups come out at
 * the end, in order of first appearance.
 *
 * With grouping sets every row is added once for each set, and the number of the set is the first
 * part of the key: equal values of different sets are different groups.
 */
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  type Batch,
  constVector,
  type DataType,
  INT,
  keepRows,
  type Selection,
  take,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../types/mod.ts";
import type { AggregateForm, AggregateState, BatchGroups } from "../functions/aggregates.ts";
import { type Evaluator, selectRows } from "./expression.ts";
import { Grouping } from "./grouping.ts";
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
  /** Of DISTINCT: what each group has seen. */
  readonly seen: Grouping | undefined;
  /** Of ORDER BY: rows wait here until the end. */
  readonly waiting: { group: number; args: Value[]; keys: Value[] }[] | undefined;
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
      seen: column.isDistinct ? newSeen(column, options) : undefined,
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
      this.#addTo(batch, keys.length === 0 ? undefined : this.#groups.groupsOf(vectors, rowCount));
      return;
    }
    for (const number of sets.keys()) {
      this.#addTo(batch, this.#groups.groupsOf(this.#keysOfSet(number, vectors), batch.rowCount));
    }
  }

  #addTo(batch: Batch, groups: BatchGroups | undefined): void {
    for (const accumulator of this.#accumulators) this.#accumulate(accumulator, batch, groups);
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

  #accumulate(accumulator: Accumulator, batch: Batch, all: BatchGroups | undefined): void {
    const { column, seen, state } = accumulator;
    const { run } = this.#options;
    let input = batch;
    let groups = all;
    if (column.filter !== undefined) {
      const kept = selectRows(column.filter(batch, run), batch.rowCount);
      input = keepRows(input, kept);
      groups = keptGroups(groups, kept);
    }
    let args = column.args.map((argument) => argument(input, run));
    if (seen !== undefined) {
      const kept = seen.newRowsOf(keyOfDistinct(groups, args), input.rowCount);
      input = keepRows(input, kept);
      args = args.map((vector) => take(vector, kept));
      groups = keptGroups(groups, kept);
    }
    const { rowCount } = input;
    if (rowCount === 0) return;
    if (accumulator.waiting !== undefined) {
      this.#wait(accumulator, { args, input, groups });
      return;
    }
    if (args.length <= 1 && state.addVector?.(groups, args[0], rowCount) === true) return;
    for (let row = 0; row < rowCount; row += 1) {
      const group = groups?.numbers[row] ?? 0;
      this.#addRow(
        accumulator,
        group,
        args.map((vector) => valueAt(vector, row)),
      );
    }
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
    rows: {
      args: readonly Vector[];
      input: Batch;
      groups: BatchGroups | undefined;
    },
  ): void {
    const keys = column.orderBy.map((key) => key.evaluate(rows.input, this.#options.run));
    for (let row = 0; row < rows.input.rowCount; row += 1) {
      const group = rows.groups?.numbers[row] ?? 0;
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
      for (const { group, args } of waiting) this.#addRow(accumulator, group, args);
    }
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

/** What tells the rows of DISTINCT apart: the group, where there are several, and the arguments. */
function newSeen(
  { argumentTypes }: AggregateColumn,
  { keys, run, sets }: AggregateOptions,
): Grouping {
  const isGrouped = keys.length > 0 || sets !== undefined;
  const types = isGrouped ? [INT, ...argumentTypes] : argumentTypes;
  return new Grouping(types, run.memory, { keepsKeys: false });
}

function keyOfDistinct(
  groups: BatchGroups | undefined,
  args: readonly Vector[],
): readonly Vector[] {
  if (groups === undefined) return args;
  const { buffer, byteOffset, length } = groups.numbers;
  const values = new Int32Array(buffer, byteOffset, length);
  return [{ kind: "i32", length, values, nulls: undefined }, ...args];
}

function keptGroups(
  groups: BatchGroups | undefined,
  { rows, count }: Selection,
): BatchGroups | undefined {
  if (groups === undefined) return undefined;
  const numbers = new Uint32Array(count);
  for (let i = 0; i < count; i += 1) numbers[i] = groups.numbers[rows[i] ?? 0] ?? 0;
  return { numbers, groupCount: groups.groupCount, rowCounts: undefined };
}
