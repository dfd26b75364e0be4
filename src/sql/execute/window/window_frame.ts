/**
 * Determines which rows are visible from a row in a window: its partition, its peers, and its
 * frame.
 *
 * Rows are numbered by their position in window order, across all partitions. A range of rows is
 * `start` inclusive to `end` exclusive. Within a partition, the bounds of a frame only ascend from
 * row to row.
 */
import { assert, defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { DataType, Value } from "../../../types/mod.ts";
import type { BoundFrame, BoundFrameBound } from "../../bind/bound_expressions.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import type { MaterialisedRows } from "../materialised/materialised_rows.ts";
import { compareByKey } from "../materialised/sort_order.ts";
import { type SortKey } from "../sort/sort_key.ts";

/** Rows in window order. */
export class WindowRows {
  readonly #materialised: MaterialisedRows;
  readonly #order: Uint32Array;

  constructor(materialised: MaterialisedRows, order: Uint32Array) {
    this.#materialised = materialised;
    this.#order = order;
  }

  get rowCount(): number {
    return this.#order.length;
  }

  valueAt(column: number, row: number): Value {
    return this.#materialised.valueAt(column, this.#order[row] ?? 0);
  }
}

/**
 * A partition with its peer groups. Peers are rows that the window's ORDER BY does not
 * distinguish.
 */
export interface WindowPartition {
  readonly start: number;
  readonly end: number;
  /** The first row of each peer group, in ascending order, followed by the end of the partition. */
  readonly groupStarts: readonly number[];
}

/** A row, with the positions that its frame depends on. */
export interface CurrentRow {
  readonly row: number;
  /** The index of the row's peer group within the partition. */
  readonly group: number;
}

export function groupStartOf({ end, groupStarts }: WindowPartition, group: number): number {
  return groupStarts[group] ?? end;
}

/**
 * The rows that a window call sees for one row: the rows from `start` to `end`, except for the
 * hole from `holeStart` to `holeEnd`. The row `kept` is visible even though it is inside the hole.
 */
export interface FrameRange {
  readonly start: number;
  readonly end: number;
  /** The start of the hole of excluded rows; equal to `holeEnd` if no rows are excluded. */
  readonly holeStart: number;
  readonly holeEnd: number;
  /** The row inside the hole that is nevertheless visible; -1 if there is none. */
  readonly kept: number;
}

/** Returns the rows of a frame as up to three non-empty ranges, in ascending order. */
export function rangesOf({ end, holeEnd, holeStart, kept, start }: FrameRange): [number, number][] {
  const ranges: [number, number][] = [
    [start, Math.min(end, holeStart)],
    [kept, kept + 1],
    [Math.max(start, holeEnd), end],
  ];
  return ranges.filter(([from, to]) => from >= start && to <= end && from < to);
}

export interface CompiledFrameBound {
  readonly type: BoundFrameBound["type"];
  readonly offset: ((context: ExecutionContext) => Value) | undefined;
  readonly reach: CompiledFrameReach | undefined;
}

export interface CompiledFrameReach {
  readonly key: Evaluator;
  readonly type: DataType;
  readonly step: (key: Value, offset: Value) => Value;
  readonly isNegative: (offset: Value) => boolean;
}

export interface FrameShape {
  readonly mode: BoundFrame["mode"];
  readonly exclude: BoundFrame["exclude"];
  readonly start: CompiledFrameBound;
  readonly end: CompiledFrameBound;
}

export interface FrameFinderOptions {
  readonly context: ExecutionContext;
  readonly rows: WindowRows;
  readonly shape: FrameShape;
  /** The sort key of the window. A RANGE frame with an offset requires exactly one sort key. */
  readonly sort: Omit<SortKey, "evaluate" | "type"> | undefined;
  /** The columns of `rows` from which the start bound and the end bound are computed. */
  readonly startKey: number;
  readonly endKey: number;
}

const NO_PARTITION: WindowPartition = { start: 0, end: 0, groupStarts: [0] };

/** Finds the frames of consecutive rows of a window. */
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

  begin(partition: WindowPartition): void {
    this.#partition = partition;
    this.#start.begin(partition);
    this.#end.begin(partition);
  }

  /** Returns the frame of a row. Rows must be requested in order. */
  frameOf(place: CurrentRow): FrameRange {
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

/** The number of rows visited between two time checks. */
const ROWS_PER_LOOK = 4096;

/** Finds the start or the end of each row's frame. The rows must be visited in order. */
class BoundFinder {
  readonly #side: "start" | "end";
  readonly #options: BoundOptions;
  readonly #bound: CompiledFrameBound;
  /**
   * Set for ROWS and GROUPS: the distance of the bound from the current row or peer group;
   * negative if the bound precedes it.
   */
  readonly #distance: number;
  /** Set for RANGE: the offset of the bound from the current row's sort value. */
  readonly #offset: Value;
  #partition = NO_PARTITION;
  /** Set for RANGE with an offset: the row at which the bound was last found. */
  #position = 0;

  constructor(side: "start" | "end", options: BoundOptions) {
    this.#side = side;
    this.#options = options;
    this.#bound = options.shape[side];
    this.#offset = checkedOffset(this.#bound, options.context);
    const size = this.#bound.reach === undefined ? Number(this.#offset ?? 0) : 0;
    this.#distance = this.#bound.type === "preceding" ? -size : size;
  }

  begin(partition: WindowPartition): void {
    this.#partition = partition;
    this.#position = partition.start;
  }

  placeOf({ group, row }: CurrentRow): number {
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
   * Returns, for a start bound, the first row that is not before the bound; for an end bound, the
   * first row after it. Rows with a NULL key are visible only to one another.
   */
  #reached(row: number, reach: CompiledFrameReach): number {
    const { rows, context, sort } = this.#options;
    const key = this.#options.key;
    const current = rows.valueAt(key, row);
    const order = {
      ...defined(sort, "window frame: RANGE with an offset has no ORDER BY key"),
      type: reach.type,
    };
    const target = current === null ? null : reach.step(current, this.#offset);
    const { end } = this.#partition;
    while (this.#position < end) {
      if (this.#position % ROWS_PER_LOOK === 0) context.checkTime();
      const by = compareByKey(order, rows.valueAt(key, this.#position), target);
      if (this.#side === "start" ? by >= 0 : by > 0) break;
      this.#position += 1;
    }
    return this.#position;
  }
}

/**
 * Requires that a frame offset is neither NULL nor negative.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function checkedOffset(
  { offset, reach, type }: CompiledFrameBound,
  context: ExecutionContext,
): Value {
  if (offset === undefined) return null;
  const value = offset(context);
  assert(
    type === "preceding" || type === "following",
    "window frame: offset is neither PRECEDING nor FOLLOWING",
  );
  const isFit =
    value !== null && (reach === undefined ? Number(value) >= 0 : !reach.isNegative(value));
  if (isFit) return value;
  const what = value === null ? "NULL" : "negative or NaN";
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot use a window frame with an offset that is ${what}: it must be 0 or greater`,
  );
}
