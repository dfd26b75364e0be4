/**
 * Forges segment files whose contents differ from what was written but whose checksums are valid.
 * Disk damage cannot produce such files, but a reader must reject them all the same.
 */
import { defined } from "../../src/base/assert.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../src/base/checksum.ts";
import {
  CHUNK_ENTRY_BYTES,
  chunkSeed,
  DIRECTORY_FIXED_BYTES,
  directorySeed,
  hashAt,
  SYSTEM_COLUMN_IDS,
  TRAILER_BYTES,
} from "../../src/storage/segment/format.ts";
import { SegmentReader } from "../../src/storage/segment/reader.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

/** Stands in for the column id in the checksum seed of a trailer; see `format.ts`. */
const TRAILER_PLACE = -101;

/**
 * Changes a column's chunk in a file with a single row group, and recomputes the checksums of the
 * chunk, the directory and the trailer. The columns have the ids 1, 2, 3 ….
 */
export function forgedSegment(
  file: Uint8Array,
  columnId: number,
  change: (chunk: DataView) => void,
): Uint8Array {
  const disk = new SimulatedDisk();
  disk.open("/1.seg", { create: true }).write(file, 0);
  const reader = SegmentReader.open(disk, "/1.seg", file.length);
  const { byteCount, offset } = defined(
    reader.chunkEntry(columnId, 0),
    "the file must have the column",
  );
  const { segmentId } = reader;
  reader.close();
  const bytes = file.slice();
  change(new DataView(bytes.buffer, offset, byteCount));
  const trailerAt = bytes.length - TRAILER_BYTES;
  const trailer = new DataView(bytes.buffer, trailerAt);
  const directoryAt = trailer.getUint32(8, true);
  const columnTableBytes = new DataView(bytes.buffer, directoryAt).getUint32(20, true);
  // In the directory, a group's first row and row count come before its chunk entries.
  const entriesAt = directoryAt + DIRECTORY_FIXED_BYTES + columnTableBytes + 8;
  const entryAt = entriesAt + (SYSTEM_COLUMN_IDS.length + columnId - 1) * CHUNK_ENTRY_BYTES;
  const chunk = bytes.subarray(offset, offset + byteCount);
  const place = chunkSeed({ segmentId, columnId, groupIndex: 0 });
  putHash(bytes, entryAt + CHUNK_ENTRY_BYTES - 8, hashAt(place, chunk));
  const directory = bytes.subarray(directoryAt, trailerAt);
  putHash(bytes, trailerAt + 24, hashAt(directorySeed(segmentId), directory));
  const sealed = bytes.subarray(trailerAt, bytes.length - 8);
  putHash(bytes, bytes.length - 8, xxHash3(sealed, placeSeed(segmentId, TRAILER_PLACE, 0)));
  return bytes;
}

function putHash(bytes: Uint8Array, at: number, { low, high }: Hash64): void {
  const view = new DataView(bytes.buffer);
  view.setUint32(at, low, true);
  view.setUint32(at + 4, high, true);
}
