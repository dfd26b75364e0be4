/**
 * Chooses segments to merge by size alone. The number of segments stays small at any flush rate,
 * and each row is copied only a few times.
 *
 * A merge moves each row into a segment of at least twice the size, except for the smallest
 * segments. The number of copies of a row is thus logarithmic in the number of rows.
 *
 * A segment's size is its row count. If its rows are wide, its size is its share of the maximum
 * byte count, expressed as the same share of the maximum row count.
 */
import type { SegmentEntry } from "../contract/manifest.ts";
import { SEGMENT_BYTES_MAX } from "../segment/format.ts";
import type { OpenSegment } from "../table/open_segment.ts";

export interface MergeBounds {
  /**
   * How many neighbouring segments are merged at a time. A merge takes more segments while one of
   * them is too large in proportion to the rest.
   */
  readonly fanIn: number;
  readonly runMax: number;
  /**
   * The maximum number of rows in a merged segment, which limits a merge's duration and memory.
   */
  readonly rowsMax: number;
  /**
   * The maximum total size in bytes of the segments that a merge reads, since the result has to
   * fit in one file.
   */
  readonly bytesMax: number;
  /** The size up to which segments are in the smallest tier: copying them costs almost nothing. */
  readonly smallRowsMax: number;
  readonly smallBytesMax: number;
}

export const MERGE_BOUNDS: MergeBounds = {
  fanIn: 8,
  runMax: 32,
  rowsMax: 4 * 1024 * 1024,
  // Half of a segment file's maximum size, since chunks may grow when they are rewritten.
  bytesMax: SEGMENT_BYTES_MAX / 2,
  smallRowsMax: 4096,
  smallBytesMax: 1024 * 1024,
};

/**
 * Returns the neighbouring segments due to be merged, the smallest and oldest first; undefined if
 * none are due.
 *
 * - A run of neighbours is due if it has at least `fanIn` segments, or fewer that fill a merged
 *   segment. Except for the smallest segments, a merge must at least double the size of the
 *   segment that each row is in. A row is thus copied once per doubling, rather than whenever a
 *   few small segments follow a large one.
 * - All segments between two final segments are due, since they are merged only once.
 *
 * A run may begin anywhere, because small segments may be due after a large segment that is not.
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
 * Returns the end of the run of segments that begins at `start`, is due to be merged and has no
 * segments above the given size tier; `start` if there is no such run.
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
    // A run between two segments that are never merged is due, since no further segment can appear
    // in it.
    if (entry === undefined || staysAsItIs(entry, bounds)) {
      return staysAsItIs(segments[start - 1]?.entry, bounds) ? end : start;
    }
    if (tierOf(entry, bounds) > tier) return start;
    const size = sizeOf(entry, bounds);
    if (total + size > rowsMax) return 2 * largest <= total ? end : start;
    total += size;
    largest = Math.max(largest, size);
    // Merging segments of the smallest tier costs almost nothing, whatever the size of their
    // neighbours.
    const isDue = tier === 0 || 2 * largest <= total;
    if (isDue && end + 1 - start >= fanIn) return end + 1;
  }
  return start;
}

/**
 * Returns the size of a segment in rows, scaled up for wide rows. The sources of one merge must
 * not exceed `rowsMax` in total.
 */
function sizeOf(
  { bytes, rowCount }: Pick<SegmentEntry, "bytes" | "rowCount">,
  { bytesMax, rowsMax }: Pick<MergeBounds, "bytesMax" | "rowsMax">,
): number {
  return Math.max(rowCount, (bytes / bytesMax) * rowsMax);
}

/**
 * Whether no merge could double the size of this segment, which is therefore never merged. Also
 * true if `entry` is undefined, before the first segment.
 */
function staysAsItIs(entry: SegmentEntry | undefined, bounds: MergeBounds): boolean {
  return entry === undefined || entry.quarantined || 2 * sizeOf(entry, bounds) > bounds.rowsMax;
}

/**
 * Returns the size tier of a segment: 0 for the smallest, and 1 more for each factor of `fanIn`.
 */
function tierOf(entry: Pick<SegmentEntry, "bytes" | "rowCount">, bounds: MergeBounds): number {
  const { fanIn, smallBytesMax, smallRowsMax } = bounds;
  const size = sizeOf(entry, bounds);
  if (size <= smallRowsMax) return entry.bytes <= smallBytesMax ? 0 : 1;
  return Math.ceil(Math.log(size / smallRowsMax) / Math.log(fanIn));
}

/** Divides neighbouring segments into runs, each as long as fits in one merged segment. */
export function runsWithin(
  segments: readonly OpenSegment[],
  bounds: MergeBounds,
): readonly (readonly OpenSegment[])[] {
  const runs: OpenSegment[][] = [];
  let total = Infinity;
  for (const segment of segments) {
    const { entry } = segment;
    // A damaged segment is not merged, and the segments on either side of it are not merged with
    // each other.
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
 * Estimates the expired share of a segment, from 0 to 1, assuming that rows arrived at a steady
 * rate.
 */
export function expiredShare({ entry }: OpenSegment, expiredSeq: number): number {
  const { maxSeq, minSeq } = entry;
  if (maxSeq <= expiredSeq) return 1;
  return Math.max(0, (expiredSeq - minSeq) / (maxSeq - minSeq));
}
