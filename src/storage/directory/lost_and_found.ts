/**
 * Files that nobody lists, and where they go: to lost+found/, since what a start cannot place may be
 * what somebody misses. Nothing there is read or removed by itself.
 */
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { type DataPaths, deletionVectorPath, segmentPath } from "./file_names.ts";

/** Paths of files in the directories of segments that no entry names. */
export function unlistedFiles(
  disk: Disk,
  paths: DataPaths,
  entries: readonly SegmentEntry[],
): string[] {
  const listed = new Set<string>();
  for (const entry of entries) {
    listed.add(segmentPath(paths, entry));
    if (entry.deletionGeneration > 0) listed.add(deletionVectorPath(paths, entry));
  }
  return disk.list(paths.segments).flatMap((directory) => {
    if (!directory.isDirectory) return [];
    const path = `${paths.segments}/${directory.name}`;
    const files = disk.list(path).map(({ name }) => `${path}/${name}`);
    return files.filter((file) => !listed.has(file));
  });
}

/** Moves a file to lost+found, under a name that is free there. Returns its new path. */
export function moveToLostAndFound(
  disk: Disk,
  { lostAndFound }: DataPaths,
  { from, name }: { from: string; name: string },
): string {
  const to = freeNameInLostAndFound(disk, { lostAndFound }, name);
  disk.rename(from, to);
  return to;
}

/** A path in lost+found, which is made, that no file has. */
export function freeNameInLostAndFound(
  disk: Disk,
  { lostAndFound }: Pick<DataPaths, "lostAndFound">,
  name: string,
): string {
  disk.makeDirectory(lostAndFound);
  let path = `${lostAndFound}/${name}`;
  for (let copy = 1; disk.exists(path); copy += 1) path = `${lostAndFound}/${name}.${copy}`;
  return path;
}
