/**
 * Computes the window calls that have the same partitioning and order. The input is collected and
 * sorted once, and then each row is yielded with the values of the calls, in window order.
 *
 *     filling ──input ends──► sorted ──a batch of rows──► sorted … ──► done
 *       │ ▲ crowded
 *       ▼ │
 *     a sorted run is written ──input ends──► runs are merged: some partitions are loaded, yielded
 *                                             and replaced by the next partitions
 *
 * A whole partition must fit into memory, because a call may need any of its rows.
 *
 * For a single row, a call may read many rows and combine all of their values into one value. A
 * batch therefore also ends after a certain amount of such work.
 *
 * The state of an aggregate is carried from frame to frame. For an aggregate that cannot remove
 * rows, such as a sum of DOUBLE over a sliding frame, each frame is read again. Rows are stored
 * together with the results of earlier calls, so calls that aggregate all rows into one long value
 * are computed last.
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
import type { RunMerge, SortedRuns } from "../../spill/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { type SpillOptions, SpillSite } from "../context/spilling.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import type { StateFactory } from "../operators/stepped_state.ts";
import { rowOrder } from "../sort/row_order.ts";
import { comparatorsOf, writeRun } from "../sort/sort.ts";
import type { SortKey } from "../sort/sort_key.ts";
import { keyChanges } from "./key_changes.ts";
import { FrameAggregate } from "./window_aggregate.ts";
import { FrameFinder, type FrameShape, type WindowPartition, WindowRows } from "./window_frame.ts";
import { type WindowColumn, WindowValue } from "./window_values.ts";

export interface WindowCall {
  readonly form: BoundWindowCall["form"];
  /** Creates the states of an aggregate; undefined for a window function. */
  readonly create: StateFactory | undefined;
  readonly type: DataType;
  readonly args: readonly Evaluator[];
  readonly argumentTypes: readonly DataType[];
  readonly filter: Evaluator | undefined;
  readonly frame: FrameShape;
}

export interface WindowOperatorOptions extends SpillOptions {
  readonly input: Operator;
  /** The positions of the input columns that are passed on. */
  readonly kept: readonly number[];
  readonly keptTypes: readonly DataType[];
  readonly partition: readonly SortKey[];
  readonly order: readonly SortKey[];
  readonly calls: readonly WindowCall[];
}

/** The number of rows that the window functions may read or compute for one batch. */
const WORK_MAX = 250_000;

/**
 * The memory, in bytes, that a row takes up in addition to its values: for its position in the
 * order, its group, and whether it begins a partition or a group.
 */
const ROW_BYTES = 24;

/** A value that is computed for each row on arrival, and the column in which it is stored. */
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

export class WindowOperator implements Operator {
  readonly #options: WindowOperatorOptions;
  readonly #values: HeldValue[] = [];
  readonly #callColumns: readonly CallColumns[];
  readonly #types: readonly DataType[];
  readonly #site: SpillSite;
  #materialised: MaterialisedRows;
  #rows: WindowRows | undefined;
  #runs: SortedRuns | undefined;
  #merge: MergedPartitions | undefined;
  /** The memory budget of the window calls for the materialised rows. */
  #callMemory: MemoryBudget;
  #order: Uint32Array = new Uint32Array();
  /** Contains 1 for each row whose partition, or whose sort values, differ from those before. */
  #partitionChanges: Uint8Array = new Uint8Array();
  #peerChanges: Uint8Array = new Uint8Array();
  #columns: readonly WindowColumn[] = [];
  #partition: WindowPartition = { start: 0, end: 0, groupStarts: [0] };
  /** The next row to yield, and the index of its peer group within the partition. */
  #row = 0;
  #group = 0;

  constructor(options: WindowOperatorOptions) {
    this.#options = options;
    for (const key of [...options.partition, ...options.order]) this.#hold(key);
    this.#callColumns = options.calls.map((call) => this.#columnsOf(call));
    this.#types = [...options.keptTypes, ...this.#values.map(({ type }) => type)];
    // Without PARTITION BY, all rows must be in memory together.
    this.#site = new SpillSite(options, { isPossible: options.partition.length > 0 });
    this.#materialised = new MaterialisedRows(this.#types, this.#site.memory);
    this.#callMemory = options.context.memory.nested();
  }

