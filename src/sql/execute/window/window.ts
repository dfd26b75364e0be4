/**
 * Calls over windows of one partitioning and order: the input is held and sorted once, then each
 * row goes up with the values of the calls, in the order of the window.
 *
 *     filling ──input ends──► sorted ──a batch of rows──► sorted … ──► done
 *       │ ▲ crowded
 *       ▼ │
 *     a sorted run is written ──input ends──► runs are merged: some partitions are held, go up, and
 *                                             are followed by the next ones
 *
 * What a partition takes must fit the memory, as a call may ask for any of its rows.
 *
 * A call may look at many rows for one, and give all their values as one. So a batch also ends
 * after a certain amount of that.
 *
 * Aggregates are carried from frame to frame; those without a way to take rows back, such as a sum
 * of DOUBLE over a sliding frame, read each frame again. Rows are held with what was computed
 * before the window, so that what makes one long value of all rows comes last.
 */
import { assert, defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  type Batch,
  BOOLEAN,
  type DataType,
  type Value,
  type Vector,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundWindowCall } from "../../bind/bound_expressions.ts";
import type { SortedRuns } from "../../spill/mod.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { HeldRows } from "../held/held_rows.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import { type SpillOptions, SpillSite } from "../run/spilling.ts";
import { rowOrder } from "../sort/row_order.ts";
import { comparatorsOf, writeRun } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { MergedPartitions } from "./merged_partitions.ts";
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

export interface WindowOptions extends SpillOptions {
  readonly input: Operator;
  /** Columns of the input that go up. */
  readonly kept: readonly number[];
  readonly keptTypes: readonly DataType[];
  readonly partition: readonly SortKey[];
  readonly order: readonly SortKey[];
  readonly calls: readonly WindowCall[];
}

/** Rows that calls may look at in one batch, and values that they may give. */
const WORK_MAX = 250_000;

