/**
 * Provides the code shared by the operators that spill rows to disk when memory runs out.
 *
 *     in memory ──crowded──► spilling ──input ends──► partition by partition, or merged runs
 *
 * Such an operator allocates from the elastic part of the memory ({@linkcode SpillSite.memory}).
 * After each batch, it checks whether memory has become scarce and, if so, switches to files.
 */
import { collectSoon } from "../../../base/garbage.ts";
import type { Batch, DataType, Vector } from "../../../types/mod.ts";
import type { PlanNode } from "../../plan/plan.ts";
import {
  type CompareValues,
  LEVEL_MAX,
  PARTITION_COUNT,
  Partitions,
  SortedRuns,
  type SpillFile,
} from "../../spill/mod.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import type { ExecutionContext } from "./execution_context.ts";
import type { Operator } from "./operator.ts";

const BLOCK_BYTES_MIN = 16 * 1024;
const BLOCK_BYTES_MAX = 256 * 1024;
const FAN_IN_MIN = 4;
const FAN_IN_MAX = 64;

/** The context of an operator that may spill. */
export interface SpillOptions {
  readonly context: ExecutionContext;
  /** The plan node to which EXPLAIN ANALYZE attributes the spilled bytes. */
  readonly node?: PlanNode | undefined;
  /**
   * The number of times that the operator's rows have already been partitioned; 0 for rows that
   * come directly from the plan.
   */
  readonly level?: number;
}

export class SpillSite {
  readonly #options: SpillOptions;
  readonly level: number;
  /** The memory budget of an operator that may spill. {@linkcode close} releases it. */
  readonly memory: MemoryBudget;
  readonly #isAllowed: boolean;

  /**
   * Creates the site at which an operator decides whether to spill.
   * @param isPossible Whether the operator can spill; false if it needs all of its rows in memory.
   */
  constructor(options: SpillOptions, { isPossible = true }: { isPossible?: boolean } = {}) {
    const { level = 0, context } = options;
    this.#options = options;
    this.level = level;
    this.#isAllowed = isPossible && level <= LEVEL_MAX && context.temporary.isAllowed;
    this.memory = this.#isAllowed ? context.memory.elastic() : context.memory.nested();
  }

  /** Whether the operator should write its rows in memory to disk now. */
  get isDue(): boolean {
    return this.#isAllowed && this.memory.isCrowded;
  }

  /** The options for processing a partition of the rows that the operator has spilled. */
  get deeper(): SpillOptions {
    // Only these members are copied, because the object that was passed in may have further
    // members.
    const { node, context } = this.#options;
    return { context, node, level: this.level + 1 };
  }

  file(columnCount: number): SpillFile {
    const { node, context } = this.#options;
    const { profile } = context;
    const isWatched = profile !== undefined && node !== undefined;
    const onBytes = isWatched ? (bytes: number) => profile.spilled(node, bytes) : undefined;
    return context.temporary.create({ columnCount, onBytes });
  }

  partitions(columnCount: number, keyTypes: readonly DataType[]): Partitions {
    return new Partitions(this.file(columnCount), { keyTypes, level: this.level });
  }

  /**
   * Returns an empty set of sorted runs on disk.
   * @param types The types of the rows. The columns from `keyStart` onwards contain the sort keys.
   */
  sortedRuns(
    types: readonly DataType[],
    keys: readonly CompareValues[],
    keyStart: number,
  ): SortedRuns {
    const { bytesMax } = this.memory;
    const blockBytes = Math.min(BLOCK_BYTES_MAX, Math.max(BLOCK_BYTES_MIN, bytesMax / 128));
    const fanIn = Math.floor(bytesMax / 4 / blockBytes);
    return new SortedRuns({
      types,
      keyStart,
      keys,
      makeFile: () => this.file(types.length),
      blockBytes,
      fanIn: Math.min(FAN_IN_MAX, Math.max(FAN_IN_MIN, fanIn)),
    });
  }

  close(): void {
    this.memory.close();
  }
}

/**
 * Processes partitions one after another: all rows of one partition, then all rows of the next.
 */
export class PartitionWork implements Operator {
  readonly #make: (partition: number) => Operator | undefined;
  #partition = 0;
  #current: Operator | undefined;

  /**
   * Creates an operator that processes partitions one after another.
   * @param make Creates the operator for a partition; returns undefined if the partition needs no
   *   work.
   */
  constructor(make: (partition: number) => Operator | undefined) {
    this.#make = make;
  }

  next(): Batch | undefined {
    while (this.#current !== undefined || this.#partition < PARTITION_COUNT) {
      if (this.#current === undefined) {
        this.#current = this.#make(this.#partition);
        this.#partition += 1;
        continue;
      }
      const batch = this.#current.next();
      if (batch !== undefined) return batch;
      this.#current.close();
      this.#current = undefined;
      collectSoon();
    }
    return undefined;
  }

  close(): void {
    this.#current?.close();
    this.#partition = PARTITION_COUNT;
  }
}

/**
 * Returns the rows that pass a test, in their original order. Operators use it, for example, to
 * select the rows to spill or to keep.
 */
export function rowsWhere(
  rowCount: number,
  isChosen: (row: number) => boolean,
): { rows: Uint32Array; count: number } {
  const rows = new Uint32Array(rowCount);
  let count = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (!isChosen(row)) continue;
    rows[count] = row;
    count += 1;
  }
  return { rows, count };
}

/** Returns a function that reads a column of the batch unchanged. */
export function columnReader(position: number): (batch: Batch) => Vector {
  return ({ columns }) => {
    const column = columns[position];
    if (column === undefined) throw new RangeError("spill: batch lacks a column of the row");
    return column;
  };
}
