/**
 * Counts the changes sent to a subscription, for display to operators. Its times are readings of
 * the monotonic clock.
 *
 * Invariant: the seq of the last change never falls. It stays the same when a result's rows change
 * only with time.
 */
import { assert } from "../../base/assert.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";

/** The approximate span over which the rate of changes is measured. */
const RATE_WINDOW_MS = 60_000;

export class ChangeTally {
  count = 0;
  lastSeq: Seq = SEQ_ZERO;
  lastMs = 0;
  /**
   * The weighted number of changes in the window that ends at the last change. Older changes weigh
   * less.
   */
  #recentCount = 0;

  add(lastSeq: Seq, count: number, nowMs: number): void {
    assert(lastSeq >= this.lastSeq, "change tally: changes are not in ascending order of seq");
    this.#recentCount = this.#recentAt(nowMs) + count;
    this.lastSeq = lastSeq;
    this.count += count;
    this.lastMs = nowMs;
  }

  perSecond(nowMs: number): number {
    return (this.#recentAt(nowMs) * 1000) / RATE_WINDOW_MS;
  }

  #recentAt(nowMs: number): number {
    const ageMs = nowMs - this.lastMs;
    return this.#recentCount * Math.exp(-ageMs / RATE_WINDOW_MS);
  }
}
