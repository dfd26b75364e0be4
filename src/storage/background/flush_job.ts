/**
 * Runs the part of a flush that needs only rows and a file: writing a frozen memtable to a pending
 * file. The caller syncs the file. A flush job is plain data, mostly in shared memory, so another
 * thread can run it while the event loop continues.
 */
import type { Disk, DiskFile } from "../../base/disk.ts";
import type { Compression } from "../contract/table_definition.ts";
import { type FrozenRows, frozenPieces, segmentOrder } from "../memtable/memtable_segment.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import { SegmentReader } from "../segment/reader.ts";
import { type SegmentEnd, type SegmentSummary, writeSegment } from "../segment/writer.ts";
import { type IndexOutput, writeIndex } from "../table/index_builder.ts";

/**
 * The size in bytes of the cache that holds decompressed parts of a segment while its indexes are
 * built.
 */
const CACHE_BYTES_MAX: number = 1 << 22;

export interface FlushJob {
  readonly segmentId: number;
  readonly tableId: number;
  readonly keyColumnIds: readonly number[];
  readonly compression: Compression | undefined;
  readonly rows: FrozenRows;
  readonly indexes: readonly IndexOutput[];
  /** The path to which the flush writes its segment. */
  readonly pendingPath: string;
}

export interface FlushOutcome {
  readonly summary: SegmentSummary;
  /** For each row of the segment, its row number in the memtable. */
  readonly order: Uint32Array<ArrayBuffer>;
}

/**
 * Runs a flush job in steps of a few milliseconds until it is done or cancelled. @throws
 * {DiskError}
 */
export function* flushSteps(
  disk: Disk,
  { indexes, pendingPath, rows, ...outline }: FlushJob,
  isCancelled: () => boolean,
): Generator<void, FlushOutcome | undefined> {
  const { columns } = rows;
  const order = yield* segmentOrder(rows);
  const pieces = frozenPieces(rows, order, { ...outline, columns });
  const summary = yield* writeSteps(disk, { pendingPath, pieces, isCancelled });
  if (summary === undefined) return undefined;
  const isDone = yield* writeIndexes(disk, { pendingPath, summary, indexes, isCancelled });
  return isDone ? { summary, order } : undefined;
}

/**
 * Writes the indexes of a new segment. Returns false if the work was cancelled. @throws
 * {DiskError}
 */
export function* writeIndexes(
  disk: Disk,
  {
    indexes,
    isCancelled,
    pendingPath,
    summary,
  }: {
    pendingPath: string;
    summary: SegmentSummary;
    indexes: readonly IndexOutput[];
    isCancelled: () => boolean;
  },
): Generator<void, boolean> {
  if (indexes.length === 0) return true;
  const cache = new ChunkCache(CACHE_BYTES_MAX);
  const reader = SegmentReader.open(disk, pendingPath, summary.bytes, cache);
  try {
    for (const output of indexes) {
      if (!(yield* writeIndex(disk, reader, { output, isCancelled }))) return false;
    }
    return true;
  } finally {
    reader.close();
  }
}

/** Writes the bytes of a segment to a new file, piece by piece. @throws {DiskError} */
export function* writeSteps(
  disk: Disk,
  {
    pendingPath,
    isCancelled,
    pieces,
  }: {
    pendingPath: string;
    pieces: Generator<Uint8Array, SegmentEnd>;
    isCancelled: () => boolean;
  },
): Generator<void, SegmentSummary | undefined> {
  // Data is written through to the disk at once, since log writes have to wait while the disk
  // writes back a large amount.
  const file: DiskFile = disk.open(pendingPath, { create: true, writesThrough: true });
  try {
    file.truncate(0);
    const steps = writeSegment(file, pieces);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      yield;
      if (isCancelled()) return undefined;
    }
  } finally {
    file.close();
  }
}
