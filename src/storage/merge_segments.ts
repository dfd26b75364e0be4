/**
 * Merges neighbouring segments of a table into one, so that the number of segments stays small
 * whatever the pace of flushes, and leaves out versions that history need not keep any more.
 *
 *     1 write tmp/<n>.seg from the sources, sync; its deletion vector likewise
 *     2 rename into place, sync the directory
 *     3 one manifest transaction: the merged segment instead of its sources
 *     4 readers go over in the turn of 3; the sources' files go with their last reader
 *
 * The sources stay in use all the while: what replaces their rows meanwhile is noted in journals
 * and brought over in the turn of 3. A flush of the table may run at the same time, but for what
 * both do to the list of segments and to deletion vectors: that is one after the other.
 */
import { assert } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import { DeletionVector } from "./deletion_vector.ts";
import { segmentFileName } from "./file_names.ts";
import { DISCARDED } from "./history.ts";
import { horizonOf } from "./history_size.ts";
import type { SegmentEntry } from "./manifest.ts";
import type { MergeJob, MergeOutcome } from "./merge_job.ts";
import { OpenSegment } from "./open_segment.ts";
import { SegmentDrafts, type SegmentTools } from "./segment_drafts.ts";
import { type StoredTable, tableStateOf } from "./table.ts";

/** So many neighbours are merged at a time, or more while one of them is too large beside the rest. */
const FAN_IN = 8;
const RUN_MAX: number = 4 * FAN_IN;

/** Merged segments have at most so many rows: bounds the length of a merge, and what it holds. */
const MERGED_ROWS_MAX: number = 4 * 1024 * 1024;

/** Segments up to this size are all of the smallest size. */
const SMALL_ROWS_MAX = 4096;

/**
 * Neighbours that are due to be merged, the smallest and oldest first; undefined when none are.
 *
 * - Eight or more, or fewer that fill a merged segment. But for the smallest, each comes into one at
 *   least twice its size, so a row is copied as often as sizes double, and not whenever a few small
 *   ones have come behind a large one.
 * - All that lies between two that are never merged, as that happens once.
 *
 * A run may begin anywhere: behind a large one that is not due small ones still are.
 */
export function segmentsToMerge(table: StoredTable): readonly OpenSegment[] | undefined {
  const { segments } = table;
  const tierMax = tierOf(MERGED_ROWS_MAX);
  for (let tier = 0; tier <= tierMax; tier += 1) {
    for (let start = 0; start < segments.length; start += 1) {
      const end = endOfDueRun(segments, start, tier);
      if (end > start + 1) return segments.slice(start, end);
    }
  }
  return undefined;
}

/** Where a due run of segments up to a tier ends that begins at `start`; `start` if there is none. */
function endOfDueRun(segments: readonly OpenSegment[], start: number, tier: number): number {
  let rowCount = 0;
  let largest = 0;
  for (let end = start; end < Math.min(segments.length, start + RUN_MAX); end += 1) {
    const entry = segments[end]?.entry;
    // Between two that stay as they are nothing comes any more.
    if (staysAsItIs(entry)) return staysAsItIs(segments[start - 1]?.entry) ? end : start;
    const rows = entry?.rowCount ?? 0;
    if (tierOf(rows) > tier) return start;
    if (rowCount + rows > MERGED_ROWS_MAX) return 2 * largest <= rowCount ? end : start;
    rowCount += rows;
    largest = Math.max(largest, rows);
    // The smallest cost next to nothing, whatever is beside them.
    const isDue = tier === 0 || 2 * largest <= rowCount;
    if (isDue && end + 1 - start >= FAN_IN) return end + 1;
  }
  return start;
}

/** Nothing can be twice as large as this one; also true of what lies before the first segment. */
function staysAsItIs(entry: SegmentEntry | undefined): boolean {
  return entry === undefined || entry.quarantined || 2 * entry.rowCount > MERGED_ROWS_MAX;
}

/**
 * All that COMPACT merges: runs of neighbours as long as a merged segment may be, without those
 * that would come out as they are.
 */
