/**
 * Calls over windows of one partitioning and order: the input is held and sorted once, then each
 * row goes up with the values of the calls, in the order of the window.
 *
 *     filling ──input ends──► sorted ──a batch of rows──► sorted … ──► done
 *
 * A call may look at many rows for one, so a batch also ends after a certain amount of that, and
 * others get their turn.
 */
import { assert, defined } from "../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  type Batch,
  BOOLEAN,
  type DataType,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../types/mod.ts";
import type { BoundWindowCall } from "../bind/bound.ts";
import type { Evaluator } from "./expression.ts";
import { HeldRows } from "./held_rows.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Run } from "./run.ts";
import { compareByKey, orderSteps, type SortKey } from "./sort.ts";
import { FrameAggregate } from "./window_aggregate.ts";
import { FrameFinder, type FrameShape, type Partition, WindowRows } from "./window_frame.ts";
import { type WindowColumn, WindowValue } from "./window_values.ts";

export interface WindowCall {
  readonly form: BoundWindowCall["form"];
  readonly type: DataType;
  readonly args: readonly Evaluator[];
  readonly argumentTypes: readonly DataType[];
  readonly filter: Evaluator | undefined;
  readonly frame: FrameShape;
}

export interface WindowOptions {
  readonly run: Run;
  readonly input: Operator;
  /** Columns of the input that go up. */
  readonly kept: readonly number[];
  readonly keptTypes: readonly DataType[];
  readonly partition: readonly SortKey[];
  readonly order: readonly SortKey[];
  readonly calls: readonly WindowCall[];
}

/** Rows that calls may look at in one batch, about 20 ms. */
const WORK_MAX = 1_000_000;

/** Rows between two pauses in the search for the end of a partition, about 5 ms. */
const SEARCHED_ROWS_MAX = 16_384;

/** What a row costs beside its values: its place in the order and its group. */
const ROW_BYTES = 24;

/** Something that is computed for each row when it arrives, and where it is held. */
interface HeldValue {
  readonly evaluate: Evaluator;
  readonly type: DataType;
}

interface CallColumns {
  readonly call: WindowCall;
  readonly args: readonly number[];
  readonly filter: number | undefined;
  readonly startKey: number;
  readonly endKey: number;
}

export class Window implements Operator {
  readonly #options: WindowOptions;
  readonly #values: HeldValue[] = [];
  readonly #callColumns: readonly CallColumns[];
  readonly #held: HeldRows;
  #rows: WindowRows | undefined;
  #order: readonly number[] = [];
  /** Under way, once the input has ended. */
  #sorting: Generator<undefined, number[]> | undefined;
  #columns: readonly WindowColumn[] = [];
  #partition: Partition = { start: 0, end: 0, groupStarts: [0] };
  /** The partition that follows, while its end is looked for. */
  #following: { readonly start: number; row: number; readonly groupStarts: number[] } | undefined;
  /** The next row to go up, and the group of the partition that it is in. */
  #row = 0;
  #group = 0;

  constructor(options: WindowOptions) {
    this.#options = options;
    for (const key of [...options.partition, ...options.order]) this.#hold(key);
    this.#callColumns = options.calls.map((call) => this.#columnsOf(call));
    const types = [...options.keptTypes, ...this.#values.map(({ type }) => type)];
    this.#held = new HeldRows(types, options.run.memory);
  }

  next(): Batch | undefined {
    if (this.#sorting !== undefined) return this.#sort(this.#sorting);
    if (this.#rows === undefined) return this.#fill();
    return this.#row < this.#rows.rowCount ? this.#batch(this.#rows) : undefined;
  }

  close(): void {
    this.#options.input.close();
  }

  /** Has a value held with each row. Returns its column. */
  #hold(value: HeldValue): number {
    return this.#options.kept.length + this.#values.push(value) - 1;
  }

  #columnsOf(call: WindowCall): CallColumns {
    const { args, argumentTypes, filter, frame } = call;
    const keys = [frame.start, frame.end].map(({ reach }) =>
      reach === undefined ? 0 : this.#hold({ evaluate: reach.key, type: reach.type }),
    );
    return {
      call,
      args: args.map((evaluate, i) => {
        return this.#hold({ evaluate, type: defined(argumentTypes[i], "arguments have types") });
      }),
      filter: filter === undefined ? undefined : this.#hold({ evaluate: filter, type: BOOLEAN }),
      startKey: keys[0] ?? 0,
      endKey: keys[1] ?? 0,
    };
  }

  #fill(): Batch {
    const { input, kept, run } = this.#options;
    const batch = input.next();
    if (batch === undefined) {
      const { order, partition } = this.#options;
      this.#sorting = orderSteps(this.#held, [...partition, ...order], kept.length);
      return NOTHING_YET;
    }
    if (batch.rowCount === 0) return NOTHING_YET;
    const keptVectors = kept.map((column) => {
      return defined(batch.columns[column], "a kept column is one of the input");
    });
    const values = this.#values.map(({ evaluate }) => evaluate(batch, run));
    run.memory.take(ROW_BYTES * batch.rowCount);
    this.#held.append([...keptVectors, ...values], batch.rowCount);
    return NOTHING_YET;
  }

