/**
 * UNION, INTERSECT and EXCEPT over the rows of two inputs. NULLs are equal here.
 *
 * INTERSECT and EXCEPT count the rows of the right side, then let the left one stream: with ALL a
 * row of the left takes one of its equals away, without ALL it goes up at most once.
 */
import { type Batch, type DataType, keepRows } from "../../../types/mod.ts";
import type { Partitions } from "../../spill/mod.ts";
import { Grouping } from "../keys/grouping.ts";
import { NO_KEY } from "../keys/key_index.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import { PartitionWork, rowsWhere, type SpillOptions, SpillSite } from "../run/spilling.ts";

/** All rows of one input, then all of another. */
export class Concatenation implements Operator {
  readonly #first: Operator;
  readonly #second: Operator;
  #isFirstOver = false;

  constructor(first: Operator, second: Operator) {
    this.#first = first;
    this.#second = second;
  }

  next(): Batch | undefined {
    if (this.#isFirstOver) return this.#second.next();
    const batch = this.#first.next();
    if (batch !== undefined) return batch;
    this.#isFirstOver = true;
    return this.#second.next();
  }

  close(): void {
    this.#first.close();
    this.#second.close();
  }
}

export interface SetOperationOptions extends SpillOptions {
  readonly operator: "intersect" | "except";
  readonly isAll: boolean;
  readonly types: readonly DataType[];
  readonly left: Operator;
  readonly right: Operator;
}

/** What went to disk of both sides: rows that no group in memory has. */
interface Divided {
  readonly left: Partitions;
  readonly right: Partitions;
}

/**
 * Beyond the memory, groups that are known stay as they are, and rows of others, of either side, go
 * to disk by their values; each pair of partitions is then an operation of its own.
 */
export class SetOperation implements Operator {
  readonly #options: SetOperationOptions;
  readonly #site: SpillSite;
  readonly #groups: Grouping;
  /**
   * For each group, how many rows of the right side are left of it. Without ALL a group that went
   * up has none left for INTERSECT, and one for EXCEPT, so that it does not go up again.
   */
  readonly #counts: number[] = [];
  #isCounted = false;
  #divided: Divided | undefined;
  #later: Operator | undefined;

  constructor(options: SetOperationOptions) {
    this.#options = options;
    this.#site = new SpillSite(options);
    this.#groups = new Grouping(options.types, this.#site.memory, { keepsKeys: false });
  }

  next(): Batch | undefined {
    if (this.#later !== undefined) return this.#later.next();
    if (!this.#isCounted) this.#count();
    const { left, run } = this.#options;
    for (;;) {
      const batch = nextRows(left, run);
      if (batch === undefined) return this.#workLater();
      const { known, numbers } = this.#numbered(batch, this.#divided?.left);
      const kept = rowsWhere(known.rowCount, (row) => this.#isKept(numbers[row] ?? 0));
      if (kept.count > 0) return keepRows(known, kept);
    }
  }

  close(): void {
    this.#options.left.close();
    this.#options.right.close();
    this.#later?.close();
    this.#divided?.left.close();
    this.#divided?.right.close();
    this.#site.close();
  }

  #count(): void {
    this.#isCounted = true;
    const { right, run } = this.#options;
    for (let batch = nextRows(right, run); batch !== undefined; batch = nextRows(right, run)) {
      for (const number of this.#numbered(batch, this.#divided?.right).numbers) {
        this.#counts[number] = (this.#counts[number] ?? 0) + 1;
      }
    }
  }

  /** Rows whose groups are in memory, and the numbers of these; others go to their partitions. */
  #numbered(
    batch: Batch,
    partitions: Partitions | undefined,
  ): { known: Batch; numbers: ArrayLike<number> & Iterable<number> } {
    const { rowCount } = batch;
    if (partitions === undefined) {
      const numbers = this.#groups.numbersOf(batch.columns, rowCount);
      if (this.#site.isDue) this.#divide();
      return { known: batch, numbers };
    }
    const numbers = this.#groups.knownNumbersOf(batch.columns, rowCount);
    const others = keepRows(
      batch,
      rowsWhere(rowCount, (row) => numbers[row] === NO_KEY),
    );
    partitions.add(others, others.columns);
    const known = rowsWhere(rowCount, (row) => numbers[row] !== NO_KEY);
    return {
      known: keepRows(batch, known),
      numbers: numbers.filter((number) => number !== NO_KEY),
    };
  }

  #divide(): void {
    const { types } = this.#options;
    const left = this.#site.partitions(types.length, types);
    try {
      this.#divided = { left, right: this.#site.partitions(types.length, types) };
    } catch (error) {
      left.close();
      throw error;
    }
  }

  #workLater(): Batch | undefined {
    const divided = this.#divided;
    if (divided === undefined) return undefined;
    this.#site.close();
    this.#later = new PartitionWork((partition) => {
      if (divided.left.rowCountOf(partition) === 0) return undefined;
      return new SetOperation({
        ...this.#options,
        ...this.#site.deeper,
        left: divided.left.reader(partition),
        right: divided.right.reader(partition),
      });
    });
    return this.#later.next();
  }

  #isKept(number: number): boolean {
    const { isAll, operator } = this.#options;
    const count = this.#counts[number] ?? 0;
    const isWanted = count > 0 === (operator === "intersect");
    if (isAll) {
      if (count > 0) this.#counts[number] = count - 1;
      return isWanted;
    }
    if (isWanted) this.#counts[number] = operator === "intersect" ? 0 : 1;
    return isWanted;
  }
}
