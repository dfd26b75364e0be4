/**
 * Runs semi and anti joins whose left side is smaller than the right side. The left side is kept
 * in memory. The right side is streamed, and marks the build rows that it matches.
 *
 *     hold ──left ends──► mark ──right ends, or all are met──► choose ──all chosen──► done
 *
 * The build rows are the rows of the left side. They are yielded in the order in which they were
 * added. A right row is discarded once the build rows that match it have been marked, so only the
 * left side takes memory. If the left side is too large, both sides are partitioned on disk
 * (`grace_hash_join.ts`).
 */
import { BATCH_ROWS_MAX } from "../../../base/limits.ts";
import { type Batch, constVector, take, type Vector } from "../../../types/mod.ts";
import { nextRows } from "../context/next_rows.ts";
import type { Operator } from "../context/operator.ts";
import { SpillSite } from "../context/spilling.ts";
import { selectRows } from "../evaluate/expression.ts";
import { NO_KEY } from "../keys/key_hash_table.ts";
import { BuildColumns } from "../materialised/build_columns.ts";
import {
  buildBatches,
  GraceHashJoin,
  graceHashJoinOptions,
  type PartitionPair,
} from "./grace_hash_join.ts";
import type { JoinOptions } from "./hash_join.ts";
import { JoinTable } from "./join_table.ts";

const PAIRS_MAX: number = 2 * BATCH_ROWS_MAX;
/**
 * The number of build rows examined at a time. It is large because most build rows may already be
 * marked.
 */
const LOOKED_MAX: number = 32 * BATCH_ROWS_MAX;
const CHOSEN_MAX: number = 16 * BATCH_ROWS_MAX;

/**
 * A right batch for which the matching build rows are being marked, and the progress of the
 * marking.
 */
interface Marking {
  readonly batch: Batch;
  readonly keyIds: Int32Array;
  rightRow: number;
  /**
   * The number of build rows with the key of the current right row that have already been
   * examined.
   */
  candidateIndex: number;
}

export class LeftBuildSemiJoin implements Operator {
  readonly #options: JoinOptions;
  readonly #site: SpillSite;
  #buildRows: BuildColumns;
  #table: JoinTable;
  /** The join on disk, which takes over once the left side is too large for memory. */
  #divided: GraceHashJoin | undefined;
  /**
   * Contains 1 for each key whose build rows are marked. It is used if the join has no residual
   * condition.
   */
  #isKeyMet = new Uint8Array(0);
  /**
   * Contains 1 for each build row that has a matching right row. It is used if the join has a
   * residual condition.
   */
  #isRowMet = new Uint8Array(0);
  #isRead = false;
  #chosen = new Uint32Array(0);
  #chosenCount = 0;
  #position = 0;

