/**
 * Joins two sides whose build side does not fit into memory. Both sides are partitioned by their
 * keys on disk, and each pair of partitions is joined separately (the Grace hash join of
 * Kitsuregawa et al., 1983).
 *
 *     build rows ──► remaining build side ──► the other side ──► pairs of partitions
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import type { Batch, DataType } from "../../../types/mod.ts";
import type { Partitions } from "../../spill/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { PartitionWork, type SpillSite } from "../context/spilling.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import type { BuildColumns } from "../materialised/build_columns.ts";
import type { JoinOptions } from "./hash_join.ts";

type JoinSide = "left" | "right";

/** A side of a hash join whose rows are partitioned by key. */
interface PartitionedSide {
  readonly rows: Operator;
  readonly keys: readonly Evaluator[];
  readonly types: readonly DataType[];
}

export interface GraceHashJoinOptions {
  readonly context: ExecutionContext;
  readonly site: SpillSite;
  readonly sides: Readonly<Record<JoinSide, PartitionedSide>>;
  readonly keyTypes: readonly DataType[];
  /**
   * Creates the join of a pair of partitions. Returns undefined if one of the partitions is empty,
   * so that the pair yields no rows.
   */
  readonly join: (pair: PartitionPair) => Operator | undefined;
}

/** The rows of one side of a join in memory. They are released as they are read. */
export interface BuildSide {
  readonly side: JoinSide;
  readonly batches: Iterable<Batch>;
}

export interface PartitionPair {
  readonly left: Operator;
  readonly right: Operator;
  readonly leftCount: number;
  readonly rightCount: number;
}

export function graceHashJoinOptions(
  options: JoinOptions,
  site: SpillSite,
  join: GraceHashJoinOptions["join"],
): GraceHashJoinOptions {
  const { keyTypes, context } = options;
  const left = { rows: options.left, keys: options.leftKeys, types: options.leftTypes };
  const right = { rows: options.right, keys: options.rightKeys, types: options.rightTypes };
  return { context, site, keyTypes, join, sides: { left, right } };
}

/** Yields build rows in the order in which they were added, one batch at a time. */
export function* buildBatches(build: BuildColumns): Generator<Batch, void> {
  for (let start = 0; start < build.rowCount; start += BATCH_ROWS_MAX) {
    const count = Math.min(BATCH_ROWS_MAX, build.rowCount - start);
    yield build.take(
      Uint32Array.from({ length: count }, (_, i) => start + i),
      count,
    );
  }
}

/** The rows of both sides of a join, partitioned by key. */
export class JoinPartitions {
  readonly #options: GraceHashJoinOptions;
  readonly #partitions: Readonly<Record<JoinSide, Partitions>>;

  constructor(options: GraceHashJoinOptions) {
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

  add(side: JoinSide, batch: Batch): void {
    const { context, sides } = this.#options;
    const keys = sides[side].keys.map((key) => key(batch, context));
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

export class GraceHashJoin implements Operator {
  readonly #options: GraceHashJoinOptions;
  readonly #partitions: JoinPartitions;
  readonly #held: BuildSide;
  #work: Operator | undefined;

  constructor(options: GraceHashJoinOptions, held: BuildSide) {
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
      this.#options.context.checkTime();
      this.#partitions.add(side, batch);
    }
    this.#addAll(side);
    this.#addAll(side === "left" ? "right" : "left");
    return this.#partitions.work();
  }

  #addAll(side: JoinSide): void {
    const { context, sides } = this.#options;
    const { rows } = sides[side];
    for (
      let batch = nextRows(rows, context);
      batch !== undefined;
      batch = nextRows(rows, context)
    ) {
      this.#partitions.add(side, batch);
    }
  }
}
