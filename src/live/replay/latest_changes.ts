/**
 * Computes the net effect of a range of versions for a client whose rows are the result as of a
 * given position.
 *
 * A version has an effect only if it is the newest version of its key up to the boundary, the seq
 * at which the replay ends. If that version matches the query, it is sent as a row. If it does
 * not, a delete is sent if the key matched at the position or at any time since: a client whose
 * earlier replay was interrupted may have a version from in between. Whether the key matched is
 * found by walking back along `prev`, so no set of keys is kept. A long walk pauses and continues
 * in a later tick. Versions never change, so a paused walk needs no state other than the seq of
 * the next version.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import { type ChangeBatch, SEQ_COLUMN_ID, type Store } from "../../storage/mod.ts";
import { valueAt } from "../../types/mod.ts";
import {
  type LiveChange,
  type LiveProgram,
  type PartialResult,
  selectionOf,
  sliceChanges,
} from "../program/live_program.ts";
import type { MutableRow } from "../rows/row_shape.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";

const UNFINISHED = "unfinished";

/**
 * The cost of examining a predecessor: each one requires opening a scan for a single version,
 * which takes about 20 µs.
 */
const STEP_UNITS = 20;

export interface LatestOptions {
  readonly store: Store;
  readonly program: LiveProgram;
  /** The seq up to which the client has received everything. */
  readonly position: Seq;
  /** The exclusive start of the range of versions. */
  readonly after: Seq;
  /**
   * The inclusive end of the range. A version counts as the newest of its key if no later version
   * exists up to this seq.
   */
  readonly boundary: Seq;
  readonly budget: TickBudget;
}

/** Whether each version and its predecessor belong to the result. */
interface Sides {
  readonly isRow: Uint8Array;
  readonly rows: readonly MutableRow[];
  readonly isLeaver: Uint8Array;
  readonly leavers: readonly MutableRow[];
}

/** A walk back along a key's versions that did not finish within its tick. */
interface Walk {
  /** The seq of the version whose predecessors are being examined. */
  readonly seq: number;
  /** The seq of the predecessor to examine next. */
  readonly prev: number;
}

/** The state of a replay, including a walk left unfinished at the end of a tick. */
export class LatestChanges {
  #walk: Walk | undefined;

  /**
   * Whether the next batch begins with a version whose walk is unfinished. If so, reading that one
   * version is enough.
   */
  get isWalking(): boolean {
    return this.#walk !== undefined;
  }

  /**
   * Computes the effect of the first rows of a batch, in ascending seq order: inserts and deletes,
   * at most one change per key.
   *
   * @returns The changes, and the number of rows that they cover; 0 if the budget was used up
   *   first.
   */
  changesFrom(batch: ChangeBatch, options: LatestOptions): PartialResult<LiveChange[]> {
    const { budget, program } = options;
    if (this.#walk?.seq !== batch.seqs[0]) this.#walk = undefined;
    const isNewest = newestFlags(batch, options);
    const portion = program.portion({ rowCount: batch.rowCount, budget }, (count) =>
      sidesOf(sliceChanges(batch, 0, count), isNewest, program),
    );
    const { isLeaver, isRow, leavers, rows } = portion.result;
    const changes: LiveChange[] = [];
    let rowIndex = 0;
    let leaverIndex = 0;
    for (let row = 0; row < portion.rowCount; row += 1) {
      if (isNewest[row] !== 1) continue;
      if (isRow[row] === 1) {
        const newRow = rows[rowIndex++];
        changes.push(program.changeAt(batch, row, { newRow, oldRow: undefined }));
        continue;
      }
      const oldRow =
        isLeaver[row] === 1 ? leavers[leaverIndex++] : this.#earlierRow(batch, row, options);
      if (oldRow === UNFINISHED) return { rowCount: row, result: changes };
      if (oldRow !== undefined) {
        changes.push(program.changeAt(batch, row, { newRow: undefined, oldRow }));
      }
    }
    return { rowCount: portion.rowCount, result: changes };
  }

  /**
   * Finds the newest matching row of a key among all its versions except the last two. Returns
   * UNFINISHED if the budget was used up first.
   */
  #earlierRow(
    batch: ChangeBatch,
    row: number,
    options: LatestOptions,
  ): MutableRow | typeof UNFINISHED | undefined {
    const { budget, position } = options;
    const seq = batch.seqs[row] ?? 0;
    const begun = this.#walk?.seq === seq ? this.#walk : undefined;
    this.#walk = undefined;
    let prev = begun?.prev ?? batch.prevs[row] ?? 0;
    let isFirst = true;
    while (prev > position) {
      if (budget.isSpent && !isFirst) {
        this.#walk = { seq, prev };
        return UNFINISHED;
      }
      isFirst = false;
      budget.spend(STEP_UNITS);
      const step = stepBack(prev, options);
      if (step.row !== undefined) return step.row;
      assert(step.prev < prev, "replay: previous row version does not have a lower seq");
      prev = step.prev;
    }
    return undefined;
  }
}

