/**
 * Joins by hash: the right side is held, by the numbers of its keys; the left side streams.
 *
 *     build ──right ends──► idle ──left batch──► pairing ──no candidate left──► idle
 *                             │                     (lonely rows of a left or full join go up)
 *                             └──left ends──► done (first the lonely right rows of a full join)
 *
 * A semi join passes the left rows that have a partner, an anti join those that have none. Without
 * keys every left row meets every right row. Pairs are made a batch at a time, and the clock is
 * looked at before each, so that a product of a billion rows can be stopped. Left rows without a
 * partner come after the pairs of their batch.
 *
 * Beyond the memory both sides are divided (`divided_join.ts`); where the key alone decides, held
 * keys stay, and only rows of other keys go to disk.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import {
  type Batch,
  constVector,
  type DataType,
  keepRows,
  take,
  type Vector,
} from "../../../types/mod.ts";
import { type Evaluator, selectRows } from "../evaluate/expression.ts";
import { HeldColumns } from "../held/held_columns.ts";
import { NO_KEY } from "../keys/key_index.ts";
import { nextRows } from "../run/next_rows.ts";
import type { Operator } from "../run/operator.ts";
import { endsRequest } from "../run/request_ledger.ts";
import { rowsWhere, type SpillOptions, SpillSite } from "../run/spilling.ts";
import {
  DividedJoin,
  type DividedPair,
  dividedOptions,
  heldBatches,
  JoinPartitions,
} from "./divided_join.ts";
import { JoinTable } from "./join_table.ts";

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
  /** A fault of the right side is raised only when there is a left row that asks for it. */
  readonly isGuarded: boolean;
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
  #table: JoinTable;
  #isBuilt = false;
  #fault: DatabaseError | undefined;
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
    // Rows that meet all others have no keys to divide them by. Reading both sides to divide them
    // would raise a guarded fault too early; where the key alone decides, nothing is read early.
    const isPossible = options.keyTypes.length > 0 && (isBare || !options.isGuarded);
    this.#site = new SpillSite(options, { isPossible });
    this.#held = new HeldColumns(isBare ? [] : options.rightTypes, this.#site.memory);
    this.#table = new JoinTable(options.keyTypes, this.#site.memory);
  }

  next(): Batch | undefined {
    if (!this.#isBuilt) this.#build();
    if (this.#divided !== undefined) return this.#divided.next();
    if (this.#otherWork !== undefined) return this.#otherWork.next();
    const { left, run } = this.#options;
    for (;;) {
      let joined: Batch | undefined;
      if (this.#pairing === undefined) {
        const batch = nextRows(left, run);
        if (batch === undefined) return this.#lonelyRightRows();
        joined = this.#joined(batch);
      } else {
        run.checkTime();
        joined = this.#pair(this.#pairing);
      }
      if (joined !== undefined && joined.rowCount > 0) return joined;
    }
  }

  close(): void {
    this.#options.left.close();
    this.#options.right.close();
    this.#divided?.close();
    this.#otherWork?.close();
    this.#others?.close();
    this.#site.close();
  }

  #build(): void {
    this.#isBuilt = true;
    try {
      this.#readRight();
    } catch (error) {
      if (!this.#options.isGuarded || !(error instanceof DatabaseError)) throw error;
      if (endsRequest(error)) throw error;
      this.#fault = error;
    }
  }

  #readRight(): void {
    const { join, right, rightKeys, run } = this.#options;
    for (let batch = nextRows(right, run); batch !== undefined; batch = nextRows(right, run)) {
      const keys = rightKeys.map((key) => key(batch, run));
      if (this.#others !== undefined) {
        this.#keepOthers(batch, keys, this.#others);
        continue;
      }
      this.#held.append(batch.columns, batch.rowCount);
      this.#table.add(keys, batch.rowCount);
      if (this.#site.isDue) this.#divide();
      // It reads the rest of the right side.
      if (this.#divided !== undefined) return;
    }
    if (this.#others !== undefined) return;
    this.#table.finish(() => run.checkTime());
    if (join === "full") this.#isPaired = new Uint8Array(this.#held.rowCount);
  }

  /** Rows that a left batch gives at once; undefined for none, and where pairs are to be made. */
  #joined(batch: Batch): Batch | undefined {
    if (this.#fault !== undefined) throw this.#fault;
    const { join, leftKeys, residual, run } = this.#options;
    const keys = leftKeys.map((key) => key(batch, run));
    if (this.#others !== undefined) return this.#chooseKnown(batch, keys, this.#others);
    const numbers = this.#table.numbersOf(keys, batch.rowCount);
    if (this.#isChoice && residual === undefined) return this.#choose(batch, numbers);
    if (join === "inner" && residual === undefined && this.#table.isUnique) {
      return this.#pairAll(batch, numbers);
    }
    const hasPartner = new Uint8Array(batch.rowCount);
    this.#pairing = { batch, numbers, hasPartner, leftRow: 0, candidateIndex: 0 };
    return undefined;
  }

  /** Goes over to partitions on disk. */
  #divide(): void {
    const { keyTypes, residual } = this.#options;
    const join = (pair: DividedPair): Operator | undefined => this.#joinOf(pair);
    const options = dividedOptions(this.#options, this.#site, join);
    if (this.#isChoice && residual === undefined) {
      this.#others = new JoinPartitions(options);
      this.#table.finish(() => this.#options.run.checkTime());
      return;
    }
    this.#divided = new DividedJoin(options, { side: "right", batches: heldBatches(this.#held) });
    this.#held = new HeldColumns([], this.#site.memory);
    this.#table = new JoinTable(keyTypes, this.#site.memory);
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
  #keepOthers(batch: Batch, keys: readonly Vector[], others: JoinPartitions): void {
    const numbers = this.#table.heldNumbersOf(keys, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => numbers[row] === NO_KEY);
    if (unknown.count > 0) others.add("right", keepRows(batch, unknown));
  }

  /** Left rows whose key is held are decided now; others are sent to disk. */
  #chooseKnown(batch: Batch, keys: readonly Vector[], others: JoinPartitions): Batch | undefined {
    const numbers = this.#table.heldNumbersOf(keys, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => numbers[row] === NO_KEY);
    if (unknown.count === 0) return this.#choose(batch, numbers);
    others.add("left", keepRows(batch, unknown));
    const known = rowsWhere(batch.rowCount, (row) => numbers[row] !== NO_KEY);
    const knownNumbers = numbers.filter((number) => number !== NO_KEY);
    return known.count === 0 ? undefined : this.#choose(keepRows(batch, known), knownNumbers);
  }

  /** The pairs of a whole batch, where no key has two held rows. */
  #pairAll(batch: Batch, numbers: Int32Array): Batch | undefined {
    const { rows, starts } = this.#table;
    const leftRows = new Uint32Array(batch.rowCount);
    const rightRows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const number = numbers[row] ?? NO_KEY;
      if (number === NO_KEY) continue;
      const start = starts[number] ?? 0;
      if (start === starts[number + 1]) continue;
      leftRows[count] = row;
      rightRows[count] = rows[start] ?? 0;
      count += 1;
    }
    return count === 0 ? undefined : this.#pairsOf(batch, leftRows, { rightRows, count });
  }

  /** The left rows that a semi or anti join passes, where the key alone decides. */
  #choose(batch: Batch, numbers: Int32Array): Batch | undefined {
    const { starts } = this.#table;
    const hasPartner = new Uint8Array(batch.rowCount);
    for (let row = 0; row < batch.rowCount; row += 1) {
      const number = numbers[row] ?? NO_KEY;
      hasPartner[row] = number !== NO_KEY && starts[number + 1] !== starts[number] ? 1 : 0;
    }
    return this.#chosen(batch, hasPartner);
  }

  #chosen(batch: Batch, hasPartner: Uint8Array): Batch | undefined {
    const wanted = this.#options.join === "semi" ? 1 : 0;
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (hasPartner[row] !== wanted) continue;
      rows[count] = row;
      count += 1;
    }
    if (count === 0) return undefined;
    return keepRows(this.#keptOf(batch), { rows, count });
  }

  #keptOf({ columns, rowCount }: Batch): Batch {
    const kept = this.#options.kept.map((position) => columns[position] ?? constVector(null, 0));
    return { rowCount, columns: kept };
  }

  #pair(pairing: Pairing): Batch | undefined {
    const { batch, numbers } = pairing;
    if (pairing.leftRow >= batch.rowCount) {
      this.#pairing = undefined;
      if (this.#isChoice) return this.#chosen(batch, pairing.hasPartner);
      return this.#options.join === "inner" ? undefined : this.#lonelyRows(pairing);
    }
    const leftRows = new Uint32Array(PAIRS_MAX);
    const rightRows = new Uint32Array(PAIRS_MAX);
    const { rows, starts } = this.#table;
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
    return count === 0 ? undefined : this.#keptPairs(pairing, leftRows, { rightRows, count });
  }

  #keptPairs(
    pairing: Pairing,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Uint32Array },
  ): Batch | undefined {
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
    return this.#isChoice ? undefined : keepRows(this.#keptOf(pairs), kept);
  }

  /** Held rows that no left row met, a batch at a time, beside NULLs. */
  #lonelyRightRows(): Batch | undefined {
    if (this.#others !== undefined) {
      this.#otherWork = this.#others.work();
      return this.#otherWork.next();
    }
    if (this.#options.join !== "full") return undefined;
    const rows = new Uint32Array(BATCH_ROWS_MAX);
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

  #lonelyRows({ batch, hasPartner }: Pairing): Batch | undefined {
    const rows = new Uint32Array(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      if (hasPartner[row] === 1) continue;
      rows[count] = row;
      count += 1;
    }
    if (count === 0) return undefined;
    const left = batch.columns.map((column) => take(column, { rows, count }));
    const right = this.#options.rightTypes.map(() => constVector(null, count));
    return this.#keptOf({ rowCount: count, columns: [...left, ...right] });
  }

  /** The columns that go up, of pairs of rows. */
  #pairsOf(
    batch: Batch,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Uint32Array },
  ): Batch {
    const { kept, leftTypes } = this.#options;
    const width = leftTypes.length;
    // Pairs ascend by their left row: as many of them as rows are each row once, or a part of them.
    const isWhole = count === batch.rowCount && this.#table.isUnique;
    const columns = kept.map((position): Vector => {
      if (position >= width) return this.#held.takeColumn(position - width, rightRows, count);
      const column = batch.columns[position] ?? constVector(null, 0);
      return isWhole ? column : take(column, { rows: leftRows, count });
    });
    return { rowCount: count, columns };
  }

  #allOf(
    batch: Batch,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Uint32Array },
  ): Batch {
    const left = batch.columns.map((column) => take(column, { rows: leftRows, count }));
    const right = this.#held.take(rightRows, count);
    return { rowCount: count, columns: [...left, ...right.columns] };
  }
}
