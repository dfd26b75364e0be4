/**
 * The bound on the bytes of history: replaced versions go before their time, the oldest first, when
 * all that is kept of them takes more room.
 *
 * The bytes of a version are its part of the segment that it lies in; what is in memory does not
 * count. Nothing that was replaced less than an hour ago goes (`storage/table/history.ts`), however
 * much it is.
 */
import { type Seq, type SeqGenerator, seqFromUnixMs, unixMsFromSeq } from "../../base/seq.ts";
import { horizonSeqOf } from "../table/history.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import { type StoredTable, unlessDamaged } from "../table/table.ts";

/** History goes in steps of this length, so that counting it needs no order of all versions. */
const MINUTE_MS = 60_000;

/** The newest seq of which the versions of a table that it replaced may be discarded. */
export function horizonOf(table: StoredTable, ids: Pick<SeqGenerator, "agedSeq">): Seq {
  const byAge = horizonSeqOf(ids, table.definition.historyMs);
  return Math.max(byAge, Math.min(table.sizeHorizonSeq, horizonSeqOf(ids, 0))) as Seq;
}

/**
 * The seq up to which replacements must be old enough for what remains to fit; 0 when all does.
 * A step looks at one segment, or at some ten thousand of its rows; what changes between two steps
 * is counted or not.
 *
 * @param bytesMax 1 or more.
 * @throws {DatabaseError} @throws {DiskError} If a deletion vector cannot be opened now.
 */
export function* sizeHorizonOf(
  tables: readonly StoredTable[],
  bytesMax: number,
): Generator<void, number> {
  if ((yield* historyBytes(tables)) <= bytesMax) return 0;
  const bytesByMinute = new Map<number, number>();
  for (const segment of readableSegments(tables)) {
    const bytes = bytesPerRow(segment);
    yield* segment.deletions.visitSteps((_row, seq) => {
      const minute = Math.floor(unixMsFromSeq(seq) / MINUTE_MS);
      bytesByMinute.set(minute, (bytesByMinute.get(minute) ?? 0) + bytes);
    });
  }
  // Newest first: those are kept while there is room.
  let kept = 0;
  for (const minute of Float64Array.from(bytesByMinute.keys()).toSorted().toReversed()) {
    kept += bytesByMinute.get(minute) ?? 0;
    if (kept > bytesMax) return seqFromUnixMs((minute + 1) * MINUTE_MS) - 1;
  }
  return 0;
}

/** Bytes of replaced versions that segments keep. */
function* historyBytes(tables: Iterable<StoredTable>): Generator<void, number> {
  let bytes = 0;
  for (const segment of readableSegments(tables)) {
    bytes += segment.deletions.count * bytesPerRow(segment);
    yield;
  }
  return bytes;
}

function* readableSegments(tables: Iterable<StoredTable>): Generator<OpenSegment> {
  for (const table of tables) {
    for (const segment of table.segments) {
      // It may have been merged, and its table dropped, since the step before.
      if (table.isDropped || segment.isDropped || segment.entry.quarantined) continue;
      // Damage that is met here quarantines the segment, and stops nobody.
      if (unlessDamaged(() => segment.deletions)) yield segment;
    }
  }
}

function bytesPerRow({ entry: { bytes, rowCount } }: OpenSegment): number {
  return bytes / rowCount;
}
