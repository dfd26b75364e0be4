/**
 * A clock that advances only when a test advances it. It counts how often it is read, so that
 * tests can verify that long-running work checks the time often.
 */
import { ManualClock } from "./manual_clock.ts";

export class AskedClock extends ManualClock {
  askedCount = 0;

  override monotonicMs(): number {
    this.askedCount += 1;
    return super.monotonicMs();
  }
}
