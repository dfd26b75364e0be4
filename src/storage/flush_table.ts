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
import type { Seq } from "../base/seq.ts";
import { slice, take, type Vector } from "../types/mod.ts";
import { DeletionVector } from "./deletion_vector.ts";
import {
  type DataPaths,
  deletionVectorFileName,
  segmentDirectory,
  segmentFileName,
} from "./file_names.ts";
import type { Manifest, SegmentEntry } from "./manifest.ts";
import type { Memtable } from "./memtable.ts";
import { deletionsUpTo, OpenSegment } from "./open_segment.ts";
import { type SegmentInput, segmentChunks, writeSegment } from "./segment/writer.ts";
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
    const segmentId = manifest.nextSegmentId();
    const order = await this.#rowOrder();
    const input = await this.#segmentInput(segmentId, order);
    const { bytes, rowCount, minSeq, maxSeq } = await this.#writeSegment(input);
    if (this.#tools.isCancelled()) return this.#cancel();

    let entry: SegmentEntry = {
      segmentId,
      tableId,
      minSeq: minSeq as Seq,
      maxSeq: maxSeq as Seq,
      rowCount,
      bytes,
      deletionGeneration: 0,
      createdAtMs: clock.nowMs(),
      quarantined: false,
    };
    const replaced = deletionsUpTo(this.#deletions(entry, order), this.#flushedSeq);
    if (replaced.count > 0) {
      entry = { ...entry, deletionGeneration: 1 };
      await this.#writeDeletions(entry, replaced);
    }
    const changed: { segment: OpenSegment; entry: SegmentEntry }[] = [];
    for (const segment of this.#table.segments) {
      if (!segment.isDirtyUpTo(this.#flushedSeq)) continue;
      const { deletionGeneration } = segment.entry;
      const next = { ...segment.entry, deletionGeneration: deletionGeneration + 1 };
      await this.#writeDeletions(next, segment.deletionsUpTo(this.#flushedSeq));
      changed.push({ segment, entry: next });
    }
    if (this.#tools.isCancelled()) return this.#cancel();
    this.#moveIntoPlace();
    const outdated = this.#publish(entry, order, changed);
    for (const old of outdated) files.removeFile(files.deletionVectorPath(old));
    return { versions: rowCount, bytes };
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

  /** Row numbers in ascending (owner, seq). */
  async #rowOrder(): Promise<Uint32Array> {
    const { partitions, rowCount } = this.#memtable;
    const owners = Float64Array.from(partitions.keys()).toSorted();
    const order = new Uint32Array(rowCount);
    let count = 0;
    for (const owner of owners) {
      const partition = partitions.get(owner);
      if (partition === undefined) continue;
      order.set(partition.rows.subarray(0, partition.count), count);
      count += partition.count;
      await this.#pause();
    }
    assert(count === rowCount, "every row is in one list");
    return order;
  }

  async #segmentInput(segmentId: number, order: Uint32Array): Promise<SegmentInput> {
    const memtable = this.#memtable;
    const count = order.length;
    const isInOrder = order.every((row, index) => row === index);
    function arranged(vector: Vector): Vector {
      return isInOrder ? slice(vector, 0, count) : take(vector, { rows: order, count });
    }
    const columns: SegmentInput["columns"][number][] = [];
    for (const column of memtable.columns) {
      const { columnId, type } = column;
      columns.push({ columnId, type, vector: arranged(column.vector()) });
      await this.#pause();
    }
    function numbers(values: Float64Array): Float64Array {
      return gather(values, new Float64Array(count), order);
    }
    return {
      segmentId,
      tableId: this.#table.tableId,
      keyColumnIds: this.#table.definition.keyColumnIds,
      columns,
      owners: numbers(memtable.owners),
      seqs: numbers(memtable.seqs),
      prevs: numbers(memtable.prevs),
      commitSeqs: numbers(memtable.commitSeqs),
      deleted: gather(memtable.deleted, new Uint8Array(count), order),
    };
  }

  async #writeSegment(
    input: SegmentInput,
  ): Promise<{ bytes: number; rowCount: number; minSeq: number; maxSeq: number }> {
    const { disk, paths } = this.#tools;
    const draft = this.#draftFor(segmentFileName(input.segmentId));
    const file = disk.open(draft, { exclusive: true });
    try {
      const steps = writeSegment(file, segmentChunks(input));
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
      assert(draft.startsWith(paths.tmp), "a draft lies in tmp/");
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
    order: Uint32Array,
    changed: readonly { segment: OpenSegment; entry: SegmentEntry }[],
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
    const deletions = this.#deletions(entry, order);
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

  /** The replacements of the memtable's rows, by their rows in the segment. */
  #deletions(entry: SegmentEntry, order: Uint32Array): DeletionVector {
    const { replacedBy } = this.#memtable;
    const deletions = new DeletionVector(entry);
    for (const [row, memRow] of order.entries()) {
      const replacement = replacedBy[memRow] ?? 0;
      if (replacement !== 0) deletions.replace(row, replacement);
    }
    return deletions;
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

function gather<T extends Float64Array | Uint8Array>(from: T, into: T, rows: Uint32Array): T {
  for (const [index, row] of rows.entries()) into[index] = from[row] ?? 0;
  return into;
}
