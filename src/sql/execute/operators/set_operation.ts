/**
 * Computes UNION, INTERSECT and EXCEPT over the rows of two inputs. NULLs count as equal here.
 *
 * INTERSECT and EXCEPT first count the rows of the right input, and then stream the left input.
 * With ALL, each left row uses up one equal right row. Without ALL, equal left rows are yielded
 * only once.
 */
import { type Batch, type DataType, keepRows } from "../../../types/mod.ts";
import type { Partitions } from "../../spill/mod.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { PartitionWork, rowsWhere, type SpillOptions, SpillSite } from "../context/spilling.ts";
import { Grouping } from "../keys/grouping.ts";
import { NO_KEY } from "../keys/key_hash_table.ts";

/** Yields all rows of one input, then all rows of the other. */
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

/** The rows of both inputs that were written to disk because their groups are not in memory. */
interface Divided {
  readonly left: Partitions;
  readonly right: Partitions;
}

/**
 * Computes INTERSECT and EXCEPT. If memory runs out, the groups already in memory stay there, and
 * the rows of all other groups, from either side, are partitioned by their values on disk. Each
 * pair of partitions is then processed as a separate operation.
 */
export class SetOperation implements Operator {
  readonly #options: SetOperationOptions;
  readonly #site: SpillSite;
  readonly #groups: Grouping;
  /**
   * The number of right rows that remain for each group. Without ALL, the number is set once a row
   * of the group has been yielded, so that no further row is yielded: to 0 for INTERSECT, and to 1
   * for EXCEPT.
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
    const { left, context } = this.#options;
    for (;;) {
      const batch = nextRows(left, context);
      if (batch === undefined) return this.#workLater();
      const { known, ids } = this.#groupIdsOf(batch, this.#divided?.left);
      const kept = rowsWhere(known.rowCount, (row) => this.#isKept(ids[row] ?? 0));
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
    const { right, context } = this.#options;
    for (
      let batch = nextRows(right, context);
      batch !== undefined;
      batch = nextRows(right, context)
    ) {
      for (const group of this.#groupIdsOf(batch, this.#divided?.right).ids) {
        this.#counts[group] = (this.#counts[group] ?? 0) + 1;
      }
    }
  }

  /**
   * Returns the rows whose groups are in memory, and the ids of these groups. Writes all other
   * rows to partitions.
   */
  #groupIdsOf(
    batch: Batch,
    partitions: Partitions | undefined,
  ): { known: Batch; ids: ArrayLike<number> & Iterable<number> } {
    const { rowCount } = batch;
    if (partitions === undefined) {
      const ids = this.#groups.groupIdsOf(batch.columns, rowCount);
      if (this.#site.isDue) this.#divide();
      return { known: batch, ids };
    }
    const ids = this.#groups.knownGroupIdsOf(batch.columns, rowCount);
    const others = keepRows(
      batch,
      rowsWhere(rowCount, (row) => ids[row] === NO_KEY),
    );
    partitions.add(others, others.columns);
    const known = rowsWhere(rowCount, (row) => ids[row] !== NO_KEY);
    return {
      known: keepRows(batch, known),
      ids: ids.filter((id) => id !== NO_KEY),
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

  #isKept(group: number): boolean {
    const { isAll, operator } = this.#options;
    const count = this.#counts[group] ?? 0;
    const isWanted = count > 0 === (operator === "intersect");
    if (isAll) {
      if (count > 0) this.#counts[group] = count - 1;
      return isWanted;
    }
    if (isWanted) this.#counts[group] = operator === "intersect" ? 0 : 1;
    return isWanted;
  }
}
