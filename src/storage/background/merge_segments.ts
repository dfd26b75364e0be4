/**
 * Merges neighbouring segments of a table into one, so that the number of segments stays small
 * whatever the pace of flushes, and leaves out versions that history need not keep any more.
 *
 *     1 write tmp/<n>.seg from the sources, sync; its deletion vector likewise
 *     2 rename into place, sync the directory
 *     3 one manifest transaction: the merged segment instead of its sources
 *     4 readers go over in the turn of 3; the sources' files go with their last reader
 *
 * The sources stay in use all the while: what replaces their rows meanwhile is noted by each and
 * brought over in turns before 3, and the rest in its own. A flush of the table may run at the same
 * time, but for what both do to the list of segments and to deletion vectors: that is one after the
 * other.
 */
import { assert } from "../../base/assert.ts";
import { asOneChange } from "../../base/bugs.ts";
import type { SeqGenerator } from "../../base/seq.ts";
import { sharedFloats, sharedWords } from "../../base/shared_arrays.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { segmentFileName } from "../directory/file_names.ts";
import { DISCARDED, type HistoryLimits } from "../table/history.ts";
import { OpenSegment } from "../table/open_segment.ts";
import { type StoredTable, tableStateOf } from "../table/table.ts";
import { horizonOf } from "./history_size.ts";
import type { MergeJob, MergeOutcome } from "./merge_job.ts";
import { SegmentDrafts, type SegmentTools } from "./segment_drafts.ts";

/**
 * Drops segments of which every row is past its time to live, in the turn that is the caller's:
 * those that are damaged too, whose rows nobody needs any more.
 */
export function dropExpiredSegments(
  table: StoredTable,
  { manifest }: Pick<SegmentTools, "manifest">,
  expiredSeq: number,
): void {
  const expired = table.segments.filter(({ entry }) => entry.maxSeq <= expiredSeq);
  if (expired.length === 0) return;
  asOneChange(() => {
    manifest.publish({ removeSegmentIds: expired.map(({ entry }) => entry.segmentId) });
    table.segments = table.segments.filter((segment) => !expired.includes(segment));
    for (const segment of expired) segment.drop();
  });
}

/** Replacements that are brought over in one step. */
const NOTED_PER_STEP = 16_384;

type Replaced = HistoryLimits["replaced"][number];

/** What a merge is given beside the segments; an owner to erase is left out as a whole. */
export interface MergeTools extends SegmentTools {
  readonly seqs: SeqGenerator;
  readonly erasedOwner?: number;
}

/**
 * Merges segments that are neighbours. Returns how many versions were left out; undefined when
 * nothing was merged: the work was cancelled, or one of them is quarantined. Replacements of its
 * rows may be noted nowhere, and rows that nobody may read would be live again.
 *
 * @throws {DiskError} @throws {CorruptionError}
 */
