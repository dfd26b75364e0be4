/**
 * Takes damaged segments out of use. Their entries stay in the manifest, marked as quarantined,
 * and their files move to lost+found/. A statement that needs their rows then fails instead of
 * returning an incomplete result.
 *
 * A segment with a damaged deletion vector is treated the same way. Otherwise its replaced and
 * deleted rows would reappear.
 *
 * If a table can tolerate losing rows, as an event log can, the segment's entry is removed from
 * the manifest instead.
 */
import type { Disk } from "../../base/disk.ts";
import type { Manifest, SegmentEntry } from "../contract/manifest.ts";
import {
  type DataPaths,
  deletionVectorPath,
  indexPath,
  segmentDirectory,
  segmentPath,
  segmentRoot,
} from "../directory/file_names.ts";
import { moveToLostAndFound, nameInLostAndFound } from "../directory/lost_and_found.ts";

interface Damaged {
  readonly entries: readonly SegmentEntry[];
  readonly manifest: Manifest;
}

/**
 * Quarantines segments. Returns the paths of their files in lost+found/.
 *
 * @throws {DiskError} @throws {DatabaseError}
 */
export function quarantineSegments(
  disk: Disk,
  paths: DataPaths,
  { entries, manifest }: Damaged,
): string[] {
  // The manifest is changed first. Otherwise a crash could leave an unmarked entry whose file has
  // been moved.
  const changeSegments = entries.map(
    (entry): SegmentEntry => ({ ...entry, quarantined: true, isGivenUp: true }),
  );
  manifest.publish({ changeSegments });
  return moveFiles(disk, paths, entries);
}

/**
 * Like {@linkcode quarantineSegments}, except that later reads treat the segments as if they had
 * never existed.
 */
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
    for (const indexId of entry.indexIds ?? []) files.push(indexPath(paths, entry, indexId));
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
