/**
 * Checks every segment that the manifest lists, and its deletion vector, byte by byte; and looks
 * for files that it does not list.
 */
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import {
  type DataPaths,
  deletionVectorPath,
  segmentPath,
  storagePathsOf,
} from "../directory/file_names.ts";
import { listedFiles, unlistedFiles } from "../directory/lost_and_found.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import { openListedSegment, readListedDeletions } from "../table/listed_files.ts";
import { type CheckListener, damageFinding, noteFinding } from "./findings.ts";

/** What is unpacked of a segment while it is checked. */
const CACHE_BYTES_MAX: number = 1 << 20;

export interface SegmentCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  /** Every segment that the manifest lists. */
  readonly entries: readonly SegmentEntry[];
  /** Tables that there are; the segments of others go at the next start. */
  readonly tableIds: ReadonlySet<number>;
  /** Roots of storages, as far as they are there: what lies in others is nobody's guess. */
  readonly storageRoots: readonly string[];
}

/** Whether nothing of a segment is left where it was, and a repair has said so. */
export function isLost(disk: Disk, paths: DataPaths, entry: SegmentEntry): boolean {
  return entry.isGivenUp === true && !disk.exists(segmentPath(paths, entry));
}

/**
 * Checks one segment and its deletion vector.
 *
 * @param options.pause Lets others work; resolves when it may go on. Is told before which byte of
 * the segment every other has been read.
 * @throws {CorruptionError} @throws {DiskError} @throws What `pause` throws.
 */
export async function requireSoundSegment(
  disk: Disk,
  paths: DataPaths,
  { entry, pause }: { entry: SegmentEntry; pause: (readBytes: number) => Promise<void> },
): Promise<void> {
  for (const readBytes of checkSteps(disk, segmentPath(paths, entry), entry)) {
    await pause(readBytes);
  }
  if (entry.deletionGeneration > 0) {
    readListedDeletions(disk, deletionVectorPath(paths, entry), entry);
  }
}

/** Returns the entries of segments with a damaged or missing file; changes nothing. */
export function checkSegments(
  { disk, paths, entries, storageRoots, tableIds }: SegmentCheckOptions,
  listener: CheckListener,
): SegmentEntry[] {
  const isThere = ({ home }: SegmentEntry): boolean =>
    home === undefined || paths.holdsAll === true || storageRoots.includes(home.root);
  const damaged = entries.filter((entry) => {
    if (!isThere(entry)) return false;
    if (tableIds.has(entry.tableId)) return !isSound(disk, paths, { entry, listener });
    const what = "it belongs to a table that was dropped; a start removes it from the manifest";
    listener.onFinding(noteFinding(segmentPath(paths, entry), what));
    return false;
  });
  const directories = [paths, ...storageRoots.map(storagePathsOf)].map(({ segments }) => segments);
  for (const directory of directories) {
    for (const path of unlistedFiles(disk, directory, listedFiles(paths, entries))) {
      const what = "the manifest does not list it; a start moves it to lost+found";
      listener.onFinding(noteFinding(path, what));
    }
  }
  return damaged;
}

function isSound(
  disk: Disk,
  paths: DataPaths,
  { entry, listener }: { entry: SegmentEntry; listener: CheckListener },
): boolean {
  const path = segmentPath(paths, entry);
  const { tableId, minSeq, maxSeq, quarantined, rowCount } = entry;
  if (isLost(disk, paths, entry)) {
    const what = `quarantined: ${rowCount} row versions from seq ${minSeq} to ${maxSeq} are lost`;
    listener.onFinding(noteFinding(path, what, tableId));
    return true;
  }
  const faults = [
    faultOf(() => {
      const steps = checkSteps(disk, path, entry);
      while (steps.next().done !== true);
      listener.onChecked(path, entry.bytes);
    }),
    faultOf(() => {
      if (entry.deletionGeneration === 0) return;
      const vectorPath = deletionVectorPath(paths, entry);
      const { bytes } = readListedDeletions(disk, vectorPath, entry);
      listener.onChecked(vectorPath, bytes);
    }),
  ].filter((fault) => fault !== undefined);
  if (quarantined && faults.length === 0) {
    const what =
      "quarantined, though every checksum holds now: what replaced its rows since is not noted";
    faults.push(new CorruptionError(path, 0, what));
  }
  for (const fault of faults) listener.onFinding(damageFinding(fault, tableId));
  return faults.length === 0;
}

function faultOf(check: () => void): CorruptionError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof CorruptionError) return error;
    throw error;
  }
}

/** @throws {CorruptionError} */
function* checkSteps(disk: Disk, path: string, entry: SegmentEntry): Generator<number> {
  // Of its own: what is read once crowds out nothing that others read.
  const cache = new ChunkCache(CACHE_BYTES_MAX);
  const reader = openListedSegment(disk, path, { entry, cache });
  try {
    yield* reader.verifySteps();
  } finally {
    reader.close();
  }
}
