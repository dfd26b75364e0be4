/**
 * Semi and anti joins that hold their left side, where it is the smaller one: the right side
 * streams and marks the held rows that it meets.
 *
 *     hold ──left ends──► mark ──right ends, or all are met──► choose ──all chosen──► done
 *
 * Held rows come out in the order in which they came. A right row is forgotten once its partners
 * are marked, so that only the left side takes memory. When that is too much, both sides are
 * divided (`divided_join.ts`).
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, constVector, take, type Vector } from "../../../types/mod.ts";
import { selectRows } from "../evaluate/expression.ts";
import { HeldColumns } from "../held/held_columns.ts";
import { NO_KEY } from "../keys/key_index.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import { SpillSite } from "../run/spilling.ts";
import { DividedJoin, type DividedPair, dividedOptions, heldBatches } from "./divided_join.ts";
import type { JoinOptions } from "./hash_join.ts";
import { JoinTable } from "./join_table.ts";

const PAIRS_MAX: number = 2 * BATCH_ROWS_MAX;
/** Held rows that are looked at together: most of them may have been met before. */
const LOOKED_MAX: number = 32 * BATCH_ROWS_MAX;
const CHOSEN_MAX: number = 16 * BATCH_ROWS_MAX;

/** Where the marking of one right batch stands. */
interface Marking {
  readonly batch: Batch;
  readonly numbers: Int32Array;
  rightRow: number;
  /** Of the held rows of that row's key, how many were looked at. */
  candidateIndex: number;
}

export class HeldSemiJoin implements Operator {
  readonly #options: JoinOptions;
  readonly #site: SpillSite;
  #held: HeldColumns;
  #table: JoinTable;
  /** In place of all else, once the left side is too much. */
  #divided: DividedJoin | undefined;
  /** 1 for a key of which every held row is marked; without a residual. */
  #isKeyMet = new Uint8Array(0);
  /** 1 for a held row that has had a partner; with a residual. */
  #isRowMet = new Uint8Array(0);
  #isRead = false;
  #chosen = new Uint32Array(0);
  #chosenCount = 0;
  #position = 0;

  constructor(options: JoinOptions) {
    this.#options = options;
    // Rows that meet all others have no keys to divide them by.
    this.#site = new SpillSite(options, { isPossible: options.keyTypes.length > 0 });
    this.#held = new HeldColumns(options.leftTypes, this.#site.memory);
    this.#table = new JoinTable(options.keyTypes, this.#site.memory);
  }

