/**
 * A clock that advances only when a test advances it. It counts the yields of work on the event
 * loop, and calls a listener at each yield.
 */
import { ManualClock } from "./manual_clock.ts";

export class CountingClock extends ManualClock {
  yieldCount = 0;
  onYield: () => void = () => undefined;

  override yield(): Promise<void> {
    this.yieldCount += 1;
    this.onYield();
    return super.yield();
  }
}
