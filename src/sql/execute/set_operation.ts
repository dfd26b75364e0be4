/**
 * UNION, INTERSECT and EXCEPT over the rows of two inputs. NULLs are equal here.
 *
 * INTERSECT and EXCEPT count the rows of the right side, then let the left one stream: with ALL a
 * row of the left takes one of its equals away, without ALL it goes up at most once.
 */
import { type Batch, type DataType, keepRows } from "../../types/mod.ts";
import { Grouping } from "./grouping.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import type { Run } from "./run.ts";

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
    return NOTHING_YET;
  }

  close(): void {
    this.#first.close();
    this.#second.close();
  }
}

export interface SetOperationOptions {
  readonly run: Run;
  readonly operator: "intersect" | "except";
  readonly isAll: boolean;
  readonly types: readonly DataType[];
  readonly left: Operator;
  readonly right: Operator;
}

export class SetOperation implements Operator {
  readonly #options: SetOperationOptions;
  readonly #groups: Grouping;
  /** For each group, how many rows of the right side are left of it. */
  readonly #counts: number[] = [];
  /** Groups that went up; without ALL only. */
  readonly #shown = new Set<number>();
  #isCounted = false;

  constructor(options: SetOperationOptions) {
    this.#options = options;
    this.#groups = new Grouping(options.types, options.run.memory);
  }

  next(): Batch | undefined {
    if (!this.#isCounted) return this.#count();
    const batch = this.#options.left.next();
    if (batch === undefined || batch.rowCount === 0) return batch;
    const numbers = this.#groups.numbersOf(batch.columns, batch.rowCount);
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (!this.#isKept(numbers[row] ?? 0)) continue;
      rows[count] = row;
      count += 1;
    }
    return keepRows(batch, { rows, count });
  }

  close(): void {
    this.#options.left.close();
    this.#options.right.close();
  }

  #count(): Batch {
    const batch = this.#options.right.next();
    if (batch === undefined) {
      this.#isCounted = true;
    } else if (batch.rowCount > 0) {
      for (const number of this.#groups.numbersOf(batch.columns, batch.rowCount)) {
        this.#counts[number] = (this.#counts[number] ?? 0) + 1;
      }
    }
    return NOTHING_YET;
  }

  #isKept(number: number): boolean {
    const { isAll, operator } = this.#options;
    const count = this.#counts[number] ?? 0;
    const isWanted = count > 0 === (operator === "intersect");
    if (isAll) {
      if (count > 0) this.#counts[number] = count - 1;
      return isWanted;
    }
    if (!isWanted || this.#shown.has(number)) return false;
    this.#shown.add(number);
    return true;
  }
}
