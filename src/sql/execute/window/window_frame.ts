/**
 * The rows that a row of a window sees: its partition, its peers, its frame.
 *
 * Rows are numbered by their place in the order of the window, through all partitions. A range of
 * rows is `start` inclusive to `end` exclusive, and bounds of a frame only ever ascend from row to
 * row, as far as a partition goes.
 */
import { assert, defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { DataType, Value } from "../../../types/mod.ts";
import type { BoundFrame, BoundFrameBound } from "../../bind/bound_expressions.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import type { HeldRows } from "../held/held_rows.ts";
import { compareByKey } from "../held/sort_order.ts";
import type { Run } from "../run/run.ts";
import { type SortKey } from "../sort/sort_key.ts";

/** Rows in the order of a window. */
export class WindowRows {
  readonly #held: HeldRows;
  readonly #order: Uint32Array;

  constructor(held: HeldRows, order: Uint32Array) {
    this.#held = held;
    this.#order = order;
  }

  get rowCount(): number {
    return this.#order.length;
  }

  valueAt(column: number, row: number): Value {
    return this.#held.valueAt(column, this.#order[row] ?? 0);
  }

  compare(
    by: { readonly position: number; readonly key: Omit<SortKey, "evaluate"> },
    left: number,
    right: number,
  ): number {
    return this.#held.compare(by, this.#order[left] ?? 0, this.#order[right] ?? 0);
  }
}

/** One partition, and in it the groups of rows that the order of the window does not tell apart. */
export interface Partition {
  readonly start: number;
  readonly end: number;
  /** First row of each group, ascending, and the end of the partition behind them. */
  readonly groupStarts: readonly number[];
}

/** The row for which something is asked. */
export interface RowPlace {
  readonly row: number;
  /** Which group of the partition it is in, from 0. */
  readonly group: number;
}

export function groupStartOf({ end, groupStarts }: Partition, group: number): number {
  return groupStarts[group] ?? end;
}

/** What a row sees: `start` to `end` without `holeStart` to `holeEnd`, but with `kept` again. */
export interface Frame {
  readonly start: number;
  readonly end: number;
  /** Equal if nothing is excluded. */
  readonly holeStart: number;
  readonly holeEnd: number;
  /** A row in the hole that is seen nevertheless; -1 for none. */
  readonly kept: number;
}

/** The rows of a frame as up to three ranges, ascending and not empty. */
export function rangesOf({ end, holeEnd, holeStart, kept, start }: Frame): [number, number][] {
  const ranges: [number, number][] = [
    [start, Math.min(end, holeStart)],
    [kept, kept + 1],
    [Math.max(start, holeEnd), end],
  ];
  return ranges.filter(([from, to]) => from >= start && to <= end && from < to);
}

export interface FrameBound {
  readonly type: BoundFrameBound["type"];
  readonly offset: ((run: Run) => Value) | undefined;
  readonly reach: FrameReach | undefined;
}

export interface FrameReach {
  readonly key: Evaluator;
  readonly type: DataType;
  readonly step: (key: Value, offset: Value) => Value;
  readonly isNegative: (offset: Value) => boolean;
}

export interface FrameShape {
  readonly mode: BoundFrame["mode"];
  readonly exclude: BoundFrame["exclude"];
  readonly start: FrameBound;
  readonly end: FrameBound;
}

export interface FrameFinderOptions {
  readonly run: Run;
  readonly rows: WindowRows;
  readonly shape: FrameShape;
  /** Of the one ordering entry that RANGE with an offset has. */
  readonly sort: Omit<SortKey, "evaluate" | "type"> | undefined;
  /** Columns of `rows` with the values that the bounds reach from. */
  readonly startKey: number;
  readonly endKey: number;
}

const NO_PARTITION: Partition = { start: 0, end: 0, groupStarts: [0] };

/** Finds the frame of one row after the other. */
export class FrameFinder {
  readonly #shape: FrameShape;
  readonly #start: BoundFinder;
  readonly #end: BoundFinder;
  #partition = NO_PARTITION;

  constructor(options: FrameFinderOptions) {
    this.#shape = options.shape;
    this.#start = new BoundFinder("start", { ...options, key: options.startKey });
    this.#end = new BoundFinder("end", { ...options, key: options.endKey });
  }

  begin(partition: Partition): void {
    this.#partition = partition;
    this.#start.begin(partition);
    this.#end.begin(partition);
  }

  /** The frame of a row; rows are asked for in their order. */
  frameOf(place: RowPlace): Frame {
    const start = this.#start.placeOf(place);
    const end = Math.max(start, this.#end.placeOf(place));
    const { row, group } = place;
    switch (this.#shape.exclude) {
      case undefined:
        return { start, end, holeStart: start, holeEnd: start, kept: -1 };
      case "current row":
        return { start, end, holeStart: row, holeEnd: row + 1, kept: -1 };
      default: {
        const holeStart = groupStartOf(this.#partition, group);
        const holeEnd = groupStartOf(this.#partition, group + 1);
        const kept = this.#shape.exclude === "ties" ? row : -1;
        return { start, end, holeStart, holeEnd, kept };
      }
    }
  }
}

interface BoundOptions extends FrameFinderOptions {
  readonly key: number;
}

/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 4096;

/** Finds where frames start, or where they end. */
class BoundFinder {
  readonly #side: "start" | "end";
  readonly #options: BoundOptions;
  readonly #bound: FrameBound;
  /** Of ROWS and GROUPS: rows or groups from the current one, negative before it. */
  readonly #distance: number;
  /** Of RANGE. */
  readonly #offset: Value;
  #partition = NO_PARTITION;
  /** Of RANGE with an offset: where the last bound was. */
  #position = 0;

  constructor(side: "start" | "end", options: BoundOptions) {
    this.#side = side;
    this.#options = options;
    this.#bound = options.shape[side];
    this.#offset = checkedOffset(this.#bound, options.run);
    const size = this.#bound.reach === undefined ? Number(this.#offset ?? 0) : 0;
    this.#distance = this.#bound.type === "preceding" ? -size : size;
  }

  begin(partition: Partition): void {
    this.#partition = partition;
    this.#position = partition.start;
  }

  placeOf({ group, row }: RowPlace): number {
    const partition = this.#partition;
    const { end, start } = partition;
    const further = this.#side === "start" ? 0 : 1;
    switch (this.#bound.type) {
      case "unbounded preceding":
        return start;
      case "unbounded following":
        return end;
      default:
        break;
    }
    if (this.#options.shape.mode === "rows") {
      return Math.min(end, Math.max(start, row + this.#distance + further));
    }
    if (this.#bound.reach !== undefined) return this.#reached(row, this.#bound.reach);
    const wanted = group + this.#distance + further;
    return wanted < 0 ? start : groupStartOf(partition, wanted);
  }

  /**
   * The first row that is not before the bound, or of an end the first one behind it. Rows without
   * a value see each other and are seen by no others.
   */
  #reached(row: number, reach: FrameReach): number {
    const { rows, run, sort } = this.#options;
    const key = this.#options.key;
    const current = rows.valueAt(key, row);
    const order = { ...defined(sort, "RANGE with an offset has an order"), type: reach.type };
    const target = current === null ? null : reach.step(current, this.#offset);
    const { end } = this.#partition;
    while (this.#position < end) {
      if (this.#position % ROWS_PER_LOOK === 0) run.checkTime();
      const by = compareByKey(order, rows.valueAt(key, this.#position), target);
      if (this.#side === "start" ? by >= 0 : by > 0) break;
      this.#position += 1;
    }
    return this.#position;
  }
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE */
function checkedOffset({ offset, reach, type }: FrameBound, run: Run): Value {
  if (offset === undefined) return null;
  const value = offset(run);
  assert(type === "preceding" || type === "following", "an offset has a direction");
  const isFit =
    value !== null && (reach === undefined ? Number(value) >= 0 : !reach.isNegative(value));
  if (isFit) return value;
  const what = value === null ? "NULL" : "negative";
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot use a frame with an offset that is ${what}: it must be 0 or more`,
  );
}
