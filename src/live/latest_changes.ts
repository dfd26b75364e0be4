/**
 * The net effect of a stretch of versions on a client that holds the result at a position.
 *
 * A version that is not the newest of its key up to the boundary does nothing. The newest is a row
 * if it matches; else it is a delete if the key matched at the position or at any time since: a
 * client whose earlier replay broke off may hold what matched in between. Whether it did is found
 * by walking back along `prev`, so no set of keys is remembered.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import { type ChangeBatch, SEQ_COLUMN_ID, type Store } from "../storage/mod.ts";
import { valueAt } from "../types/mod.ts";
import type { Budget } from "./budget.ts";
import { type LiveChange, type LiveQuery, selectionOf } from "./live_query.ts";

export interface LatestOptions {
  readonly store: Store;
  readonly query: LiveQuery;
  /** What the client has seen. */
  readonly position: Seq;
  /** Exclusive: where the stretch of versions begins. */
  readonly after: Seq;
  /** Inclusive: newest means newest at this seq. */
  readonly boundary: Seq;
  readonly budget: Budget;
}

/** At most one change a key, in ascending seq: inserts for rows, and deletes. */
export function latestChanges(batch: ChangeBatch, options: LatestOptions): LiveChange[] {
  const { query } = options;
  const { rowCount } = batch;
  const isNewest = newestFlags(batch, options);
  const isLive = isNewest.map((flag, row) => (batch.deleted[row] === 1 ? 0 : flag));
  const newSide = query.newSide(batch, query.ownSources);
  const isRow = query.matches(newSide, isLive);
  const rows = query.project(newSide, selectionOf(isRow, rowCount));
  const oldSide = query.oldSide(batch, query.ownSources);
  const isGone = isNewest.map((flag, row) =>
    isRow[row] === 1 ? 0 : flag & (batch.hasOld[row] ?? 0),
  );
  const isLeaver = query.matches(oldSide, isGone);
  const leavers = query.project(oldSide, selectionOf(isLeaver, rowCount));
  const changes: LiveChange[] = [];
  let rowIndex = 0;
  let leaverIndex = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (isNewest[row] !== 1) continue;
    if (isRow[row] === 1) {
      const newRow = rows[rowIndex++];
      changes.push(query.changeAt(batch, row, { newRow, oldRow: undefined }));
    } else {
      const oldRow = isLeaver[row] === 1 ? leavers[leaverIndex++] : earlierRow(batch, row, options);
      if (oldRow !== undefined) {
        changes.push(query.changeAt(batch, row, { newRow: undefined, oldRow }));
      }
    }
  }
  return changes;
}

type ProjectedRow = ReturnType<LiveQuery["project"]>[number];

/** The newest row of a key that matched, among those before its last two versions. */
function earlierRow(
  batch: ChangeBatch,
  row: number,
  options: LatestOptions,
): ProjectedRow | undefined {
  const { store, query, position, budget } = options;
  const { tableId, owner } = query.plan;
  let prev = batch.prevs[row] ?? 0;
  while (prev > position) {
    budget.spend(1);
    const scan = store.changes(tableId, {
      owner,
      after: (prev - 1) as Seq,
      upTo: prev as Seq,
      columnIds: query.storedColumnIds,
    });
    try {
      const step = scan.next();
      // History reaches back to the position, so it is past its time to live, as is all before it:
      // whoever was sent such a row was not promised to hear that it is gone.
      if (step === undefined) return undefined;
      assert(step.seqs[0] === prev, "a version is found under its seq");
      const oldSide = query.oldSide(step, query.ownSources);
      const isMatch = query.matches(oldSide, step.hasOld);
      if (isMatch[0] === 1) return query.project(oldSide, undefined)[0];
      const before = step.prevs[0] ?? 0;
      assert(before < prev, "a predecessor is older");
      prev = before;
    } finally {
      scan.close();
    }
  }
  return undefined;
}

/** Marks the versions that are the newest of their key at the boundary. */
function newestFlags(batch: ChangeBatch, options: LatestOptions): Uint8Array {
  const { store, query, after, boundary } = options;
  const { tableId, owner } = query.plan;
  const flags = new Uint8Array(batch.rowCount);
  const lastSeq = batch.seqs[batch.rowCount - 1] ?? 0;
  const scan = store.scan(tableId, {
    owner,
    after,
    upTo: boundary,
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
        if (seq > lastSeq) return flags;
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
