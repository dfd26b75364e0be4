/**
 * Keeps the first row of each group of equal rows.
 *
 * Beyond the memory, groups that are known stay known, and rows of others go to disk by their keys:
 *
 *     deciding ──crowded──► dividing ──end──► each partition by itself
 *
 * Rows that went up before came before all of those, so an order of the input can be kept: the
 * first rows of each partition are a sorted run by arrival, and the runs are merged.
 */
import { type Batch, type DataType, DOUBLE, keepRows } from "../../../types/mod.ts";
import {
  PARTITION_COUNT,
  type Partitions,
  type RunMerge,
  type SortedRuns,
} from "../../spill/mod.ts";
import type { Evaluator } from "../evaluate/expression.ts";
import { batchBytes } from "../held/memory_budget.ts";
import { Grouping } from "../keys/grouping.ts";
import { NO_KEY } from "../keys/key_index.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import type { Run } from "../run/run.ts";
import { PartitionWork, rowsWhere, type SpillOptions, SpillSite } from "../run/spilling.ts";

const NO_ROWS: Batch = { rowCount: 0, columns: [] };

type PartitionOperator = (partition: number) => Operator | undefined;

export interface DistinctOptions extends SpillOptions {
  readonly on: readonly Evaluator[];
  readonly types: readonly DataType[];
  /** Types of the columns, if rows must come in the order in which they came. */
  readonly ordered?: readonly DataType[] | undefined;
}

/** Takes batch after batch, then gives what it could not decide before all had come. */
export class DistinctRows {
  readonly #options: DistinctOptions;
  readonly #site: SpillSite;
  readonly #groups: Grouping;
  #partitions: Partitions | undefined;
  /** Rows that went to disk: the arrival of the next one. */
  #arrivalCount = 0;
  #later: Operator | undefined;

  constructor(options: DistinctOptions) {
    this.#options = options;
    this.#site = new SpillSite(options);
    this.#groups = new Grouping(options.types, this.#site.memory, { keepsKeys: false });
  }

  /** The rows of a batch that are the first of their groups, as far as that is known yet. */
  firstsOf(batch: Batch): Batch {
    const vectors = this.#options.on.map((evaluate) => evaluate(batch, this.#options.run));
    if (this.#partitions === undefined) {
      const kept = keepRows(batch, this.#groups.newRowsOf(vectors, batch.rowCount));
      if (this.#site.isDue) this.#divide(batch.columns.length);
      return kept;
    }
    const numbers = this.#groups.knownNumbersOf(vectors, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => numbers[row] === NO_KEY);
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

  /** The next rows of those that went to disk, once all have come. */
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

  /** A column of numbers that ascend with each row, if an order is to be kept. */
  #arrivals(rowCount: number): Batch["columns"] {
    if (this.#options.ordered === undefined) return [];
    const start = this.#arrivalCount;
    this.#arrivalCount += rowCount;
    const values = Float64Array.from({ length: rowCount }, (_, i) => start + i);
    return [{ kind: "f64", length: rowCount, values, nulls: undefined }];
  }

  #workOn(partitions: Partitions): Operator {
    // Nobody asks for the known groups any more.
    this.#site.close();
    const { on, ordered, run, types } = this.#options;
    const inner = ordered === undefined ? undefined : [...ordered, DOUBLE];
    const work: PartitionOperator = (partition) => {
      if (partitions.rowCountOf(partition) === 0) return undefined;
      const options = { ...this.#site.deeper, on, types, ordered: inner };
      return new Distinct(partitions.reader(partition), options);
    };
    if (inner === undefined) return new PartitionWork(work);
    return new ArrivalMerge(this.#site, work, { run, types: inner });
  }
}

export class Distinct implements Operator {
  readonly #input: Operator;
  readonly #run: Run;
  readonly #rows: DistinctRows;
  #isOver = false;

  constructor(input: Operator, options: DistinctOptions) {
    this.#input = input;
    this.#run = options.run;
    this.#rows = new DistinctRows(options);
  }

  next(): Batch | undefined {
    while (!this.#isOver) {
      const batch = nextRows(this.#input, this.#run);
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
 * The rows of all partitions in the order of their last column, in which each partition has them.
 */
class ArrivalMerge implements Operator {
  readonly #run: Run;
  readonly #work: PartitionOperator;
  readonly #runs: SortedRuns;
  readonly #width: number;
  #merge: RunMerge | undefined;

  constructor(
    site: SpillSite,
    work: PartitionOperator,
    { run, types }: { run: Run; types: readonly DataType[] },
  ) {
    this.#run = run;
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
    this.#runs.reduce(() => this.#run.checkTime());
    return this.#runs.merged();
  }

  #collect(rows: Operator): void {
    try {
      this.#runs.begin();
      for (;;) {
        const batch = nextRows(rows, this.#run);
        if (batch === undefined) return;
        this.#runs.append(batch, batchBytes(batch));
      }
    } finally {
      rows.close();
    }
  }
}
