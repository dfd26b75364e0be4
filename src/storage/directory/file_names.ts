/**
 * Defines the paths of the log, segments, uploaded files and other files below `data_path`.
 * `backup/restore.ts` defines the paths that restores use; docs/internals/storage.md shows the
 * whole directory.
 *
 *     LOCK  format.json  ballast  wal/0000000001.wal  wal/HWM  wal/IDS
 *     segments/<table id>/<segment id>.seg  segments/<table id>/<segment id>.<generation>.dv
 *     segments/<table id>/<segment id>.<index id>.idx
 *     files/<table id>/<owner>/<sub>/<stored name>  exports/<owner>/<job id>.zip  tmp/  lost+found/
 *
 * A table in a storage other than the data directory keeps its segments in that storage
 * (`storage/storages.ts`):
 *
 *     STORAGE  LOCK  tmp/  lost+found/  segments/<template>/<table id>/<segment id>.seg
 */
import type { BlobPath } from "../contract/blob_store.ts";
import type { SegmentHome } from "../contract/manifest.ts";

/** The directory for uploaded files. */
export const FILES_DIRECTORY = "files";

/** The paths within one data directory. */
export interface DataPaths {
  readonly root: string;
  readonly lock: string;
  readonly format: string;
  readonly wal: string;
  readonly highWater: string;
  readonly ids: string;
  readonly segments: string;
  readonly exports: string;
  readonly tmp: string;
  readonly lostAndFound: string;
  readonly ballast: string;
  /**
   * Whether the directory is a copy. A copy contains every segment, regardless of the table's
   * storage.
   */
  readonly holdsAll?: true;
}

/** The paths within one storage. */
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
    exports: `${root}/exports`,
    tmp: `${root}/tmp`,
    lostAndFound: `${root}/lost+found`,
    ballast: `${root}/ballast`,
  };
}

/** Returns the paths of a backup, or of a copy made by a restore. */
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

/**
 * Returns the root directory of a segment's files: the segment's storage, or the data directory.
 */
export function segmentRoot(
  paths: DataPaths,
  home: SegmentHome | undefined,
): Pick<StoragePaths, "root" | "segments" | "tmp" | "lostAndFound"> {
  return home === undefined || paths.holdsAll === true ? paths : storagePathsOf(home.root);
}

export function walFilePath(paths: DataPaths, fileNumber: number): string {
  return `${paths.wal}/${String(fileNumber).padStart(10, "0")}.wal`;
}

/** Returns the number in a log file's name; undefined if `name` is not the name of a log file. */
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

/**
 * Returns the name of a deletion vector file. Generations count from 1. Each generation is a new
 * file, because a deletion vector is never rewritten in place.
 */
export function deletionVectorFileName(segmentId: number, generation: number): string {
  return `${segmentId}.${generation}.dv`;
}

/** Returns the file name of a segment's secondary index. */
export function indexFileName(segmentId: number, indexId: number): string {
  return `${segmentId}.${indexId}.idx`;
}

/** The ids that determine the file names of a segment. */
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

export function indexPath(paths: DataPaths, place: SegmentPlace, indexId: number): string {
  return `${segmentDirectory(paths, place)}/${indexFileName(place.segmentId, indexId)}`;
}

/** Returns the path of a blob relative to the data directory. */
export function blobPath({ owner, storedName, sub, tableId }: BlobPath): string {
  return `${FILES_DIRECTORY}/${tableId}/${owner}/${sub}/${storedName}`;
}
