/**
 * Checks that the files of secondary indexes match the rows of their segments, and rebuilds files
 * that do not. An index contains only data derived from its segment, so losing an index loses no
 * row.
 */
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { runToCompletion } from "../../base/steps.ts";
import { holdsTerms } from "../contract/key_expressions.ts";
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
import { type IndexEntries, openIndexFile } from "../segment/index_file.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { openTermFile, type TermEntries } from "../segment/term_file.ts";
import { buildIndex, type IndexOutline, writeIndex } from "../table/index_builder.ts";
import { type IndexOpener, openListedIndex, openListedSegment } from "../table/listed_files.ts";
import { termPart } from "../table/term_builder.ts";
import { type CheckListener, damageFinding } from "./findings.ts";

/**
 * The size in bytes of the cache that holds decompressed parts of a segment while its indexes are
 * compared.
 */
const CACHE_BYTES_MAX: number = 1 << 24;

/** An index file that is missing, damaged, or inconsistent with the rows of its segment. */
export interface DamagedIndex {
  readonly entry: SegmentEntry;
  readonly outline: IndexOutline;
}

export interface IndexCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  /** The segments whose indexes are checked. Each must be readable. */
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

/** Rebuilds index files from the rows. @throws {DiskError} @throws {CorruptionError} */
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
      runToCompletion(
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

/**
 * Compares an index file with an index built from the rows. Returns a description of the fault;
 * undefined if the file is correct.
 */
function faultOf(
  disk: Disk,
  paths: DataPaths,
  { entry, outline }: DamagedIndex,
): CorruptionError | undefined {
  const path = indexPath(paths, entry, outline.indexId);
  try {
    const cache = new ChunkCache(CACHE_BYTES_MAX);
    const reader = openListedSegment(disk, segmentPath(paths, entry), { entry, cache });
    const rows = { entry, outline, reader };
    try {
      const what = holdsTerms(outline.columns)
        ? faultIn(disk, path, { ...rows, open: openTermFile, compare: termFault })
        : faultIn(disk, path, { ...rows, open: openIndexFile, compare: keyFault });
      return what === undefined ? undefined : new CorruptionError(path, 0, what);
    } finally {
      reader.close();
    }
  } catch (error) {
    if (error instanceof CorruptionError) return error;
    throw error;
  }
}

/** The rows of a segment, to be compared with one of its indexes. */
interface IndexedRows extends DamagedIndex {
  readonly reader: SegmentReader;
}

/**
 * The functions that open index files of one kind, sorted or inverted, and compare them with the
 * rows.
 */
interface IndexComparison<Entries> extends IndexedRows {
  readonly open: IndexOpener<Entries>;
  /** Describes the first difference between the file and the rows; undefined if there is none. */
  readonly compare: (found: Entries, rows: IndexedRows) => string | undefined;
}

function faultIn<Entries extends { close(): void }>(
  disk: Disk,
  path: string,
  { compare, entry, open, outline, reader }: IndexComparison<Entries>,
): string | undefined {
  const found = openListedIndex(disk, path, { entry, indexId: outline.indexId, open });
  try {
    return compare(found, { entry, outline, reader });
  } finally {
    found.close();
  }
}

/**
 * Describes the first difference between a sorted index and the rows; undefined if there is none.
 */
function keyFault(
  found: IndexEntries,
  { entry, outline, reader }: IndexedRows,
): string | undefined {
  const place = firstDifference(found, runToCompletion(buildIndex(reader, outline)));
  if (place === undefined) return undefined;
  return `the index differs from the rows at position ${place} of ${entry.rowCount}`;
}

/**
 * Describes the first difference between an inverted index and the rows; undefined if there is
 * none.
 */
function termFault({ parts }: TermEntries, { outline, reader }: IndexedRows): string | undefined {
  const { groupCount } = reader;
  if (parts.length !== groupCount) {
    return `the index has ${parts.length} parts, but the segment has ${groupCount} row groups`;
  }
  for (const [group, { bytes }] of parts.entries()) {
    const part = runToCompletion(termPart(reader, outline, group));
    if (Buffer.compare(bytes, part.bytes) === 0) continue;
    return `the index differs from the rows in part ${group + 1} of ${groupCount}`;
  }
  return undefined;
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
