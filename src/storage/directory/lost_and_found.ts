/**
 * Moves files that the manifest does not list to lost+found/. They are not removed, because a file
 * that the server does not recognise may still be needed. Nothing in lost+found/ is ever read or
 * removed automatically.
 */
import { filesBelow } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { type DataPaths, deletionVectorPath, indexPath, segmentPath } from "./file_names.ts";

/**
 * Returns the paths of unlisted files in a directory of segments. Returns none if the directory
 * does not exist.
 */
export function unlistedFiles(disk: Disk, segments: string, listed: ReadonlySet<string>): string[] {
  return [...filesBelow(disk, segments)].filter((path) => !listed.has(path));
}

/** Returns the paths of the files that the manifest lists. */
export function listedFiles(paths: DataPaths, entries: readonly SegmentEntry[]): Set<string> {
  const listed = new Set<string>();
  for (const entry of entries) {
    listed.add(segmentPath(paths, entry));
    if (entry.deletionGeneration > 0) listed.add(deletionVectorPath(paths, entry));
    for (const indexId of entry.indexIds ?? []) listed.add(indexPath(paths, entry, indexId));
  }
  return listed;
}

/**
 * Returns the name for a segment's file in lost+found/. The name includes only the last directory
 * of the file's path, which is the table id, because the complete path could exceed the maximum
 * length of a name.
 */
export function nameInLostAndFound(from: string): string {
  return from.split("/").slice(-2).join("-");
}

/** Moves a file to lost+found/, under a name that is not in use there. Returns the new path. */
export function moveToLostAndFound(
  disk: Disk,
  { lostAndFound }: Pick<DataPaths, "lostAndFound">,
  { from, name }: { from: string; name: string },
): string {
  const to = freeNameInLostAndFound(disk, { lostAndFound }, name);
  disk.rename(from, to);
  return to;
}

/** Returns an unused path in lost+found/, creating the directory if necessary. */
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
