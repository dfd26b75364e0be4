/**
 * Finds versions of a key to which no newer version refers.
 *
 * If a key is inserted again after its tombstone has moved to history, the new version does not
 * refer to the tombstone as its predecessor, since INSERT does not search history. The tombstone
 * does not refer to the new version either. This module finds both by their key.
 */
import type { Row } from "../../types/mod.ts";
import type { StoredTable } from "./table.ts";

/** The range of seqs above `after` and at most `upTo`. */
interface SeqRange {
  readonly after: number;
  readonly upTo: number;
}

/** Whether a key of an owner has a version within a range of seqs, in memory or in a segment. */
export function hasVersion(
  table: StoredTable,
  { key, owner }: { readonly owner: number; readonly key: Row },
  { after, upTo }: SeqRange,
): boolean {
  const recent = table.findInMemory(owner, key, upTo);
  if (recent !== undefined) return recent.seq > after;
  for (const segment of table.allSegments) {
    if (segment.entry.maxSeq <= after) continue;
    const row = segment.findKey(owner, key, upTo);
    if (row !== -1 && segment.seqAt(row) > after) return true;
  }
  return false;
}

/**
 * Returns the seq of the tombstone in history that precedes a version without a `prev`; 0 if there
 * is none above `after`.
 */
export function buriedTombstone(
  table: StoredTable,
  { owner, seq }: { readonly owner: number; readonly seq: number },
  after: number,
): number {
  const version = table.findSeq(owner, seq);
  if (version === undefined) return 0;
  const key = table.keyAt(version);
  let newestSeq = after;
  let isTombstone = false;
  for (const segment of table.history) {
    if (segment.entry.maxSeq <= newestSeq) continue;
    const row = segment.findKey(owner, key, seq - 1);
    if (row === -1 || segment.seqAt(row) <= newestSeq) continue;
    newestSeq = segment.seqAt(row);
    isTombstone = segment.isDeletedAt(row);
  }
  // If the newest version is not a tombstone, the key was inserted again because its row had
  // expired.
  return isTombstone ? newestSeq : 0;
}