  constructor(options: JoinOptions) {
    this.#options = options;
    // The rows of a join without keys cannot be partitioned.
    this.#site = new SpillSite(options, { isPossible: options.keyTypes.length > 0 });
    this.#buildRows = new BuildColumns(options.leftTypes, this.#site.memory);
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
    const { left, leftKeys, context } = this.#options;
    for (
      let batch = nextRows(left, context);
      batch !== undefined;
      batch = nextRows(left, context)
    ) {
      const { columns, rowCount } = batch;
      const keys = leftKeys.map((key) => key(batch, context));
      this.#buildRows.append(columns, rowCount);
      this.#table.add(keys, rowCount);
      if (this.#site.isDue) this.#divide();
      // The join on disk reads the remaining rows of the left side.
      if (this.#divided !== undefined) return;
    }
    this.#table.finish(() => context.checkTime());
  }

  /** Moves both sides to partitions on disk because memory has run out. */
  #divide(): void {
    const join = ({ left, leftCount, right, rightCount }: PartitionPair): Operator | undefined => {
      if (leftCount === 0) return undefined;
      if (rightCount === 0 && this.#options.join === "semi") return undefined;
      return new LeftBuildSemiJoin({ ...this.#options, ...this.#site.deeper, left, right });
    };
    const options = graceHashJoinOptions(this.#options, this.#site, join);
    this.#divided = new GraceHashJoin(options, {
      side: "left",
      batches: buildBatches(this.#buildRows),
    });
    this.#buildRows = new BuildColumns([], this.#site.memory);
    this.#table = new JoinTable(this.#options.keyTypes, this.#site.memory);
    this.#site.close();
  }

  /** Reads the right side, and marks the build rows that it matches. */
  #mark(): void {
    this.#isKeyMet = new Uint8Array(Math.max(0, this.#table.starts.length - 1));
    this.#isRowMet = new Uint8Array(this.#buildRows.rowCount);
    this.#site.memory.take(this.#isKeyMet.length + this.#isRowMet.length);
    // Without build rows, there is nothing to mark.
    while (this.#buildRows.rowCount > 0 && this.#markNext());
    this.#finishMarking();
  }

  /**
   * Marks the build rows that match the next right batch. Returns false if the right side has
   * ended.
   */
  #markNext(): boolean {
    const { residual, right, rightKeys, context } = this.#options;
    const batch = nextRows(right, context);
    if (batch === undefined) return false;
    const keys = rightKeys.map((key) => key(batch, context));
    const keyIds = this.#table.keyIdsOf(keys, batch.rowCount);
    if (residual !== undefined) {
      const marking = { batch, keyIds, rightRow: 0, candidateIndex: 0 };
      while (marking.rightRow < batch.rowCount) this.#markPairs(marking);
      return true;
    }
    const isMet = this.#isKeyMet;
    for (let row = 0; row < keyIds.length; row += 1) {
      const keyId = keyIds[row] ?? NO_KEY;
      if (keyId !== NO_KEY) isMet[keyId] = 1;
    }
    return true;
  }

  /** Tests the residual condition on at most one batch of pairs. */
  #markPairs(marking: Marking): void {
    this.#options.context.checkTime();
    const { batch, keyIds } = marking;
    const { rows, starts } = this.#table;
    const heldRows = new Uint32Array(PAIRS_MAX);
    const rightRows = new Uint32Array(PAIRS_MAX);
    let count = 0;
    let lookedCount = 0;
    let { candidateIndex, rightRow } = marking;
    while (count < PAIRS_MAX && lookedCount < LOOKED_MAX && rightRow < batch.rowCount) {
      const keyId = keyIds[rightRow] ?? NO_KEY;
      if (keyId !== NO_KEY) {
        const start = starts[keyId] ?? 0;
        const end = starts[keyId + 1] ?? 0;
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
    const { residual, context } = this.#options;
    const { count, heldRows, rightRows } = pairs;
    const left = this.#buildRows.take(heldRows, count).columns;
    const right = batch.columns.map((column) => take(column, { rows: rightRows, count }));
    const columns: readonly Vector[] = [...left, ...right];
    const truth = residual?.({ rowCount: count, columns }, context) ?? constVector(true, count);
    const kept = selectRows(truth, count);
    for (let i = 0; i < kept.count; i += 1) this.#isRowMet[heldRows[kept.rows[i] ?? 0] ?? 0] = 1;
  }

  /** Determines which build rows belong to the result of the join. */
  #finishMarking(): void {
    const { join, residual } = this.#options;
    const isMet = this.#isRowMet;
    if (residual === undefined) {
      const { rows, starts } = this.#table;
      for (let keyId = 0; keyId < this.#isKeyMet.length; keyId += 1) {
        if (this.#isKeyMet[keyId] === 0) continue;
        const end = starts[keyId + 1] ?? 0;
        for (let at = starts[keyId] ?? 0; at < end; at += 1) isMet[rows[at] ?? 0] = 1;
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
    const columns = this.#options.kept.map((at) => this.#buildRows.takeColumn(at, rows, rowCount));
    return { rowCount, columns };
  }
}
