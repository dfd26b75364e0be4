/**
 * Takes damaged segments out of use: the manifest keeps their entries, marked as quarantined, so
 * that a statement that would need their rows is refused and never answered without them; and their
 * files go to lost+found/.
 *
 * A segment whose deletion vector alone is damaged goes the same way: without it, rows that were
 * replaced or deleted would come back.
 */
import type { Disk } from "../../base/disk.ts";
import { moveToLostAndFound } from "../data_directory.ts";
import { type DataPaths, deletionVectorPath, segmentPath } from "../file_names.ts";
import type { Manifest, SegmentEntry } from "../manifest.ts";

/** Returns paths in lost+found/ of what was moved. @throws {DiskError} @throws {DatabaseError} */
export function quarantineSegments(
  disk: Disk,
  paths: DataPaths,
  { entries, manifest }: { entries: readonly SegmentEntry[]; manifest: Manifest },
): string[] {
  // First, so that no crash leaves an entry whose file is gone and that is not marked.
  manifest.publish({ changeSegments: entries.map((entry) => ({ ...entry, quarantined: true })) });
  const moved: string[] = [];
  for (const entry of entries) {
    const files = [segmentPath(paths, entry)];
    if (entry.deletionGeneration > 0) files.push(deletionVectorPath(paths, entry));
    for (const from of files.filter((path) => disk.exists(path))) {
      const name = from.slice(paths.segments.length + 1).replace("/", "-");
      moved.push(moveToLostAndFound(disk, paths, { from, name }));
      disk.syncDirectory(`${paths.segments}/${entry.tableId}`);
    }
  }
  if (moved.length > 0) {
    disk.syncDirectory(paths.lostAndFound);
    disk.syncDirectory(paths.root);
  }
  return moved;
}
