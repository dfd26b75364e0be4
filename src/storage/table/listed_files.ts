/**
 * Opens the files listed in a manifest entry, and verifies that each is the intended file. A file
 * with intact bytes may still be the wrong file, if two files were swapped or a file was
 * overwritten with a copy. With an older deletion vector, for example, replaced rows would
 * reappear.
 */
import type { Hash64 } from "../../base/checksum.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { HistoryBounds, SegmentEntry } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { readable } from "../directory/readable.ts";
import type { ChunkCache } from "../segment/chunk_cache.ts";
import { historyBoundsOf } from "../segment/history_bounds.ts";
import type { IndexFilePlace } from "../segment/index_header.ts";
import { SegmentReader } from "../segment/reader.ts";

/**
 * Opens a segment file listed in the manifest.
 *
 * @throws {CorruptionError} If the file is damaged or is a different segment. @throws {DiskError}
 */
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
    reader.maxSeq === entry.maxSeq &&
    isSameHistory(historyBoundsOf(reader), entry.history);
  if (isListed) return reader;
  reader.close();
  const { rowCount, segmentId, tableId } = reader;
  const what =
    `the file is segment ${segmentId} of table ${tableId}, with ${rowCount} rows, but the ` +
    `manifest lists segment ${entry.segmentId}, with ${entry.rowCount} rows`;
  throw new CorruptionError(path, 0, what);
}

/** Opens an index file, for one of the two kinds of indexes: sorted or inverted. */
export type IndexOpener<Entries> = (disk: Disk, path: string, place: IndexFilePlace) => Entries;

/**
 * Opens the file of one of a segment's indexes.
 *
 * @throws {CorruptionError} If the file is missing, damaged or belongs to another segment or
 *   index. @throws {DiskError}
 */
export function openListedIndex<Entries>(
  disk: Disk,
  path: string,
  { entry, indexId, open }: { entry: SegmentEntry; indexId: number; open: IndexOpener<Entries> },
): Entries {
  const { rowCount, segmentId, tableId } = entry;
  return readable(path, () => open(disk, path, { rowCount, segmentId, tableId, indexId }));
}

function isSameHistory(left: HistoryBounds | undefined, right: HistoryBounds | undefined): boolean {
  return (
    left?.lowestReplacingSeq === right?.lowestReplacingSeq &&
    left?.highestReplacingSeq === right?.highestReplacingSeq
  );
}

/**
 * Reads the deletion vector file that the manifest lists for a segment.
 *
 * @throws {CorruptionError} If the file is damaged or belongs to a different segment. @throws
 *   {DiskError}
 */
export function readListedDeletions(
  disk: Disk,
  path: string,
  entry: SegmentEntry,
): { readonly deletions: DeletionVector; readonly bytes: number } {
  const bytes = readable(path, () => disk.readFile(path));
  const deletions = DeletionVector.decode(bytes, path);
  const { count, rowCount, segmentId } = deletions;
  if (segmentId !== entry.segmentId || rowCount !== entry.rowCount) {
    const what =
      `the file belongs to segment ${segmentId} with ${rowCount} rows, not to segment ` +
      `${entry.segmentId} with ${entry.rowCount} rows`;
    throw new CorruptionError(path, 8, what);
  }
  if (!isListedHash(DeletionVector.hashIn(bytes, path), entry)) {
    const what =
      `the file is a different deletion vector of segment ${segmentId}: it has ${count} ` +
      `replaced rows, but the manifest lists generation ${entry.deletionGeneration}`;
    throw new CorruptionError(path, bytes.length, what);
  }
  return { deletions, bytes: bytes.length };
}

/**
 * Whether a hash matches the hash that the manifest lists. True if no hash is listed for this
 * generation.
 */
function isListedHash(
  { high, low }: Hash64,
  { deletionGeneration, deletionHash }: SegmentEntry,
): boolean {
  if (deletionHash?.generation !== deletionGeneration) return true;
  return high === deletionHash.high && low === deletionHash.low;
}
