/**
 * Chooses which segments of a table are merged, by their sizes alone: so that the number of
 * segments stays small whatever the pace of flushes, and a row is copied few times.
 *
 * But for the smallest, every row comes into a segment of at least twice the size: of 50 million
 * rows each is copied 4 times with flushes of 10,000, and 6 with 1,000. It costs 2 to 4 segments
 * for each 4 million rows.
 *
 * The size of a segment is its number of rows, and of wide ones more: as many as would fill the
 * same share of a merged segment by their number as these do by their bytes.
 */
import type { Seq } from "../../base/seq.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { SEGMENT_BYTES_MAX } from "../segment/format.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";

export interface MergeBounds {
  /**
   * So many neighbours are merged at a time, or more while one of them is too large beside the
   * rest.
   */
  readonly fanIn: number;
  readonly runMax: number;
  /** Merged segments have at most so many rows: bounds the length of a merge, and what it holds. */
  readonly rowsMax: number;
  /** And their sources at most so many bytes: what comes of them is to be one file. */
  readonly bytesMax: number;
  /** Segments up to this size are all of the smallest size: copying them costs next to nothing. */
  readonly smallRowsMax: number;
  readonly smallBytesMax: number;
}

export const MERGE_BOUNDS: MergeBounds = {
  fanIn: 8,
  runMax: 32,
  rowsMax: 4 * 1024 * 1024,
  // Half of what a segment can have, as chunks may come out larger than they were.
  bytesMax: SEGMENT_BYTES_MAX / 2,
  smallRowsMax: 4096,
  smallBytesMax: 1024 * 1024,
};

/**
 * Neighbours that are due to be merged, the smallest and oldest first; undefined when none are.
 *
 * - Eight or more, or fewer that fill a merged segment. But for the smallest, each comes into one
 *   at least twice its size, so a row is copied as often as sizes double, and not whenever a few
 *   small ones have come behind a large one.
 * - All that lies between two that are never merged, as that happens once.
 *
 * A run may begin anywhere: behind a large one that is not due small ones still are.
 */
export function segmentsToMerge(
  { segments }: Pick<StoredTable, "segments">,
  bounds: MergeBounds,
): readonly OpenSegment[] | undefined {
  const tierMax = tierOf({ rowCount: bounds.rowsMax, bytes: bounds.bytesMax }, bounds);
  for (let tier = 0; tier <= tierMax; tier += 1) {
    for (let start = 0; start < segments.length; start += 1) {
      const end = endOfDueRun(segments, { start, tier }, bounds);
      if (end > start + 1) return segments.slice(start, end);
    }
  }
  return undefined;
}

/**
 * Where a due run of segments up to a tier ends that begins at `start`; `start` if there is none.
 */
function endOfDueRun(
  segments: readonly OpenSegment[],
  { start, tier }: { start: number; tier: number },
  bounds: MergeBounds,
): number {
  const { fanIn, rowsMax, runMax } = bounds;
  let total = 0;
  let largest = 0;
  for (let end = start; end < Math.min(segments.length, start + runMax); end += 1) {
    const entry = segments[end]?.entry;
    // Between two that stay as they are nothing comes any more.
    if (entry === undefined || staysAsItIs(entry, bounds)) {
      return staysAsItIs(segments[start - 1]?.entry, bounds) ? end : start;
    }
    if (tierOf(entry, bounds) > tier) return start;
    const size = sizeOf(entry, bounds);
    if (total + size > rowsMax) return 2 * largest <= total ? end : start;
    total += size;
    largest = Math.max(largest, size);
    // The smallest cost next to nothing, whatever is beside them.
    const isDue = tier === 0 || 2 * largest <= total;
    if (isDue && end + 1 - start >= fanIn) return end + 1;
  }
  return start;
}

/** In rows: all of one merged segment are at most `rowsMax`. */
function sizeOf(
  { bytes, rowCount }: Pick<SegmentEntry, "bytes" | "rowCount">,
  { bytesMax, rowsMax }: Pick<MergeBounds, "bytesMax" | "rowsMax">,
): number {
  return Math.max(rowCount, (bytes / bytesMax) * rowsMax);
}

/** Nothing can be twice as large as this one; also true of what lies before the first segment. */
function staysAsItIs(entry: SegmentEntry | undefined, bounds: MergeBounds): boolean {
  return entry === undefined || entry.quarantined || 2 * sizeOf(entry, bounds) > bounds.rowsMax;
}

/** 0 for small segments, and one more for each factor of the fan-in. */
function tierOf(entry: Pick<SegmentEntry, "bytes" | "rowCount">, bounds: MergeBounds): number {
  const { fanIn, smallBytesMax, smallRowsMax } = bounds;
  const size = sizeOf(entry, bounds);
  if (size <= smallRowsMax) return entry.bytes <= smallBytesMax ? 0 : 1;
  return Math.ceil(Math.log(size / smallRowsMax) / Math.log(fanIn));
}

/**
 * All that COMPACT merges: runs of neighbours as long as a merged segment may be, without those
 * that would come out as they are.
 */
export function segmentsToCompact(
  table: StoredTable,
  horizonSeq: Seq,
  bounds: MergeBounds,
): readonly (readonly OpenSegment[])[] {
  const runs: OpenSegment[][] = [];
  let total = Infinity;
  for (const segment of table.segments) {
    const { entry } = segment;
    // A damaged segment stays as it is, and its neighbours do not become one past it.
    if (entry.quarantined) {
      total = Infinity;
      continue;
    }
    const last = runs.at(-1);
    const size = sizeOf(entry, bounds);
    total += size;
    if (last === undefined || total > bounds.rowsMax) {
      runs.push([segment]);
      total = size;
    } else {
      last.push(segment);
    }
  }
  return runs.filter(([first, ...others]) => {
    if (others.length > 0) return true;
    return first !== undefined && discardableShare(first, horizonSeq) > 0;
  });
}

/** How much of a segment nobody can ask for any more, from 0 to 1. */
export function discardableShare({ deletions, entry }: OpenSegment, horizonSeq: Seq): number {
  if (entry.minSeq > horizonSeq) return 0;
  return deletions.countReplaced(0, entry.rowCount, horizonSeq) / entry.rowCount;
}

/** About how much of a segment is past its time to live, from 0 to 1: its rows came evenly. */
export function expiredShare({ entry }: OpenSegment, expiredSeq: number): number {
  const { maxSeq, minSeq } = entry;
  if (maxSeq <= expiredSeq) return 1;
  return Math.max(0, (expiredSeq - minSeq) / (maxSeq - minSeq));
}
