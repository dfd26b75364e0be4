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
import { NOTHING_YET, type Operator } from "../run/operator.ts";
import { type Run } from "../run/run.ts";
import { PartitionWork, rowsWhere, type SpillOptions, SpillSite } from "../run/spilling.ts";

export interface DistinctOptions extends SpillOptions {
  readonly on: readonly Evaluator[];
  readonly types: readonly DataType[];
  /** Types of the columns, if rows must come in the order in which they came. */
  readonly ordered?: readonly DataType[] | undefined;
}

export class Distinct implements Operator {
  readonly #input: Operator;
  readonly #options: DistinctOptions;
  readonly #run: Run;
  readonly #site: SpillSite;
  readonly #groups: Grouping;
  #partitions: Partitions | undefined;
  /** Rows that went to disk: the arrival of the next one. */
  #arrivalCount = 0;
  #later: Operator | undefined;

  constructor(input: Operator, options: DistinctOptions) {
    this.#input = input;
    this.#options = options;
    this.#run = options.run;
    this.#site = new SpillSite(options);
    this.#groups = new Grouping(options.types, this.#site.memory, { keepsKeys: false });
  }

  next(): Batch | undefined {
    if (this.#later !== undefined) return this.#later.next();
    const batch = this.#input.next();
    if (batch === undefined) return this.#workLater();
    if (batch.rowCount === 0) return batch;
    const vectors = this.#options.on.map((evaluate) => evaluate(batch, this.#run));
    if (this.#partitions === undefined) {
      const kept = keepRows(batch, this.#groups.newRowsOf(vectors, batch.rowCount));
      if (this.#site.isDue) this.#divide(batch.columns.length);
      return kept;
    }
    const numbers = this.#groups.knownNumbersOf(vectors, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => numbers[row] === NO_KEY);
    if (unknown.count === 0) return NOTHING_YET;
    const rows = keepRows(
      { rowCount: batch.rowCount, columns: [...batch.columns, ...vectors] },
      unknown,
    );
    const width = batch.columns.length;
    const columns = [...rows.columns.slice(0, width), ...this.#arrivals(unknown.count)];
    this.#partitions.add({ rowCount: unknown.count, columns }, rows.columns.slice(width));
    return NOTHING_YET;
  }

  close(): void {
    this.#input.close();
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

  #workLater(): Batch | undefined {
    const partitions = this.#partitions;
    if (partitions === undefined) return undefined;
    // Nobody asks for the known groups any more.
    this.#site.close();
    const { on, ordered, types } = this.#options;
    const inner = ordered === undefined ? undefined : [...ordered, DOUBLE];
    const work = (partition: number): Operator | undefined => {
      if (partitions.rowCountOf(partition) === 0) return undefined;
      const options = { ...this.#site.deeper, on, types, ordered: inner };
      return new Distinct(partitions.reader(partition), options);
    };
    this.#later =
      inner === undefined ? new PartitionWork(work) : new ArrivalMerge(this.#site, work, inner);
    return NOTHING_YET;
  }
}

function compareArrivals(left: unknown, right: unknown): number {
  return Number(left) - Number(right);
}

/**
 * The rows of all partitions in the order of their last column, in which each partition has them.
 */
class ArrivalMerge implements Operator {
  readonly #work: (partition: number) => Operator | undefined;
  readonly #runs: SortedRuns;
  readonly #width: number;
  #partition = 0;
  #current: Operator | undefined;
  #reducing: Iterator<undefined, void> | undefined;
  #merge: RunMerge | undefined;

  constructor(
    site: SpillSite,
    work: (partition: number) => Operator | undefined,
    types: readonly DataType[],
  ) {
    this.#work = work;
    this.#width = types.length - 1;
    this.#runs = site.sortedRuns(types, [compareArrivals], this.#width);
  }

  next(): Batch | undefined {
    if (this.#merge !== undefined) {
      const batch = this.#merge.next();
      if (batch === undefined) return undefined;
      return { rowCount: batch.rowCount, columns: batch.columns.slice(0, this.#width) };
    }
    if (this.#reducing !== undefined) {
      if (this.#reducing.next().done === true) this.#merge = this.#runs.merged();
      return NOTHING_YET;
    }
    if (this.#current !== undefined) {
      this.#collect(this.#current);
    } else if (this.#partition < PARTITION_COUNT) {
      this.#current = this.#work(this.#partition);
      this.#partition += 1;
      if (this.#current !== undefined) this.#runs.begin();
    } else {
      this.#reducing = this.#runs.reduce();
    }
    return NOTHING_YET;
  }

  close(): void {
    this.#current?.close();
    this.#runs.close();
  }

  #collect(current: Operator): void {
    const batch = current.next();
    if (batch === undefined) {
      current.close();
      this.#current = undefined;
    } else if (batch.rowCount > 0) {
      this.#runs.append(batch, batchBytes(batch));
    }
  }
}