export function segmentsToCompact(
  table: StoredTable,
  horizonSeq: Seq,
): readonly (readonly OpenSegment[])[] {
  const runs: OpenSegment[][] = [];
  let rowCount = Infinity;
  for (const segment of table.segments) {
    const { entry } = segment;
    const last = runs.at(-1);
    rowCount += entry.rowCount;
    if (last === undefined || rowCount > MERGED_ROWS_MAX) {
      runs.push([segment]);
      rowCount = entry.rowCount;
    } else {
      last.push(segment);
    }
    // A damaged segment stays as it is, and its neighbours do not become one past it.
    if (entry.quarantined) rowCount = Infinity;
  }
  return runs.filter(([first, ...others]) => {
    if (first === undefined || first.entry.quarantined) return false;
    return others.length > 0 || discardableShare(first, horizonSeq) > 0;
  });
}

/** How much of a segment nobody can ask for any more, from 0 to 1. */
export function discardableShare({ deletions, entry }: OpenSegment, horizonSeq: Seq): number {
  if (entry.minSeq > horizonSeq) return 0;
  let count = 0;
  deletions.visitAll((_row, seq) => {
    if (seq <= horizonSeq) count += 1;
  });
  return count / entry.rowCount;
}

/** About how much of a segment is past its time to live, from 0 to 1: its rows came evenly. */
export function expiredShare({ entry }: OpenSegment, expiredSeq: number): number {
  const { maxSeq, minSeq } = entry;
  if (maxSeq <= expiredSeq) return 1;
  return Math.max(0, (expiredSeq - minSeq) / (maxSeq - minSeq));
}

/**
 * Drops segments of which every row is past its time to live, in the turn that is the caller's: those
 * that are damaged too, whose rows nobody needs any more.
 */
export function dropExpiredSegments(
  table: StoredTable,
  { manifest }: Pick<SegmentTools, "manifest">,
  expiredSeq: number,
): void {
  const expired = table.segments.filter(({ entry }) => entry.maxSeq <= expiredSeq);
  if (expired.length === 0) return;
  manifest.publish({ removeSegmentIds: expired.map(({ entry }) => entry.segmentId) });
  table.segments = table.segments.filter((segment) => !expired.includes(segment));
  for (const segment of expired) segment.drop();
}

/** What a merge is given beside the segments; an owner to erase is left out as a whole. */
export interface MergeTools extends SegmentTools {
  readonly erasedOwner?: number;
}

/**
 * Merges segments that are neighbours. Returns how many versions were left out.
 *
 * @throws {DiskError} @throws {CorruptionError}
 */
export async function mergeSegments(
  table: StoredTable,
  segments: readonly OpenSegment[],
  tools: MergeTools,
): Promise<number> {
  const drafts = new SegmentDrafts(tools, table.tableId);
  for (const segment of segments) {
    segment.pin();
    segment.beginJournal();
  }
  try {
    return await merge({ table, segments, tools, drafts });
  } finally {
    for (const segment of segments) {
      segment.endJournal();
      segment.unpin();
    }
    drafts.discard();
  }
}

interface Merge {
  readonly table: StoredTable;
  readonly segments: readonly OpenSegment[];
  readonly tools: MergeTools;
  readonly drafts: SegmentDrafts;
}

async function merge({ table, segments, tools, drafts }: Merge): Promise<number> {
  const { clock, manifest } = tools;
  const { tableId, definition } = table;
  const segmentId = manifest.nextSegmentId();
  const { columns, compression, keyColumnIds } = definition;
  // Copied before the first row is read; what comes later is in the journals.
  const before = segments.map((segment) => segment.deletionsUpTo(Infinity));
  const draft = drafts.adopt(segmentFileName(segmentId));
  const outcome = await written(segments, tools, {
    sources: segments.map(({ entry }) => ({
      path: tools.files.segmentPath(entry),
      bytes: entry.bytes,
    })),
    segmentId,
    tableId,
    keyColumnIds,
    columns,
    compression,
    history: {
      horizonSeq: horizonOf(table, clock.nowMs()),
      expiredSeq: table.expiredSeq(clock),
      erasedOwner: tools.erasedOwner,
      isOldest: segments[0] === table.segments[0],
      replaced: before.map((deletions) => replacementsOf(deletions)),
    },
    draft,
  });
  if (outcome === undefined || tools.isCancelled()) return 0;
  await drafts.sync(draft);
  if (tools.isCancelled()) return 0;
  return table.publishing.run(() =>
    publish({ table, segments, tools, drafts }, { segmentId, before, outcome }),
  );
}

