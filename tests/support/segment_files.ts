/**
 * Opens and creates files of segments and deletion vectors as storage does, for tests of the code
 * that works with them.
 */
import { spyOn } from "bun:test";
import type { Disk } from "../../src/base/disk.ts";
import { DeletionVector } from "../../src/storage/deletions/deletion_vector.ts";
import type { SegmentEntry } from "../../src/storage/mod.ts";
import {
  encodeHeader,
  HISTORY_FORMAT,
  PACKED_FORMAT,
  PLAIN_FORMAT,
  segmentFormatOf,
  VALUES_FORMAT,
  VALUES_HISTORY_FORMAT,
} from "../../src/storage/segment/format.ts";
import { historyBoundsOf } from "../../src/storage/segment/history_bounds.ts";
import { SegmentReader } from "../../src/storage/segment/reader.ts";
import { openListedSegment, readListedDeletions } from "../../src/storage/table/listed_files.ts";
import { SimulatedDisk } from "./simulated_disk.ts";

export { PAGE_ROWS } from "../../src/storage/deletions/replacement_pages.ts";

/** The segment formats that the server still writes. */
export const WRITTEN_FORMATS: readonly number[] = [
  PLAIN_FORMAT,
  PACKED_FORMAT,
  HISTORY_FORMAT,
  VALUES_FORMAT,
  VALUES_HISTORY_FORMAT,
];

/**
 * Returns the format number in the header of a segment; undefined if the bytes are not a segment.
 */
export function formatIn(segment: Uint8Array): number | undefined {
  return segmentFormatOf(segment);
}

/** Returns the header of a file in the given format, for segment 1 of table 1. */
export function headerOfFormat(format: number): Uint8Array {
  return encodeHeader({ format, segmentId: 1, tableId: 1 });
}

/** Opens the bytes of a segment as a file on a separate simulated disk. */
export function readerOver(segment: Uint8Array): SegmentReader {
  const disk = new SimulatedDisk();
  disk.open("/1.seg", { create: true }).write(segment, 0);
  return SegmentReader.open(disk, "/1.seg", segment.length);
}

export function openSegmentFile(disk: Disk, path: string, byteCount: number): SegmentReader {
  return SegmentReader.open(disk, path, byteCount);
}

/** Returns a history segment's bounds as listed in the manifest; undefined for other segments. */
export function listedHistory(reader: SegmentReader): SegmentEntry["history"] {
  return historyBoundsOf(reader);
}

/** Returns a deletion vector without any replaced row. */
export function noDeletions(options: { segmentId: number; rowCount: number }): DeletionVector {
  return new DeletionVector(options);
}

/** Returns the number of replaced rows in the deletion vector that the manifest lists. */
export function listedDeletionCount(disk: Disk, path: string, entry: SegmentEntry): number {
  return readListedDeletions(disk, path, entry).deletions.count;
}

/**
 * Returns the checksum of a deletion vector's file, in the form in which the manifest lists it.
 */
export function hashOfDeletions(
  file: Uint8Array,
  path: string,
): ReturnType<typeof DeletionVector.hashIn> {
  return DeletionVector.hashIn(file, path);
}

/** Returns the file of a deletion vector in its state before the last replacement was added. */
export function withoutLastDeletion(
  file: Uint8Array,
  path: string,
): { bytes: Uint8Array; count: number } {
  const whole = DeletionVector.decode(file, path);
  const earlier = new DeletionVector(whole);
  whole.visitAll((row, seq) => {
    if (earlier.count + 1 < whole.count) earlier.replace(row, seq);
  });
  return { bytes: earlier.encode(), count: earlier.count };
}

/**
 * Calls `note` for each replacement recorded in any deletion vector, until the spy is restored.
 */
export function noteReplacements(note: () => void): { mockRestore(): void } {
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its vector below
  const original = DeletionVector.prototype.replace;
  return spyOn(DeletionVector.prototype, "replace").mockImplementation(function (
    this: DeletionVector,
    ...args
  ) {
    note();
    original.apply(this, args);
  });
}

/**
 * Opens and closes a segment file. @throws {CorruptionError} If it is not the file that the
 * manifest lists.
 */
export function checkListed(disk: Disk, path: string, entry: SegmentEntry): void {
  openListedSegment(disk, path, { entry }).close();
}
