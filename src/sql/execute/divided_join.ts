/**
 * A join whose right side does not fit the memory: both sides go to disk by their keys, then each
 * pair of partitions is a join by itself (the Grace hash join of Kitsuregawa et al., 1983).
 *
 *     held rows ──► rest of the right side ──► left side ──► pairs of partitions
 */
import type { Batch, DataType } from "../../types/mod.ts";
import type { Partitions } from "../spill/mod.ts";
import type { Evaluator } from "./expression.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Run } from "./run.ts";
import { PartitionWork, type SpillSite } from "./spilling.ts";

/** One side of the join. */
export interface DividedSide {
  readonly rows: Operator;
  readonly keys: readonly Evaluator[];
  readonly types: readonly DataType[];
}

export interface DividedJoinOptions {
  readonly run: Run;
  readonly site: SpillSite;
  readonly left: DividedSide;
  readonly right: DividedSide;
  readonly keyTypes: readonly DataType[];
  /** Joins a pair of partitions; undefined where one of them being empty decides. */
  readonly join: (pair: DividedPair) => Operator | undefined;
}

export interface DividedPair {
  readonly left: Operator;
  readonly right: Operator;
  readonly leftCount: number;
  readonly rightCount: number;
}

/** Rows of both sides, apart by their keys. */
export class JoinPartitions {
  readonly #options: DividedJoinOptions;
  readonly #left: Partitions;
  readonly #right: Partitions;

  constructor(options: DividedJoinOptions) {
    const { keyTypes, left, right, site } = options;
    this.#options = options;
    this.#left = site.partitions(left.types.length, keyTypes);
    try {
      this.#right = site.partitions(right.types.length, keyTypes);
    } catch (error) {
      this.#left.close();
      throw error;
    }
  }

  addRight(batch: Batch): void {
    const { right, run } = this.#options;
    const keys = right.keys.map((key) => key(batch, run));
    this.#right.add(batch, keys);
  }

  addLeft(batch: Batch): void {
    const { left, run } = this.#options;
    const keys = left.keys.map((key) => key(batch, run));
    this.#left.add(batch, keys);
  }

  work(): Operator {
    return new PartitionWork((partition) =>
      this.#options.join({
        left: this.#left.reader(partition),
        right: this.#right.reader(partition),
        leftCount: this.#left.rowCountOf(partition),
        rightCount: this.#right.rowCountOf(partition),
      }),
    );
  }

  close(): void {
    this.#left.close();
    this.#right.close();
  }
}

/** @param held The rows of the right side that were held so far, given up as they are read. */
export class DividedJoin implements Operator {
  readonly #partitions: JoinPartitions;
  readonly #steps: Iterator<undefined, void>;
  #work: Operator | undefined;

  constructor(options: DividedJoinOptions, held: Iterable<Batch>) {
    this.#partitions = new JoinPartitions(options);
    this.#steps = this.#divide(options, held);
  }

  next(): Batch | undefined {
    if (this.#work !== undefined) return this.#work.next();
    if (this.#steps.next().done === true) this.#work = this.#partitions.work();
    return NOTHING_YET;
  }

  close(): void {
    this.#work?.close();
    this.#partitions.close();
  }

  *#divide({ left, right }: DividedJoinOptions, held: Iterable<Batch>): Generator<undefined, void> {
    for (const batch of held) {
      this.#partitions.addRight(batch);
      yield undefined;
    }
    for (let batch = right.rows.next(); batch !== undefined; batch = right.rows.next()) {
      if (batch.rowCount > 0) this.#partitions.addRight(batch);
      yield undefined;
    }
    for (let batch = left.rows.next(); batch !== undefined; batch = left.rows.next()) {
      if (batch.rowCount > 0) this.#partitions.addLeft(batch);
      yield undefined;
    }
  }
}