  next(): Batch | undefined {
    if (!this.#isRead) {
      this.#isRead = true;
      this.#hold();
      if (this.#divided === undefined) this.#mark();
    }
    return this.#divided === undefined ? this.#choose() : this.#divided.next();
  }

  close(): void {
    this.#options.left.close();
    this.#options.right.close();
    this.#divided?.close();
    this.#site.close();
  }

  #hold(): void {
    const { left, leftKeys, run } = this.#options;
    for (let batch = nextRows(left, run); batch !== undefined; batch = nextRows(left, run)) {
      const { columns, rowCount } = batch;
      const keys = leftKeys.map((key) => key(batch, run));
      this.#held.append(columns, rowCount);
      this.#table.add(keys, rowCount);
      if (this.#site.isDue) this.#divide();
      // It reads the rest of the left side.
      if (this.#divided !== undefined) return;
    }
    this.#table.finish(() => run.checkTime());
  }

  /** Goes over to partitions on disk. */
  #divide(): void {
    const join = ({ left, leftCount, right, rightCount }: DividedPair): Operator | undefined => {
      if (leftCount === 0) return undefined;
      if (rightCount === 0 && this.#options.join === "semi") return undefined;
      return new HeldSemiJoin({ ...this.#options, ...this.#site.deeper, left, right });
    };
    const options = dividedOptions(this.#options, this.#site, join);
    this.#divided = new DividedJoin(options, { side: "left", batches: heldBatches(this.#held) });
    this.#held = new HeldColumns([], this.#site.memory);
    this.#table = new JoinTable(this.#options.keyTypes, this.#site.memory);
    this.#site.close();
  }

  /** Reads the right side. */
  #mark(): void {
    this.#isKeyMet = new Uint8Array(Math.max(0, this.#table.starts.length - 1));
    this.#isRowMet = new Uint8Array(this.#held.rowCount);
    this.#site.memory.take(this.#isKeyMet.length + this.#isRowMet.length);
    // Without held rows nobody asks whether there is a partner.
    while (this.#held.rowCount > 0 && this.#markNext());
    this.#finishMarking();
  }

  /** Returns whether there was a batch. */
  #markNext(): boolean {
    const { residual, right, rightKeys, run } = this.#options;
    const batch = nextRows(right, run);
    if (batch === undefined) return false;
    const keys = rightKeys.map((key) => key(batch, run));
    const numbers = this.#table.numbersOf(keys, batch.rowCount);
    if (residual !== undefined) {
      const marking = { batch, numbers, rightRow: 0, candidateIndex: 0 };
      while (marking.rightRow < batch.rowCount) this.#markPairs(marking);
      return true;
    }
    const isMet = this.#isKeyMet;
    for (let row = 0; row < numbers.length; row += 1) {
      const number = numbers[row] ?? NO_KEY;
      if (number !== NO_KEY) isMet[number] = 1;
    }
    return true;
  }

  /** At most one batch of pairs: their rows must satisfy the residual, too. */
  #markPairs(marking: Marking): void {
    this.#options.run.checkTime();
    const { batch, numbers } = marking;
    const { rows, starts } = this.#table;
    const heldRows = new Uint32Array(PAIRS_MAX);
    const rightRows = new Uint32Array(PAIRS_MAX);
    let count = 0;
    let lookedCount = 0;
    let { candidateIndex, rightRow } = marking;
    while (count < PAIRS_MAX && lookedCount < LOOKED_MAX && rightRow < batch.rowCount) {
      const number = numbers[rightRow] ?? NO_KEY;
      if (number !== NO_KEY) {
        const start = starts[number] ?? 0;
        const end = starts[number + 1] ?? 0;
        let position = start + candidateIndex;
        for (; position < end && count < PAIRS_MAX && lookedCount < LOOKED_MAX; position += 1) {
          lookedCount += 1;
          const held = rows[position] ?? 0;
          if (this.#isRowMet[held] === 1) continue;
          heldRows[count] = held;
          rightRows[count] = rightRow;
          count += 1;
        }
        if (position < end) {
          candidateIndex = position - start;
          break;
        }
      }
      rightRow += 1;
      candidateIndex = 0;
    }
    marking.rightRow = rightRow;
    marking.candidateIndex = candidateIndex;
    if (count > 0) this.#test(batch, { heldRows, rightRows, count });
  }

  #test(
    batch: Batch,
    pairs: { heldRows: Uint32Array; rightRows: Uint32Array; count: number },
  ): void {
    const { residual, run } = this.#options;
    const { count, heldRows, rightRows } = pairs;
    const left = this.#held.take(heldRows, count).columns;
    const right = batch.columns.map((column) => take(column, { rows: rightRows, count }));
    const columns: readonly Vector[] = [...left, ...right];
    const truth = residual?.({ rowCount: count, columns }, run) ?? constVector(true, count);
    const kept = selectRows(truth, count);
    for (let i = 0; i < kept.count; i += 1) this.#isRowMet[heldRows[kept.rows[i] ?? 0] ?? 0] = 1;
  }

  /** Which held rows go up. */
  #finishMarking(): void {
    const { join, residual } = this.#options;
    const isMet = this.#isRowMet;
    if (residual === undefined) {
      const { rows, starts } = this.#table;
      for (let number = 0; number < this.#isKeyMet.length; number += 1) {
        if (this.#isKeyMet[number] === 0) continue;
        const end = starts[number + 1] ?? 0;
        for (let at = starts[number] ?? 0; at < end; at += 1) isMet[rows[at] ?? 0] = 1;
      }
    }
    const wanted = join === "semi" ? 1 : 0;
    const chosen = new Uint32Array(isMet.length);
    let count = 0;
    for (let row = 0; row < isMet.length; row += 1) {
      if (isMet[row] !== wanted) continue;
      chosen[count] = row;
      count += 1;
    }
    this.#chosen = chosen;
    this.#chosenCount = count;
  }

  #choose(): Batch | undefined {
    if (this.#position >= this.#chosenCount) return undefined;
    const end = Math.min(this.#chosenCount, this.#position + CHOSEN_MAX);
    const rows = this.#chosen.subarray(this.#position, end);
    const rowCount = end - this.#position;
    this.#position = end;
    const columns = this.#options.kept.map((at) => this.#held.takeColumn(at, rows, rowCount));
    return { rowCount, columns };
  }
}
