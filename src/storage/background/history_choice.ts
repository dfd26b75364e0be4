/**
 * Chooses segments to merge so that history stays compact: segments with current versions of which
 * many rows are obsolete, and history segments, by size and by the share of their versions no
 * longer needed. A row is obsolete if it has been replaced or is a tombstone, and cannot become
 * current again.
 *
 * A current segment is split when 30 % of its rows are obsolete. All current segments together
 * thus contain at most about as many obsolete rows as live rows. Each obsolete row moves once, and
 * at most 2.3 other rows are copied for it.
 */
import { isExpected } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { type MergeBounds, runsWithin, segmentsToMerge } from "./merge_choice.ts";

const SETTLED_SHARE_MIN = 0.3;

/**
 * Returns how many rows of a current segment are obsolete at seq `upTo`: rows replaced by then,
 * and tombstones that were never replaced.
 */
export function obsoleteCount(segment: OpenSegment, upTo: number): number {
  return replacedCount(segment, upTo) + endedCount(segment);
}

/** Returns the oldest current segment due to be split; undefined if there is none. */
export function segmentToSplit(
  { progress, segments }: StoredTable,
  { smallRowsMax }: MergeBounds,
): OpenSegment | undefined {
  const { flushedSeq } = progress;
  return segments.find((segment) => {
    const { quarantined, rowCount } = segment.entry;
    // The smallest segments need no split: they are merged soon in any case, and that merge moves
    // their history.
    if (quarantined || rowCount <= smallRowsMax) return false;
    try {
      return isShareOver(segment, flushedSeq, SETTLED_SHARE_MIN * rowCount);
    } catch (error) {
      // Ignoring the error is safe: damage quarantines the segment, and a segment that cannot be
      // opened is examined again later.
      if (!isExpected(error)) throw error;
      return false;
    }
  });
}

/** Returns the history segments due to be merged, starting with the oldest history. */
export function historyToMerge(
  { history }: Pick<StoredTable, "history">,
  bounds: MergeBounds,
): readonly OpenSegment[] | undefined {
  return segmentsToMerge({ segments: inOrderOfEnd(history) }, bounds);
}

/**
 * Returns the history segments that COMPACT merges. Segments that a merge would not change are
 * omitted.
 */
export function historyToCompact(
  { history }: StoredTable,
  retentionFloorSeq: Seq,
  bounds: MergeBounds,
): readonly (readonly OpenSegment[])[] {
  return runsWithin(inOrderOfEnd(history), bounds).filter(
    ([first, ...others]) =>
      others.length > 0 || (first !== undefined && discardableShare(first, retentionFloorSeq) > 0),
  );
}

/**
 * Returns the share of a segment's versions that can no longer be read, from 0 to 1. For a history
 * segment, the share is an estimate that assumes evenly distributed replacements. Results of
 * exactly 0 and 1 are not estimates.
 */
export function discardableShare(segment: OpenSegment, retentionFloorSeq: Seq): number {
  const { history, minSeq, rowCount } = segment.entry;
  if (minSeq > retentionFloorSeq) return 0;
  if (history === undefined) return replacedCount(segment, retentionFloorSeq) / rowCount;
  const { highestReplacingSeq: highest, lowestReplacingSeq: lowest } = history;
  const share = (retentionFloorSeq - lowest + 1) / (highest - lowest + 1);
  return Math.min(1, Math.max(0, share));
}

/**
 * Sorts history segments by their last replacement, so that versions that expire together are
 * merged together.
 */
function inOrderOfEnd(history: readonly OpenSegment[]): readonly OpenSegment[] {
  return history.toSorted((left, right) => endOf(left) - endOf(right));
}

function endOf({ entry }: OpenSegment): number {
  return entry.history?.highestReplacingSeq ?? 0;
}

function replacedCount({ deletions, entry }: OpenSegment, upTo: number): number {
  return deletions.countReplaced(0, entry.rowCount, upTo);
}

/**
 * Whether at least `countMin` rows are obsolete. Tombstones are examined one by one only if the
 * other obsolete rows do not settle the question.
 */
function isShareOver(segment: OpenSegment, upTo: number, countMin: number): boolean {
  const replaced = replacedCount(segment, upTo);
  if (replaced >= countMin) return true;
  return (
    replaced + segment.tombstoneCount >= countMin && replaced + endedCount(segment) >= countMin
  );
}

/** Returns the number of tombstones whose keys have not been inserted again. */
function endedCount(segment: OpenSegment): number {
  if (segment.tombstoneCount === 0) return 0;
  const { deletions } = segment;
  return segment.guard(() => {
    const { reader } = segment;
    let count = 0;
    for (let group = 0; group < reader.groupCount; group += 1) {
      if (!reader.hasTombstones(group)) continue;
      const start = reader.groupStart(group);
      for (const [index, flag] of reader.deleted(group).entries()) {
        if (flag === 1 && deletions.replacedBy(start + index) === 0) count += 1;
      }
    }
    return count;
  });
}
