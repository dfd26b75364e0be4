/**
 * Which uploaded files a row version names. A file is listed before its bytes are in their place,
 * and both before its row commits; so a listed file that is missing is damage only if a row came to
 * name it.
 */
import type { Disk } from "../../base/disk.ts";
import { isDamage } from "../../base/errors.ts";
import { type Value, valuesOf } from "../../types/mod.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { type DataPaths, segmentPath } from "../directory/file_names.ts";
import { decodeWrites } from "../local_wal/logged_writes.ts";
import { readLog } from "../local_wal/reader.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { openListedSegment } from "../table/listed_files.ts";

/** Where the FILE cell of an uploaded file is. */
export interface ReferencedFile {
  readonly fileId: string;
  readonly tableId: number;
  readonly columnId: number;
}

/**
 * Those that a version of a row names, or may name: where rows cannot be read, nobody knows. Reads
 * every version of the tables concerned, so it is for the few that are missing.
 */
export function namedFiles<File extends ReferencedFile>(
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
  files: readonly File[],
): Set<File> {
  const byId = new Map(files.map((file) => [file.fileId, file]));
  const named = new Set<File>();
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

/** Calls `note` with the cells of a segment in the files' columns; false if it cannot be read. */
function isVisited(
  disk: Disk,
  paths: DataPaths,
  {
    entry,
    files,
    note,
  }: {
    entry: SegmentEntry;
    files: readonly ReferencedFile[];
    note: (place: ReferencedFile, value: Value) => void;
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
    // Safe: its damage is a finding of its own.
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