  next(): Batch | undefined {
    if (this.#rows === undefined) this.#fill();
    else if (this.#row === this.#rows.rowCount && this.#merge?.isOver === false) this.#loadNext();
    const rows = defined(this.#rows, "window operator: rows have not been loaded");
    return this.#row < rows.rowCount ? this.#batch(rows) : undefined;
  }

  close(): void {
    this.#options.input.close();
    this.#runs?.close();
    this.#merge?.close();
    this.#callMemory.close();
    this.#site.close();
  }

  /**
   * Registers a value to be stored with each row. Returns the column that will contain the value.
   */
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
        return this.#hold({
          evaluate,
          type: defined(argumentTypes[i], "window operator: function argument has no type"),
        });
      }),
      filter: filter === undefined ? undefined : this.#hold({ evaluate: filter, type: BOOLEAN }),
      startKey: keys[0] ?? 0,
      endKey: keys[1] ?? 0,
    };
  }

  #fill(): void {
    const { input, context } = this.#options;
    for (
      let batch = nextRows(input, context);
      batch !== undefined;
      batch = nextRows(input, context)
    ) {
      this.#add(batch);
    }
    if (this.#runs === undefined) this.#begin(this.#rowOrder());
    else this.#mergeRuns(this.#runs);
  }

  #add(batch: Batch): void {
    const { kept, context } = this.#options;
    const keptVectors = kept.map((column) => {
      return defined(
        batch.columns[column],
        "window operator: kept column is missing from the input batch",
      );
    });
    const values = this.#values.map(({ evaluate }) => evaluate(batch, context));
    this.#site.memory.take(ROW_BYTES * batch.rowCount);
    this.#materialised.append([...keptVectors, ...values], batch.rowCount);
    if (this.#site.isDue) this.#spill();
  }

  get #sortKeys(): readonly SortKey[] {
    return [...this.#options.partition, ...this.#options.order];
  }

  #rowOrder(): Uint32Array {
    const { kept, context } = this.#options;
    return rowOrder(this.#materialised, this.#sortKeys, { keyStart: kept.length, context });
  }

  /** Starts yielding the materialised rows in the given order. */
  #begin(order: Uint32Array): void {
    const { kept, order: sortKeys, partition, context } = this.#options;
    const rows = new WindowRows(this.#materialised, order);
    this.#order = order;
    const keyStart = kept.length;
    const orderStart = keyStart + partition.length;
    this.#partitionChanges = keyChanges(this.#materialised, order, {
      keys: partition,
      keyStart,
      context,
    });
    this.#peerChanges = keyChanges(this.#materialised, order, {
      keys: sortKeys,
      keyStart: orderStart,
      context,
    });
    this.#rows = rows;
    this.#row = 0;
    this.#group = 0;
    this.#partition = { start: 0, end: 0, groupStarts: [0] };
    this.#callMemory.close();
    this.#columns = this.#callColumns.map((columns) => this.#columnFor(columns, rows));
  }

  /** Writes the materialised rows to disk as a sorted run. */
  #spill(): void {
    const keyStart = this.#options.kept.length;
    const keys = this.#sortKeys;
    this.#runs ??= this.#site.sortedRuns(this.#types, comparatorsOf(keys), keyStart);
    const rowsMax = Number.POSITIVE_INFINITY;
    writeRun(this.#materialised, this.#runs, {
      keys,
      keyStart,
      rowsMax,
      context: this.#options.context,
    });
    this.#site.close();
  }

  #mergeRuns(runs: SortedRuns): void {
    const { context } = this.#options;
    if (this.#materialised.rowCount > 0) this.#spill();
    runs.reduce(() => context.checkTime());
    this.#site.memory.take(runs.mergeBytes);
    this.#merge = new MergedPartitions(runs.merged(), {
      types: this.#types,
      keyStart: this.#options.kept.length,
      keys: this.#options.partition,
      context,
    });
    this.#loadNext();
  }

  /** Loads the next partitions, which replace the partitions already yielded. */
  #loadNext(): void {
    this.#materialised = defined(
      this.#merge,
      "window operator: no merge of sorted runs is in progress",
    ).load();
    this.#begin(Uint32Array.from({ length: this.#materialised.rowCount }, (_, row) => row));
  }

  #columnFor(
    { args, call, endKey, filter, startKey }: CallColumns,
    rows: WindowRows,
  ): WindowColumn {
    const { order, context } = this.#options;
    const { create, form, frame: shape } = call;
    const frames = new FrameFinder({ context, rows, shape, sort: order[0], startKey, endKey });
    if (form.kind === "function") return new WindowValue({ name: form.name, rows, args, frames });
    return new FrameAggregate({
      context,
      form: form.aggregate,
      create: () => defined(create, "an aggregate must have states")(context),
      isDefined: form.steps !== undefined,
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
    this.#options.context.checkTime();
    const start = this.#row;
    const rowsMax = Math.min(rows.rowCount, start + BATCH_ROWS_MAX);
    const workMax = this.#work() + WORK_MAX;
    const columns = this.#columns;
    const results = columns.map((): Value[] => []);
    while (this.#row < rowsMax && this.#work() < workMax) {
      this.#step(rows);
      const place = { row: this.#row, group: this.#group };
      for (let i = 0; i < columns.length; i += 1) {
        results[i]?.push(columns[i]?.valueAt(place) ?? null);
      }
      this.#row += 1;
    }
    const held = this.#materialised.batchOf(this.#order.slice(start, this.#row), 0);
    const made = results.map((values, i): Vector => {
      return vectorFromValues(
        defined(
          this.#options.calls[i],
          "window operator: result column belongs to no function call",
        ).type,
        values,
      );
    });
    const kept = held.columns.slice(0, this.#options.kept.length);
    return { rowCount: this.#row - start, columns: [...kept, ...made] };
  }

  #work(): number {
    let work = this.#row * this.#columns.length;
    for (const column of this.#columns) work += column.work;
    return work;
  }

  /** Updates the current partition and peer group for the next row. */
  #step(rows: WindowRows): void {
    if (this.#row === this.#partition.end) {
      this.#partition = this.#partitionFrom(this.#row, rows);
      this.#group = 0;
      for (const column of this.#columns) column.begin(this.#partition);
    } else if (this.#partition.groupStarts[this.#group + 1] === this.#row) {
      this.#group += 1;
    }
    assert(
      this.#row < this.#partition.end,
      "window operator: row is outside the current partition",
    );
  }

  #partitionFrom(start: number, rows: WindowRows): WindowPartition {
    const groupStarts = [start];
    let end = start + 1;
    while (end < rows.rowCount && this.#partitionChanges[end] === 0) {
      if (this.#peerChanges[end] === 1) groupStarts.push(end);
      end += 1;
    }
    return { start, end, groupStarts };
  }
}

interface MergedPartitionsOptions {
  readonly types: readonly DataType[];
  /** The window's keys. Their values are in the columns from `keyStart` onwards. */
  readonly keys: readonly SortKey[];
  readonly keyStart: number;
  readonly context: ExecutionContext;
}

/**
 * Reads the partitions of a window from sorted runs, one after another, and each as a whole. Rows
 * are loaded until they fill a batch or the available memory. If the last loaded partition is then
 * incomplete, its rows are kept for the next load.
 */
class MergedPartitions {
  readonly #merge: RunMerge;
  readonly #options: MergedPartitionsOptions;
  /** The memory budget of the most recently loaded rows. */
  #memory: MemoryBudget;
  /** The rows of the next partition that have been loaded so far. */
  #rest: Batch | undefined;
  #isOver = false;

  constructor(merge: RunMerge, options: MergedPartitionsOptions) {
    this.#merge = merge;
    this.#options = options;
    this.#memory = options.context.memory.nested();
  }

  /** Whether all rows of the sorted runs have been loaded. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Loads the next partitions, which replace the previous partitions.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED if a partition does not fit into memory.
   */
  load(): MaterialisedRows {
    const { context, types } = this.#options;
    const { memory } = context;
    this.#memory.close();
    this.#memory = memory.nested();
    const rows = new MaterialisedRows(types, this.#memory);
    if (this.#rest !== undefined) rows.append(this.#rest.columns, this.#rest.rowCount);
    this.#rest = undefined;
    let lastStart = 0;
    for (;;) {
      context.checkTime();
      const batch = this.#merge.next();
      if (batch === undefined) {
        this.#isOver = true;
        return rows;
      }
      const before = rows.rowCount;
      rows.append(batch.columns, batch.rowCount);
      for (let row = Math.max(1, before); row < rows.rowCount; row += 1) {
        if (!this.#areEqual(rows, row)) lastStart = row;
      }
      const isMuch = rows.rowCount >= BATCH_ROWS_MAX || rows.bytes > memory.bytesMax / 16;
      if (lastStart > 0 && isMuch) break;
    }
    const whole = Uint32Array.from({ length: lastStart }, (_, row) => row);
    const restCount = rows.rowCount - lastStart;
    const rest = Uint32Array.from({ length: restCount }, (_, i) => lastStart + i);
    this.#rest = rows.allOf(rest);
    rows.keep(whole, () => context.checkTime());
    return rows;
  }

  close(): void {
    this.#memory.close();
  }

  /** Whether a row belongs to the same partition as the previous row. */
  #areEqual(rows: MaterialisedRows, row: number): boolean {
    const { keyStart, keys } = this.#options;
    return keys.every((key, i) => {
      return rows.compare({ key, position: keyStart + i }, row - 1, row) === 0;
    });
  }
}
