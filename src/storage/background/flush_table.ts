/**
 * Turns a frozen memtable, all of it durable in the log, into a segment.
 *
 *     1 write tmp/<n>.seg, in the data directory or the table's storage, sync; likewise new deletion
 *       vectors of the segments whose rows it replaces
 *     2 rename them into place, sync the directory
 *     3 one manifest transaction: the segment, the deletion vectors, the table's flushed seq
 *     4 readers go over from the memtable to the segment, in the turn of 3
 *     5 remove the deletion vectors that were replaced
 *
 * A crash before 3 leaves files that nobody lists and a log that has everything; after 3, at most
 * old deletion vectors. Nothing is dropped here: history stays.
 */
import { assert } from "../../base/assert.ts";
import { asOneChange } from "../../base/bugs.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { DeletionHash, SegmentEntry } from "../contract/manifest.ts";
import type { FlushResult } from "../contract/store.ts";
import type { DeletionVector } from "../deletions/deletion_vector.ts";
import { segmentFileName } from "../directory/file_names.ts";
import type { Memtable } from "../memtable/memtable.ts";
import { frozenRowsOf, ReplacementCopy } from "../memtable/memtable_segment.ts";
import type { SegmentSummary } from "../segment/writer.ts";
import { OpenSegment } from "../table/open_segment.ts";
import { type StoredTable, tableStateOf } from "../table/table.ts";
import { SegmentDrafts, type SegmentTools } from "./segment_drafts.ts";

/** Of a flush that had nothing to do, or was cancelled. */
export const NOTHING: FlushResult = { versions: 0 };

/** Replacements that recovery missed are noted so many at a time. */
const MISSED_PER_STEP = 4096;

/** A segment, and its deletion vector to be. */
interface ChangedSegment {
  readonly segment: OpenSegment;
  readonly deletionHash: DeletionHash;
}

/**
 * @throws {DiskError} The memtable is then still frozen, and also if its storage is not there.
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
  const drafts = new SegmentDrafts(tools, { tableId: table.tableId, home });
  try {
    return await new TableFlush(table, memtable, { tools, drafts }).run();
  } finally {
    drafts.discard();
  }
}

class TableFlush {
  readonly #table: StoredTable;
  readonly #memtable: Memtable;
  readonly #tools: SegmentTools;
  readonly #flushedSeq: Seq;
  readonly #drafts: SegmentDrafts;

  constructor(
    table: StoredTable,
    memtable: Memtable,
    { tools, drafts }: { tools: SegmentTools; drafts: SegmentDrafts },
  ) {
    this.#table = table;
    this.#memtable = memtable;
    this.#tools = tools;
    this.#flushedSeq = memtable.lastSeq as Seq;
    this.#drafts = drafts;
  }

  async run(): Promise<FlushResult> {
    const { manifest, segmentWork } = this.#tools;
    const { tableId, definition } = this.#table;
    const memtable = this.#memtable;
    const segmentId = manifest.nextSegmentId();
    const { compression, keyColumnIds } = definition;
    const draft = this.#drafts.adopt(segmentFileName(segmentId));
    const rows = frozenRowsOf(memtable);
    const job = { segmentId, tableId, keyColumnIds, compression, rows, draft };
    const outcome = await segmentWork.flush(job, () => this.#tools.isCancelled());
    if (outcome === undefined || this.#tools.isCancelled()) return NOTHING;
    const { order, summary } = outcome;
    const { rowCount } = summary;
    await this.#drafts.sync(draft);
    if (this.#tools.isCancelled()) return NOTHING;

    const copy = new ReplacementCopy(memtable, order, { segmentId, rowCount });
    for (const _ of copy.refreshSteps()) await this.#drafts.pause();
    return this.#table.publishing.run(() => this.#finish(segmentId, summary, copy));
  }

  /** No merge changes the list of segments meanwhile. */
  async #finish(
    segmentId: number,
    summary: SegmentSummary,
    copy: ReplacementCopy,
  ): Promise<FlushResult> {
    if (this.#tools.isCancelled()) return NOTHING;
    const { rowCount } = summary;
    const { deletions } = copy;
    const upTo = this.#flushedSeq;
    const entry = await this.#drafts.writeEntry(segmentId, { summary, deletions, upTo });
    const changed = await this.#writeChangedDeletions();
    if (this.#tools.isCancelled()) return NOTHING;
    await this.#drafts.moveIntoPlace(this.#table.segments);
    if (this.#tools.isCancelled()) return NOTHING;
    copy.refresh();
    const outdated = asOneChange(() => this.#publish(entry, copy.deletions, changed));
    const { files } = this.#tools;
    for (const old of outdated) files.removeFile(files.deletionVectorPath(old));
    return { versions: rowCount };
  }

  /** Writes deletion vectors of older segments whose rows this memtable replaces. */
  async #writeChangedDeletions(): Promise<ChangedSegment[]> {
    const changed: ChangedSegment[] = [];
    for (const segment of this.#table.segments) {
      await this.#noteMissed(segment);
      if (!segment.isDirtyUpTo(this.#flushedSeq)) continue;
      const entry = { ...segment.entry, deletionGeneration: segment.nextGeneration() };
      const { deletions } = segment;
      const upTo = this.#flushedSeq;
      const deletionHash = await this.#drafts.writeDeletions(entry, { deletions, upTo });
      changed.push({ segment, deletionHash });
      await this.#drafts.pause();
    }
    return changed;
  }

  /** Once this flush is published, the log is not asked any more for what recovery missed. */
  async #noteMissed(segment: OpenSegment): Promise<void> {
    const { files } = this.#tools;
    try {
      while (segment.missedCount > 0) {
        segment.noteSomeMissed(MISSED_PER_STEP);
        await this.#drafts.pause();
      }
    } catch (error) {
      // Safe: nobody reads the segment any more.
      if (!(error instanceof CorruptionError)) throw error;
      files.quarantineForGood(segment, error);
    }
  }

  /** Returns the entries whose deletion vectors are no longer listed. */
  #publish(
    entry: SegmentEntry,
    deletions: DeletionVector,
    changed: readonly ChangedSegment[],
  ): SegmentEntry[] {
    const table = this.#table;
    const memtable = this.#memtable;
    const { clock, files } = this.#tools;
    assert(table.frozen === memtable, "the flushed memtable is still the frozen one");
    const flushedSeq = this.#flushedSeq;
    const lastFlushedAtMs = clock.nowMs();
    const { lowWater } = table.progress;
    // Only now: the segment may have been quarantined meanwhile.
    const entries = changed.map(({ segment: { listedEntry }, deletionHash }) =>
      withDeletions(listedEntry, deletionHash),
    );
    this.#drafts.publish({
      addSegments: [entry],
      changeSegments: entries,
      tables: [tableStateOf(table.tableId, { flushedSeq, lowWater, lastFlushedAtMs })],
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
    table.progress = { flushedSeq, lowWater, lastFlushedAtMs };
    return outdated.filter(({ deletionGeneration }) => deletionGeneration > 0);
  }
}

function withDeletions(entry: SegmentEntry, deletionHash: DeletionHash): SegmentEntry {
  return { ...entry, deletionGeneration: deletionHash.generation, deletionHash };
}