/**
 * Examines the version with the seq `prev`. Returns its row if the version matched; otherwise, the
 * seq of the version to examine next.
 */
function stepBack(
  prev: number,
  { budget, position, program, store }: LatestOptions,
): { row: MutableRow | undefined; prev: number } {
  const { tableId, owner } = program.plan;
  const scan = store.changes(tableId, {
    owner,
    after: (prev - 1) as Seq,
    upTo: prev as Seq,
    prevsAfter: position,
    columnIds: program.storedColumnIds,
  });
  try {
    const step = scan.next();
    if (step === undefined) {
      // A missing version has expired, as have all earlier versions. Clients are not notified when
      // a row expires, so no delete is needed.
      const { tableId: id } = program.plan;
      assert(
        prev <= store.expiredSeq(id),
        "replay: previous row version is missing from history before its expiry",
      );
      return { row: undefined, prev: 0 };
    }
    assert(step.seqs[0] === prev, "replay: row version found has a different seq");
    const oldSide = program.oldSide(step, program.ownSources);
    const portion = program.portion({ rowCount: 1, budget }, () => {
      const isMatch = program.matches(oldSide, step.hasOld);
      return isMatch[0] === 1 ? program.project(oldSide, undefined) : [];
    });
    return { row: portion.result[0], prev: step.prevs[0] ?? 0 };
  } finally {
    scan.close();
  }
}

function sidesOf(batch: ChangeBatch, isNewest: Uint8Array, program: LiveProgram): Sides {
  const { deleted, hasOld, rowCount } = batch;
  const isLive = new Uint8Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) {
    isLive[row] = deleted[row] === 1 ? 0 : (isNewest[row] ?? 0);
  }
  const newSide = program.newSide(batch, program.ownSources);
  const isRow = program.matches(newSide, isLive);
  const rows = program.project(newSide, selectionOf(isRow, rowCount));
  const isGone = new Uint8Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) {
    isGone[row] = isRow[row] === 1 ? 0 : (isNewest[row] ?? 0) & (hasOld[row] ?? 0);
  }
  const oldSide = program.oldSide(batch, program.ownSources);
  const isLeaver = program.matches(oldSide, isGone);
  const leavers = program.project(oldSide, selectionOf(isLeaver, rowCount));
  return { isRow, rows, isLeaver, leavers };
}

/** Marks each version that is the newest of its key at the boundary. */
function newestFlags(batch: ChangeBatch, options: LatestOptions): Uint8Array {
  const { store, program, after, boundary } = options;
  const { tableId, owner } = program.plan;
  const flags = new Uint8Array(batch.rowCount);
  const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
  const scan = store.scan(tableId, {
    owner,
    after,
    upTo: boundary,
    // The search extends to the boundary, because the newest version of a frequently written key
    // may lie far beyond the batch.
    seqMax: lastSeq,
    columnIds: [SEQ_COLUMN_ID],
    withTombstones: true,
    batchRows: batch.rowCount,
  });
  try {
    let row = 0;
    for (let found = scan.next(); found !== undefined; found = scan.next()) {
      const seqs = found.columns[0];
      assert(seqs !== undefined, "replay: scan result lacks the seq column");
      for (let index = 0; index < found.rowCount; index += 1) {
        const seq = valueAt(seqs, index);
        assert(typeof seq === "number", "replay: seq column contains a value that is not a number");
        while (row < batch.rowCount && (batch.seqs[row] ?? 0) < seq) row += 1;
        assert(
          batch.seqs[row] === seq,
          "replay: newest row version is missing from the change batch",
        );
        flags[row] = 1;
      }
    }
    return flags;
  } finally {
    scan.close();
  }
}
