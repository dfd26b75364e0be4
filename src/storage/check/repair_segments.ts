/**
 * Takes damaged segments out of use: the manifest keeps their entries, marked as quarantined, so
 * that a statement that would need their rows is refused and never answered without them; and their
 * files go to lost+found/.
 *
 * A segment whose deletion vector alone is damaged goes the same way: without it, rows that were
 * replaced or deleted would come back.
 *
 * Where rows may be missing, as in a log of events, an entry is taken out of the manifest instead.
 */
import type { Disk } from "../../base/disk.ts";
import type { Manifest, SegmentEntry } from "../contract/manifest.ts";
import {
  type DataPaths,
  deletionVectorPath,
  segmentDirectory,
  segmentPath,
  segmentRoot,
} from "../directory/file_names.ts";
import { moveToLostAndFound, nameInLostAndFound } from "../directory/lost_and_found.ts";

interface Damaged {
  readonly entries: readonly SegmentEntry[];
  readonly manifest: Manifest;
}

/** Returns paths in lost+found/ of what was moved. @throws {DiskError} @throws {DatabaseError} */
export function quarantineSegments(
  disk: Disk,
  paths: DataPaths,
  { entries, manifest }: Damaged,
): string[] {
  // First, so that no crash leaves an entry whose file is gone and that is not marked.
  const changeSegments = entries.map(
    (entry): SegmentEntry => ({ ...entry, quarantined: true, isGivenUp: true }),
  );
  manifest.publish({ changeSegments });
  return moveFiles(disk, paths, entries);
}

/** Like {@linkcode quarantineSegments}, but what is left is read as if they had never been. */
export function dropSegments(
  disk: Disk,
  paths: DataPaths,
  { entries, manifest }: Damaged,
): string[] {
  manifest.publish({ removeSegmentIds: entries.map(({ segmentId }) => segmentId) });
  return moveFiles(disk, paths, entries);
}

function moveFiles(disk: Disk, paths: DataPaths, entries: readonly SegmentEntry[]): string[] {
  const moved: string[] = [];
  for (const entry of entries) {
    const files = [segmentPath(paths, entry)];
    if (entry.deletionGeneration > 0) files.push(deletionVectorPath(paths, entry));
    const place = segmentRoot(paths, entry.home);
    for (const from of files.filter((path) => disk.exists(path))) {
      const name = nameInLostAndFound(from);
      moved.push(moveToLostAndFound(disk, place, { from, name }));
      disk.syncDirectory(segmentDirectory(paths, entry));
      disk.syncDirectory(place.lostAndFound);
      disk.syncDirectory(place.root);
    }
  }
  return moved;
}
