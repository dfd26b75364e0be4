/**
 * Computes the window functions that are not aggregates: row numbers, and values from other rows.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Value } from "../../../types/mod.ts";
import type { WindowName } from "../../functions/window_functions.ts";
import {
  type CurrentRow,
  type FrameFinder,
  groupStartOf,
  rangesOf,
  type WindowPartition,
  type WindowRows,
} from "./window_frame.ts";

/** Computes the values of a window function, row by row in window order. */
export interface WindowColumn {
  /** Starts a partition. All rows requested from now on belong to it. */
  begin(partition: WindowPartition): void;
  valueAt(place: CurrentRow): Value;
  /** The number of rows read so far, not counting the current rows themselves. */
  readonly work: number;
}

export interface WindowValueOptions {
  readonly name: WindowName;
  readonly rows: WindowRows;
  /** The columns that contain the arguments of the window function. */
  readonly args: readonly number[];
  readonly frames: FrameFinder;
}

export class WindowValue implements WindowColumn {
  readonly work = 0;
  readonly #options: WindowValueOptions;
  #partition: WindowPartition = { start: 0, end: 0, groupStarts: [0] };
  /**
   * The number of tiles in the partition, for ntile. It is taken from the first row that specifies
   * one.
   */
  #tileCount: number | undefined;
  #tileStart = 0;

  constructor(options: WindowValueOptions) {
    this.#options = options;
  }

  begin(partition: WindowPartition): void {
    this.#partition = partition;
    this.#options.frames.begin(partition);
    this.#tileCount = undefined;
  }

  valueAt(place: CurrentRow): Value {
    const { end, start } = this.#partition;
    const { group, row } = place;
    const count = end - start;
    const rank = groupStartOf(this.#partition, group) - start + 1;
    switch (this.#options.name) {
      case "row_number":
        return row - start + 1;
      case "rank":
        return rank;
      case "dense_rank":
        return group + 1;
      case "percent_rank":
        return count === 1 ? 0 : (rank - 1) / (count - 1);
      case "cume_dist":
        return (groupStartOf(this.#partition, group + 1) - start) / count;
      case "ntile":
        return this.#tileOf(row, count);
      case "lag":
        return this.#shifted(row, -1);
      case "lead":
        return this.#shifted(row, 1);
      case "first_value":
      case "last_value":
      case "nth_value":
        return this.#framed(place);
    }
  }

  #argument(position: number, row: number): Value {
    const column = this.#options.args[position];
    return column === undefined ? null : this.#options.rows.valueAt(column, row);
  }

  /**
   * Returns the tile of a row. A partition is divided into tiles of equal size; if there is a
   * remainder, the first tiles get one more row each.
   */
  #tileOf(row: number, count: number): Value {
    if (this.#tileCount === undefined) {
      const tileCount = this.#argument(0, row);
      if (tileCount === null) return null;
      this.#tileCount = requirePositive("ntile", Number(tileCount));
      this.#tileStart = row;
    }
    const position = row - this.#tileStart;
    const size = Math.floor(count / this.#tileCount);
    const largerCount = count % this.#tileCount;
    const inLarger = largerCount * (size + 1);
    if (position < inLarger) return Math.floor(position / (size + 1)) + 1;
    return largerCount + Math.floor((position - inLarger) / Math.max(size, 1)) + 1;
  }

  /**
   * Returns the value of the row at a given distance; the third argument if there is no such row.
   */
  #shifted(row: number, direction: 1 | -1): Value {
    const distance = this.#options.args.length < 2 ? 1 : this.#argument(1, row);
    if (distance === null) return null;
    const wanted = row + direction * Number(distance);
    const { end, start } = this.#partition;
    return wanted >= start && wanted < end ? this.#argument(0, wanted) : this.#argument(2, row);
  }

  #framed(place: CurrentRow): Value {
    const ranges = rangesOf(this.#options.frames.frameOf(place));
    if (this.#options.name === "last_value") {
      const last = ranges.at(-1);
      return last === undefined ? null : this.#argument(0, last[1] - 1);
    }
    let toSkip = 0;
    if (this.#options.name === "nth_value") {
      const count = this.#argument(1, place.row);
      if (count === null) return null;
      toSkip = requirePositive("nth_value", Number(count)) - 1;
    }
    for (const [from, to] of ranges) {
      if (toSkip < to - from) return this.#argument(0, from + toSkip);
      toSkip -= to - from;
    }
    return null;
  }
}

/**
 * Requires that an argument is positive.
 * @throws {DatabaseError} VALUE_OUT_OF_RANGE
 */
function requirePositive(name: string, value: number): number {
  if (value > 0) return value;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot call ${name} with the argument ${value}: it must be 1 or greater`,
  );
}
