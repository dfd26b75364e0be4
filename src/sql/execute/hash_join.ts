/**
 * Joins by hash: the right side is held, by the numbers of its keys; the left side streams.
 *
 *     build ──right ends──► idle ──left batch──► pairing ──no candidate left──► idle
 *                             │                     (lonely rows of a left or full join go up)
 *                             └──left ends──► done (first the lonely right rows of a full join)
 *
 * A semi join passes the left rows that have a partner, an anti join those that have none. Without
 * keys every left row meets every right row. A call makes at most one batch of pairs, so that a
 * product of a billion rows lets others run and can be stopped. Left rows without a partner come
 * after the pairs of their batch.
 */
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import {
  type Batch,
  constVector,
  type DataType,
  keepRows,
  take,
  type Vector,
} from "../../types/mod.ts";
import {
  DividedJoin,
  type DividedJoinOptions,
  type DividedPair,
  JoinPartitions,
} from "./divided_join.ts";
import { type Evaluator, selectRows } from "./expression.ts";
import { HeldColumns } from "./held_columns.ts";
import { KeyIndex, NO_KEY, nullKeysOf } from "./key_index.ts";
import { NOTHING_YET, type Operator } from "./operator.ts";
import { rowsWhere, type SpillOptions, SpillSite } from "./spilling.ts";

export type JoinForm = "inner" | "left" | "full" | "semi" | "anti";

export interface JoinOptions extends SpillOptions {
  readonly join: JoinForm;
  readonly left: Operator;
  readonly right: Operator;
  readonly leftTypes: readonly DataType[];
  readonly rightTypes: readonly DataType[];
  readonly leftKeys: readonly Evaluator[];
  readonly rightKeys: readonly Evaluator[];
  readonly keyTypes: readonly DataType[];
  /** What pairs must satisfy besides, over left columns followed by right columns. */
  readonly residual: Evaluator | undefined;
  /** Positions, in left columns followed by right columns, of those that go up. */
  readonly kept: readonly number[];
}

/** Where the pairing of one left batch stands. */
interface Pairing {
  readonly batch: Batch;
  /** Of each left row, the number of its key; without keys all have the one number 0. */
  readonly numbers: Int32Array;
  /** 1 for each left row that has had a partner. */
  readonly hasPartner: Uint8Array;
  leftRow: number;
  /** Of the candidates of that row, how many were met. */
  candidateIndex: number;
}

const PAIRS_MAX: number = 2 * BATCH_ROWS_MAX;

export class HashJoin implements Operator {
  readonly #options: JoinOptions;
  #held: HeldColumns;
  #index: KeyIndex;
  /** Key numbers of the held rows, batch by batch, while the right side lasts. */
  #heldNumbers: Int32Array[] = [];
  /** Held rows by key: those of number n are #rows[#starts[n]] up to #rows[#starts[n + 1]]. */
  #starts = new Int32Array(0);
  #rows = new Int32Array(0);
  #isBuilt = false;
  /** Of a full join: 1 for each held row that has had a partner. */
  #isPaired = new Uint8Array(0);
  /** Held rows looked at for lonely ones; the left side has ended then. */
  #lonelyPosition = 0;
  #pairing: Pairing | undefined;
  readonly #isChoice: boolean;
  readonly #site: SpillSite;
  /** In place of all else, once the right side is too much. */
  #divided: DividedJoin | undefined;
  /** The same where the key alone decides: rows of both sides whose key is not among those held. */
  #others: JoinPartitions | undefined;
  #otherWork: Operator | undefined;

  constructor(options: JoinOptions) {
    this.#options = options;
    this.#isChoice = options.join === "semi" || options.join === "anti";
    // Who asks only whether there is a partner, and by its key alone, needs no row of it.
    const isBare = this.#isChoice && options.residual === undefined;
    // Rows that meet all others have no keys to divide them by.
    this.#site = new SpillSite(options, { isPossible: options.keyTypes.length > 0 });
    this.#held = new HeldColumns(isBare ? [] : options.rightTypes, this.#site.memory);
    this.#index = new KeyIndex(options.keyTypes);
  }

