/**
 * Turns a frozen memtable that is fully durable in the log into a segment.
 *
 *     1 write tmp/<n>.seg in the data directory or the table's storage, and sync it; likewise new
 *       deletion vectors for the segments whose rows the memtable replaces
 *     2 rename the files into place, sync the directory
 *     3 one manifest transaction: the segment, the deletion vectors, the table's flushed seq
 *     4 switch readers from the memtable to the segment, in the same tick as step 3
 *     5 remove the replaced deletion vectors
 *
 * A crash before step 3 leaves unlisted files and a complete log. A crash after step 3 leaves at
 * most old deletion vectors. A flush discards no version, so history stays complete.
 */
import { assert } from "../../base/assert.ts";
import { asOneChange } from "../../base/bugs.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { DeletionHash, SegmentEntry } from "../contract/manifest.ts";
import type { FlushResult } from "../contract/store_figures.ts";
import type { DeletionVector } from "../deletions/deletion_vector.ts";
import { segmentFileName } from "../directory/file_names.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { frozenRowsOf, ReplacementCopy } from "../memtable/memtable_segment.ts";
import type { SegmentSummary } from "../segment/writer.ts";
import type { IndexOutput } from "../table/index_builder.ts";
import { OpenSegment } from "../table/open_segment.ts";
import { type StoredTable, tableStateOf } from "../table/table.ts";
import { PendingSegments, type SegmentTools } from "./pending_segments.ts";

/** The result of a flush that was cancelled or had no row to write. */
export const NOTHING: FlushResult = { versions: 0 };

/** The maximum number of replacements, missed by recovery, that are recorded in one step. */
const MISSED_PER_STEP = 4096;

/** A segment that gets a new deletion vector. */
interface ChangedSegment {
  readonly segment: OpenSegment;
  readonly deletionHash: DeletionHash;
}

/**
 * Flushes a frozen memtable.
 * @throws {DiskError} If a write fails or the table's storage is missing. The memtable stays
 *   frozen.
 * @throws {DatabaseError}
 */
export async function flushTable(
  table: StoredTable,
  memtable: Memtable,
  tools: SegmentTools,
): Promise<FlushResult> {
  if (memtable.rowCount === 0) {
    if (table.frozen === memtable) table.frozen = undefined;
    return NOTHING;
  }
  const { home } = table.definition;
  tools.files.requireThere(home, table.segments);
  const pending = new PendingSegments(tools, { tableId: table.tableId, home });
  try {
    return await new TableFlush(table, memtable, { tools, pending }).run();
  } finally {
    pending.discard();
  }
}

class TableFlush {
  readonly #table: StoredTable;
  readonly #memtable: Memtable;
  readonly #tools: SegmentTools;
  readonly #flushedSeq: Seq;
  readonly #pending: PendingSegments;

  constructor(
    table: StoredTable,
    memtable: Memtable,
    { tools, pending }: { tools: SegmentTools; pending: PendingSegments },
  ) {
    this.#table = table;
    this.#memtable = memtable;
    this.#tools = tools;
    this.#flushedSeq = memtable.lastSeq as Seq;
    this.#pending = pending;
  }

