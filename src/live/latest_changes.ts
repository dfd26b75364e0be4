/**
 * The net effect of a stretch of versions on a client that holds the result at a position.
 *
 * A version that is not the newest of its key up to the boundary does nothing. The newest is a row
 * if it matches; else it is a delete if the key matched at the position, which is known at once
 * when its predecessor is that old, and is otherwise found by walking back along `prev`.
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
  const { query, position } = options;
  const { rowCount } = batch;
  const isNewest = newestFlags(batch, options);
  const isLive = isNewest.map((flag, row) => (batch.deleted[row] === 1 ? 0 : flag));
  const newSide = query.newSide(batch, query.ownSources);
  const isRow = query.matches(newSide, isLive);
  const rows = query.project(newSide, selectionOf(isRow, rowCount));
  const changes: LiveChange[] = [];
  let next = 0;
  for (let row = 0; row < rowCount; row += 1) {
    if (isNewest[row] !== 1) continue;
    if (isRow[row] === 1) {
      const newRow = rows[next++];
      changes.push(query.changeAt(batch, row, { newRow, oldRow: undefined }));
    } else {
      const isOldKnown = (batch.prevs[row] ?? 0) <= position;
      const oldRow = isOldKnown ? oldRowAt(query, batch, row) : heldRow(batch, row, options);
      if (oldRow !== undefined) {
        changes.push(query.changeAt(batch, row, { newRow: undefined, oldRow }));
      }
    }
  }
  return changes;
}

type ProjectedRow = ReturnType<LiveQuery["project"]>[number];

/** The row before a version, if it matched. */
function oldRowAt(query: LiveQuery, batch: ChangeBatch, row: number): ProjectedRow | undefined {
  if (batch.hasOld[row] !== 1) return undefined;
  const only = new Uint8Array(batch.rowCount);
  only[row] = 1;
  const oldSide = query.oldSide(batch, query.ownSources);
  const matched = selectionOf(query.matches(oldSide, only), batch.rowCount);
  return query.project(oldSide, matched)[0];
}

/** What the key of a version was at the position, if it matched. */
function heldRow(
  batch: ChangeBatch,
  row: number,
  options: LatestOptions,
): ProjectedRow | undefined {
  const { store, query, position, budget } = options;
  const { tableId, owner } = query.plan;
  let prev = batch.prevs[row] ?? 0;
  for (;;) {
    budget.spend(1);
    const scan = store.changes(tableId, {
      owner,
      after: (prev - 1) as Seq,
      upTo: prev as Seq,
      columnIds: query.storedColumnIds,
    });
    try {
      const step = scan.next();
      assert(step !== undefined, "a predecessor above the position is in history");
      assert(step.seqs[0] === prev, "a version is found under its seq");
      const before = step.prevs[0] ?? 0;
      assert(before < prev, "a predecessor is older");
      if (before <= position) return oldRowAt(query, step, 0);
      prev = before;
    } finally {
      scan.close();
    }
  }
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
