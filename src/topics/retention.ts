/**
 * Decides which messages of a topic to discard: those older than its retention hours, the oldest
 * ones beyond its retention bytes, and those that were cleared.
 *
 * Discarding messages takes a commit, so it waits until at least a page of messages can be
 * discarded, or until a fraction of the retention time has passed.
 */
import { HOUR_MS } from "../base/clock.ts";
import type { TopicEntry } from "../catalog/mod.ts";
import type { Store } from "../storage/mod.ts";
import type { OffsetIndex } from "./offset_index.ts";

/** Old messages are discarded in this many steps per retention period. */
const STEPS = 16;

/** Returns the seq up to which messages have expired or been cleared. */
export function agedFloor(
  { clearedSeq, retentionHours }: TopicEntry,
  store: Pick<Store, "agedSeq">,
): number {
  return Math.max(clearedSeq, store.agedSeq(retentionHours * HOUR_MS));
}

/** Whether raising the stored floor from one seq to another is worth a commit. */
export function isFloorDue(
  { clearedSeq, retentionHours }: TopicEntry,
  { from, to }: { from: number; to: number },
  store: Pick<Store, "commitMs">,
): boolean {
  if (to <= from) return false;
  if (from < clearedSeq) return true;
  const stepMs = (retentionHours * HOUR_MS) / STEPS;
  return store.commitMs(to) - store.commitMs(from) >= stepMs;
}

/**
 * Returns the seq up to which pages must be discarded for the topic to stay within its size limit;
 * 0 if it already does.
 */
export function sizeFloor({ retentionBytes }: TopicEntry, index: OffsetIndex): number {
  let bytes = 0;
  for (const { payloadBytes } of index.pages()) bytes += payloadBytes;
  if (bytes <= retentionBytes) return 0;
  const pages = [...index.pages()].toSorted((left, right) => left.lastSeq - right.lastSeq);
  for (const { lastSeq, payloadBytes } of pages) {
    bytes -= payloadBytes;
    if (bytes <= retentionBytes) return lastSeq;
  }
  return 0;
}
