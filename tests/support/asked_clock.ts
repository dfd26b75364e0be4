/**
 * A clock that moves only when a test moves it, and counts how often it was asked for the time:
 * long work has to ask often.
 */
import { ManualClock } from "./manual_clock.ts";

export class AskedClock extends ManualClock {
  askedCount = 0;

  override monotonicMs(): number {
    this.askedCount += 1;
    return super.monotonicMs();
  }
}
