/**
 * Checks the files of secondary indexes against the rows of their segments, and writes wrong files
 * again. An index contains only data from its segment, so no row is lost with an index.
 */
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import {
  type DataPaths,
  indexFileName,
  indexPath,
  segmentDirectory,
  segmentPath,
  segmentRoot,
} from "../directory/file_names.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import type { IndexEntries } from "../segment/index_file.ts";
import { buildIndex, type IndexOutline, writeIndex } from "../table/index_builder.ts";
import { openListedIndex, openListedSegment } from "../table/listed_files.ts";
import { type CheckListener, damageFinding } from "./findings.ts";

/** Cache for unpacked parts of a segment while its indexes are compared. */
const CACHE_BYTES_MAX: number = 1 << 24;

/** An index file that is missing, damaged or wrong. */
export interface DamagedIndex {
  readonly entry: SegmentEntry;
  readonly outline: IndexOutline;
}

export interface IndexCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  /** Segments that can be read. */
  readonly entries: readonly SegmentEntry[];
  /** Returns the indexes of a table. */
  readonly indexesOf: (tableId: number) => readonly IndexOutline[];
}

/** Returns the listed index files that do not match the rows. Changes nothing. */
export function checkIndexes(
  { disk, entries, indexesOf, paths }: IndexCheckOptions,
  listener: CheckListener,
): DamagedIndex[] {
  const damaged: DamagedIndex[] = [];
  for (const entry of entries) {
    for (const outline of indexesOf(entry.tableId)) {
      if (entry.quarantined || entry.indexIds?.includes(outline.indexId) !== true) continue;
      const fault = faultOf(disk, paths, { entry, outline });
      const path = indexPath(paths, entry, outline.indexId);
      if (fault === undefined) listener.onChecked(path, disk.sizeOf(path) ?? 0);
      else {
        listener.onFinding(damageFinding(fault, entry.tableId));
        damaged.push({ entry, outline });
      }
    }
  }
  return damaged;
}

/** Writes index files again from the rows. @throws {DiskError} @throws {CorruptionError} */
export function rebuildIndexes(
  disk: Disk,
  paths: DataPaths,
  damaged: readonly DamagedIndex[],
): void {
  for (const { entry, outline } of damaged) {
    const { segmentId } = entry;
    const pendingPath = `${segmentRoot(paths, entry.home).tmp}/${indexFileName(segmentId, outline.indexId)}`;
    const reader = openListedSegment(disk, segmentPath(paths, entry), { entry });
    try {
      finished(
        writeIndex(disk, reader, { output: { ...outline, pendingPath }, isCancelled: () => false }),
      );
    } finally {
      reader.close();
    }
    const file = disk.open(pendingPath, {});
    try {
      file.syncNow();
    } finally {
      file.close();
    }
    disk.rename(pendingPath, indexPath(paths, entry, outline.indexId));
    disk.syncDirectory(segmentDirectory(paths, entry));
  }
}

/** Compares a file with the index that its rows produce. */
function faultOf(
  disk: Disk,
  paths: DataPaths,
  { entry, outline }: DamagedIndex,
): CorruptionError | undefined {
  const path = indexPath(paths, entry, outline.indexId);
  try {
    const found = openListedIndex(disk, path, { entry, indexId: outline.indexId });
    const cache = new ChunkCache(CACHE_BYTES_MAX);
    const reader = openListedSegment(disk, segmentPath(paths, entry), { entry, cache });
    try {
      const place = firstDifference(found, finished(buildIndex(reader, outline)));
      if (place === undefined) return undefined;
      const what = `the index differs from the rows at position ${place} of ${entry.rowCount}`;
      return new CorruptionError(path, place, what);
    } finally {
      reader.close();
      found.close();
    }
  } catch (error) {
    if (error instanceof CorruptionError) return error;
    throw error;
  }
}

function firstDifference(found: IndexEntries, right: IndexEntries): number | undefined {
  if (found.commonBytes !== right.commonBytes) return 0;
  for (let place = 0; place < right.rows.length; place += 1) {
    const isSame =
      found.rows[place] === right.rows[place] && found.prefixes[place] === right.prefixes[place];
    if (!isSame) return place;
  }
  return undefined;
}

function finished<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
