/**
 * Joins by hash. The right side is the build side, which is indexed by key, and the left side is
 * the probe side.
 *
 *     build ──right ends──► idle ──left batch──► pairing ──no candidate left──► idle
 *                             │                     (unmatched rows of a left or full join go up)
 *                             └──left ends──► done (first the unmatched right rows of a full join)
 *
 * A semi join returns the left rows that have a partner, a matching right row, and an anti join
 * returns the left rows that have none. If there are no keys, every left row is paired with every
 * right row. Pairs are formed one batch at a time, and the time is checked before each batch, so
 * that a product with a billion rows can be stopped. Left rows without a partner come after the
 * pairs of their batch.
 *
 * If memory runs out, both sides are partitioned on disk (`grace_hash_join.ts`). If the key alone
 * decides whether rows match, the keys in memory are kept, and only rows with other keys go to
 * disk.
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
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { endsRequest } from "../context/request_ledger.ts";
import { rowsWhere, type SpillOptions, SpillSite } from "../context/spilling.ts";
import { type Evaluator, selectRows } from "../evaluate/expression.ts";
import { NO_KEY } from "../keys/key_hash_table.ts";
import { BuildColumns } from "../materialised/build_columns.ts";
import {
  buildBatches,
  GraceHashJoin,
  graceHashJoinOptions,
  JoinPartitions,
  type PartitionPair,
} from "./grace_hash_join.ts";
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
  /**
   * A condition over the left columns followed by the right columns, which pairs with equal keys
   * must also satisfy.
   */
  readonly residual: Evaluator | undefined;
  /** Whether an error on the right side is raised only if a left row needs the right side. */
  readonly isGuarded: boolean;
  /** The positions of the output columns in the left columns followed by the right columns. */
  readonly kept: readonly number[];
  /** Whether the right side has the same rows in every step of a recursion. */
  readonly isRightFixed?: boolean;
}

/**
 * A left batch that is being joined with its matching right rows, and the progress of the join.
 */
interface Pairing {
  readonly batch: Batch;
  /** The id of each left row's key. If the join has no keys, all ids are 0. */
  readonly keyIds: Int32Array;
  /** Contains 1 for each left row that has a matching right row. */
  readonly hasPartner: Uint8Array;
  leftRow: number;
  /** The number of candidates that have already been examined for `leftRow`. */
  candidateIndex: number;
}

const PAIRS_MAX: number = 2 * BATCH_ROWS_MAX;

export class HashJoin implements Operator {
  readonly #options: JoinOptions;
  #buildRows: BuildColumns;
  #table: JoinTable;
  #isBuilt = false;
  #fault: DatabaseError | undefined;
  /** Set for a full join: contains 1 for each build row that has a matching left row. */
  #isPaired = new Uint8Array(0);
  /**
   * The position in the search for unmatched build rows, which begins once the left side has
   * ended.
   */
  #unmatchedPosition = 0;
  #pairing: Pairing | undefined;
  /**
   * The rows of the pairs formed last. Their columns are copied, so all batches share the memory.
   */
  #leftRows: Uint32Array = new Uint32Array(0);
  #rightRows: Uint32Array = new Uint32Array(0);
  readonly #isChoice: boolean;
  readonly #site: SpillSite;
  /** The join on disk, which takes over if the right side is too large for memory. */
  #divided: GraceHashJoin | undefined;
  /**
   * The rows of both sides whose keys are not in the build side's table. It is used only if the
   * key alone decides whether rows match.
   */
  #others: JoinPartitions | undefined;
  #otherWork: Operator | undefined;

  constructor(options: JoinOptions) {
    this.#options = options;
    this.#isChoice = options.join === "semi" || options.join === "anti";
    // If the key alone decides whether a left row has a matching right row, build rows need not be
    // stored.
    const isBare = this.#isChoice && options.residual === undefined;
    // If the join has no keys, its rows cannot be partitioned. Partitioning also reads both sides,
    // so unless the key alone decides, it would raise a guarded error too early.
    const isPossible = options.keyTypes.length > 0 && (isBare || !options.isGuarded);
    this.#site = new SpillSite(options, { isPossible });
    this.#buildRows = new BuildColumns(isBare ? [] : options.rightTypes, this.#site.memory);
    this.#table = new JoinTable(options.keyTypes, this.#site.memory);
  }

