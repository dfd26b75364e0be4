/**
 * Checks every segment in the manifest and its deletion vector byte by byte, and checks that
 * history is consistent with the current versions. Files that the manifest does not list are
 * reported, too.
 */
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { SegmentEntry, TableState } from "../contract/manifest.ts";
import {
  type DataPaths,
  deletionVectorPath,
  segmentPath,
  storagePathsOf,
} from "../directory/file_names.ts";
import { listedFiles, unlistedFiles } from "../directory/lost_and_found.ts";
import { ChunkCache } from "../segment/chunk_cache.ts";
import { openListedSegment, readListedDeletions } from "../table/listed_files.ts";
import { historyFaults } from "./check_history.ts";
import { type CheckListener, damageFinding, noteFinding } from "./findings.ts";

/**
 * The size in bytes of the cache that holds decompressed parts of a segment while it is checked.
 */
const CACHE_BYTES_MAX: number = 1 << 20;

/**
 * The size in bytes of the cache that holds decompressed parts of a table's segments while their
 * versions are compared.
 */
const HISTORY_CACHE_BYTES_MAX: number = 1 << 25;

export interface SegmentCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  /** All segments listed in the manifest. */
  readonly entries: readonly SegmentEntry[];
  /** The ids of the existing tables. Segments of other tables are removed at the next startup. */
  readonly tableIds: ReadonlySet<number>;
  /** The state of each existing table according to the manifest. */
  readonly states: readonly TableState[];
  /** The tables whose rows never expire. */
  readonly lastingTableIds: ReadonlySet<number>;
  /** The owners whose rows are being erased or are due for erasure. */
  readonly erasedOwners: ReadonlySet<number>;
  /** The root directories of the available storages. The contents of other storages are unknown. */
  readonly storageRoots: readonly string[];
}

/** Whether a repair has given up a segment and all of its files are missing. */
export function isLost(disk: Disk, paths: DataPaths, entry: SegmentEntry): boolean {
  return entry.isGivenUp === true && !disk.exists(segmentPath(paths, entry));
}

/**
 * Checks one segment and its deletion vector.
 *
 * @param options.pause Lets other work run, and resolves when the check may continue. Its argument
 *   is the offset up to which the segment has been read.
 * @throws {CorruptionError} @throws {DiskError} @throws Any error of `pause`.
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

/** Returns the entries of segments that have a damaged or missing file. Changes nothing. */
export function checkSegments(
  options: SegmentCheckOptions,
  listener: CheckListener,
): SegmentEntry[] {
  const { disk, paths, entries, storageRoots, tableIds } = options;
  const isThere = ({ home }: SegmentEntry): boolean =>
    home === undefined || paths.holdsAll === true || storageRoots.includes(home.root);
  const damaged = entries.filter((entry) => {
    if (!isThere(entry)) return false;
    if (tableIds.has(entry.tableId)) return !isSound(disk, paths, { entry, listener });
    const what =
      "the segment belongs to a dropped table; the next startup removes it from the manifest";
    listener.onFinding(noteFinding(segmentPath(paths, entry), what));
    return false;
  });
  const readable = entries.filter(
    (entry) => tableIds.has(entry.tableId) && !damaged.includes(entry) && isThere(entry),
  );
  const ofHistory = checkHistory(options, readable, listener);
  const directories = [paths, ...storageRoots.map(storagePathsOf)].map(({ segments }) => segments);
  for (const directory of directories) {
    for (const path of unlistedFiles(disk, directory, listedFiles(paths, entries))) {
      const what = "the manifest does not list this file; the next startup moves it to lost+found";
      listener.onFinding(noteFinding(path, what));
    }
  }
  return [...damaged, ...ofHistory];
}

/**
 * Returns the history segments that are inconsistent with other segments of their table. In
 * segments with current versions, inconsistencies are only reported: such segments stay in use,
 * since no other copy of their rows exists. Tables without history are checked as well, because a
 * merge or the manifest may have lost all of their history.
 */
function checkHistory(
  { disk, entries, erasedOwners, lastingTableIds, paths, states }: SegmentCheckOptions,
  readable: readonly SegmentEntry[],
  listener: CheckListener,
): SegmentEntry[] {
  const unfit: SegmentEntry[] = [];
  for (const [tableId, ofTable] of Map.groupBy(readable, (entry) => entry.tableId)) {
    const listed = entries.filter((entry) => entry.tableId === tableId);
    const isWhole =
      listed.length === ofTable.length && !listed.some(({ quarantined }) => quarantined);
    if (!isWhole) continue;
    const faults = historyFaults({
      disk,
      paths,
      entries: ofTable,
      state: states.find((state) => state.tableId === tableId),
      mayExpire: !lastingTableIds.has(tableId),
      erasedOwners,
      cache: new ChunkCache(HISTORY_CACHE_BYTES_MAX),
    });
    for (const { entry, what } of faults) {
      const fault = new CorruptionError(segmentPath(paths, entry), 0, what);
      listener.onFinding(damageFinding(fault, tableId));
      if (entry.history !== undefined) unfit.push(entry);
    }
  }
  return unfit;
}

function isSound(
  disk: Disk,
  paths: DataPaths,
  { entry, listener }: { entry: SegmentEntry; listener: CheckListener },
): boolean {
  const path = segmentPath(paths, entry);
  const { tableId, minSeq, maxSeq, quarantined, rowCount } = entry;
  if (isLost(disk, paths, entry)) {
    const what = `quarantined: ${rowCount} row versions from _seq ${minSeq} to ${maxSeq} are lost`;
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
      "quarantined, although all of its checksums match now: later replacements of its rows " +
      "are missing";
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

/**
 * After each step, yields the offset up to which the segment has been checked.
 *
 * @throws {CorruptionError}
 */
function* checkSteps(disk: Disk, path: string, entry: SegmentEntry): Generator<number> {
  // The segment is read only once. A separate cache keeps its chunks from evicting entries of the
  // shared cache.
  const cache = new ChunkCache(CACHE_BYTES_MAX);
  const reader = openListedSegment(disk, path, { entry, cache });
  try {
    yield* reader.verifySteps();
  } finally {
    reader.close();
  }
}
