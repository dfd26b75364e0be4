/**
 * Files that nobody lists, and where they go: to lost+found/, since what a start cannot place may
 * be what somebody misses. Nothing there is read or removed by itself.
 */
import { filesBelow } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { type DataPaths, deletionVectorPath, segmentPath } from "./file_names.ts";

/** Paths of files below a directory of segments that nobody lists; none if it is not there. */
export function unlistedFiles(disk: Disk, segments: string, listed: ReadonlySet<string>): string[] {
  return [...filesBelow(disk, segments)].filter((path) => !listed.has(path));
}

/** Paths of files that the manifest lists. */
export function listedFiles(paths: DataPaths, entries: readonly SegmentEntry[]): Set<string> {
  const listed = new Set<string>();
  for (const entry of entries) {
    listed.add(segmentPath(paths, entry));
    if (entry.deletionGeneration > 0) listed.add(deletionVectorPath(paths, entry));
  }
  return listed;
}

/**
 * Of a file of a segment: with the table's id, below which it lies. A whole path may be too long.
 */
export function nameInLostAndFound(from: string): string {
  return from.split("/").slice(-2).join("-");
}

/** Moves a file to lost+found, under a name that is free there. Returns its new path. */
export function moveToLostAndFound(
  disk: Disk,
  { lostAndFound }: Pick<DataPaths, "lostAndFound">,
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
