/**
 * Chooses segments to merge by size alone, so that the number of segments stays small at any rate
 * of flushes, and each row is copied only a few times.
 *
 * A merge moves each row into a segment of at least twice the size, except for the smallest
 * segments. The number of copies of a row is thus logarithmic in the number of rows.
 *
 * The size of a segment is its number of rows. For wide rows, the size is a larger number of rows,
 * which takes the segment's bytes into account: the segment counts as having filled the maximum row
 * count to the same degree as it fills the maximum byte count.
 */
import type { SegmentEntry } from "../contract/manifest.ts";
import { SEGMENT_BYTES_MAX } from "../segment/format.ts";
import type { OpenSegment } from "../table/open_segment.ts";

export interface MergeBounds {
  /**
   * The number of neighbours that are merged at a time. A merge takes more than this while one of
   * them is too large in proportion to the rest.
   */
  readonly fanIn: number;
  readonly runMax: number;
  /**
   * The maximum number of rows in a merged segment. This limits the duration and the memory of a
   * merge.
   */
  readonly rowsMax: number;
  /** The maximum total bytes of the sources of a merge, since the result has to fit in one file. */
  readonly bytesMax: number;
  /** Segments up to this size count as the smallest: copying them costs almost nothing. */
  readonly smallRowsMax: number;
  readonly smallBytesMax: number;
}

export const MERGE_BOUNDS: MergeBounds = {
  fanIn: 8,
  runMax: 32,
  rowsMax: 4 * 1024 * 1024,
  // Uses half of a segment's maximum size, since chunks may become larger when they are rewritten.
  bytesMax: SEGMENT_BYTES_MAX / 2,
  smallRowsMax: 4096,
  smallBytesMax: 1024 * 1024,
};

/**
 * Returns the neighbours that are due to be merged, the smallest and oldest first; undefined if
 * none are due.
 *
 * - A run is due if it has at least eight segments, or fewer that fill a merged segment. Except for
 *   the smallest segments, a merge must at least double the size of each segment's rows. A row is
 *   thus copied once for each doubling, rather than whenever a few small segments follow a large
 *   one.
 * - All segments between two final segments are due, since merging them happens only once.
 *
 * A run may begin anywhere, because small segments may be due after a large one that is not.
 */
export function segmentsToMerge(
  { segments }: { readonly segments: readonly OpenSegment[] },
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
 * Returns the end of the due run that begins at `start` and contains only segments up to a given
 * tier; `start` if there is no such run.
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
    // No segment is ever added between two segments that no merge includes.
    if (entry === undefined || staysAsItIs(entry, bounds)) {
      return staysAsItIs(segments[start - 1]?.entry, bounds) ? end : start;
    }
    if (tierOf(entry, bounds) > tier) return start;
    const size = sizeOf(entry, bounds);
    if (total + size > rowsMax) return 2 * largest <= total ? end : start;
    total += size;
    largest = Math.max(largest, size);
    // Merging the smallest segments costs almost nothing, regardless of their neighbours.
    const isDue = tier === 0 || 2 * largest <= total;
    if (isDue && end + 1 - start >= fanIn) return end + 1;
  }
  return start;
}

/**
 * Returns the size of a segment in rows. The sources of one merged segment must not exceed
 * `rowsMax` in total.
 */
function sizeOf(
  { bytes, rowCount }: Pick<SegmentEntry, "bytes" | "rowCount">,
  { bytesMax, rowsMax }: Pick<MergeBounds, "bytesMax" | "rowsMax">,
): number {
  return Math.max(rowCount, (bytes / bytesMax) * rowsMax);
}

/**
 * Whether no merge can double the size of this segment, so that it is never merged. Also true for
 * the position before the first segment.
 */
function staysAsItIs(entry: SegmentEntry | undefined, bounds: MergeBounds): boolean {
  return entry === undefined || entry.quarantined || 2 * sizeOf(entry, bounds) > bounds.rowsMax;
}

/**
 * Returns the size tier of a segment: 0 for small segments, plus 1 for each factor of the fan-in.
 */
function tierOf(entry: Pick<SegmentEntry, "bytes" | "rowCount">, bounds: MergeBounds): number {
  const { fanIn, smallBytesMax, smallRowsMax } = bounds;
  const size = sizeOf(entry, bounds);
  if (size <= smallRowsMax) return entry.bytes <= smallBytesMax ? 0 : 1;
  return Math.ceil(Math.log(size / smallRowsMax) / Math.log(fanIn));
}

/** Divides neighbours into runs, each as long as a merged segment may be. */
export function runsWithin(
  segments: readonly OpenSegment[],
  bounds: MergeBounds,
): readonly (readonly OpenSegment[])[] {
  const runs: OpenSegment[][] = [];
  let total = Infinity;
  for (const segment of segments) {
    const { entry } = segment;
    // A damaged segment is not merged, and its neighbours on either side are not merged with each
    // other.
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
  return runs;
}

/**
 * Estimates the share of a segment that has expired, from 0 to 1, assuming that rows arrived at a
 * steady rate.
 */
export function expiredShare({ entry }: OpenSegment, expiredSeq: number): number {
  const { maxSeq, minSeq } = entry;
  if (maxSeq <= expiredSeq) return 1;
  return Math.max(0, (expiredSeq - minSeq) / (maxSeq - minSeq));
}
