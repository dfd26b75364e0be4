/**
 * Computes aggregates over the frames of a window.
 *
 * The frames of adjacent rows have most of their rows in common, so the state of an aggregate is
 * carried over from frame to frame if the kind of frame allows it:
 *
 *     the start is fixed             rows are added as the end moves
 *     rows can be removed            rows that leave are removed, excluded rows temporarily
 *     min and max                    a queue of the rows that may still be the extreme
 *     to the end of the partition    all frames at once, from the last row backwards
 *     otherwise                      each frame is read again
 */
import { assert, defined } from "../../../base/assert.ts";
import { compareValues, type DataType, type Value } from "../../../types/mod.ts";
import type { AggregateForm, AggregateState } from "../../functions/aggregate/aggregates.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { bytesOf, type MemoryBudget } from "../materialised/memory_budget.ts";
import {
  type CurrentRow,
  type FrameFinder,
  type FrameRange,
  rangesOf,
  type WindowPartition,
  type WindowRows,
} from "./window_frame.ts";
import type { WindowColumn } from "./window_values.ts";

export interface FrameAggregateOptions {
  readonly context: Pick<ExecutionContext, "checkTime">;
  readonly form: AggregateForm;
  readonly create: () => AggregateState;
  /** Whether the aggregate is user-defined. */
  readonly isDefined: boolean;
  readonly rows: WindowRows;
  /** The columns that contain the arguments of the window function. */
  readonly args: readonly number[];
  readonly argumentTypes: readonly DataType[];
  /** The column with the filter result; undefined if there is no filter. */
  readonly filter: number | undefined;
  readonly frames: FrameFinder;
  /** Whether every frame extends to the end of its partition. */
  readonly isOpen: boolean;
  readonly memory: MemoryBudget;
}

/** The number of rows processed between two time checks. */
const ROWS_PER_LOOK = 4096;

/** The granularity, in bytes, with which memory is charged for rows kept by a state. */
const TAKEN_BYTES = 16_384;

const NOTHING: FrameRange = {
  start: -1,
  end: -1,
  holeStart: -1,
  holeEnd: -1,
  kept: -1,
};

export class FrameAggregate implements WindowColumn {
  readonly #options: FrameAggregateOptions;
  /** The memory budget of the states. It is released when a partition ends. */
  readonly #memory: MemoryBudget;
  readonly #extreme: ExtremeQueue | undefined;
  #partition: WindowPartition = { start: 0, end: 0, groupStarts: [0] };
  /** The aggregate over the rows from `#start` (inclusive) to `#end` (exclusive). */
  #state: AggregateState;
  #start = 0;
  #end = 0;
  #last = NOTHING;
  #lastValue: Value = null;
  /**
   * The value of the aggregate from each row to the end of the partition. It is computed on first
   * use.
   */
  #suffixes: Value[] | undefined;
  #work = 0;
  readonly #checkTime: () => void;

  constructor(options: FrameAggregateOptions) {
    this.#options = options;
    this.#checkTime = () => options.context.checkTime();
    this.#memory = options.memory.nested();
    this.#state = options.create();
    this.#extreme = isExtreme(options.form) ? new ExtremeQueue(options) : undefined;
  }

  get work(): number {
    return this.#work;
  }

  begin(partition: WindowPartition): void {
    this.#options.frames.begin(partition);
    this.#partition = partition;
    this.#last = NOTHING;
    this.#suffixes = undefined;
    this.#restart(partition.start);
    this.#extreme?.begin();
  }

