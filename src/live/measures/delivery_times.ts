/**
 * Measures, for display to operators, how long changes take from their commit to a socket's queue.
 *
 * A change older than the subscription was replayed, not delivered late, so it is not measured.
 */
import { assert } from "../../base/assert.ts";

/** Upper bounds of the buckets, in seconds. Commit times have millisecond precision. */
export const DELIVERY_BOUNDS: readonly number[] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5];

export interface DeliveryReport {
  /**
   * The number of messages in each bucket. The last entry counts the messages that took longer
   * than the last bound.
   */
  readonly counts: readonly number[];
  readonly sumSeconds: number;
  /** The number of changes sent, including replayed changes. */
  readonly changes: number;
  /** The number of subscriptions waiting for their socket or catching up. */
  readonly behind: number;
  readonly loading: number;
  /** The largest lag between a subscription's position and the newest commit, in milliseconds. */
  readonly lagMsMax: number;
}

export class DeliveryTimes {
  readonly counts: number[] = [...DELIVERY_BOUNDS.map(() => 0), 0];
  sumMs = 0;
  changes = 0;

  /** Records that a message of `count` changes was queued `ageMs` after their commit. */
  delivered(count: number, ageMs: number): void {
    assert(count > 0, "delivery times: delivered message contains no changes");
    this.changes += count;
    let bucket = 0;
    while (bucket < DELIVERY_BOUNDS.length && ageMs > (DELIVERY_BOUNDS[bucket] ?? 0) * 1000) {
      bucket += 1;
    }
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumMs += Math.max(0, ageMs);
  }

  replayed(count: number): void {
    this.changes += count;
  }
}
