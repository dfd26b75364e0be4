/**
 * How long changes take from their commit to the queue of a socket, counted for operators.
 *
 * A change that is older than the subscription is replayed, not delivered late, so it is not here.
 */
import { assert } from "../base/assert.ts";

/** Upper bounds of the buckets, in seconds; a commit's time is known to the millisecond. */
export const DELIVERY_BOUNDS: readonly number[] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5];

export interface DeliveryReport {
  /** Messages in each bucket, those above the last bound at the end. */
  readonly counts: readonly number[];
  readonly sumSeconds: number;
  /** Changes sent, replayed ones included. */
  readonly changes: number;
  /** Subscriptions that wait for their socket, or read what they missed. */
  readonly behind: number;
  readonly loading: number;
  /** The longest way of any position behind the newest commit. */
  readonly lagMsMax: number;
}

export class DeliveryTimes {
  readonly counts: number[] = [...DELIVERY_BOUNDS.map(() => 0), 0];
  sumMs = 0;
  changes = 0;

  /** A message of `count` changes was queued so long after their commit. */
  delivered(count: number, ageMs: number): void {
    assert(count > 0, "a message has a change");
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
