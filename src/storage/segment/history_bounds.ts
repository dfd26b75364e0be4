/**
 * Determines, from a history segment's zone maps, the range of the seqs that replaced its rows. No
 * chunk is read.
 */
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { HistoryBounds } from "../contract/manifest.ts";
import { REPLACING_COLUMN_ID } from "./format.ts";
import type { SegmentReader } from "./reader.ts";

/**
 * Returns the range of the seqs that replaced a history segment's rows; undefined if the segment
 * is not a history segment.
 */
export function historyBoundsOf(reader: SegmentReader): HistoryBounds | undefined {
  if (!reader.isHistory) return undefined;
  let lowest = Infinity;
  let highest = -Infinity;
  for (let group = 0; group < reader.groupCount; group += 1) {
    const entry = reader.chunkEntry(REPLACING_COLUMN_ID, group);
    assert(entry !== undefined, "history segment: column of replacing seqs is missing");
    lowest = Math.min(lowest, entry.min);
    highest = Math.max(highest, entry.max);
  }
  return { lowestReplacingSeq: lowest as Seq, highestReplacingSeq: highest as Seq };
}