  next(): Batch | undefined {
    if (!this.#isBuilt) this.#build();
    if (this.#divided !== undefined) return this.#divided.next();
    if (this.#otherWork !== undefined) return this.#otherWork.next();
    const { left, context } = this.#options;
    for (;;) {
      let joined: Batch | undefined;
      if (this.#pairing === undefined) {
        const batch = nextRows(left, context);
        if (batch === undefined) return this.#unmatchedRightRows();
        joined = this.#joined(batch);
      } else {
        context.checkTime();
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

  /** Keeps the right side's table for the next step of a recursion. */
  restart(): boolean {
    const { isRightFixed = false, join, left } = this.#options;
    const isWhole = this.#divided === undefined && this.#others === undefined;
    if (!isRightFixed || !isWhole || join === "full") return false;
    this.#pairing = undefined;
    return left.restart?.() ?? false;
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
    const { join, right, rightKeys, context } = this.#options;
    for (
      let batch = nextRows(right, context);
      batch !== undefined;
      batch = nextRows(right, context)
    ) {
      const keys = rightKeys.map((key) => key(batch, context));
      if (this.#others !== undefined) {
        this.#keepOthers(batch, keys, this.#others);
        continue;
      }
      this.#buildRows.append(batch.columns, batch.rowCount);
      this.#table.add(keys, batch.rowCount);
      if (this.#site.isDue) this.#divide();
      // The join on disk reads the remaining rows of the right side.
      if (this.#divided !== undefined) return;
    }
    if (this.#others !== undefined) return;
    this.#table.finish(() => context.checkTime());
    if (join === "full") this.#isPaired = new Uint8Array(this.#buildRows.rowCount);
  }

  /**
   * Returns the rows that a left batch yields without forming pairs; undefined if there are none,
   * or if pairs have to be formed first.
   */
  #joined(batch: Batch): Batch | undefined {
    if (this.#fault !== undefined) throw this.#fault;
    const { join, leftKeys, residual, context } = this.#options;
    const keys = leftKeys.map((key) => key(batch, context));
    if (this.#others !== undefined) return this.#chooseKnown(batch, keys, this.#others);
    const keyIds = this.#table.keyIdsOf(keys, batch.rowCount);
    if (this.#isChoice && residual === undefined) return this.#choose(batch, keyIds);
    if (join === "inner" && residual === undefined && this.#table.isUnique) {
      return this.#pairAll(batch, keyIds);
    }
    const hasPartner = new Uint8Array(batch.rowCount);
    this.#pairing = { batch, keyIds, hasPartner, leftRow: 0, candidateIndex: 0 };
    return undefined;
  }

  /** Moves both sides to partitions on disk because memory has run out. */
  #divide(): void {
    const { keyTypes, residual } = this.#options;
    const join = (pair: PartitionPair): Operator | undefined => this.#joinOf(pair);
    const options = graceHashJoinOptions(this.#options, this.#site, join);
    if (this.#isChoice && residual === undefined) {
      this.#others = new JoinPartitions(options);
      this.#table.finish(() => this.#options.context.checkTime());
      return;
    }
    this.#divided = new GraceHashJoin(options, {
      side: "right",
      batches: buildBatches(this.#buildRows),
    });
    this.#buildRows = new BuildColumns([], this.#site.memory);
    this.#table = new JoinTable(keyTypes, this.#site.memory);
    this.#site.close();
  }

  /** Returns the join of two partitions; undefined if the join yields no rows. */
  #joinOf({ left, leftCount, right, rightCount }: PartitionPair): Operator | undefined {
    const { join } = this.#options;
    if (leftCount === 0 && (join !== "full" || rightCount === 0)) return undefined;
    if (rightCount === 0 && (join === "inner" || join === "semi")) return undefined;
    return new HashJoin({ ...this.#options, ...this.#site.deeper, left, right });
  }

  /** Writes the right rows whose keys are not in memory to disk. */
  #keepOthers(batch: Batch, keys: readonly Vector[], others: JoinPartitions): void {
    const keyIds = this.#table.builtKeyIdsOf(keys, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => keyIds[row] === NO_KEY);
    if (unknown.count > 0) others.add("right", keepRows(batch, unknown));
  }

  /**
   * Decides whether to return the left rows whose keys are in memory, and writes all other left
   * rows to disk.
   */
  #chooseKnown(batch: Batch, keys: readonly Vector[], others: JoinPartitions): Batch | undefined {
    const keyIds = this.#table.builtKeyIdsOf(keys, batch.rowCount);
    const unknown = rowsWhere(batch.rowCount, (row) => keyIds[row] === NO_KEY);
    if (unknown.count === 0) return this.#choose(batch, keyIds);
    others.add("left", keepRows(batch, unknown));
    const known = rowsWhere(batch.rowCount, (row) => keyIds[row] !== NO_KEY);
    const knownNumbers = keyIds.filter((keyId) => keyId !== NO_KEY);
    return known.count === 0 ? undefined : this.#choose(keepRows(batch, known), knownNumbers);
  }

  /**
   * Returns the pairs of matching rows for a whole left batch. This is possible only if every key
   * has at most one build row.
   */
  #pairAll(batch: Batch, keyIds: Int32Array): Batch | undefined {
    const { rows, starts } = this.#table;
    const { leftRows, rightRows } = this.#pairRows(batch.rowCount);
    let count = 0;
    for (let row = 0; row < batch.rowCount; row += 1) {
      const keyId = keyIds[row] ?? NO_KEY;
      if (keyId === NO_KEY) continue;
      const start = starts[keyId] ?? 0;
      if (start === starts[keyId + 1]) continue;
      leftRows[count] = row;
      rightRows[count] = rows[start] ?? 0;
      count += 1;
    }
    return count === 0 ? undefined : this.#pairsOf(batch, leftRows, { rightRows, count });
  }

  /** Returns memory for the rows of this many pairs. */
  #pairRows(count: number): { leftRows: Uint32Array; rightRows: Uint32Array } {
    if (this.#leftRows.length < count) {
      this.#leftRows = new Uint32Array(count);
      this.#rightRows = new Uint32Array(count);
    }
    return { leftRows: this.#leftRows, rightRows: this.#rightRows };
  }

  /**
   * Returns the rows of a left batch that a semi or anti join passes on. It is used if the key
   * alone decides.
   */
  #choose(batch: Batch, keyIds: Int32Array): Batch | undefined {
    const { starts } = this.#table;
    const hasPartner = new Uint8Array(batch.rowCount);
    for (let row = 0; row < batch.rowCount; row += 1) {
      const keyId = keyIds[row] ?? NO_KEY;
      hasPartner[row] = keyId !== NO_KEY && starts[keyId + 1] !== starts[keyId] ? 1 : 0;
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
    const { batch, keyIds } = pairing;
    if (pairing.leftRow >= batch.rowCount) {
      this.#pairing = undefined;
      if (this.#isChoice) return this.#chosen(batch, pairing.hasPartner);
      return this.#options.join === "inner" ? undefined : this.#unmatchedRows(pairing);
    }
    const { leftRows, rightRows } = this.#pairRows(PAIRS_MAX);
    const { rows, starts } = this.#table;
    let count = 0;
    let { candidateIndex, leftRow } = pairing;
    while (count < PAIRS_MAX && leftRow < batch.rowCount) {
      const keyId = keyIds[leftRow] ?? NO_KEY;
      if (keyId !== NO_KEY) {
        const end = starts[keyId + 1] ?? 0;
        let position = (starts[keyId] ?? 0) + candidateIndex;
        while (position < end && count < PAIRS_MAX) {
          leftRows[count] = leftRow;
          rightRows[count] = rows[position] ?? 0;
          count += 1;
          position += 1;
        }
        if (position < end) {
          candidateIndex = position - (starts[keyId] ?? 0);
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
    const { join, residual, context } = this.#options;
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
    const kept = selectRows(residual(pairs, context), count);
    const notedCount = isNoted ? kept.count : 0;
    for (let i = 0; i < notedCount; i += 1) {
      const pair = kept.rows[i] ?? 0;
      hasPartner[leftRows[pair] ?? 0] = 1;
      if (join === "full") this.#isPaired[rightRows[pair] ?? 0] = 1;
    }
    return this.#isChoice ? undefined : keepRows(this.#keptOf(pairs), kept);
  }

  /**
   * Returns the build rows that match no left row, one batch at a time, with NULLs for the left
   * side.
   */
  #unmatchedRightRows(): Batch | undefined {
    if (this.#others !== undefined) {
      this.#otherWork = this.#others.work();
      return this.#otherWork.next();
    }
    if (this.#options.join !== "full") return undefined;
    const rows = new Uint32Array(BATCH_ROWS_MAX);
    const { length } = this.#isPaired;
    let count = 0;
    while (count < BATCH_ROWS_MAX && this.#unmatchedPosition < length) {
      if (this.#isPaired[this.#unmatchedPosition] === 0) {
        rows[count] = this.#unmatchedPosition;
        count += 1;
      }
      this.#unmatchedPosition += 1;
    }
    if (count === 0) return undefined;
    const left = this.#options.leftTypes.map(() => constVector(null, count));
    const right = this.#buildRows.take(rows, count);
    return this.#keptOf({ rowCount: count, columns: [...left, ...right.columns] });
  }

  #unmatchedRows({ batch, hasPartner }: Pairing): Batch | undefined {
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

  /** Returns the output columns for pairs of rows. */
  #pairsOf(
    batch: Batch,
    leftRows: Uint32Array,
    { count, rightRows }: { count: number; rightRows: Uint32Array },
  ): Batch {
    const { kept, leftTypes } = this.#options;
    const width = leftTypes.length;
    // Pairs are in ascending order of their left rows. If each left row matches at most one row,
    // and if there are as many pairs as left rows, the columns of the left side can be passed on
    // unchanged.
    const isWhole = count === batch.rowCount && this.#table.isUnique;
    const columns = kept.map((position): Vector => {
      if (position >= width) return this.#buildRows.takeColumn(position - width, rightRows, count);
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
    const right = this.#buildRows.take(rightRows, count);
    return { rowCount: count, columns: [...left, ...right.columns] };
  }
}
