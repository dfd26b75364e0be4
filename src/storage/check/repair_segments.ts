/**
 * Takes damaged segments out of use. The manifest keeps their entries, marked as quarantined, so
 * that a statement that needs their rows fails instead of returning an incomplete result. Their
 * files move to lost+found/.
 *
 * A segment with a damaged deletion vector is treated in the same way, because otherwise its
 * replaced and deleted rows would reappear.
 *
 * If the table can tolerate losing rows, for example an event log, the entry is removed from the
 * manifest instead.
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
 * Quarantines segments. Returns the new paths in lost+found/.
 *
 * @throws {DiskError} @throws {DatabaseError}
 */
export function quarantineSegments(
  disk: Disk,
  paths: DataPaths,
  { entries, manifest }: Damaged,
): string[] {
  // The manifest is changed first, so that no crash can leave an unmarked entry whose file has been
  // moved.
  const changeSegments = entries.map(
    (entry): SegmentEntry => ({ ...entry, quarantined: true, isGivenUp: true }),
  );
  manifest.publish({ changeSegments });
  return moveFiles(disk, paths, entries);
}

/**
 * Like {@linkcode quarantineSegments}, except that later reads behave as if the segments had never
 * existed.
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