  valueAt(place: CurrentRow): Value {
    const frame = this.#options.frames.frameOf(place);
    if (isSame(frame, this.#last)) return this.#lastValue;
    this.#last = frame;
    this.#lastValue = this.#valueOf(frame);
    return this.#lastValue;
  }

  #valueOf(frame: FrameRange): Value {
    // A state that keeps its rows computes its value from all of these rows, which counts as work.
    if (this.#state.keepsRows === true) this.#work += frame.end - frame.start;
    if (frame.start >= frame.end) return this.#options.create().finish(0, this.#checkTime);
    if (!isWhole(frame)) return this.#valueAround(frame, rangesOf(frame));
    if (this.#extreme !== undefined) {
      this.#work += 1;
      return this.#extreme.valueOf(frame);
    }
    if (this.#canMoveTo(frame)) {
      this.#moveTo(frame);
      return this.#state.finish(0, this.#checkTime);
    }
    const { form, isOpen } = this.#options;
    if (isOpen && this.#state.keepsRows !== true && form.keepsOrder !== true)
      return this.#suffixFrom(frame.start);
    return this.#readAgain([[frame.start, frame.end]]);
  }

  /**
   * Whether the current state can be updated to the rows of a frame without reading all of them
   * again.
   */
  #canMoveTo({ end, start }: FrameRange): boolean {
    if (end < this.#end || start < this.#start) return false;
    return start === this.#start || this.#end === this.#start || this.#state.remove !== undefined;
  }

  #moveTo({ end, start }: FrameRange): void {
    if (start >= this.#end || this.#end === this.#start) {
      if (start !== this.#start || this.#end > this.#start) this.#restart(start);
    }
    const isRemoved = this.#apply(this.#start, Math.min(start, this.#end), "remove");
    if (!isRemoved) this.#restart(start);
    this.#apply(Math.max(this.#end, start), end, "add");
    this.#start = start;
    this.#end = end;
  }

  #restart(start: number): void {
    this.#memory.close();
    this.#state = this.#options.create();
    this.#start = start;
    this.#end = start;
  }

  /** Returns the value of the aggregate for a frame from which rows are excluded. */
  #valueAround(frame: FrameRange, ranges: readonly (readonly [number, number])[]): Value {
    const rest = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
    const hole = frame.end - frame.start - rest;
    // Like PostgreSQL, this removes rows in the middle only from the states of built-in aggregates.
    const { isDefined } = this.#options;
    const canRemove = !isDefined && this.#state.remove !== undefined && this.#canMoveTo(frame);
    if (!canRemove || rest < hole) return this.#readAgain(ranges);
    this.#moveTo(frame);
    const from = Math.max(frame.start, frame.holeStart);
    const to = Math.min(frame.end, frame.holeEnd);
    this.#applyHole({ from, to, kept: frame.kept }, "remove");
    const value = this.#state.finish(0, this.#checkTime);
    this.#applyHole({ from, to, kept: frame.kept }, "add");
    return value;
  }

  #applyHole(
    { from, kept, to }: { from: number; to: number; kept: number },
    action: "add" | "remove",
  ): void {
    if (kept < from || kept >= to) {
      this.#apply(from, to, action);
      return;
    }
    this.#apply(from, kept, action);
    this.#apply(kept + 1, to, action);
  }

