/**
 * Merges segments of a table, so that their number stays small at any flush rate. A merge also
 * separates current versions from history, and discards versions that history no longer has to
 * keep.
 *
 *     1 write tmp/<n>.seg from the sources, sync: one segment of current versions, one of obsolete
 *       versions, and the deletion vector of the first
 *     2 rename into place, sync the directory
 *     3 one manifest transaction: the merged segments instead of their sources
 *     4 switch readers in the same tick as 3; the last reader of a source removes its files
 *
 * The sources are either neighbouring segments with current versions or history segments, which
 * become a single segment. An output without rows is not created.
 *
 * The sources stay in use during the merge, and each records the replacements of its rows. The
 * merge applies these to the result over several ticks before step 3, and the last of them in the
 * tick of step 3. A version that was current at the beginning stays in the current output,
 * possibly marked as replaced. A version replaced at or below the flushed seq never changes, so
 * history needs no update. A flush of the table may run at the same time, but only one of the two
 * may change the list of segments and deletion vectors at a time.
 */
import { assert } from "../../base/assert.ts";
import { asOneChange } from "../../base/bugs.ts";
import type { SeqGenerator } from "../../base/seq.ts";
import { sharedFloats, sharedWords } from "../../base/shared_arrays.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { segmentFileName } from "../directory/file_names.ts";
import { type HistoryLimits, NOT_CURRENT } from "../table/history.ts";
import { OpenSegment } from "../table/open_segment.ts";
import { type StoredTable, tableStateOf } from "../table/table.ts";
import { retentionFloorOf } from "./history_size.ts";
import type { MergeJob, MergeOutcome, MergeOutput } from "./merge_job.ts";
import { PendingSegments, type SegmentTools } from "./pending_segments.ts";

/**
 * Drops segments in which every row has expired, within the caller's tick. Damaged segments are
 * dropped too, since their rows are no longer needed.
 */
export function dropExpiredSegments(
  table: StoredTable,
  { manifest }: Pick<SegmentTools, "manifest">,
  expiredSeq: number,
): void {
  const expired = table.allSegments.filter(({ entry }) => entry.maxSeq <= expiredSeq);
  if (expired.length === 0) return;
  asOneChange(() => {
    manifest.publish({ removeSegmentIds: expired.map(({ entry }) => entry.segmentId) });
    table.segments = table.segments.filter((segment) => !expired.includes(segment));
    table.history = table.history.filter((segment) => !expired.includes(segment));
    for (const segment of expired) segment.drop();
  });
}

/** The maximum number of replacements applied in one step. */
const NOTED_PER_STEP = 16_384;

type Replaced = HistoryLimits["replaced"][number];

/**
 * The dependencies of a merge, and the owner to be erased. If `erasedOwner` is set, the merge
 * leaves out all rows of that owner.
 */
export interface MergeTools extends SegmentTools {
  readonly seqs: SeqGenerator;
  readonly erasedOwner?: number;
}

/**
 * Merges neighbouring segments, or history segments. Returns the number of versions discarded.
 * Returns undefined if nothing was merged because the work was cancelled or a segment is
 * quarantined: replacements recorded for a quarantined segment may be lost, so merging it could
 * bring replaced rows back.
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
  const pending = new PendingSegments(tools, { tableId: table.tableId, home });
  for (const segment of segments) {
    segment.pin();
    segment.beginReplacementLog();
  }
  try {
    return await merge({ table, segments, tools, pending });
  } finally {
    for (const segment of segments) {
      segment.endReplacementLog();
      segment.unpin();
    }
    pending.discard();
  }
}

interface Merge {
  readonly table: StoredTable;
  readonly segments: readonly OpenSegment[];
  readonly tools: MergeTools;
  readonly pending: PendingSegments;
}

/** The state of the source segments, captured before the first row is read. */
interface CopiedRows {
  /** The deletion vector of each source; empty if the sources are history segments. */
  readonly before: readonly DeletionVector[];
  readonly job: MergeJob;
}

async function merge(parts: Merge): Promise<number | undefined> {
  const { pending, segments, table, tools } = parts;
  const copied = await copiedFrom(parts);
  const { job } = copied;
  const outcome = await written(segments, tools, job);
  if (outcome === undefined || tools.isCancelled()) return undefined;
  for (const output of ["current", "past"] as const) {
    const pendingPath = job[output]?.pendingPath;
    if (pendingPath === undefined) continue;
    if (outcome[output] === undefined) pending.forget(pendingPath);
    else await pending.sync(pendingPath);
  }
  if (outcome.current !== undefined) await pending.syncIndexes(job.indexes);
  else for (const { pendingPath } of job.indexes) pending.forget(pendingPath);
  if (tools.isCancelled()) return undefined;
  return table.publishing.run(() => publish(parts, copied, outcome));
}

