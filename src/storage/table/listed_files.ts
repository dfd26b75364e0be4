/**
 * Opens the files that an entry of the manifest names, and makes sure that they are those. Each
 * byte of a file may be as it was written, and the file be another's: where two have changed
 * places, or a copy lies in the place of the right one. Of a deletion vector that may be one from
 * before, with which replaced rows would come back.
 */
import type { Hash64 } from "../../base/checksum.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { readable } from "../directory/readable.ts";
import type { ChunkCache } from "../segment/chunk_cache.ts";
import { SegmentReader } from "../segment/reader.ts";

/** @throws {CorruptionError} If it is damaged, or not the segment. @throws {DiskError} */
export function openListedSegment(
  disk: Disk,
  path: string,
  { cache, entry }: { entry: SegmentEntry; cache?: ChunkCache },
): SegmentReader {
  const reader = readable(path, () => SegmentReader.open(disk, path, entry.bytes, cache));
  const isListed =
    reader.segmentId === entry.segmentId &&
    reader.tableId === entry.tableId &&
    reader.rowCount === entry.rowCount &&
    reader.minSeq === entry.minSeq &&
    reader.maxSeq === entry.maxSeq;
  if (isListed) return reader;
  reader.close();
  const { rowCount, segmentId, tableId } = reader;
  const what = `it is segment ${segmentId} of table ${tableId}, with ${rowCount} rows, and the manifest lists segment ${entry.segmentId} with ${entry.rowCount}`;
  throw new CorruptionError(path, 0, what);
}

/** @throws {CorruptionError} If it is damaged, or not the segment's. @throws {DiskError} */
export function readListedDeletions(
  disk: Disk,
  path: string,
  entry: SegmentEntry,
): { readonly deletions: DeletionVector; readonly bytes: number } {
  const bytes = readable(path, () => disk.readFile(path));
  const deletions = DeletionVector.decode(bytes, path);
  const { count, rowCount, segmentId } = deletions;
  if (segmentId !== entry.segmentId || rowCount !== entry.rowCount) {
    const what = `it belongs to segment ${segmentId} with ${rowCount} rows, and not to segment ${entry.segmentId} with ${entry.rowCount}`;
    throw new CorruptionError(path, 8, what);
  }
  if (!isListedHash(DeletionVector.hashIn(bytes, path), entry)) {
    const what = `it is another deletion vector of segment ${segmentId}, with ${count} replaced rows, and not generation ${entry.deletionGeneration}, which the manifest lists`;
    throw new CorruptionError(path, bytes.length, what);
  }
  return { deletions, bytes: bytes.length };
}

/** Whether a hash is the one that is listed, if one is listed of this generation. */
function isListedHash(
  { high, low }: Hash64,
  { deletionGeneration, deletionHash }: SegmentEntry,
): boolean {
  if (deletionHash?.generation !== deletionGeneration) return true;
  return high === deletionHash.high && low === deletionHash.low;
}
