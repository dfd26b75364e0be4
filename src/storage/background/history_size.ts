/**
 * Limits the disk space that history occupies. If the retained history exceeds the limit, replaced
 * versions are discarded early, starting with the oldest.
 *
 * A version counts as its share of its segment's bytes. Versions in memory do not count. A version
 * replaced less than an hour ago is never discarded (`storage/table/history.ts`), whatever the
 * size of history.
 */
import { type Seq, seqFromUnixMs, unixMsFromSeq } from "../../base/seq.ts";
import type { HeldHistory } from "../contract/store_figures.ts";
import { type Ages, retentionFloorSeqOf } from "../table/history.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import { type StoredTable, unlessDamaged } from "../table/table.ts";
import { discardableShare } from "./history_choice.ts";

/**
 * The length of a time step in which history is discarded. Counting bytes per step avoids sorting
 * versions.
 */
const MINUTE_MS = 60_000;

/** Returns the newest seq up to which a table's replaced versions may be discarded. */
export function retentionFloorOf(table: StoredTable, ids: Ages): Seq {
  return Math.min(ownFloorOf(table, ids), table.heldAfterSeq) as Seq;
}

/**
 * Returns the newest seq up to which the table's own history limits allow versions to be
 * discarded. Topics that need the table's history are ignored.
 */
function ownFloorOf(table: StoredTable, ids: Ages): Seq {
  const byAge = retentionFloorSeqOf(ids, table.definition.historyMs);
  return Math.max(byAge, Math.min(table.sizeFloorSeq, retentionFloorSeqOf(ids, 0))) as Seq;
}

/**
 * Finds the seq up to which replaced versions must be discarded so that the remaining ones fit in
 * `bytesMax` bytes; 0 if all versions fit. A step examines one segment, or some ten thousand of
 * its rows. Changes made between two steps may or may not be counted.
 *
 * @param bytesMax 1 or more.
 * @throws {DatabaseError} @throws {DiskError} If a deletion vector cannot be opened.
 */
export function* sizeFloorOf(
  tables: readonly StoredTable[],
  bytesMax: number,
): Generator<void, number> {
  if ((yield* historyBytes(tables)) <= bytesMax) return 0;
  const bytesByMinute = new Map<number, number>();
  for (const segment of readableSegments(tables)) {
    const bytes = bytesPerRow(segment);
    const note = (seq: number): void => {
      const minute = Math.floor(unixMsFromSeq(seq) / MINUTE_MS);
      bytesByMinute.set(minute, (bytesByMinute.get(minute) ?? 0) + bytes);
    };
    if (segment.isHistory) yield* visitReplacing(segment, note);
    else yield* segment.deletions.visitSteps((_row, seq) => note(seq));
  }
  // Counts from the newest versions to the oldest, since the newest are kept while they fit.
  let kept = 0;
  for (const minute of Float64Array.from(bytesByMinute.keys()).toSorted().toReversed()) {
    kept += bytesByMinute.get(minute) ?? 0;
    if (kept > bytesMax) return seqFromUnixMs((minute + 1) * MINUTE_MS) - 1;
  }
  return 0;
}

/**
 * Estimates how many versions in a table's segments are kept only because topics need them. A step
 * examines one segment.
 */
export function* heldHistoryOf(table: StoredTable, ids: Ages): Generator<void, HeldHistory> {
  const ownSeq = ownFloorOf(table, ids);
  const heldSeq = retentionFloorOf(table, ids);
  let versions = 0;
  let bytes = 0;
  if (heldSeq === ownSeq) return { versions, bytes };
  for (const segment of readableSegments([table])) {
    unlessDamaged(() => {
      const share = discardableShare(segment, ownSeq) - discardableShare(segment, heldSeq);
      versions += Math.round(share * segment.entry.rowCount);
      bytes += Math.round(share * segment.entry.bytes);
    });
    yield;
  }
  return { versions, bytes };
}

/** Calls `note` with the seq at which each row of a history segment became obsolete. */
function* visitReplacing(segment: OpenSegment, note: (seq: number) => void): Generator<void, void> {
  let groupCount = 0;
  unlessDamaged(() => {
    ({ groupCount } = segment.reader);
  });
  for (let group = 0; group < groupCount && !isOutOfUse(segment); group += 1) {
    const isRead = unlessDamaged(() => {
      for (const seq of segment.guard(() => segment.reader.replacingSeqs(group))) note(seq);
    });
    if (!isRead) return;
    yield;
  }
}

/** Counts the bytes that replaced versions occupy in segments. */
function* historyBytes(tables: Iterable<StoredTable>): Generator<void, number> {
  let bytes = 0;
  for (const segment of readableSegments(tables)) {
    const count = segment.isHistory ? segment.entry.rowCount : segment.deletions.count;
    bytes += count * bytesPerRow(segment);
    yield;
  }
  return bytes;
}

function* readableSegments(tables: Iterable<StoredTable>): Generator<OpenSegment> {
  for (const table of tables) {
    for (const segment of table.allSegments) {
      // The segment may have been merged, or its table dropped, since the previous step.
      if (table.isDropped || isOutOfUse(segment)) continue;
      // Damage found by the count quarantines the segment, but does not stop the count.
      if (segment.isHistory || unlessDamaged(() => segment.deletions)) yield segment;
    }
  }
}

function isOutOfUse({ entry, isDropped }: OpenSegment): boolean {
  return isDropped || entry.quarantined;
}

function bytesPerRow({ entry: { bytes, rowCount } }: OpenSegment): number {
  return bytes / rowCount;
}
