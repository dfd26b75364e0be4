/**
 * Turns a frozen memtable, all of it durable in the log, into a segment.
 *
 *     1 write tmp/<n>.seg, sync; likewise new deletion vectors of the segments whose rows it replaces
 *     2 rename them into place, sync the directory
 *     3 one manifest transaction: the segment, the deletion vectors, the table's flushed seq
 *     4 readers go over from the memtable to the segment, in the turn of 3
 *     5 remove the deletion vectors that were replaced
 *
 * A crash before 3 leaves files that nobody lists and a log that has everything; after 3, at most
 * old deletion vectors. Nothing is dropped here: history stays.
 */
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import type { Disk } from "../base/disk.ts";
import { BATCH_ROWS_MAX } from "../base/limits.ts";
import type { Seq } from "../base/seq.ts";
import type { DeletionVector } from "./deletion_vector.ts";
import {
  type DataPaths,
  deletionVectorFileName,
  segmentDirectory,
  segmentFileName,
} from "./file_names.ts";
import type { Manifest, SegmentEntry } from "./manifest.ts";
import type { Memtable } from "./memtable.ts";
import {
  type MemtableSource,
  memtablePieces,
  ReplacementCopy,
  segmentOrder,
} from "./memtable_segment.ts";
import { deletionsUpTo, OpenSegment } from "./open_segment.ts";
import { type SegmentSummary, writeSegment } from "./segment/writer.ts";
import type { LocalSegmentFiles } from "./segment_files.ts";
import type { FlushResult } from "./store.ts";
import type { StoredTable } from "./table.ts";

/** How long a flush may hold the event loop, about. */
const TURN_MS = 2;

/** Steps after which others get a turn in any case. */
const STEPS_PER_TURN = 8;

export interface FlushTools {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly manifest: Manifest;
  readonly files: LocalSegmentFiles;
  /** Whether the flush should stop at its next step. */
  isCancelled(): boolean;
}

/** A segment and its entry to be. */
interface ChangedSegment {
  readonly segment: OpenSegment;
  readonly entry: SegmentEntry;
}

interface DraftFile {
  readonly draft: string;
  readonly path: string;
}

/** @throws {DiskError} The memtable is then still frozen. */
export async function flushTable(
  table: StoredTable,
  memtable: Memtable,
  tools: FlushTools,
): Promise<FlushResult> {
  if (memtable.rowCount === 0) {
    if (table.frozen === memtable) table.frozen = undefined;
    return { versions: 0, bytes: 0 };
  }
  const flush = new TableFlush(table, memtable, tools);
  try {
    return await flush.run();
  } catch (error) {
    flush.discard();
    throw error;
  }
}

class TableFlush {
  readonly #table: StoredTable;
  readonly #memtable: Memtable;
  readonly #tools: FlushTools;
  readonly #flushedSeq: Seq;
  readonly #drafts: DraftFile[] = [];
  readonly #pause: () => Promise<void>;
  #isPublishing = false;

  constructor(table: StoredTable, memtable: Memtable, tools: FlushTools) {
    this.#table = table;
    this.#memtable = memtable;
    this.#tools = tools;
    this.#flushedSeq = memtable.lastSeq as Seq;
    this.#pause = pauser(tools.clock);
  }

