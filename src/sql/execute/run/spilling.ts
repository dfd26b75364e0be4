/**
 * What operators share that move to disk what their statement has no memory for.
 *
 *     in memory ──crowded──► spilling ──input ends──► partition by partition, or merged runs
 *
 * An operator takes the elastic part of the memory ({@linkcode SpillSite.memory}), asks after each
 * batch whether that is crowded, and then goes over to files.
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
import type { MemoryBudget } from "../held/memory_budget.ts";
import type { Operator } from "./operator.ts";
import type { Run } from "./run.ts";

const BLOCK_BYTES_MIN = 16 * 1024;
const BLOCK_BYTES_MAX = 256 * 1024;
const FAN_IN_MIN = 4;
const FAN_IN_MAX = 64;

/** Where an operator stands that may spill. */
export interface SpillOptions {
  readonly run: Run;
  /** Whom EXPLAIN ANALYZE shows the bytes of. */
  readonly node?: PlanNode | undefined;
  /** How often its rows were divided already: 0, but for work on a partition. */
  readonly level?: number;
}

export class SpillSite {
  readonly #options: SpillOptions;
  readonly level: number;
  /** What the operator holds; gives back by {@linkcode close}. */
  readonly memory: MemoryBudget;
  readonly #isAllowed: boolean;

  /** @param isPossible False for an operator that needs all its rows at once. */
  constructor(options: SpillOptions, { isPossible = true }: { isPossible?: boolean } = {}) {
    const { level = 0, run } = options;
    this.#options = options;
    this.level = level;
    this.#isAllowed = isPossible && level <= LEVEL_MAX && run.temporary.isAllowed;
    this.memory = this.#isAllowed ? run.memory.elastic() : run.memory.nested();
  }

  /** Whether what is held should go to disk now. */
  get isDue(): boolean {
    return this.#isAllowed && this.memory.isCrowded;
  }

  /** Options for work on a partition of what was spilled here. */
  get deeper(): SpillOptions {
    // The options may be those of an operator, of which only these are meant.
    const { node, run } = this.#options;
    return { run, node, level: this.level + 1 };
  }

  file(columnCount: number): SpillFile {
    const { node, run } = this.#options;
    const { profile } = run;
    const isWatched = profile !== undefined && node !== undefined;
    const onBytes = isWatched ? (bytes: number) => profile.spilled(node, bytes) : undefined;
    return run.temporary.create({ columnCount, onBytes });
  }

  partitions(columnCount: number, keyTypes: readonly DataType[]): Partitions {
    return new Partitions(this.file(columnCount), { keyTypes, level: this.level });
  }

  /** @param types Of the rows, whose columns from `keyStart` on are the values of the keys. */
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

/** Works on partitions one after the other: all that one yields, then all of the next. */
export class PartitionWork implements Operator {
  readonly #make: (partition: number) => Operator | undefined;
  #partition = 0;
  #current: Operator | undefined;

  /** @param make Makes the work on a partition; undefined where there is none to do. */
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

/** Rows named by a test, in their order: what an operator sends to disk, or keeps. */
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

/** Reads a column of the batch as it is. */
export function columnReader(position: number): (batch: Batch) => Vector {
  return ({ columns }) => {
    const column = columns[position];
    if (column === undefined) throw new RangeError("a spilled row has its columns");
    return column;
  };
}