/** Puts the merged segment into the place of its sources; no flush changes the segments meanwhile. */
async function publish(
  { table, segments, tools, drafts }: Merge,
  {
    segmentId,
    before,
    outcome: { discardedCount, lowWaters, newRows, summary },
  }: { segmentId: number; before: readonly DeletionVector[]; outcome: MergeOutcome },
): Promise<number> {
  const { tableId } = table;
  const deletions = new DeletionVector({ segmentId, rowCount: summary.rowCount });
  for (const [source, copied] of before.entries()) {
    copied.visitAll((row, seq) => {
      const newRow = newRows[source]?.[row] ?? DISCARDED;
      if (newRow !== DISCARDED) deletions.replace(newRow, seq);
    });
    await drafts.pause();
  }
  if (tools.isCancelled()) return 0;
  // With what flushes have noted on disk since: the log does not replay that any more.
  bringOver(segments, newRows, deletions);
  const { flushedSeq } = table.progress;
  const isEmpty = summary.rowCount === 0;
  const entry = isEmpty
    ? undefined
    : await drafts.writeEntry(segmentId, { summary, deletions, upTo: flushedSeq });
  if (tools.isCancelled()) return 0;
  if (entry !== undefined) drafts.moveIntoPlace({ isFirst: false });
  assert(table.progress.flushedSeq === flushedSeq, "no flush publishes while a merge does");
  const progress = { ...table.progress, lowWater: table.progress.lowWater.raisedBy(lowWaters) };
  // The draft of a segment without rows is not listed, and goes like any other.
  if (entry !== undefined) drafts.notePublishing();
  tools.manifest.publish({
    addSegments: entry === undefined ? [] : [entry],
    removeSegmentIds: segments.map((segment) => segment.entry.segmentId),
    ...(discardedCount === 0 ? {} : { tables: [tableStateOf(tableId, progress)] }),
  });
  table.progress = progress;
  bringOver(segments, newRows, deletions);
  replaceSegments(table, segments, { entry, deletions, flushedSeq, tools });
  return discardedCount;
}

/** The replaced rows of a segment as two columns. */
function replacementsOf(deletions: DeletionVector): { rows: Uint32Array; seqs: Float64Array } {
  const rows = new Uint32Array(deletions.count);
  const seqs = new Float64Array(deletions.count);
  let index = 0;
  deletions.visitAll((row, seq) => {
    rows[index] = row;
    seqs[index] = seq;
    index += 1;
  });
  return { rows, seqs };
}

/** What was replaced, or taken back, since the deletion vectors were copied or this was called. */
function bringOver(
  segments: readonly OpenSegment[],
  newRows: readonly Uint32Array[],
  deletions: DeletionVector,
): void {
  for (const [source, segment] of segments.entries()) {
    for (const { row, seq } of segment.takeJournal()) {
      const newRow = newRows[source]?.[row] ?? DISCARDED;
      // A tombstone that was left out, and its key came back meanwhile.
      if (newRow === DISCARDED) continue;
      if (seq === 0) deletions.revert(newRow);
      else deletions.replace(newRow, seq);
    }
  }
}

function replaceSegments(
  table: StoredTable,
  segments: readonly OpenSegment[],
  {
    entry,
    deletions,
    flushedSeq,
    tools,
  }: {
    entry: SegmentEntry | undefined;
    deletions: DeletionVector;
    flushedSeq: number;
    tools: SegmentTools;
  },
): void {
  const merged: OpenSegment[] = [];
  if (entry !== undefined) {
    const segment = new OpenSegment(entry, tools.files);
    segment.adoptDeletions(deletions);
    deletions.visitAll((_row, seq) => {
      if (seq > flushedSeq) segment.noteDirty(seq);
    });
    merged.push(segment);
  }
  const first = segments[0];
  table.segments = table.segments.flatMap((segment) => {
    if (segment === first) return merged;
    return segments.includes(segment) ? [] : [segment];
  });
  for (const segment of segments) segment.drop();
}

/** Damage that a merge meets quarantines the segment in which it is. */
async function written(
  segments: readonly OpenSegment[],
  tools: SegmentTools,
  job: MergeJob,
): Promise<MergeOutcome | undefined> {
  try {
    return await tools.jobs.merge(job, () => tools.isCancelled());
  } catch (error) {
    for (const segment of segments) segment.noteIfDamaged(error);
    throw error;
  }
}

/** 0 for small segments, and one more for each factor of the fan-in. */
function tierOf(rowCount: number): number {
  return Math.max(0, Math.ceil(Math.log(rowCount / SMALL_ROWS_MAX) / Math.log(FAN_IN)));
}