async function copiedFrom({ table, segments, tools, pending }: Merge): Promise<CopiedRows> {
  const { files, manifest, seqs } = tools;
  const { tableId, definition, progress } = table;
  const { columns, compression, keyColumnIds } = definition;
  const isOfHistory = segments.some(({ isHistory }) => isHistory);
  const output = (): MergeOutput => {
    const segmentId = manifest.nextSegmentId();
    return { segmentId, pendingPath: pending.adopt(segmentFileName(segmentId)) };
  };
  // The replacement logs record replacements made after these deletion vectors were copied.
  const before = isOfHistory ? [] : segments.map((each) => each.deletionsUpTo(Infinity));
  const replaced: Replaced[] = [];
  for (const deletions of before) replaced.push(await replacedRowsOf(deletions, pending));
  const current = isOfHistory ? undefined : output();
  const job: MergeJob = {
    sources: segments.map(({ entry }) => ({ path: files.segmentPath(entry), entry })),
    ...(current === undefined ? {} : { current }),
    past: output(),
    indexes: current === undefined ? [] : pending.indexOutputs(current.segmentId, table.indexes),
    tableId,
    keyColumnIds,
    columns,
    compression,
    history: {
      retentionFloorSeq: retentionFloorOf(table, seqs),
      expiredSeq: table.discardableSeq(seqs),
      erasedOwner: tools.erasedOwner,
      settledSeq: progress.flushedSeq,
      replaced,
    },
  };
  return { before, job };
}

/**
 * Replaces the source segments with the merged segments. Flushes cannot change the list of
 * segments in the meantime.
 */
async function publish(
  { table, segments, tools, pending }: Merge,
  { before, job }: CopiedRows,
  { current, discardedCount, lowWatermarks, newRows, past }: MergeOutcome,
): Promise<number | undefined> {
  const { tableId } = table;
  const segmentId = job.current?.segmentId ?? 0;
  const deletions = new DeletionVector({ segmentId, rowCount: current?.rowCount ?? 0 });
  for (const [source, copied] of before.entries()) {
    const steps = copied.visitSteps((row, seq) => {
      const newRow = newRows[source]?.[row] ?? NOT_CURRENT;
      if (newRow !== NOT_CURRENT) deletions.replace(newRow, seq);
    });
    await pending.finished(steps);
  }
  // These replacements include those written by flushes since the merge began, because the log no
  // longer replays them.
  await pending.finished(bringOver(segments, newRows, deletions));
  if (tools.isCancelled()) return undefined;
  const { flushedSeq } = table.progress;
  const added: SegmentEntry[] = [];
  if (current !== undefined) {
    const parts = { summary: current, deletions, indexes: job.indexes, upTo: flushedSeq };
    added.push(await pending.writeEntry(segmentId, parts));
  }
  if (past !== undefined) added.push(pending.entryOf(job.past?.segmentId ?? 0, past));
  if (tools.isCancelled()) return undefined;
  if (added.length > 0) await pending.moveIntoPlace(table.allSegments);
  // Most replacements are applied before the publishing tick, which thus need not apply a large
  // commit.
  await pending.finished(bringOver(segments, newRows, deletions));
  if (tools.isCancelled()) return undefined;
  assert(table.progress.flushedSeq === flushedSeq, "merge: a flush was published during the merge");
  const progress = {
    ...table.progress,
    lowWatermark: table.progress.lowWatermark.raisedBy(lowWatermarks),
  };
  asOneChange(() => {
    pending.publish({
      addSegments: added,
      removeSegmentIds: segments.map((segment) => segment.entry.segmentId),
      ...(discardedCount === 0 ? {} : { tables: [tableStateOf(tableId, progress)] }),
    });
    table.progress = progress;
    const rest = bringOver(segments, newRows, deletions);
    while (rest.next().done !== true);
    replaceSegments(table, segments, { added, deletions, flushedSeq, tools });
  });
  return discardedCount;
}

/**
 * Returns the replaced rows of a segment as two columns in memory shared with the merging thread.
 */
async function replacedRowsOf(
  deletions: DeletionVector,
  pending: PendingSegments,
): Promise<Replaced> {
  const rows = sharedWords(deletions.count);
  const seqs = sharedFloats(deletions.count);
  let index = 0;
  const steps = deletions.visitSteps((row, seq) => {
    rows[index] = row;
    seqs[index] = seq;
    index += 1;
  });
  await pending.finished(steps);
  return { rows, seqs };
}

/**
 * Applies to merged segments the replacements and rollbacks made since the deletion vectors of the
 * sources were copied or since the previous call. After the tick of the last step, nothing is left
 * to apply.
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
          const newRow = newRows[source]?.[row] ?? NOT_CURRENT;
          // The replaced version is not in the merged segment of current versions. It was a
          // tombstone whose key was inserted again in the meantime.
          if (newRow === NOT_CURRENT) return;
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
  sources: readonly OpenSegment[],
  {
    added,
    deletions,
    flushedSeq,
    tools,
  }: {
    added: readonly SegmentEntry[];
    deletions: DeletionVector;
    flushedSeq: number;
    tools: SegmentTools;
  },
): void {
  const merged = added.map((entry) => new OpenSegment(entry, tools.files));
  const past = merged.filter(({ isHistory }) => isHistory);
  const current = merged.filter(({ isHistory }) => !isHistory);
  for (const segment of current) {
    segment.adoptDeletions(deletions);
    segment.noteDirtyAbove(flushedSeq);
  }
  const first = sources[0];
  table.segments = table.segments.flatMap((segment) => {
    if (segment === first) return current;
    return sources.includes(segment) ? [] : [segment];
  });
  table.history = [...table.history.filter((segment) => !sources.includes(segment)), ...past];
  table.history.sort((left, right) => left.entry.minSeq - right.entry.minSeq);
  for (const segment of sources) segment.drop();
}

/** Runs the merge job. If the job finds a segment damaged, the segment is quarantined. */
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