  async run(): Promise<FlushResult> {
    const { manifest, clock, files } = this.#tools;
    const { tableId } = this.#table;
    const memtable = this.#memtable;
    const segmentId = manifest.nextSegmentId();
    const order = segmentOrder(memtable);
    const source = { memtable, order, columns: [...memtable.columns] };
    const { bytes, rowCount, minSeq, maxSeq } = await this.#writeSegment(segmentId, source);
    if (this.#tools.isCancelled()) return this.#cancel();

    const copy = new ReplacementCopy(memtable, order, { segmentId, rowCount });
    for (let row = 0; row < rowCount; row += BATCH_ROWS_MAX) {
      copy.refresh(row, Math.min(row + BATCH_ROWS_MAX, rowCount));
      await this.#pause();
    }
    const replaced = deletionsUpTo(copy.deletions, this.#flushedSeq);
    const entry: SegmentEntry = {
      segmentId,
      tableId,
      minSeq: minSeq as Seq,
      maxSeq: maxSeq as Seq,
      rowCount,
      bytes,
      deletionGeneration: replaced.count === 0 ? 0 : 1,
      createdAtMs: clock.nowMs(),
      quarantined: false,
    };
    if (replaced.count > 0) await this.#writeDeletions(entry, replaced);
    const changed = await this.#writeChangedDeletions();
    if (this.#tools.isCancelled()) return this.#cancel();
    this.#moveIntoPlace();
    copy.refresh(0, rowCount);
    const outdated = this.#publish(entry, copy.deletions, changed);
    for (const old of outdated) files.removeFile(files.deletionVectorPath(old));
    return { versions: rowCount, bytes };
  }

  /** Writes deletion vectors of older segments whose rows this memtable replaces. */
  async #writeChangedDeletions(): Promise<ChangedSegment[]> {
    const changed: ChangedSegment[] = [];
    for (const segment of this.#table.segments) {
      if (!segment.isDirtyUpTo(this.#flushedSeq)) continue;
      const { deletionGeneration } = segment.entry;
      const entry = { ...segment.entry, deletionGeneration: deletionGeneration + 1 };
      await this.#writeDeletions(entry, segment.deletionsUpTo(this.#flushedSeq));
      changed.push({ segment, entry });
      await this.#pause();
    }
    return changed;
  }

  /** Removes what was written, unless the manifest may already list it. */
  discard(): void {
    if (this.#isPublishing) return;
    for (const { draft, path } of this.#drafts) {
      this.#tools.files.removeFile(draft);
      this.#tools.files.removeFile(path);
    }
  }

  #cancel(): FlushResult {
    this.discard();
    return { versions: 0, bytes: 0 };
  }

  async #writeSegment(segmentId: number, source: MemtableSource): Promise<SegmentSummary> {
    const { disk } = this.#tools;
    const { tableId, definition } = this.#table;
    const { keyColumnIds } = definition;
    const info = { segmentId, tableId, keyColumnIds, columns: source.columns };
    const file = disk.open(this.#draftFor(segmentFileName(segmentId)), { exclusive: true });
    try {
      const steps = writeSegment(file, memtablePieces(source, info));
      for (;;) {
        const step = steps.next();
        if (step.done === true) {
          await file.sync();
          return step.value;
        }
        await this.#pause();
      }
    } finally {
      file.close();
    }
  }

  async #writeDeletions(entry: SegmentEntry, deletions: DeletionVector): Promise<void> {
    const { disk } = this.#tools;
    const name = deletionVectorFileName(entry.segmentId, entry.deletionGeneration);
    const draft = this.#draftFor(name);
    const file = disk.open(draft, { exclusive: true });
    try {
      file.write(deletions.encode(), 0);
      await file.sync();
    } finally {
      file.close();
    }
  }

  #draftFor(name: string): string {
    const { paths } = this.#tools;
    const draft = `${paths.tmp}/${name}`;
    this.#drafts.push({ draft, path: `${segmentDirectory(paths, this.#table.tableId)}/${name}` });
    return draft;
  }

  #moveIntoPlace(): void {
    const { disk, paths } = this.#tools;
    const directory = segmentDirectory(paths, this.#table.tableId);
    disk.makeDirectory(directory);
    // An attempt before this one may have made it without living to make the name durable.
    if (this.#table.segments.length === 0) disk.syncDirectory(paths.segments);
    for (const { draft, path } of this.#drafts) disk.rename(draft, path);
    disk.syncDirectory(directory);
  }

  /** Returns the entries whose deletion vectors are no longer listed. */
  #publish(
    entry: SegmentEntry,
    deletions: DeletionVector,
    changed: readonly ChangedSegment[],
  ): SegmentEntry[] {
    const table = this.#table;
    const memtable = this.#memtable;
    const { manifest, clock, files } = this.#tools;
    assert(table.frozen === memtable, "the flushed memtable is still the frozen one");
    const flushedSeq = this.#flushedSeq;
    const lastFlushedAtMs = clock.nowMs();
    const { lowWaterSeq } = table.progress;
    this.#isPublishing = true;
    manifest.publish({
      addSegments: [entry],
      changeSegments: changed.map((change) => change.entry),
      tables: [
        { tableId: table.tableId, flushedSeq, lowWaterSeq: lowWaterSeq as Seq, lastFlushedAtMs },
      ],
    });
    const segment = new OpenSegment(entry, files);
    segment.adoptDeletions(deletions);
    deletions.visitAll((_row, seq) => {
      if (seq > flushedSeq) segment.noteDirty(seq);
    });
    const outdated = changed.map((change) => change.segment.entry);
    for (const change of changed) {
      change.segment.entry = change.entry;
      change.segment.noteWritten(flushedSeq);
    }
    table.segments = [...table.segments, segment];
    table.frozen = undefined;
    table.progress = { flushedSeq, lowWaterSeq, lastFlushedAtMs };
    return outdated.filter(({ deletionGeneration }) => deletionGeneration > 0);
  }
}

/** Makes a function that lets other work run when it is time to. */
function pauser(clock: Clock): () => Promise<void> {
  let turnStartMs = clock.monotonicMs();
  let stepCount = 0;
  return async () => {
    stepCount += 1;
    if (stepCount % STEPS_PER_TURN !== 0 && clock.monotonicMs() - turnStartMs < TURN_MS) return;
    await clock.yield();
    turnStartMs = clock.monotonicMs();
  };
}
