/**
 * A join whose held side does not fit the memory: both sides go to disk by their keys, then each
 * pair of partitions is a join by itself (the Grace hash join of Kitsuregawa et al., 1983).
 *
 *     held rows ──► rest of that side ──► the other side ──► pairs of partitions
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { Batch, DataType } from "../../../types/mod.ts";
import type { Partitions } from "../../spill/mod.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import type { HeldColumns } from "../held/held_columns.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { PartitionWork, type SpillSite } from "../run/spilling.ts";
import type { JoinOptions } from "./hash_join.ts";

type Side = "left" | "right";

/** One side of the join. */
interface DividedSide {
  readonly rows: Operator;
  readonly keys: readonly Evaluator[];
  readonly types: readonly DataType[];
}

export interface DividedJoinOptions {
  readonly run: Run;
  readonly site: SpillSite;
  readonly sides: Readonly<Record<Side, DividedSide>>;
  readonly keyTypes: readonly DataType[];
  /** Joins a pair of partitions; undefined where one of them being empty decides. */
  readonly join: (pair: DividedPair) => Operator | undefined;
}

/** Rows of one side that were held so far, given up as they are read. */
export interface HeldSide {
  readonly side: Side;
  readonly batches: Iterable<Batch>;
}

export interface DividedPair {
  readonly left: Operator;
  readonly right: Operator;
  readonly leftCount: number;
  readonly rightCount: number;
}

export function dividedOptions(
  options: JoinOptions,
  site: SpillSite,
  join: DividedJoinOptions["join"],
): DividedJoinOptions {
  const { keyTypes, run } = options;
  const left = { rows: options.left, keys: options.leftKeys, types: options.leftTypes };
  const right = { rows: options.right, keys: options.rightKeys, types: options.rightTypes };
  return { run, site, keyTypes, join, sides: { left, right } };
}

/** Held rows in their order, a batch at a time. */
export function* heldBatches(held: HeldColumns): Generator<Batch, void> {
  for (let start = 0; start < held.rowCount; start += BATCH_ROWS_MAX) {
    const count = Math.min(BATCH_ROWS_MAX, held.rowCount - start);
    yield held.take(
      Uint32Array.from({ length: count }, (_, i) => start + i),
      count,
    );
  }
}

/** Rows of both sides, apart by their keys. */
export class JoinPartitions {
  readonly #options: DividedJoinOptions;
  readonly #partitions: Readonly<Record<Side, Partitions>>;

  constructor(options: DividedJoinOptions) {
    const { keyTypes, sides, site } = options;
    this.#options = options;
    const left = site.partitions(sides.left.types.length, keyTypes);
    try {
      this.#partitions = { left, right: site.partitions(sides.right.types.length, keyTypes) };
    } catch (error) {
      left.close();
      throw error;
    }
  }

  add(side: Side, batch: Batch): void {
    const { run, sides } = this.#options;
    const keys = sides[side].keys.map((key) => key(batch, run));
    this.#partitions[side].add(batch, keys);
  }

  work(): Operator {
    const { left, right } = this.#partitions;
    return new PartitionWork((partition) =>
      this.#options.join({
        left: left.reader(partition),
        right: right.reader(partition),
        leftCount: left.rowCountOf(partition),
        rightCount: right.rowCountOf(partition),
      }),
    );
  }

  close(): void {
    this.#partitions.left.close();
    this.#partitions.right.close();
  }
}

export class DividedJoin implements Operator {
  readonly #options: DividedJoinOptions;
  readonly #partitions: JoinPartitions;
  readonly #held: HeldSide;
  #work: Operator | undefined;

  constructor(options: DividedJoinOptions, held: HeldSide) {
    this.#options = options;
    this.#held = held;
    this.#partitions = new JoinPartitions(options);
  }

  next(): Batch | undefined {
    this.#work ??= this.#divide();
    return this.#work.next();
  }

  close(): void {
    this.#work?.close();
    this.#partitions.close();
  }

  #divide(): Operator {
    const { batches, side } = this.#held;
    for (const batch of batches) {
      this.#options.run.checkTime();
      this.#partitions.add(side, batch);
    }
    this.#addAll(side);
    this.#addAll(side === "left" ? "right" : "left");
    return this.#partitions.work();
  }

  #addAll(side: Side): void {
    const { run, sides } = this.#options;
    const { rows } = sides[side];
    for (let batch = nextRows(rows, run); batch !== undefined; batch = nextRows(rows, run)) {
      this.#partitions.add(side, batch);
    }
  }
}