  next(): Batch | undefined {
    if (this.#divided !== undefined) return this.#divided.next();
    if (this.#otherWork !== undefined) return this.#otherWork.next();
    if (!this.#isBuilt) return this.#build();
    if (this.#pairing !== undefined) return this.#pair(this.#pairing);
    const batch = this.#options.left.next();
    if (batch === undefined) return this.#lonelyRightRows();
    if (batch.rowCount === 0) return NOTHING_YET;
    const { leftKeys, run } = this.#options;
    const keys = leftKeys.map((key) => key(batch, run));
    const numbers = this.#numbersOf(keys, batch.rowCount);
    if (this.#others !== undefined) return this.#chooseKnown(batch, numbers, this.#others);
    if (this.#isChoice && this.#options.residual === undefined) return this.#choose(batch, numbers);
    const hasPartner = new Uint8Array(batch.rowCount);
    this.#pairing = { batch, numbers, hasPartner, leftRow: 0, candidateIndex: 0 };
    return NOTHING_YET;
  }

  close(): void {
    this.#options.left.close();
    this.#options.right.close();
    this.#divided?.close();
    this.#otherWork?.close();
    this.#others?.close();
    this.#site.close();
  }

  #build(): Batch {
    const { right, rightKeys, run } = this.#options;
    const batch = right.next();
    if (batch === undefined) {
      this.#finishBuild();
      return NOTHING_YET;
    }
    const { rowCount } = batch;
    if (rowCount === 0) return NOTHING_YET;
    const keys = rightKeys.map((key) => key(batch, run));
    if (this.#others !== undefined) return this.#keepOthers(batch, keys, this.#others);
    this.#held.append(batch.columns, rowCount);
    const bytesBefore = this.#index.bytes;
    const numbers = keys.length === 0 ? new Int32Array(rowCount) : this.#index.add(keys, rowCount);
    const nulls = nullKeysOf(keys, rowCount);
    if (nulls !== undefined) {
      for (let row = 0; row < rowCount; row += 1) if (nulls[row] === 1) numbers[row] = NO_KEY;
    }
    this.#site.memory.take(this.#index.bytes - bytesBefore + 8 * rowCount);
    this.#heldNumbers.push(numbers);
    if (this.#site.isDue) this.#divide();
    return NOTHING_YET;
  }

  /** Goes over to partitions on disk. */
  #divide(): void {
    const { keyTypes, left, leftKeys, leftTypes, residual, right, rightKeys, rightTypes, run } =
      this.#options;
    const options: DividedJoinOptions = {
      run,
      site: this.#site,
      keyTypes,
      left: { rows: left, keys: leftKeys, types: leftTypes },
      right: { rows: right, keys: rightKeys, types: rightTypes },
      join: (pair) => this.#joinOf(pair),
    };
    if (this.#isChoice && residual === undefined) {
      this.#others = new JoinPartitions(options);
      return;
    }
    this.#divided = new DividedJoin(options, heldBatches(this.#held));
    this.#held = new HeldColumns([], this.#site.memory);
    this.#index = new KeyIndex(keyTypes);
    this.#heldNumbers = [];
    this.#site.close();
  }

  /** The join of two partitions; undefined where it has no rows. */
  #joinOf({ left, leftCount, right, rightCount }: DividedPair): Operator | undefined {
    const { join } = this.#options;
    if (leftCount === 0 && (join !== "full" || rightCount === 0)) return undefined;
    if (rightCount === 0 && (join === "inner" || join === "semi")) return undefined;
    return new HashJoin({ ...this.#options, ...this.#site.deeper, left, right });
  }

  /** Sends right rows to disk whose key is not held. */
  #keepOthers(batch: Batch, keys: readonly Vector[], others: JoinPartitions): Batch {
    const { rowCount } = batch;
    const numbers = this.#index.find(keys, rowCount);
    const unknown = rowsWhere(rowCount, (row) => numbers[row] === NO_KEY);
    if (unknown.count > 0) others.addRight(keepRows(batch, unknown));
    return NOTHING_YET;
  }

  /** Left rows whose key is held are decided now; others are sent to disk. */
  #chooseKnown(batch: Batch, numbers: Int32Array, others: JoinPartitions): Batch {
    const { rowCount } = batch;
    const unknown = rowsWhere(rowCount, (row) => numbers[row] === NO_KEY);
    if (unknown.count === 0) return this.#choose(batch, numbers);
    others.addLeft(keepRows(batch, unknown));
    const known = rowsWhere(rowCount, (row) => numbers[row] !== NO_KEY);
    const knownNumbers = numbers.filter((number) => number !== NO_KEY);
    return known.count === 0 ? NOTHING_YET : this.#choose(keepRows(batch, known), knownNumbers);
  }

  /** Sorts the held rows by their numbers; those of one key keep their order. */
  #finishBuild(): void {
    this.#isBuilt = true;
    const keyCount = this.#options.rightKeys.length === 0 ? 1 : this.#index.count;
    const starts = new Int32Array(keyCount + 1);
    let keyedCount = 0;
    for (const numbers of this.#heldNumbers) {
      for (const number of numbers) {
        if (number === NO_KEY) continue;
        starts[number + 1] = (starts[number + 1] ?? 0) + 1;
        keyedCount += 1;
      }
    }
    for (let i = 1; i <= keyCount; i += 1) starts[i] = (starts[i] ?? 0) + (starts[i - 1] ?? 0);
    const next = starts.slice();
    const rows = new Int32Array(keyedCount);
    let row = 0;
    for (const numbers of this.#heldNumbers) {
      for (const number of numbers) {
        if (number !== NO_KEY) {
          const position = next[number] ?? 0;
          rows[position] = row;
          next[number] = position + 1;
        }
        row += 1;
      }
    }
    this.#starts = starts;
    this.#rows = rows;
    this.#heldNumbers = [];
    if (this.#options.join === "full") this.#isPaired = new Uint8Array(this.#held.rowCount);
  }

  #numbersOf(keys: readonly Vector[], rowCount: number): Int32Array {
    if (keys.length === 0) return new Int32Array(rowCount);
    const numbers = this.#index.find(keys, rowCount);
    const nulls = nullKeysOf(keys, rowCount);
    if (nulls !== undefined) {
      for (let row = 0; row < rowCount; row += 1) if (nulls[row] === 1) numbers[row] = NO_KEY;
    }
    return numbers;
  }

  /** The left rows that a semi or anti join passes, where the key alone decides. */
  #choose(batch: Batch, numbers: Int32Array): Batch {
    const hasPartner = new Uint8Array(batch.rowCount);
    for (let row = 0; row < batch.rowCount; row += 1) {
      const number = numbers[row] ?? NO_KEY;
      const isMet =
        number !== NO_KEY && (this.#starts[number + 1] ?? 0) > (this.#starts[number] ?? 0);
      hasPartner[row] = isMet ? 1 : 0;
    }
    return this.#chosen(batch, hasPartner);
  }

  #chosen(batch: Batch, hasPartner: Uint8Array): Batch {
    const wanted = this.#options.join === "semi" ? 1 : 0;
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (hasPartner[row] !== wanted) continue;
      rows[count] = row;
      count += 1;
    }
    if (count === 0) return NOTHING_YET;
    return keepRows(this.#keptOf(batch), { rows, count });
  }

  #keptOf({ columns, rowCount }: Batch): Batch {
    const kept = this.#options.kept.map((position) => columns[position] ?? constVector(null, 0));
    return { rowCount, columns: kept };
  }

  #pair(pairing: Pairing): Batch {
    const { batch, numbers } = pairing;
    if (pairing.leftRow >= batch.rowCount) {
      this.#pairing = undefined;
      if (this.#isChoice) return this.#chosen(batch, pairing.hasPartner);
      return this.#options.join === "inner" ? NOTHING_YET : this.#lonelyRows(pairing);
    }
    const leftRows = new Uint32Array(PAIRS_MAX);
    const rightRows = new Int32Array(PAIRS_MAX);
    const starts = this.#starts;
    const rows = this.#rows;
    let count = 0;
    let { candidateIndex, leftRow } = pairing;
    while (count < PAIRS_MAX && leftRow < batch.rowCount) {
      const number = numbers[leftRow] ?? NO_KEY;
      if (number !== NO_KEY) {
        const end = starts[number + 1] ?? 0;
        let position = (starts[number] ?? 0) + candidateIndex;
        while (position < end && count < PAIRS_MAX) {
          leftRows[count] = leftRow;
          rightRows[count] = rows[position] ?? 0;
          count += 1;
          position += 1;
        }
        if (position < end) {
          candidateIndex = position - (starts[number] ?? 0);
          break;
        }
      }
      leftRow += 1;
      candidateIndex = 0;
    }
    pairing.leftRow = leftRow;
    pairing.candidateIndex = candidateIndex;
    return count === 0 ? NOTHING_YET : this.#keptPairs(pairing, leftRows, { rightRows, count });
  }

  #keptPairs(
    pairing: Pairing,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Int32Array },
  ): Batch {
    const { join, residual, run } = this.#options;
    const { hasPartner } = pairing;
    const isNoted = join !== "inner";
    if (residual === undefined) {
      const notedCount = isNoted ? count : 0;
      for (let i = 0; i < notedCount; i += 1) {
        hasPartner[leftRows[i] ?? 0] = 1;
        if (join === "full") this.#isPaired[rightRows[i] ?? 0] = 1;
      }
      return this.#pairsOf(pairing.batch, leftRows, { rightRows, count });
    }
    const pairs = this.#allOf(pairing.batch, leftRows, { rightRows, count });
    const kept = selectRows(residual(pairs, run), count);
    const notedCount = isNoted ? kept.count : 0;
    for (let i = 0; i < notedCount; i += 1) {
      const pair = kept.rows[i] ?? 0;
      hasPartner[leftRows[pair] ?? 0] = 1;
      if (join === "full") this.#isPaired[rightRows[pair] ?? 0] = 1;
    }
    return this.#isChoice ? NOTHING_YET : keepRows(this.#keptOf(pairs), kept);
  }