/** Rows between two looks at the clock in the search for the end of a partition. */
const SEARCHED_PER_LOOK = 16_384;

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
  readonly #types: readonly DataType[];
  readonly #site: SpillSite;
  #held: HeldRows;
  #rows: WindowRows | undefined;
  #runs: SortedRuns | undefined;
  #merge: MergedPartitions | undefined;
  /** What the calls hold over the rows at hand. */
  #callMemory: MemoryBudget;
  #order: Uint32Array = new Uint32Array();
  #columns: readonly WindowColumn[] = [];
  #partition: Partition = { start: 0, end: 0, groupStarts: [0] };
  /** The next row to go up, and the group of the partition that it is in. */
  #row = 0;
  #group = 0;

  constructor(options: WindowOptions) {
    this.#options = options;
    for (const key of [...options.partition, ...options.order]) this.#hold(key);
    this.#callColumns = options.calls.map((call) => this.#columnsOf(call));
    this.#types = [...options.keptTypes, ...this.#values.map(({ type }) => type)];
    // Without PARTITION BY all rows are needed at once, wherever they lie.
    this.#site = new SpillSite(options, { isPossible: options.partition.length > 0 });
    this.#held = new HeldRows(this.#types, this.#site.memory);
    this.#callMemory = options.run.memory.nested();
  }

  next(): Batch | undefined {
    if (this.#rows === undefined) this.#fill();
    else if (this.#row === this.#rows.rowCount && this.#merge?.isOver === false) this.#loadNext();
    const rows = defined(this.#rows, "rows are loaded");
    return this.#row < rows.rowCount ? this.#batch(rows) : undefined;
  }

  close(): void {
    this.#options.input.close();
    this.#runs?.close();
    this.#merge?.close();
    this.#callMemory.close();
    this.#site.close();
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

  #fill(): void {
    const { input, run } = this.#options;
    for (let batch = nextRows(input, run); batch !== undefined; batch = nextRows(input, run)) {
      this.#add(batch);
    }
    if (this.#runs === undefined) this.#begin(this.#rowOrder());
    else this.#mergeRuns(this.#runs);
  }

  #add(batch: Batch): void {
    const { kept, run } = this.#options;
    const keptVectors = kept.map((column) => {
      return defined(batch.columns[column], "a kept column is one of the input");
    });
    const values = this.#values.map(({ evaluate }) => evaluate(batch, run));
    this.#site.memory.take(ROW_BYTES * batch.rowCount);
    this.#held.append([...keptVectors, ...values], batch.rowCount);
    if (this.#site.isDue) this.#spill();
  }

  get #sortKeys(): readonly SortKey[] {
    return [...this.#options.partition, ...this.#options.order];
  }

  #rowOrder(): Uint32Array {
    const { kept, run } = this.#options;
    return rowOrder(this.#held, this.#sortKeys, { keyStart: kept.length, run });
  }

  /** Goes over to the rows that are held. */
  #begin(order: Uint32Array): void {
    const rows = new WindowRows(this.#held, order);
    this.#order = order;
    this.#rows = rows;
    this.#row = 0;
    this.#group = 0;
    this.#partition = { start: 0, end: 0, groupStarts: [0] };
    this.#callMemory.close();
    this.#columns = this.#callColumns.map((columns) => this.#columnFor(columns, rows));
  }

  /** Writes what is held as a sorted run. */
  #spill(): void {
    const keyStart = this.#options.kept.length;
    const keys = this.#sortKeys;
    this.#runs ??= this.#site.sortedRuns(this.#types, comparatorsOf(keys), keyStart);
    const rowsMax = Number.POSITIVE_INFINITY;
    writeRun(this.#held, this.#runs, { keys, keyStart, rowsMax, run: this.#options.run });
    this.#site.close();
  }

  #mergeRuns(runs: SortedRuns): void {
    const { run } = this.#options;
    if (this.#held.rowCount > 0) this.#spill();
    runs.reduce(() => run.checkTime());
    this.#site.memory.take(runs.mergeBytes);
    this.#merge = new MergedPartitions(runs.merged(), {
      types: this.#types,
      keyStart: this.#options.kept.length,
      keys: this.#options.partition,
      run,
    });
    this.#loadNext();
  }

  /** Holds the next partitions in place of those that went up. */
  #loadNext(): void {
    this.#held = defined(this.#merge, "rows are merged").load();
    this.#begin(Uint32Array.from({ length: this.#held.rowCount }, (_, row) => row));
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
      run,
      form: form.aggregate,
      rows,
      args,
      argumentTypes: call.argumentTypes,
      filter,
      frames,
      isOpen: shape.end.type === "unbounded following",
      memory: this.#callMemory,
    });
  }

  #batch(rows: WindowRows): Batch {
    this.#options.run.checkTime();
    const start = this.#row;
    const rowsMax = Math.min(rows.rowCount, start + BATCH_ROWS_MAX);
    const workMax = this.#work() + WORK_MAX;
    const results = this.#columns.map((): Value[] => []);
    while (this.#row < rowsMax && this.#work() < workMax) {
      this.#step(rows);
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
    let work = this.#row * this.#columns.length;
    for (const column of this.#columns) work += column.work;
    return work;
  }

  /** Moves partition and group to the next row. */
  #step(rows: WindowRows): void {
    if (this.#row === this.#partition.end) {
      this.#partition = this.#partitionFrom(this.#row, rows);
      this.#group = 0;
      for (const column of this.#columns) column.begin(this.#partition);
    } else if (this.#partition.groupStarts[this.#group + 1] === this.#row) {
      this.#group += 1;
    }
    assert(this.#row < this.#partition.end, "a row is in its partition");
  }

  #partitionFrom(start: number, rows: WindowRows): Partition {
    const { kept, order, partition, run } = this.#options;
    const orderColumn = kept.length + partition.length;
    const groupStarts = [start];
    let end = start + 1;
    while (end < rows.rowCount && this.#areEqual(partition, kept.length, end)) {
      if (!this.#areEqual(order, orderColumn, end)) groupStarts.push(end);
      end += 1;
      if (end % SEARCHED_PER_LOOK === 0) run.checkTime();
    }
    return { start, end, groupStarts };
  }

  /** Whether a row has the same keys as the one before it. */
  #areEqual(keys: readonly SortKey[], column: number, row: number): boolean {
    const rows = defined(this.#rows, "rows are compared when they are sorted");
    return keys.every((key, i) => {
      return rows.compare({ key, position: column + i }, row - 1, row) === 0;
    });
  }
}
