/**
 * The net effect of a stretch of versions on a client that holds the result at a position.
 *
 * A version that is not the newest of its key up to the boundary does nothing. The newest is a row
 * if it matches; else it is a delete if the key matched at the position or at any time since: a
 * client whose earlier replay broke off may hold what matched in between. Whether it did is found
 * by walking back along `prev`, so no set of keys is remembered. A long walk is broken off and goes
 * on in a later turn: versions do not change, so the seq that is next is all that is to be known.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import { type ChangeBatch, SEQ_COLUMN_ID, type Store } from "../storage/mod.ts";
import { valueAt } from "../types/mod.ts";
import type { Budget } from "./budget.ts";
import {
  type LiveChange,
  type LiveProgram,
  type Portion,
  selectionOf,
  sliceChanges,
} from "./live_program.ts";
import type { MutableRow } from "./row_shape.ts";

const UNFINISHED = "unfinished";

/** A step back opens a scan for one version: 20 µs. */
const STEP_UNITS = 20;

export interface LatestOptions {
  readonly store: Store;
  readonly program: LiveProgram;
  /** What the client has seen. */
  readonly position: Seq;
  /** Exclusive: where the stretch of versions begins. */
  readonly after: Seq;
  /** Inclusive: newest means newest at this seq. */
  readonly boundary: Seq;
  readonly budget: Budget;
}

/** What a version and the one before it are to the result. */
interface Sides {
  readonly isRow: Uint8Array;
  readonly rows: readonly MutableRow[];
  readonly isLeaver: Uint8Array;
  readonly leavers: readonly MutableRow[];
}

/** A walk back along a key that did not end in its turn. */
interface Walk {
  /** Of the version whose predecessors are looked at. */
  readonly seq: number;
  /** The next of them. */
  readonly prev: number;
}

/** Of one replay: it remembers a walk from one turn to the next. */
export class LatestChanges {
  #walk: Walk | undefined;

  /** Whether the first version of the next batch is one whose walk goes on: no other is needed. */
  get isWalking(): boolean {
    return this.#walk !== undefined;
  }

  /**
   * What the first rows of a batch do, in ascending seq: inserts for rows, and deletes. At most one
   * change a key.
   *
   * @returns How many rows those were, which may be none when the budget was used up.
   */
  changesFrom(batch: ChangeBatch, options: LatestOptions): Portion<LiveChange[]> {
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
   * The newest row of a key that matched, among those before its last two versions; UNFINISHED when
   * the budget was used up first.
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
      assert(step.prev < prev, "a predecessor is older");
      prev = step.prev;
    }
    return undefined;
  }
}

/** What version `prev` replaced: its row if it matched, and else where to look further. */
function stepBack(
  prev: number,
  { budget, program, store }: LatestOptions,
): { row: MutableRow | undefined; prev: number } {
  const { tableId, owner } = program.plan;
  const scan = store.changes(tableId, {
    owner,
    after: (prev - 1) as Seq,
    upTo: prev as Seq,
    columnIds: program.storedColumnIds,
  });
  try {
    const step = scan.next();
    if (step === undefined) {
      // It is past its time to live, as is all before it: whoever was sent such a row was not
      // promised to hear that it is gone.
      const { tableId: id } = program.plan;
      assert(prev <= store.expiredSeq(id), "a predecessor above the position is in history");
      return { row: undefined, prev: 0 };
    }
    assert(step.seqs[0] === prev, "a version is found under its seq");
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

/** Marks the versions that are the newest of their key at the boundary. */
function newestFlags(batch: ChangeBatch, options: LatestOptions): Uint8Array {
  const { store, program, after, boundary } = options;
  const { tableId, owner } = program.plan;
  const flags = new Uint8Array(batch.rowCount);
  const lastSeq = (batch.seqs[batch.rowCount - 1] ?? 0) as Seq;
  const scan = store.scan(tableId, {
    owner,
    after,
    upTo: boundary,
    // A key that is written often has its newest version far behind the batch.
    seqMax: lastSeq,
    columnIds: [SEQ_COLUMN_ID],
    withTombstones: true,
    batchRows: batch.rowCount,
  });
  try {
    let row = 0;
    for (let found = scan.next(); found !== undefined; found = scan.next()) {
      const seqs = found.columns[0];
      assert(seqs !== undefined, "a scan yields the columns asked for");
      for (let index = 0; index < found.rowCount; index += 1) {
        const seq = valueAt(seqs, index);
        assert(typeof seq === "number", "a seq is a number");
        while (row < batch.rowCount && (batch.seqs[row] ?? 0) < seq) row += 1;
        assert(batch.seqs[row] === seq, "a newest version is among the changes");
        flags[row] = 1;
      }
    }
    return flags;
  } finally {
    scan.close();
  }
}