  /** Held rows that no left row met, a batch at a time, beside NULLs. */
  #lonelyRightRows(): Batch | undefined {
    if (this.#others !== undefined) {
      this.#otherWork = this.#others.work();
      return NOTHING_YET;
    }
    if (this.#options.join !== "full") return undefined;
    const rows = new Int32Array(BATCH_ROWS_MAX);
    const { length } = this.#isPaired;
    let count = 0;
    while (count < BATCH_ROWS_MAX && this.#lonelyPosition < length) {
      if (this.#isPaired[this.#lonelyPosition] === 0) {
        rows[count] = this.#lonelyPosition;
        count += 1;
      }
      this.#lonelyPosition += 1;
    }
    if (count === 0) return undefined;
    const left = this.#options.leftTypes.map(() => constVector(null, count));
    const right = this.#held.take(rows, count);
    return this.#keptOf({ rowCount: count, columns: [...left, ...right.columns] });
  }

  #lonelyRows({ batch, hasPartner }: Pairing): Batch {
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (hasPartner[row] === 1) continue;
      rows[count] = row;
      count += 1;
    }
    if (count === 0) return NOTHING_YET;
    const left = batch.columns.map((column) => take(column, { rows, count }));
    const right = this.#options.rightTypes.map(() => constVector(null, count));
    return this.#keptOf({ rowCount: count, columns: [...left, ...right] });
  }

  /** The columns that go up, of pairs of rows. */
  #pairsOf(
    batch: Batch,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Int32Array },
  ): Batch {
    const { kept, leftTypes } = this.#options;
    const width = leftTypes.length;
    const columns = kept.map((position): Vector => {
      if (position >= width) return this.#held.takeColumn(position - width, rightRows, count);
      return take(batch.columns[position] ?? constVector(null, 0), { rows: leftRows, count });
    });
    return { rowCount: count, columns };
  }

  #allOf(
    batch: Batch,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Int32Array },
  ): Batch {
    const left = batch.columns.map((column) => take(column, { rows: leftRows, count }));
    const right = this.#held.take(rightRows, count);
    return { rowCount: count, columns: [...left, ...right.columns] };
  }
}

/** Held rows in their order, a batch at a time. */
function* heldBatches(held: HeldColumns): Generator<Batch, void> {
  for (let start = 0; start < held.rowCount; start += BATCH_ROWS_MAX) {
    const count = Math.min(BATCH_ROWS_MAX, held.rowCount - start);
    yield held.take(
      Int32Array.from({ length: count }, (_, i) => start + i),
      count,
    );
  }
}
