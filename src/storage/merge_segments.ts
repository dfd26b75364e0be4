/**
 * Merges neighbouring segments of a table into one, so that the number of segments stays small
 * whatever the pace of flushes. Every version is kept: nothing that could be replayed is lost.
 *
 *     1 write tmp/<n>.seg from the sources, sync; its deletion vector likewise
 *     2 rename into place, sync the directory
 *     3 one manifest transaction: the merged segment instead of its sources
 *     4 readers go over in the turn of 3; the sources' files go with their last reader
 *
 * The sources stay in use all the while: what replaces their rows meanwhile is noted in journals
 * and brought over in the turn of 3. No flush of the table runs at the same time.
 */
import { assert } from "../base/assert.ts";
import { DeletionVector } from "./deletion_vector.ts";
import type { SegmentEntry } from "./manifest.ts";
import { mergedPieces } from "./merge_rows.ts";
import { deletionsUpTo, OpenSegment } from "./open_segment.ts";
import { SegmentDrafts, type SegmentTools } from "./segment_drafts.ts";
import type { StoredTable } from "./table.ts";

/** So many neighbours of one size are merged at a time, and each merge makes one this much larger. */
const FAN_IN = 8;

/** Merged segments have at most so many rows: bounds the length of a merge, and what it holds. */
const MERGED_ROWS_MAX: number = 4 * 1024 * 1024;

/** Segments up to this size are all of the smallest size. */
const SMALL_ROWS_MAX = 4096;

/** The oldest neighbours that are due to be merged; undefined when none are. */
export function segmentsToMerge(table: StoredTable): readonly OpenSegment[] | undefined {
  const { segments } = table;
  const tierMax = tierOf(MERGED_ROWS_MAX);
  for (let tier = 0; tier <= tierMax; tier += 1) {
    let run: OpenSegment[] = [];
    let rowCount = 0;
    for (const segment of segments) {
      const { entry } = segment;
      const isSmall = tierOf(entry.rowCount) <= tier && !entry.quarantined;
      if (!isSmall || rowCount + entry.rowCount > MERGED_ROWS_MAX) {
        run = [];
        rowCount = 0;
      }
      if (!isSmall) continue;
      run.push(segment);
      rowCount += entry.rowCount;
      if (run.length === FAN_IN) return run;
    }
  }
  return undefined;
}

/** Merges segments that are neighbours. @throws {DiskError} @throws {CorruptionError} */
export async function mergeSegments(
  table: StoredTable,
  segments: readonly OpenSegment[],
  tools: SegmentTools,
): Promise<void> {
  const drafts = new SegmentDrafts(tools, table.tableId);
  for (const segment of segments) {
    segment.pin();
    segment.beginJournal();
  }
  try {
    await merge({ table, segments, tools, drafts });
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
  readonly tools: SegmentTools;
  readonly drafts: SegmentDrafts;
}

async function merge({ table, segments, tools, drafts }: Merge): Promise<void> {
  const { manifest } = tools;
  const { tableId, definition } = table;
  const segmentId = manifest.nextSegmentId();
  const { columns, keyColumnIds } = definition;
  const newRows = segments.map(({ entry }) => new Uint32Array(entry.rowCount));
  // Copied before the first row is read; what comes later is in the journals.
  const before = segments.map((segment) => segment.deletionsUpTo(Infinity));
  const pieces = guarded(
    segments,
    mergedPieces({ segments, columns, newRows }, { segmentId, tableId, keyColumnIds, columns }),
  );
  const summary = await drafts.writeSegment(segmentId, pieces);
  if (tools.isCancelled()) return;

  const deletions = new DeletionVector({ segmentId, rowCount: summary.rowCount });
  for (const [source, copied] of before.entries()) {
    copied.visitAll((row, seq) => deletions.replace(newRows[source]?.[row] ?? 0, seq));
    await drafts.pause();
  }
  const { flushedSeq } = table.progress;
  const durable = deletionsUpTo(deletions, flushedSeq);
  const entry = await drafts.writeEntry(segmentId, { summary, deletions: durable });
  if (tools.isCancelled()) return;
  drafts.moveIntoPlace({ isFirst: false });
  assert(table.progress.flushedSeq === flushedSeq, "no flush runs while segments are merged");
  drafts.notePublishing();
  manifest.publish({
    addSegments: [entry],
    removeSegmentIds: segments.map((segment) => segment.entry.segmentId),
  });
  bringOver(segments, newRows, deletions);
  replaceSegments(table, segments, { entry, deletions, flushedSeq, tools });
}

/** What was replaced, or taken back, since the deletion vectors were copied. */
function bringOver(
  segments: readonly OpenSegment[],
  newRows: readonly Uint32Array[],
  deletions: DeletionVector,
): void {
  for (const [source, segment] of segments.entries()) {
    for (const { row, seq } of segment.endJournal()) {
      const newRow = newRows[source]?.[row] ?? 0;
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
  }: { entry: SegmentEntry; deletions: DeletionVector; flushedSeq: number; tools: SegmentTools },
): void {
  const merged = new OpenSegment(entry, tools.files);
  merged.adoptDeletions(deletions);
  deletions.visitAll((_row, seq) => {
    if (seq > flushedSeq) merged.noteDirty(seq);
  });
  const first = segments[0];
  table.segments = table.segments.flatMap((segment) => {
    if (segment === first) return [merged];
    return segments.includes(segment) ? [] : [segment];
  });
  for (const segment of segments) segment.drop();
}

/** Damage that a merge meets quarantines the segment in which it is. */
function* guarded<T, R>(segments: readonly OpenSegment[], steps: Generator<T, R>): Generator<T, R> {
  for (;;) {
    const step = guardAll(segments, () => steps.next());
    if (step.done === true) return step.value;
    yield step.value;
  }
}

function guardAll<T>(segments: readonly OpenSegment[], read: () => T): T {
  try {
    return read();
  } catch (error) {
    for (const segment of segments) segment.noteIfDamaged(error);
    throw error;
  }
}

/** 0 for small segments, and one more for each factor of the fan-in. */
function tierOf(rowCount: number): number {
  return Math.max(0, Math.ceil(Math.log(rowCount / SMALL_ROWS_MAX) / Math.log(FAN_IN)));
}
