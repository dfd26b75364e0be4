/**
 * Reads every row version from a store's segment files, so that tests can compare the store's
 * results with the actual contents of the files.
 */
import type { Disk } from "../../src/base/disk.ts";
import type { SegmentEntry } from "../../src/storage/mod.ts";
import type { SegmentReader } from "../../src/storage/segment/reader.ts";
import { openListedSegment, readListedDeletions } from "../../src/storage/table/listed_files.ts";
import type { Value } from "../../src/types/mod.ts";
import { DATA_PATH } from "./store_fixture.ts";

export interface StoredVersion {
  readonly owner: number;
  readonly seq: number;
  readonly prev: number;
  readonly isDeleted: boolean;
  /** The seq of the version that replaced this version, or 0 if there is none. */
  readonly replacedBy: number;
  /** The value of the column with id 1. */
  readonly value: Value;
  readonly isHistory: boolean;
  readonly segmentId: number;
}

/** Returns the versions in all segments listed in a manifest, in seq order. */
export function storedVersions(disk: Disk, entries: readonly SegmentEntry[]): StoredVersion[] {
  return entries
    .flatMap((entry) => versionsIn(disk, entry))
    .toSorted((left, right) => left.seq - right.seq);
}

function versionsIn(disk: Disk, entry: SegmentEntry): StoredVersion[] {
  const directory = `${DATA_PATH}/segments/${entry.tableId}`;
  const reader = openListedSegment(disk, `${directory}/${entry.segmentId}.seg`, { entry });
  const replacedBy = replacementsOf(disk, directory, { entry, reader });
  const versions: StoredVersion[] = [];
  for (let index = 0; index < reader.ownerCount; index += 1) {
    const { end, owner, start } = reader.ownerAt(index);
    for (let row = start; row < end; row += 1) {
      versions.push({
        owner,
        seq: reader.seqAt(row),
        prev: reader.prevAt(row),
        isDeleted: reader.isTombstone(row),
        replacedBy: replacedBy(row),
        value: reader.valueAt(1, row) ?? null,
        isHistory: reader.isHistory,
        segmentId: entry.segmentId,
      });
    }
  }
  reader.close();
  return versions;
}

function replacementsOf(
  disk: Disk,
  directory: string,
  { entry, reader }: { entry: SegmentEntry; reader: SegmentReader },
): (row: number) => number {
  if (reader.isHistory) return (row) => reader.replacingSeqAt(row);
  if (entry.deletionGeneration === 0) return () => 0;
  const path = `${directory}/${entry.segmentId}.${entry.deletionGeneration}.dv`;
  const { deletions } = readListedDeletions(disk, path, entry);
  return (row) => deletions.replacedBy(row);
}
