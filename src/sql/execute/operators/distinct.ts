/**
 * Keeps the first row of each group of equal rows.
 *
 * If memory runs out, the groups already in memory stay there, and the rows of all other groups
 * are partitioned by key on disk:
 *
 *     deciding ──crowded──► dividing ──end──► each partition is processed separately
 *
 * Rows that have already been passed on precede all rows on disk. The order of the input can
 * therefore be preserved: the first rows in each partition form a run sorted by arrival, and the
 * runs are merged.
 */
import { type Batch, type DataType, DOUBLE, keepRows } from "../../../types/mod.ts";
import {
  PARTITION_COUNT,
  type Partitions,
  type RunMerge,
  type SortedRuns,
} from "../../spill/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { PartitionWork, rowsWhere, type SpillOptions, SpillSite } from "../context/spilling.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { Grouping } from "../keys/grouping.ts";
import { NO_KEY } from "../keys/key_hash_table.ts";
import { batchBytes } from "../materialised/memory_budget.ts";

const NO_ROWS: Batch = { rowCount: 0, columns: [] };

type PartitionOperator = (partition: number) => Operator | undefined;

export interface DistinctOptions extends SpillOptions {
  readonly on: readonly Evaluator[];
  readonly types: readonly DataType[];
  /** The types of the columns; set only if the order of the rows must be preserved. */
  readonly ordered?: readonly DataType[] | undefined;
}

/**
 * Receives all batches, and then yields the spilled rows, which can be deduplicated only once all
 * rows have arrived.
 */
export class DistinctRows {
  readonly #options: DistinctOptions;
  readonly #site: SpillSite;
  readonly #groups: Grouping;
  #partitions: Partitions | undefined;
  /** The arrival number of the next row to be written to disk. */
  #arrivalCount = 0;
  #later: Operator | undefined;

  constructor(options: DistinctOptions) {
    this.#options = options;
    this.#site = new SpillSite(options);
    this.#groups = new Grouping(options.types, this.#site.memory, { keepsKeys: false });
  }

  /** Returns the rows of a batch that are already known to be the first of their groups. */
  firstsOf(batch: Batch): Batch {
    const vectors = this.#options.on.map((evaluate) => evaluate(batch, this.#options.context));
    if (this.#partitions === undefined) {
      const kept = keepRows(batch, this.#groups.newRowsOf(vectors, batch.rowCount));
      if (this.#site.isDue) this.#divide(batch.columns.length);
      return kept;
    }
    const ids = this.#groups.knownGroupIdsOf(vectors, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => ids[row] === NO_KEY);
    if (unknown.count === 0) return NO_ROWS;
    const rows = keepRows(
      { rowCount: batch.rowCount, columns: [...batch.columns, ...vectors] },
      unknown,
    );
    const width = batch.columns.length;
    const columns = [...rows.columns.slice(0, width), ...this.#arrivals(unknown.count)];
    this.#partitions.add({ rowCount: unknown.count, columns }, rows.columns.slice(width));
    return NO_ROWS;
  }

  /**
   * Returns the next batch of distinct rows from disk. Call this only after all rows have arrived.
   */
  next(): Batch | undefined {
    if (this.#later === undefined && this.#partitions !== undefined) {
      this.#later = this.#workOn(this.#partitions);
    }
    return this.#later?.next();
  }

  close(): void {
    this.#later?.close();
    this.#partitions?.close();
    this.#site.close();
  }

  #divide(width: number): void {
    const arrivalWidth = this.#options.ordered === undefined ? 0 : 1;
    this.#partitions = this.#site.partitions(width + arrivalWidth, this.#options.types);
  }

  /**
   * Returns a column of ascending arrival numbers if the order of the rows must be preserved;
   * otherwise, no column.
   */
  #arrivals(rowCount: number): Batch["columns"] {
    if (this.#options.ordered === undefined) return [];
    const start = this.#arrivalCount;
    this.#arrivalCount += rowCount;
    const values = Float64Array.from({ length: rowCount }, (_, i) => start + i);
    return [{ kind: "f64", length: rowCount, values, nulls: undefined }];
  }

  #workOn(partitions: Partitions): Operator {
    // The partitions on disk contain all other groups, so the groups in memory are no longer
    // needed.
    this.#site.close();
    const { on, ordered, context, types } = this.#options;
    const inner = ordered === undefined ? undefined : [...ordered, DOUBLE];
    const work: PartitionOperator = (partition) => {
      if (partitions.rowCountOf(partition) === 0) return undefined;
      const options = { ...this.#site.deeper, on, types, ordered: inner };
      return new Distinct(partitions.reader(partition), options);
    };
    if (inner === undefined) return new PartitionWork(work);
    return new ArrivalMerge(this.#site, work, { context, types: inner });
  }
}

export class Distinct implements Operator {
  readonly #input: Operator;
  readonly #context: ExecutionContext;
  readonly #rows: DistinctRows;
  #isOver = false;

  constructor(input: Operator, options: DistinctOptions) {
    this.#input = input;
    this.#context = options.context;
    this.#rows = new DistinctRows(options);
  }

  next(): Batch | undefined {
    while (!this.#isOver) {
      const batch = nextRows(this.#input, this.#context);
      if (batch === undefined) {
        this.#isOver = true;
      } else {
        const firsts = this.#rows.firstsOf(batch);
        if (firsts.rowCount > 0) return firsts;
      }
    }
    return this.#rows.next();
  }

  close(): void {
    this.#input.close();
    this.#rows.close();
  }
}

function compareArrivals(left: unknown, right: unknown): number {
  return Number(left) - Number(right);
}

/**
 * Merges the rows of all partitions by arrival number, which is their last column. Each partition
 * is sorted by it.
 */
class ArrivalMerge implements Operator {
  readonly #context: ExecutionContext;
  readonly #work: PartitionOperator;
  readonly #runs: SortedRuns;
  readonly #width: number;
  #merge: RunMerge | undefined;

  constructor(
    site: SpillSite,
    work: PartitionOperator,
    { context, types }: { context: ExecutionContext; types: readonly DataType[] },
  ) {
    this.#context = context;
    this.#work = work;
    this.#width = types.length - 1;
    this.#runs = site.sortedRuns(types, [compareArrivals], this.#width);
  }

  next(): Batch | undefined {
    this.#merge ??= this.#merged();
    const batch = this.#merge.next();
    if (batch === undefined) return undefined;
    return { rowCount: batch.rowCount, columns: batch.columns.slice(0, this.#width) };
  }

  close(): void {
    this.#runs.close();
  }

  #merged(): RunMerge {
    for (let partition = 0; partition < PARTITION_COUNT; partition += 1) {
      const rows = this.#work(partition);
      if (rows !== undefined) this.#collect(rows);
    }
    this.#runs.reduce(() => this.#context.checkTime());
    return this.#runs.merged();
  }

  #collect(rows: Operator): void {
    try {
      this.#runs.begin();
      for (;;) {
        const batch = nextRows(rows, this.#context);
        if (batch === undefined) return;
        this.#runs.append(batch, batchBytes(batch));
      }
    } finally {
      rows.close();
    }
  }
}