  /** One step of the sort. */
  #sort(sorting: Generator<undefined, number[]>): Batch {
    const { done, value } = sorting.next();
    if (done !== true) return NOTHING_YET;
    this.#sorting = undefined;
    this.#order = value;
    const rows = new WindowRows(this.#held, value);
    this.#rows = rows;
    this.#columns = this.#callColumns.map((columns) => this.#columnFor(columns, rows));
    return NOTHING_YET;
  }

  #columnFor(
    { args, call, endKey, filter, startKey }: CallColumns,
    rows: WindowRows,
  ): WindowColumn {
    const { order, run } = this.#options;
    const { form, frame: shape } = call;
    const frames = new FrameFinder({ run, rows, shape, sort: order[0], startKey, endKey });
    if (form.kind === "function") return new WindowValue({ name: form.name, rows, args, frames });
    return new FrameAggregate({
      form: form.aggregate,
      rows,
      args,
      argumentTypes: call.argumentTypes,
      filter,
      frames,
      isOpen: shape.end.type === "unbounded following",
      memory: run.memory,
    });
  }

  #batch(rows: WindowRows): Batch {
    const start = this.#row;
    const rowsMax = Math.min(rows.rowCount, start + BATCH_ROWS_MAX);
    const workMax = this.#work() + WORK_MAX;
    const results = this.#columns.map((): Value[] => []);
    while (this.#row < rowsMax && this.#work() < workMax) {
      if (!this.#step(rows)) break;
      const place = { row: this.#row, group: this.#group };
      for (const [i, column] of this.#columns.entries()) results[i]?.push(column.valueAt(place));
      this.#row += 1;
    }
    const held = this.#held.batchOf(this.#order.slice(start, this.#row), 0);
    const made = results.map((values, i): Vector => {
      return vectorFromValues(defined(this.#options.calls[i], "a call has a column").type, values);
    });
    const columns = [...held.columns.slice(0, this.#options.kept.length), ...made];
    return { rowCount: this.#row - start, columns };
  }

  #work(): number {
    let work = 0;
    for (const column of this.#columns) work += column.work;
    return work;
  }

  /** Moves partition and group to the next row. Returns false while the partition has no end yet. */
  #step(rows: WindowRows): boolean {
    if (this.#row === this.#partition.end) {
      const partition = this.#partitionFrom(this.#row, rows);
      if (partition === undefined) return false;
      this.#partition = partition;
      this.#group = 0;
      for (const column of this.#columns) column.begin(this.#partition);
    } else if (this.#partition.groupStarts[this.#group + 1] === this.#row) {
      this.#group += 1;
    }
    assert(this.#row < this.#partition.end, "a row is in its partition");
    return true;
  }

  /** Goes on looking for the end of a partition; undefined after so many rows without one. */
  #partitionFrom(start: number, rows: WindowRows): Partition | undefined {
    const { kept, order, partition } = this.#options;
    const orderColumn = kept.length + partition.length;
    const following = this.#following ?? { start, row: start + 1, groupStarts: [start] };
    const { groupStarts } = following;
    const rowsMax = Math.min(rows.rowCount, following.row + SEARCHED_ROWS_MAX);
    let { row } = following;
    let isFound = false;
    for (; row < rowsMax; row += 1) {
      isFound = !this.#areEqual(partition, kept.length, row);
      if (isFound) break;
      if (!this.#areEqual(order, orderColumn, row)) groupStarts.push(row);
    }
    if (!isFound && row < rows.rowCount) {
      following.row = row;
      this.#following = following;
      return undefined;
    }
    this.#following = undefined;
    return { start, end: row, groupStarts };
  }

  /** Whether a row has the same keys as the one before it. */
  #areEqual(keys: readonly SortKey[], column: number, row: number): boolean {
    const rows = defined(this.#rows, "rows are compared when they are sorted");
    return keys.every((key, i) => {
      const left = rows.valueAt(column + i, row - 1);
      return compareByKey(key, left, rows.valueAt(column + i, row)) === 0;
    });
  }
}
