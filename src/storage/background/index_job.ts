/**
 * Runs the part of an index build that needs only files: reading a published segment and writing
 * one of its indexes to a pending file. The caller syncs the file. An index job is plain data, so
 * another thread can run it while the event loop continues.
 */
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import { type IndexOutput, writeIndex } from "../table/index_builder.ts";
import { openListedSegment } from "../table/listed_files.ts";

/** The size in bytes of the cache that holds decompressed parts of the segment. */
const CACHE_BYTES_MAX: number = 1 << 22;

export interface IndexJob {
  readonly source: { readonly path: string; readonly entry: SegmentEntry };
  readonly output: IndexOutput;
}

/**
 * Runs an index job in steps of a few milliseconds. Returns false if it was cancelled.
 *
 * @throws {CorruptionError} @throws {DiskError}
 */
export function* indexSteps(
  disk: Disk,
  { output, source: { entry, path } }: IndexJob,
  isCancelled: () => boolean,
): Generator<void, boolean> {
  const cache = new ChunkCache(CACHE_BYTES_MAX);
  const reader = openListedSegment(disk, path, { entry, cache });
  try {
    return yield* writeIndex(disk, reader, { output, isCancelled });
  } finally {
    reader.close();
  }
}