  #readAgain(ranges: readonly (readonly [number, number])[]): Value {
    const held = this.#state;
    const memory = this.#memory.nested();
    this.#state = this.#options.create();
    for (const [from, to] of ranges) this.#apply(from, to, "add", memory);
    const value = this.#state.finish(0, this.#checkTime);
    memory.close();
    this.#state = held;
    return value;
  }

  #suffixFrom(start: number): Value {
    const { end, start: first } = this.#partition;
    if (this.#suffixes === undefined) {
      const values: Value[] = [];
      const held = this.#state;
      this.#state = this.#options.create();
      for (let row = end - 1; row >= start; row -= 1) {
        this.#apply(row, row + 1, "add");
        const value = this.#state.finish(0, this.#checkTime);
        this.#memory.take(bytesOf(value));
        values[row - first] = value;
      }
      this.#state = held;
      this.#suffixes = values;
    }
    return this.#suffixes[start - first] ?? null;
  }

  /** Adds or removes rows. Returns false if a row could not be removed. */
  #apply(from: number, to: number, action: "add" | "remove", memory = this.#memory): boolean {
    const { args, filter, rows } = this.#options;
    const state = this.#state;
    const values: Value[] = [];
    let bytes = 0;
    if (to > from) this.#work += to - from;
    for (let row = from; row < to; row += 1) {
      if (row % ROWS_PER_LOOK === 0) this.#checkTime();
      if (filter !== undefined && rows.valueAt(filter, row) !== true) continue;
      for (let i = 0; i < args.length; i += 1) values[i] = rows.valueAt(args[i] ?? 0, row);
      if (action === "remove") {
        assert(
          state.remove !== undefined,
          "window aggregate: state does not support removing rows",
        );
        if (state.remove(0, ...values) === false) return false;
        continue;
      }
      if (state.keepsRows === true) {
        for (const value of values) bytes += bytesOf(value);
        bytes += 16;
        if (bytes >= TAKEN_BYTES) {
          memory.take(bytes);
          bytes = 0;
        }
      }
      state.add(0, ...values);
    }
    memory.take(bytes);
    return true;
  }
}

function isSame(left: FrameRange, right: FrameRange): boolean {
  return (
    left.start === right.start &&
    left.end === right.end &&
    left.holeStart === right.holeStart &&
    left.holeEnd === right.holeEnd &&
    left.kept === right.kept
  );
}

/** Whether no row of a frame is excluded. */
function isWhole({ end, holeEnd, holeStart, start }: FrameRange): boolean {
  return holeStart === holeEnd || holeEnd <= start || holeStart >= end;
}

function isExtreme({ name }: AggregateForm): boolean {
  return name === "min" || name === "max";
}

/**
 * Finds the minimum or maximum of a range of rows whose bounds only ascend. A row is kept only
 * while its value is better than the values of all later rows, so every row enters and leaves the
 * queue at most once.
 */
class ExtremeQueue {
  readonly #context: Pick<ExecutionContext, "checkTime">;
  readonly #rows: WindowRows;
  readonly #column: number;
  readonly #filter: number | undefined;
  readonly #type: DataType;
  readonly #sign: number;
  /**
   * The numbers of the kept rows, in ascending order. Each row has a worse value than the row
   * before it.
   */
  #queue: number[] = [];
  #first = 0;
  #end = -1;

  constructor({ args, argumentTypes, filter, form, rows, context }: FrameAggregateOptions) {
    this.#context = context;
    this.#rows = rows;
    this.#column = defined(args[0], "window aggregate: MIN or MAX has no argument");
    this.#type = defined(argumentTypes[0], "window aggregate: argument of MIN or MAX has no type");
    this.#filter = filter;
    this.#sign = form.name === "min" ? 1 : -1;
  }

  begin(): void {
    this.#queue = [];
    this.#first = 0;
    this.#end = -1;
  }

  valueOf({ end, start }: FrameRange): Value {
    for (let row = Math.max(this.#end, start); row < end; row += 1) {
      if (row % ROWS_PER_LOOK === 0) this.#context.checkTime();
      this.#offer(row);
    }
    this.#end = Math.max(this.#end, end);
    while (this.#first < this.#queue.length && (this.#queue[this.#first] ?? 0) < start) {
      this.#first += 1;
    }
    const row = this.#queue[this.#first];
    return row === undefined ? null : this.#rows.valueAt(this.#column, row);
  }

  #offer(row: number): void {
    if (this.#filter !== undefined && this.#rows.valueAt(this.#filter, row) !== true) return;
    const value = this.#rows.valueAt(this.#column, row);
    if (value === null) return;
    while (this.#queue.length > this.#first) {
      const last = this.#rows.valueAt(this.#column, this.#queue.at(-1) ?? 0);
      if (this.#sign * compareValues(this.#type, last, value) <= 0) break;
      this.#queue.pop();
    }
    this.#queue.push(row);
  }
}