  async run(): Promise<FlushResult> {
    const { manifest, segmentWork } = this.#tools;
    const { tableId, definition } = this.#table;
    const memtable = this.#memtable;
    const segmentId = manifest.nextSegmentId();
    const { compression, keyColumnIds } = definition;
    const pendingPath = this.#pending.adopt(segmentFileName(segmentId));
    const rows = frozenRowsOf(memtable);
    const indexes = this.#pending.indexOutputs(segmentId, this.#table.indexes);
    const job = { segmentId, tableId, keyColumnIds, compression, rows, indexes, pendingPath };
    const outcome = await segmentWork.flush(job, () => this.#tools.isCancelled());
    if (outcome === undefined || this.#tools.isCancelled()) return NOTHING;
    const { order, summary } = outcome;
    const { rowCount } = summary;
    await this.#pending.sync(pendingPath);
    await this.#pending.syncIndexes(indexes);
    if (this.#tools.isCancelled()) return NOTHING;

    const copy = new ReplacementCopy(memtable, order, { segmentId, rowCount });
    for (const _ of copy.refreshSteps()) await this.#pending.pause();
    return this.#table.publishing.run(() => this.#finish(segmentId, { summary, indexes }, copy));
  }

  /** Puts a written segment into use. No merge may change the list of segments in the meantime. */
  async #finish(
    segmentId: number,
    { indexes, summary }: { summary: SegmentSummary; indexes: readonly IndexOutput[] },
    copy: ReplacementCopy,
  ): Promise<FlushResult> {
    if (this.#tools.isCancelled()) return NOTHING;
    const { rowCount } = summary;
    const { deletions } = copy;
    const upTo = this.#flushedSeq;
    const entry = await this.#pending.writeEntry(segmentId, { summary, deletions, indexes, upTo });
    const changed = await this.#writeChangedDeletions();
    if (this.#tools.isCancelled()) return NOTHING;
    await this.#pending.moveIntoPlace(this.#table.allSegments);
    if (this.#tools.isCancelled()) return NOTHING;
    copy.refresh();
    const outdated = asOneChange(() => this.#publish(entry, copy.deletions, changed));
    const { files } = this.#tools;
    for (const old of outdated) files.removeFile(files.deletionVectorPath(old));
    return { versions: rowCount };
  }

  /** Writes deletion vectors for older segments whose rows this memtable replaces. */
  async #writeChangedDeletions(): Promise<ChangedSegment[]> {
    const changed: ChangedSegment[] = [];
    for (const segment of this.#table.segments) {
      await this.#noteMissed(segment);
      if (!segment.isDirtyUpTo(this.#flushedSeq)) continue;
      const entry = { ...segment.entry, deletionGeneration: segment.nextGeneration() };
      const { deletions } = segment;
      const upTo = this.#flushedSeq;
      const deletionHash = await this.#pending.writeDeletions(entry, { deletions, upTo });
      changed.push({ segment, deletionHash });
      await this.#pending.pause();
    }
    return changed;
  }

  /**
   * Records replacements of a segment's rows that recovery missed. After this flush, the log can
   * no longer provide them.
   */
  async #noteMissed(segment: OpenSegment): Promise<void> {
    const { files } = this.#tools;
    try {
      while (segment.missedCount > 0) {
        segment.noteSomeMissed(MISSED_PER_STEP);
        await this.#pending.pause();
      }
    } catch (error) {
      // Ignoring the damage is safe: once a segment is found damaged, nobody reads it.
      if (!(error instanceof CorruptionError)) throw error;
      files.quarantineForGood(segment, error);
    }
  }

  /**
   * Publishes the new segment. Returns the manifest entries of the deletion vectors that are no
   * longer listed.
   */
  #publish(
    entry: SegmentEntry,
    deletions: DeletionVector,
    changed: readonly ChangedSegment[],
  ): SegmentEntry[] {
    const table = this.#table;
    const memtable = this.#memtable;
    const { clock, files } = this.#tools;
    assert(table.frozen === memtable, "flush: frozen memtable was replaced during the flush");
    const flushedSeq = this.#flushedSeq;
    const lastFlushedAtMs = clock.nowMs();
    const { lowWatermark } = table.progress;
    // The entries are checked only now, because a segment may have been quarantined in the
    // meantime.
    const entries = changed.map(({ segment: { listedEntry }, deletionHash }) =>
      withDeletions(listedEntry, deletionHash),
    );
    this.#pending.publish({
      addSegments: [entry],
      changeSegments: entries,
      tables: [tableStateOf(table.tableId, { flushedSeq, lowWatermark, lastFlushedAtMs })],
    });
    const segment = new OpenSegment(entry, files);
    segment.adoptDeletions(deletions);
    segment.noteDirtyAbove(flushedSeq);
    const outdated = changed.map((change) => change.segment.entry);
    for (const { deletionHash, segment: older } of changed) {
      older.entry = withDeletions(older.entry, deletionHash);
      older.noteWritten(flushedSeq);
    }
    table.segments = [...table.segments, segment];
    table.frozen = undefined;
    table.progress = { flushedSeq, lowWatermark, lastFlushedAtMs };
    return outdated.filter(({ deletionGeneration }) => deletionGeneration > 0);
  }
}

function withDeletions(entry: SegmentEntry, deletionHash: DeletionHash): SegmentEntry {
  return { ...entry, deletionGeneration: deletionHash.generation, deletionHash };
}
