/**
 * Where the log, the segments, uploaded files and what is kept beside them lie below `data_path`.
 * Restores are `copies/restore.ts`; ARCHITECTURE.md has the whole directory.
 *
 *     LOCK  format.json  ballast  wal/0000000001.wal  wal/HWM  wal/IDS
 *     segments/<table id>/<segment id>.seg  segments/<table id>/<segment id>.<generation>.dv
 *     files/<table id>/<owner>/<sub>/<stored name>  tmp/  lost+found/
 */
import type { BlobPath } from "../contract/blob_store.ts";

/** What holds the uploaded files. */
export const FILES_DIRECTORY = "files";

/** Where things lie in one data directory. */
export interface DataPaths {
  readonly root: string;
  readonly lock: string;
  readonly format: string;
  readonly wal: string;
  readonly highWater: string;
  readonly ids: string;
  readonly segments: string;
  readonly tmp: string;
  readonly lostAndFound: string;
  readonly ballast: string;
}

export function dataPathsOf(root: string): DataPaths {
  return {
    root,
    lock: `${root}/LOCK`,
    format: `${root}/format.json`,
    wal: `${root}/wal`,
    highWater: `${root}/wal/HWM`,
    ids: `${root}/wal/IDS`,
    segments: `${root}/segments`,
    tmp: `${root}/tmp`,
    lostAndFound: `${root}/lost+found`,
    ballast: `${root}/ballast`,
  };
}

export function walFilePath(paths: DataPaths, fileNumber: number): string {
  return `${paths.wal}/${String(fileNumber).padStart(10, "0")}.wal`;
}

/** The number in the name of a log file, or undefined when it is not one. */
export function walFileNumberFromName(name: string): number | undefined {
  const digits = /^(\d{10})\.wal$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function segmentDirectory(paths: DataPaths, tableId: number): string {
  return `${paths.segments}/${tableId}`;
}

export function segmentFileName(segmentId: number): string {
  return `${segmentId}.seg`;
}

/** `generation` counts from 1: a deletion vector is never rewritten in place. */
export function deletionVectorFileName(segmentId: number, generation: number): string {
  return `${segmentId}.${generation}.dv`;
}

/** What names the files of one segment. */
export interface SegmentPlace {
  readonly tableId: number;
  readonly segmentId: number;
  readonly deletionGeneration: number;
}

export function segmentPath(paths: DataPaths, { tableId, segmentId }: SegmentPlace): string {
  return `${segmentDirectory(paths, tableId)}/${segmentFileName(segmentId)}`;
}

export function deletionVectorPath(
  paths: DataPaths,
  { tableId, segmentId, deletionGeneration }: SegmentPlace,
): string {
  return `${segmentDirectory(paths, tableId)}/${deletionVectorFileName(segmentId, deletionGeneration)}`;
}

/** Relative to the data directory. */
export function blobPath({ owner, storedName, sub, tableId }: BlobPath): string {
  return `${FILES_DIRECTORY}/${tableId}/${owner}/${sub}/${storedName}`;
}
