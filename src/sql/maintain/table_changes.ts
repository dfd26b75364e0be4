/**
 * Computes the net change to one table between two seqs: the rows that were removed or updated,
 * and the rows that replaced them.
 *
 * A row that several commits changed is listed only once, with its values before the first change
 * and after the last change.
 */
import type { Seq } from "../../base/seq.ts";
import { type ChangeBatch, type ReadStore, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import { type Row, type Value, valueAt } from "../../types/mod.ts";

export interface TableChanges {
  /** The removed and replaced rows as of the first seq, with `_seq` as their last value. */
  readonly removed: readonly Row[];
  /** The new rows as of the last seq. */
  readonly added: readonly Row[];
  /** The last seq of each commit that changed the table in this range. */
  readonly commitSeqs: ReadonlySet<number>;
}

export interface TableChangesOptions {
  readonly tableId: number;
  readonly owner: number;
  /** The seq after which changes are read (exclusive). */
  readonly after: Seq;
  /** The seq up to which changes are read (inclusive), at most the visible seq. */
  readonly upTo: Seq;
  /** The columns to read, the last of which is `_seq`. */
  readonly columnIds: readonly number[];
  /** The maximum number of row versions that may be read. */
  readonly versionsMax: number;
  /** Whether a row counts as changed only if some column other than `_seq` has a new value. */
  readonly ignoresSeq: boolean;
}

interface NetChange {
  readonly removed: Row | undefined;
  added: Row | undefined;
}

/**
 * Returns the net change to a table, or undefined if there are too many row versions. @throws
 * {DatabaseError}
 */
export function tableChanges(
  store: Pick<ReadStore, "changes">,
  { columnIds, ignoresSeq, tableId, versionsMax, ...range }: TableChangesOptions,
): TableChanges | undefined {
  const stored = columnIds.filter((columnId) => columnId !== SEQ_COLUMN_ID);
  // The batch size is one more than the limit, which is enough to detect that there are too many
  // versions. A full batch would be read in vain.
  const scan = store.changes(tableId, { ...range, columnIds: stored, batchRows: versionsMax + 1 });
  // The changed rows, keyed by the seq of their newest version.
  const rows = new Map<number, NetChange>();
  const commitSeqs = new Set<number>();
  let count = 0;
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      count += batch.rowCount;
      if (count > versionsMax) return undefined;
      for (let row = 0; row < batch.rowCount; row += 1) {
        commitSeqs.add(batch.commitSeqs[row] ?? 0);
        addVersion(rows, batch, row);
      }
    }
  } finally {
    scan.close();
  }
  const found = [...rows.values()];
  const all = ignoresSeq ? found.filter((change) => !isSame(change)) : found;
  return {
    removed: all.flatMap(({ removed }) => (removed === undefined ? [] : [removed])),
    added: all.flatMap(({ added }) => (added === undefined ? [] : [added])),
    commitSeqs,
  };
}

function addVersion(rows: Map<number, NetChange>, batch: ChangeBatch, row: number): void {
  const seq = batch.seqs[row] ?? 0;
  const prev = batch.prevs[row] ?? 0;
  const added = batch.deleted[row] === 1 ? undefined : rowAt(batch.columns, row, seq);
  const known = rows.get(prev);
  if (known !== undefined) {
    rows.delete(prev);
    rows.set(seq, { removed: known.removed, added });
    return;
  }
  const removed = batch.hasOld[row] === 1 ? rowAt(batch.oldColumns, row, prev) : undefined;
  rows.set(seq, { removed, added });
}

/**
 * Whether a row has the same values as before, except for its seq. 0 and -0 count as different,
 * because a condition may read their text.
 */
function isSame({ added, removed }: NetChange): boolean {
  if (added === undefined || removed === undefined) return added === removed;
  const last = added.length - 1;
  return added.every((value, index) => index === last || Object.is(value, removed[index]));
}

function rowAt(columns: ChangeBatch["columns"], row: number, seq: number): Row {
  const values: Value[] = columns.map((column) => valueAt(column, row));
  values.push(seq);
  return values;
}
