/**
 * A clock that advances only when a test says so. It counts how often it was asked for the time,
 * because long work must ask often.
 */
import { ManualClock } from "./manual_clock.ts";

export class AskedClock extends ManualClock {
  askedCount = 0;

  override monotonicMs(): number {
    this.askedCount += 1;
    return super.monotonicMs();
  }
}