export async function mergeSegments(
  table: StoredTable,
  segments: readonly OpenSegment[],
  ofCaller: MergeTools,
): Promise<number | undefined> {
  const isCancelled = (): boolean =>
    ofCaller.isCancelled() || segments.some(({ entry }) => entry.quarantined);
  if (isCancelled()) return undefined;
  const tools = { ...ofCaller, isCancelled };
  const { home } = table.definition;
  tools.files.requireThere(home, segments);
  const drafts = new SegmentDrafts(tools, { tableId: table.tableId, home });
  for (const segment of segments) {
    segment.pin();
    segment.beginReplacementLog();
  }
  try {
    return await merge({ table, segments, tools, drafts });
  } finally {
    for (const segment of segments) {
      segment.endReplacementLog();
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

async function merge({ table, segments, tools, drafts }: Merge): Promise<number | undefined> {
  const { manifest, seqs } = tools;
  const { tableId, definition } = table;
  const segmentId = manifest.nextSegmentId();
  const { columns, compression, keyColumnIds } = definition;
  // Copied before the first row is read; what comes later is in the replacement logs.
  const before = segments.map((segment) => segment.deletionsUpTo(Infinity));
  const replaced: Replaced[] = [];
  for (const deletions of before) replaced.push(await replacedRowsOf(deletions, drafts));
  const draft = drafts.adopt(segmentFileName(segmentId));
  const outcome = await written(segments, tools, {
    sources: segments.map(({ entry }) => ({
      path: tools.files.segmentPath(entry),
      entry,
    })),
    segmentId,
    tableId,
    keyColumnIds,
    columns,
    compression,
    history: {
      horizonSeq: horizonOf(table, seqs),
      expiredSeq: table.expiredSeq(seqs),
      erasedOwner: tools.erasedOwner,
      isOldest: segments[0] === table.segments[0],
      replaced,
    },
    draft,
  });
  if (outcome === undefined || tools.isCancelled()) return undefined;
  await drafts.sync(draft);
  if (tools.isCancelled()) return undefined;
  return table.publishing.run(() =>
    publish({ table, segments, tools, drafts }, { segmentId, before, outcome }),
  );
}

/**
 * Puts the merged segment into the place of its sources; no flush changes the segments meanwhile.
 */
async function publish(
  { table, segments, tools, drafts }: Merge,
  {
    segmentId,
    before,
    outcome: { discardedCount, lowWaters, newRows, summary },
  }: { segmentId: number; before: readonly DeletionVector[]; outcome: MergeOutcome },
): Promise<number | undefined> {
  const { tableId } = table;
  const deletions = new DeletionVector({ segmentId, rowCount: summary.rowCount });
  for (const [source, copied] of before.entries()) {
    const steps = copied.visitSteps((row, seq) => {
      const newRow = newRows[source]?.[row] ?? DISCARDED;
      if (newRow !== DISCARDED) deletions.replace(newRow, seq);
    });
    await drafts.finished(steps);
  }
  // With what flushes have noted on disk since: the log does not replay that any more.
  await drafts.finished(bringOver(segments, newRows, deletions));
  if (tools.isCancelled()) return undefined;
  const { flushedSeq } = table.progress;
  const isEmpty = summary.rowCount === 0;
  const entry = isEmpty
    ? undefined
    : await drafts.writeEntry(segmentId, { summary, deletions, upTo: flushedSeq });
  if (tools.isCancelled()) return undefined;
  if (entry !== undefined) await drafts.moveIntoPlace(table.segments);
  // A large commit may have come meanwhile, which this turn should not have to bring over.
  await drafts.finished(bringOver(segments, newRows, deletions));
  if (tools.isCancelled()) return undefined;
  assert(table.progress.flushedSeq === flushedSeq, "no flush publishes while a merge does");
  const progress = { ...table.progress, lowWater: table.progress.lowWater.raisedBy(lowWaters) };
  asOneChange(() => {
    drafts.publish({
      addSegments: entry === undefined ? [] : [entry],
      removeSegmentIds: segments.map((segment) => segment.entry.segmentId),
      ...(discardedCount === 0 ? {} : { tables: [tableStateOf(tableId, progress)] }),
    });
    table.progress = progress;
    const rest = bringOver(segments, newRows, deletions);
    while (rest.next().done !== true);
    replaceSegments(table, segments, { entry, deletions, flushedSeq, tools });
  });
  return discardedCount;
}

/** The replaced rows of a segment as two columns, which the thread that merges shares. */
async function replacedRowsOf(deletions: DeletionVector, drafts: SegmentDrafts): Promise<Replaced> {
  const rows = sharedWords(deletions.count);
  const seqs = sharedFloats(deletions.count);
  let index = 0;
  const steps = deletions.visitSteps((row, seq) => {
    rows[index] = row;
    seqs[index] = seq;
    index += 1;
  });
  await drafts.finished(steps);
  return { rows, seqs };
}

/**
 * Brings over what was replaced, or taken back, since the deletion vectors were copied or this was
 * last called, until there is nothing left in the turn of the last step.
 */
function* bringOver(
  segments: readonly OpenSegment[],
  newRows: readonly Uint32Array[],
  deletions: DeletionVector,
): Generator<void, void> {
  while (segments.some(({ notedCount }) => notedCount > 0)) {
    for (const [source, segment] of segments.entries()) {
      const noted = segment.takeReplacementLog();
      for (let from = 0; from < noted.count; from += NOTED_PER_STEP) {
        noted.visit(from, from + NOTED_PER_STEP, (row, seq) => {
          const newRow = newRows[source]?.[row] ?? DISCARDED;
          // A tombstone that was left out, and its key came back meanwhile.
          if (newRow === DISCARDED) return;
          if (seq === 0) deletions.revert(newRow);
          else deletions.replace(newRow, seq);
        });
        if (from + NOTED_PER_STEP < noted.count) yield;
      }
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
    segment.noteDirtyAbove(flushedSeq);
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
    return await tools.segmentWork.merge(job, () => tools.isCancelled());
  } catch (error) {
    for (const segment of segments) segment.noteIfDamaged(error);
    throw error;
  }
}
