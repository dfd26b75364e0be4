/**
 * A clock that advances only when a test advances it. It counts how often it is read, because
 * long-running work must check the time often.
 */
import { ManualClock } from "./manual_clock.ts";

export class AskedClock extends ManualClock {
  askedCount = 0;

  override monotonicMs(): number {
    this.askedCount += 1;
    return super.monotonicMs();
  }
}
