/**
 * Where the log, the segments, uploaded files and what is kept beside them lie below `data_path`.
 * Restores are `copies/restore.ts`; ARCHITECTURE.md has the whole directory.
 *
 *     LOCK  format.json  ballast  wal/0000000001.wal  wal/HWM  wal/IDS
 *     segments/<table id>/<segment id>.seg  segments/<table id>/<segment id>.<generation>.dv
 *     files/<table id>/<owner>/<sub>/<stored name>  tmp/  lost+found/
 *
 * Segments of a table that has another storage lie below that (`storage/storages.ts`):
 *
 *     STORAGE  LOCK  tmp/  lost+found/  segments/<template>/<table id>/<segment id>.seg
 */
import type { BlobPath } from "../contract/blob_store.ts";
import type { SegmentHome } from "../contract/manifest.ts";

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
  /** It is a copy: every segment lies in it, whatever storage its table has. */
  readonly holdsAll?: true;
}

/** Where things lie in one storage. */
export interface StoragePaths {
  readonly root: string;
  readonly mark: string;
  readonly lock: string;
  readonly segments: string;
  readonly tmp: string;
  readonly lostAndFound: string;
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

/** Of a backup, or of what a restore has copied. */
export function copyPathsOf(root: string): DataPaths {
  return { ...dataPathsOf(root), holdsAll: true };
}

export function storagePathsOf(root: string): StoragePaths {
  return {
    root,
    mark: `${root}/STORAGE`,
    lock: `${root}/LOCK`,
    segments: `${root}/segments`,
    tmp: `${root}/tmp`,
    lostAndFound: `${root}/lost+found`,
  };
}

/** What holds the files of a segment: the data directory, or its storage. */
export function segmentRoot(
  paths: DataPaths,
  home: SegmentHome | undefined,
): Pick<StoragePaths, "root" | "segments" | "tmp" | "lostAndFound"> {
  return home === undefined || paths.holdsAll === true ? paths : storagePathsOf(home.root);
}

export function walFilePath(paths: DataPaths, fileNumber: number): string {
  return `${paths.wal}/${String(fileNumber).padStart(10, "0")}.wal`;
}

/** The number in the name of a log file, or undefined when it is not one. */
export function walFileNumberFromName(name: string): number | undefined {
  const digits = /^(\d{10})\.wal$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function segmentDirectory(
  paths: DataPaths,
  { home, tableId }: Pick<SegmentPlace, "home" | "tableId">,
): string {
  const { segments } = segmentRoot(paths, home);
  return home === undefined || paths.holdsAll === true
    ? `${segments}/${tableId}`
    : `${segments}/${home.directory}`;
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
  readonly home?: SegmentHome | undefined;
}

export function segmentPath(paths: DataPaths, place: SegmentPlace): string {
  return `${segmentDirectory(paths, place)}/${segmentFileName(place.segmentId)}`;
}

export function deletionVectorPath(paths: DataPaths, place: SegmentPlace): string {
  const name = deletionVectorFileName(place.segmentId, place.deletionGeneration);
  return `${segmentDirectory(paths, place)}/${name}`;
}

/** Relative to the data directory. */
export function blobPath({ owner, storedName, sub, tableId }: BlobPath): string {
  return `${FILES_DIRECTORY}/${tableId}/${owner}/${sub}/${storedName}`;
}
