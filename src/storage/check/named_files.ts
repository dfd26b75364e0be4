/**
 * Finds the uploaded files that row versions refer to. The catalog lists a file before its bytes
 * are in place, and both happen before its row commits. A missing file is therefore damage only if
 * a row refers to it.
 */
import type { Disk } from "../../base/disk.ts";
import { isDamage } from "../../base/errors.ts";
import { type Value, valuesOf } from "../../types/mod.ts";
import type { BlobPath } from "../contract/blob_store.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { type DataPaths, segmentPath } from "../directory/file_names.ts";
import { decodeWrites } from "../local_wal/logged_writes.ts";
import { readLog } from "../local_wal/reader.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { openListedSegment } from "../table/listed_files.ts";

/** An uploaded file listed in the catalog. */
export interface ListedBlob extends BlobPath {
  readonly fileId: string;
  /** The column whose value refers to the file. */
  readonly columnId: number;
  /** The file's name at the time of its upload. */
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

/**
 * Returns the files to which a row version refers, or may refer because some rows cannot be read.
 * This reads every version of the affected tables, so call it only for missing files.
 */
export function namedFiles(
  {
    disk,
    firstLogFile,
    paths,
    segments,
  }: {
    disk: Disk;
    firstLogFile: number | undefined;
    paths: DataPaths;
    segments: readonly SegmentEntry[];
  },
  files: readonly ListedBlob[],
): Set<ListedBlob> {
  const byId = new Map(files.map((file) => [file.fileId, file]));
  const named = new Set<ListedBlob>();
  const note = (place: { tableId: number; columnId: number }, value: Value): void => {
    if (typeof value !== "string") return;
    const file = byId.get(/"id":"(\d+)"/.exec(value)?.[1] ?? "");
    if (file?.tableId === place.tableId && file.columnId === place.columnId) named.add(file);
  };
  const firstFile = firstLogFile ?? 0;
  const inLog = readLog({ disk, paths, highWaterSeq: 0, firstFile }, ({ frames }) => {
    for (const frame of frames) {
      for (const { tableId, columnIds, rows } of decodeWrites(frame)) {
        for (const row of rows) {
          for (const [index, columnId] of columnIds.entries()) {
            note({ tableId, columnId }, row[index] ?? null);
          }
        }
      }
    }
  });
  if (inLog.damage !== undefined) return new Set(files);
  const tableIds = new Set(files.map(({ tableId }) => tableId));
  for (const entry of segments.filter(({ tableId }) => tableIds.has(tableId))) {
    const { tableId } = entry;
    const ofTable = files.filter((file) => file.tableId === tableId);
    const isRead = !entry.quarantined && isVisited(disk, paths, { entry, files: ofTable, note });
    if (!isRead) for (const file of ofTable) named.add(file);
  }
  return named;
}

/**
 * Calls `note` with each value in a segment's FILE columns. Returns false if the segment cannot be
 * read.
 */
function isVisited(
  disk: Disk,
  paths: DataPaths,
  {
    entry,
    files,
    note,
  }: {
    entry: SegmentEntry;
    files: readonly ListedBlob[];
    note: (place: Pick<ListedBlob, "columnId" | "tableId">, value: Value) => void;
  },
): boolean {
  const path = segmentPath(paths, entry);
  try {
    const reader = openListedSegment(disk, path, { entry });
    try {
      for (const file of new Map(files.map((each) => [each.columnId, each])).values()) {
        for (const value of cellsOf(reader, file.columnId)) note(file, value);
      }
    } finally {
      reader.close();
    }
    return true;
  } catch (error) {
    // Ignoring the damage is safe: it is reported as a separate finding.
    if (isDamage(error)) return false;
    throw error;
  }
}

function* cellsOf(reader: SegmentReader, columnId: number): Generator<Value> {
  for (let group = 0; group < reader.groupCount; group += 1) {
    const column = reader.column(columnId, group);
    if (column !== undefined) yield* valuesOf(column);
  }
}
